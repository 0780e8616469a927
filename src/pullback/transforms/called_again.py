"""Tangents, gradients and products by the stage of a call that has come before, also of functions and gradients that
are made anew in each call (``nested_derivatives``)."""

from collections.abc import Callable, Sequence
from typing import Any

from pullback.memory.in_force import depth
from pullback.staged_functions.hot_gradients import Hot
from pullback.staged_functions.known_functions import gradient_of
from pullback.words.structures import flatten

Jvp = Callable[..., Any]
FEW = 40
"""Products in the ordinary way before a stage is made: it takes as long as some of them."""


def gradient_called(hot: Hot, args: tuple[Any, ...], where: tuple[int, ...]) -> Any:
    """What the gradient gives, in a tuple; None where the ordinary way is to be taken."""
    # Imported here and below since few have derivatives within others, or ask for many.
    from pullback.nested_derivatives import called_derivatives  # noqa: PLC0415 - as above

    return called_derivatives.gradient_called(hot, args, where)


def tangent_called(jvp: Jvp, f: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Value and tangent of ``f``; None where the ordinary way is to be taken, as for a gradient that is kept, where no
    trace is around."""
    hot = gradient_of(f)
    if hot is not None:
        if not depth() and next(hot.others, None) is None:
            return None
        if not 0 <= hot.which.last < len(primals):
            return None
        return _tangent_of_gradient(jvp, hot, primals, tangents)
    from pullback.nested_derivatives.called_derivatives import called  # noqa: PLC0415 - as above

    args = (*primals, *tangents)
    found = called("tangent", f, args, lambda f, args: _both(jvp, f, args), lambda: list(jvp(f, primals, tangents)))
    return None if found is None else tuple(found)


def _tangent_of_gradient(jvp: Jvp, hot: Hot, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    from pullback.nested_derivatives.called_derivatives import called  # noqa: PLC0415 - as above

    def ordinary() -> list[Any]:
        return flatten(jvp(hot.anew(hot.f)[0], primals, tangents))[0]

    what = ("tangent of a gradient", hot.which.numbers, hot.with_value)
    args = (*primals, *tangents)
    found = called(what, hot.f, args, lambda f, args: _both(jvp, hot.anew(f)[0], args), ordinary, FEW)
    if found is None:
        return None
    n = len(found) // 2
    return tuple(hot.told((half[0], half[1:]) if hot.with_value else (None, half)) for half in (found[:n], found[n:]))


def product_called(
    product: Callable[..., Any], f: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> list[Any] | None:
    """What ``product(f, primals, tangents)`` gives for functions of arrays; None where that way is to be taken."""
    from pullback.nested_derivatives.called_derivatives import called  # noqa: PLC0415 - as above

    n = len(primals)
    return called(
        "product", f, (*primals, *tangents), lambda f, args: list(product(f, tuple(args[:n]), tuple(args[n:]))[0]),
        lambda: list(product(f, primals, tangents)[0]), FEW,
    )  # fmt: skip


def _both(jvp: Jvp, f: Any, args: list[Any]) -> list[Any]:
    """Value and tangent, where the function returns no structure."""
    n = len(args) // 2
    return [leaf for part in jvp(f, tuple(args[:n]), tuple(args[n:])) for leaf in flatten(part)[0]]
