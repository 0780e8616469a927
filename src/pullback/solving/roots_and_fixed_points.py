"""``custom_root`` and ``fixed_point``. Their derivatives do not depend on the way to the solution: see
``implicit_derivative``."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.recording.crossing import by_value
from pullback.recording.handles import plain_value, twin_of
from pullback.solving.implicit_derivative import (
    Equation,
    Function,
    in_c_order,
    leafwise,
    require_alike,
    require_finite,
    solution,
    writable_copy,
)
from pullback.words.call_sites import public
from pullback.words.errors import ConvergenceError, StructureError
from pullback.words.specs import carries_derivative, spec_of
from pullback.words.structures import flatten, map_leaves


@public
def custom_root(
    f: Function,
    initial_guess: Any,
    solve: Function,
    tangent_solve: Function,
    *,
    has_aux: bool = False,
    tol: float | None = None,
) -> Any:
    """``x`` with ``f(x) = 0``, computed by ``solve(f, initial_guess)``; differentiable by whatever ``f`` closes over.

    Names and arguments as in JAX. All functions get plain arrays, at any order of differentiation, and may call SciPy.
    The derivative by ``initial_guess`` is 0.

    Parameters
    ----------
    f
        ``f(x)`` has the structure and shapes of ``x``.
    initial_guess
        What ``solve`` gets.
    solve
        ``solve(f, initial_guess)`` returns ``x``, a structure of floating or complex leaves; ``(x, aux)`` with
        ``has_aux``.
    tangent_solve
        ``tangent_solve(g, y)`` returns ``v`` with ``g(v) = y`` for a linear function ``g`` of such structures: the
        derivative of ``f`` at the root in forward mode, its transpose in reverse mode.
    has_aux
        The result is ``(x, aux)``.
    tol
        How large an element of ``f(x)`` may be; None: it is not looked at.

    Returns
    -------
    ``x``.

    Raises
    ------
    ConvergenceError
        Where ``x`` is not finite or, with ``tol``, where an element of ``f(x)`` is larger.
    StructureError
        Where ``f(x)`` has another structure or shape than ``x``.

    Example
    -------
    >>> import pullback as pb
    >>> def newton(f, x):
    ...     for _ in range(20):
    ...         x = x - f(x) / pb.grad(f)(x)
    ...     return x
    >>> def root(a):
    ...     return pb.custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> float(round(root(2.0), 6)), float(round(pb.grad(root)(4.0), 6))
    (1.414214, 0.25)
    """
    guess = map_leaves(plain_value, initial_guess)
    aux: list[Any] = []

    def compute() -> Any:
        x = solve(lambda v: map_leaves(by_value, f(v)), map_leaves(twin_of, guess))
        if has_aux:
            if not isinstance(x, tuple) or len(x) != 2:
                raise StructureError(
                    f"custom_root: with has_aux=True solve returns (root, aux), got {type(x).__name__}"
                )
            x, aux[:] = x[0], [x[1]]
        x = map_leaves(in_c_order, x)
        _require_root(f, x, tol)
        return x

    x = solution(Equation("custom_root", f, None, tangent_solve, tangent_solve), compute)
    return (x, aux[0]) if has_aux else x


@public
def fixed_point(
    f: Function,
    params: Any,
    x0: Any,
    *,
    tol: float | None = None,
    max_steps: int = 10_000,
    distance: Callable[[Any, Any], Any] | None = None,
) -> Any:
    """``x`` with ``f(params, x) = x``, by iteration from ``x0``; differentiable by ``params`` and by whatever ``f``
    closes over.

    The derivative is a fixed point, too, of ``v -> y + (df/dx) v`` or of the transpose, found with the same ``tol``,
    ``max_steps`` and ``distance`` in units of ``y``. Nothing is held of either iteration. The derivative by ``x0`` is
    0.

    Parameters
    ----------
    f
        ``f(params, x)`` has the structure and shapes of ``x``, and is a contraction.
    params
        Any structure.
    x0
        Where the iteration begins.
    tol
        It ends where ``distance(x_next, x)`` is no more; by default 64 eps of the dtype.
    max_steps
        How many iterations are allowed.
    distance
        By default the largest change of an element, in units of the largest element where that exceeds 1.

    Returns
    -------
    ``x``, with the structure of ``x0``.

    Raises
    ------
    ConvergenceError
        With ``residual`` and ``n_steps``, where ``max_steps`` do not suffice: ``f`` is no contraction there, or ``tol``
        is below what rounding allows.
    StructureError
        Where ``f`` returns another structure or shape.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> float(round(pb.grad(lambda a: pb.fixed_point(lambda a, x: a * np.cos(x), a, 0.5))(1.0), 6))
    0.441611
    """
    far = distance or largest_change
    eps = (float(np.finfo(spec_of(leaf).dtype).eps) for leaf in flatten(x0)[0] if carries_derivative(leaf))
    bound = 64 * max(eps, default=2.0**-52) if tol is None else tol

    def equation(x: Any) -> Any:
        return leafwise("fixed_point", np.subtract, x, f(params, x))

    def iterate(_: Any, x: Any) -> Any:
        return _iterated(lambda v: map_leaves(by_value, f(params, v)), x, far, bound, max_steps, "fixed_point")

    def neumann(g: Function, y: Any) -> Any:
        scale = max((float(np.max(np.abs(leaf), initial=0.0)) for leaf in flatten(y)[0]), default=0.0)
        if scale == 0:
            return y
        unit = map_leaves(lambda leaf: leaf / scale, y)

        def step(v: Any) -> Any:
            return leafwise("fixed_point", np.add, unit, leafwise("fixed_point", np.subtract, v, g(v)))

        return map_leaves(
            lambda leaf: leaf * scale, _iterated(step, unit, far, bound, max_steps, "the derivative of fixed_point")
        )

    return custom_root(equation, x0, iterate, neumann)


def largest_change(new: Any, old: Any) -> float:
    """The largest change of an element, in units of the largest element of ``new`` where that exceeds 1."""
    pairs = list(zip(flatten(new)[0], flatten(old)[0], strict=True))
    change = max((float(np.max(np.abs(np.subtract(a, b)), initial=0.0)) for a, b in pairs), default=0.0)
    return change / max((float(np.max(np.abs(a), initial=1.0)) for a, _ in pairs), default=1.0)


def _iterated(step: Function, x: Any, far: Function, tol: float, max_steps: int, what: str) -> Any:
    change, n = np.inf, 0
    while n < max_steps and (n == 0 or np.isfinite(change)):
        x, before, n = step(x), x, n + 1
        if n == 1:
            require_alike(what, before, x)
        change = float(far(x, before))
        if change <= tol:
            return x
    longer = "a larger max_steps= or tol=, " if np.isfinite(change) else ""
    raise ConvergenceError(
        f"{what} did not converge: after {n} steps the distance of two iterates is {change:.3g}, tol is {tol:.3g}; "
        f"give {longer}a start nearer to the solution, or damp the map (it must be a contraction there)",
        change,
        n,
    )


def _require_root(f: Function, x: Any, tol: float | None) -> None:
    require_finite("custom_root", x)
    if tol is None:
        return
    residual = max(
        (float(np.max(np.abs(plain_value(leaf)), initial=0.0)) for leaf in flatten(f(writable_copy(x)))[0]), default=0.0
    )
    if not residual <= tol:
        raise ConvergenceError(
            f"custom_root: the solver returned a point where the largest element of f is {residual:.3g}, tol is "
            f"{tol:.3g}; let it take more steps, or start it nearer to the root",
            residual,
        )
