"""``plan``: the forecast of what a policy will hold and execute, made without the reverse pass."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

from pullback.memory.in_force import planning, policy_in_force
from pullback.memory.ledger import mib
from pullback.policies.base import MemoryPolicy
from pullback.recording.handles import Handle
from pullback.recording.recorder import form_of
from pullback.transforms.reverse import forward, vjp
from pullback.words.call_sites import public
from pullback.words.structures import flatten, map_leaves


@frozen
class Plan:
    """What ``vjp(f, *args, policy=policy)`` and one pull will hold at the peak, and how many forward steps they
    execute."""

    policy: MemoryPolicy
    n_forward: int
    peak_bytes: int
    bytes_by_reason: dict[str, int]

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {mib(n)}" for name, n in self.bytes_by_reason.items())
        return (
            f"{self.policy!r}: peak {mib(self.peak_bytes)} ({parts or 'nothing held'}), {self.n_forward} forward steps"
        )


@public
def plan(f: Callable[..., Any], *args: Any, policy: Any = None) -> Plan:
    """The :class:`Plan` of ``vjp(f, *args)`` under a policy (default: the one in force); equal to what the report says
    afterwards.

    ``f`` is run once, holding nothing: of a loop function two steps are recorded, the others run on plain arrays, and
    the schedule is carried out on names of buffers, every later step of a loop being taken to hold what the second and
    third do. A program whose plain code a policy governs (marked steps, or no marks at all), a loop inside a loop, or a
    loop whose second and third steps differ, is run forward and reverse instead.
    """
    governing = policy_in_force(policy)
    with planning() as loops:
        traced, pull = forward(f, args, {}, range(len(args)), governing, allow_int=True, repeatable=True)
    ledger = pull.ledger
    governor = traced.governor
    if (governor is not None and governor.chains) or any(loop.forecast.uneven for loop in loops):
        pull.close()
        return _measured(f, args, governing)
    active = _reached(traced)
    for loop in reversed(loops):
        if id(loop) in active:
            with ledger.holding(loop.ct_items()):
                loop.forecast.reverse()
        loop.chain.release()
    report = pull.report
    pull.close()
    return Plan(governing, ledger.n_forward, report.peak_bytes, report.bytes_by_reason)


def _reached(traced: Any) -> set[int]:
    """The loops (by ``id``) that a cotangent of the output reaches; the others are not reversed."""
    tape = traced.tape
    ids = {
        leaf._id
        for leaf in flatten(traced.out)[0]
        if isinstance(leaf, Handle) and leaf._tape is tape and leaf._id is not None
    }
    loops: set[int] = set()
    for ident in range(len(tape.records) - 1, tape.n_inputs - 1, -1):
        record = tape.records[ident]
        if ident in ids and record is not None:
            form = form_of(record)
            ids.update(form.ids(record))
            if form.wide:
                loops.add(id(record[2]))
    return loops


def _measured(f: Callable[..., Any], args: tuple[Any, ...], policy: MemoryPolicy) -> Plan:
    """The figures of one forward and one reverse pass that are run."""
    out, pull = vjp(f, *args, policy=policy)
    pull(map_leaves(np.ones_like, out))
    report = pull.report
    pull.close()
    return Plan(policy, report.n_forward, report.peak_bytes, report.bytes_by_reason)
