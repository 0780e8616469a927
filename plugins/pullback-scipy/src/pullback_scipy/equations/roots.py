"""Roots and fixed points: root, fsolve, root_scalar and its methods, newton, fixed_point.

SciPy finds the solution on plain values; the derivative is that of the implicit function, by everything that the
equations depend on: ``args`` and what they close over. That by the start is 0.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

import pullback as pb
from pullback_scipy.equations.pinning import plain, plainly, result, separate, solved

FACTORS = ("fjac", "r", "qtf", "jac", "cov_x")
"""What methods tell of the slopes of the equations."""
RTOL = 4 * float(np.finfo(float).eps)


def several(args: Any) -> tuple[Any, ...]:
    """``args`` as SciPy takes them: a tuple, or one argument."""
    return args if isinstance(args, tuple) else (args,)


def served(function: Any, by: str) -> Callable[[Any], Any]:
    """Decorator: the counterpart of a function of SciPy's that takes a function; ``by`` are its arguments."""

    def build(counterpart: Any) -> Any:
        counterpart.by = tuple(by.split())
        counterpart.__wrapped__ = function
        return counterpart

    return build


def rooted(f: Any, args: Any, start: Any, solve: Callable[..., Any], tangent: Any = solved) -> tuple[Any, Any]:
    """The root that ``solve(f, args, start)`` finds on plain values, and whatever it gives beside: it returns both."""
    args = several(args)
    found: list[Any] = []

    def way(_: Any, guess: Any) -> Any:
        x, rest = solve(plainly(f), plain(args), guess)
        found[:] = [rest]
        return np.asarray(x, np.result_type(x, float))[()]

    x = pb.custom_root(lambda x: shaped(f(x, *args), x), start, way, tangent)
    return x, found[0] if found else None


def shaped(y: Any, x: Any) -> Any:
    """The equations in the shape of the unknowns."""
    y = pb.numpy.asarray(y)
    return np.reshape(y, np.shape(x)) if np.shape(y) != np.shape(x) else y


@served(optimize.root, "fun args")
def root(fun: Any, x0: Any, args: Any = (), method: str = "hybr", jac: Any = None, tol: Any = None,
         callback: Any = None, options: Any = None) -> Any:  # fmt: skip
    """The root of a system of equations."""
    given = jac is True

    def solve(f: Any, args: Any, guess: Any) -> Any:
        found = optimize.root(
            f, guess, args, method, jac if not callable(jac) else plainly(jac), tol, callback, options
        )
        return found.x, found

    x, found = rooted((lambda x, *args: fun(x, *args)[0]) if given else fun, args, x0, solve if not given else
                      lambda f, args, guess: solve(plainly(fun), args, guess))  # fmt: skip
    without = FACTORS if isinstance(x, pb.Tracer) else ()
    return result(found, without, "write pullback.jacobian at x", x=x)


@served(optimize.fsolve, "func args")
def fsolve(func: Any, x0: Any, args: Any = (), fprime: Any = None, full_output: Any = 0, **options: Any) -> Any:
    """The root of a system of equations, as MINPACK finds it."""

    def solve(f: Any, args: Any, guess: Any) -> Any:
        x, *rest = optimize.fsolve(f, guess, args, plainly(fprime), full_output=True, **options)
        return x, rest

    x, found = rooted(func, args, np.atleast_1d(plain(x0)), solve)
    if not full_output:
        return x
    without = FACTORS if isinstance(x, pb.Tracer) else ()
    return (x, result(found[0], without, "write pullback.jacobian at x"), *found[1:])


def bracketed(function: Any) -> Any:
    """The counterpart of a method that finds one root between two points."""

    def call(f: Any, a: Any, b: Any, args: Any = (), xtol: Any = 2e-12, rtol: Any = RTOL,
             maxiter: Any = 100, full_output: Any = False, disp: Any = True, **more: Any) -> Any:  # fmt: skip
        def solve(f: Any, args: Any, guess: Any) -> Any:
            return function(
                f, plain(a), plain(b), args, xtol=xtol, rtol=rtol, maxiter=maxiter, full_output=True, disp=disp, **more
            )

        x, found = rooted(f, args, plain(a), solve)
        return (x, found) if full_output else x

    call.__name__ = function.__name__
    return served(function, "f args")(call)


brentq, brenth = bracketed(optimize.brentq), bracketed(optimize.brenth)
ridder, bisect = bracketed(optimize.ridder), bracketed(optimize.bisect)


@served(optimize.toms748, "f args")
def toms748(f: Any, a: Any, b: Any, args: Any = (), k: Any = 1, full_output: Any = False, **options: Any) -> Any:
    """The root of a function between two points."""

    def solve(f: Any, args: Any, guess: Any) -> Any:
        return optimize.toms748(f, plain(a), plain(b), args, k, full_output=True, **options)

    x, found = rooted(f, args, plain(a), solve)
    return (x, found) if full_output else x


@served(optimize.root_scalar, "f args")
def root_scalar(f: Any, args: Any = (), method: Any = None, bracket: Any = None, fprime: Any = None,
                fprime2: Any = None, x0: Any = None, x1: Any = None, **options: Any) -> Any:  # fmt: skip
    """The root of a function of one number."""
    slope = fprime if isinstance(fprime, bool) else plainly(fprime)
    curve = fprime2 if isinstance(fprime2, bool) else plainly(fprime2)

    def solve(_: Any, args: Any, guess: Any) -> Any:
        found = optimize.root_scalar(
            plainly(f), args, method, plain(bracket), slope, curve, plain(x0), plain(x1), **options
        )
        return found.root, found

    alone = (lambda x, *args: f(x, *args)[0]) if fprime is True or fprime2 is True else f
    x, found = rooted(alone, args, 0.0, solve)
    return result(found, root=x)


@served(optimize.newton, "func args")
def newton(func: Any, x0: Any, fprime: Any = None, args: Any = (), tol: Any = 1.48e-8, maxiter: Any = 50,
           fprime2: Any = None, x1: Any = None, rtol: Any = 0.0, full_output: Any = False,
           disp: Any = True) -> Any:  # fmt: skip
    """The root of a function, or of one for each element of an array."""

    def solve(f: Any, args: Any, guess: Any) -> Any:
        found = optimize.newton(
            f, guess, plainly(fprime), args, tol, maxiter, plainly(fprime2), plain(x1), rtol, True, disp
        )
        return found[0], found[1:]

    x, found = rooted(func, args, plain(x0), solve, separate)
    return (x, *found) if full_output else x


@served(optimize.fixed_point, "func args")
def fixed_point(func: Any, x0: Any, args: Any = (), xtol: Any = 1e-8, maxiter: Any = 500, method: str = "del2") -> Any:
    """The fixed point of a function."""

    def solve(_: Any, args: Any, guess: Any) -> Any:
        return optimize.fixed_point(plainly(func), guess, args, xtol, maxiter, method), None

    return rooted(lambda x, *args: x - func(x, *args), args, plain(x0), solve)[0]
