"""What decompositions leave open, and how their pullbacks treat it.

*Phase.* A complex eigenvector, or a pair of singular vectors, may be multiplied by exp(i phi). LAPACK makes one
component real, and NumPy returns that vector; so the derivative here is that of the vector with this component held
real (:func:`hold_phase`). It is the derivative of what NumPy computes, whatever the function does with the vector;
where the function does not depend on the phase, the choice of the component does not matter.

*Coinciding values.* The vectors of equal eigenvalues are any basis of their space, and a derivative divides by the
difference of the eigenvalues. Values that differ by no more than the rounding of the decomposition count as equal
(:func:`ties`). There,

* the cotangent is finite as long as only the values are used: each vector pairs with its own value;
* a pair of equal values adds nothing if the function uses neither of the two vectors, and both values alike;
* else it adds NaN. That is no excess of caution: f(A) = sum of G_ij over projectors on the space, and
  f(A) = <G, exp(A)> written with eigh, have the same cotangents of values and vectors and different derivatives.
  Nothing but the program could tell them apart.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import pullback as pb
from pullback_linalg.products import conj, transposed


def adjoint(x: Any) -> Any:
    """The conjugate transpose of every matrix."""
    return conj(transposed(x))


def is_whole(a: Any, turned: Any = adjoint) -> Any:
    """Whether both triangles of every matrix are, but for rounding, those of a Hermitian one, as an array of one bool;
    with another ``turned`` those of a symmetric one."""
    other = turned(a)
    try:
        whole = np.array_equal(a, other)
    except pb.ShapesOnlyError:  # planning from shapes alone: one bool is as large as the other
        return np.array(True)
    if not whole:
        with np.errstate(all="ignore"):  # a triangle that is not read may hold anything
            whole = bool(np.all(np.abs(a - other) <= rounding(a) ** 0.5 * np.max(np.abs(a), initial=0.0)))
    return np.array(whole)


def of_triangle(ct: Any, whole: Any, lower: bool, turned: Any = adjoint) -> Any:
    """The Hermitian cotangent ``ct`` of a matrix of which one triangle is read: it stands in both where these agree,
    and in the one that is read where they do not."""
    if whole:
        return ct
    keep, beyond = (np.tril, -1) if lower else (np.triu, 1)
    return keep(ct) + keep(turned(ct), beyond)


def skew(x: Any) -> Any:
    """The difference x - x^H."""
    return x - adjoint(x)


def rounding(x: Any) -> float:
    """The relative spacing of the numbers in ``x``."""
    return float(np.finfo(x.dtype).eps)


# ---------------------------------------------------------------------------------------------------------------- phase
def turn(ct: Any, v: Any) -> Any:
    """Minus the derivative of the function with respect to the phase of each column of ``v``: Im(sum_i ct_ik v_ik),
    a row of one."""
    return np.sum(ct * v, axis=-2, keepdims=True).imag


def turning(ct: Any, v: Any) -> NDArray[Any]:
    """The size of the terms of :func:`turn`, which its rounding follows."""
    size: NDArray[Any] = np.sum(np.abs(pb.value(ct) * pb.value(v)), axis=-2, keepdims=True)
    return size


def hold_phase(ct: Any, v: Any, turned: Any, size: NDArray[Any], reference: NDArray[np.bool_]) -> Any:
    """``ct`` with what turns the columns of ``v`` put onto the component that stays real: ct_rk - i turned_k / v_rk.

    ``reference`` marks one component of each column. If v_k = exp(i phi_k) x_k with phi_k such that v_rk stays real,
    then d phi_k = -Im(dx_rk / v_rk); the rest follows by the chain rule. Where the component is so small that the
    quotient is the rounding of ``turned``, which is the sum of terms of ``size``, the function does not depend on the
    phase, and nothing is added.
    """
    small = rounding(v)
    plain = np.where(reference, np.abs(pb.value(v)), 1)
    noise = np.abs(pb.value(turned)) <= 1e3 * small * size
    idle = ~reference | (noise & (plain <= small ** (1 / 3)))
    weight = np.where(idle, 0, np.where(plain > 0, 1, np.nan)).astype(v.real.dtype)
    return ct - 1j * turned * weight / np.where(idle | (plain == 0), 1, v)


def row_of(v: Any, row: int) -> NDArray[np.bool_]:
    """The mask of one row; of none where there are no rows."""
    rows = v.shape[-2]
    mask: NDArray[np.bool_] = np.broadcast_to((np.arange(rows) == row % max(rows, 1))[:, None], v.shape)
    return mask


# ----------------------------------------------------------------------------------------------------------------- ties
def level(values: Any) -> NDArray[Any]:
    """Below this two values count as equal: 2 sqrt(n) roundings of the largest, in two more axes of one."""
    plain = np.abs(pb.value(values))
    top = np.max(plain, axis=-1, initial=0)
    tolerance: NDArray[Any] = 2 * np.sqrt(plain.shape[-1]) * rounding(plain) * top[..., None, None]
    return tolerance


def unlike(ct: Any, values: Any) -> NDArray[np.bool_] | bool:
    """Pairs of values whose cotangents differ; those of a symmetric function agree where the values do."""
    if ct is None:
        return False
    plain = pb.value(ct)
    size = np.max(np.abs(plain), axis=-1, initial=0)[..., None, None]
    differ: NDArray[np.bool_] = np.abs(plain[..., None, :] - plain[..., :, None]) > 1e3 * rounding(values.real) * size
    return differ


def touched(*cts: Any) -> Any:
    """Pairs of columns of which some cotangent is not zero; cotangents that are None are zero."""
    columns = [np.any(pb.value(ct) != 0, axis=-2) for ct in cts if ct is not None]
    return sum(used[..., None, :] | used[..., :, None] for used in columns) > 0


def reciprocal(gap: Any, tie: NDArray[np.bool_], used: Any) -> Any:
    """1 / gap; where ``tie``, NaN if ``used`` and else 0. No warning, and no NaN in the derivative where nothing is
    used."""
    at_ties = np.where(used, np.nan, 0).astype(gap.dtype)
    return np.where(tie, at_ties, 1 / np.where(tie, 1, gap))


def reciprocal_gaps(values: Any, ct: Any, *cts: Any) -> Any:
    """1 / (values_j - values_i), 0 on the diagonal; at ties as the head of this file says, by the cotangents of
    values and vectors."""
    gap = values[..., None, :] - values[..., :, None]
    tie = np.abs(pb.value(gap)) <= level(values)
    diagonal = np.eye(values.shape[-1], dtype=bool)
    tie |= diagonal
    if np.count_nonzero(tie) == values.size:  # the diagonal alone
        return reciprocal(gap, tie, used=False)
    return reciprocal(gap, tie, (touched(*cts) | unlike(ct, values)) & ~diagonal)
