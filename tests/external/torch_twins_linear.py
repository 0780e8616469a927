"""The rest of the table of torch_twins: what reads and writes by index, sorts, multiplies, factorises and
transforms."""

from typing import Any

import numpy as np
from tests.external.torch_twins import Twin, Untranslated, along, axes, same

# ------------------------------------------------------------------------------------------------- indexing and sorting


def _grid(index: Any, dim: int) -> tuple[Any, ...]:
    """The open grid over the index's own shape with the index itself at ``dim``: how gather and scatter address."""
    if np.ndim(index) == 0:
        return (index,)
    grid: list[Any] = list(np.ogrid[tuple(slice(n) for n in np.shape(index))])
    grid[dim] = index
    return tuple(grid)


def _gather(x: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    if np.size(index) == 0:
        return np.zeros(np.shape(index)) + np.sum(x[..., :0] if np.ndim(x) else 0 * x)
    index = index.astype(np.intp)
    return np.take(x, index) if np.ndim(x) == 0 else x[_grid(index, dim)]


def _scatter(x: Any, dim: int, index: Any, src: Any, *, reduce: str | None = None) -> Any:
    out = x.copy() if np.ndim(x) else np.reshape(x, (1,)).copy()
    index, src = np.atleast_1d(index), src if np.ndim(src) == 0 else src[tuple(slice(n) for n in np.shape(index))]
    if reduce is None:
        out[_grid(index, dim)] = src
    else:
        {"add": np.add, "sum": np.add, "multiply": np.multiply, "prod": np.multiply}[reduce].at(
            out, _grid(index, dim), src
        )
    return out.reshape(np.shape(x))


def _scatter_reduce(x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    if reduce not in {"sum", "prod"} or not include_self:
        raise Untranslated(f"scatter_reduce {reduce}, include_self={include_self}: not one call of ufunc.at")
    return _scatter(x, dim, index, src, reduce=reduce)


def _index_add(x: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Any:
    out = np.reshape(x, (1,)).copy() if np.ndim(x) == 0 else x.copy()
    np.add.at(out, along(dim if np.ndim(x) else 0, np.atleast_1d(index)), alpha * source)
    return out.reshape(np.shape(x))


def _index_copy(x: Any, dim: int, index: Any, source: Any) -> Any:
    out = np.reshape(x, (1,)).copy() if np.ndim(x) == 0 else x.copy()
    out[along(dim if np.ndim(x) else 0, np.atleast_1d(index))] = source
    return out.reshape(np.shape(x))


def _index_select(x: Any, dim: int, index: Any) -> Any:
    return (
        np.take(x, np.atleast_1d(index), axis=dim)
        if np.ndim(x)
        else np.reshape(x, (1,))[np.atleast_1d(index)].reshape(())
    )


def _index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    out = x.copy()
    if accumulate:
        np.add.at(out, tuple(indices), values)
    else:
        out[tuple(indices)] = values
    return out


def _put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    out = np.reshape(x, (-1,)).copy()
    places = np.ravel(index)
    if accumulate:
        np.add.at(out, places, np.ravel(source))
    else:
        np.put(out, places, np.ravel(source))
    return out.reshape(np.shape(x))


def _masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    shape = np.broadcast_shapes(np.shape(x), np.shape(mask))
    out, mask = np.broadcast_to(x, shape).copy(), np.broadcast_to(mask, shape)
    out[mask] = np.ravel(source)[: np.count_nonzero(mask)]
    return out


def _masked_select(x: Any, mask: Any) -> Any:
    shape = np.broadcast_shapes(np.shape(x), np.shape(mask))
    return np.broadcast_to(x, shape)[np.broadcast_to(mask, shape)]


def _slice(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return x[along(dim, slice(start, end, step))]


def _slice_scatter(x: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    out = x.copy()
    out[along(dim, slice(start, end, step))] = src
    return out


def _select_scatter(x: Any, src: Any, dim: int, index: int) -> Any:
    out = x.copy()
    out[along(dim, index)] = src
    return out


def _diagonal_scatter(x: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    out = np.copy(x)
    moved = np.moveaxis(out, (dim1, dim2), (-2, -1))
    n = np.shape(src)[-1]
    rows = np.arange(n) + max(-offset, 0)
    moved[..., rows, rows + offset] = src
    return out


def _narrow(x: Any, dim: int, start: Any, length: int) -> Any:
    start = int(start)
    first = start + np.shape(x)[dim] if start < 0 else start
    return x[along(dim, slice(first, first + length))]


def _sort(x: Any, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Any:
    values, places = (
        (np.sort(x, axis=dim), np.argsort(x, axis=dim, stable=True)) if np.ndim(x) else (x + 0, np.zeros((), int))
    )
    if not descending or not np.ndim(x):
        return values, places
    down = -x if np.size(x) else x
    return np.flip(values, axis=dim), np.argsort(down, axis=dim, stable=True)


def _topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if np.ndim(x) == 0:
        return x + 0
    top = np.flip(np.sort(x, axis=dim), axis=dim) if largest else np.sort(x, axis=dim)
    return top[along(dim, slice(k))]


def _kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if np.ndim(x) == 0:
        return x + 0
    key = slice(k - 1, k) if keepdim else k - 1
    return np.partition(x, k - 1, axis=dim)[along(dim, key)]


def _diff(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    given = {k: v for k, v in {"prepend": prepend, "append": append}.items() if v is not None}
    return np.diff(x, n=n, axis=dim, **given)


def _gradient(x: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Any:
    spacings = () if spacing is None else tuple(spacing) if isinstance(spacing, list | tuple) else (spacing,)
    return np.gradient(x, *spacings, axis=axes(dim), edge_order=edge_order)


def _histogram(x: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    return np.histogram(x, bins, range, density, weight)


def _trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    return np.trapezoid(y, x=x, dx=dx, axis=dim)


def _cumulative_trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    if x is not None and np.ndim(x) == 1 and np.ndim(y) > 1:
        x = np.reshape(x, (-1,) + (1,) * (-dim - 1 if dim < 0 else np.ndim(y) - dim - 1))
    widths = dx if x is None else np.diff(x, axis=dim if np.ndim(x) == np.ndim(y) else 0)
    means = (y[along(dim, slice(1, None))] + y[along(dim, slice(None, -1))]) / 2
    return np.cumsum(widths * means, axis=dim)


INDEXING: dict[str, Twin] = {
    "__getitem__": lambda x, key: x[
        tuple(key) if isinstance(key, list) and any(isinstance(k, slice) for k in key) else key
    ],
    "gather": _gather,
    "scatter": _scatter,
    "scatter_add": lambda x, dim, index, src: _scatter(x, dim, index, src, reduce="add"),
    "scatter_reduce": _scatter_reduce,
    "take_along_dim": lambda x, index, dim=None: np.take_along_axis(x, index, axis=dim),
    "take": np.take,
    "put": _put,
    "index_select": _index_select,
    "index_add": _index_add,
    "index_copy": _index_copy,
    "index_fill": _index_copy,
    "index_put": _index_put,
    "masked_scatter": _masked_scatter,
    "masked_select": _masked_select,
    "select": lambda x, dim, index: x[along(dim, index)],
    "slice": _slice,
    "narrow": _narrow,
    "narrow_copy": _narrow,
    "slice_scatter": _slice_scatter,
    "select_scatter": _select_scatter,
    "diagonal_scatter": _diagonal_scatter,
    "sort": _sort,
    "msort": lambda x: np.sort(x, axis=0),
    "argsort": lambda x, dim=-1, descending=False, stable=False: _sort(x, dim, descending)[1],
    "topk": _topk,
    "kthvalue": _kthvalue,
    "argwhere": np.argwhere,
    "isin": np.isin,
    "bucketize": lambda x, boundaries, *, out_int32=False, right=False: np.searchsorted(
        boundaries, x, "right" if right else "left"
    ),
    "histogram": _histogram,
    "diff": _diff,
    "gradient": _gradient,
    "trapezoid": _trapezoid,
    "trapz": _trapezoid,
    "cumulative_trapezoid": _cumulative_trapezoid,
}

# ------------------------------------------------------------------------------------------------------- linear algebra


def transposed(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


def _addmm(x: Any, a: Any, b: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    return beta * x + alpha * (a @ b)


def _vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return np.linalg.vector_norm(x if dtype is None else x.astype(dtype), ord=ord, axis=axes(dim), keepdims=keepdim)


def _matrix_norm(x: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> Any:
    return np.linalg.norm(x if dtype is None else x.astype(dtype), ord=ord, axis=tuple(dim), keepdims=keepdim)


def _norm(x: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    x = x if dtype is None else x.astype(dtype)
    return np.linalg.norm(x, ord=ord, axis=axes(dim), keepdims=keepdim)


def _old_norm(x: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if p == "nuc":
        return np.linalg.norm(x, "nuc", axis=axes(dim) or (-2, -1), keepdims=keepdim)
    return _vector_norm(x, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


def _pinv(x: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    if atol is not None:
        raise Untranslated("np.linalg.pinv has no absolute tolerance")
    return np.linalg.pinv(x, hermitian=hermitian) if rtol is None else np.linalg.pinv(x, rtol, hermitian=hermitian)


def _matrix_rank(x: Any, tol: Any = None, *, hermitian: bool = False, atol: Any = None, rtol: Any = None) -> Any:
    if atol is not None:
        raise Untranslated("with an absolute and a relative tolerance torch takes the larger")
    return np.linalg.matrix_rank(x, tol, hermitian, rtol=rtol)


def _lstsq(a: Any, b: Any, *, driver: str | None = None) -> Any:
    if np.ndim(a) != 2:
        raise Untranslated("np.linalg.lstsq takes one matrix")
    return np.linalg.lstsq(a, b, rcond=None)[0]


def _solve(a: Any, b: Any, *, left: bool = True) -> Any:
    if not left:
        return transposed(np.linalg.solve(transposed(a), transposed(b)))
    vector = np.ndim(b) == 1 or (np.ndim(b) == np.ndim(a) - 1 and np.shape(b) == np.shape(a)[:-1])
    return np.linalg.solve(a, b[..., None])[..., 0] if vector else np.linalg.solve(a, b)


def _solve_triangular(a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    half = np.triu(a, 1 if unitriangular else 0) if upper else np.tril(a, -1 if unitriangular else 0)
    return _solve(half + np.eye(np.shape(a)[-1]) if unitriangular else half, b, left=left)


def _triangular_solve(b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    if transpose:
        return _solve_triangular(transposed(a), b, upper=not upper, unitriangular=unitriangular)
    return _solve_triangular(a, b, upper=upper, unitriangular=unitriangular)


def _cholesky(x: Any, upper: bool = False) -> Any:
    return np.linalg.cholesky(x, upper=upper)


def _cholesky_solve(b: Any, factor: Any, upper: bool = False) -> Any:
    low = np.conj(transposed(np.triu(factor))) if upper else np.tril(factor)
    return np.linalg.solve(np.conj(transposed(low)), np.linalg.solve(low, b))


def _svd(x: Any, full_matrices: bool = True, **_: Any) -> Any:
    u, s, vh = np.linalg.svd(x, full_matrices=full_matrices)
    k = s.shape[-1]
    return np.abs(u[..., :k]), s, np.abs(vh[..., :k, :])


def _old_svd(x: Any, some: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        raise Untranslated("torch hands back zeros for U and V")
    u, s, v = _svd(x, full_matrices=not some)
    return u, s, transposed(v)


def _eigh(x: Any, UPLO: str = "L") -> Any:
    w, v = np.linalg.eigh(x, UPLO)
    return w, np.abs(v)


def _eig(x: Any) -> Any:
    w, v = np.linalg.eig(x)
    return w + 0j, np.abs(v)


def _cross(a: Any, b: Any, dim: int | None = None) -> Any:
    return np.cross(a, b, axis=next(k for k, n in enumerate(np.shape(a)) if n == 3) if dim is None else dim)


def _einsum(operands: Any, equation: str) -> Any:
    return np.einsum(equation, *operands)


def _vander(x: Any, *, N: int | None = None) -> Any:
    if np.ndim(x) != 1:
        raise Untranslated("np.vander takes one vector")
    return np.vander(x, N, increasing=True)


def _logdet(x: Any) -> Any:
    sign, log = np.linalg.slogdet(x)
    return log + np.log(sign) if np.iscomplexobj(sign) else np.where(sign < 0, np.nan, log)


def _cdist(a: Any, b: Any, p: float = 2.0, compute_mode: str = "") -> Any:
    return np.linalg.norm(a[..., :, None, :] - b[..., None, :, :], ord=p, axis=-1)


def _cosine_similarity(a: Any, b: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    a, b = np.broadcast_arrays(a, b)
    norms = [np.maximum(np.linalg.norm(x, axis=dim, keepdims=True), eps) for x in (a, b)]
    return np.sum(a / norms[0] * (b / norms[1]), axis=dim)


def _pairwise_distance(a: Any, b: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    return np.linalg.norm(a - b + eps, p, axis=-1, keepdims=keepdim)


def _bilinear(a: Any, b: Any, weight: Any, bias: Any = None) -> Any:
    out = np.einsum("...i,oij,...j->...o", a, weight, b)
    return out if bias is None else out + bias


def _rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    over = tuple(range(-len(normalized_shape), 0))
    eps = np.finfo(x.dtype).eps if eps is None else eps
    out = x / np.sqrt(np.mean(np.square(x), axis=over, keepdims=True) + eps)
    return out if weight is None else out * weight


def _glu(x: Any, dim: int = -1) -> Any:
    left, right = np.split(x, 2, axis=dim)
    return left / (1 + np.exp(-right))


def _loss(of: Twin) -> Twin:
    """A loss of two arrays under torch's three ways of joining the elements."""
    join: dict[str, Twin] = {"mean": np.mean, "sum": np.sum, "none": lambda x: x}
    return lambda x, y, reduction="mean", **options: join[reduction](of(x - y, **options))


def _huber(d: Any, delta: float = 1.0) -> Any:
    return np.where(np.abs(d) < delta, d**2 / 2, delta * (np.abs(d) - delta / 2))


def _conv1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    stride, dilation = (v[0] if isinstance(v, tuple | list) else v for v in (stride, dilation))
    if groups != 1 or np.ndim(x) != 3 or isinstance(padding, str):
        raise Untranslated("groups, unbatched signals and named paddings: not one np.einsum of windows")
    width = padding[0] if isinstance(padding, tuple | list) else padding
    padded = np.pad(x, ((0, 0), (0, 0), (width, width)))
    reach = dilation * (np.shape(weight)[-1] - 1) + 1
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=-1)[:, :, ::stride, ::dilation]
    out = np.einsum("nclk,ock->nol", windows, weight)
    return out if bias is None else out + bias[:, None]


def _layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    over = tuple(range(-len(normalized_shape), 0))
    out = (x - np.mean(x, axis=over, keepdims=True)) / np.sqrt(np.var(x, axis=over, keepdims=True) + eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


LINEAR: dict[str, Twin] = {
    **same("dot vdot inner outer kron matmul"),
    "mm": np.matmul,
    "mv": np.matmul,
    "bmm": np.matmul,
    "__rmatmul__": lambda x, y: y @ x,
    "addmm": _addmm,
    "addmv": _addmm,
    "baddbmm": _addmm,
    "addbmm": lambda x, a, b, *, beta=1, alpha=1: beta * x + alpha * np.sum(a @ b, axis=0),
    "addr": lambda x, a, b, *, beta=1, alpha=1: beta * x + alpha * np.outer(a, b),
    "tensordot": lambda a, b, dims=2: np.tensordot(a, b, axes=dims),
    "einsum": _einsum,
    "cross": _cross,
    "linalg.cross": lambda a, b, *, dim=-1: np.linalg.cross(*np.broadcast_arrays(a, b), axis=dim),
    "linalg.vecdot": lambda a, b, *, dim=-1: np.linalg.vecdot(a, b, axis=dim),
    "linalg.multi_dot": np.linalg.multi_dot,
    "linalg.matrix_power": np.linalg.matrix_power,
    "linalg.norm": _norm,
    "linalg.vector_norm": _vector_norm,
    "linalg.matrix_norm": _matrix_norm,
    "norm": _old_norm,
    "dist": lambda a, b, p=2: np.linalg.norm(np.ravel(a - b), ord=p),
    "cdist": _cdist,
    "linalg.cond": lambda x, p=None: np.linalg.cond(x, p),
    "linalg.det": np.linalg.det,
    "linalg.slogdet": np.linalg.slogdet,
    "logdet": _logdet,
    "linalg.inv": np.linalg.inv,
    "linalg.inv_ex": np.linalg.inv,
    "linalg.pinv": _pinv,
    "linalg.pinv:singular": lambda a, b: np.linalg.pinv(a @ transposed(b)),
    "pinverse": lambda x, rcond=1e-15: np.linalg.pinv(x, rcond),
    "linalg.solve": _solve,
    "linalg.solve_ex": _solve,
    "linalg.solve_triangular": _solve_triangular,
    "triangular_solve": _triangular_solve,
    "linalg.tensorsolve": lambda a, b, dims=None: np.linalg.tensorsolve(a, b, axes=dims),
    "linalg.tensorinv": lambda a, ind=2: np.linalg.tensorinv(a, ind),
    "linalg.lstsq": _lstsq,
    "linalg.cholesky": _cholesky,
    "linalg.cholesky_ex": _cholesky,
    "cholesky": _cholesky,
    "cholesky_solve": _cholesky_solve,
    "linalg.svd": _svd,
    "svd": _old_svd,
    "linalg.svdvals": np.linalg.svdvals,
    "linalg.eigh": _eigh,
    "linalg.eigvalsh": lambda x, UPLO="L": np.linalg.eigvalsh(x, UPLO),
    "linalg.eig": _eig,
    "linalg.eigvals": lambda x: np.linalg.eigvals(x) + 0j,
    "linalg.qr": lambda x, mode="reduced": tuple(np.linalg.qr(x, mode)),
    "qr": lambda x, some=True: tuple(np.linalg.qr(x, "reduced" if some else "complete")),
    "linalg.matrix_rank": _matrix_rank,
    "linalg.pinv:hermitian": lambda x, *, hermitian: np.linalg.pinv(x + np.conj(transposed(x)), hermitian=hermitian),
    "linalg.diagonal": lambda x, *, offset=0, dim1=-2, dim2=-1: np.diagonal(x, offset, dim1, dim2),
    "linalg.vander": _vander,
    "nn.functional.linear": lambda x, weight, bias=None: x @ weight.T if bias is None else x @ weight.T + bias,
    "nn.functional.bilinear": _bilinear,
    "nn.functional.mse_loss": _loss(np.square),
    "nn.functional.l1_loss": _loss(np.abs),
    "nn.functional.smooth_l1_loss": _loss(lambda d, beta=1.0: _huber(d, beta) / beta if beta else np.abs(d)),
    "nn.functional.huber_loss": _loss(_huber),
    "nn.functional.cosine_similarity": _cosine_similarity,
    "nn.functional.normalize": lambda x, p=2.0, dim=1, eps=1e-12: (
        x / np.maximum(np.linalg.norm(x, p, axis=dim, keepdims=True), eps)
    ),
    "nn.functional.pairwise_distance": _pairwise_distance,
    "nn.functional.layer_norm": _layer_norm,
    "nn.functional.rms_norm": _rms_norm,
    "nn.functional.glu": _glu,
    "nn.functional.conv1d": _conv1d,
}

# -------------------------------------------------------------------------------------------------------------- Fourier

OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _one_axis(name: str) -> Twin:
    return lambda x, n=None, dim=-1, norm=None: getattr(np.fft, name)(x, n=n, axis=dim, norm=norm)


def _several_axes(name: str, default: Any = None) -> Twin:
    """One of fft2, rfftn ...; those of Hermitian signals, which NumPy has not, by the transform with the signs
    turned."""
    hermitian = {"hfft": "irfftn", "ihff": "rfftn"}.get(name[:4])

    def twin(x: Any, s: Any = None, dim: Any = default, norm: str | None = None) -> Any:
        over = (dim,) if isinstance(dim, int) else dim
        if over is None:
            over = tuple(range(-(np.ndim(x) if s is None else len(s)), 0))
        if hermitian is None:
            return getattr(np.fft, name)(x, s=s, axes=over, norm=norm)
        turned = getattr(np.fft, hermitian)(np.conj(x) if name[0] == "h" else x, s=s, axes=over, norm=OPPOSITE[norm])
        return turned if name[0] == "h" else np.conj(turned)

    return twin


FOURIER: dict[str, Twin] = {
    **{"fft." + name: _one_axis(name) for name in "fft ifft rfft irfft hfft ihfft".split()},
    **{"fft." + name: _several_axes(name, (-2, -1)) for name in "fft2 ifft2 rfft2 irfft2 hfft2 ihfft2".split()},
    **{"fft." + name: _several_axes(name) for name in "fftn ifftn rfftn irfftn hfftn ihfftn".split()},
    "fft.fftshift": lambda x, dim=None: np.fft.fftshift(x, axes=axes(dim)),
    "fft.ifftshift": lambda x, dim=None: np.fft.ifftshift(x, axes=axes(dim)),
}
