"""The state machine of a schedule: executor, simulator and tests apply the same actions to it.

It knows which entry is where, holds no arrays, and refuses every action that does not fit.
"""

from collections.abc import Callable
from typing import Any, Final, NoReturn

from attrs import define, field

from pullback.scheduling.machine.actions import (
    MEMORY,
    Action,
    Advance,
    Delete,
    EndForward,
    EndReverse,
    Kind,
    Load,
    Record,
    Reverse,
    Save,
    Transfer,
)
from pullback.words.errors import ScheduleError

KINDS: Final = ("state", "tape")
SHOWN_ENTRIES: Final = 6


@define(eq=False)
class Machine:
    """Where a schedule stands. ``Machine(n)`` for a loop of n steps, ``Machine(None)`` while the length is unknown.

    Parameters
    ----------
    n
        Number of steps; None until :meth:`finalize`.
    cursor
        The step whose start state x_cursor is live in WORK.
    lookback
        Length unknown, after ``Advance(a, a + 1)``: a, since x_a stays in WORK beside x_(a+1) until WORK is used
        again.
    tape
        The step whose tape is in WORK.
    stored
        The entries of each tier.
    swept
        True from EndForward on.
    done
        True after EndReverse.
    whole
        Not empty while every step was recorded in the sweep and no action has come since: what is stored, all tapes,
        and perhaps x_0.
    n_lookback
        Records made from the lookback state: their step had been run by the Advance just before.

    Raises
    ------
    ScheduleError
        By :meth:`apply`, for an action that does not fit.

    Example
    -------
    >>> machine = Machine(1)
    >>> machine.apply(Record(0))
    >>> machine.cursor, machine.tape, machine.r
    (1, 0, 1)
    """

    n: int | None
    cursor: int = 0
    lookback: int | None = None
    tape: int | None = None
    r: int | None = field(init=False)
    """Adjoint position: steps r .. n-1 are reversed, r-1 is next. ``None`` while the length is unknown."""
    stored: dict[str, set[tuple[Kind, int]]] = field(factory=dict)
    swept: bool = False
    done: bool = False
    whole: tuple[Kind, ...] = ()
    n_lookback: int = 0

    def __attrs_post_init__(self) -> None:
        self.r = self.n

    def apply(self, action: Action) -> None:
        """Carry ``action`` out on this state, or raise ``ScheduleError`` naming the action, the state and the
        remedy."""
        if self.done:
            self._refuse(action, "the schedule has ended", "Take a fresh schedule from the policy for another reverse")
        if self.whole:
            kinds, self.whole = self.whole, ()
            self.stored[MEMORY] = {(kind, k) for kind in kinds for k in range((self.n or 0) if kind == "tape" else 1)}
        rule = _RULES.get(type(action))
        if rule is None:
            self._refuse(action, "it is no action", "Use the actions of pullback.schedules")
        rule(self, action)

    def finalize(self, n: int) -> None:
        """Say that the loop ended after ``n`` steps: its length was unknown, or it was left early. x_n must be live."""
        if self.swept:
            raise ScheduleError(
                f"finalize({n}) came after EndForward ({self.describe()}). Finalize when the loop ends."
            )
        if self.cursor != n:
            raise ScheduleError(
                f"finalize({n}): the loop stands at x_{self.cursor}, not x_{n} ({self.describe()}). Apply the steps "
                "run first."
            )
        if self.n is not None and n > self.n:
            raise ScheduleError(
                f"finalize({n}): the schedule was made for {self.n} steps. Make it for the longest length."
            )
        self.n = self.r = n

    def hold_all(self, *kinds: Kind) -> None:
        """The sweep is over, in which each step was recorded and its tape stored, and where this is among the ``kinds``
        x_0 before."""
        self.cursor, self.swept, self.whole = self.n or 0, True, kinds

    def end(self) -> None:
        """All that was left has been carried out: actions that were applied in an earlier run (``known_schedules``)."""
        self.stored.clear()
        self.whole = ()
        self.tape, self.r, self.done = None, 0, True

    def describe(self) -> str:
        """One line: cursor, lookback, WORK tape, adjoint position, and the first few stored entries."""
        entries = sorted((tier, kind, step) for tier, stored in self.stored.items() for kind, step in stored)
        names = [f"{kind} {step} in {tier!r}" for tier, kind, step in entries[:SHOWN_ENTRIES]]
        if len(entries) > SHOWN_ENTRIES:
            names.append(f"and {len(entries) - SHOWN_ENTRIES} more")
        live = f"x_{self.cursor} live" if self.lookback is None else f"x_{self.lookback} and x_{self.cursor} live"
        tape = "no tape" if self.tape is None else f"the tape of step {self.tape}"
        left = "length unknown" if self.r is None else f"{self.r} of {self.n} steps to reverse"
        return f"{live}, {tape} in WORK, {left}, stored: {', '.join(names) or 'nothing'}"

    def _refuse(self, action: object, what: str, remedy: str) -> NoReturn:
        raise ScheduleError(f"{action!r} does not fit: {what} ({self.describe()}). {remedy}.")

    def require_fits(self, action: Advance) -> None:
        """Raise ``ScheduleError`` where ``action``, of which it is not known how far it goes, does not fit."""
        start, stop = action.start, action.stop
        if start != self.cursor:
            self._refuse(
                action, f"x_{start} is not live", f"Load('state', {start}) first, or advance from x_{self.cursor}"
            )
        if stop <= start:
            self._refuse(action, "it runs no step", "Leave it out")
        if self.r is not None and stop > self.r:
            self._refuse(action, f"the steps left end at x_{self.r}", f"Advance to x_{self.r} at most")

    def _advance(self, action: Advance) -> None:
        self.require_fits(action)
        self.lookback = action.start if self.r is None and action.stop == action.start + 1 else None
        self.cursor = action.stop

    def _record(self, action: Record) -> None:
        step = action.step
        if self.tape is not None:
            self._refuse(
                action,
                f"WORK holds the tape of step {self.tape}",
                f"Reverse({self.tape}) or Save('tape', {self.tape}) first",
            )
        if step == self.lookback:
            self.n_lookback += 1
        elif step != self.cursor:
            self._refuse(action, f"x_{step} is not live", f"Load('state', {step}) first, or advance to it")
        if self.r is not None and step >= self.r:
            self._refuse(action, f"the steps left end at x_{self.r}", f"Record({self.r - 1}) at most")
        self.tape = step
        self.cursor = step + 1
        self.lookback = None

    def _reverse(self, action: Reverse) -> None:
        step = action.step
        if not self.swept:
            self._refuse(action, "the forward sweep has not ended", "EndForward() comes first")
        if self.r is None or step != self.r - 1:
            self._refuse(action, "it is not the next step to reverse", "Reverse n-1, n-2, ..., 0 in this order")
        if self.tape != step:
            self._refuse(
                action, f"the tape of step {step} is not in WORK", f"Record({step}) or Load('tape', {step}) first"
            )
        self.tape = None
        self.r = step

    def _save(self, action: Save) -> None:
        entry = self._entry(action, action.kind, action.step)
        entries = self.stored.setdefault(action.tier, set())
        if entry in entries:
            self._refuse(action, "it is saved already", "Save an entry once, or Delete it in between")
        if action.kind == "state":
            if action.step not in (self.cursor, self.lookback):
                self._refuse(
                    action, f"x_{action.step} is not live", f"Save it while it is; now it could be x_{self.cursor}"
                )
        elif self.tape != action.step:
            self._refuse(action, f"the tape of step {action.step} is not in WORK", f"Record({action.step}) first")
        else:
            self.tape = None
        entries.add(entry)

    def _load(self, action: Load) -> None:
        self._entries(action, action.kind, action.step, action.tier)
        if action.kind == "state":
            self.cursor = action.step
            self.lookback = None
        elif self.tape is not None:
            self._refuse(
                action,
                f"WORK holds the tape of step {self.tape}",
                f"Reverse({self.tape}) or Save('tape', {self.tape}) first",
            )
        else:
            self.tape = action.step

    def _delete(self, action: Delete) -> None:
        self._entries(action, action.kind, action.step, action.tier).remove((action.kind, action.step))

    def _transfer(self, action: Transfer) -> None:
        self._entries(action, action.kind, action.step, action.source)
        entries = self.stored.setdefault(action.target, set())
        if (action.kind, action.step) in entries:
            self._refuse(
                action, f"it is in {action.target!r} already", "Delete it there first, or leave the Transfer out"
            )
        entries.add((action.kind, action.step))

    def _end_forward(self, action: EndForward) -> None:
        if self.swept:
            self._refuse(action, "the forward sweep has ended already", "EndForward() comes once")
        if self.n is None:
            self._refuse(action, "the length is unknown", "It follows finalize(n)")
        if self.cursor != self.n:
            self._refuse(action, f"x_{self.n} is not reached", f"Advance or record up to x_{self.n} first")
        self.swept = True

    def _end_reverse(self, action: EndReverse) -> None:
        if not self.swept or self.r != 0:
            self._refuse(action, "steps are left to reverse", "Reverse every step first")
        if any(self.stored.values()):
            self._refuse(action, "entries are still stored", "Delete every entry before the end")
        self.done = True

    def _entry(self, action: Action, kind: Kind, step: int) -> tuple[Kind, int]:
        if kind not in KINDS:
            self._refuse(action, f"there is no kind {kind!r}", "The kinds are 'state' and 'tape'")
        return kind, step

    def _entries(self, action: Action, kind: Kind, step: int, tier: str) -> set[tuple[Kind, int]]:
        """The entries of ``tier``, which (kind, step) is one of."""
        entries = self.stored.get(tier)
        if entries is None or (kind, step) not in entries:
            self._entry(action, kind, step)
            self._refuse(
                action,
                f"no {kind} {step} is stored in {tier!r}",
                f"Save({kind!r}, {step}, {tier!r}) first, and Delete it last",
            )
        return entries


_RULES: Final[dict[type, Callable[[Machine, Any], None]]] = {
    # The table belongs to the class; a dict is twice as fast as a chain of isinstance.
    Advance: Machine._advance,  # noqa: SLF001
    Record: Machine._record,  # noqa: SLF001
    Reverse: Machine._reverse,  # noqa: SLF001
    Save: Machine._save,  # noqa: SLF001
    Load: Machine._load,  # noqa: SLF001
    Delete: Machine._delete,  # noqa: SLF001
    Transfer: Machine._transfer,  # noqa: SLF001
    EndForward: Machine._end_forward,  # noqa: SLF001
    EndReverse: Machine._end_reverse,  # noqa: SLF001
}
