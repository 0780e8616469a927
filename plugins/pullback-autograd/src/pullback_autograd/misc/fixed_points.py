"""The derivative of a fixed point, by the implicit function theorem: nothing of the iteration is recorded."""

from collections.abc import Callable
from typing import Any

import pullback as pb
from pullback_autograd.misc.flatten import flatten


def fixed_point(
    f: Callable[[Any], Callable[[Any], Any]], a: Any, x0: Any, distance: Callable[[Any, Any], Any], tol: float
) -> Any:
    """The x with ``f(a)(x) = x``, reached from ``x0``: iterated until ``distance(x, x_previous)`` is below ``tol``.

    Differentiable in ``a`` (any structure); the start has no influence on the fixed point. ``f`` may close over no
    traced value.
    """
    vector, unflatten = flatten(a)

    def of_vector(vector: Any) -> Callable[[Any], Any]:
        return f(unflatten(vector))

    return _solution(vector, pb.value(x0), of_vector=of_vector, distance=distance, tol=tol)


def _iterate(a: Any, x0: Any, *, of_vector: Any, distance: Any, tol: float) -> Any:
    step, previous = of_vector(a), x0
    x = step(x0)
    while distance(x, previous) >= tol:
        x, previous = step(x), x
    return x


_solution = pb.primitive(_iterate, name="fixed_point", nondiff=("x0",))


@_solution.vjp("a")
def _pull_solution(ct: Any, a: Any, out: Any, of_vector: Any, distance: Any, tol: float) -> Any:
    """(dF/da)^T w, with x = F(a, x) and w = ct + (dF/dx)^T w, itself a fixed point."""

    def adjoint(both: Any) -> Callable[[Any], Any]:
        _, pull = pb.vjp(of_vector(both[1]), both[2])
        return lambda w: both[0] + pull(w)[0]

    w = fixed_point(adjoint, (ct, a, out), ct, distance, tol)
    _, pull = pb.vjp(lambda a: of_vector(a)(out), a)
    return pull(w)[0]


__all__ = ["fixed_point"]
