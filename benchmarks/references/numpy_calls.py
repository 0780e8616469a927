"""One call of every differentiable NumPy function, at 1e5 elements: vectors of 100 000, planes of 250 by 400, matrices
of 300 by 300.

``CALLS`` maps a name, as in ``docs/coverage.md`` with its module before it, to the function of the operands and the
operands. A name with a remark in brackets is a second call of the same function.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

Call = tuple[Callable[..., Any], tuple[Any, ...]]

N, ROWS, COLUMNS, SIDE = 100_000, 250, 400, 300
_rng = np.random.default_rng(1)
X, Y = _rng.normal(size=N), _rng.normal(size=N)
POSITIVE, BELOW_ONE = np.abs(X) + 0.1, np.tanh(X) * 0.99
PLANE, COMPLEX = X.reshape(ROWS, COLUMNS), X[: N // 2] + 1j * X[N // 2 :]
NANS = np.where(_rng.random(N) < 0.01, np.nan, X)
SQUARE = _rng.normal(size=(SIDE, SIDE)) / 17 + 3 * np.eye(SIDE)
OTHER = _rng.normal(size=(SIDE, SIDE)) / 17
SPD = SQUARE @ SQUARE.T
STACK = _rng.normal(size=(11111, 3, 3))
PLACES, MASK, ORDER = _rng.integers(0, N, N), _rng.random(N) < 0.5, np.argsort(PLANE, 1)
UPWARDS, SIGNAL = np.sort(POSITIVE), _rng.normal(size=300)
CUBE = X[:99_330].reshape(43, 42, 55)


def _unary(names: str, operand: Any, module: Any = np, **options: Any) -> dict[str, Call]:
    return {
        f"{module.__name__}.{name}": (partial(getattr(module, name), **options), (operand,)) for name in names.split()
    }


def _joined(name: str) -> Callable[..., Any]:
    """A function of a sequence of arrays as one of two."""
    return lambda x, y: getattr(np, name)((x, y))


def _by_like(name: str) -> Callable[..., Any]:
    """A function that makes arrays, asked by ``like=``."""
    return lambda x: getattr(np, name)(x, like=x)


def _in_five(name: str) -> Callable[..., Any]:
    """A function that splits an array."""
    return lambda x: getattr(np, name)(x, 5)


def _binary(names: str, x: Any, y: Any, module: Any = np) -> dict[str, Call]:
    return {f"{module.__name__}.{name}": (getattr(module, name), (x, y)) for name in names.split()}


ELEMENTWISE: dict[str, Call] = {
    **_unary("absolute cbrt cos cosh deg2rad degrees exp exp2 expm1 fabs negative positive rad2deg radians reciprocal "
             "sign", X),
    **_unary("sin sinh square tan tanh arcsinh arctan frexp modf nan_to_num sinc i0 unwrap real_if_close", X),
    **_unary("log log10 log1p log2 sqrt", POSITIVE), **_unary("arccos arcsin arctanh", BELOW_ONE),
    **_unary("arccosh", POSITIVE + 1), **_unary("conjugate angle real imag", COMPLEX),
    **_binary("add subtract multiply divide maximum minimum fmax fmin hypot logaddexp logaddexp2 arctan2 copysign "
              "heaviside", X, Y),
    **_binary("power float_power remainder fmod divmod", POSITIVE, np.abs(Y) + 0.5),
    "numpy.ldexp": (lambda x: np.ldexp(x, 3), (X,)), "numpy.power (2)": (lambda x: x**2, (X,)),
    "numpy.power (3)": (lambda x: x**3, (X,)),
    "numpy.power (0.5)": (lambda x: x**0.5, (POSITIVE,)), "numpy.clip": (lambda x: np.clip(x, -0.5, 0.5), (X,)),
    "numpy.where": (lambda x, y: np.where(MASK, x, y), (X, Y)),
    "numpy.select": (lambda x, y: np.select([MASK], [x], y), (X, Y)),
    "numpy.choose": (lambda x, y: np.choose(MASK.astype(int), (x, y)), (X, Y)),
    "numpy.piecewise": (lambda x: np.piecewise(x, [x > 0], [lambda y: y * y, lambda y: y]), (X,)),
    **_unary("arccos arcsin arctanh log log10 log2 sqrt", BELOW_ONE, np.emath),
    "numpy.lib.scimath.power": (np.emath.power, (POSITIVE, Y)),
    "numpy.lib.scimath.logn": (np.emath.logn, (POSITIVE + 1, POSITIVE + 2)),
}  # fmt: skip

REDUCTIONS: dict[str, Call] = {
    **_unary("sum mean var std max min amax amin ptp cumsum cumulative_sum average median", X),
    **_unary("prod nanprod cumprod cumulative_prod nancumprod", 1 + X / 1000),
    "numpy.cumprod (with a 0)": (np.cumprod, (X * (np.arange(N) != 9),)),
    **_unary("nansum nanmean nanvar nanstd nanmax nanmin nancumsum nanmedian", NANS),
    **{f"{k} (axis 1)": v for k, v in _unary("sum prod mean var std max min ptp cumsum median", PLANE, axis=1).items()},
    **{f"{k} (axis 0)": v for k, v in _unary("sum prod mean var std max min ptp cumsum median", PLANE, axis=0).items()},
    "numpy.prod (with a 0)": (np.prod, (X * (np.arange(N) != 9),)),
    "numpy.quantile": (lambda x: np.quantile(x, 0.3), (X,)),
    "numpy.percentile": (lambda x: np.percentile(x, [20, 70]), (X,)),
    "numpy.nanquantile": (lambda x: np.nanquantile(x, 0.3), (NANS,)),
    "numpy.nanpercentile": (lambda x: np.nanpercentile(x, 30), (NANS,)),
    "numpy.average (weights)": (lambda x, y: np.average(x, weights=y), (X, POSITIVE)),
    "numpy.logaddexp.reduce": (np.logaddexp.reduce, (X,)),
    "numpy.cov": (np.cov, (X.reshape(10, -1),)), "numpy.corrcoef": (np.corrcoef, (X.reshape(10, -1),)),
    "numpy.bincount": (lambda w: np.bincount(PLACES, w), (X,)),
    "numpy.histogram": (lambda w: np.histogram(Y, 50, weights=w)[0], (X,)),
    "numpy.histogram2d": (lambda w: np.histogram2d(Y, POSITIVE, 9, weights=w)[0], (X,)),
    "numpy.histogramdd": (lambda w: np.histogramdd(np.stack([Y, POSITIVE], 1), 9, weights=w)[0], (X,)),
    "numpy.histogram_bin_edges": (lambda x: np.histogram_bin_edges(x, 50), (X,)),
    "numpy.hypot.reduce": (np.hypot.reduce, (X,)), "numpy.maximum.accumulate": (np.maximum.accumulate, (X,)),
    "numpy.add.reduceat": (lambda x: np.add.reduceat(x, np.arange(0, N, 10)), (X,)),
}  # fmt: skip

SAMPLED: dict[str, Call] = {
    **_unary("diff ediff1d gradient trapezoid", X), "numpy.trapezoid (x)": (np.trapezoid, (X, UPWARDS)),
    "numpy.interp": (lambda x, y: np.interp(x, UPWARDS[:1000] * 9, y), (X, Y[:1000])),
    **_binary("convolve correlate", X, SIGNAL),
    "numpy.linspace": (lambda a, b: np.linspace(a, b, N), (0.1, 0.9)),
    "numpy.geomspace": (lambda a, b: np.geomspace(a, b, N), (0.1, 0.9)),
    "numpy.logspace": (lambda a, b: np.logspace(a, b, N), (0.1, 0.9)),
    "numpy.meshgrid": (np.meshgrid, (X[:250], Y[:400])),
    "numpy.vander": (lambda x: np.vander(x, 10), (X[:10_000],)), "numpy.polyval": (np.polyval, (X[:10], Y)),
    "numpy.poly": (np.poly, (X[:300],)), "numpy.roots": (np.roots, (X[:60],)), **_binary("polyadd polysub", X, Y),
    "numpy.polymul": (np.polymul, (X, SIGNAL)), "numpy.polydiv": (np.polydiv, (X[:2000], np.r_[1, SIGNAL[:50] / 99])),
    **_unary("polyder polyint", X), "numpy.polyfit": (lambda y: np.polyfit(BELOW_ONE, y, 3), (X,)),
    "numpy.polynomial.polynomial.polyval2d": (np.polynomial.polynomial.polyval2d,
        (X[:10_000], Y[:10_000], PLANE[:5, :5])),
    "numpy.polynomial.polynomial.polygrid2d": (np.polynomial.polynomial.polygrid2d, (X[:250], Y[:400], PLANE[:5, :5])),
    "numpy.apply_along_axis": (lambda x: np.apply_along_axis(np.cumsum, 1, x), (PLANE,)),
    "numpy.apply_over_axes": (lambda x: np.apply_over_axes(np.sum, x, [0, 1]), (PLANE,)),
}  # fmt: skip

SHAPES: dict[str, Call] = {
    **_unary("copy ravel squeeze transpose flip atleast_1d atleast_2d", X),
    **_unary("atleast_3d matrix_transpose fliplr flipud rot90 diag diagonal tril triu trace unstack", PLANE),
    "numpy.diag (of a line)": (np.diag, (X[:SIDE],)), "numpy.diagflat": (np.diagflat, (X[:SIDE],)),
    **{
        f"numpy.{n}": (_by_like(n), (PLANE,))
        for n in ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require")
    },
    "numpy.reshape": (lambda x: x.reshape(100, -1), (X,)), "numpy.ravel (F)": (lambda x: np.ravel(x, "F"), (PLANE,)),
    "numpy.astype": (lambda x: x.astype("f4"), (X,)), "numpy.swapaxes": (lambda x: np.swapaxes(x, 0, 1), (PLANE,)),
    "numpy.moveaxis": (lambda x: np.moveaxis(x, 0, 1), (PLANE,)),
    "numpy.rollaxis": (lambda x: np.rollaxis(x, 1), (PLANE,)),
    "numpy.expand_dims": (lambda x: np.expand_dims(x, 0), (X,)),
    "numpy.broadcast_to": (lambda x: np.broadcast_to(x, (250, 400)), (X[:400],)),
    "numpy.broadcast_arrays": (np.broadcast_arrays, (X[:400], Y[:250, None])),
    "numpy.roll": (lambda x: np.roll(x, 7), (X,)),
    "numpy.tile": (lambda x: np.tile(x, 10), (X[:10_000],)),
    "numpy.repeat": (lambda x: np.repeat(x, 10), (X[:10_000],)),
    "numpy.concatenate": (lambda x, y: np.concatenate((x, y)), (X, Y)),
    "numpy.stack": (lambda x, y: np.stack((x, y)), (X, Y)),
    **{f"numpy.{n}": (_joined(n), (X, Y)) for n in ("vstack", "hstack", "dstack", "column_stack")},
    "numpy.block": (lambda x: np.block([[x, x], [x, x]]), (PLANE,)), "numpy.append": (np.append, (X, Y)),
    **{f"numpy.{n}": (_in_five(n), (CUBE[:, :40],)) for n in ("array_split", "hsplit", "dsplit")},
    "numpy.split": (lambda x: np.split(x, 5), (X,)), "numpy.vsplit": (lambda x: np.vsplit(x, 5), (PLANE,)),
    "numpy.pad": (lambda x: np.pad(x, 5), (PLANE,)),
    "numpy.pad (reflect)": (lambda x: np.pad(x, 5, "reflect"), (PLANE,)),
    "numpy.pad (mean)": (lambda x: np.pad(x, 5, "mean"), (PLANE,)),
    "numpy.resize": (lambda x: np.resize(x, 2 * N), (X,)),
    "numpy.insert": (lambda x: np.insert(x, 9, 1.0), (X,)), "numpy.delete": (lambda x: np.delete(x, 9), (X,)),
    "numpy.trim_zeros": (np.trim_zeros, (X,)), "numpy.lib.stride_tricks.sliding_window_view": (
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 5), (X,)),
    **_unary("zeros_like ones_like empty_like", X), "numpy.full": (lambda x: np.full(N, x, like=x), (np.array(0.5),)),
    "numpy.full_like": (np.full_like, (X, np.float64(0.5))),
}  # fmt: skip

CHOICE: dict[str, Call] = {
    **_unary("sort unique unique_all unique_counts unique_inverse unique_values sort_complex", X),
    "numpy.partition": (lambda x: np.partition(x, N // 2), (X,)), "numpy.sort (axis 1)": (np.sort, (PLANE,)),
    **_binary("intersect1d setdiff1d setxor1d union1d", X, Y), "numpy.take": (lambda x: np.take(x, PLACES), (X,)),
    "numpy.take_along_axis": (lambda x: np.take_along_axis(x, ORDER, 1), (PLANE,)),
    "numpy.compress": (lambda x: np.compress(MASK, x), (X,)), "numpy.extract": (lambda x: np.extract(MASK, x), (X,)),
    "x[1:]": (lambda x: x[1:], (X,)), "x[places]": (lambda x: x[PLACES], (X,)), "x[mask]": (lambda x: x[MASK], (X,)),
}  # fmt: skip

LINEAR: dict[str, Call] = {
    **_binary("dot inner matmul tensordot", SQUARE, OTHER), **_binary("vdot", X, Y),
    **_binary("outer", X[:300], Y[:300]),
    **_binary("vecdot", PLANE, PLANE[::-1]), "numpy.dot (vectors)": (np.dot, (X, Y)),
    "numpy.matmul (3 x 3)": (np.matmul, (STACK, STACK)),
    **({"numpy.matvec": (np.matvec, (SQUARE, X[:SIDE])),
        "numpy.vecmat": (np.vecmat, (X[:SIDE], SQUARE))} if hasattr(np, "matvec") else {}),
    "numpy.kron": (np.kron, (OTHER[:30, :30], OTHER[:10, :10])), "numpy.cross": (np.cross, (STACK[:, 0], STACK[:, 1])),
    "numpy.einsum": (lambda x, y: np.einsum("ij,jk->ik", x, y), (SQUARE[:100], OTHER)),
    **_binary("matmul tensordot", SQUARE, OTHER, np.linalg), **_binary("cross", STACK[:, 0], STACK[:, 1], np.linalg),
    **_binary("outer", X[:300], Y[:300], np.linalg), **_binary("vecdot", PLANE, PLANE[::-1], np.linalg),
    **_binary("solve", SQUARE, OTHER, np.linalg), "numpy.linalg.solve (vector)": (np.linalg.solve, (SQUARE, X[:SIDE])),
    "numpy.linalg.lstsq": (lambda a, b: np.linalg.lstsq(a, b)[0], (SQUARE[:, :100], X[:SIDE])),
    **_unary("det slogdet inv pinv eig eigvals svd svdvals qr cond norm matrix_norm diagonal trace matrix_transpose",
        SQUARE, np.linalg),
    **_unary("cholesky eigh eigvalsh", SPD, np.linalg), "numpy.linalg.vector_norm": (np.linalg.vector_norm, (X,)),
    "numpy.linalg.norm (vector)": (np.linalg.norm, (X,)), "numpy.linalg.det (3 x 3)": (np.linalg.det, (STACK,)),
    "numpy.linalg.inv (3 x 3)": (np.linalg.inv, (STACK,)),
    "numpy.linalg.matrix_power": (lambda x: np.linalg.matrix_power(x, 5), (OTHER,)),
    "numpy.linalg.multi_dot": (lambda x, y: np.linalg.multi_dot([x, y, x]), (SQUARE, OTHER)),
    "numpy.linalg.tensorinv": (lambda x: np.linalg.tensorinv(x.reshape(10, 30, 300), 2), (SQUARE,)),
    "numpy.linalg.tensorsolve": (lambda x, b: np.linalg.tensorsolve(x.reshape(300, 10, 30), b), (SQUARE, X[:SIDE])),
}  # fmt: skip

FOURIER: dict[str, Call] = {
    **_unary("fft ifft rfft ihfft fftshift ifftshift", X, np.fft), **_unary("irfft hfft", COMPLEX, np.fft),
    **_unary("fft2 ifft2 fftn ifftn rfft2 rfftn", PLANE, np.fft),
    **_unary("irfft2 irfftn", COMPLEX.reshape(250, 200), np.fft),
}  # fmt: skip

CALLS: dict[str, Call] = {**ELEMENTWISE, **REDUCTIONS, **SAMPLED, **SHAPES, **CHOICE, **LINEAR, **FOURIER}
