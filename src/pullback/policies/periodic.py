"""Periodic: snapshots at a fixed distance, whatever the length; within a period all tapes, or binomial (two-level)."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from attrs import field, frozen

from pullback.policies.base import MemoryPolicy
from pullback.policies.binomial import reverse_from
from pullback.policies.recompute import finish_advanced, finish_recorded
from pullback.scheduling.machine.actions import MEMORY, Action, Advance, Delete, EndForward, EndReverse, Load, Save
from pullback.scheduling.machine.schedule import Schedule, whole_number
from pullback.scheduling.machine.tapes_first import Tapes
from pullback.words.errors import PolicyError


def _as_period(value: int) -> int:
    return whole_number(value, "period", 1, "Pass the number of steps from one snapshot to the next, at least 1")


def _as_snapshots(value: int | None) -> int | None:
    if value is None:
        return None
    return whole_number(
        value, "snapshots", 0, "Pass how many snapshots a period may have besides its first, or None to keep its tapes"
    )


def _as_tier(value: object) -> Any:
    if isinstance(value, str) or (hasattr(value, "opened") and not isinstance(value, type)):
        return value
    raise PolicyError(
        f"tier must be the name of a tier, or a place of pullback.stores, got {value!r}. Leave it out for {MEMORY!r}."
    )


@frozen(repr=False)
class Periodic(MemoryPolicy):
    """A snapshot every ``period`` steps, ceil(n / period) of them, and the tapes of one period: at most 2n forward
    steps.

    The last period is recorded in the sweep: 2n - its length. Length unknown: only its last step is, 2n - 1.

    ``snapshots`` makes it two-level: instead of its tapes a period has this many snapshots besides its first, placed as
    ``Binomial(snapshots + 1)`` would, and the tape of one step: n + sum over the periods of (length +
    advances(length, snapshots + 1)) forward steps, the length known or not. The sweep records nothing then.

    ``tier`` is where the snapshots of the periods are stored: ``"memory"``, ``"disk"``, or a place as
    ``pullback.stores.Disk("/scratch")``. The snapshots of the periods grow with the length.

    Source: ``TwoLevelCheckpointSchedule`` of checkpoint_schedules (J. R. Maddison) has the same counts.

    Parameters
    ----------
    period
        Steps from one snapshot to the next, at least 1.
    snapshots
        How many a period may have besides its first; None keeps its tapes.
    tier
        Where the snapshots of the periods are stored.

    Raises
    ------
    PolicyError
        Where ``period`` or ``snapshots`` is too small or no integer, or ``tier`` is neither a name nor a place.

    Example
    -------
    >>> from pullback.schedules import simulate
    >>> simulate(Periodic(10).schedule(100), 100).n_forward
    190
    >>> simulate(Periodic(10, snapshots=2).schedule(250), 250).n_forward
    875
    """

    needs_sizes = False
    counts_states = True

    period: int = field(converter=_as_period)
    snapshots: int | None = field(default=None, kw_only=True, converter=_as_snapshots)
    tier: Any = field(default=MEMORY, kw_only=True, converter=_as_tier)

    @property
    def tiers(self) -> Mapping[str, Any]:
        """The place that ``tier`` is, if it is one."""
        return {} if isinstance(self.tier, str) else {self.tier.name: self.tier}

    # Counts slots, not bytes.
    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> Schedule:  # noqa: ARG002
        """Actions for ``n`` steps; :meth:`~pullback.policies.base.MemoryPolicy.schedule` checks ``n``."""
        starts: list[int] = []  # ascending; says at each yield which snapshots are stored
        period, tier = self.period, self.tier if isinstance(self.tier, str) else self.tier.name
        if self.snapshots is not None:
            slots = self.snapshots + 1
            sweep = _sweep(n, period, starts, tier)
            actions = sweep if n is None else _both(sweep, _finish_levels(starts, n, slots, tier))
            return Schedule(actions, n, policy=self, finish=lambda end: _finish_levels(starts, end, slots, tier))
        if n is None:
            unknown = _sweep_unknown(period, starts, tier)
            return Schedule(unknown, n, policy=self, finish=lambda end: finish_advanced(starts, end, tier))
        tapes = Tapes(first=n, stop=n)  # none yet
        recorded = _sweep_recording(n, period, starts, tapes, tier)
        return Schedule(
            _both(recorded, finish_recorded(starts, tapes, n, tier)),
            n,
            policy=self,
            finish=lambda end: finish_recorded(starts, tapes, end, tier),
        )


def _both(sweep: Iterator[Action], rest: Iterator[Action]) -> Iterator[Action]:
    yield from sweep
    yield from rest


def _sweep(n: int | None, period: int, starts: list[int], tier: str) -> Iterator[Action]:
    """Advance from snapshot to snapshot; without ``n`` it never ends."""
    for start in count(0, period) if n is None else range(0, n, period):
        starts.append(start)
        yield Save("state", start, tier)
        yield Advance(start, start + period if n is None else min(start + period, n))


def _sweep_recording(n: int, period: int, starts: list[int], tapes: Tapes, tier: str) -> Iterator[Action]:
    """As ``_sweep``, and the last period is recorded."""
    last = max(n - 1, 0) // period * period
    yield from _sweep(last, period, starts, tier)
    yield from tapes.record(last, n)


def _sweep_unknown(period: int, starts: list[int], tier: str) -> Iterator[Action]:
    """Never ends. Step by step, so that the last step is recorded from the lookback state."""
    for k in count():
        yield Advance(k, k + 1)
        if k % period == 0:
            starts.append(k)
            yield Save("state", k, tier)


def _finish_levels(starts: list[int], n: int, slots: int, tier: str) -> Iterator[Action]:
    """Reverse n steps, each period with ``slots`` snapshots of which the first is in ``tier``."""
    yield EndForward()
    r = n
    while starts:
        start = starts.pop()
        if start >= r:
            yield Delete("state", start, tier)
            continue
        for action in reverse_from([start], r, slots, start):
            if type(action) is Load and action.step == start:
                yield Load("state", start, tier)
            elif type(action) is Delete and action.step == start:
                yield Delete("state", start, tier)
            else:
                yield action
        r = start
    yield EndReverse()
