"""Calls that have an effect: where what they gave is known already, they are not made again."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any

import numpy as np

_FED: ContextVar[Iterator[Any] | None] = ContextVar("pullback_fed", default=None)


@contextmanager
def fed(results: Iterable[Any]) -> Iterator[None]:
    """Within the block no such call is made: each gives the next of these ``results``, copied. Raises LookupError where
    there are no more."""
    before = _FED.set(iter(list(results)))
    try:
        yield
    finally:
        _FED.reset(before)


def ordered_forward(forward: Callable[..., Any]) -> Callable[..., Any]:
    """The forward of a primitive that is ``ordered``. What it gives is nobody else's."""

    @wraps(forward)
    def called(*operands: Any, **params: Any) -> Any:
        results = _FED.get()
        if results is None:
            return _copied(forward(*operands, **params))
        for result in results:
            return _copied(result)
        raise LookupError(f"{getattr(forward, '__name__', 'a primitive')} has an effect, and may not be tried")

    return called


@cache
def on_copies(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Such a forward in a generated function, whose arrays change: it may keep what it is given."""

    @wraps(forward)
    def called(*operands: Any, **params: Any) -> Any:
        return forward(*map(_copied, operands), **params)

    called.__pullback_ordered__ = True  # type: ignore[attr-defined]
    return called


def has_effect(function: Any) -> bool:
    """Whether a function is one of these."""
    return getattr(function, "__pullback_ordered__", False) is True


def _copied(value: Any) -> Any:
    return value.copy(order="K") if isinstance(value, np.ndarray) else value
