"""``scipy.linalg`` with derivatives; a name without one is SciPy's own."""

from scipy import linalg

from pullback_scipy.dense.factors import cho_factor, cho_solve, cholesky, lu, lu_factor, lu_solve
from pullback_scipy.dense.functions import (
    coshm,
    cosm,
    expm,
    expm_frechet,
    fractional_matrix_power,
    logm,
    sinhm,
    sinm,
    solve_continuous_lyapunov,
    solve_sylvester,
    sqrtm,
    tanhm,
    tanm,
)
from pullback_scipy.dense.layouts import block_diag, circulant, companion, hankel, khatri_rao, kron, toeplitz
from pullback_scipy.dense.riccati import solve_continuous_are, solve_discrete_are, solve_discrete_lyapunov
from pullback_scipy.dense.solves import (
    det,
    inv,
    lstsq,
    norm,
    pinv,
    solve,
    solve_banded,
    solve_toeplitz,
    solve_triangular,
    solveh_banded,
)
from pullback_scipy.dense.spectra import eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from pullback_scipy.mirroring import fall_through

__getattr__, __dir__ = fall_through(linalg, globals())
__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "coshm", "cosm", "det", "eig",
    "eigh", "eigvals", "eigvalsh", "expm", "expm_frechet", "fractional_matrix_power", "hankel", "inv", "khatri_rao",
    "kron", "logm", "lstsq", "lu", "lu_factor", "lu_solve", "norm", "pinv", "qr", "sinhm", "sinm", "solve",
    "solve_banded", "solve_continuous_are", "solve_continuous_lyapunov", "solve_discrete_are",
    "solve_discrete_lyapunov", "solve_sylvester", "solve_toeplitz", "solve_triangular", "solveh_banded", "sqrtm",
    "svd", "svdvals", "tanhm", "tanm", "toeplitz",
]  # fmt: skip
