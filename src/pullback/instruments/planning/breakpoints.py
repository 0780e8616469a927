"""The breakpoints of a program: every number of bytes from which on ``Budget`` runs fewer steps again."""

import time
from collections.abc import Callable
from heapq import heappop, heappush
from math import log
from typing import Any, Final

from attrs import define, evolve, field

from pullback.choosing.auto import Auto
from pullback.instruments.planning.advice_from_forecasts import Loops
from pullback.instruments.profiling.plan_forecast import LoopSchedule, Plan, measured, tried
from pullback.instruments.watching.parts import Tell, silent
from pullback.policies.budget import Budget
from pullback.policies.save_all import SaveAll
from pullback.words.errors import BudgetError

MOST: Final = 300
"""Budgets that are planned at most, where the time is limited."""
SECONDS: Final = 5.0
"""How long it may take unless somebody says."""
PARTS: Final = 64
"""A breakpoint is found to so many parts of a state, or of a tape where that is smaller."""


def breakpoints(
    f: Callable[..., Any], args: tuple[Any, ...], seconds: float | None = SECONDS, tell: Tell = silent
) -> tuple[tuple[Plan, ...], bool] | None:
    """The plan of a ``Budget`` for each number of forward steps there is, those that hold least first, from the least
    budget to what save-all takes, and whether these are all; None for a program that must be run to be planned, unless
    it has marked steps: two runs tell what these hold, and the bytes of a plan are then those of its budget.

    Each budget is the least for its number, to a 64th of a state. Where planning would take longer than ``seconds``,
    or 300 plans, the gaps between them that are largest are closed first; with None none is left.
    """
    trial = tried(f, args, Auto(1 << 62))
    try:
        if trial.marks:
            search = _of_marked_steps(f, args)
        elif not trial.ended or not trial.loops or not trial.loops_first:
            return None
        else:
            search = _of_loops(Loops(trial, None, None))
        return None if search is None else search.found(seconds, tell)
    finally:
        trial.close()


@define(eq=False)
class _Search:
    """What is planned under a budget, and between which."""

    plan: Callable[[int], Plan]
    least: int
    most: int
    n_saved: int
    """Forward steps of save-all."""
    close: int
    """Budgets that are no farther apart are not parted."""
    plans: dict[int, Plan] = field(factory=dict, init=False)

    def steps(self, budget: int) -> int:
        """Forward steps under a budget."""
        if budget not in self.plans:
            self.plans[budget] = self.plan(budget)
        return self.plans[budget].n_forward

    def found(self, seconds: float | None, tell: Tell) -> tuple[tuple[Plan, ...], bool]:
        """One plan for each number of steps, and whether no gap is left."""
        began = time.perf_counter()
        while self.steps(self.most) > self.n_saved:
            self.most *= 2
        whole = log(self.steps(self.least) / self.steps(self.most)) or 1.0
        gaps, left = [(-whole, self.least, self.most)], whole
        while gaps:
            if seconds is not None and (len(self.plans) >= MOST or time.perf_counter() - began > seconds):
                break
            size, low, high = heappop(gaps)
            left += size
            if self.steps(low) == self.steps(high) or high - low <= self.close:
                continue
            middle = (low + high) // 2
            for pair in ((low, middle), (middle, high)):
                if self.steps(pair[0]) != self.steps(pair[1]):
                    size = -log(self.steps(pair[0]) / self.steps(pair[1]))
                    heappush(gaps, (size, *pair))
                    left -= size
            tell(f"breakpoints: {len(self.plans)} budgets planned", int(100 * (1 - left / whole)), 100)
        by_steps: dict[int, int] = {}
        for budget in sorted(self.plans, reverse=True):
            by_steps[self.plans[budget].n_forward] = budget
        complete = not any(high - low > self.close for _, low, high in gaps)
        if complete:
            tell(f"breakpoints: {len(by_steps)} found", 100, 100)
        return tuple(self.plans[budget] for budget in sorted(by_steps.values())), complete


def _of_loops(loops: Loops) -> _Search | None:
    """The search in a program of loop functions, planned on names of buffers."""
    saved, least = loops.plan(SaveAll()), _enough(loops)
    if saved is None or least is None:
        return None

    def plan(budget: int) -> Plan:
        found = loops.plan(Budget(budget))
        assert found is not None  # it is no less than the least
        return found

    sizes = [n for loop in loops.trial.loops for n in loop.sizes.values() if n]
    return _Search(plan, least, saved.peak_bytes + least, saved.n_forward, max(1, min(sizes, default=1) // PARTS))


def _of_marked_steps(f: Callable[..., Any], args: tuple[Any, ...]) -> _Search | None:
    """The search in marked steps: what a run under a budget holds besides tells of the schedule that it goes by,
    and so of those of other budgets. None where runs under two do not tell the same."""
    saved = measured(f, args, SaveAll())
    least = _least_of(measured(f, args, Budget(4 * saved.peak_bytes + 1)))
    if least is None or least >= saved.peak_bytes:
        return None
    runs = [measured(f, args, Budget((k * least + saved.peak_bytes) // (k + 1))) for k in (15, 0)]
    if any(_least_of(run) is None for run in runs) or len(budgeted(runs[0])) != len(budgeted(runs[1])):
        return None
    loops = list(zip(budgeted(runs[0]), budgeted(runs[1]), strict=True))
    n_besides = runs[0].n_forward - sum(_steps_of(low, high, low.policy.max_bytes) for low, high in loops)

    def plan(budget: int) -> Plan:
        return Plan(Budget(budget), n_besides + sum(_steps_of(low, high, budget) for low, high in loops), budget, {})

    middle = Budget((2 * least + saved.peak_bytes) // 3)
    for run in (runs[1], measured(f, args, middle)):
        if plan(run.policy.max_bytes).n_forward != run.n_forward:  # type: ignore[attr-defined]  # it is a Budget
            return None
    sizes = [n for low, _ in loops for _, n in low.sizes if n]
    found = max(least, _least_of(runs[0]) or 0)
    return _Search(plan, found, saved.peak_bytes + least, saved.n_forward, max(1, min(sizes, default=1) // PARTS))


def budgeted(plan: Plan) -> list[LoopSchedule]:
    """The loops that go by the schedule of a budget."""
    return [loop for loop in plan.schedules if isinstance(loop.policy, Budget) and loop.n]


def _least_of(plan: Plan) -> int | None:
    """The least that all loops can do with; None where some go by something else."""
    loops = budgeted(plan)
    if not loops or len(loops) < len(plan.schedules):
        return None
    return max(int(loop.policy.least(loop.n, **dict(loop.sizes))) for loop in loops)


def _steps_of(low: LoopSchedule, high: LoopSchedule, budget: int) -> int:
    """What a loop executes under a budget that is enough for it: with what it reserves under much, where the budget
    affords that, else under little."""
    more = high.policy.reserved - low.policy.reserved
    policy, sizes = evolve(low.policy, max_bytes=budget), dict(low.sizes)
    if more > 0 and policy.affords(more, policy.reserved + sum(sizes.values())):
        policy, sizes = evolve(high.policy, max_bytes=budget), dict(high.sizes)
    return int(policy.n_forward(low.n, **sizes) or 0)


def _enough(loops: Loops) -> int | None:
    """The least bytes that a ``Budget`` may be."""
    enough = 0
    while True:
        try:
            loops.trial.under(Budget(enough))
        except BudgetError as error:
            if error.minimum_bytes <= enough:
                return None
            enough = error.minimum_bytes
        else:
            return enough
