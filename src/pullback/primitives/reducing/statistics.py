"""Averages and covariances: ptp, average, cov, corrcoef.

They take NumPy's own steps, so they have its bits. Weights may be traced.
"""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from pullback.primitives.reducing.variances import conjugate
from pullback.primitives.shaping.creation import of_nothing
from pullback.primitives.shared.axes import Axis
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.call_sites import warn_user
from pullback.words.undocumented import ABSENT


# --------------------------------------------------------------------------------------------------------- ptp, average
@composite(np.ptp)
def ptp(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = ABSENT) -> Any:
    """numpy.ptp: ties share on either end."""
    return np.subtract(np.max(a, axis, keepdims=keepdims), np.min(a, axis, keepdims=keepdims))


def beside(weights: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    """Weights that broadcast against an array of ``shape``: they have its shape, or are given along ``axis`` alone."""
    if weights.shape == shape:
        return weights
    if axis is None:
        raise TypeError(
            f"weights of shape {weights.shape} for an array of shape {shape} need axis=: Axis must be specified "
            "when shapes differ"
        )
    axes = normalize_axis_tuple(axis, len(shape), argname="axis")
    if weights.shape != tuple(shape[k] for k in axes):
        raise ValueError(
            f"Shape of weights must be consistent with shape of a along specified axis: {weights.shape} for axes "
            f"{axes} of {shape}"
        )
    return np.reshape(
        np.transpose(weights, np.argsort(axes)), tuple(n if k in axes else 1 for k, n in enumerate(shape))
    )


@composite(np.average)
def average(a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, *, keepdims: Any = ABSENT) -> Any:
    """numpy.average; with ``returned``, the sum of the weights as well."""
    a = _array(a)
    if weights is None:
        mean = np.mean(a, axis, keepdims=keepdims)
        count = mean.dtype.type(a.size / mean.size) if returned else 0
        return (mean, np.full(mean.shape, count) if mean.shape else count) if returned else mean
    weights = beside(_array(weights), a.shape, axis)
    dtype = np.result_type(a.dtype, weights.dtype, *(("f8",) if a.dtype.kind in "iub" else ()))
    total = np.sum(weights, axis, dtype, keepdims=keepdims)
    if np.any(total == 0.0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    mean = np.sum(np.multiply(a, weights, dtype=dtype), axis, keepdims=keepdims) / total
    if not returned:
        return mean
    return mean, total if total.shape == mean.shape else np.copy(np.broadcast_to(total, mean.shape))


# ------------------------------------------------------------------------------------------------------------- products
# A product of two matrices of its own, so that a covariance needs no plugin. The product of a matrix with its own
# transpose is a primitive for its pullback: one product, not two.
product: Primitive = primitive(
    np.dot,
    name="covariance_product",
    operands=("a", "b"),
    vjps={"a": lambda ct, b: product(ct, b.T), "b": lambda ct, a: product(a.T, ct)},
)
gram = primitive(
    lambda x: np.dot(x, x.T.conj()),
    name="covariance_gram",
    vjps={"x": lambda ct, x: product(ct + conjugate(ct.T), conjugate(x))},
)


# ---------------------------------------------------------------------------------------------------------- covariances
def _observations(x: Any, dtype: Any, upright: bool) -> Any:
    """One variable a row, one observation a column; ``upright`` where they stand the other way."""
    if x.ndim > 2:
        raise ValueError(
            f"an operand of cov has more than 2 dimensions: its shape is {x.shape}; reshape it to variables and "
            "observations"
        )
    matrix = _as(dtype, x) if x.ndim == 2 else np.reshape(_as(dtype, x), (1, -1))
    return matrix.T if upright else matrix


def _as(dtype: Any, x: Any) -> Any:
    return x if x.dtype == dtype else x.astype(dtype)


def _array(x: Any) -> Any:
    return x if hasattr(x, "dtype") else np.asarray(x)


def _checked(weights: Any, name: str, columns: int) -> Any:
    """One weight for each observation, as float64."""
    weights = _as(np.dtype(np.float64), _array(weights))
    if weights.ndim > 1:
        raise RuntimeError(
            f"cannot handle multidimensional {name}: its shape is {weights.shape}, and {columns} observations "
            f"want ({columns},)"
        )
    if weights.shape[0] != columns:
        raise RuntimeError(f"incompatible numbers of samples and {name}: {columns} and {weights.shape[0]}")
    if name == "fweights" and not np.all(weights == np.around(weights)):
        raise TypeError(
            "fweights must be integer: they say how often an observation was made; other weights are aweights"
        )
    if np.any(weights < 0):
        raise ValueError(f"{name} cannot be negative")
    return weights


@composite(np.cov)
def cov(
    m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: int | None = None, fweights: Any = None,
    aweights: Any = None, *,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """numpy.cov; ``m``, ``y`` and the weights may be traced."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"ddof must be integer, got {ddof}")
    operands = [_array(m)] if y is None else [_array(m), _array(y)]
    dtype = np.dtype(np.result_type(*(x.dtype for x in operands), np.float64) if dtype is None else dtype)
    parts = [_observations(x, dtype, not rowvar and _turns(x, first=k == 0)) for k, x in enumerate(operands)]
    if not parts[0].shape[0]:
        return of_nothing(m, np.zeros((0, 0)))
    x = parts[0] if y is None else np.concatenate(parts, 0)
    columns = x.shape[1]
    ddof = int(not bias) if ddof is None else ddof
    factors = [
        _checked(w, name, columns) for w, name in ((fweights, "fweights"), (aweights, "aweights")) if w is not None
    ]
    weights = None if not factors else factors[0] if len(factors) == 1 else factors[0] * factors[1]
    mean, total = average(x, 1, weights, returned=True)
    degrees = _degrees(columns, ddof, weights, None if aweights is None else factors[-1], total[0])
    x = _as(dtype, x - mean[:, None])
    c = gram(x) if weights is None else product(x, conjugate((x * weights).T))
    return np.squeeze(_as(c.dtype, c * np.true_divide(1, degrees)))


def _turns(x: Any, first: bool) -> bool:
    """Whether ``rowvar=False`` transposes an operand. It transposes a matrix, but not a second operand of one row;
    before NumPy 2.2 not a first one of one row either."""
    one_row = x.ndim == 2 and x.shape[0] == 1
    return bool(x.ndim == 2 and (not one_row or (first and np.lib.NumpyVersion(np.__version__) >= "2.2.0")))


def _degrees(columns: int, ddof: int, weights: Any, aweights: Any, total: Any) -> Any:
    """What the products are divided by."""
    if weights is None:
        degrees: Any = columns - ddof
    elif ddof == 0:
        degrees = total
    elif aweights is None:
        degrees = total - ddof
    else:
        degrees = total - ddof * np.sum(weights * aweights) / total
    if degrees <= 0:
        warn_user("Degrees of freedom <= 0 for slice", RuntimeWarning)
        return 0.0
    return degrees


@composite(np.corrcoef)
def corrcoef(
    x: Any, y: Any = None, rowvar: Any = True, bias: Any = ABSENT, ddof: Any = ABSENT, *, dtype: Any = None
) -> Any:
    """numpy.corrcoef. ``bias`` and ``ddof`` cancel; NumPy takes them no more since 2.4."""
    if bias is not ABSENT or ddof is not ABSENT:
        warn_user("bias and ddof have no effect and are deprecated", DeprecationWarning)
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation = np.sqrt(np.diag(c).real)
    c = c / deviation[:, None] / deviation[None, :]
    if c.dtype.kind == "c":
        return np.clip(c.real, -1, 1) + 1j * np.clip(c.imag, -1, 1)
    return np.clip(c, -1, 1)


STATISTICS: tuple[Primitive | Composite, ...] = (product, gram, ptp, average, cov, corrcoef)
