"""``plan(budget=)`` for programs that must be run to be known: marked steps, plain code, loops in loops, uneven
steps."""

import gc
import tracemalloc
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from attrs import define, evolve, field

from pullback.choosing.auto import Auto
from pullback.instruments.planning.advice import AS_FAST, Advice, advice_of, best_of, seconds_of_plan, too_little
from pullback.instruments.profiling.plan_forecast import Plan, measured
from pullback.instruments.profiling.seconds import SHORT
from pullback.policies.base import MemoryPolicy
from pullback.policies.binomial import Binomial
from pullback.policies.budget import Budget
from pullback.policies.recompute import Recompute
from pullback.policies.save_all import SaveAll
from pullback.words.errors import BudgetError, PolicyError, PolicyWarning

SLOTS: Final = (30, 10, 3, 2)
"""The snapshots that are tried, one after the other, until they fit; with one, steps are run as often as there are
steps."""
MARGIN: Final = (1.05, 1 << 14)
"""What is told to be enough is so many times what was seen, and so many bytes more: no two runs take quite the same."""


def of_runs(f: Callable[..., Any], args: tuple[Any, ...], budget: int, *, timed: bool = True) -> Advice:
    """The fastest of a few policies that kept to the budget, by ``tracemalloc``, when they were run; raises
    :class:`BudgetError` where none did. Not ``timed``, on arrays without values, seconds mean forward steps, and what
    was booked and what steps need at work must keep to the budget."""
    runs = _Runs(f, args, timed)
    fitting = runs.within(budget)
    if not fitting:
        raise too_little(budget, runs.least())
    best, rest = best_of(fitting)
    half = runs.run(Budget(takes(best) // 2), takes(best) // 2)
    less = [plan for plan in (half, *runs.known.values()) if plan is not None and takes(plan) < takes(best)]
    more = None if type(best.policy) is SaveAll else runs.run(Budget(2 * budget), 2 * budget)
    faster = more is not None and seconds_of_plan(more) * AS_FAST < seconds_of_plan(best)
    cheaper = [plan for plan in less if takes(plan) <= takes(best) // 2] or less
    return advice_of(best, budget, max(cheaper, key=takes, default=None), more if faster else None, rest)


def save_all_within(f: Callable[..., Any], args: tuple[Any, ...], nbytes: int) -> Plan | None:
    """What save-all holds, by a run, where that is no more than so many bytes; else None. No run holds much more."""
    found = untold(lambda: measured(f, args, Auto(nbytes)))
    if any(type(choice.policy) is not SaveAll for choice in found.choices):
        return None
    saved = measured(f, args, SaveAll())
    return saved if saved.peak_bytes <= nbytes else None


def untold(run: Callable[[], Plan]) -> Plan:
    """The plan of a policy that nobody takes, and of which nobody is warned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)
        return run()


def takes(plan: Plan) -> int:
    """What a run took at the peak, with all that came and went."""
    return plan.peak_bytes + (plan.working_bytes or 0)


@define(eq=False, slots=False)
class _Runs:
    f: Callable[..., Any]
    args: tuple[Any, ...]
    timed: bool
    known: dict[MemoryPolicy, Plan | None] = field(factory=dict)
    """What was run; None for what refused."""
    enough: int | None = None
    """Bytes that a budget has told to be enough."""

    @cached_property
    def at_work(self) -> int:
        """What steps need while they run, as they tell a policy that asks."""
        return untold(lambda: measured(self.f, self.args, Budget(1 << 62))).working_bytes or 0

    def within(self, nbytes: int) -> list[Plan]:
        """The plans that take no more: save-all, or else a budget and the others."""
        if save_all_within(self.f, self.args, nbytes) is not None:
            plan = self.run(SaveAll(), nbytes)
            if plan is not None and takes(plan) <= nbytes:
                return [plan]
        plans = [self.run(policy, nbytes) for policy in (Budget(nbytes), Recompute())]
        for slots in SLOTS:
            if any(plan is not None and takes(plan) <= nbytes for plan in plans):
                break
            plans.append(self.run(Binomial(slots), nbytes))
        return [plan for plan in plans if plan is not None and takes(plan) <= nbytes]

    def run(self, policy: MemoryPolicy, nbytes: int) -> Plan | None:
        """The plan of a policy, by runs; None where it refuses. What is booked beyond ``nbytes`` is all that is
        asked of it then."""
        if policy not in self.known:
            try:
                found = measured(self.f, self.args, policy)
            except BudgetError as error:
                self.enough = min(self.enough or error.minimum_bytes, error.minimum_bytes)
                found = None
            except PolicyError:
                found = None
            if found is not None and not self.timed:
                working = 0 if policy.counts_bytes else self.at_work  # which that keeps free by itself
                found = evolve(found, seconds=float(found.n_forward), working_bytes=working)
            elif found is not None and found.peak_bytes <= nbytes:
                found = self.seen(found)
                if seconds_of_plan(found) < SHORT:  # the first run of a process meets cold caches
                    again = measured(self.f, self.args, policy)
                    found = evolve(found, seconds=min(seconds_of_plan(found), seconds_of_plan(again)))
            self.known[policy] = found
        return self.known[policy]

    def seen(self, plan: Plan) -> Plan:
        """The plan, with what ``tracemalloc`` sees beside what is booked."""
        if not self.timed:
            return plan
        gc.collect()
        tracing = tracemalloc.is_tracing()
        if not tracing:
            tracemalloc.start()
        try:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            measured(self.f, self.args, plan.policy)
            most = tracemalloc.get_traced_memory()[1] - before
        finally:
            if not tracing:
                tracemalloc.stop()
        return evolve(plan, working_bytes=max(0, most - plan.peak_bytes))

    def least(self) -> int:
        """Bytes that are enough, where nothing fitted."""
        ran = [takes(self.seen(plan)) for plan in self.known.values() if plan is not None]
        least = _with_margin(min(ran))
        if self.enough is not None and self.enough < least:
            plan = self.run(Budget(self.enough), self.enough)
            asked = _with_margin(self.enough if plan is None else max(self.enough, takes(plan)))
            again = self.run(Budget(asked), asked)
            least = asked if again is not None and takes(again) <= asked < least else least
        return least


def _with_margin(nbytes: int) -> int:
    factor, more = MARGIN
    return int(factor * nbytes) + more
