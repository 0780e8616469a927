"""The generalised ufuncs: matmul, vecdot, matvec, vecmat, with NumPy's broadcasting of the leading axes; and vdot.

Every product is linear in each operand, so a rule reads the other operand and nothing else: in ``x @ c`` with ``c``
constant, ``x`` is not kept. vdot, vecdot and vecmat conjugate their first operand, and then so do its rules; the others
are holomorphic.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_linalg.sparse import is_sparse, sparse_matmul
from pullback_linalg.unguarded import primitive


def conj(x: Any) -> Any:
    """conj(x), without a copy where x is real."""
    return np.conjugate(x) if x.dtype.kind == "c" else x


def transposed(x: Any) -> Any:
    """The last two axes swapped."""
    return x.T if x.ndim == 2 else np.swapaxes(x, -1, -2)


def product(function: Callable[..., Any], *, x: Callable[..., Any], y: Callable[..., Any], name: str = "") -> Any:
    """The primitive of a NumPy function of two arrays, with the rule of each."""
    name = name or f"product_{function.__name__}"
    return primitive(function, name=name, operands=("x", "y"), bilinear=("x", "y"), vjps={"x": x, "y": y})


# --------------------------------------------------------------------------------------------------------------- matmul
# out[..., i, j] = sum_k x[..., i, k] y[..., k, j]. An operand of one axis has no i, or no j. Where a batch of matrices
# meets a single one, the cotangent of the single one is a sum over the batch: one GEMM over batch and rows together,
# never a batch of products that is summed afterwards.
def matmul_left(ct: Any, y: Any, x_spec: Any, y_spec: Any) -> Any:
    """The cotangent of x, ct y^T; leading axes may be left to sum."""
    if y_spec.ndim == 1:
        return ct * y if x_spec.ndim == 1 else ct[..., None] * y
    if x_spec.ndim == 1:
        return y @ ct if y_spec.ndim == 2 else np.matmul(y, ct[..., None])[..., 0]
    if x_spec.ndim == 2 < y_spec.ndim:
        summed = (*range(y_spec.ndim - 2), y_spec.ndim - 1)
        return np.tensordot(ct, y, (summed, summed))
    return ct @ transposed(y)


def matmul_right(ct: Any, x: Any, x_spec: Any, y_spec: Any) -> Any:
    """The cotangent of y, x^T ct; leading axes may be left to sum."""
    if x_spec.ndim == 1:
        return ct * x if y_spec.ndim == 1 else x[:, None] * ct[..., None, :]
    if y_spec.ndim == 1:
        return ct @ x if x_spec.ndim == 2 else np.tensordot(ct, x, x_spec.ndim - 1)
    if y_spec.ndim == 2 < x_spec.ndim:
        summed = tuple(range(x_spec.ndim - 1))
        return np.tensordot(x, ct, (summed, summed))
    return transposed(x) @ ct


matmul = product(np.matmul, x=matmul_left, y=matmul_right)


# ------------------------------------------------------------------------------------------------- vectors and matrices
vecdot = product(  # out[...] = sum_k conj(x[..., k]) y[..., k]
    np.vecdot,
    x=lambda ct, y: conj(ct[..., None] * y),
    y=lambda ct, x: ct[..., None] * conj(x),
)
matvec = product(  # out[..., i] = sum_k x[..., i, k] y[..., k]
    lambda x, y: np.matvec(x, y),  # noqa: PLW0108 - NumPy has matvec and vecmat since 2.2: looked up when called
    name="product_matvec",
    x=lambda ct, y: ct[..., None] * y[..., None, :],
    y=lambda ct, x: np.matmul(ct[..., None, :], x)[..., 0, :],
)
vecmat = product(  # out[..., j] = sum_k conj(x[..., k]) y[..., k, j]
    lambda x, y: np.vecmat(x, y),  # noqa: PLW0108 - as above
    name="product_vecmat",
    x=lambda ct, y: conj(np.matmul(y, ct[..., None])[..., 0]),
    y=lambda ct, x: conj(x)[..., None] * ct[..., None, :],
)
vdot = product(  # out = sum_k conj(x.ravel()[k]) y.ravel()[k], whatever the two shapes
    np.vdot,
    x=lambda ct, y, x_spec: conj(ct * y).reshape(x_spec.shape),
    y=lambda ct, x, y_spec: (ct * conj(x)).reshape(y_spec.shape),
)


# ---------------------------------------------------------------------------------------------------- NumPy's functions
def as_array(x: Any) -> Any:
    """``x`` as numpy.asarray makes it: an array, or a tracer of one; of a number, traced or not, a 0-d array."""
    if not hasattr(x, "ndim"):
        return np.asarray(x)
    return x if x.ndim or isinstance(pb.value(x), np.ndarray) else np.copy(x)


def refuse(name: str, keywords: dict[str, Any]) -> None:
    """Raise for a keyword of a ufunc that a recorded call does not take."""
    if keywords:
        message = (
            f"numpy.{name} with {', '.join(f'{key}=' for key in keywords)} has no derivative here; leave the keyword "
            "out, move the axes with np.moveaxis, or choose the dtype with x.astype(dtype)"
        )
        raise pb.NotDifferentiableError(message)


def along(name: str, function: Callable[..., Any], x: Any, y: Any, axes: Any) -> Any:
    """``function`` with the core axes where ``axes=`` says: they are moved to the end before it, and those of the
    output back after it.

    NumPy's own ``axes=`` gives the same bits and the same strides.
    """
    x, y = as_array(x), as_array(y)
    entries = [tuple(entry) if isinstance(entry, tuple | list) else (entry,) for entry in axes]
    if len(entries) not in ((2, 3) if function is vecdot else (3,)):
        message = (
            f"{name}: axes= has {len(entries)} entries; give one for each input and for the output: [(-2, -1), "
            "(-2, -1), (-2, -1)]"
        )
        raise ValueError(message)
    out = function(_to_end(x, entries[0]), _to_end(y, entries[1]))
    core = entries[2] if len(entries) == 3 else ()
    return np.moveaxis(out, tuple(range(-len(core), 0)), core) if core else out


def _to_end(x: Any, core: tuple[int, ...]) -> Any:
    return np.moveaxis(x, core, tuple(range(-len(core), 0)))


@pb.composite(np.matmul, name="matmul", direct=matmul)
def np_matmul(x1: Any, x2: Any, /, *, axes: Any = None, **keywords: Any) -> Any:
    """numpy.matmul, and ``x1 @ x2``."""
    if keywords:
        refuse("matmul", keywords)
    if is_sparse(x1) or is_sparse(x2):
        return sparse_matmul(x1, x2)
    return matmul(x1, x2) if axes is None else along("matmul", matmul, x1, x2, axes)


@pb.composite(np.vecdot, name="vecdot")
def np_vecdot(
    x1: Any, x2: Any, /, *, axis: Any = None, axes: Any = None, keepdims: bool = False, **keywords: Any
) -> Any:
    """numpy.vecdot."""
    refuse("vecdot", keywords if axes is None or not keepdims else {**keywords, "axes": axes, "keepdims": keepdims})
    if axis is not None:
        axes = [(axis,), (axis,)]
    out = vecdot(x1, x2) if axes is None else along("vecdot", vecdot, x1, x2, axes)
    return np.expand_dims(out, -1 if axis is None else axis) if keepdims else out


def np_matvec(x1: Any, x2: Any, /, *, axes: Any = None, **keywords: Any) -> Any:
    """numpy.matvec."""
    refuse("matvec", keywords)
    return matvec(x1, x2) if axes is None else along("matvec", matvec, x1, x2, axes)


def np_vecmat(x1: Any, x2: Any, /, *, axes: Any = None, **keywords: Any) -> Any:
    """numpy.vecmat."""
    refuse("vecmat", keywords)
    return vecmat(x1, x2) if axes is None else along("vecmat", vecmat, x1, x2, axes)


@pb.composite(np.vdot, name="vdot")
def np_vdot(a: Any, b: Any, /) -> Any:
    """numpy.vdot."""
    return vdot(as_array(a), as_array(b))


@pb.composite(np.linalg.matmul, name="linalg.matmul")
def linalg_matmul(x1: Any, x2: Any, /) -> Any:
    """numpy.linalg.matmul."""
    return matmul(x1, x2)


@pb.composite(np.linalg.vecdot, name="linalg.vecdot")
def linalg_vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """numpy.linalg.vecdot."""
    return np_vecdot(x1, x2, axis=axis)


SINCE_2_2 = (
    (
        matvec,
        vecmat,
        pb.composite(np.matvec, name="matvec")(np_matvec),
        pb.composite(np.vecmat, name="vecmat")(np_vecmat),
    )
    if hasattr(np, "matvec")
    else ()
)
PRODUCTS = (matmul, vecdot, vdot, np_matmul, np_vecdot, np_vdot, linalg_matmul, linalg_vecdot, *SINCE_2_2)
