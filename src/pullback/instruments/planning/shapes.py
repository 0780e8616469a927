"""Plans from ``pb.spec`` arguments: shapes and dtypes without values."""

from collections.abc import Callable
from typing import Any

from attrs import evolve

from pullback.choosing.auto import Auto
from pullback.instruments.planning.advice import Advice
from pullback.instruments.planning.advice_from_forecasts import Loops
from pullback.instruments.planning.advice_from_runs import of_runs
from pullback.instruments.profiling.plan_forecast import Plan, forecast_of, measured, tried
from pullback.policies.base import MemoryPolicy
from pullback.policies.save_all import SaveAll
from pullback.shapes_only.hollow_arrays import shapes_alone


def plan_of_shapes(f: Callable[..., Any], args: tuple[Any, ...], policy: MemoryPolicy) -> Plan:
    """The plan of a program, some arguments of which are specs: bytes and forward steps, and no seconds. To the byte
    where every argument is an array of its own."""
    with shapes_alone():
        found, trial = forecast_of(f, args, policy)
        saved = None
        if not isinstance(policy, SaveAll):
            saved = trial.under(SaveAll())[0] if trial is not None else measured(f, args, SaveAll())
        if trial is not None:
            trial.close()
    less = saved is not None and saved.peak_bytes <= found.peak_bytes and saved.n_forward < found.n_forward
    saved_bytes = saved.peak_bytes if saved is not None and less else None
    return evolve(found, seconds=None, save_all_bytes=saved_bytes, of_shapes=True)


def advice_of_shapes(f: Callable[..., Any], args: tuple[Any, ...], budget: int) -> Advice:
    """The advice for a program, some arguments of which are specs: the policy of the fewest forward steps."""
    with shapes_alone():
        trial = tried(f, args, Auto(budget))
        try:
            if trial.ended and trial.loops and not trial.marks:
                found = Loops(trial, None, None if trial.loops_first else (f, args), timed=False).advice(budget)
            else:
                found = of_runs(f, args, budget, timed=False)
        finally:
            trial.close()
    beside = {name: _untimed(getattr(found, name)) for name in ("cheaper", "dearer")}
    return evolve(found, seconds=None, others=tuple(map(_untimed, found.others)), **beside)


def _untimed(plan: Any) -> Any:
    return None if plan is None else evolve(plan, seconds=None)
