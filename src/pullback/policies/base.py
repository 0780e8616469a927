"""What a policy is, a frozen value, and what its schedule is: a stream of actions that serves one reverse."""

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import NOTHING, define, fields

from pullback.policies.actions import Action, Advance, EndForward, Record
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

    ``finish(m)`` gives the actions that follow when the loop ends after m steps and the schedule did not know m. A
    schedule without ``finish`` needs the length it was made for. ``finish`` must know what the sweep has stored. So the
    sweep notes an entry *before* it yields the action: every action that is yielded is carried out.
    """

    __slots__ = ("_actions", "_finish", "_last", "_swept", "n", "policy")

    def __init__(
        self,
        actions: Iterator[Action],
        n: int | None,
        *,
        policy: object,
        finish: Callable[[int], Iterator[Action]] | None = None,
    ) -> None:
        self.n = n
        self.policy = policy
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
        self.n = n
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


@define(repr=False, unsafe_hash=True)
class MemoryPolicy:
    """How much memory a loop or program may hold between forward and reverse: the base class of all policies.

    Subclass it, as a frozen attrs class, and write :meth:`actions` as a plain generator. Every action is checked by
    :class:`pullback.policies.machine.Machine` as it is carried out, so a wrong policy raises and never gives a wrong
    gradient::

        @frozen
        class KeepEveryState(MemoryPolicy):
            def actions(self, n, *, state_bytes=0, tape_bytes=0):
                for k in range(n):
                    yield Save("state", k)
                    yield Advance(k, k + 1)
                yield EndForward()
                for k in reversed(range(n)):
                    yield Load("state", k)
                    yield Delete("state", k)
                    yield Record(k)
                    yield Reverse(k)
                yield EndReverse()
    """

    def schedule(self, n: int | None, *, state_bytes: int = 0, tape_bytes: int = 0) -> Schedule:
        """A fresh schedule for a loop of ``n`` steps (``None``: unknown, told later by ``finalize``).

        ``state_bytes`` and ``tape_bytes`` are the sizes of one snapshot and of the tape of one step; 0 means unknown.
        Raises ``PolicyError`` for a length that is negative or no whole number, or unknown where this policy needs it.
        """
        length = (
            None if n is None else whole_number(n, "the number of steps", 0, "Pass n >= 0, or None where it is unknown")
        )
        return self.begin(length, state_bytes=state_bytes, tape_bytes=tape_bytes)

    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> Schedule:
        """The schedule for a checked ``n``: overridden by policies that can learn the length late (``finish`` of
        ``Schedule``)."""
        if n is None:
            raise PolicyError(
                f"{self!r} needs a known length and this loop does not know its own. "
                "Use pb.steps(n) with a number, or SaveAll, Recompute, Periodic or Binomial."
            )
        try:
            actions = iter(self.actions(n, state_bytes=state_bytes, tape_bytes=tape_bytes))
        except TypeError as error:
            raise PolicyError(
                f"{self!r} gives no actions ({error}). Write actions(self, n, *, state_bytes, tape_bytes), a generator."
            ) from error
        return Schedule(actions, n, policy=self)

    def reserving(self, nbytes: int, *, start_held: bool = False) -> "MemoryPolicy":  # noqa: ARG002
        """The policy for a loop that holds ``nbytes`` beside snapshots and tapes: itself, unless it counts bytes.

        ``start_held``: the initial state is among these, so its snapshot takes nothing more.
        """
        return self

    @property
    def tiers(self) -> Mapping[str, Any]:
        """What the names of tiers in actions stand for where it is not the default: name to place, of
        ``pullback.stores`` or a user's own; a path or URL is ``Disk`` there."""
        return {}

    # For those who override it.
    def actions(self, n: int, *, state_bytes: int, tape_bytes: int) -> Iterator[Action]:  # noqa: ARG002
        """Yield the actions for ``n`` steps: the one method a user's policy writes."""
        raise PolicyError(
            f"{type(self).__name__} yields no actions for n={n}. Write actions(self, n, *, state_bytes, tape_bytes)."
        )

    def __setattr__(self, name: str, value: object) -> None:
        """Raises: a policy is a value. Frozen attrs classes and dataclasses set their fields in another way."""
        kind = type(self).__name__
        raise PolicyError(
            f"{kind}.{name} cannot be set: a policy is a frozen value. Declare its settings as fields, "
            f"@attrs.frozen class {kind}(pullback.MemoryPolicy): with a line {name}: {type(value).__name__}, and no "
            "__init__ (docs/write-a-policy.md)."
        )

    def __repr__(self) -> str:
        cls: Any = type(self)
        shown = []
        for part in fields(cls):
            value = getattr(self, part.name)
            if part.default is NOTHING or value != part.default:
                shown.append(f"{part.name}={value!r}" if part.kw_only else repr(value))
        return f"{cls.__name__}({', '.join(shown)})"
