"""The answer of ``plan(budget=)`` (:class:`Advice`), and how the best of several plans is chosen."""

from typing import Final

from attrs import field, fields, frozen

from pullback.instruments.inspect.tables import Column, Table
from pullback.instruments.profiling.plan_forecast import Plan
from pullback.memory.ledger import mib
from pullback.words.errors import BudgetError

AS_FAST: Final = 1.02
"""The multiple of the least seconds up to which policies count as equally fast, so that the first in the list is named:
a measured step tells no more than that."""


@frozen
class Advice(Plan):
    """The fastest policy within ``budget`` bytes: its plan, and those beside it. Prints as a table."""

    budget: int = field(kw_only=True)
    cheaper: Plan | None = field(kw_only=True)
    """The fastest of those that hold half as much or less, or else the least there is."""
    dearer: Plan | None = field(kw_only=True)
    """Faster, with twice the memory or what save-all takes; None where nothing is faster."""
    others: tuple[Plan, ...] = field(kw_only=True)
    """What else was tried within the budget, the fastest first; where plain code comes before the loops, without what
    a policy holds of that."""

    def table(self) -> Table:
        """The plan between the one that holds less and the one that is faster."""
        rows = [("cheaper", self.cheaper), ("take", self), ("dearer", self.dearer)]
        found = [(name, plan) for name, plan in rows if plan is not None]
        seconds = ["-" if plan.seconds is None else f"{plan.seconds:.3g}" for _, plan in found]
        columns = (
            Column("", tuple(name for name, _ in found), text=True),
            Column("policy", tuple(repr(plan.policy) for _, plan in found), text=True),
            Column("peak", tuple(mib(plan.peak_bytes) for _, plan in found)),
            Column("forward steps", tuple(str(plan.n_forward) for _, plan in found)),
            Column("seconds", tuple(seconds)),
        )
        others = "slower, or as fast: " + ", ".join(repr(plan.policy) for plan in self.others)
        return Table(f"within {mib(self.budget)}", columns, (others,) if self.others else ())

    def __str__(self) -> str:
        return self.table().compact()


def best_of(plans: list[Plan]) -> tuple[Plan, list[Plan]]:
    """The first of the plans that are about as fast as the fastest, and the others by their seconds."""
    least = min(map(seconds_of_plan, plans))
    best = next(plan for plan in plans if seconds_of_plan(plan) <= AS_FAST * least)
    return best, sorted((plan for plan in plans if plan is not best), key=seconds_of_plan)


def advice_of(best: Plan, budget: int, cheaper: Plan | None, dearer: Plan | None, rest: list[Plan]) -> Advice:
    """The advice to take ``best``, with what stands beside it."""
    known = {part.name: getattr(best, part.name) for part in fields(Plan)}
    return Advice(**known, budget=budget, cheaper=cheaper, dearer=dearer, others=tuple(rest))


def seconds_of_plan(plan: Plan) -> float:
    """Seconds of a plan, 0 where nobody has measured."""
    return plan.seconds or 0.0


def too_little(budget: int, least: int) -> BudgetError:
    """The error where nothing fits, and the ``least`` bytes are enough."""
    return BudgetError(
        f"budget={budget:,} bytes is too little for this program: none that was tried holds less than {least:,}. Allow "
        f"at least {least:,} bytes.",
        least,
    )
