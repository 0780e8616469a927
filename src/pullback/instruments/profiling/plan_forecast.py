"""The forecast of what a policy will hold and execute, made without the reverse pass."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from pullback.instruments.inspect.tables import Column, Table
from pullback.loops.functions.forecast import Forecast
from pullback.loops.functions.loop_bytes import own_items, sizes_of
from pullback.memory.in_force import MEASURED, planning
from pullback.memory.ledger import Ledger, Report, mib, peak_text
from pullback.memory.reverse_sweep import seeded, sweep
from pullback.policies.base import MemoryPolicy
from pullback.recording.handles import Handle, plain_value
from pullback.recording.recorder import form_of
from pullback.transforms.derivatives.pulls import Pull
from pullback.transforms.derivatives.reverse import forward, vjp
from pullback.words.errors import BudgetError, PolicyError
from pullback.words.structures import flatten, map_leaves

OF_SHAPES = "from shapes: for an argument that is a view give a view of a spec, since it holds the whole array it is of"


@frozen
class LoopSchedule:
    """A loop of ``n`` steps, the policy whose schedule it goes by, and the sizes that this is asked for with."""

    n: int
    policy: Any
    sizes: tuple[tuple[str, int], ...]


@frozen
class Plan:
    """What ``vjp(f, *args, policy=policy)`` and one pull will hold at the peak, and how many forward steps they
    execute."""

    policy: MemoryPolicy
    n_forward: int
    peak_bytes: int
    bytes_by_reason: dict[str, int]
    seconds: float | None = None
    """Seconds of the forward and the reverse pass together: of what was run, or from a few measured steps."""
    save_all_bytes: int | None = None
    """What save-all holds at the peak, where that is no more than under this policy."""
    choices: tuple[Any, ...] = ()
    """What a policy has decided within the run."""
    working_bytes: int | None = None
    """What a step of a loop takes at most while it runs, beside what is booked: its result, cotangents, temporaries."""
    stores: tuple[Any, ...] = ()
    """What tiers other than plain memory will do: a :class:`~pullback.stores.figures.StoreReport` each, with the parts
    written and read, and the bytes given."""

    schedules: tuple[LoopSchedule, ...] = ()
    """The schedule that each loop goes by, as far as it is known."""
    of_shapes: bool = False
    """Whether no values were there: each argument is taken for an array of its own, in C order. Of one that is a view
    the whole array it looks at is held, so that the peak is a lower bound then."""

    def draw(self, loop: int | None = None) -> Any:
        """The picture of the schedule of a loop (default: of the longest), as ``schedule.draw()`` makes it. Raises
        :class:`PolicyError` where no loop has one: there are no steps, or each chooses its own within the run."""
        if not self.schedules:
            raise PolicyError(
                f"the plan under {self.policy!r} knows of no loop that goes by a schedule, so there is nothing to "
                "draw; schedules.draw(policy.schedule(n), n) draws one of n steps"
            )
        chosen = max(self.schedules, key=lambda each: each.n) if loop is None else self.schedules[loop]
        return chosen.policy.schedule(chosen.n, **dict(chosen.sizes)).draw()

    def table(self) -> Table:
        """One row, with a column for each reason."""
        cells = {"policy": repr(self.policy), "peak": mib(self.peak_bytes)}
        cells |= {f"of it|{name}": mib(n) for name, n in self.bytes_by_reason.items()}
        if self.working_bytes is not None:
            cells["at work|at most"] = mib(self.working_bytes)
        cells["forward|steps"] = str(self.n_forward)
        if self.seconds is not None:
            cells["|seconds"] = f"{self.seconds:.2g}"
        notes = [*map(str, self.stores), *map(str, self.choices)]
        if self.save_all_bytes is not None:
            notes.append(f"SaveAll holds less: {mib(self.save_all_bytes)}, and runs nothing again")
        notes += [OF_SHAPES] * self.of_shapes
        columns = tuple(Column(name, (cell,), text=name == "policy") for name, cell in cells.items())
        return Table("", columns, tuple(notes))

    def _repr_html_(self) -> str:
        return self.table().html()

    def __str__(self) -> str:
        peak = peak_text(self.peak_bytes, self.bytes_by_reason, self.working_bytes)
        text = f"{self.policy!r}: {peak}, {self.n_forward} forward steps"
        if self.seconds is not None:
            text += f", {self.seconds:.2g} s"
        if self.save_all_bytes is not None:
            text += f"; SaveAll holds less: {mib(self.save_all_bytes)}, and runs nothing again"
        return "; ".join((text, *map(str, self.stores), *map(str, self.choices), *[OF_SHAPES] * self.of_shapes))


@define(eq=False)
class Trial:
    """A program that was run once, forward, its loop functions on names of buffers."""

    loops: list[Any]
    """Their records, in the order in which they began."""
    pull: Pull
    elapsed_seconds: float
    ended: bool
    """Whether names tell all: no marked steps or cut code, no loop in a loop, no steps that differ."""
    reached: set[int] = field(factory=set)
    """The loops (by ``id``) that a cotangent of the output reaches; the others are not reversed."""
    steps: list[int] = field(factory=list, init=False)
    """The forward steps of each loop, once it is planned."""

    @property
    def loops_first(self) -> bool:
        """Whether no plain code comes before the first loop function."""
        tape = self.pull.tape
        first = tape.records[tape.n_inputs] if len(tape.records) > tape.n_inputs else None
        return first is not None and bool(form_of(first).steps)

    @property
    def marks(self) -> bool:
        """Whether marked steps have chosen a policy."""
        return any(choice.loop.startswith("steps at") for choice in self.pull.report.choices)

    def plan(self, policy: MemoryPolicy) -> Plan:
        """The figures of the policy that the program was run under."""
        ledger, runs = self.pull.ledger, {id(loop): loop.forecast for loop in self.loops}
        self.steps = [loop.forecast.n_swept for loop in self.loops]
        for k, n in self._reverse(runs, ledger):
            self.steps[k] += n
        report = self.pull.report
        return evolve(_plan_of(policy, ledger.n_forward, report), schedules=_schedules(self.loops, runs))

    def under(self, policy: MemoryPolicy) -> tuple[Plan, list[int]]:
        """The plan of another policy, for which no step need be run; and the forward steps of each loop.

        Raises :class:`PolicyError` where the policy cannot serve a loop, :class:`BudgetError` where it is too little.
        """
        ledger, runs, steps = Ledger(working_bytes=self.pull.ledger.working_bytes), {}, []
        tape = self.pull.tape
        for loop in self.loops:
            before = ledger.n_forward
            ledger.hold(loop.booked)
            runs[id(loop)] = loop.forecast.under(loop, policy, ledger)
            steps.append(ledger.n_forward - before)
        for k, n in self._reverse(runs, ledger):
            steps[k] += n
        ledger.lenders.clear()
        plan = _plan_of(policy, ledger.n_forward, ledger.report(ledger.plain_bytes(tape.records)))
        return evolve(plan, schedules=_schedules(self.loops, runs)), steps

    def _reverse(self, runs: dict[int, Forecast], ledger: Ledger) -> list[tuple[int, int]]:
        """The reverse pass on names; the forward steps in it by the number of each loop that is reversed."""
        found = []
        for lender in reversed(ledger.lenders):
            lender.foresees()
        for k, loop in reversed(list(enumerate(self.loops))):
            before = ledger.n_forward
            if id(loop) in self.reached:
                ledger.returns_to(runs[id(loop)])
                with ledger.holding([*(loop.waiting or ()), *own_items(loop)]):
                    runs[id(loop)].reverse()
            found.append((k, ledger.n_forward - before))
        return found

    def close(self) -> None:
        """Release everything."""
        for loop in self.loops:
            loop.chain.release()
        self.pull.ledger.lenders.clear()
        self.pull.close()


def tried(f: Callable[..., Any], args: tuple[Any, ...], policy: MemoryPolicy) -> Trial:
    """The :class:`Trial` of ``vjp(f, *args)`` under a policy.

    ``f`` is run once, holding nothing: of a loop function two steps are recorded, the others run on plain arrays, and
    the schedule is carried out on names of buffers.
    """
    began = time.perf_counter()
    with planning() as loops:
        traced, pull = forward((f, args, {}), range(len(args)), policy)
    elapsed = time.perf_counter() - began
    governor = traced.governor
    chains = governor is not None and bool(governor.chains)
    own = _loops_of(traced)
    uneven = any(loop.forecast.uneven or id(loop) not in own for loop in loops)
    ended = not chains and not uneven
    if ended and loops:
        _swept(traced)
    return Trial(loops, pull, elapsed, ended, _reached(traced))


def _swept(traced: Any) -> None:
    """The code after the first loop is pulled back, so that each loop learns which cotangents wait meanwhile."""
    tape, outs = traced.tape, [leaf for leaf in flatten(traced.out)[0] if isinstance(leaf, Handle)]
    first = next(i for i, record in enumerate(tape.records) if record is not None and form_of(record).steps)
    sweep(tape, first, len(tape.records), [seeded(tape, outs, [np.ones_like(plain_value(leaf)) for leaf in outs])])


def forecast_of(f: Callable[..., Any], args: tuple[Any, ...], policy: MemoryPolicy) -> tuple[Plan, Trial | None]:
    """The :class:`Plan`, and the trial where it tells all; else the program is run forward and reverse."""
    if policy.within is not None:
        return measured(f, args, policy), None
    try:
        trial = tried(f, args, policy)
    except BudgetError:  # a forecast of a loop inside a loop holds other bytes than the run, which has the last word
        return measured(f, args, policy), None
    if trial.ended:
        return trial.plan(policy), trial
    trial.close()
    return measured(f, args, policy), None


def measured(f: Callable[..., Any], args: tuple[Any, ...], policy: MemoryPolicy) -> Plan:
    """The figures of one forward and one reverse pass that are run."""
    began, token = time.perf_counter(), MEASURED.set(True)
    try:
        out, pull = vjp(f, *args, policy=policy)
        pull(map_leaves(np.ones_like, out))
    finally:
        MEASURED.reset(token)
    elapsed = time.perf_counter() - began
    report, schedules = pull.report, pull.schedules()
    pull.close()
    found = tuple(LoopSchedule(n, own, tuple(sizes.items())) for n, own, sizes in schedules)
    return evolve(_plan_of(policy, report.n_forward, report, elapsed), schedules=found)


def _schedules(loops: list[Any], runs: dict[int, Forecast]) -> tuple[LoopSchedule, ...]:
    found = []
    for loop in loops:
        run = runs[id(loop)]
        own = getattr(run.schedule, "policy", None)
        sizes = loop.sizes if own is None or not own.counts_bytes or loop.needed is None else sizes_of(loop)
        if own is not None:
            found.append(LoopSchedule(run.n, own, tuple(sizes.items())))
    return tuple(found)


def _plan_of(policy: MemoryPolicy, n_forward: int, report: Report, seconds: float | None = None) -> Plan:
    return Plan(
        policy, n_forward, report.peak_bytes, report.bytes_by_reason, seconds,
        choices=report.choices, working_bytes=report.working_bytes, stores=report.stores,
    )  # fmt: skip


def _loops_of(traced: Any) -> set[int]:
    """The loops (by ``id``) that are records of the program itself, not of a step of another loop."""
    records = traced.tape.records
    return {id(record[2]) for record in records if record is not None and form_of(record).steps}


def _reached(traced: Any) -> set[int]:
    tape = traced.tape
    ids = {
        leaf._id
        for leaf in flatten(traced.out)[0]
        if isinstance(leaf, Handle) and leaf._tape is tape and leaf._id is not None
    }
    loops: set[int] = set()
    for ident in range(len(tape.records) - 1, tape.n_inputs - 1, -1):
        record = tape.records[ident]
        if ident in ids and record is not None:
            form = form_of(record)
            ids.update(form.ids(record))
            if form.steps:
                loops.add(id(record[2]))
    return loops
