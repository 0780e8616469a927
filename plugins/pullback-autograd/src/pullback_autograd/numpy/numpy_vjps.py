"""What makers take from ``autograd.numpy.numpy_vjps``: a cotangent brought back to the shape of a broadcast operand."""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb


def metadata(A: Any) -> tuple[tuple[int, ...], int, Any, bool]:
    """``(shape, ndim, dtype, is complex)``."""
    dtype = np.result_type(pb.value(A))
    return np.shape(A), np.ndim(A), dtype, dtype.kind == "c"


def unbroadcast(x: Any, target_meta: tuple[Any, ...], broadcast_idx: int = 0) -> Any:
    """``x`` summed over the axes along which an operand of that metadata was broadcast; real for a real operand."""
    shape, ndim, _, is_complex = target_meta
    while np.ndim(x) > ndim:
        x = np.sum(x, axis=broadcast_idx)
    for axis, size in enumerate(shape):
        if size == 1:
            x = np.sum(x, axis=axis, keepdims=True)
    return np.real(x) if np.iscomplexobj(pb.value(x)) and not is_complex else x


def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``f``, its result brought to the shape of ``target``."""
    target_meta = metadata(target)
    return lambda g: unbroadcast(f(g), target_meta)


def replace_zero(x: Any, val: Any) -> Any:
    """``x``, zeros replaced."""
    return np.where(x, x, val)


def balanced_eq(x: Any, z: Any, y: Any) -> Any:
    """1 where ``x`` alone equals ``z``, 1/2 where ``y`` does too."""
    return (x == z) / (1.0 + (x == y))


def dot_adjoint_0(B: Any, G: Any, A_meta: Any, B_meta: Any) -> Any:
    """The cotangent of ``A`` in ``np.dot(A, B)``."""
    _, pull = pb.vjp(lambda A: np.dot(A, B), np.zeros(A_meta[0], A_meta[2]))
    return pull(G)[0]


def dot_adjoint_1(A: Any, G: Any, A_meta: Any, B_meta: Any) -> Any:
    """The cotangent of ``B`` in ``np.dot(A, B)``."""
    _, pull = pb.vjp(lambda B: np.dot(A, B), np.zeros(B_meta[0], B_meta[2]))
    return pull(G)[0]


__all__ = [
    "balanced_eq", "dot_adjoint_0", "dot_adjoint_1", "metadata", "replace_zero", "unbroadcast", "unbroadcast_f",
]  # fmt: skip
