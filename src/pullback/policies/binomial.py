"""Binomial checkpointing: the least recomputation that a number of snapshots allows."""

from collections.abc import Iterator
from typing import Final

from attrs import field, frozen

from pullback.policies.base import MemoryPolicy
from pullback.scheduling.machine.actions import (
    Action,
    Advance,
    Delete,
    EndForward,
    EndReverse,
    Load,
    Record,
    Reverse,
    Save,
)
from pullback.scheduling.machine.schedule import Schedule, whole_number
from pullback.scheduling.optimal.binomial_split import split
from pullback.scheduling.optimal.online import Rule, greedy, wang_moin_iaccarino, wang_moin_iaccarino_beside
from pullback.words.errors import PolicyError

_ONLINE: Final = {"greedy": greedy, "wmi": wang_moin_iaccarino, "wmi-beside": wang_moin_iaccarino_beside}


def _as_snapshots(value: int) -> int:
    return whole_number(
        value, "snapshots", 1, "Pass the number of snapshots to hold at once, at least 1: x_0 takes one"
    )


def _as_rule(value: str) -> str:
    if not isinstance(value, str) or value not in _ONLINE:
        raise PolicyError(
            f"online must be one of {', '.join(map(repr, _ONLINE))}, got {value!r}. 'greedy' recomputes least."
        )
    return value


@frozen(repr=False)
class Binomial(MemoryPolicy):
    """revolve: reverse n steps with ``snapshots`` snapshots and the fewest forward steps, (t+1) n - beta(s+1, t-1) of
    them.

    x_0 takes one snapshot. The tape of one step is held besides. t is the repetition number of
    :func:`pullback.scheduling.optimal.binomial_split.repetitions`. Of the optimal schedules it is one with the fewest
    snapshot writes, and of these the one that always advances farthest. The planner holds ``snapshots`` integers, for
    any n.

    Length unknown: ``online="greedy"`` holds the set that would cost least if the next step were the last; ``"wmi"``
    bounds how often a step is repeated, with the newest state in one of the slots; ``"wmi-beside"`` holds that one in
    WORK and all slots besides (:mod:`pullback.scheduling.optimal.online`). The reverse is optimal for these snapshots.

    Source: A. Griewank and A. Walther, "Algorithm 799: revolve", ACM TOMS 26 (2000), 19-45.

    Parameters
    ----------
    snapshots
        How many snapshots are held at once, at least 1.
    online
        How a loop of unknown length keeps them: ``"greedy"``, ``"wmi"`` or ``"wmi-beside"``.

    Raises
    ------
    PolicyError
        Where ``snapshots`` is no integer of at least 1, or ``online`` is another word.

    Example
    -------
    >>> from pullback.schedules import simulate
    >>> simulate(Binomial(10).schedule(100), 100).n_forward
    322
    """

    needs_sizes = False
    counts_states = True

    snapshots: int = field(converter=_as_snapshots)
    online: str = field(default="greedy", kw_only=True, converter=_as_rule)

    # Counts slots, not bytes.
    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> Schedule:  # noqa: ARG002
        """Actions for ``n`` steps; :meth:`~pullback.policies.base.MemoryPolicy.schedule` checks ``n``."""
        s = self.snapshots
        snapshots: list[int] = []  # ascending; says at each yield which snapshots are stored
        if n is None:
            sweep = _sweep_unknown(snapshots, _ONLINE[self.online](s))
            finish = lambda end: _finish(snapshots, end, s, live=True)  # noqa: E731
            return Schedule(sweep, None, policy=self, finish=finish, repeats=True)
        finish = lambda end: _finish(snapshots, end, s, live=False)  # noqa: E731
        return Schedule(_known(n, snapshots, s), n, policy=self, finish=finish, repeats=True)


def _known(n: int, snapshots: list[int], s: int) -> Iterator[Action]:
    """The whole schedule: sweep to x_(n-1), record the last step, reverse."""
    cursor = 0
    while n - cursor > 1:
        m = split(n - cursor, s - len(snapshots))
        snapshots.append(cursor)
        yield Save("state", cursor)
        yield Advance(cursor, cursor + m)
        cursor += m
    yield from _finish(snapshots, n, s, live=True)


def _sweep_unknown(snapshots: list[int], rule: Rule) -> Iterator[Action]:
    """Never ends. x_k is judged after step k has run: it is still in WORK, and the loop is known to go on."""
    k = 0
    while True:
        yield Advance(k, k + 1)
        evicted, keeps = rule(k)
        if evicted is not None:
            snapshots.remove(evicted)
            yield Delete("state", evicted)
        if keeps:
            snapshots.append(k)
            yield Save("state", k)
        k += 1


def _finish(snapshots: list[int], n: int, s: int, *, live: bool) -> Iterator[Action]:
    """Reverse n steps. Where x_(n-1) is still ``live`` in WORK, the last step is recorded from it."""
    if live and n > 0:
        yield Record(n - 1)
    yield EndForward()
    if live and n > 0:
        yield Reverse(n - 1)
        n -= 1
    yield from reverse_from(snapshots, n, s)
    yield EndReverse()


def reverse_from(snapshots: list[int], r: int, s: int, first: int = 0) -> Iterator[Action]:
    """Reverse steps r-1 .. ``first`` from ``snapshots`` (ascending, consumed) with the fewest advances. Slots that
    become free are used again.

    Snapshot i and all slots after it serve the steps up to snapshot i+1. So each gap is an independent binomial problem
    with s - i slots: the theorem of :func:`pullback.scheduling.optimal.binomial_split.split`.
    """
    while snapshots and snapshots[-1] >= r:
        yield Delete("state", snapshots.pop())
    while r > first:
        cursor = snapshots[-1]
        last = r - 1
        yield Load("state", cursor)
        if cursor == last:
            snapshots.pop()
            yield Delete("state", cursor)
        else:
            slots = s - len(snapshots) + 1
            while True:
                stop = cursor + split(r - cursor, slots)
                yield Advance(cursor, stop)
                cursor = stop
                if cursor == last:
                    break
                snapshots.append(cursor)
                yield Save("state", cursor)
                slots -= 1
        yield Record(last)
        yield Reverse(last)
        r = last
