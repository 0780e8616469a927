"""``plan``: what a policy will hold, and which one to take within a number of bytes."""

from collections.abc import Callable
from typing import Any, overload

from attrs import evolve

from pullback.instruments.planning.advice import Advice
from pullback.instruments.planning.advice_from_forecasts import advise, seconds_of
from pullback.instruments.planning.advice_from_runs import save_all_within
from pullback.instruments.planning.shapes import advice_of_shapes, plan_of_shapes
from pullback.instruments.profiling.plan_forecast import Plan, forecast_of, measured
from pullback.instruments.profiling.seconds import SHORT
from pullback.memory.in_force import policy_in_force
from pullback.policies.base import PolicyOrAuto
from pullback.policies.save_all import SaveAll
from pullback.shapes_only.hollow_arrays import has_spec
from pullback.words.byte_sizes import as_bytes
from pullback.words.call_sites import public
from pullback.words.errors import PolicyError


@overload
def plan(
    f: Callable[..., Any], *args: Any, policy: PolicyOrAuto = ..., budget: None = ..., directory: Any = ...
) -> Plan: ...


@overload
def plan(
    f: Callable[..., Any], *args: Any, policy: PolicyOrAuto = ..., budget: str | float, directory: Any = ...
) -> Advice: ...


@overload
def plan(
    f: Callable[..., Any], *args: Any, policy: PolicyOrAuto = ..., budget: str | float | None, directory: Any = ...
) -> Plan | Advice: ...


@public
def plan(
    f: Callable[..., Any], *args: Any, policy: PolicyOrAuto = None, budget: Any = None, directory: Any = None
) -> Plan | Advice:
    """What ``vjp(f, *args)`` will hold and run under a policy; with ``budget`` which policy to take.

    ``f`` is run once, holding nothing: of a loop function two steps are recorded, the others run on plain arrays, and
    the schedule is carried out on names of buffers, every later step of a loop being taken to hold what the second and
    third do. A short run is made twice, and a few steps besides, to be timed. A program whose plain code a policy
    governs (marked steps, or no marks at all), a loop inside a loop, or a loop whose second and third steps differ, is
    run forward and reverse instead, a short one twice; with ``budget`` under several policies, and what ``tracemalloc``
    sees must keep to it.

    Parameters
    ----------
    f
        Any function.
    *args
        Its arguments. One may be a :func:`pullback.spec`, a shape and a dtype: then nothing is computed, the plan is
        bytes and forward steps, and ``seconds`` is None; with ``budget`` the policy of the fewest forward steps is
        named.
    policy
        Default: the policy in force.
    budget
        Bytes, ``"100 MB"``, or ``"50 %"`` of what is free.
    directory
        Lets ``budget`` take :class:`Tiered`, with what a write and a read cost there.

    Returns
    -------
    A :class:`Plan`: bytes by reason and forward steps, equal to what the report says afterwards, and seconds, good to a
    factor of two on a machine that does nothing else (17 loops, marked steps, plain programs and disks: 0.86 to 1.72).
    It says so where save-all holds no more. With ``budget`` an :class:`Advice`: the fastest policy within these bytes,
    in bytes and seconds, and the next one that holds less and the next that is faster.

    Raises
    ------
    BudgetError
        With ``minimum_bytes``, where nothing fits.
    PolicyError
        Where both a policy and a budget are given.
    ShapesOnlyError
        Where a number of a ``spec`` is needed.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> def f(x):
    ...     return np.sum(pb.fori_loop(0, 100, lambda k, u: u + 0.1 * np.sin(u), x))
    >>> pb.plan(f, np.ones(1000), budget="200 kB").policy
    Budget(200000)
    """
    shapes = has_spec(args)
    if budget is not None:
        if policy is not None:
            raise PolicyError(
                f"plan takes policy= or budget=, got {policy!r} and {budget!r}; leave out the policy to be told one, "
                "or the budget to be told what the policy holds"
            )
        nbytes = as_bytes(budget, "budget")
        return advice_of_shapes(f, args, nbytes) if shapes else advise(f, args, nbytes, directory)
    governing = policy_in_force(policy).at_call()
    if shapes:
        return plan_of_shapes(f, args, governing)
    found, trial = forecast_of(f, args, governing)
    if trial is not None and trial.elapsed_seconds < SHORT:  # the first run of a process meets cold caches
        trial.close()
        found, trial = forecast_of(f, args, governing)
    elif trial is None and (found.seconds or 0.0) < SHORT:
        found = evolve(found, seconds=min(found.seconds or 0.0, measured(f, args, governing).seconds or 0.0))
    saved = None
    if not isinstance(governing, SaveAll):
        saved = trial.under(SaveAll())[0] if trial is not None else save_all_within(f, args, found.peak_bytes)
    if trial is not None:
        found = evolve(found, seconds=seconds_of(trial, governing))
        trial.close()
    if saved is None or saved.peak_bytes > found.peak_bytes or saved.n_forward >= found.n_forward:
        return found
    return evolve(found, save_all_bytes=saved.peak_bytes)
