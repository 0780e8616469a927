"""Reverse parts of schedules that the state machine has seen carried out to their end: three numbers an action.

A policy whose schedule says so (``Schedule.repeats``) gives the same actions whenever it is asked for as many steps. So
what has been checked once needs no check again, nor to be planned.
"""

from array import array
from threading import Lock
from typing import Any, Final

from pullback.machine.actions import MEMORY, Action, Advance, Delete, Load, Record, Reverse, Save
from pullback.machine.schedule import SEEN, key_of

ADVANCE, RECORD, REVERSE, AT_ONCE, SAVE, LOAD, DELETE = range(7)
"""What the first number says. ``AT_ONCE`` is a Record that the Reverse of the same step follows; the last three are of
states in memory."""
_CODES: Final[dict[type, int]] = {Save: SAVE, Load: LOAD, Delete: DELETE}
MOST = 3 * 16_384
"""Numbers up to which a schedule is kept: 200 KB."""
MOST_SCHEDULES = 8


class Noted:
    """The actions of a reverse part as they are carried out; kept when they come a second time."""

    __slots__ = ("_key", "_numbers")

    def __init__(self, schedule: Any) -> None:
        self._key = key_of(schedule)
        wanted = self._key is not None and self._key in SEEN
        self._numbers: array[int] | None = array("i") if wanted else None

    def take(self, action: Action) -> None:
        """An action has been carried out."""
        numbers, kind = self._numbers, type(action)
        if numbers is None:
            return
        if kind is Advance:
            numbers.extend((ADVANCE, action.start, action.stop))  # type: ignore[union-attr]  # kind says what it is
        elif kind is Record:
            numbers.extend((RECORD, action.step, 0))  # type: ignore[union-attr]
        elif kind is Reverse:
            step = action.step  # type: ignore[union-attr]
            if len(numbers) >= 3 and numbers[-3] == RECORD and numbers[-2] == step:
                numbers[-3] = AT_ONCE
            else:
                numbers.extend((REVERSE, step, 0))
        elif kind in _CODES and action.kind == "state" and action.tier == MEMORY:  # type: ignore[union-attr]
            numbers.extend((_CODES[kind], action.step, 0))  # type: ignore[union-attr]
        else:
            self._key = self._numbers = None
            return
        if len(numbers) > MOST:
            self._key = self._numbers = None

    def end(self) -> None:
        """All have been, and the machine has taken the last one."""
        if self._key is None:
            return
        with _CHANGING:
            SEEN[self._key] = self._numbers
            while len(SEEN) > MOST_SCHEDULES:
                del SEEN[next(iter(SEEN))]


_CHANGING = Lock()
