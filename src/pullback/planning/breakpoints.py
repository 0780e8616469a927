"""Every number of bytes at which ``Budget`` does less again: the corners of the predicted curve."""

import time
from collections.abc import Callable
from heapq import heappop, heappush
from math import log
from typing import Any, Final

from pullback.choosing.auto import Auto
from pullback.inspect.plan_forecast import Plan, tried
from pullback.planning.advice import Loops
from pullback.policies.budget import Budget
from pullback.policies.save_all import SaveAll
from pullback.words.errors import BudgetError

MOST: Final = 300
"""Budgets that are planned at most."""
SECONDS: Final = 5.0
"""How long it may take."""
PARTS: Final = 64
"""A breakpoint is found to so many parts of a state, or of a tape where that is smaller."""


def breakpoints(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Plan, ...] | None:
    """The plan of a ``Budget`` for each number of forward steps there is, those that hold least first, from the least
    budget to what save-all takes; None for a program that must be run to be planned.

    Each budget is the least for its number, to a 64th of a state. Where there are very many, or planning takes long,
    the gaps between them that are largest are closed first.
    """
    trial = tried(f, args, Auto(1 << 62))
    try:
        if not trial.ended or not trial.loops or not trial.loops_first:
            return None
        return tuple(_found(Loops(trial, None, None)))
    finally:
        trial.close()


def _found(loops: Loops) -> list[Plan]:
    ends, saved, least = time.perf_counter() + SECONDS, loops.plan(SaveAll()), _enough(loops)
    if saved is None or least is None:
        return []
    sizes = [n for loop in loops.trial.loops for n in loop.sizes.values() if n]
    close, plans = max(1, min(sizes, default=1) // PARTS), dict[int, Plan]()

    def steps(budget: int) -> int:
        if budget not in plans:
            plan = loops.plan(Budget(budget))
            assert plan is not None  # it is no less than the least
            plans[budget] = plan
        return plans[budget].n_forward

    most = saved.peak_bytes + least
    while steps(most) > saved.n_forward:
        most *= 2
    gaps = [(0.0, least, most)]
    while gaps and len(plans) < MOST and time.perf_counter() < ends:
        _, low, high = heappop(gaps)
        if steps(low) == steps(high) or high - low <= close:
            continue
        middle = (low + high) // 2
        for pair in ((low, middle), (middle, high)):
            if steps(pair[0]) != steps(pair[1]):
                heappush(gaps, (-log(steps(pair[0]) / steps(pair[1])), *pair))
    by_steps: dict[int, int] = {}
    for budget in sorted(plans, reverse=True):
        by_steps[plans[budget].n_forward] = budget
    return [plans[budget] for budget in sorted(by_steps.values())]


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
