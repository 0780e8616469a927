"""Tiered: snapshots in memory and on disk, in the least time for given costs of a write and a read."""

import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, field, frozen

from pullback.policies.base import MemoryPolicy
from pullback.policies.binomial import Binomial, reverse_from
from pullback.scheduling.machine.actions import (
    DISK,
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
from pullback.scheduling.optimal.two_level_table import TwoLevel, two_level
from pullback.words.errors import PolicyError

LATE_ROWS = 2_000
"""The rows of the tables where the length is told late."""


def _as_ram(value: int) -> int:
    return whole_number(value, "ram_snapshots", 0, "Pass how many snapshots the memory may hold at once")


def _as_disk(value: int | None) -> int | None:
    if value is None:
        return None
    return whole_number(
        value, "disk_snapshots", 0, "Pass how many snapshots the disk may hold at once, or None for any number"
    )


def _as_cost(value: Any, name: str) -> float:
    try:
        cost = math.nan if isinstance(value, (bool, str)) else float(value)
    except (TypeError, ValueError):
        cost = math.nan
    if not 0 <= cost < math.inf:
        raise PolicyError(
            f"{name} must be a finite number of at least 0, got {value!r}. "
            "Pass the time for one snapshot divided by that of one forward step."
        )
    return cost


def _as_write_cost(value: float) -> float:
    return _as_cost(value, "write_cost")


def _as_read_cost(value: float) -> float:
    return _as_cost(value, "read_cost")


def _as_directory(value: str | os.PathLike[str] | None) -> str | None:
    if value is None:
        return None
    try:
        return os.fsdecode(value)
    except TypeError:
        raise PolicyError(
            f"directory must be a path or None, got {value!r} of type {type(value).__name__}. "
            "Leave it out for a folder of temporary files."
        ) from None


@frozen(repr=False)
class Tiered(MemoryPolicy):
    """Snapshots in two tiers, ``"memory"`` and ``"disk"``: the least forward steps, writes and reads together.

    The cost is the least there is for up to 20,000 steps where the disk has as many as pay, and with fewer of them
    for n with n^2 disk_snapshots <= 10^9: 10,000 steps with 10. Longer loops are cut until the parts are that short:
    at the one distance that costs least a step, where the disk can take so many (asymptotically optimal), or else as
    ``Binomial(ram_snapshots + disk_snapshots)`` would. Tables of these steps are made and kept, 16 bytes a step and
    snapshot on disk.

    Length unknown: a snapshot on disk at that distance, as ``Periodic`` sets them. When the disk is full every second
    one is deleted and the distance doubles. The reverse is the best for the snapshots that are left.

    Source: J. Herrmann and G. Pallez, "H-Revolve", ACM TOMS 46 (2020).

    Parameters
    ----------
    ram_snapshots
        How many snapshots the memory holds. It costs nothing.
    disk_snapshots
        How many the disk holds; None: as many as pay.
    directory
        The folder, or the URL, where they go. By default a folder of temporary files.
    write_cost, read_cost
        The times that a snapshot takes to and from the disk, in forward steps.

    Raises
    ------
    PolicyError
        Where no snapshot is allowed at all, a number is negative, or ``directory`` is no path.

    Example
    -------
    >>> from pullback.schedules import simulate
    >>> schedule = Tiered(2, 3, write_cost=2, read_cost=2).schedule(40)
    >>> simulated = simulate(schedule, 40, write_cost={"disk": 2}, read_cost={"disk": 2})
    >>> simulated.cost, simulated.n_forward, simulated.peak_slots
    (156, 138, {'disk': 3, 'memory': 2})
    """

    needs_sizes = False
    counts_states = True

    ram_snapshots: int = field(converter=_as_ram)
    disk_snapshots: int | None = field(converter=_as_disk)
    directory: str | None = field(default=None, kw_only=True, converter=_as_directory)
    write_cost: float = field(default=1.0, kw_only=True, converter=_as_write_cost)
    read_cost: float = field(default=1.0, kw_only=True, converter=_as_read_cost)

    def __attrs_post_init__(self) -> None:
        if self.ram_snapshots == 0 == self.disk_snapshots:
            raise PolicyError(f"{self!r} holds no snapshot at all. Allow at least one, in memory or on disk.")

    @property
    def tiers(self) -> Mapping[str, Any]:
        """The directory, if one is named."""
        return {} if self.directory is None else {DISK: self.directory}

    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> Schedule:
        """Actions for ``n`` steps; :meth:`~pullback.policies.base.MemoryPolicy.schedule` checks ``n``."""
        if n is None and self.disk_snapshots == 0:
            return Binomial(self.ram_snapshots).begin(n, state_bytes=state_bytes, tape_bytes=tape_bytes)
        rows = LATE_ROWS if n is None else n
        tables = two_level(rows, self.ram_snapshots, self.disk_snapshots, self.write_cost, self.read_cost)
        held = _Held(self.ram_snapshots, self.disk_snapshots, tables)
        actions = held.sweep_unknown() if n is None else held.all_actions(n)
        return Schedule(actions, n, policy=self, finish=held.finish)


@define(eq=False)
class _Held:
    """What a schedule holds, said at each yield: the snapshots on disk, and those in memory, which are later."""

    ram: int
    disk: int | None
    tables: TwoLevel
    on_disk: list[int] = field(factory=list)
    in_memory: list[int] = field(factory=list)

    def all_actions(self, n: int) -> Iterator[Action]:
        """The whole schedule for a known length."""
        if n:
            yield from self._forward(0, n, stored=False)
            yield Record(n - 1)
        yield EndForward()
        if n:
            yield Reverse(n - 1)
        yield from self._reverse(n - 1)

    def finish(self, n: int) -> Iterator[Action]:
        """Reverse n steps of which none is recorded."""
        yield EndForward()
        yield from self._reverse(n)

    def sweep_unknown(self) -> Iterator[Action]:
        """Never ends. Snapshots stand at the multiples of a distance."""
        start, period = 0, self.tables.period
        while True:
            while start % period == 0 and self.disk is not None and len(self.on_disk) >= self.disk:
                for dropped in self.on_disk[1::2]:
                    self.on_disk.remove(dropped)
                    yield Delete("state", dropped, DISK)
                period *= 2
            if start % period == 0:
                self.on_disk.append(start)
                yield Save("state", start, DISK)
            stop = start - start % period + period
            yield Advance(start, stop)
            start = stop

    def _forward(self, start: int, stop: int, *, stored: bool) -> Iterator[Action]:
        """The actions from the live x_start to x_(stop-1). ``stored``: x_start is on disk, and in ``on_disk`` no
        more."""
        while move := self.tables.move(stop - start, self._free(), stored=stored):
            self.on_disk.append(start)
            if not stored:
                yield Save("state", start, DISK)
            yield Advance(start, start + move)
            start, stored = start + move, False
        if stored:
            yield Delete("state", start, DISK)
        while stop - start > 1:
            move = split(stop - start, self.ram - len(self.in_memory))
            self.in_memory.append(start)
            yield Save("state", start)
            yield Advance(start, start + move)
            start += move

    def _reverse(self, r: int) -> Iterator[Action]:
        """Reverse steps r-1 .. 0 from what is held."""
        while True:
            if self.in_memory:
                first = self.in_memory[0]
                yield from reverse_from(self.in_memory, r, self.ram, first)
                r = min(r, first)
            if not self.on_disk:
                break
            start = self.on_disk.pop()
            if start >= r:
                yield Delete("state", start, DISK)
                continue
            yield Load("state", start, DISK)
            yield from self._forward(start, r, stored=True)
            r -= 1
            yield Record(r)
            yield Reverse(r)
        yield EndReverse()

    def _free(self) -> int | None:
        return None if self.disk is None else self.disk - len(self.on_disk)
