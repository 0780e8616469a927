"""Which arguments to differentiate by: ``argnums`` (positions) or ``argnames`` (names), as a transform was told and as
a call has them."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import Parameter, signature
from operator import index
from typing import Any

from attrs import field, frozen

from pullback.words.errors import StructureError


@frozen
class Chosen:
    """The arguments to differentiate by, and the form of the result: one derivative, a tuple, or a dict."""

    numbers: tuple[int, ...]
    names: tuple[str, ...] | None
    """Names, in the place of numbers; None where there are numbers."""
    several: bool
    last: int = field(init=False)
    """The highest of the numbers; -1 where names are chosen, or a number counts from the end."""

    @last.default
    def _highest(self) -> int:
        return max(self.numbers) if self.numbers and min(self.numbers) >= 0 else -1

    def call(
        self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], Any, tuple[int, ...]]:
        """A function, its arguments, and the positions among them of those that were chosen.

        An argument chosen by name and given by keyword becomes a positional one of the function returned. Raises
        :class:`StructureError` where the call has no such argument.
        """
        if self.names is None:
            return f, args, kwargs, positions(self.numbers, args, f)
        args, kwargs, known = _bound(f, args, kwargs)
        by_keyword = [name for name in self.names if name not in known and name in kwargs]
        for name in self.names:
            if name not in known and name not in by_keyword:
                raise StructureError(
                    f"argnames={name!r} of {name_of(f)}: the call gives no argument of that name, only "
                    f"{', '.join([*known, *kwargs]) or 'none'}; pass it (a default has no derivative), or choose "
                    "another"
                )
        places = {name: k for k, name in enumerate(known)} | {name: len(args) + k for k, name in enumerate(by_keyword)}
        where = tuple(places[name] for name in self.names)
        if not by_keyword:
            return f, args, kwargs, where
        n, rest = len(args), {name: value for name, value in kwargs.items() if name not in by_keyword}

        @wraps(f)
        def by_position(*values: Any, **others: Any) -> Any:
            return f(*values[:n], **others, **dict(zip(by_keyword, values[n:], strict=True)))

        return by_position, (*args, *(kwargs[name] for name in by_keyword)), rest, where

    def structured(self, parts: Sequence[Any]) -> Any:
        """The derivatives as the user asked for them: the one, a tuple for several numbers, a dict for several
        names."""
        if not self.several:
            return parts[0]
        return tuple(parts) if self.names is None else dict(zip(self.names, parts, strict=True))


def chosen(argnums: int | Sequence[int], argnames: str | Sequence[str] | None) -> Chosen:
    """The choice that ``argnums`` and ``argnames`` make. Raises :class:`StructureError` for both at once, and for one
    argument named twice."""
    if argnames is None:
        several = not hasattr(argnums, "__index__")
        try:
            # Several says which it is.
            numbers = tuple(map(index, argnums)) if several else (index(argnums),)  # type: ignore[arg-type]
        except TypeError:
            raise StructureError(
                f"argnums={_shown(argnums)} is no number of an argument; give 0 for the first, (0, 1) for several, or "
                "names by argnames=; the arguments go to what the transform gives: grad(f)(x), not grad(f, x)"
            ) from None
        choice = Chosen(numbers, None, several)
    else:
        if isinstance(argnums, Sequence) or argnums != 0:
            raise StructureError(
                f"argnums={argnums} and argnames={argnames!r} together; choose the arguments by one of them"
            )
        names = (argnames,) if isinstance(argnames, str) or not isinstance(argnames, Iterable) else tuple(argnames)
        if not all(isinstance(name, str) for name in names):
            raise StructureError(f"argnames={_shown(argnames)} is no name of an argument; numbers go to argnums=")
        choice = Chosen((), names, not isinstance(argnames, str))
    words: tuple[Any, ...] = choice.numbers if choice.names is None else choice.names
    if len(set(words)) < len(words) or not words:
        fault = "an argument twice" if words else "no argument"
        raise StructureError(f"{'argnums' if argnames is None else 'argnames'}={words} names {fault}; name each once")
    return choice


def positions(numbers: Sequence[int], args: tuple[Any, ...], f: Any) -> tuple[int, ...]:
    """The positions that ``numbers`` mean, negative ones counted from the end; raises :class:`StructureError` where
    there is none."""
    where: list[int] = []
    for number in numbers:
        position = number + len(args) if number < 0 else number
        if not 0 <= position < len(args):
            raise StructureError(
                f"argnums={number} of {name_of(f)}: the call gives {len(args)} by position; "
                f"pass the argument by position (derivatives also take argnames=)"
            )
        if position in where:
            raise StructureError(
                f"argnums={tuple(numbers)} of {name_of(f)} names argument {position} twice; name each once"
            )
        where.append(position)
    return tuple(where)


def _bound(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], list[str]]:
    """The arguments of a call, by position where that is possible, and the names of the positional ones."""
    try:
        bound = signature(f).bind(*args, **kwargs)
    except ValueError:  # no signature: many functions written in C have none
        return args, kwargs, []
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    named = [name for name, parameter in bound.signature.parameters.items() if parameter.kind in kinds]
    return bound.args, bound.kwargs, named[: len(bound.args)]


def function_of_chosen(
    f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], where: Sequence[int]
) -> Callable[..., Any]:
    """``f`` as a function of the arguments at the positions ``where`` alone; the others keep their values. It is ``f``
    itself, of which something may be known, where these are all."""
    if not kwargs and list(where) == list(range(len(args))):
        return f

    @wraps(f)
    def chosen_only(*values: Any) -> Any:
        filled = dict(zip(where, values, strict=True))
        return f(*(filled.get(k, value) for k, value in enumerate(args)), **kwargs)

    return chosen_only


def name_of(f: Any) -> str:
    """What titles and messages call a function."""
    return str(getattr(f, "__name__", type(f).__name__))


def _shown(argnums: Any) -> str:
    """What was given, but never a whole array or structure."""
    return repr(argnums) if isinstance(argnums, int | float | str) else type(argnums).__name__
