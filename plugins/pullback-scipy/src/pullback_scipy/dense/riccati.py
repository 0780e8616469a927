"""Equations of Riccati and the discrete one of Lyapunov, for real matrices.

With the gain K and the closed loop F = A - B K, a small change of X solves F^T dX + dX F + M = 0, in discrete time
dX = F^T dX F + M, where M has the changes of A, B, Q and R. So a cotangent costs one equation of Lyapunov with F (Kao
and Hennequin, "Automatic differentiation of Sylvester, Lyapunov, and algebraic Riccati equations", 2020). X is
symmetric, and so is its cotangent taken to be.
"""

from typing import Any

import numpy as np
from scipy import linalg

from pullback_scipy.dense.functions import lyapunov
from pullback_scipy.mirroring import as_array, mirror, only, primitive, single

OPERANDS = "a", "b", "q", "r"


def _symmetric(x: Any) -> Any:
    return (x + x.T) / 2


def _parts(a: Any, b: Any, g: Any, gain: Any, x_closed: Any, needed: Any) -> tuple[Any, ...]:
    """The cotangents by that ``g`` of M, with X F in discrete time for ``x_closed``, and X for it in continuous."""
    return (
        2 * x_closed @ g if "a" in needed else None,
        -2 * x_closed @ g @ gain.T if "b" in needed else None,
        g if "q" in needed else None,
        gain @ g @ gain.T if "r" in needed else None,
    )


continuous = primitive(linalg.solve_continuous_are, operands=OPERANDS, params=(), name="scipy.solve_continuous_are")


@continuous.vjp(*OPERANDS)  # type: ignore[untyped-decorator]
def _continuous_rule(ct: Any, a: Any, b: Any, r: Any, out: Any, needed: Any) -> tuple[Any, ...]:
    gain = np.linalg.solve(r, b.T @ out)
    return _parts(a, b, -lyapunov(a - b @ gain, _symmetric(ct)), gain, out, needed)


discrete = primitive(linalg.solve_discrete_are, operands=OPERANDS, params=(), name="scipy.solve_discrete_are")


@discrete.vjp(*OPERANDS)  # type: ignore[untyped-decorator]
def _discrete_rule(ct: Any, a: Any, b: Any, r: Any, out: Any, needed: Any) -> tuple[Any, ...]:
    gain = np.linalg.solve(r + b.T @ out @ b, b.T @ out @ a)
    closed = a - b @ gain
    return _parts(a, b, discrete_lyapunov(closed, _symmetric(ct)), gain, out @ closed, needed)


discrete_lyapunov = primitive(
    linalg.solve_discrete_lyapunov, operands=("a", "q"), params=(), name="scipy.discrete_lyapunov"
)


@discrete_lyapunov.vjp("a", "q")  # type: ignore[untyped-decorator]
def _discrete_lyapunov_rule(ct: Any, a: Any, out: Any, needed: Any) -> tuple[Any, Any]:
    """The rule for x = a x a^T + q."""
    g = discrete_lyapunov(a.T, ct)
    return (g @ a @ out.T + g.T @ a @ out if "a" in needed else None), g


def _real(title: str, *matrices: Any) -> list[Any]:
    """The matrices as floating ones; raises for complex ones."""
    made = [as_array(x) * 1.0 for x in matrices]
    single(title, *made)
    only(title, "complex matrices", any(x.dtype.kind == "c" for x in made), False)
    return made


@mirror(linalg.solve_continuous_are, "a b q r")
def solve_continuous_are(a: Any, b: Any, q: Any, r: Any) -> Any:
    """The x with a^T x + x a - x b r^-1 b^T x + q = 0, and a stable closed loop."""
    return continuous(*_real("scipy.linalg.solve_continuous_are", a, b, q, r))


@mirror(linalg.solve_discrete_are, "a b q r")
def solve_discrete_are(a: Any, b: Any, q: Any, r: Any) -> Any:
    """The x with x = a^T x a - a^T x b (r + b^T x b)^-1 b^T x a + q, and a stable closed loop."""
    return discrete(*_real("scipy.linalg.solve_discrete_are", a, b, q, r))


@mirror(linalg.solve_discrete_lyapunov, "a q")
def solve_discrete_lyapunov(a: Any, q: Any) -> Any:
    """The x with x = a x a^T + q."""
    return discrete_lyapunov(*_real("scipy.linalg.solve_discrete_lyapunov", a, q))
