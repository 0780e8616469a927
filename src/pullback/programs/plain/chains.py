"""Chooses the chain for a stretch of plain code: which class carries out its policy."""

from typing import Any

from pullback.memory.in_force import staging_in_force, threads_in_force, verify_in_force
from pullback.memory.store import Store, is_lossy
from pullback.policies.save_all import SaveAll
from pullback.programs.plain.gauges import gauge_of
from pullback.programs.plain.plain_chain import PlainChain
from pullback.programs.plain.plain_snapshots import PlainSnapshots
from pullback.programs.replay.followed_steps import FollowedRecipes
from pullback.programs.replay.step_recipes import StepRecipes
from pullback.programs.replay.sweep_bytes import MeasuredRecipes
from pullback.words.errors import PolicyError

PROGRAM = "the program"
"""The name of code outside marked steps."""
CHECKPOINT = "checkpoint"


def chain_for(
    governor: Any, n: int | None, policy: Any, how: tuple[Any, Any, Any], calls: Any, name: str, ledger: Any
) -> Any:
    """A chain of ``n`` steps under a policy; ``how`` are ``verify``, ``staging`` and ``threads``."""
    verifies = verify_in_force(how[0]) != "off" and not is_lossy(policy)
    if policy.plans_values and name == PROGRAM:
        from pullback.programs.exact_budget.graph_chain import GraphChain  # noqa: PLC0415 - for those who plan values

        return GraphChain(governor.tape, governor.ledger, policy, governor.repeatable, verifies)
    if policy.within is None:
        return _of_steps(governor, n, policy.between, verifies, how, calls, name, ledger)
    between = None if name == PROGRAM or isinstance(policy.between, SaveAll) else policy.between
    if between is not None and name == CHECKPOINT:
        raise PolicyError(
            f"{policy!r}: a checkpoint is one step, and takes no policy between steps; leave out outer=, and pass the "
            "whole policy to the program"
        )
    from pullback.programs.plain.kept_chain import KeptChain  # noqa: PLC0415 - for those who keep some values

    keeps = KeptChain.under(
        policy.within, governor.tape, ledger, governor.repeatable, calls, verifies=verifies
    )  # fmt: skip
    keeps.decisions.chains.add(id(keeps))
    return (
        keeps
        if between is None
        else _of_steps(governor, n, between.at_call(), verifies, how, None, name, ledger, keeps)
    )


def _of_steps(
    governor: Any, n: int | None, policy: Any, verifies: bool, how: tuple[Any, Any, Any], calls: Any, name: str,
    ledger: Any, keeps: Any = None,
) -> Any:  # fmt: skip
    """The chain that goes by the policy, of whose steps ``keeps`` holds what it will."""
    store, gauge = Store(ledger, policy), gauge_of(policy, name, governor.ledger, governor.tape)
    parts = {
        "tape": governor.tape, "store": store, "n": n, "repeatable": governor.repeatable, "verifies": verifies,
        "works": governor.works, "threads": threads_in_force(how[2]), "gauge": gauge, "marked": name != PROGRAM,
    }  # fmt: skip
    if keeps is not None:
        from pullback.programs.plain.kept_steps import KeptSteps, WatchedSnapshots  # noqa: PLC0415 - as above

        chain: Any = KeptSteps.under(keeps, snapshots=WatchedSnapshots(store, keeps=keeps), **parts)
    else:
        snapshots, recipes = PlainSnapshots(store), StepRecipes(calls=calls)
        if governor.marked and calls is None and name != PROGRAM:
            recipes = governor.following = FollowedRecipes(tape=governor.tape, reads=snapshots)
        if governor.binds and name == PROGRAM and governor.cutter is not None:
            recipes = MeasuredRecipes(tape=governor.tape)
        chain = PlainChain(snapshots=snapshots, recipes=recipes, staging=staging_in_force(how[1]), **parts)
    if gauge is not None:
        gauge.chain = chain
        governor.gauges.append(gauge)
    return chain
