"""Whether a stage of large steps, with its making and its buffers, would be felt beside what a policy holds."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from pullback.policies.save_all import SaveAll
from pullback.scheduling.actions import MEMORY, Delete, Save

COPIES = 50
"""Steps that hold five times as much as making a stage of one takes, and twenty times what its buffers do."""
ACTIONS = 10_000
"""Actions of a schedule that are looked at for its greatest bytes."""


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
