"""Which arguments a derivative is for: by position (``argnums``) or by name (``argnames``)."""

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, signature
from operator import index
from typing import Any

from attrs import field, frozen

from pullback.words.errors import StructureError


@frozen
class Chosen:
    """The arguments to differentiate with respect to, and the form in which their derivatives are given back."""

    numbers: tuple[int, ...]
    names: tuple[str, ...] | None
    """Names, in the place of numbers."""
    several: bool
    last: int = field(init=False)
    """The highest of the numbers; -1 where names are chosen, or a number counts from the end."""

    @last.default
    def _highest(self) -> int:
        return max(self.numbers) if self.numbers and min(self.numbers) >= 0 else -1

    def call(
        self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], Any, Sequence[int]]:
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
                message = (
                    f"argnames={name!r} of {_name_of(f)}: the call gives no argument of that name, only "
                    f"{', '.join([*known, *kwargs]) or 'none'}; pass it (a default has no derivative), or choose "
                    "another"
                )
                raise StructureError(message)
        places = {name: k for k, name in enumerate(known)} | {name: len(args) + k for k, name in enumerate(by_keyword)}
        where = [places[name] for name in self.names]
        if not by_keyword:
            return f, args, kwargs, where
        given, rest = len(args), {name: value for name, value in kwargs.items() if name not in by_keyword}

        @wraps(f)
        def by_position(*values: Any, **others: Any) -> Any:
            return f(*values[:given], **others, **dict(zip(by_keyword, values[given:], strict=True)))

        return by_position, (*args, *(kwargs[name] for name in by_keyword)), rest, where

    def structured(self, parts: Sequence[Any]) -> Any:
        """The derivatives as the user asked for them: the one, a tuple for several numbers, a dict for several
        names."""
        if not self.several:
            return parts[0]
        return tuple(parts) if self.names is None else dict(zip(self.names, parts, strict=True))


def chosen(argnums: int | Sequence[int], argnames: str | Sequence[str] | None) -> Chosen:
    """The choice that a transform was given. Raises :class:`StructureError` for both at once, and for one argument
    named twice."""
    if argnames is None:
        several = not hasattr(argnums, "__index__")
        try:
            numbers = tuple(map(index, argnums)) if several else (index(argnums),)  # type: ignore[arg-type]  # several says which it is
        except TypeError:
            message = (
                f"argnums={argnums!r} is no number of an argument; give 0 for the first, (0, 1) for several, or "
                "names by argnames="
            )
            raise StructureError(message) from None
        picked = Chosen(numbers, None, several)
    else:
        if isinstance(argnums, Sequence) or argnums != 0:
            message = f"argnums={argnums} and argnames={argnames!r} together; choose the arguments by one of them"
            raise StructureError(message)
        names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
        picked = Chosen((), names, not isinstance(argnames, str))
    given: tuple[Any, ...] = picked.numbers if picked.names is None else picked.names
    if len(set(given)) < len(given) or not given:
        fault = "an argument twice" if given else "no argument"
        message = f"{'argnums' if argnames is None else 'argnames'}={given} names {fault}; name each once"
        raise StructureError(message)
    return picked


def positions(numbers: Sequence[int], args: tuple[Any, ...], f: Any) -> list[int]:
    """The positions that ``numbers`` mean, negative ones counted from the end; raises :class:`StructureError` where
    there is none."""
    where = []
    for number in numbers:
        position = number + len(args) if number < 0 else number
        if not 0 <= position < len(args):
            message = (
                f"argnums={number} of {_name_of(f)}: the call has {len(args)} positional arguments; "
                f"pass the argument by position, or choose it by argnames="
            )
            raise StructureError(message)
        if position in where:
            message = f"argnums={tuple(numbers)} of {_name_of(f)} names argument {position} twice; name each once"
            raise StructureError(message)
        where.append(position)
    return where


def _bound(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], list[str]]:
    """The arguments of a call, by position where they can be, and the names of those that are given by position."""
    try:
        bound = signature(f).bind(*args, **kwargs)
    except ValueError:  # a function that tells no signature
        return args, kwargs, []
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    named = [name for name, parameter in bound.signature.parameters.items() if parameter.kind in kinds]
    return bound.args, bound.kwargs, named[: len(bound.args)]


def _name_of(f: Any) -> str:
    return getattr(f, "__name__", str(f))
