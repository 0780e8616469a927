"""Tangents, gradients and products by the stage of a call that has come before, also of functions and gradients that
are made anew in each call (``transforms.nested``)."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from pullback.memory.in_force import depth
from pullback.staging.calls.hot_gradients import Hot
from pullback.staging.calls.known_functions import gradient_of, staged_of
from pullback.words.call_sites import MISSED
from pullback.words.structures import flatten

Jvp = Callable[..., Any]
_ROOM = "pullback.transforms.nested.called_derivatives"
FEW = 40
"""Products in the ordinary way before a stage is made: it takes as long as some of them."""


def gradient_called(hot: Hot, args: tuple[Any, ...], where: tuple[int, ...]) -> Any:
    """What the gradient gives, in a tuple; None where the ordinary way is to be taken."""
    # Imported here and below since few have derivatives within others, or ask for many.
    from pullback.transforms.nested import called_derivatives  # noqa: PLC0415 - as above

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
    from pullback.transforms.nested.called_derivatives import called  # noqa: PLC0415 - as above

    args = (*primals, *tangents)
    found = called("tangent", f, args, lambda f, args: _both(jvp, f, args), lambda: list(jvp(f, primals, tangents)))
    return None if found is None else tuple(found)


def _tangent_of_gradient(jvp: Jvp, hot: Hot, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    from pullback.transforms.nested.called_derivatives import called  # noqa: PLC0415 - as above

    def ordinary() -> list[Any]:
        return flatten(jvp(hot.anew(hot.f)[0], primals, tangents))[0]

    args = (*primals, *tangents)
    found = called(_tangent_of(hot), hot.f, args, lambda f, args: _both(jvp, hot.anew(f)[0], args), ordinary, FEW)
    return None if found is None else _halves(hot, found)


def _tangent_of(hot: Hot) -> Any:
    """How the tangent of a gradient is known."""
    return "tangent of a gradient", hot.which.numbers, hot.with_value


def _halves(hot: Hot, found: list[Any]) -> tuple[Any, Any]:
    """A gradient and its tangent, as users have them."""
    n = len(found) // 2
    halves = [found[:n], found[n:]]
    first, second = (hot.told((half[0], half[1:]) if hot.with_value else (None, half)) for half in halves)
    return first, second


def product_called(
    product: Callable[..., Any], f: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> list[Any] | None:
    """What ``product(f, primals, tangents)`` gives for functions of arrays; None where that way is to be taken."""
    from pullback.transforms.nested.called_derivatives import called  # noqa: PLC0415 - as above

    n = len(primals)
    return called(
        "product", f, (*primals, *tangents), lambda f, args: list(product(f, tuple(args[:n]), tuple(args[n:]))[0]),
        lambda: list(product(f, primals, tangents)[0]), FEW,
    )  # fmt: skip


def by_caller(what: Any, f: Any, args: tuple[Any, ...]) -> Any:
    """The values that the caller of a derivative gives, in a list; MISSED where there is none."""
    # While nothing has imported the room there is no caller.
    return sys.modules[_ROOM].by_caller(what, f, args) if _ROOM in sys.modules else MISSED


def gradient_by_caller(held: Callable[[], Hot | None], args: tuple[Any, ...]) -> Any:
    """What the caller of gradients like this one gives, while it is new; MISSED where there is none."""
    hot = held()
    if hot is None or next(hot.others, None) is None:
        return MISSED
    where = hot.which.numbers
    n = 1 if hot.with_value else 0
    found = by_caller(("gradient", where, n), hot.f, args) if 0 <= hot.which.last < len(args) else MISSED
    return MISSED if found is MISSED else hot.told((found[0] if n else None, found[n:]))


def product_by_caller(args: tuple[Any, ...]) -> Any:
    """What the caller of products that come again gives, for the arguments of ``hvp``; MISSED where there is none."""
    if not _are_pairs(args):
        return MISSED
    f, primals, tangents = args
    found = by_caller("product", f, (*primals, *tangents))
    return found if found is MISSED else found[0] if len(primals) == 1 else tuple(found)


def tangent_by_caller(args: tuple[Any, ...]) -> Any:
    """What the caller of a warm shortcut gives, or of tangents that come again, for the arguments of ``jvp``; MISSED
    where there is none."""
    if not _are_pairs(args):
        return MISSED
    f, primals, tangents = args
    owner = staged_of(f) or gradient_of(f)
    if owner is None:
        found = by_caller("tangent", f, (*primals, *tangents))
        return found if found is MISSED else tuple(found)
    caller = None if owner.warm is None else owner.warm.tangent_caller
    if caller is not None:
        return caller((*primals, *tangents))
    if type(owner) is not Hot or not 0 <= owner.which.last < len(primals) or next(owner.others, None) is None:
        return MISSED
    found = by_caller(_tangent_of(owner), owner.f, (*primals, *tangents))
    return found if found is MISSED else _halves(owner, found)


def _are_pairs(args: tuple[Any, ...]) -> bool:
    return len(args) == 3 and type(args[1]) is type(args[2]) is tuple and len(args[1]) == len(args[2])


def _both(jvp: Jvp, f: Any, args: list[Any]) -> list[Any]:
    """Value and tangent, where the function returns no structure."""
    n = len(args) // 2
    return [leaf for part in jvp(f, tuple(args[:n]), tuple(args[n:])) for leaf in flatten(part)[0]]
