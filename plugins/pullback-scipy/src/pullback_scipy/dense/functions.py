"""Functions of matrices, and the equations of Sylvester and Lyapunov.

The derivative of f at a in the direction e stands beside the diagonal of f([[a, e], [0, a]]) (Higham, "Functions of
Matrices", 2008, theorem 3.6), and its transpose is that at a^T. Of expm SciPy has it as expm_frechet, three times as
expensive as expm; that of sqrtm solves an equation of Sylvester.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg

import pullback as pb
from pullback_linalg.products import conj, transposed
from pullback_scipy.mirroring import as_array, mirror, primitive, single


def beside_the_diagonal(function: Callable[..., Any], a: Any, e: Any) -> Any:
    """The derivative of a function of matrices at ``a`` in the direction ``e``."""
    n, zero = a.shape[-1], np.zeros(a.shape, a.dtype)
    above, below = np.concatenate((a, e), axis=-1), np.concatenate((zero, a), axis=-1)
    return function(np.concatenate((above, below), axis=-2))[..., :n, n:]


def function_of_matrices(function: Any) -> Any:
    """The primitive of a function of one matrix, whose derivative is had from twice the matrix."""
    made: Any = primitive(function, operands=("a",), name=f"scipy.{function.__name__}")
    made.vjp("a", fn=lambda ct, a: beside_the_diagonal(made, transposed(a), ct))
    return made


# ---------------------------------------------------------------------------------------------------------- exponential
def _frechet(a: Any, e: Any) -> Any:
    return linalg.expm_frechet(a, e, compute_expm=False)


def _frechet_rule(ct: Any, a: Any, e: Any, needed: Any) -> tuple[Any, Any]:
    of_e = frechet(transposed(a), ct) if "e" in needed else None
    if "a" not in needed:
        return None, of_e
    # <ct, d2 exp(a)(e, da)> is the derivative by a of <frechet(a^T, ct), e>: again a function of twice the matrix.
    n = a.shape[0]
    zero = np.zeros((n, n), a.dtype)
    twice = np.concatenate(
        (
            np.concatenate((transposed(a), ct), axis=1),
            np.concatenate((zero, transposed(a)), axis=1),
        ),
        axis=0,
    )
    turned = np.concatenate(
        (np.concatenate((transposed(e), zero), axis=1), np.concatenate((zero, transposed(e)), axis=1)), axis=0
    )
    return frechet(twice, turned)[:n, n:], of_e


frechet = primitive(_frechet, name="scipy.expm_frechet")
frechet.vjp("a", "e", fn=_frechet_rule)


def _both_rule(ct: Any, a: Any, e: Any) -> tuple[Any, Any]:
    of_exp, of_derivative = ct
    of_a: Any = np.zeros(a.shape, a.dtype) if of_exp is None else frechet(transposed(a), of_exp)
    if of_derivative is None:
        return of_a, np.zeros(e.shape, e.dtype)
    more, of_e = _frechet_rule(of_derivative, a, e, ("a", "e"))
    return of_a + more, of_e


exponential_and_frechet = primitive(
    linalg.expm_frechet,
    operands=(
        "a",
        "e",
    ),
    name="scipy.expm_and_frechet",
    outputs=("exponential", "derivative"),
)
exponential_and_frechet.vjp("a", "e", fn=_both_rule)


def _expm_rule(ct: Any, a: Any) -> Any:
    if a.ndim == 2:
        return frechet(transposed(a), ct)
    flat, cts = np.reshape(a, (-1, *a.shape[-2:])), np.reshape(ct, (-1, *a.shape[-2:]))
    parts = [frechet(transposed(flat[k]), cts[k]) for k in range(flat.shape[0])]
    return np.reshape(np.stack(parts), a.shape) if parts else ct


exponential = primitive(linalg.expm, operands=("a",), name="scipy.expm", vjps={"a": _expm_rule})


@mirror(linalg.expm, "A")
def expm(A: Any) -> Any:
    """The exponential of every matrix."""
    A = as_array(A)
    return exponential(A) if A.ndim > 1 else np.exp(np.reshape(A, (1, 1)))


@mirror(linalg.expm_frechet, "A E")
def expm_frechet(A: Any, E: Any, compute_expm: bool = True) -> Any:
    """The exponential at A, if wanted, and its derivative in the direction E."""
    A, E = as_array(A), as_array(E)
    single("scipy.linalg.expm_frechet", A, E)
    return tuple(exponential_and_frechet(A, E)) if compute_expm else frechet(A, E)


# ------------------------------------------------------------------------------------------------------------ Sylvester
def _sylvester_rule(ct: Any, a: Any, b: Any, out: Any, needed: Any) -> tuple[Any, Any, Any]:
    g = sylvester(transposed(a), transposed(b), ct)
    return (
        -g @ transposed(out) if "a" in needed else None,
        -transposed(out) @ g if "b" in needed else None,
        g if "q" in needed else None,
    )


sylvester = primitive(
    linalg.solve_sylvester,
    operands=(
        "a",
        "b",
        "q",
    ),
    name="scipy.solve_sylvester",
)
sylvester.vjp("a", "b", "q", fn=_sylvester_rule)


@mirror(linalg.solve_sylvester, "a b q")
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The x with a x + x b = q."""
    return sylvester(as_array(a), as_array(b), as_array(q))


lyapunov = primitive(
    linalg.solve_continuous_lyapunov,
    operands=(
        "a",
        "q",
    ),
    name="scipy.lyapunov",
)


@lyapunov.vjp("a", "q")  # type: ignore[untyped-decorator]
def _lyapunov_rule(ct: Any, a: Any, out: Any, needed: Any) -> tuple[Any, Any]:
    """The rule for a x + x a^H = q."""
    g = lyapunov(transposed(a), ct)
    if "a" not in needed:
        return None, g
    return -(g @ transposed(out)) - conj(transposed(g) @ out), g


@mirror(linalg.solve_continuous_lyapunov, "a q")
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """The x with a x + x a^H = q."""
    return lyapunov(as_array(a), as_array(q))


root = primitive(
    linalg.sqrtm,
    operands=("a",),
    name="scipy.sqrtm",
    vjps={"a": lambda ct, out: sylvester(transposed(out), transposed(out), ct)},
)


@mirror(linalg.sqrtm, "A")
def sqrtm(A: Any) -> Any:
    """The principal root."""
    return root(as_array(A))


# ------------------------------------------------------------------------------------------------------------- the rest
def _mirrored(function: Any) -> tuple[Any, Any]:
    made = function_of_matrices(function)
    return made, mirror(function, "A")(lambda A: made(as_array(A)))


_logm, logm = _mirrored(linalg.logm)
_cosm, cosm = _mirrored(linalg.cosm)
_sinm, sinm = _mirrored(linalg.sinm)
_tanm, tanm = _mirrored(linalg.tanm)
_coshm, coshm = _mirrored(linalg.coshm)
_sinhm, sinhm = _mirrored(linalg.sinhm)
_tanhm, tanhm = _mirrored(linalg.tanhm)

power = primitive(lambda a, *, t: linalg.fractional_matrix_power(a, t), name="scipy.fractional_matrix_power")


@power.vjp("a")  # type: ignore[untyped-decorator]
def _power_rule(ct: Any, a: Any, t: Any) -> Any:
    return beside_the_diagonal(lambda x: power(x, t=t), transposed(a), ct)


@mirror(linalg.fractional_matrix_power, "A")
def fractional_matrix_power(A: Any, t: Any) -> Any:
    """The power of a matrix with a plain exponent."""
    return power(as_array(A), t=pb.value(t))
