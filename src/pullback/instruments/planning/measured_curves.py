"""``pareto``: memory against time of one program, as planned and as measured, policy by policy."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import define, evolve

from pullback.instruments.planning.breakpoints import SECONDS, breakpoints, budgeted
from pullback.instruments.planning.curves import Pareto, Point
from pullback.instruments.profiling.plan_forecast import Plan, measured
from pullback.instruments.profiling.profile_measurements import (
    MeasuredProgram,
    MeasuredRun,
    make_program,
    plain_seconds,
    run_once,
)
from pullback.instruments.profiling.seconds import Forecaster
from pullback.instruments.watching.parts import Tell, telling
from pullback.instruments.watching.progress import in_words
from pullback.memory.in_force import policy_in_force
from pullback.policies.base import MemoryPolicy, PolicyOrAuto
from pullback.policies.budget import Budget
from pullback.policies.recompute import Recompute
from pullback.policies.save_all import SaveAll
from pullback.transforms.derivatives.argnums import name_of
from pullback.words.byte_sizes import as_bytes
from pullback.words.call_sites import public
from pullback.words.errors import BudgetError, PolicyError

N_BUDGETS: Final = 8
"""Numbers of bytes that are tried where nobody names them, each so many times the last one."""
MOST_AGAIN: Final = 10
"""A budget under which so many times the steps of save-all are run, or more, is not tried unless it is named: of a
thousand steps the least budget runs half a million."""
CLOSE: Final = 0.95
"""A least budget that is no smaller than so many times the last one is not looked for again."""


@public
def pareto(
    f: Callable[..., Any],
    *args: Any,
    budgets: str | Sequence[int | str] = "auto",
    policies: Sequence[PolicyOrAuto] | None = None,
    argnums: int | tuple[int, ...] = 0,
    repeat: int = 1,
    seconds: float | None = SECONDS,
    progress: Tell | bool | None = None,
) -> Pareto:
    """The curve of memory against time of the gradient of ``f(*args)``: for each policy the bytes and the seconds that
    ``plan`` predicts, and those of a run.

    Parameters
    ----------
    f
        Any function whose gradient exists.
    *args
        Its arguments.
    budgets
        Numbers of bytes (``"100 MB"``, ``200_000``), each tried as :class:`Budget`. ``"auto"`` takes eight up to what
        save-all holds, from the least that runs no more than ten times the steps of save-all (less memory than that
        takes hours where save-all takes seconds: name such a budget to have it tried). For a program of loop functions
        or marked steps these are among its ``breakpoints``, the budgets from which on fewer steps are run again. A
        budget that is too little is left out.
    policies
        Tried besides: save-all and ``Recompute()`` by default.
    argnums
        The arguments of the gradient.
    repeat
        How many gradients each policy takes, of which the fastest counts.
    seconds
        All breakpoints are predicted where that takes no longer (None: however long).
    progress
        True shows a bar with what is under way and the time that remains; a function ``progress(what, done, total)`` is
        called as each part begins.

    Returns
    -------
    A :class:`Pareto`: ``.best("100 MB")``, ``.plot()``.

    Raises
    ------
    ValueError
        For ``repeat`` below 1.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> def f(x):
    ...     return np.sum(pb.fori_loop(0, 100, lambda k, u: u + 0.1 * np.sin(u), x))
    >>> curve = pb.pareto(f, np.ones(1000), budgets=["100 kB", "400 kB"])
    >>> curve.best("400 kB").peak_bytes <= 400_000
    True
    """
    if repeat < 1:
        raise ValueError(f"pareto needs repeat >= 1, got {repeat}; each policy is run at least once")
    if isinstance(budgets, str) and budgets != "auto":
        raise ValueError(f"pareto got budgets={budgets!r}; pass 'auto' or a list, such as ['10 MB', '100 MB']")
    program = make_program(f, args, argnums)
    besides = [SaveAll(), Recompute()] if policies is None else [policy_in_force(policy) for policy in policies]
    with telling(progress) as tell:
        tell("one plain forward run", 0, 1)
        forward, _ = plain_seconds(program)
        corners: tuple[Plan, ...] = ()
        complete = True
        if isinstance(budgets, str):
            tell("the budgets that make a difference", 0, 1)
            corners, complete = breakpoints(program.call, program.active, seconds, tell) or ((), True)
            wanted = _chosen(corners) if corners else _ladder(program)
        else:
            wanted = [as_bytes(budget, "budgets") for budget in budgets]
        work = _Work(program, repeat, tell, refuses=policies is not None)
        points = work.points([*besides, *map(Budget, wanted)])
    ordered = sorted(points, key=lambda point: (point.peak_bytes, point.seconds))
    return Pareto(name_of(f), tuple(ordered), forward, corners, complete)


@define(eq=False)
class _Work:
    """The plans and the runs of one curve."""

    program: MeasuredProgram
    repeat: int
    tell: Tell
    refuses: bool
    """Whether a policy that cannot serve the program is an error: it was named."""

    def points(self, policies: list[MemoryPolicy]) -> list[Point]:
        """A point for each policy that serves the program, which is planned under each before it is run."""
        forecaster, plans = Forecaster(self.program), list[Plan]()
        total = (1 + self.repeat) * len(policies)
        for k, policy in enumerate(policies):
            self.tell(f"{policy!r}: plan", k, total)
            try:
                plan, seconds, _ = forecaster.forecast(policy)
                plans.append(evolve(plan, policy=policy, seconds=seconds))
            except PolicyError as error:
                self._refused(error)
        points, left = [], sum(plan.seconds or 0.0 for plan in plans) * self.repeat
        for k, plan in enumerate(plans):
            runs: list[MeasuredRun] = []
            try:
                for number in range(self.repeat):
                    done = total - self.repeat * (len(plans) - k) + number
                    self.tell(f"{plan.policy!r}: run; about {in_words(left)} left", done, total)
                    runs.append(run_once(self.program, plan.policy))
                    left -= plan.seconds or 0.0
            except PolicyError as error:
                self._refused(error)
                continue
            fastest = min(runs, key=lambda run: run.elapsed_seconds)
            report = fastest.report
            points.append(
                Point(
                    plan.policy, plan.peak_bytes, report.peak_bytes, report.n_forward, plan.seconds,
                    fastest.elapsed_seconds,
                )
            )  # fmt: skip
        self.tell("done", total, total)
        return points

    def _refused(self, error: PolicyError) -> None:
        if self.refuses and not isinstance(error, BudgetError):
            raise error


def _chosen(corners: tuple[Plan, ...]) -> list[int]:
    """The budgets of some breakpoints, by about equal factors, the last among them; the first that does not run very
    many steps is, too."""
    most = MOST_AGAIN * corners[-1].n_forward
    usable = [plan for plan in corners if plan.n_forward <= most]
    budgets = [plan.policy.max_bytes for plan in usable if isinstance(plan.policy, Budget)]
    factor = (budgets[-1] / budgets[0]) ** (1 / (N_BUDGETS - 1))
    return sorted({min(budgets, key=lambda each: abs(each - budgets[0] * factor**k)) for k in range(N_BUDGETS)})


def _ladder(program: MeasuredProgram) -> list[int]:
    """Budgets from the least bytes that a budget may be, without running very many steps, to those of save-all, by
    equal factors."""
    f, args = program.call, program.active
    most = measured(f, args, SaveAll()).peak_bytes
    least = _least(f, args, most)
    if least >= most:
        return [least]
    factor = (most / least) ** (1 / (N_BUDGETS - 1))
    return sorted({round(least * factor**k) for k in range(N_BUDGETS)})


def _least(f: Callable[..., Any], args: tuple[Any, ...], most: int) -> int:
    """The least bytes, to a few in a hundred where a run with more tells of them: what its schedules would do with
    fewer. Where less is reserved with fewer bytes, another run tells of still fewer."""
    budget, known = 4 * most + 1, 0
    while True:
        try:
            plan = measured(f, args, Budget(budget))
        except BudgetError as error:
            known = budget = max(budget + 1, error.minimum_bytes)
            continue
        if known:
            return budget
        less = _least_of(plan, budget)
        if less is None:
            known = budget = 1
        elif less > CLOSE * budget:
            return budget
        else:
            budget = less


def _least_of(plan: Plan, most: int) -> int | None:
    """The least bytes with which the loops of a plan under ``Budget(most)`` do not run very many steps; None where
    there is no such loop."""
    loops = budgeted(plan)

    def serves(budget: int) -> bool:
        steps = [evolve(loop.policy, max_bytes=budget).n_forward(loop.n, **dict(loop.sizes)) for loop in loops]
        return all(n is not None and n <= MOST_AGAIN * loop.n for n, loop in zip(steps, loops, strict=True))

    if not loops or not serves(most):
        return None
    low, high = 0, most
    while high - low > 1 + high // 100:
        middle = (low + high) // 2
        low, high = (low, middle) if serves(middle) else (middle, high)
    return high
