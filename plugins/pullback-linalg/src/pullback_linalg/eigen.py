"""Eigenvalues and eigenvectors: linalg.eigh, eigvalsh, eig, eigvals.

Of Hermitian matrices NumPy reads one triangle; the cotangent is Hermitian, (s + s^H) / 2, as for every function of
symmetric matrices, whichever triangle was read; where the other one holds something else, it stands in that which was
read alone. Phases and coinciding eigenvalues: :mod:`pullback_linalg.gauge`. An
eigenvector's sign, or its phase, is as LAPACK chooses it: for eigh the first component of each vector is real (the last
for ``UPLO="U"``), for eig the largest, and eig's vectors have norm 1.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import pullback as pb
from pullback_linalg.gauge import hold_phase, is_whole, of_triangle, reciprocal_gaps, row_of, skew, turn, turning
from pullback_linalg.products import as_array, conj, transposed
from pullback_linalg.unguarded import primitive


def with_diagonal(diagonal: Any, x: Any) -> Any:
    """``x`` with another diagonal, if one is given."""
    return x if diagonal is None else np.where(np.eye(x.shape[-1], dtype=bool), diagonal[..., None, :], x)


# ------------------------------------------------------------------------------------------------------------ Hermitian
# dw_k = (v^H da v)_kk and dv = v (f o v^H da v), f_ij = 1 / (w_j - w_i), 0 on the diagonal (Giles, "Collected matrix
# derivative results", 2008, section 3.1; Magnus, "On differentiating eigenvalues and eigenvectors", 1985).
def eigh_cotangent(ct_w: Any, ct_v: Any, w: Any, v: Any, row: int) -> Any:
    """The Hermitian cotangent of the matrix from those of its values and its vectors, of which ``row`` is real;
    either may be None."""
    if ct_v is None:
        return (conj(v) * ct_w[..., None, :]) @ transposed(v)
    if v.dtype.kind == "c":
        ct_v = hold_phase(ct_v, v, turn(ct_v, v), turning(ct_v, v), row_of(v, row))
    m = transposed(v) @ ct_v
    inner = with_diagonal(ct_w, skew(m) * (reciprocal_gaps(w, ct_w, ct_v) / 2))
    return conj(v) @ inner @ transposed(v)


def real_row(uplo: Any) -> int:
    """The row of the eigenvectors that LAPACK makes real: zhetrd reduces from the first row on, or from the last."""
    return 0 if uplo == "L" else -1


def _eigh_rule(ct: Any, w: Any, v: Any, whole: Any, uplo: Any) -> Any:
    return of_triangle(eigh_cotangent(ct[0], ct[1], w, v, real_row(uplo)), whole, uplo == "L")


def _eigh_rule_again(ct: Any, a: Any, uplo: Any) -> Any:
    w, v = eigh(a, uplo=uplo)
    return _eigh_rule(ct, w, v, is_whole(pb.value(a)), uplo)


# Of the triangles one bool is kept. The second rule is for a derivative of the derivative, and gives the same bits.
eigh = primitive(
    lambda a, *, uplo: (np.linalg.eigh(a, uplo), {"whole": is_whole(a)}),
    name="eigh",
    outputs=("w", "v"),
    residuals=("whole",),
)
eigh.vjp("a", fn=_eigh_rule)
eigh.vjp("a", fn=_eigh_rule_again)


# The values alone are a third of the work: the vectors are found in the pullback.
def _eigvalsh_rule(ct: Any, a: Any, uplo: Any) -> Any:
    w, v = np.linalg.eigh(a, uplo)
    return of_triangle(eigh_cotangent(ct, None, w, v, real_row(uplo)), is_whole(pb.value(a)), uplo == "L")


eigvalsh = primitive(lambda a, *, uplo: np.linalg.eigvalsh(a, uplo), name="eigvalsh", vjps={"a": _eigvalsh_rule})


@pb.composite(np.linalg.eigh, name="linalg.eigh")
def np_eigh(a: Any, UPLO: str = "L") -> Any:
    """numpy.linalg.eigh."""
    return eigh(a, uplo=UPLO.upper())


@pb.composite(np.linalg.eigvalsh, name="linalg.eigvalsh")
def np_eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """numpy.linalg.eigvalsh."""
    return eigvalsh(a, uplo=UPLO.upper())


# -------------------------------------------------------------------------------------------------------------- general
# With c = v^-1 da v: dw = diag(c), dv = v (f o c + d), d diagonal such that the norm stays 1 and the largest component
# real (Giles, section 3.1; van der Aa, ter Morsche and Mattheij, "Computation of eigenvalue and eigenvector derivatives
# for a general complex-valued eigensystem", 2007; Boeddeker et al., "On the computation of complex-valued gradients",
# 2017, for the norm).
def _solved(v: Any, right: Any) -> Any:
    """v^-T right."""
    try:
        return np.linalg.solve(transposed(v), right)
    except np.linalg.LinAlgError:
        message = (
            "numpy.linalg.eig, eigvals: the eigenvectors are linearly dependent (a defective matrix), where "
            "eigenvalues have no derivative; use functions that are smooth there: trace, det, or solve"
        )
        raise pb.NotDifferentiableError(message) from None


def largest_real(v: Any) -> NDArray[np.bool_]:
    """The mask of the component that LAPACK made real: of those with no imaginary part the largest."""
    plain = pb.value(v)
    place = (
        np.argmax(np.abs(plain) + (plain.imag == 0), axis=-2, keepdims=True) if plain.size else np.zeros((1, 1), int)
    )
    mask: NDArray[np.bool_] = np.arange(plain.shape[-2])[:, None] == place
    return mask


def _eig_rule(ct: Any, w: Any, v: Any) -> Any:
    ct_w, ct_v = ct
    if ct_v is None:
        return _solved(v, ct_w[..., :, None] * transposed(v))
    along = np.sum(ct_v * v, axis=-2, keepdims=True)
    held = hold_phase(ct_v, v, along.imag, turning(ct_v, v), largest_real(v)) if v.dtype.kind == "c" else ct_v
    m = transposed(v) @ (held - along.real * conj(v))
    return _solved(v, with_diagonal(ct_w, m * reciprocal_gaps(w, ct_w, ct_v)) @ transposed(v))


# For its signature.
eig = primitive(lambda a: np.linalg.eig(a), name="eig", outputs=("w", "v"), vjps={"a": _eig_rule})  # noqa: PLW0108


def matching(values: NDArray[Any], others: NDArray[Any]) -> NDArray[np.intp]:
    """The place in ``others`` flattened of the equal of each of ``values``, each place once: without vectors LAPACK
    orders otherwise."""
    n = values.shape[-1]
    order = np.arange(values.size).reshape(values.shape)
    for stack in np.ndindex(values.shape[:-1]):
        distance = np.abs(values[stack][:, None] - others[stack])
        if n == 0 or np.array_equal(np.argmin(distance, axis=1), np.arange(n)):
            continue
        start = int(order[stack][0])
        for k in range(n):
            nearest = int(np.argmin(distance[k]))
            order[stack][k] = start + nearest
            distance[:, nearest] = np.inf
    return order


def _eigvals_rule(ct: Any, a: Any, out: Any) -> Any:
    w, v = np.linalg.eig(a)
    ct = ct.reshape(-1)[matching(pb.value(w), pb.value(out))]
    return _solved(v, ct[..., :, None] * transposed(v))


# As above.
eigvals = primitive(lambda a: np.linalg.eigvals(a), name="eigvals", vjps={"a": _eigvals_rule})  # noqa: PLW0108


@pb.composite(np.linalg.eig, name="linalg.eig")
def np_eig(a: Any) -> Any:
    """numpy.linalg.eig."""
    return eig(as_array(a))


@pb.composite(np.linalg.eigvals, name="linalg.eigvals")
def np_eigvals(a: Any) -> Any:
    """numpy.linalg.eigvals."""
    return eigvals(as_array(a))


EIGEN = (eigh, eigvalsh, eig, eigvals, np_eigh, np_eigvalsh, np_eig, np_eigvals)
