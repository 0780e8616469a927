"""What a schedule costs, without running anything: steps, snapshots, reads, writes and bytes, one action at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from attrs import define, field, fields, frozen

from pullback.scheduling.machine.actions import MEMORY, Action, Advance, Delete, Load, Record, Reverse, Save, Transfer
from pullback.scheduling.machine.machine import Machine
from pullback.words.errors import ScheduleError

Cost: TypeAlias = int | float
Count: TypeAlias = int | dict[str, int]
"""One number, or one for each tier where the schedule used several."""


@frozen
class Simulation:
    """What :func:`simulate` counts. Prints as a small table.

    Attributes
    ----------
    n
        Steps of the loop.
    cost
        forward_cost n_forward + reverse_cost n + the costs of the writes and the reads.
    n_forward
        Forward executions, recordings and the first sweep included.
    n_lookback
        0, or 1 where the length was unknown: the last step was recorded from the lookback state after it had been run.
        Not in ``n_forward``, because an executor that keeps the newest tape runs nothing for it; any other runs
        n_forward + n_lookback.
    n_actions
        Actions of the schedule.
    peak_slots
        Most entries (states and tapes) stored at once.
    n_writes
        Saves, and Transfers into the tier.
    n_reads
        Loads, and Transfers out of the tier.
    peak_bytes
        Most bytes of entries in tier ``"memory"`` and of the tape in WORK, together; a loaded tape counts in both until
        its Delete.
    working_bytes
        Held beside ``peak_bytes``: the live state, and x_(n-1) beside x_n where there is a lookback.

    Example
    -------
    >>> import pullback as pb
    >>> simulate(pb.Binomial(3).schedule(10), 10).peak_slots
    3
    """

    n: int
    cost: Cost
    n_forward: int
    n_lookback: int
    n_actions: int
    peak_slots: Count
    n_writes: Count
    n_reads: Count
    peak_bytes: int
    working_bytes: int

    def __str__(self) -> str:
        factor = self.n_forward / self.n if self.n else 0.0
        lines = [f"schedule of {self.n} steps, {self.n_actions} actions"]
        for part in fields(type(self)):
            value = getattr(self, part.name)
            if part.name in {"n", "n_actions"} or (part.name == "n_lookback" and not value):
                continue
            shown = (
                ", ".join(f"{tier} {count}" for tier, count in value.items()) if isinstance(value, dict) else f"{value}"
            )
            note = f"  ({factor:.2f} per step)" if part.name == "n_forward" else ""
            lines.append(f"  {part.name:<14} {shown}{note}")
        return "\n".join(lines)


def simulate(
    actions: Iterable[Action],
    n: int,
    *,
    state_bytes: int = 1,
    tape_bytes: int = 0,
    forward_cost: Cost = 1,
    reverse_cost: Cost = 0,
    write_cost: Cost | Mapping[str, Cost] = 0,
    read_cost: Cost | Mapping[str, Cost] = 0,
) -> Simulation:
    """What the actions of a schedule cost and hold for a loop that runs ``n`` steps; streaming, in the memory of the
    entries stored.

    A schedule made for unknown or more steps is told ``finalize(n)`` the moment x_n is reached, an ``Advance`` across n
    is cut there.

    Parameters
    ----------
    actions
        Those of a schedule.
    n
        The number of steps.
    state_bytes, tape_bytes
        Bytes of a state, and of what the pullbacks of a step read.
    forward_cost, reverse_cost
        Cost of a step forward, and back, in any unit.
    write_cost, read_cost
        Cost of an entry that is stored, or loaded; one for all, or a dict by tier.

    Returns
    -------
    A :class:`Simulation`, which prints as a table.

    Raises
    ------
    ScheduleError
        At the first action that does not fit, and where the actions stop before EndReverse.

    Example
    -------
    >>> from pullback import Binomial, schedules
    >>> schedules.simulate(Binomial(2).schedule(6), 6).n_forward
    14
    """
    machine = machine_for(actions, n)
    tally = _Tally(state_bytes, tape_bytes)
    for action in play(actions, n, machine):
        tally.add(action)
    n_forward = tally.n_forward - machine.n_lookback
    cost = (
        forward_cost * n_forward
        + reverse_cost * n
        + _priced(tally.writes, write_cost)
        + _priced(tally.reads, read_cost)
    )
    return Simulation(
        n=n,
        cost=cost,
        n_forward=n_forward,
        n_lookback=machine.n_lookback,
        n_actions=tally.n_actions,
        peak_slots=_count(tally.peak_slots),
        n_writes=_count(tally.writes),
        n_reads=_count(tally.reads),
        peak_bytes=tally.peak_bytes,
        working_bytes=state_bytes * (1 + machine.n_lookback),
    )


def machine_for(actions: Iterable[Action], n: int) -> Machine:
    """The machine at the start of ``actions``, which may be a schedule that does not know ``n`` yet."""
    schedule = _that_ends(actions)
    return Machine(n if schedule is None else schedule.n)


def play(actions: Iterable[Action], n: int, machine: Machine) -> Iterator[Action]:
    """Each action as it is carried out, after ``machine`` has applied it.

    Parameters
    ----------
    actions
        Those of a schedule.
    n
        The number of steps at which the loop ends, as in :func:`simulate`.
    machine
        A :class:`Machine`, which is changed.

    Returns
    -------
    An iterator of actions.

    Raises
    ------
    ScheduleError
        At the first action that does not fit.

    Example
    -------
    >>> from pullback import SaveAll, schedules
    >>> machine = schedules.Machine(2)
    >>> for action in schedules.play(SaveAll().schedule(2), 2, machine):
    ...     print(action, machine.cursor)
    ...     break
    Record(0) 1
    """
    ending = _that_ends(actions)
    if ending is not None and ending.n == n:
        ending = None
    if ending is not None and n == 0:
        _end(ending, n, machine)
        ending = None
    for planned in actions:
        action = planned
        if ending is not None and type(action) is Advance and action.start < n < action.stop:
            action = Advance(action.start, n)
        machine.apply(action)
        yield action
        if ending is not None and machine.cursor == n:
            _end(ending, n, machine)
            ending = None
    if not machine.done:
        raise ScheduleError(
            f"the actions stop before EndReverse ({machine.describe()}). Yield every action up to EndReverse()."
        )


def _that_ends(actions: Any) -> Any:
    """The actions, if they are a schedule, which has a length or takes it late; else None."""
    return actions if hasattr(actions, "finalize") else None


def _end(schedule: Any, n: int, machine: Machine) -> None:
    schedule.finalize(n)
    machine.finalize(n)


def _priced(counts: dict[str, int], price: Cost | Mapping[str, Cost]) -> Cost:
    if isinstance(price, Mapping):
        return sum(count * price.get(tier, 0) for tier, count in counts.items())
    return price * sum(counts.values())


def _count(counts: dict[str, int]) -> Count:
    return dict(counts) if len(counts) > 1 else sum(counts.values())


@define
class _Tally:
    """Running counts over actions that the machine has accepted."""

    state_bytes: int
    tape_bytes: int
    n_forward: int = 0
    n_actions: int = 0
    slots: dict[str, int] = field(factory=dict)
    peak_slots: dict[str, int] = field(factory=dict)
    writes: dict[str, int] = field(factory=dict)
    reads: dict[str, int] = field(factory=dict)
    memory_bytes: int = 0
    work_bytes: int = 0
    peak_bytes: int = 0

    def add(self, action: Action) -> None:
        self.n_actions += 1
        count = _COUNTS.get(type(action))
        if count is not None:
            count(self, action)

    def advance(self, action: Advance) -> None:
        self.n_forward += action.stop - action.start

    def record(self, _action: Record) -> None:
        self.n_forward += 1
        self.hold_tape()

    def hold_tape(self) -> None:
        self.work_bytes = self.tape_bytes
        self.peak_bytes = max(self.peak_bytes, self.memory_bytes + self.work_bytes)

    def reverse(self, _action: Action) -> None:
        self.work_bytes = 0

    def save(self, action: Save) -> None:
        if action.kind == "tape":
            self.work_bytes = 0
        self.store(action.kind, action.tier)

    def load(self, action: Load) -> None:
        tier = action.tier
        self.reads[tier] = self.reads.get(tier, 0) + 1
        if action.kind == "tape":
            self.hold_tape()

    def delete(self, action: Delete) -> None:
        self.slots[action.tier] -= 1
        if action.tier == MEMORY:
            self.memory_bytes -= self.state_bytes if action.kind == "state" else self.tape_bytes

    def transfer(self, action: Transfer) -> None:
        self.reads[action.source] = self.reads.get(action.source, 0) + 1
        self.store(action.kind, action.target)

    def store(self, kind: str, tier: str) -> None:
        self.writes[tier] = self.writes.get(tier, 0) + 1
        self.slots[tier] = count = self.slots.get(tier, 0) + 1
        self.peak_slots[tier] = max(count, self.peak_slots.get(tier, 0))
        if tier == MEMORY:
            self.memory_bytes += self.state_bytes if kind == "state" else self.tape_bytes
            self.peak_bytes = max(self.peak_bytes, self.memory_bytes + self.work_bytes)


_COUNTS: Final[dict[type, Callable[[_Tally, Any], None]]] = {
    Advance: _Tally.advance,
    Record: _Tally.record,
    Reverse: _Tally.reverse,
    Save: _Tally.save,
    Load: _Tally.load,
    Delete: _Tally.delete,
    Transfer: _Tally.transfer,
}
