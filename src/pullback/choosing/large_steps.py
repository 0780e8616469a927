"""When a stage of large steps is made, whose making and buffers may be felt beside what a policy holds: of the first
steps, of later ones, or never."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from pullback.policies.save_all import SaveAll
from pullback.scheduling.machine.actions import MEMORY, Delete, Save

COPIES = 50
"""Steps that hold five times as much as making a stage of one takes, and twenty times what its buffers do."""
ACTIONS = 10_000
"""Actions of a schedule that are looked at for its greatest bytes."""


def early_or_never(staging: Any, policy: Any, n: int | None, sizes: Mapping[str, int], nbytes: int) -> Any:
    """The ``staging`` of a loop whose steps have so many bytes, told to make stages of the first steps, before much is
    held; None where it would be felt even then. A policy that counts bytes says so itself, from its schedule on."""
    if nbytes <= staging.most_bytes or (policy.counts_bytes and not staging.short):
        staging.early = staging.spares = not policy.counts_bytes and type(policy) is not SaveAll
    elif is_felt(policy, n, sizes):
        return None
    else:
        staging.early = True
    return staging


def is_felt(policy: Any, n: int | None, sizes: Mapping[str, int]) -> bool:
    """Whether it would be felt that a stage of large arrays is made of the first steps, and has buffers: the policy
    says a number of bytes, or never holds much more."""
    needed = COPIES * sum(sizes.values())
    if n is None or policy.counts_bytes:
        return True
    if type(policy) is SaveAll:
        return n * sizes["tape_bytes"] < needed
    held, bytes_of = 0, {"state": sizes["state_bytes"], "tape": sizes["tape_bytes"]}
    for action in islice(policy.schedule(n, **sizes), ACTIONS):
        if type(action) is Save and action.tier == MEMORY:
            held += bytes_of[action.kind]
        elif type(action) is Delete and action.tier == MEMORY:
            held -= bytes_of[action.kind]
        if held >= needed:
            return False
    return True
