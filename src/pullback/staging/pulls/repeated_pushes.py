"""Lists of directions through a linear map (``linearize``, columns of a Jacobian), by a function generated from the
tape of the pull. Once it is known, the derivative of the pull need not be recorded.

It is shared by all tapes that say the same, as those of ``repeated_pulls``.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define, evolve, field

from pullback.recording.copies import faithful_copy
from pullback.recording.handles import Handle
from pullback.recording.traps import TRAPPED
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.pulls.push_functions import Group, Outs, handed_out, made_push
from pullback.staging.pulls.repeated_pulls import (
    MOST_RECORDS,
    MOST_WIDTHS,
    TIMES,
    KnownTapes,
    at_once,
    known_of,
    layout_of_tape,
)
from pullback.staging.pulls.reverse_functions import is_of, with_held
from pullback.tracing.running import Traced
from pullback.words.specs import ArraySpec, buffer_of, spec_of

Directions = Sequence[list[Any]]
"""The parts of the inputs for each direction, None where there is none."""


@define(eq=False)
class RepeatedPushes:
    """What is known of the derivative of one pull."""

    traced: Traced
    outs: Outs
    specs: tuple[ArraySpec, ...]
    """The specs of the outputs."""
    known: KnownTapes
    values: list[Any]
    """What the records hold."""
    copies: dict[int, tuple[Any, Any]] = field(factory=dict, init=False)
    """Values in the user's memory and copies that stand for them, by the ids of the values."""
    work: dict[Any, Workspace] = field(factory=dict, init=False)
    ordered: dict[Any, Sequence[Any]] = field(factory=dict, init=False)
    """What functions are given in C order, for the directions under way."""

    @property
    def is_known(self) -> bool:
        """Whether there is a function: so that it pays to wait with recording."""
        return any(push is not None for push in self.known.pushes.values())

    def hold(self) -> None:
        """Make the map that of the arguments as they are now, whatever the user does with them."""
        traced = self.traced
        traced.require_unchanged()
        given = {id(buffer_of(x.leaf)) for x in traced.inputs if isinstance(x.leaf, np.ndarray)}
        self.copies = {
            id(x): (x, faithful_copy(x)) for x in self.values if isinstance(x, np.ndarray) and id(buffer_of(x)) in given
        }
        if self.copies:
            self.values = [self._held(x) for x in self.values]
        traced.inputs = [evolve(x, before=None) for x in traced.inputs]

    def release(self) -> None:
        """The records hold what this does: their pull can be recorded."""
        if self.copies:
            self.traced.tape.records[:] = [with_held(record, self._held) for record in self.traced.tape.records]
            self.copies = {}

    def _held(self, x: Any) -> Any:
        return self.copies[id(x)][1] if id(x) in self.copies else x

    def of(self, several: Directions, enough: int, pushes: Callable[[Directions], Any]) -> list[list[Any]] | None:
        """The tangents of the outputs for each direction; None where the derivative has to be recorded. A function is
        made once so many directions have come in lists, and has to give what ``pushes`` gives."""
        known = self.known
        if TRAPPED.get():
            return None
        known.count += len(several)
        if known.count <= max(enough, TIMES * len(several)) and not known.pushes:
            return None
        specs = [x.spec for x in self.traced.inputs]
        for one in several:
            if not all(part is None or is_of(part, spec) for part, spec in zip(one, specs, strict=True)):
                return None
        n = at_once(self.values, [[part for part in one if part is not None] for one in several])
        found: list[list[Any]] = []
        try:
            for start in range(0, len(several), n):
                answers = self._some(several[start : start + n], pushes)
                if answers is None:
                    return None
                found += answers
        finally:
            self.ordered = {}
        return found

    def _some(self, several: Directions, pushes: Callable[[Directions], Any]) -> list[list[Any]] | None:
        known, members = self.known, dict[tuple[int, ...], list[int]]()
        for number, one in enumerate(several):
            members.setdefault(tuple(k for k, part in enumerate(one) if part is not None), []).append(number)
        members.pop((), None)
        specs = [x.spec for x in self.traced.inputs]
        groups: tuple[Group, ...] = tuple(
            (tuple((k, specs[k]) for k in places), len(numbers)) for places, numbers in members.items()
        )
        if groups not in known.pushes:
            if len(known.pushes) >= MOST_WIDTHS:
                return None
            self.release()
            known.pushes[groups] = made_push(self.traced.tape, self.outs, groups, self.values, pushes)
        push = known.pushes[groups]
        if push is None:
            return None
        parts = [[[several[k][place] for place in places] for k in numbers] for places, numbers in members.items()]
        work = self.work.setdefault(push, Workspace())
        if push not in self.ordered:
            self.ordered[push] = push.in_order(self.values, work)
        answers = push.each(self.values, self.ordered[push], parts, work)
        if answers is None:
            return None
        found: list[Any] = [[None] * len(self.specs)] * len(several)
        for numbers, group in zip(members.values(), answers, strict=True):
            for number, tangents in zip(numbers, group, strict=True):
                found[number] = tangents
        return [handed_out(tangents, self.specs) for tangents in found]


def repeated_pushes(traced: Traced, out_leaves: Sequence[Any]) -> RepeatedPushes | None:
    """What is known of the derivative of the pull of a trace with these outputs, which all carry derivatives; None
    where it has to be recorded."""
    tape = traced.tape
    if tape.outer is not None or tape.marks is not None or TRAPPED.get() or len(tape.records) > MOST_RECORDS:
        return None
    if traced.governor is not None or not out_leaves:
        return None
    outs, specs = [], []
    for leaf in out_leaves:
        reached = isinstance(leaf, Handle) and leaf._tape is tape and leaf._id is not None
        specs.append(spec_of(leaf._value if isinstance(leaf, Handle) else leaf))
        outs.append((leaf._id, specs[-1]) if reached else None)
    values: list[Any] = []
    layout = layout_of_tape(tape, ("push", *outs), values)
    return None if layout is None else RepeatedPushes(traced, outs, tuple(specs), known_of(layout), values)
