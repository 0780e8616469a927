"""Contractions over chosen axes: dot, inner, tensordot; and what is made of other functions: outer, kron, trace.

The forward is NumPy's own function, so that a recorded call has the bits of a plain one. The rules of all three are
those of tensordot, in which each cotangent is one GEMM; matrices and vectors take the shorter way of matmul.
"""

from operator import index
from typing import Any

import numpy as np

import pullback as pb
from pullback_linalg.products import as_array, matmul_left, matmul_right, product
from pullback_linalg.unguarded import primitive

Axes = tuple[int, ...]


# ------------------------------------------------------------------------------------------------------------ tensordot
# out has the free axes of x, then those of y; the contracted axes pair up: x_axes[k] with y_axes[k], none negative.
def _free(ndim: int, taken: Axes) -> Axes:
    return tuple(axis for axis in range(ndim) if axis not in taken)


def _placed(ct: Any, axes: Axes) -> Any:
    """``ct``, whose axis k is axis ``axes[k]`` of the operand, with its axes in the operand's order."""
    order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    return ct if order == tuple(range(len(axes))) else np.transpose(ct, order)


def contract_left(ct: Any, y: Any, x_spec: Any, y_spec: Any, x_axes: Axes, y_axes: Axes) -> Any:
    """The cotangent of x: ct with y, over the free axes of y."""
    x_free, y_free = _free(x_spec.ndim, x_axes), _free(y_spec.ndim, y_axes)
    g = np.tensordot(ct, y, (tuple(range(len(x_free), len(x_free) + len(y_free))), y_free))
    left = sorted(range(len(y_axes)), key=y_axes.__getitem__)  # the axes of y that remain stand in y's order
    return _placed(g, (*x_free, *(x_axes[k] for k in left)))


def contract_right(ct: Any, x: Any, x_spec: Any, y_spec: Any, x_axes: Axes, y_axes: Axes) -> Any:
    """The cotangent of y: x with ct, over the free axes of x."""
    x_free, y_free = _free(x_spec.ndim, x_axes), _free(y_spec.ndim, y_axes)
    g = np.tensordot(x, ct, (x_free, tuple(range(len(x_free)))))
    left = sorted(range(len(x_axes)), key=x_axes.__getitem__)
    return _placed(g, (*(y_axes[k] for k in left), *y_free))


tensordot = primitive(
    lambda x, y, *, x_axes, y_axes: np.tensordot(x, y, (x_axes, y_axes)),
    name="product_tensordot",
    bilinear=("x", "y"),
    vjps={"x": contract_left, "y": contract_right},
)


# -------------------------------------------------------------------------------------------------------- dot and inner
# dot sums the last axis of x with the last but one of y (the last, where y has one); inner sums the last axes of both.
# Where an operand has no axis, both multiply.
def _dot_left(ct: Any, y: Any, x_spec: Any, y_spec: Any) -> Any:
    if not x_spec.ndim or not y_spec.ndim:
        return ct * y
    if x_spec.ndim <= 2 and y_spec.ndim <= 2:
        return matmul_left(ct, y, x_spec, y_spec)
    return contract_left(ct, y, x_spec, y_spec, (x_spec.ndim - 1,), (max(y_spec.ndim - 2, 0),))


def _dot_right(ct: Any, x: Any, x_spec: Any, y_spec: Any) -> Any:
    if not x_spec.ndim or not y_spec.ndim:
        return ct * x
    if x_spec.ndim <= 2 and y_spec.ndim <= 2:
        return matmul_right(ct, x, x_spec, y_spec)
    return contract_right(ct, x, x_spec, y_spec, (x_spec.ndim - 1,), (max(y_spec.ndim - 2, 0),))


def _inner_left(ct: Any, y: Any, x_spec: Any, y_spec: Any) -> Any:
    if not x_spec.ndim or not y_spec.ndim or x_spec.ndim == y_spec.ndim == 1:
        return ct * y
    return contract_left(ct, y, x_spec, y_spec, (x_spec.ndim - 1,), (y_spec.ndim - 1,))


def _inner_right(ct: Any, x: Any, x_spec: Any, y_spec: Any) -> Any:
    if not x_spec.ndim or not y_spec.ndim or x_spec.ndim == y_spec.ndim == 1:
        return ct * x
    return contract_right(ct, x, x_spec, y_spec, (x_spec.ndim - 1,), (y_spec.ndim - 1,))


dot = product(np.dot, x=_dot_left, y=_dot_right)
inner = product(np.inner, x=_inner_left, y=_inner_right)


# ---------------------------------------------------------------------------------------------------- NumPy's functions
@pb.composite(np.dot, name="dot", direct=dot)
def np_dot(a: Any, b: Any) -> Any:
    """numpy.dot, and ``a.dot(b)``."""
    return dot(a, b)


@pb.composite(np.inner, name="inner", direct=inner)
def np_inner(a: Any, b: Any, /) -> Any:
    """numpy.inner."""
    return inner(a, b)


@pb.composite(np.tensordot, name="tensordot")
def np_tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """numpy.tensordot."""
    a, b = as_array(a), as_array(b)
    if isinstance(axes, int | np.integer):
        pairs: tuple[Any, Any] = (tuple(range(-axes, 0)), tuple(range(axes)))
    else:
        first, second = axes
        pairs = (_several(first), _several(second))
    return tensordot(a, b, x_axes=_counted(pairs[0], a.ndim), y_axes=_counted(pairs[1], b.ndim))


def _several(axes: Any) -> Axes:
    """One axis or several, as a tuple."""
    return tuple(map(index, axes)) if hasattr(axes, "__iter__") else (index(axes),)


def _counted(axes: Axes, ndim: int) -> Axes:
    """Axes counted from the first; one out of range stays, for NumPy to name."""
    return tuple(axis + ndim if -ndim <= axis < 0 else axis for axis in axes)


@pb.composite(np.outer, name="outer")
def np_outer(a: Any, b: Any) -> Any:
    """numpy.outer: operands of any shape are flattened."""
    return np.multiply(np.ravel(a)[:, None], np.ravel(b)[None, :])


@pb.composite(np.kron, name="kron")
def np_kron(a: Any, b: Any) -> Any:
    """numpy.kron: every axis of the result is an axis of a and one of b, multiplied out."""
    a, b = as_array(a), as_array(b)
    if not a.ndim or not b.ndim:
        return np.multiply(a, b)
    ndim = max(a.ndim, b.ndim)
    a = np.expand_dims(a, tuple(range(ndim - a.ndim)))
    b = np.expand_dims(b, tuple(range(ndim - b.ndim)))
    spread = np.multiply(
        np.expand_dims(a, tuple(range(1, 2 * ndim, 2))), np.expand_dims(b, tuple(range(0, 2 * ndim, 2)))
    )
    return spread.reshape(tuple(m * n for m, n in zip(a.shape, b.shape, strict=True)))


@pb.composite(np.trace, name="trace")
def np_trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """numpy.trace, and ``a.trace()``."""
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


@pb.composite(np.linalg.tensordot, name="linalg.tensordot")
def linalg_tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """numpy.linalg.tensordot."""
    return np_tensordot(x1, x2, axes)


@pb.composite(np.linalg.outer, name="linalg.outer")
def linalg_outer(x1: Any, x2: Any, /) -> Any:
    """numpy.linalg.outer."""
    x1, x2 = as_array(x1), as_array(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        message = f"Input arrays must be one-dimensional, but they are x1.ndim={x1.ndim} and x2.ndim={x2.ndim}."
        raise ValueError(message)
    return np_outer(x1, x2)


@pb.composite(np.linalg.trace, name="linalg.trace")
def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """numpy.linalg.trace: over the last two axes."""
    return np_trace(x, offset, -2, -1, dtype)


CONTRACTIONS = (
    tensordot, dot, inner, np_dot, np_inner, np_tensordot, np_outer, np_kron, np_trace, linalg_tensordot, linalg_outer,
    linalg_trace,
)  # fmt: skip
