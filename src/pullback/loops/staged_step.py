"""What is kept of a step of a loop function that a stage has recorded."""

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np
from attrs import define, field

from pullback.memory.ledger import Item
from pullback.recording.tape import Tape
from pullback.staging.stages import Stage
from pullback.staging.workspaces import Workspace
from pullback.words.sniffs import quiet


@define(eq=False)
class StepKind:
    """What staged steps of one loop share."""

    stage: Stage
    captured: list[int]
    """Ids of the captured values in the trace around."""
    work: Workspace
    n_leaves: int
    goes_on: bool = field(init=False)
    """Whether the cotangents that it gives are the seeds of the step before, and nothing else enters it."""
    ids: list[int] = field(init=False)
    """Ids of the captured values that get a cotangent."""
    own: tuple[Any, Any] = field(init=False)
    """What pulls cotangents of its own back, and the arrays that this works in."""

    def __attrs_post_init__(self) -> None:
        stage = self.stage
        self.goes_on = stage.returns_seeds and False not in stage.entered and not stage.places[1]
        self.ids = list(compress(self.captured, stage.gathered))
        self.own = stage.reverse_own.function, self.work.of(stage.reverse_own)


@define(eq=False)
class StagedStep:
    """A step that a stage has recorded: what its reverse reads, and, when it is asked for, its tape."""

    kind: StepKind
    slots: tuple[Any, ...]
    k: int
    items: Sequence[Item] = ()
    thawed: Tape | None = field(default=None, init=False)

    @property
    def tape(self) -> Tape:
        """As the ordinary way would have recorded the step."""
        if self.thawed is None:
            tape = self.kind.work.steps.opened(self.k)
            tape.close()
            self.thawed = self.kind.stage.thawed(tape, self.slots, self.kind.captured)
        return self.thawed

    @property
    def entered(self) -> list[int | None]:
        """Record ids of the state leaves at the start."""
        return self.kind.stage.places[0]

    @property
    def x_entered(self) -> list[int | None]:
        """The same of the leaves of ``xs``."""
        return self.kind.stage.places[1]

    @property
    def left(self) -> list[tuple[int, Any] | None]:
        """Record id and spec of the leaves after the step."""
        return self.kind.stage.left[: self.kind.n_leaves]

    @property
    def ys(self) -> list[tuple[int, Any] | None]:
        """The same of its outputs."""
        return self.kind.stage.left[self.kind.n_leaves :]

    def release(self) -> None:
        """Nothing in it books anything."""

    def seeds(self, cts: list[Any]) -> list[Any] | None:
        """The cotangents that the reverse function takes, from those of leaves and outputs; None where it was made for
        others."""
        seeds, specs = [], iter(self.kind.stage.specs)
        for ct, wanted in zip(cts, self.kind.stage.seeded, strict=True):
            if not wanted:
                continue
            spec = next(specs)
            kind = np.ndarray if spec.shape else np.generic
            if not isinstance(ct, kind) or ct.shape != spec.shape or ct.dtype != spec.dtype:
                return None
            if not ct.flags.c_contiguous:  # other strides may have other sums, and one element in many places
                return None
            seeds.append(ct)
        return seeds

    def reverse(self, seeds: list[Any], *, own: bool) -> tuple[Sequence[Any], Any]:
        """The cotangents of the inputs, and those of captured values with their ids. ``own`` says that the seeds are
        what this has returned for the step after."""
        stage = self.kind.stage
        generated = stage.reverse_own if own else stage.reverse
        with quiet():
            cts, gathered = generated.function(self.slots, seeds, *self.kind.work.of(generated))
        if False in stage.entered:
            found = iter(cts)
            cts = [next(found) if wanted else None for wanted in stage.entered]
        return cts, zip(self.kind.ids, gathered, strict=True)
