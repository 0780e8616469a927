"""autograd's checks, by those of ``pullback.testing``; a failed one raises :class:`CheckError`, which is an
AssertionError."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from pullback.testing import check_grads as check
from pullback_autograd.differential_operators import of_one


def check_grads(
    fun: Callable[..., Any], argnum: Any = 0, modes: Sequence[str] = ("fwd", "rev"), order: int = 2
) -> Callable[..., None]:
    """A function of fun's arguments that raises :class:`CheckError` unless the derivatives up to ``order`` equal
    numeric ones."""

    def checks(*args: Any, **kwargs: Any) -> None:
        f, x = of_one(fun, argnum, args, kwargs)
        check(f, (x,), order=order, modes=tuple(modes))

    return checks


def combo_check(fun: Callable[..., Any], *check_args: Any, **check_options: Any) -> Callable[..., None]:
    """A function of lists of arguments that checks every combination of them."""
    checks = check_grads(fun, *check_args, **check_options)

    def combined(*args: Any, **kwargs: Any) -> None:
        for positional in product(*args):
            for named in product(*kwargs.values()):
                checks(*positional, **dict(zip(kwargs, named, strict=True)))

    return combined


__all__ = ["check_grads", "combo_check"]
