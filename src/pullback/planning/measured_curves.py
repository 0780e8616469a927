"""``pareto``: memory against time of one program, as planned and as measured, policy by policy."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from pullback.inspect.plan_forecast import Plan
from pullback.inspect.profile_measurements import make_program, plain_seconds, run_once
from pullback.memory.in_force import policy_in_force
from pullback.planning.breakpoints import breakpoints
from pullback.planning.curves import Pareto, Point
from pullback.planning.plans import plan
from pullback.policies.base import MemoryPolicy
from pullback.policies.budget import Budget
from pullback.policies.recompute import Recompute
from pullback.policies.save_all import SaveAll
from pullback.transforms.argnums import name_of
from pullback.words.byte_sizes import as_bytes
from pullback.words.call_sites import public
from pullback.words.errors import BudgetError, PolicyError

N_BUDGETS: Final = 8
"""Numbers of bytes that are tried where nobody names them, each so many times the last one."""


@public
def pareto(
    f: Callable[..., Any],
    *args: Any,
    budgets: str | Sequence[int | str] = "auto",
    policies: Sequence[MemoryPolicy | str] | None = None,
    argnums: int | tuple[int, ...] = 0,
    repeat: int = 1,
) -> Pareto:
    """The :class:`Pareto` curve of the gradient of ``f(*args)``: for each policy the bytes and the seconds that
    ``plan`` predicts, and those of a run.

    ``budgets`` are numbers of bytes (``"100 MB"``, ``200_000``), each tried as :class:`Budget`; ``"auto"`` takes
    eight between the least that is feasible and what save-all holds. For a program of loop functions these are among
    its ``breakpoints``, the budgets from which on fewer steps are run again, all of which are predicted. ``policies``
    are tried besides: save-all and ``Recompute()`` by default. Each policy takes one plan and ``repeat`` gradients by
    the arguments at ``argnums``, of which the fastest counts. A budget that is too little is left out. Raises what
    ``f`` raises, ``ValueError`` for ``repeat`` below 1.

    >>> import numpy as np, pullback as pb
    >>> def f(x):
    ...     return np.sum(pb.fori_loop(0, 100, lambda k, u: u + 0.1 * np.sin(u), x))
    >>> curve = pb.pareto(f, np.ones(1000), budgets=["100 kB", "400 kB"])
    >>> curve.best("400 kB").peak_bytes <= 400_000
    True
    """
    if repeat < 1:
        raise ValueError(f"pareto needs repeat >= 1, got {repeat}; each policy is run at least once")
    program = make_program(f, args, argnums)
    besides = [SaveAll(), Recompute()] if policies is None else [policy_in_force(policy) for policy in policies]
    corners: tuple[Plan, ...] = ()
    if isinstance(budgets, str):
        if budgets != "auto":
            raise ValueError(f"pareto got budgets={budgets!r}; pass 'auto' or a list, such as ['10 MB', '100 MB']")
        corners = breakpoints(f, args) or ()
        wanted = _chosen(corners) if corners else _ladder(f, args)
    else:
        wanted = [as_bytes(budget, "budgets") for budget in budgets]
    forward, _ = plain_seconds(program)
    points = []
    for policy in (*besides, *map(Budget, wanted)):
        try:
            planned = plan(f, *args, policy=policy)
            runs = [run_once(program, policy) for _ in range(repeat)]
        except PolicyError as error:
            if isinstance(error, BudgetError) or policies is None:
                continue
            raise
        fastest = min(runs, key=lambda run: run.elapsed_seconds)
        report = fastest.report
        points.append(
            Point(
                policy,
                planned.peak_bytes,
                report.peak_bytes,
                report.n_forward,
                planned.seconds,
                fastest.elapsed_seconds,
            )
        )
    return Pareto(
        name_of(f), tuple(sorted(points, key=lambda point: (point.peak_bytes, point.seconds))), forward, corners
    )


def _chosen(corners: tuple[Plan, ...]) -> list[int]:
    """The budgets of some breakpoints, the first and the last among them, by about equal factors."""
    budgets = [plan.policy.max_bytes for plan in corners if isinstance(plan.policy, Budget)]
    factor = (budgets[-1] / budgets[0]) ** (1 / (N_BUDGETS - 1))
    return sorted({min(budgets, key=lambda each: abs(each - budgets[0] * factor**k)) for k in range(N_BUDGETS)})


def _ladder(f: Callable[..., Any], args: tuple[Any, ...]) -> list[int]:
    """From the least bytes that a budget may be to those of save-all, by equal factors."""
    most, least = plan(f, *args, policy=SaveAll()).peak_bytes, 1
    while True:
        try:
            plan(f, *args, policy=Budget(least))
        except BudgetError as error:
            least = max(least + 1, error.minimum_bytes)
        else:
            break
    if least >= most:
        return [least]
    factor = (most / least) ** (1 / (N_BUDGETS - 1))
    return sorted({round(least * factor**k) for k in range(N_BUDGETS)})
