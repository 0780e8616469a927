"""For the names of torch's operators, the same mathematics written in NumPy: the table of test_torch_samples.py.

A twin takes the arguments of torch's operator (its names, its order, its defaults) as NumPy arrays and calls NumPy. A
sample that NumPy has no word for raises :class:`Untranslated`. Nothing here imports torch: arrays and types of arrays
arrive translated.
"""

import math
from collections.abc import Callable
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np

Twin = Callable[..., Any]


class Untranslated(Exception):  # noqa: N818 - no fault: the sample uses what NumPy has not
    """Raised by a twin for a sample that NumPy has no word for; says which."""


def same(names: str, module: Any = np) -> dict[str, Twin]:
    """The operators that NumPy calls by the same name with the same arguments."""
    return {name: getattr(module, name) for name in names.split()}


def axes(dim: Any) -> Any:
    """Torch's ``dim`` as NumPy's ``axis``: no axis named means all of them."""
    if isinstance(dim, list | tuple):
        return tuple(dim) or None
    return dim


def along(dim: int, key: Any) -> tuple[Any, ...]:
    """The index that applies ``key`` at axis ``dim``; a negative one counts from the end."""
    return (*(slice(None),) * dim, key) if dim >= 0 else (Ellipsis, key, *(slice(None),) * (-dim - 1))


def shape_of(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes that torch takes as one sequence or as several arguments."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else tuple(sizes)


# ---------------------------------------------------------------------------------------------------------- elementwise


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    return np.clip(x, min, max)


def _divide(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return np.divide(x, y)
    return np.trunc(np.divide(x, y)) if rounding_mode == "trunc" else np.floor_divide(x, y)


def _xlogy(x: Any, y: Any) -> Any:
    return np.where(x == 0, 0.0, x * np.log(np.where(x == 0, 1.0, y)))


def _xlog1py(x: Any, y: Any) -> Any:
    return np.where(x == 0, 0.0, x * np.log1p(np.where(x == 0, 0.0, y)))


def _entropy(x: Any) -> Any:
    positive = np.where(x > 0, x, 1.0)
    return np.where(x > 0, -positive * np.log(positive), np.where(x == 0, 0.0, -np.inf))


def _nan_to_num(x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    return np.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


def _fill(x: Any, value: Any) -> Any:
    return np.full_like(x, value)


def _round(x: Any, decimals: int = 0) -> Any:
    return np.round(x, decimals)


def _softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    return np.where(x * beta > threshold, x, np.logaddexp(0.0, x * beta) / beta)


def _elu(x: Any, alpha: float = 1.0, scale: float = 1.0) -> Any:
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _logit(x: Any, eps: float | None = None) -> Any:
    inside = x if eps is None else np.clip(x, eps, 1 - eps)
    return np.log(inside / (1 - inside))


def _gelu(x: Any, *, approximate: str = "none") -> Any:
    if approximate != "tanh":
        raise Untranslated("NumPy has no error function")
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ELEMENTWISE: dict[str, Twin] = {
    **same(
        "abs sin cos tan sinh cosh tanh exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal positive sign sinc "
        "i0 angle"
    ),
    **same(
        "ceil floor trunc deg2rad rad2deg imag real conj copysign hypot logaddexp logaddexp2 maximum minimum fmax fmin"
    ),
    **same(
        "heaviside fmod remainder float_power isfinite isinf isposinf isneginf isnan isreal signbit logical_not "
        "logical_and"
    ),
    **same("logical_or logical_xor floor_divide true_divide isclose nextafter"),
    **{name: getattr(np, "arc" + name[1:]) for name in "acos asin atan acosh asinh atanh".split()},
    "add": lambda x, y, alpha=1: np.add(x, y if alpha == 1 else alpha * y),
    "sub": lambda x, y, alpha=1: np.subtract(x, y if alpha == 1 else alpha * y),
    "rsub": lambda x, y, alpha=1: y - alpha * x,
    "mul": np.multiply,
    "div": _divide,
    "neg": np.negative,
    "pow": np.power,
    "atan2": np.arctan2,
    "conj_physical": np.conj,
    "resolve_conj": np.positive,
    "resolve_neg": np.positive,
    "__radd__": lambda x, y: y + x,
    "__rsub__": lambda x, y: y - x,
    "__rmul__": lambda x, y: y * x,
    "__rdiv__": lambda x, y: y / x,
    "__rpow__": lambda x, y: y**x,
    "__rmod__": lambda x, y: y % x,
    "max:binary": np.maximum,
    "min:binary": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
    "clamp": _clamp,
    "clamp_min": np.maximum,
    "clamp_max": np.minimum,
    "nan_to_num": _nan_to_num,
    "round": _round,
    "frac": lambda x: x - np.trunc(x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sgn": np.sign,
    "ldexp": lambda x, y: x * np.exp2(y),
    "lerp": lambda x, y, weight: x + weight * (y - x),
    "addcmul": lambda x, a, b, value=1: x + value * a * b,
    "addcdiv": lambda x, a, b, value=1: x + value * a / b,
    "xlogy": _xlogy,
    "special.xlog1py": _xlog1py,
    "special.entr": _entropy,
    "special.i0e": lambda x: np.i0(x) * np.exp(-np.abs(x)),
    "polar": lambda r, angle: r * np.exp(1j * angle),
    "complex": lambda x, y: x + 1j * y,
    "view_as_real": lambda z: np.stack([z.real, z.imag], axis=-1),
    "view_as_complex": lambda x: x[..., 0] + 1j * x[..., 1],
    "sigmoid": _sigmoid,
    "logit": _logit,
    "where": lambda x, condition, y: np.where(condition, x, y),
    "masked_fill": lambda x, mask, value: np.where(mask, value, x),
    "clone": lambda x, memory_format=None: np.copy(x),
    "contiguous": np.copy,
    "fill": _fill,
    "frexp": np.frexp,
    **{
        name: (lambda x, memory_format=None, dt=dt: x.astype(dt))
        for name, dt in {"double": "f8", "cdouble": "c16"}.items()
    },
    "nn.functional.relu": lambda x, inplace=False: np.maximum(x, 0.0),
    "nn.functional.relu6": lambda x, inplace=False: np.clip(x, 0.0, 6.0),
    "nn.functional.hardtanh": lambda x, min_val=-1.0, max_val=1.0, inplace=False: np.clip(x, min_val, max_val),
    "nn.functional.hardsigmoid": lambda x, inplace=False: np.clip(x + 3, 0.0, 6.0) / 6,
    "nn.functional.hardswish": lambda x, inplace=False: x * np.clip(x + 3, 0.0, 6.0) / 6,
    "nn.functional.leaky_relu": lambda x, negative_slope=0.01, inplace=False: np.where(x > 0, x, negative_slope * x),
    "nn.functional.elu": lambda x, alpha=1.0, inplace=False: _elu(x, alpha),
    "nn.functional.celu": lambda x, alpha=1.0, inplace=False: np.where(
        x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha)
    ),
    "nn.functional.selu": lambda x, inplace=False: _elu(
        x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    ),
    "nn.functional.gelu": _gelu,
    "nn.functional.silu": lambda x, inplace=False: x * _sigmoid(x),
    "nn.functional.mish": lambda x, inplace=False: x * np.tanh(np.logaddexp(0.0, x)),
    "nn.functional.logsigmoid": lambda x: -np.logaddexp(0.0, -x),
    "nn.functional.softplus": _softplus,
    "nn.functional.softsign": lambda x: x / (1 + np.abs(x)),
    "nn.functional.tanhshrink": lambda x: x - np.tanh(x),
    "nn.functional.softshrink": lambda x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0.0),
    "nn.functional.hardshrink": lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0.0),
    "nn.functional.threshold": lambda x, threshold, value, inplace=False: np.where(x > threshold, x, value),
}

# ------------------------------------------------------------------------------------------------- reductions and scans


def reduction(function: Twin, **fixed: Any) -> Twin:
    """NumPy's reduction under torch's arguments; ``mask`` is NumPy's ``where``."""

    def twin(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, mask: Any = None) -> Any:
        options: dict[str, Any] = dict(fixed) if mask is not None else {}
        if mask is not None:
            options["where"] = np.broadcast_to(mask, np.shape(x))
        if dtype is not None:
            options["dtype"] = dtype
        return function(x, axis=axes(dim), keepdims=keepdim, **options)

    return twin


def _spread(function: Twin) -> Twin:
    """The variance or deviation; torch names the correction in three ways."""

    def twin(
        x: Any,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
        mask: Any = None,
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        ddof = correction if correction is not None else 1 if unbiased is None else int(unbiased)
        options = {} if mask is None else {"where": np.broadcast_to(mask, np.shape(x))}
        return function(x, axis=axes(dim), ddof=ddof, keepdims=keepdim, **options)

    return twin


def _with_mean(spread: Twin) -> Twin:
    def twin(
        x: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
    ) -> Any:
        of = None if isinstance(dim, bool) else axes(dim)
        return spread(x, dim, unbiased, keepdim, correction=correction), np.mean(x, axis=of, keepdims=keepdim)

    return twin


def _extreme(value: Twin, place: Twin) -> Twin:
    def twin(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return value(x)
        return value(x, axis=dim, keepdims=keepdim), place(x, axis=dim, keepdims=keepdim)

    return twin


def _lower_median(quantile: Twin) -> Twin:
    """Torch's median is the lower of the two in the middle."""
    return lambda x, dim=None, keepdim=False: quantile(x, 0.5, axis=dim, keepdims=keepdim, method="lower")


def _quantile(function: Twin) -> Twin:
    return lambda x, q, dim=None, keepdim=False, *, interpolation="linear": function(
        x, q, axis=dim, keepdims=keepdim, method=interpolation
    )


def _logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    if np.size(x) == 0:
        return np.log(np.sum(np.exp(x), axis=axes(dim), keepdims=keepdim))
    if isinstance(dim, int) and not np.iscomplexobj(x):
        return np.logaddexp.reduce(x, axis=dim, keepdims=keepdim)
    top = np.max(x.real, axis=axes(dim), keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    out = top + np.log(np.sum(np.exp(x - top), axis=axes(dim), keepdims=True))
    return out if keepdim else np.squeeze(out, axis=axes(dim))


def _log_softmax(x: Any, dim: int, dtype: Any = None, *, sign: int = 1, mask: Any = None) -> Any:
    x = sign * (x if dtype is None else x.astype(dtype))
    x = x if mask is None else np.where(mask, x, -np.inf)
    shifted = x - (np.max(x, axis=dim, keepdims=True) if np.size(x) else 0)
    return shifted - np.log(np.sum(np.exp(shifted), axis=dim, keepdims=True))


def _softmax(x: Any, dim: int, dtype: Any = None, *, mask: Any = None) -> Any:
    return np.exp(_log_softmax(x, dim, dtype, mask=mask))


def _softmin(x: Any, dim: int, dtype: Any = None, *, mask: Any = None) -> Any:
    return np.exp(_log_softmax(x, dim, dtype, sign=-1, mask=mask))


def _masked_logsumexp(x: Any, dim: Any = None, keepdim: bool = False, *, mask: Any = None) -> Any:
    return _logsumexp(x if mask is None else np.where(mask, x, -np.inf), dim, keepdim)


def _masked_norm(x: Any, ord: Any = 2.0, dim: Any = None, keepdim: bool = False, *, mask: Any = None) -> Any:
    kept = x if mask is None else np.where(mask, x, np.inf if ord == -np.inf else 0.0)
    return np.linalg.vector_norm(kept, ord=ord, axis=axes(dim), keepdims=keepdim)


def _scan(function: Twin, neutral: float) -> Twin:
    def twin(x: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
        return np.reshape(
            function(x if mask is None else np.where(mask, x, neutral), axis=dim, dtype=dtype), np.shape(x)
        )

    return twin


def _accumulate(ufunc: np.ufunc) -> Twin:
    return lambda x, dim: ufunc.accumulate(x, axis=dim) if np.ndim(x) else x + 0


def _cov(x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    return np.cov(x, ddof=correction, fweights=fweights, aweights=aweights)


_var, _std = _spread(np.var), _spread(np.std)

REDUCTIONS: dict[str, Twin] = {
    **{name: reduction(getattr(np, name)) for name in "sum prod mean amax amin all any nansum nanmean".split()},
    **{name: reduction(getattr(np, name)) for name in "argmax argmin".split()},
    **{"masked." + name: reduction(getattr(np, name)) for name in "sum prod mean".split()},
    "masked.amax": reduction(np.max, initial=-np.inf),
    "masked.amin": reduction(np.min, initial=np.inf),
    "count_nonzero": lambda x, dim=None: np.count_nonzero(x, axis=axes(dim)),
    "aminmax": lambda x, *, dim=None, keepdim=False: (
        np.min(x, axis=dim, keepdims=keepdim),
        np.max(x, axis=dim, keepdims=keepdim),
    ),
    "max": _extreme(np.max, np.argmax),
    "min": _extreme(np.min, np.argmin),
    "median": _lower_median(np.quantile),
    "nanmedian": _lower_median(np.nanquantile),
    "quantile": _quantile(np.quantile),
    "nanquantile": _quantile(np.nanquantile),
    "var": _var,
    "std": _std,
    "masked.var": _var,
    "masked.std": _std,
    "var_mean": _with_mean(_var),
    "std_mean": _with_mean(_std),
    "cumsum": _scan(np.cumsum, 0.0),
    "cumprod": _scan(np.cumprod, 1.0),
    "masked.cumsum": _scan(np.cumsum, 0.0),
    "masked.cumprod": _scan(np.cumprod, 1.0),
    "cummax": _accumulate(np.maximum),
    "cummin": _accumulate(np.minimum),
    "logcumsumexp": _accumulate(np.logaddexp),
    "logsumexp": _logsumexp,
    "log_softmax": _log_softmax,
    "softmax": _softmax,
    "masked.log_softmax": _log_softmax,
    "masked.softmax": _softmax,
    "masked.softmin": _softmin,
    "masked.logsumexp": _masked_logsumexp,
    "masked.norm": _masked_norm,
    "nn.functional.softmin": _softmin,
    "cov": _cov,
    "corrcoef": np.corrcoef,
    "linspace": lambda start, end, steps, *, dtype=None: np.linspace(start, end, steps, dtype=dtype),
    "logspace": lambda start, end, steps, base=10.0, *, dtype=None: np.logspace(
        start, end, steps, base=base, dtype=dtype
    ),
}

# -------------------------------------------------------------------------------------------------- shaping and joining


def _flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    start, end = start_dim % max(np.ndim(x), 1), end_dim % max(np.ndim(x), 1)
    return np.reshape(x, (*np.shape(x)[:start], -1, *np.shape(x)[end + 1 :])) if np.ndim(x) else np.reshape(x, (1,))


def _unflatten(x: Any, dim: int, sizes: Any) -> Any:
    at = dim % np.ndim(x)
    return np.reshape(x, (*np.shape(x)[:at], *sizes, *np.shape(x)[at + 1 :]))


def _expand(x: Any, *sizes: Any) -> Any:
    shape = shape_of(sizes)
    old = (1,) * (len(shape) - np.ndim(x)) + np.shape(x)
    return np.broadcast_to(x, tuple(o if n == -1 else n for o, n in zip(old, shape, strict=True)))


def _split(x: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    sizes = split_size_or_sections
    if isinstance(sizes, int):
        return np.split(x, range(sizes, np.shape(x)[dim], sizes), axis=dim)
    return np.split(x, np.cumsum(sizes)[:-1], axis=dim)


def _chunk(x: Any, chunks: int, dim: int = 0) -> Any:
    return _split(x, -(-np.shape(x)[dim] // chunks), dim)


def _tensor_split(x: Any, indices: Any, dim: int = 0) -> Any:
    return np.array_split(x, int(indices) if np.ndim(indices) == 0 else np.asarray(indices), axis=dim)


def _diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    n = np.shape(x)[-1] + abs(offset)
    out = np.zeros((*np.shape(x)[:-1], n, n), like=x) + 0 * np.sum(x[..., :0])
    rows = np.arange(np.shape(x)[-1]) + max(-offset, 0)
    out[..., rows, rows + offset] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


def _block_diag(*parts: Any) -> Any:
    blocks = [np.atleast_2d(part) for part in parts]
    return np.block([
        [b if i == j else np.zeros((b.shape[0], c.shape[1])) for j, c in enumerate(blocks)]
        for i, b in enumerate(blocks)
    ])


def _sum_to_size(x: Any, *sizes: Any) -> Any:
    shape = shape_of(sizes)
    lead = np.ndim(x) - len(shape)
    out = np.sum(x, axis=tuple(range(lead)))
    return np.sum(out, axis=tuple(k for k, n in enumerate(shape) if n == 1 and np.shape(out)[k] != 1), keepdims=True)


def _meshgrid(*arrays: Any, indexing: str = "ij") -> Any:
    listed = arrays[0] if len(arrays) == 1 and isinstance(arrays[0], list | tuple) else arrays
    return np.meshgrid(*listed, indexing=indexing)


def _cartesian(*arrays: Any) -> Any:
    return (
        arrays[0] + 0
        if len(arrays) == 1
        else np.stack([g.ravel() for g in np.meshgrid(*arrays, indexing="ij")], axis=-1)
    )


def _combinations(x: Any, r: int = 2, with_replacement: bool = False) -> Any:
    drawn = (combinations_with_replacement if with_replacement else combinations)(range(len(x)), r)
    return x[np.array(list(drawn), dtype=int).reshape(-1, r)]


def _squeeze(x: Any, dim: Any = None) -> Any:
    if dim is None:
        return np.squeeze(x)
    named = dim if isinstance(dim, list | tuple) else (dim,)
    return np.squeeze(x, axis=tuple(d for d in named if np.ndim(x) and np.shape(x)[d] == 1))


def _repeat(x: Any, *sizes: Any) -> Any:
    return np.tile(x, shape_of(sizes))


def _pad(x: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    if min(pad) < 0:
        raise Untranslated("np.pad does not crop")
    widths = [(0, 0)] * (np.ndim(x) - len(pad) // 2) + [(pad[k], pad[k + 1]) for k in range(len(pad) - 2, -1, -2)]
    options = {"constant_values": 0 if value is None else value} if mode == "constant" else {}
    return np.pad(x, widths, mode={"replicate": "edge", "circular": "wrap"}.get(mode, mode), **options)


def _unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    if np.ndim(x) == 0:
        return np.reshape(x, (1,))[:size]
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=dimension)
    return windows[along(dimension % np.ndim(x), slice(None, None, step))]


def _roll(x: Any, shifts: Any, dims: Any = None) -> Any:
    return np.roll(x, shifts, axis=axes(dims))


def _as_strided(x: Any, size: Any, stride: Any, storage_offset: int = 0) -> Any:
    places = np.full(tuple(size), storage_offset)
    for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
        places += (np.arange(n) * step).reshape((-1,) + (1,) * (len(size) - axis - 1))
    return np.take(x, places)


def _pixel_shuffle(x: Any, upscale_factor: int) -> Any:
    r = upscale_factor
    *lead, channels, height, width = np.shape(x)
    cells = np.reshape(x, (*lead, channels // r**2, r, r, height, width))
    n = len(lead)
    return np.reshape(
        np.transpose(cells, (*range(n), n, n + 3, n + 1, n + 4, n + 2)),
        (*lead, channels // r**2, height * r, width * r),
    )


def _channel_shuffle(x: Any, groups: int) -> Any:
    return np.swapaxes(x.reshape(x.shape[0], groups, -1, *x.shape[2:]), 1, 2).reshape(x.shape)


SHAPING: dict[str, Twin] = {
    **same("ravel fliplr flipud broadcast_to hsplit vsplit dsplit"),
    "diagflat": lambda x, offset=0: np.diagflat(x, offset),
    "atleast_1d": lambda *xs: np.atleast_1d(*(xs[0] if isinstance(xs[0], list) else xs)),
    "atleast_2d": lambda *xs: np.atleast_2d(*(xs[0] if isinstance(xs[0], list) else xs)),
    "atleast_3d": lambda *xs: np.atleast_3d(*(xs[0] if isinstance(xs[0], list) else xs)),
    "broadcast_tensors": np.broadcast_arrays,
    "reshape": lambda x, *sizes: np.reshape(x, shape_of(sizes)),
    "view": lambda x, *sizes: np.reshape(x, shape_of(sizes)),
    "view_copy": lambda x, *sizes: np.reshape(x, shape_of(sizes)),
    "reshape_as": lambda x, other: x.reshape(np.shape(other)),
    "view_as": lambda x, other: x.reshape(np.shape(other)),
    "expand": _expand,
    "expand_copy": _expand,
    "expand_as": lambda x, other: np.broadcast_to(x, np.shape(other)),
    "flatten": _flatten,
    "unflatten": _unflatten,
    "permute": lambda x, *dims: np.transpose(x, shape_of(dims)),
    "permute_copy": lambda x, *dims: np.transpose(x, shape_of(dims)),
    "transpose": lambda x, a, b: np.swapaxes(x, a, b) if np.ndim(x) else x + 0,
    "transpose_copy": lambda x, a, b: np.swapaxes(x, a, b) if np.ndim(x) else x + 0,
    "t": lambda x: x.T,
    "t_copy": lambda x: x.T,
    "T": lambda x: x.T,
    "H": lambda x: np.conj(x).T,
    "mT": np.matrix_transpose,
    "mH": lambda x: np.conj(np.swapaxes(x, -1, -2)),
    "movedim": np.moveaxis,
    "squeeze": _squeeze,
    "squeeze_copy": _squeeze,
    "unsqueeze": np.expand_dims,
    "unsqueeze_copy": np.expand_dims,
    "flip": lambda x, dims: np.flip(x, axis=tuple(dims)),
    "rot90": lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims),
    "roll": _roll,
    "tile": np.tile,
    "repeat": _repeat,
    "repeat_interleave": lambda x, repeats, dim=None, *, output_size=None: np.repeat(x, repeats, axis=dim),
    "cat": lambda xs, dim=0: np.concatenate([x for x in xs if np.shape(x) != (0,)] or xs, axis=dim),
    "stack": lambda xs, dim=0: np.stack(xs, axis=dim),
    "hstack": np.hstack,
    "vstack": np.vstack,
    "dstack": np.dstack,
    "column_stack": np.column_stack,
    "split": _split,
    "split_with_sizes": _split,
    "split_with_sizes_copy": _split,
    "unsafe_split": _split,
    "chunk": _chunk,
    "unsafe_chunk": _chunk,
    "tensor_split": _tensor_split,
    "unbind": lambda x, dim=0: list(np.moveaxis(x, dim, 0)),
    "unbind_copy": lambda x, dim=0: (
        list(np.unstack(x, axis=dim)) if hasattr(np, "unstack") else list(np.moveaxis(x, dim, 0))
    ),
    "diag": lambda x, diagonal=0: np.diag(x, diagonal),
    "diagonal": lambda x, offset=0, dim1=0, dim2=1: np.diagonal(x, offset, dim1, dim2),
    "diagonal_copy": lambda x, offset=0, dim1=0, dim2=1: np.diagonal(x, offset, dim1, dim2),
    "diag_embed": _diag_embed,
    "block_diag": _block_diag,
    "tril": lambda x, diagonal=0: np.tril(x, diagonal),
    "triu": lambda x, diagonal=0: np.triu(x, diagonal),
    "trace": np.trace,
    "sum_to_size": _sum_to_size,
    "meshgrid": _meshgrid,
    "cartesian_prod": _cartesian,
    "combinations": _combinations,
    "nn.functional.pad": _pad,
    "constant_pad_nd": lambda x, pad, value=0: _pad(x, pad, "constant", value),
    "unfold": _unfold,
    "unfold_copy": _unfold,
    "as_strided": _as_strided,
    "nn.functional.pixel_shuffle": _pixel_shuffle,
    "nn.functional.channel_shuffle": _channel_shuffle,
}
