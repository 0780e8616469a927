"""Loops under a number of bytes in which there is room for all tapes: they go as under save-all."""

from itertools import islice
from typing import Any

from pullback.scheduling.actions import MEMORY, Kind
from pullback.scheduling.machine import Machine


def goes_whole(schedule: Any, machine: Machine, chain: Any) -> bool:
    """Whether all steps of a loop have been recorded and kept, as save-all does it. One of unknown length goes so until
    something has to give way: then its schedule is where it would be if it had gone by it."""
    n, n_whole = machine.n, schedule.n_whole
    chain.verifier.looks_seldom()
    kinds: list[Kind] = ["tape"] if schedule.held == "tapes" else ["tape", "state"]
    if "state" in kinds:
        chain.store.entries["state", 0, MEMORY] = chain.snapshot(0)
    reached: int = chain.go_forward_saving(n, n_whole)
    if n is not None or reached < n_whole:
        machine.n = machine.r = reached
        machine.hold_all(*kinds)
        return True
    for action in islice(schedule, len(kinds) - 1 + 2 * n_whole):  # x_0, and each step recorded and kept
        machine.apply(action)
    return False
