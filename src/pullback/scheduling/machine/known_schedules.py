"""Reverse parts of schedules that the state machine has seen carried out to their end: three numbers an action.

A policy whose schedule says so (``Schedule.repeats``) gives the same actions whenever it is asked for as many steps. So
what has been checked once needs no check again, nor to be planned.
"""

from array import array
from threading import Lock
from typing import Any, Final

from pullback.scheduling.machine.actions import MEMORY, Action, Advance, Delete, Load, Record, Reverse, Save
from pullback.scheduling.machine.schedule import SEEN, key_of

(
    ADVANCE, RECORD, REVERSE, AT_ONCE, KEEP, BACK, SAVE, LOAD, DELETE, SAVE_TAPE, LOAD_TAPE, DELETE_TAPE, TAKE,
) = range(13)  # fmt: skip
"""What the first number says; the other two are of a step, or of steps in a row.

- ``AT_ONCE`` k: a Record that the Reverse of the same step follows.
- ``KEEP`` k stop: steps k .. stop - 1 are recorded one after the other, and each tape is put in memory.
- ``BACK`` k first: steps k down to ``first`` are reversed from tapes in memory, which are deleted.
- ``TAKE`` k: a tape in memory comes into WORK, and is deleted.

``SAVE`` and what follows it are of states and tapes in memory alone.
"""
_STATES: Final[dict[type, int]] = {Save: SAVE, Load: LOAD, Delete: DELETE}
_TAPES: Final[dict[type, int]] = {Save: SAVE_TAPE, Load: LOAD_TAPE, Delete: DELETE_TAPE}
_GROWING: Final = frozenset({RECORD, KEEP, BACK, LOAD_TAPE, TAKE})
"""What the next action may be a part of."""
MOST = 3 * 16_384
"""Numbers up to which a schedule is kept: 200 KB."""
MOST_SCHEDULES = 8
AT_A_TIME = 3 * 128
"""Numbers that are carried out together."""
KEPT_AT_A_TIME = 64
"""Tapes of steps in a row that are put in memory together."""


class Numbers:
    """Actions as numbers, rows of steps as one action."""

    __slots__ = ("each",)

    def __init__(self) -> None:
        self.each = array("i")

    def take(self, action: Action) -> bool:
        """Whether an action is among them now; not where it is of another tier."""
        kind = type(action)
        if kind is Record:
            self.each.extend((RECORD, action.step, 0))  # type: ignore[union-attr]  # kind says what it is
        elif kind is Reverse:
            self._reverse(action.step)  # type: ignore[union-attr]
        elif kind is Advance:
            self.each.extend((ADVANCE, action.start, action.stop))  # type: ignore[union-attr]
        elif kind not in _STATES or action.tier != MEMORY:  # type: ignore[union-attr]
            return False
        elif action.kind == "state":  # type: ignore[union-attr]
            self.each.extend((_STATES[kind], action.step, 0))  # type: ignore[union-attr]
        else:
            self._tape(_TAPES[kind], action.step)  # type: ignore[union-attr]
        return True

    @property
    def full(self) -> bool:
        """Whether there are enough to be carried out, and nothing is to come that belongs to the last; so it is with
        a row of tapes, of which the schedule may be told that they are larger than was thought."""
        each = self.each
        kept = len(each) >= 3 and each[-3] == KEEP and each[-1] - each[-2] >= KEPT_AT_A_TIME
        return kept or (len(each) >= AT_A_TIME and each[-3] not in _GROWING)

    def taken(self) -> "array[int]":
        """All of them; what comes next are others."""
        each, self.each = self.each, array("i")
        return each

    def _last(self, code: int, step: int) -> bool:
        each = self.each
        return len(each) >= 3 and each[-3] == code and each[-2] == step

    def _tape(self, code: int, step: int) -> None:
        each = self.each
        if code == SAVE_TAPE and self._last(RECORD, step):
            if len(each) >= 6 and each[-6] == KEEP and each[-4] == step:
                del each[-3:]
                each[-1] = step + 1
            else:
                each[-3], each[-1] = KEEP, step + 1
        elif code == DELETE_TAPE and self._last(LOAD_TAPE, step):
            each[-3] = TAKE
        else:
            each.extend((code, step, 0))

    def _reverse(self, step: int) -> None:
        each = self.each
        if self._last(RECORD, step):
            each[-3] = AT_ONCE
        elif not self._last(TAKE, step):
            each.extend((REVERSE, step, 0))
        elif len(each) >= 6 and each[-6] == BACK and each[-4] == step + 1:
            del each[-3:]
            each[-1] = step
        else:
            each[-3], each[-1] = BACK, step


class Noted:
    """The actions of a reverse part as they are carried out; kept when they come a second time."""

    __slots__ = ("_key", "_numbers")

    def __init__(self, schedule: Any) -> None:
        self._key = key_of(schedule)
        wanted = self._key is not None and self._key in SEEN
        self._numbers: Numbers | None = Numbers() if wanted else None

    def take(self, action: Action) -> None:
        """An action has been carried out."""
        if self._numbers is not None and (not self._numbers.take(action) or len(self._numbers.each) > MOST):
            self._key = self._numbers = None

    def end(self) -> None:
        """All have been, and the machine has taken the last one."""
        if self._key is None:
            return
        with _CHANGING:
            SEEN[self._key] = None if self._numbers is None else self._numbers.each
            while len(SEEN) > MOST_SCHEDULES:
                del SEEN[next(iter(SEEN))]


_CHANGING = Lock()
