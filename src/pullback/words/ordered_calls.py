"""Calls that have an effect are made once: where their results are known they are handed out again. And the traces
under way that record collective calls."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final

import numpy as np

_FED: ContextVar[Iterator[Any] | None] = ContextVar("pullback_fed", default=None)
UNDER_WAY: Final[ContextVar[tuple[Any, ...]]] = ContextVar("pullback_tapes", default=())
"""The tapes of the traces under way in this thread or task, the innermost last."""


@contextmanager
def fed(results: Iterable[Any]) -> Iterator[None]:
    """Within the block no such call is made: each gives the next of these ``results``, copied. Raises LookupError where
    there are no more."""
    before = _FED.set(iter(list(results)))
    try:
        yield
    finally:
        _FED.reset(before)


def ordered_forward(forward: Callable[..., Any], *, copies: bool = True) -> Callable[..., Any]:
    """The forward of a primitive that is ``ordered``. It gets copies, which it may keep though what they are of
    changes, and what it gives is nobody else's; without ``copies`` it is trusted to keep nothing."""

    @wraps(forward)
    def called(*operands: Any, **params: Any) -> Any:
        results = _FED.get()
        if results is None:
            return _copied(forward(*map(_copied, operands), **params)) if copies else forward(*operands, **params)
        for result in results:
            return _copied(result)
        raise LookupError(f"{getattr(forward, '__name__', 'a primitive')} has an effect, and may not be tried")

    called.__pullback_ordered__ = True  # type: ignore[attr-defined]
    return called


def has_effect(function: Any) -> bool:
    """Whether a function is such a forward."""
    return getattr(function, "__pullback_ordered__", False) is True


def _copied(value: Any) -> Any:
    return value.copy(order="K") if isinstance(value, np.ndarray) else value
