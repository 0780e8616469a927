"""What a gradient takes: forecast from a few steps of its loops, forward and reverse, from the initial state, and
measured by phase; and what it executes again."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from attrs import Factory, define, frozen

from pullback.instruments.profiling.plan_forecast import Plan, Trial, forecast_of
from pullback.instruments.profiling.profile_measurements import MeasuredProgram, seed_of
from pullback.instruments.watching.phases import FORWARD, RECOMPUTE, REVERSE, PhaseLedger, Spent, in_phases
from pullback.loops.functions.loop_record import LoopRecord
from pullback.loops.stepping.reverse_pass import Pass
from pullback.memory.in_force import using
from pullback.memory.ledger import Ledger
from pullback.memory.reverse_sweep import Sweep
from pullback.memory.store import Store
from pullback.memory.timeline import Timeline, timed
from pullback.policies.base import MemoryPolicy
from pullback.policies.save_all import SaveAll
from pullback.policies.tiered import Tiered
from pullback.transforms.derivatives.reverse import vjp
from pullback.words.specs import carries_derivative

FEW, MORE = 4, 16
"""Steps of two runs, whose difference tells of a step: what a run costs besides is in both."""
ROUNDS: Final = 3
"""How many times short runs are made: the least seconds are the step's, the others the machine's."""
LONG: Final = 0.02
"""Seconds of a step from which one run of two steps tells enough."""


@frozen
class StepSeconds:
    """Seconds of one step of one loop."""

    advance: float
    """Run on plain arrays."""
    record: float
    """Run on tracers, and its tape kept."""
    reverse: float

    def total(self, n: int, n_forward: int) -> float:
        """Seconds of ``n`` steps that are recorded and reversed, ``n_forward`` having been run in all."""
        return (n_forward - n) * self.advance + n * (self.record + self.reverse)


def step_seconds(record: LoopRecord) -> StepSeconds:
    """Measured on the loop that ``record`` is of; what it held is given up."""
    chain, n = record.chain, record.n or 0
    if n == 0:
        return StepSeconds(0.0, 0.0, 0.0)
    chain.store = Store(Ledger(heard=False), SaveAll())
    chain.steps.ledger, chain.verifier.compares, chain.verifier.compares_tapes = chain.store.ledger, False, False
    with chain.randomness.put_back(), using(record.ambient):
        few = _both(record, min(2, n))  # which meets cold caches, and tells how many to run
        if n > FEW and max(few) < LONG:
            most = min(MORE, n)
            _both(record, most)  # functions for steps that repeat are made
            ends = [map(min, *(_both(record, k) for _ in range(ROUNDS))) for k in (FEW, most)]
            forward, reverse = (max(b - a, 0.0) / (most - FEW) for a, b in zip(*ends, strict=True))
            advance = min(_advanced(record, most) for _ in range(ROUNDS))
        else:
            forward, reverse = (seconds / min(2, n) for seconds in few)
            advance = _advanced(record, min(2, n))
    return StepSeconds(advance, forward, reverse)


def _both(record: LoopRecord, n: int) -> tuple[float, float]:
    """Seconds of the forward and of the reverse pass of the first ``n`` steps under save-all."""
    chain = record.chain
    chain.rewind()
    seconds, reached = _timed(lambda: chain.go_forward_saving(n))
    cts: list[Any] = [np.ones_like(leaf) if carries_derivative(leaf) else None for leaf in chain.state]
    one = Pass(Sweep(None, frees=True), None, reached, cts, [], [None] * len(record.x_entering), None)
    back, _ = _timed(lambda: chain.go_back_saving(reached, [one]))
    chain.release()
    return seconds, back


def _advanced(record: LoopRecord, n: int) -> float:
    chain = record.chain
    chain.rewind()
    chain.advance(0, 1)
    seconds, _ = _timed(lambda: chain.advance(1, n))
    chain.release()
    return seconds / max(1, n - 1) if n > 1 else 0.0


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = call()
    return time.perf_counter() - began, found


SHORT: Final = 1.0
"""Seconds below which a run is made again, so that its time can be believed."""


@frozen
class Phases:
    """Seconds of one gradient by phase, and how often each primitive was executed again, those of loops and of marked
    steps together."""

    forward: Spent
    recompute: Spent
    reverse: Spent
    operations: dict[str, int]


@define(eq=False)
class Forecaster:
    """Forecasts of one program under several policies: the steps of its loops are timed once."""

    program: MeasuredProgram
    steps: list[StepSeconds] = Factory(list)
    outside: float = np.inf
    """Seconds of one run outside of loops, the least that was seen: the first run of a process meets cold caches."""

    def forecast(self, policy: MemoryPolicy) -> tuple[Plan, float | None, Counter[str]]:
        """The plan, seconds from a few steps of each loop (None where the program had to be run, or a disk takes part),
        and the operations of loop functions that are executed again."""
        first = self.outside == np.inf
        plan, trial = forecast_of(self.program.call, self.program.active, policy)
        if trial is not None and first and trial.elapsed_seconds < SHORT:
            trial.close()
            plan, trial = forecast_of(self.program.call, self.program.active, policy)
        if trial is None:
            return plan, plan.seconds, Counter()
        try:
            again: Counter[str] = Counter()
            for loop, steps in zip(trial.loops, trial.steps, strict=True):
                for name, times in loop.forecast.operations.items():
                    again[name] += times * (steps - (loop.n or 0))
            return plan, None if isinstance(policy, Tiered) else self._seconds(trial), +again
        finally:
            trial.close()

    def _seconds(self, trial: Trial) -> float:
        if len(self.steps) != len(trial.loops):
            self.steps = [step_seconds(loop) for loop in trial.loops]
        within = sum(loop.forecast.elapsed_seconds for loop in trial.loops)
        self.outside = min(self.outside, max(0.0, trial.elapsed_seconds - within))
        total = 3 * self.outside  # the way back takes about twice as long
        for loop, seconds, steps in zip(trial.loops, self.steps, trial.steps, strict=True):
            total += seconds.total(loop.n, steps)
        return total


def phases_of(program: MeasuredProgram, policy: MemoryPolicy, again: Counter[str]) -> Phases:
    """One more gradient, in which steps are recorded and reversed each for themselves, timed by phase; ``again`` is
    what its loop functions execute again."""
    with in_phases() as ledger:
        out, pull = vjp(program.call, *program.active, policy=policy)
        try:
            ledger.turn()
            pull(seed_of(out))
            return _phases(ledger, again)
        finally:
            pull.close()


def _phases(ledger: PhaseLedger, again: Counter[str]) -> Phases:
    spent: dict[str, Any] = ledger.by_phase()
    operations = dict((again + ledger.operations).most_common())
    return Phases(spent[FORWARD], spent[RECOMPUTE], spent[REVERSE], operations)


def timeline_of(program: MeasuredProgram, policy: MemoryPolicy, *, whole: bool = True) -> Timeline:
    """What is held when, in a gradient of its own; not ``whole``, up to where the function fails."""
    with timed() as ledger:
        try:
            out, pull = vjp(ledger.watched(program.call), *program.active, policy=policy)
            ledger.turn()
            try:
                pull(seed_of(out))
            finally:
                pull.close()
        except Exception:
            if whole:
                raise
    return ledger.timeline()
