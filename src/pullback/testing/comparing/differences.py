"""Numeric derivatives along a path: the complex step where it applies, else central differences with Richardson
extrapolation.

A path is a function ``phi(t)`` of one number that gives a flat array: ``phi(t) = f(x + t v)``. Its derivative at 0 is
``J v``. The complex step calls ``phi(1j * h)``; central differences call it at real ``t`` only.
"""

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from pullback.words import structures

Path = Callable[[Any], NDArray[Any]]

IMAGINARY_STEP = 1e-30
"""No subtraction takes place, so the step may be far below rounding (Squire & Trapp, SIAM Review 40, 1998)."""
FIRST_STEP, SHRINK, LEVELS = 2.0**-4, 4.0, 10
"""Steps 1/16 ... 2.4e-7: the largest for smooth functions, the smallest beside the edge of a domain."""
LAST_STEP = FIRST_STEP / SHRINK ** (LEVELS - 1)
ENOUGH = 1e-11
"""Where all estimated errors are so small, beside the largest output, no smaller steps are taken but the smallest."""
FAR = 1e-3
"""How far, relatively, an extrapolated value may lie from the plain difference of the smallest step."""
AGREEMENT = 1e-5
"""The complex step is believed where it is this close to the differences: of ``abs`` or ``real`` it gives nonsense,
silently."""
COMPLEX_STEP, DIFFERENCES = "complex step", "central differences"


@frozen(eq=False)
class Derivative:
    """``value`` = J v and an estimate of its ``error``, both flat over the outputs; infinite error where there is no
    derivative."""

    value: NDArray[Any]
    error: NDArray[Any]
    method: str


def derivatives(paths: Iterable[Path], eps: float = 0.0) -> list[Derivative]:
    """The derivative at 0 of each path, one after the other; they all begin at one point. ``eps`` is the relative
    rounding of what the paths move, if that is coarser.

    The complex step is taken if on the first of them it agrees with central differences to 1e-5, so hand over a general
    direction first; and on each of the others only where one plain difference bears it out: what LAPACK leaves open,
    such as the sign of an eigenvector, may come out otherwise for complex numbers along some of the paths.
    """
    todo = list(paths)
    if not todo:
        return []
    still = todo[0](0.0)
    first = richardson(todo[0], eps, still)
    exact = complex_step(todo[0], still)
    if exact is None or not _agree(exact, first, still):
        return [first, *(richardson(phi, eps, still) for phi in todo[1:])]
    return [exact, *(_stepped(phi, eps, still) for phi in todo[1:])]


def _stepped(phi: Path, eps: float, still: NDArray[Any]) -> Derivative:
    """The complex step where differences bear it out, else these."""
    exact = complex_step(phi, still)
    if exact is None:
        return richardson(phi, eps, still)
    plain = _central(phi, LAST_STEP, exact.value)
    if np.all(np.abs(exact.value - plain) <= FAR * np.max(np.abs(plain), initial=0.0)):  # False for NaN
        return exact
    coarse = richardson(phi, eps, still)
    return exact if _agree(exact, coarse, still) else coarse


def complex_step(phi: Path, still: NDArray[Any] | None = None) -> Derivative | None:
    """Im phi(i h) / h, exact to rounding for analytic functions of real operands; None where ``phi`` does not take
    complex numbers. ``still`` is phi(0), where that is known."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            # NumPy warns when an imaginary part is dropped: then the step says nothing.
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            still, stepped = phi(0.0) if still is None else still, phi(1j * IMAGINARY_STEP)
    except Exception:  # noqa: BLE001 - a function may refuse complex numbers in its own way; differences remain
        return None
    if stepped.dtype.kind != "c" or still.dtype.kind == "c" or stepped.shape != still.shape:
        return None
    value = stepped.imag / IMAGINARY_STEP
    return Derivative(value, np.where(np.isfinite(value), 8 * _eps(stepped) * np.abs(value), np.inf), COMPLEX_STEP)


def richardson(phi: Path, eps: float = 0.0, still: NDArray[Any] | None = None) -> Derivative:
    """Central differences extrapolated to step 0; for each output the element of the tableau with the least estimated
    error. ``still`` is phi(0), where that is known.

    Source: Ridders, Adv. Eng. Software 4 (1982), with the step divided by 4, so that one extrapolation gains a factor
    16^k. A step that leaves the domain (an exception, NaN) is passed over.
    """
    still = phi(0.0) if still is None else still
    size = np.abs(still, dtype=np.float64) if still.dtype.kind != "c" else np.abs(still).astype(np.float64)
    best = np.full(still.shape, np.nan, np.complex128 if still.dtype.kind == "c" else np.float64)
    error = np.full(still.shape, np.inf)
    above: list[NDArray[Any]] = []
    for level in range(LEVELS):
        h = FIRST_STEP / SHRINK**level
        row = [_central(phi, h, best)]
        rounding = _rounding(still, size, eps, h)
        with np.errstate(all="ignore"):
            for k, upper in enumerate(above, start=1):
                gain = SHRINK ** (2 * k)
                row.append((gain * row[-1] - upper) / (gain - 1))
                estimate = np.maximum(np.abs(row[-1] - row[-2]), np.abs(row[-1] - upper)) + rounding
                better = estimate < error  # False for NaN
                best, error = np.where(better, row[-1], best), np.where(better, estimate, error)
            if np.all(error <= ENOUGH * np.max(np.abs(best), initial=0.0)):  # False for NaN
                break
        above = row
    finest = row[0] if h == LAST_STEP else _central(phi, LAST_STEP, best)
    return _at_least_near(phi, finest, _rounding(still, size, eps, LAST_STEP), Derivative(best, error, DIFFERENCES))


def _rounding(still: NDArray[Any], size: NDArray[Any], eps: float, h: float) -> Any:
    """The error of a difference of step ``h`` by rounding alone."""
    return max(_eps(still), eps) * (size + 1.0) / h if eps else _eps(still) * size / h


def _at_least_near(phi: Path, finest: NDArray[Any], rounding: Any, found: Derivative) -> Derivative:
    """The extrapolated values where the smallest step bears them out, else the plain difference of that step.

    A sawtooth such as ``remainder`` has the slope of its envelope at large steps, and an extrapolation may settle on
    that.
    """
    with np.errstate(all="ignore"):
        astray = np.abs(found.value - finest) > FAR * np.abs(finest) + 100 * rounding
        if not np.any(astray):
            return found
        unsure = np.abs(finest - _central(phi, SHRINK * LAST_STEP, finest)) + rounding
        return Derivative(np.where(astray, finest, found.value), np.where(astray, unsure, found.error), DIFFERENCES)


def _central(phi: Path, h: float, like: NDArray[Any]) -> NDArray[Any]:
    """(phi(h) - phi(-h)) / 2h; NaN where the function cannot be evaluated, or gives another number of elements."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            ahead, behind = phi(h), phi(-h)
            if not ahead.shape == behind.shape == like.shape:  # such as polydiv, which trims what rounds to zero
                return np.full_like(like, np.nan)
            return np.asarray((ahead.astype(like.dtype) - behind.astype(like.dtype)) / (2 * h))
    except Exception:  # noqa: BLE001 - outside its domain a function may raise anything
        return np.full_like(like, np.nan)


def _agree(exact: Derivative, coarse: Derivative, still: NDArray[Any]) -> bool:
    if not np.all(np.isfinite(coarse.error)):
        return False  # the edge of the domain, where the complex step goes on as if there were none
    size = np.abs(coarse.value)
    # Where the function jumps, the differences are huge and say nothing; nor do they tell how large the others are.
    # Of an output that does not move they tell it up to the rounding of the output.
    known = coarse.error <= FAR * (size + np.max(size, initial=0.0) + np.abs(still))
    known |= not np.any(known)  # where all are 0 but for rounding
    gap = np.abs(exact.value - coarse.value)
    return bool(np.all(gap[known] <= AGREEMENT * np.max(size[known], initial=0.0) + 10 * coarse.error[known]))


def _eps(array: NDArray[Any]) -> float:
    return float(np.finfo(array.dtype).eps) if array.dtype.kind in "fc" else 0.0


def flatten(values: Iterable[Any]) -> NDArray[Any]:
    """The floating and complex values side by side in one flat array; the others have no derivative and are left
    out."""
    parts = [np.ravel(np.asarray(v)) for v in values if v is not None]
    parts = [p for p in parts if p.dtype.kind in "fc"]
    return np.concatenate(parts) if parts else np.zeros(0)


def inner(a: Any, b: Any) -> float:
    """Re sum(a b), the pairing of cotangent and tangent: complex numbers are R^2, the gradient is df/dx - i df/dy,
    so no conjugate."""
    return float(np.sum(np.multiply(a, b, dtype=np.complex128)).real)


def random_like(rng: np.random.Generator, value: Any) -> NDArray[Any]:
    """A normal sample of the shape and dtype of ``value`` (both parts where it is complex)."""
    array = np.asarray(value)
    sample = rng.standard_normal(array.shape)
    if array.dtype.kind == "c":
        sample = sample + 1j * rng.standard_normal(array.shape)
    return np.asarray(sample).astype(array.dtype)


def random_cotangents(rng: np.random.Generator, out: Any) -> Any:
    """Random cotangents of an output, in its structure; leaves of other dtypes stay as they are."""
    leaves, definition = structures.flatten(out)
    return structures.unflatten(
        definition, [random_like(rng, leaf) if np.asarray(leaf).dtype.kind in "fc" else leaf for leaf in leaves]
    )


TOLERANCES = {2: 2e-2, 4: 3e-4, 8: 1e-8, 16: 1e-8}
"""Relative, by bytes of a real number: float16, float32, float64, longdouble. About sqrt(eps): rules cancel and
reductions round."""


def tolerance(*values: Any) -> float:
    """The relative tolerance of the least precise floating or complex dtype among ``values``; Python numbers count
    as float64."""
    dtypes = [np.asarray(v).dtype for v in values if v is not None]
    sizes = [d.itemsize // (2 if d.kind == "c" else 1) for d in dtypes if d.kind in "fc"]
    return max((TOLERANCES.get(size, 1e-8) for size in sizes), default=1e-8)


def widened(values: tuple[Any, ...], gives: Callable[[tuple[Any, ...]], NDArray[Any]]) -> tuple[Any, ...]:
    """``values`` in double precision, if ``gives`` takes them so and gives the same up to rounding: differences then
    see more digits.

    Otherwise, and where nothing is narrower than double, ``values`` themselves. Integers and Python numbers stay.
    """
    wide = tuple(_double(v) for v in values)
    if all(a is b for a, b in zip(values, wide, strict=True)):
        return values
    try:
        with np.errstate(all="ignore"):
            close = np.allclose(
                gives(wide), gives(values), rtol=100 * tolerance(*values), atol=tolerance(*values), equal_nan=True
            )
    except Exception:  # noqa: BLE001 - a function may refuse another dtype in its own way
        return values
    return wide if close else values


def _double(value: Any) -> Any:
    dtype = getattr(value, "dtype", None)
    if dtype is None or dtype.kind not in "fc" or dtype.itemsize >= (16 if dtype.kind == "c" else 8):
        return value
    return value.astype(np.complex128 if dtype.kind == "c" else np.float64)


def rounding_of(values: Iterable[Any]) -> float:
    """The coarsest relative rounding among floating values; 0 where all are double."""
    eps = max((_eps(np.asarray(v)) for v in values), default=0.0)
    return eps if eps > 2.0**-52 else 0.0
