"""Parts of the polar factor: what the norms that are made of singular values pull back.

With a = U S V^H the derivative of sum_k w_k s_k is U diag(w) V^H: all ones for the nuclear norm (the polar factor
itself), a one at the largest or the smallest value for the spectral norm and its counterpart. It is a primitive of its
own, so that second derivatives do not go through U and V, which have none where singular values repeat. Singular values
that differ by rounding only share; those that are 0 have no part: 0 is in the subdifferential there (Watson,
"Characterization of the subdifferential of some matrix norms", 1992).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import pullback as pb
from pullback_linalg.gauge import adjoint
from pullback_linalg.products import conj, transposed
from pullback_linalg.unguarded import primitive


def parts(s: NDArray[Any], which: Any, n: int) -> Any:
    """The weights w of singular values ``s``, in descending order, for the norm ``which`` of a matrix whose longer
    side is ``n``."""
    top = s.max(axis=-1, keepdims=True, initial=0)
    rounding = top * (n * np.finfo(s.dtype).eps)
    if which == 2:
        taken = s >= top - rounding
    elif which == -2:
        taken = s <= s.min(axis=-1, keepdims=True, initial=np.inf) + rounding
    else:
        return (s > rounding).astype(s.dtype)
    share = taken.sum(axis=-1, keepdims=True)
    return (np.where(s > rounding, taken, False) / np.maximum(share, 1)).astype(s.dtype)


def _polar_part(a: NDArray[Any], *, which: Any) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return (u * parts(s, which, max(a.shape[-2:]))[..., None, :]) @ vh


def _slopes(s: Any, w: Any) -> tuple[Any, Any]:
    """The factors of E and E^H in the derivative of U diag(w) V^H, element by element in the bases U and V, where E =
    U^H da V.

    (w_i s_i - w_j s_j) / (s_i^2 - s_j^2) and (w_i s_j - w_j s_i) / (s_i^2 - s_j^2), which is 1 / (s_i + s_j) and its
    negative for equal weights 1 (Noferini, "A formula for the Frechet derivative of a generalized matrix function",
    2017).
    """
    si, sj, wi, wj = s[..., :, None], s[..., None, :], w[..., :, None], w[..., None, :]
    alike = (wi == wj) & np.ones_like(pb.value(si) + pb.value(sj), bool)
    total = np.where(wi + wj == 0, 1, si + sj)
    gap = total * np.where(alike, 1, si - sj)
    return np.where(alike, wi, wi * si - wj * sj) / gap, np.where(alike, -wi, wi * sj - wj * si) / gap


def _polar_rule(ct: Any, a: Any, which: Any) -> Any:
    """Within the spaces of U and V by :func:`_slopes`; from outside them, where the singular values are 0, by w / s."""
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    w = parts(pb.value(s), which, max(a.shape[-2:]))
    even, odd = _slopes(s, w)
    decay = w / np.where(w == 0, 1, s)
    right, left = ct @ transposed(vh), transposed(u) @ ct
    inner = transposed(u) @ right
    inside = even * inner + odd * adjoint(inner)
    from_left = (right - conj(u) @ inner) * decay[..., None, :]
    from_right = decay[..., :, None] * (left - inner @ conj(vh))
    return (conj(u) @ inside + from_left) @ conj(vh) + conj(u) @ from_right


polar_part = primitive(_polar_part, name="polar_part", vjps={"a": _polar_rule})
POLAR = (polar_part,)
