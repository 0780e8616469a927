"""autograd's checks, as close as autograd looks; a failed one raises :class:`CheckError`, an AssertionError."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pullback as pb
from pullback_autograd.differential_operators import name_of, of_one, pull_of, push
from pullback_autograd.vector_spaces import vspace

TOL = RTOL = STEP = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """True for two numbers within 1e-6 of each other, or within 1e-6 of their sum."""
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def check_equivalent(x: Any, y: Any) -> None:
    """Raises :class:`CheckError` unless two values lie in one vector space and have equal products with a random
    vector of it."""
    x_space, y_space = vspace(x), vspace(y)
    if x_space != y_space:
        raise pb.CheckError(f"check_equivalent got values of {x_space} and {y_space}; pass two of one vector space")
    v = x_space.randn()
    ours, theirs = x_space.inner_prod(x, v), x_space.inner_prod(y, v)
    if not scalar_close(ours, theirs):
        message = f"check_equivalent: the values differ, their products with a random vector are {ours} and {theirs}"
        raise pb.CheckError(message)


def _numeric_push(f: Callable[[Any], Any], x: Any, v: Any) -> Any:
    """The derivative of ``f`` at ``x`` along ``v``, by a central difference of 1e-6."""
    x_space, y_space = vspace(x), vspace(f(x))
    ahead = f(x_space.add(x, x_space.scalar_mul(v, STEP / 2)))
    behind = f(x_space.add(x, x_space.scalar_mul(v, -STEP / 2)))
    return y_space.scalar_mul(y_space.add(ahead, y_space.scalar_mul(behind, -1.0)), 1.0 / STEP)


def check_vjp(f: Callable[[Any], Any], x: Any) -> None:
    """Raises :class:`CheckError` unless the pull of ``f`` at ``x`` and a numeric tangent agree in random
    directions."""
    out, pull = pull_of(f, x)
    x_space, y_space = vspace(x), vspace(out)
    v, w = x_space.randn(), y_space.randn()
    pulled = x_space.covector(pull(y_space.covector(w)))
    if vspace(pulled) != x_space:
        message = (
            f"Derivative (VJP) check of {name_of(f)} failed: the argument is of {x_space}, its gradient of "
            f"{vspace(pulled)}; let the rule return a cotangent of the argument's shape and dtype"
        )
        raise pb.CheckError(message)
    exact, numeric = x_space.inner_prod(v, pulled), y_space.inner_prod(w, _numeric_push(f, x, v))
    if not scalar_close(numeric, exact):
        message = (
            f"Derivative (VJP) check of {name_of(f)} failed: in a random direction it is {exact}, by differences "
            f"{numeric}; check the rules on the way with pullback.testing.check_grads, which names them"
        )
        raise pb.CheckError(message)


def check_jvp(f: Callable[[Any], Any], x: Any) -> None:
    """Raises :class:`CheckError` unless the tangent of ``f`` at ``x`` in a random direction is the numeric one."""
    v = vspace(x).randn()
    check_equivalent(push(f, x, v)[1], _numeric_push(f, x, v))


def check_grads(
    fun: Callable[..., Any], argnum: Any = 0, modes: Sequence[str] | None = None, order: int = 2
) -> Callable[..., None]:
    """A function of fun's arguments that raises :class:`CheckError` unless the derivatives up to ``order`` equal
    numeric ones in random directions, within 1e-6.

    From order 2 on the pull is itself checked, as a function of the argument and of its cotangent: so the rules of
    what a rule calls are checked as well. ``pullback.testing.check_grads`` looks closer (1e-8, every argument).
    """
    wanted = ("fwd", "rev") if modes is None else tuple(modes)
    if unknown := sorted(set(wanted) - {"fwd", "rev"}):
        raise ValueError(f"check_grads knows the modes 'fwd' and 'rev', got {unknown[0]!r}; pass one or both")

    def checks(*args: Any, **kwargs: Any) -> None:
        _check(*of_one(fun, argnum, args, kwargs), wanted, order)

    return checks


def _check(f: Callable[[Any], Any], x: Any, modes: tuple[str, ...], order: int) -> None:
    for mode, look in (("fwd", check_jvp), ("rev", check_vjp)):
        if mode not in modes:
            continue
        look(f, x)
        if order > 1:
            v = vspace(x if mode == "fwd" else f(x)).randn()
            _check(_derivative(f, mode), (x, v), modes, order - 1)


def _derivative(f: Callable[[Any], Any], mode: str) -> Callable[[Any], Any]:
    """The tangent or the pull of ``f`` as a function of one pair."""

    def of_pair(pair: Any) -> Any:
        x, v = pair
        return push(f, x, v)[1] if mode == "fwd" else pull_of(f, x)[1](v)

    of_pair.__name__ = f"{'jvp' if mode == 'fwd' else 'vjp'}_{name_of(f)}"
    return of_pair


def combo_check(fun: Callable[..., Any], *check_args: Any, **check_options: Any) -> Callable[..., None]:
    """A function of lists of arguments that checks every combination of them."""
    checks = check_grads(fun, *check_args, **check_options)

    def combined(*args: Any, **kwargs: Any) -> None:
        for positional in product(*args):
            for named in product(*kwargs.values()):
                checks(*positional, **dict(zip(kwargs, named, strict=True)))

    return combined


__all__ = ["check_equivalent", "check_grads", "check_jvp", "check_vjp", "combo_check", "scalar_close"]
