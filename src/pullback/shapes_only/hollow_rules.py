"""What NumPy's functions give for arrays without values: a line for each that is no ufunc and that NumPy has not
written in Python on top of others."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from attrs import evolve

from pullback.shapes_only.hollow_shapes import HollowResult, Shape, is_hollow, refuse
from pullback.words.specs import buffer_of


def reduced(shape: Shape, axis: Any, *, kept: bool) -> Shape:
    """The shape without these axes, or with 1 in their place."""
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    gone = {k % max(1, len(shape)) for k in axes}
    if kept:
        return tuple(1 if k in gone else extent for k, extent in enumerate(shape))
    return tuple(extent for k, extent in enumerate(shape) if k not in gone)


def _like(a: Any, *args: Any, dtype: Any = None, shape: Any = None, **_: Any) -> Any:
    shape = np.shape(a) if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    return HollowResult(shape, dtype or (args[0] if args and args[0] is not None else a.dtype), like=a)


def _zeros_like(a: Any, *args: Any, **kwargs: Any) -> Any:
    return evolve(_like(a, *args, **kwargs), blank=True)


def _full_like(a: Any, _value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    return _like(a, dtype=dtype, shape=kwargs.get("shape"))


def _plain(x: Any) -> Any:
    return x.view(np.ndarray) if is_hollow(x) else x


def _shared(asked: Callable[..., bool], a: Any, b: Any) -> bool:
    return buffer_of(a) is buffer_of(b) and asked(_plain(a), _plain(b))


def _kind_of(x: Any) -> Any:
    return x.dtype if is_hollow(x) else x


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None:
        refuse("where an array is true")
    shape = np.broadcast_shapes(np.shape(condition), np.shape(x), np.shape(y))
    return HollowResult(shape, np.result_type(_kind_of(x), _kind_of(y)))


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    x, y = np.shape(a), np.shape(b)
    if not x or not y:
        return np.multiply(a, b)
    inner = y[0] if len(y) == 1 else y[-2]
    if x[-1] != inner:
        raise ValueError(f"shapes {x} and {y} not aligned: {x[-1]} (dim {len(x) - 1}) != {inner}")
    shape = (*x[:-1], *y[:-2], *y[-1:]) if len(y) > 1 else x[:-1]
    return _product(shape, a, b) if out is None else out


def _inner(a: Any, b: Any) -> Any:
    return _product((*np.shape(a)[:-1], *np.shape(b)[:-1]), a, b)


def _product(shape: Shape, *operands: Any) -> Any:
    return HollowResult(shape, np.result_type(*map(_kind_of, operands)), scalar=not shape)


def _einsum(*operands: Any, out: Any = None, **_: Any) -> Any:
    text, *arrays = operands
    if not isinstance(text, str) or "." in text:
        refuse("what numpy.einsum gives for lists or an ellipsis")
    ins, arrow, result = text.replace(" ", "").partition("->")
    if not arrow:
        result = "".join(sorted(name for name in {*ins} - {","} if ins.count(name) == 1))
    sizes: dict[str, int] = {}
    for names, array in zip(ins.split(","), arrays, strict=True):
        sizes.update((n, extent) for n, extent in zip(names, np.shape(array), strict=True) if sizes.get(n, 1) == 1)
    return _product(tuple(sizes[name] for name in result), *arrays) if out is None else out


def _same(a: Any, *_: Any, **__: Any) -> Any:
    return HollowResult(np.shape(a), a.dtype)


def _nothing(*_: Any, **__: Any) -> None:
    """Nothing is written."""


def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    strides = np.broadcast_to(_plain(array), shape).strides
    return np.lib.stride_tricks.as_strided(array, (shape,) if isinstance(shape, int) else shape, strides, subok=True)


def _inverse(a: Any) -> Any:
    return HollowResult(np.shape(a), np.result_type(_kind_of(a), np.float32))


def _solve(a: Any, b: Any) -> Any:
    return _product(np.shape(b) if np.ndim(b) == 1 else (*np.shape(a)[:-2], *np.shape(b)[-2:]), a, b)


def _determinant(a: Any) -> Any:
    return _product(np.shape(a)[:-2], a)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    shape = reduced(np.shape(x), axis, kept=keepdims)
    return HollowResult(shape, np.empty(0, x.dtype).real.dtype, scalar=not shape)


def _transform(*, forth: int, back: int) -> Callable[..., Any]:
    """A discrete Fourier transform of one axis: from complex to complex, or to (``forth``) or from (``back``) half."""

    def rule(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
        shape, place = list(a.shape), axis % len(a.shape)
        length = n if n is not None else 2 * (shape[place] - 1) if back else shape[place]
        shape[place] = length // 2 + 1 if forth else length
        kind = np.result_type(a.dtype, np.float32 if back else np.complex64)
        return HollowResult(tuple(shape), np.empty(0, kind).real.dtype if back else kind)

    return rule


def _over_axes(one: Callable[..., Any], axes_of: Callable[[Any], Any]) -> Callable[..., Any]:
    def rule(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
        places = axes_of(a) if axes is None else axes
        for k, axis in enumerate(places):
            a = one(a, None if s is None else s[k], axis)
        return a

    return rule


_FFT, _RFFT, _IRFFT = _transform(forth=0, back=0), _transform(forth=1, back=0), _transform(forth=0, back=1)
RULES: Final[dict[Any, Callable[..., Any]]] = {
    np.zeros_like: _zeros_like, np.ones_like: _like, np.empty_like: _like, np.full_like: _full_like,
    np.may_share_memory: lambda a, b, *_, **__: _shared(np.may_share_memory, a, b),
    np.shares_memory: lambda a, b, *_, **__: _shared(np.shares_memory, a, b),
    np.result_type: lambda *kinds: np.result_type(*map(_kind_of, kinds)),
    np.can_cast: lambda x, to, casting="safe": np.can_cast(_kind_of(x), to, casting),
    np.where: _where, np.dot: _dot, np.inner: _inner, np.vdot: lambda a, b: _product((), a, b), np.einsum: _einsum,
    np.tril: _same, np.triu: _same, np.copyto: _nothing, np.putmask: _nothing, np.place: _nothing, np.put: _nothing,
    np.put_along_axis: _nothing, np.fill_diagonal: _nothing,
    np.broadcast_to: _broadcast_to,
    np.copy: lambda a, *_, **__: a.copy(),
    np.linalg.inv: _inverse, np.linalg.cholesky: lambda a, *_, **__: _inverse(a), np.linalg.solve: _solve,
    np.linalg.det: _determinant, np.linalg.norm: _norm,
    np.fft.fft: _FFT, np.fft.ifft: _FFT, np.fft.rfft: _RFFT, np.fft.irfft: _IRFFT,
    np.fft.fft2: _over_axes(_FFT, lambda _: (-2, -1)), np.fft.ifft2: _over_axes(_FFT, lambda _: (-2, -1)),
    np.fft.fftn: _over_axes(_FFT, lambda a: range(len(a.shape))),
    np.fft.ifftn: _over_axes(_FFT, lambda a: range(len(a.shape))),
}  # fmt: skip
MOVES: Final = frozenset((
    np.concatenate, np.pad, np.take, np.tile, np.repeat, np.delete, np.insert, np.append, np.diag, np.take_along_axis,
    np.compress, np.block, np.resize,
))  # fmt: skip
"""Functions that move elements about, and look at none."""
BY_VALUE: Final = frozenset((
    np.argsort, np.argmax, np.argmin, np.nonzero, np.flatnonzero, np.unique, np.allclose, np.array_equal, np.isclose,
    np.piecewise, np.polyfit, np.convolve, np.correlate, np.cov, np.corrcoef, np.array_repr, np.array_str, np.median,
    np.quantile, np.percentile, np.histogram,
))  # fmt: skip
"""Functions whose result, or way, depends on numbers."""
