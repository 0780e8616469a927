"""``autograd.scipy.signal.convolve``: convolution over some axes, sums over others, an outer product over the rest."""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from pullback import NotDifferentiableError, primitive

MODES = ("full", "valid", "same")


def convolve(A: Any, B: Any, axes: Any = None, dot_axes: Any = ((), ()), mode: str = "full") -> Any:
    """The convolution of A and B over the pairs of axes ``axes`` (all axes, if None), summed over the pairs
    ``dot_axes``.

    The result has the axes of A in neither list, those of B, then the convolved ones. ``mode`` is 'full', 'valid', or
    'same': the middle of 'full', as long as A.
    """
    if mode not in MODES:
        raise NotDifferentiableError(f"convolve knows the modes {MODES}, got {mode!r}; pass one of them")
    along = [list(range(np.ndim(X))) for X in (A, B)] if axes is None else [list(part) for part in axes]
    dots = [list(part) for part in dot_axes]
    canonical, free = [], []
    for X, convolved, dotted in zip((A, B), along, dots, strict=True):
        rest = [k for k in range(np.ndim(X)) if k not in {a % np.ndim(X) for a in (*convolved, *dotted)}]
        shape = [np.shape(X)[k] for k in rest]
        sums = int(np.prod([np.shape(X)[k] for k in dotted], dtype=np.intp))
        moved = np.transpose(X, (*rest, *dotted, *convolved))
        canonical.append(
            np.reshape(moved, (int(np.prod(shape, dtype=np.intp)), sums, *(np.shape(X)[k] for k in convolved)))
        )
        free += shape
    a, b = canonical
    if mode != "valid" or _covers(a, b):
        out = _convolve(a, b, mode="valid" if mode == "valid" else "full")
    else:
        out = np.swapaxes(_convolve(b, a, mode=mode), 0, 1)
    if mode == "same":
        middle = (slice((m - 1) // 2, (m - 1) // 2 + n) for n, m in zip(a.shape[2:], b.shape[2:], strict=True))
        out = out[:, :, *middle]
    return np.reshape(out, (*free, *out.shape[2:]))


def _covers(a: Any, b: Any) -> bool:
    """True where ``a`` is at least as long as ``b`` in every convolved axis; raises ValueError where each is longer
    somewhere."""
    longer = [n >= m for n, m in zip(a.shape[2:], b.shape[2:], strict=True)]
    shorter = [n <= m for n, m in zip(a.shape[2:], b.shape[2:], strict=True)]
    if not all(longer) and not all(shorter):
        raise ValueError(
            f"mode 'valid' needs one array at least as long in every axis, got {a.shape[2:]} and {b.shape[2:]}"
        )
    return all(longer)


def _forward(a: Any, b: Any, *, mode: str) -> Any:
    """out[i, o, s] = sum over d and k of a[i, d, s - k] b[o, d, k], at every s where one term exists (full) or all
    do (valid)."""
    axes = tuple(range(2, a.ndim))
    if mode == "full":
        a = np.pad(a, [(0, 0), (0, 0), *((n - 1, n - 1) for n in b.shape[2:])])
    windows = sliding_window_view(a, b.shape[2:], axes)
    within = [1, *range(a.ndim, a.ndim + len(axes))]
    return np.moveaxis(np.tensordot(windows, np.flip(b, axes), (within, [1, *axes])), -1, 1)


_convolve = primitive(_forward, name="convolve_axes")


def _reversed(x: Any) -> Any:
    """The array with its first two axes swapped and the others reversed."""
    return np.flip(np.swapaxes(x, 0, 1), tuple(range(2, x.ndim)))


@_convolve.vjp("a")
def _pull_a(ct: Any, b: Any, mode: str) -> Any:
    return _convolve(ct, _reversed(b), mode="valid" if mode == "full" else "full")


@_convolve.vjp("b")
def _pull_b(ct: Any, a: Any, mode: str) -> Any:
    """The correlation of ct with a; a is the kernel where the convolution was full, and ct where it was valid."""
    if mode == "full":
        return _convolve(np.swapaxes(ct, 0, 1), _reversed(a), mode="valid")
    return _reversed(_convolve(np.swapaxes(a, 0, 1), _reversed(ct), mode="valid"))


__all__ = ["convolve"]
