"""Plans of programs whose arguments are known by shape and dtype alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attrs import evolve

from pullback.choosing.auto import Auto
from pullback.inspect.plan_forecast import Plan, forecast_of, measured, tried
from pullback.memory.in_force import using
from pullback.planning.advice import Loops
from pullback.planning.advices import Advice
from pullback.planning.hollow_arrays import hollow
from pullback.policies.base import MemoryPolicy
from pullback.policies.save_all import SaveAll
from pullback.words.errors import PolicyError
from pullback.words.specs import NEW_ARRAY


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Within the block the library makes arrays without values, and compares none."""
    token = NEW_ARRAY.set(hollow)
    try:
        with using(verify="off", staging="off"):
            yield
    finally:
        NEW_ARRAY.reset(token)


def plan_of_shapes(f: Callable[..., Any], args: tuple[Any, ...], policy: MemoryPolicy) -> Plan:
    """The plan of a program, some arguments of which are specs: bytes and forward steps, and no seconds."""
    with shapes_alone():
        found, trial = forecast_of(f, args, policy)
        saved = None
        if not isinstance(policy, SaveAll):
            saved = trial.under(SaveAll())[0] if trial is not None else measured(f, args, SaveAll())
        if trial is not None:
            trial.close()
    less = saved is not None and saved.peak_bytes <= found.peak_bytes and saved.n_forward < found.n_forward
    return evolve(found, seconds=None, save_all_bytes=saved.peak_bytes if saved is not None and less else None)


def advice_of_shapes(f: Callable[..., Any], args: tuple[Any, ...], budget: int) -> Advice:
    """The advice for a program, some arguments of which are specs: the policy of the fewest forward steps."""
    with shapes_alone():
        trial = tried(f, args, Auto(budget))
        try:
            if not trial.ended or not trial.loops:
                raise PolicyError(
                    "from shapes alone, a policy is named for programs whose steps are those of loop functions; give "
                    "plan a policy=, to be told what it holds, or data"
                )
            found = Loops(trial, None, None if trial.loops_first else (f, args), timed=False).advice(budget)
        finally:
            trial.close()
    beside = {name: _untimed(getattr(found, name)) for name in ("cheaper", "dearer")}
    return evolve(found, seconds=None, others=tuple(map(_untimed, found.others)), **beside)


def _untimed(plan: Any) -> Any:
    return None if plan is None else evolve(plan, seconds=None)
