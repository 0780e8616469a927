"""Eigenvalues, singular values and orthogonal factors: SciPy's values, and the rules of pullback-linalg, which read
what SciPy gave: signs and phases of vectors are SciPy's."""

from typing import Any

import numpy as np
from scipy import linalg

import pullback as pb
from pullback_linalg.eigen import eig as numpy_eig
from pullback_linalg.eigen import eigh_cotangent, real_row
from pullback_linalg.eigen import eigvals as numpy_eigvals
from pullback_linalg.gauge import is_whole, of_triangle
from pullback_linalg.orthogonal import qr_cotangent
from pullback_linalg.singular import svd_cotangent
from pullback_scipy.mirroring import as_array, mirror, only, primitive, single

# ------------------------------------------------------------------------------------------------------------ Hermitian
# Of the triangles one bool is kept. The second rule is for a derivative of the derivative, and gives the same bits.
hermitian = primitive(
    lambda a, *, lower, driver: (linalg.eigh(a, lower=lower, driver=driver), {"whole": is_whole(a)}),
    name="scipy.eigh", outputs=("w", "v"), residuals=("whole",),
)  # fmt: skip


@hermitian.vjp("a")  # type: ignore[untyped-decorator]
def _eigh_rule(ct: Any, w: Any, v: Any, whole: Any, lower: bool) -> Any:
    if ct[1] is not None and v.dtype.kind == "c":
        v_plain = pb.value(v)
        if not np.allclose(np.imag(v_plain[real_row("L" if lower else "U")]), 0):
            only("scipy.linalg.eigh of complex numbers", "phase of the vectors", "another", "that of numpy.linalg.eigh")
    return of_triangle(eigh_cotangent(ct[0], ct[1], w, v, real_row("L" if lower else "U")), whole, lower)


@hermitian.vjp("a")  # type: ignore[untyped-decorator]
def _eigh_rule_again(ct: Any, a: Any, lower: bool, driver: Any) -> Any:
    return _eigh_rule(ct, *hermitian(a, lower=lower, driver=driver), is_whole(pb.value(a)), lower)


hermitian_values = primitive(
    lambda a, *, lower, driver: linalg.eigvalsh(a, lower=lower, driver=driver), name="scipy.eigvalsh"
)


@hermitian_values.vjp("a")  # type: ignore[untyped-decorator]
def _eigvalsh_rule(ct: Any, a: Any, lower: bool, driver: Any) -> Any:
    single("scipy.linalg.eigvalsh", a)
    w, v = hermitian(a, lower=lower, driver=driver)
    both = eigh_cotangent(ct, None, w, v, real_row("L" if lower else "U"))
    return of_triangle(both, is_whole(pb.value(a)), lower)


@mirror(linalg.eigh, "a")
def eigh(a: Any, *, lower: bool = True, eigvals_only: bool = False, driver: Any = None) -> Any:
    """Eigenvalues, and vectors unless ``eigvals_only``, of a Hermitian matrix."""
    if eigvals_only:
        return hermitian_values(as_array(a), lower=bool(lower), driver=driver)
    a = as_array(a)
    single("scipy.linalg.eigh", a)
    w, v = hermitian(a, lower=bool(lower), driver=driver)
    return w, v


@mirror(linalg.eigvalsh, "a")
def eigvalsh(a: Any, *, lower: bool = True, driver: Any = None) -> Any:
    """The eigenvalues of a Hermitian matrix."""
    return hermitian_values(as_array(a), lower=bool(lower), driver=driver)


# -------------------------------------------------------------------------------------------------------------- general
general = primitive(linalg.eig, operands=("a",), name="scipy.eig", outputs=("w", "v"))
general_values = primitive(linalg.eigvals, operands=("a",), name="scipy.eigvals")
general.vjp("a", fn=numpy_eig.rules["a"][0].fn)
general_values.vjp("a", fn=numpy_eigvals.rules["a"][0].fn)


@mirror(linalg.eig, "a")
def eig(a: Any) -> Any:
    """Eigenvalues and right vectors of a square matrix."""
    a = as_array(a)
    single("scipy.linalg.eig", a)
    w, v = general(a)
    return w, v


@mirror(linalg.eigvals, "a")
def eigvals(a: Any) -> Any:
    """The eigenvalues of a square matrix."""
    return general_values(as_array(a))


# ------------------------------------------------------------------------------------------------------ singular values
singular = primitive(
    lambda a, *, full_matrices, lapack_driver: linalg.svd(a, full_matrices, lapack_driver=lapack_driver),
    name="scipy.svd",
    outputs=("u", "s", "vh"),
    vjps={"a": svd_cotangent},
)
singular_values = primitive(
    lambda a, *, lapack_driver: linalg.svd(a, compute_uv=False, lapack_driver=lapack_driver), name="scipy.svdvals"
)


@singular_values.vjp("a")  # type: ignore[untyped-decorator]
def _svdvals_rule(ct: Any, a: Any, lapack_driver: str) -> Any:
    single("scipy.linalg.svdvals", a)
    u, s, vh = singular(a, full_matrices=False, lapack_driver=lapack_driver)
    return svd_cotangent((None, ct, None), u, s, vh)


@mirror(linalg.svd, "a")
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, lapack_driver: str = "gesdd") -> Any:
    """u, s, vh, or s alone."""
    a = as_array(a)
    if not compute_uv:
        return singular_values(a, lapack_driver=lapack_driver)
    single("scipy.linalg.svd", a)
    u, s, vh = singular(a, full_matrices=bool(full_matrices), lapack_driver=lapack_driver)
    return u, s, vh


@mirror(linalg.svdvals, "a")
def svdvals(a: Any) -> Any:
    """The singular values."""
    return singular_values(as_array(a), lapack_driver="gesdd")


# ------------------------------------------------------------------------------------------------------------------- QR
orthogonal = primitive(
    lambda a, *, mode: linalg.qr(a, mode=mode), name="scipy.qr", outputs=("q", "r"), vjps={"a": qr_cotangent}
)


@mirror(linalg.qr, "a")
def qr(a: Any, mode: str = "full") -> Any:
    """The factors q and r, or (r,) with ``mode="r"``."""
    only("scipy.linalg.qr", "mode", mode, "full", "r", "economic")
    a = as_array(a)
    single("scipy.linalg.qr", a)
    q, r = orthogonal(a, mode="full" if mode == "r" else mode)
    return (r,) if mode == "r" else (q, r)
