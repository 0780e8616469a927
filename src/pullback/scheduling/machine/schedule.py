"""What a schedule is: a stream of actions that serves one reverse, and can be told late where the loop ended."""

import operator
from array import array
from collections.abc import Callable, Iterator
from typing import Any, Final

from pullback.scheduling.machine.actions import Action, Advance, EndForward, Record
from pullback.words.errors import PolicyError, ScheduleError


def whole_number(value: object, name: str, least: int, remedy: str) -> int:
    """``value`` as a Python int of at least ``least``; raises ``PolicyError`` naming the value and ``remedy``."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # that it may not fit is what is being asked
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise PolicyError(f"{name} must be a whole number, got {value!r} of type {type(value).__name__}. {remedy}.")
    if number < least:
        raise PolicyError(f"{name} must be at least {least}, got {number}. {remedy}.")
    return number


class Schedule:
    """A single-use iterator of actions with :meth:`finalize`; O(1) memory of its own.

    A schedule without ``finish`` needs the length it was made for. ``finish`` must know what the sweep has stored: so
    the sweep notes an entry *before* it yields the action, and every action that is yielded is carried out.

    Parameters
    ----------
    actions
        The actions, in their order.
    n
        The number of steps; None while it is unknown.
    policy
        What made it, for messages.
    finish
        ``finish(m)`` gives the actions that follow when the loop ends after m steps and the schedule did not know m.
    repeats
        Whether an equal policy gives the same actions whenever it is asked for ``n`` steps; or, where it is asked for a
        loop of unknown length, whenever that ends after as many.
    held
        ``"tapes"`` or ``"state and tapes"``, the initial one, where all steps are recorded in the sweep and held.
    larger
        ``larger(state_bytes=, tape_bytes=, freed=)`` is told when a step was larger than those before, while the
        length is unknown, and how many bytes others have given up since the schedule was made.
    n_whole
        The most steps of a loop of unknown length that may be recorded and held in the sweep; 0: as its actions say.

    Raises
    ------
    PolicyError
        By :meth:`finalize`, where the length must be known.

    Example
    -------
    >>> import pullback as pb
    >>> list(pb.SaveAll().schedule(1))
    [Record(0), EndForward(), Reverse(0), EndReverse()]
    """

    __slots__ = (
        "_actions", "_finish", "_last", "_swept", "held", "larger", "late", "n", "n_whole", "policy", "repeats",
    )  # fmt: skip

    def __init__(
        self,
        actions: Iterator[Action],
        n: int | None,
        *,
        policy: object,
        finish: Callable[[int], Iterator[Action]] | None = None,
        repeats: bool = False,
        held: str = "",
        larger: Callable[..., object] | None = None,
        n_whole: int = 0,
    ) -> None:
        self.n, self.larger, self.n_whole = n, larger, n_whole
        self.policy = policy
        self.repeats, self.held, self.late = repeats, held, n is None
        self._actions = actions
        self._finish = finish
        self._last: Action | None = None
        self._swept = False

    def __iter__(self) -> Iterator[Action]:
        return self

    def __next__(self) -> Action:
        self._last = action = next(self._actions)
        if type(action) is EndForward:
            self._swept = True
        return action

    def __repr__(self) -> str:
        return f"<schedule of {self.policy!r} for n={self.n}, last action {self._last!r}>"

    def draw(self) -> Any:
        """The :class:`Drawing` of what is left to be done; it is used up. Raises ``PolicyError`` where the length is
        not known: hand that to ``schedules.draw``."""
        from pullback.scheduling.machine.drawing import draw  # noqa: PLC0415  plays a schedule

        return draw(self, whole_number(self.n, "the length of the loop", 0, "Take schedules.draw(schedule, n)"))

    def finalize(self, n: int) -> None:
        """Say, between two actions, that the loop ended after ``n`` steps; the actions that follow reverse these.

        The last action may be an ``Advance`` of which only a first part was run. A no-op where n is what the schedule
        knows. Raises ``PolicyError`` for a policy that needs a known length and for a loop longer than the schedule;
        ``ScheduleError`` when the sweep is over or stands elsewhere.
        """
        n = whole_number(n, "the length of the loop", 0, "Pass the number of steps that were run")
        if n == self.n:
            return
        if self._swept:
            raise ScheduleError(
                f"finalize({n}) came after EndForward of {self!r}. Finalize when the loop ends, before the next action."
            )
        if self.n is not None and n > self.n:
            raise PolicyError(
                f"the loop ran {n} steps and {self!r} was made for {self.n}. Ask for the longest length, or for n=None."
            )
        if self._finish is None:
            raise PolicyError(
                f"{self.policy!r} needs a known length: it was planned for n={self.n} and the loop ended after {n} "
                "steps. Run all steps, or use SaveAll, Recompute, Periodic or Binomial, which can be told it late."
            )
        low, high = self._reach()
        if not low <= n <= high:
            raise ScheduleError(f"finalize({n}): after {self._last!r} the loop can stand at {low} .. {high} only.")
        self.n, self.repeats = n, self.repeats and self.n is None
        self._actions = self._finish(n)
        self._finish = _already_finalized

    def _reach(self) -> tuple[int, float]:
        """The lengths at which the loop can end, as far as the last action tells."""
        last = self._last
        if last is None:
            return 0, 0
        if isinstance(last, Advance):
            return last.start, last.stop
        if isinstance(last, Record):
            return last.step, last.step + 1
        return 0, float("inf")


def _already_finalized(n: int) -> Iterator[Action]:
    raise ScheduleError(f"finalize({n}): the schedule was finalized before, at another length. A loop ends once.")


def key_of(schedule: Any) -> Any:
    """What the actions of a schedule depend on; None where that is not known."""
    if type(schedule) is not Schedule or not schedule.repeats or schedule.n is None:
        return None
    return type(schedule.policy), schedule.policy, schedule.n, schedule.late


def known(schedule: Any) -> "array[int] | None":
    """The actions of the reverse part of a schedule as numbers (``known_schedules``), where they are kept."""
    key = key_of(schedule)
    return None if key is None else SEEN.get(key)


SEEN: "Final[dict[Any, array[int] | None]]" = {}
"""The actions of schedules that have been carried out to their end; None of those that were so once."""
