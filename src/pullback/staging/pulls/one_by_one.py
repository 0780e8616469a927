"""Calls one seed after the other: for functions that cannot take several seeds at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

from pullback.backends.plans import Ref
from pullback.staging.pulls.stacked_calls import StackedCall, empty_stacked, symbols_in
from pullback.staging.statements.symbols import Symbol, mapped


@frozen(eq=False)
class OneByOne:
    """A call made for one place after the other."""

    function: Callable[..., Any]
    arguments: Any
    """The arguments by position and by name; the places of the values that come in stand in them."""
    parts: tuple[Any, ...]
    """What stands after the number of the place in the key of the part of each value that comes in; None for what is
    the same for all."""
    like: Any
    """What one call makes; None for a write."""
    n: int

    @property
    def __name__(self) -> str:
        return f"one_by_one_{getattr(self.function, '__name__', 'call')}"

    def __call__(self, *values: Any) -> Any:
        """The results, stacked; nothing for a write."""
        out = None if self.like is None else empty_stacked(self.like, self.n)
        for place in range(self.n):
            found = self._called(place, values)
            if out is not None:
                out[place] = found
        return out

    def _called(self, place: int, values: tuple[Any, ...]) -> Any:
        each = [x if part is None else x[(place, *part)] for x, part in zip(values, self.parts, strict=True)]
        args, kwargs = mapped(self.arguments, lambda leaf: each[leaf.number] if type(leaf) is Ref else leaf)
        return self.function(*args, **kwargs)


def one_by_one(call: StackedCall) -> Any:
    """The call for one place after the other."""
    statement = call.statement
    symbols = list({symbol.number: symbol for symbol in symbols_in((call.args, call.kwargs))}.values())
    places = {symbol.number: k for k, symbol in enumerate(symbols)}
    parts = tuple(
        (((...,) if isinstance(call.single(x), np.ndarray) else ()) if call.has_axis(x) else None) for x in symbols
    )
    arguments = mapped(
        (call.args, call.kwargs), lambda leaf: Ref(places[leaf.number]) if type(leaf) is Symbol else leaf
    )
    if statement.writes:
        target = call.whole(0)
        whole = ((...,), *parts[1:])
        function = OneByOne(statement.function, arguments, whole, None, call.n)
        return call.program.write(target, function, *symbols[1:])
    return call.program.call(OneByOne(statement.function, arguments, parts, call.made, call.n), tuple(symbols), {})
