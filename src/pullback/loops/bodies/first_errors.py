"""Under which error state of NumPy, and which filters of warnings, a body is called again: those of the first run, for
it may have caught what they made an error."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache, wraps
from typing import Any

import numpy as np
from attrs import define, field

from pullback.words.call_sites import RAISED, Log
from pullback.words.errors import PullbackError, say_where
from pullback.words.undocumented import error_state, make_error_state, set_error_state


@define(eq=False)
class FirstErrors:
    """What was in force when a loop began."""

    filters: list[Any] = field(factory=lambda: list(warnings.filters), init=False)
    n_raised: int = field(factory=lambda: RAISED[0], init=False)
    state: Any = field(factory=error_state, init=False)

    @contextmanager
    def put_back(self, *, state: bool) -> Iterator[Any]:
        """In the block the filters are those, and if asked for the error ``state``, where it makes a difference: it
        raises, or calls somebody, or a warning has been an error since. The state is given then."""
        others = warnings.filters != self.filters
        with warnings.catch_warnings() if others else nullcontext():
            if others:
                filters: Any = warnings.filters  # of typeshed's a sequence
                filters[:] = self.filters
            before = error_state()
            again = _state_again(self.state, raised=self.n_raised != RAISED[0])
            if state and again is not None:
                set_error_state(again)
            try:
                yield again
            finally:
                if state and again is not None:
                    set_error_state(before)

    @contextmanager
    def of_steps(self, steps: Any) -> Iterator[None]:
        """In the block the body of a loop is called so, and says of an error that the first run has not met it."""
        with self.put_back(state=False) as again:
            call = steps.call
            steps.call = _called_again(call, steps.name, again)
            if again is not None:  # stages compute when the body is over, which catches nothing then
                steps.staging = None
            try:
                yield
            finally:
                steps.call = call


def warnings_are_errors() -> bool:
    """Whether a filter makes errors of warnings of NumPy's."""
    return any(how == "error" and issubclass(RuntimeWarning, kind) for how, _, kind, *_ in warnings.filters)


def _called_again(call: Callable[..., Any], name: str, state: Any) -> Callable[..., Any]:
    """A body for re-runs, called in that error state, or of None in the one in force."""

    @wraps(call)
    def called(k: Any, carry: Any, x: Any) -> Any:
        before = error_state()
        if state is not None:
            set_error_state(state)
        try:
            return call(k, carry, x)
        except Exception as error:
            if not isinstance(error, PullbackError):
                say_where(error, f"{name}: {_NOT_BEFORE.format(k)}")
            raise
        finally:
            if state is not None:
                set_error_state(before)

    return called


_NOT_BEFORE = (
    "step {} was run again and raised this, which it did not in the first run. The body reads something that changed "
    "in between: an iterator, a list that it changes, an object that is gone. Make it part of the state"
)


class _Again(Log):
    """What has been told hands on what a filter makes an error of."""

    def write(self, text: str) -> None:
        with warnings.catch_warnings(record=True):
            super().write(text)


@lru_cache(100)
def _state_again(state: Any, *, raised: bool) -> Any:
    """The error state for what is done again, in the place of another one: what raised raises, what was told is not
    told again. None where that is the state that ignores everything, and where no state can be made; of warnings only
    those count that have ``raised``."""
    if make_error_state is None:
        return None
    before = error_state()
    set_error_state(state)
    hows, ours = np.geterr(), isinstance(np.geterrcall(), Log)
    set_error_state(before)
    if not ours:
        return state if {"raise", "call", "log"}.intersection(hows.values()) else None
    return make_error_state(call=_Again(), **hows) if raised or "raise" in hows.values() else None
