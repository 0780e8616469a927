"""``plan(budget=)``: the fastest policy within a number of bytes, and what less and more memory would bring. Forecast
from one run of a program of loop functions; others are run (``advice_from_runs``)."""

import sys
import tempfile
import time
from collections.abc import Callable
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, evolve, field

from pullback.choosing.auto import Auto
from pullback.instruments.planning.advice import AS_FAST, Advice, advice_of, best_of, seconds_of_plan, too_little
from pullback.instruments.planning.advice_from_runs import of_runs
from pullback.instruments.profiling.plan_forecast import Plan, Trial, forecast_of, tried
from pullback.instruments.profiling.seconds import SHORT, StepSeconds, step_seconds
from pullback.policies.base import MemoryPolicy
from pullback.policies.binomial import Binomial
from pullback.policies.budget import Budget
from pullback.policies.mixed import Mixed
from pullback.policies.periodic import Periodic
from pullback.policies.recompute import Recompute
from pullback.policies.save_all import SaveAll
from pullback.policies.tiered import Tiered
from pullback.scheduling.machine.actions import DISK, Load, Save
from pullback.words.errors import BudgetError, PolicyError


def advise(f: Callable[..., Any], args: tuple[Any, ...], budget: int, directory: Any) -> Advice:
    """The :class:`Advice` for ``vjp(f, *args)``; raises :class:`BudgetError` where nothing fits."""
    trial = tried(f, args, Auto(budget))
    if not trial.ended or not trial.loops or trial.marks:
        trial.close()
        return of_runs(f, args, budget)
    if trial.elapsed_seconds < SHORT:  # the first run of a process imports and meets cold caches
        trial.close()
        trial = tried(f, args, Auto(budget))
    try:
        loops = Loops(trial, directory, None if trial.loops_first else (f, args))
        return loops.advice(budget)
    finally:
        trial.close()


def seconds_of(trial: Trial, policy: MemoryPolicy) -> float:
    """Seconds of a program that was tried under a policy, and planned; from a few steps of each loop, which it gives
    up."""
    loops = Loops(trial, None, None)
    if isinstance(policy, Tiered):
        loops.stored = policy.write_cost * loops.step, policy.read_cost * loops.step
    return loops.seconds_of(policy, trial.steps)


@define(eq=False)
class Loops:
    """A program whose loop functions are known: every policy is carried out on names of buffers."""

    trial: Trial
    directory: Any
    program: Any
    """The function and its arguments, where plain code comes before the loops, which a policy cuts until it meets one:
    then what is named is run once more, under its own policy. Else None."""
    timed: bool = field(default=True, kw_only=True)
    """Whether steps are run to be timed; else all take the same, and seconds mean steps."""
    known: dict[MemoryPolicy, Plan | None] = field(factory=dict, init=False)
    seconds: list[StepSeconds] = field(factory=list, init=False)
    """What is known of the seconds of each loop."""
    fixed: float = field(default=0.0, init=False)
    """Seconds outside of loops."""
    stored: tuple[float, float] = field(default=(0.0, 0.0), init=False)
    """Seconds of a write and of a read of a state in the directory."""

    def __attrs_post_init__(self) -> None:
        loops = self.trial.loops
        if not self.timed:
            self.seconds = [StepSeconds(1.0, 1.0, 2.0) for _ in loops]
            return
        within = sum(loop.forecast.elapsed_seconds for loop in loops)
        self.fixed = 3 * max(0.0, self.trial.elapsed_seconds - within)  # the way back takes about twice as long
        self.seconds = [step_seconds(loop) for loop in loops]
        if self.directory is not None:
            self.stored = _store_seconds(self.directory, max(loop.sizes["state_bytes"] for loop in loops))

    def advice(self, budget: int) -> Advice:
        """The fastest within the budget, and those beside it."""
        fitting, best = self.within(budget), None
        while best is None:
            if not fitting:
                raise too_little(budget, self.least())
            found, rest = best_of(fitting)
            best = self.exact(found, budget)
            fitting = rest
        less = self.within(best.peak_bytes // 2) or [plan for plan in (self.plan(Budget(self.least())),) if plan]
        more = [*self.within(2 * best.peak_bytes), *filter(None, (self.plan(SaveAll()),))]
        faster = [
            plan
            for plan in more
            if plan.peak_bytes > best.peak_bytes and seconds_of_plan(plan) * AS_FAST < seconds_of_plan(best)
        ]
        smaller = [plan for plan in less if plan.peak_bytes < best.peak_bytes]
        twice = [plan for plan in faster if plan.peak_bytes <= 2 * best.peak_bytes] or faster
        cheaper = self.exact(best_of(smaller)[0], best.peak_bytes - 1) if smaller else None
        dearer = self.exact(best_of(twice)[0], sys.maxsize) if twice else None
        return advice_of(best, budget, cheaper, dearer, rest)

    def exact(self, plan: Plan, most: int) -> Plan | None:
        """The plan, as a run under its own policy tells it; None where that holds more, or is refused."""
        if self.program is None:
            return plan
        try:
            f, args = self.program
            found, trial = forecast_of(f, args, plan.policy)
        except PolicyError:
            return None
        if trial is not None:
            trial.close()
        return evolve(found, seconds=plan.seconds) if found.peak_bytes <= most else None

    def within(self, nbytes: int) -> list[Plan]:
        """The plans that hold no more, those first that are named where several are as fast."""
        length = max(loop.n for loop in self.trial.loops)
        sizes = self.trial.loops[0].sizes
        period = max(1, isqrt(length * sizes["state_bytes"] // max(1, sizes["tape_bytes"])))
        plain = (SaveAll(), Budget(nbytes), Recompute(), Periodic(period))
        found = [self.plan(policy) for policy in plain]
        found += [self.most(kind, 1, length, nbytes) for kind in (Mixed, Binomial)]
        if self.directory is not None:
            found.append(self.most(self.tiered, 0, length, nbytes))
        return [plan for plan in found if plan is not None and self.fits(plan, nbytes)]

    def fits(self, plan: Plan, nbytes: int) -> bool:
        """Whether it takes no more."""
        return self.takes(plan) <= nbytes

    def takes(self, plan: Plan) -> int:
        """What it holds, with what a step needs while it runs; a policy that counts bytes keeps that free itself."""
        return plan.peak_bytes + (0 if plan.policy.counts_bytes else plan.working_bytes or 0)

    def most(self, kind: Callable[[int], MemoryPolicy], fewest: int, length: int, nbytes: int) -> Plan | None:
        """The plan of the policy with the most snapshots that hold no more."""
        first, second = self.plan(kind(fewest)), self.plan(kind(fewest + 1))
        if first is None or second is None or not self.fits(first, nbytes):
            return first
        each = max(1, second.peak_bytes - first.peak_bytes)
        slots = min(fewest + (nbytes - first.peak_bytes) // each, max(length, fewest))
        while slots > fewest:
            plan = self.plan(kind(slots))
            if plan is not None and self.fits(plan, nbytes):
                return plan
            slots -= 1 if plan is None else max(1, (plan.peak_bytes - nbytes) // each)
        return first

    @property
    def step(self) -> float:
        """Seconds of a step on plain arrays."""
        return max((seconds.advance for seconds in self.seconds), default=0.0)

    def tiered(self, slots: int) -> MemoryPolicy:
        """Memory and disk, with what a write and a read cost."""
        write, read = (float(f"{seconds / (self.step or 1.0):.2g}") for seconds in self.stored)
        return Tiered(slots, None, directory=self.directory, write_cost=write, read_cost=read)

    def plan(self, policy: MemoryPolicy) -> Plan | None:
        """The plan under a policy, with its seconds; None where it cannot serve this program."""
        if policy not in self.known:
            try:
                found, steps = self.trial.under(policy)
            except PolicyError:
                self.known[policy] = None
            else:
                self.known[policy] = evolve(found, seconds=self.seconds_of(policy, steps))
        return self.known[policy]

    def seconds_of(self, policy: MemoryPolicy, steps: list[int]) -> float:
        """Seconds of so many forward steps in each loop, and of what comes between the loops."""
        total = self.fixed
        for loop, seconds, n_forward in zip(self.trial.loops, self.seconds, steps, strict=True):
            total += seconds.total(loop.n, n_forward)
            if isinstance(policy, Tiered) and not loop.own:
                for action in policy.schedule(loop.n, **loop.sizes):
                    if getattr(action, "tier", None) == DISK:
                        total += self.stored[type(action) is Load] if type(action) in (Save, Load) else 0.0
        return total

    def least(self) -> int:
        """Bytes that are enough."""
        enough = 0
        while True:
            try:
                enough = max(
                    enough, self.trial.under(Budget(enough))[0].peak_bytes
                )  # loops may have policies of their own
            except BudgetError as error:
                enough = error.minimum_bytes
            else:
                break
        plans = [self.plan(policy) for policy in (Budget(enough), Recompute(), Binomial(1))]
        found = [self.exact(plan, sys.maxsize) for plan in plans if plan is not None]
        return min(
            max(enough, self.takes(plan)) if plan.policy.counts_bytes else self.takes(plan) for plan in found if plan
        )


def _store_seconds(directory: Any, nbytes: int) -> tuple[float, float]:
    """Seconds of a write and of a read of so many bytes in a local folder."""
    if not Path(directory).is_dir():
        raise PolicyError(f"plan: directory={directory!r} is no folder here; pass one that exists")
    with tempfile.TemporaryFile(dir=directory) as file:
        began = time.perf_counter()
        np.save(file, np.zeros(nbytes, np.uint8))
        file.flush()
        written = time.perf_counter()
        file.seek(0)
        np.load(file)
        return written - began, time.perf_counter() - written
