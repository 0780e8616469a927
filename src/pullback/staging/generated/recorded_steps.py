"""A step as it was recorded in the ordinary way: what a stage is made from, and the bytes that its functions must give
before they are used (:func:`require_same`)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field

from pullback.memory.reverse_sweep import Sweep, sweep
from pullback.recording.copies import own_leaf
from pullback.recording.tape import Tape
from pullback.staging.generated.forward_statements import NotStageableError
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.shadow.collective_pulls import ComparedPull, draw, is_taken_part_in, tried
from pullback.staging.shadow.operations import Operation, Result, enters_as
from pullback.staging.statements.symbols import Program, Symbol
from pullback.words.digests import same_bits
from pullback.words.ordered_calls import fed
from pullback.words.undocumented import quiet


@define(eq=False)
class RecordedStep:
    """A step that was recorded in the ordinary way, with what its shadow run wrote down: what a stage is made from."""

    tape: Tape
    operations: list[Operation]
    ranges: list[tuple[int, int]]
    inputs: list[Any]
    captured: list[tuple[int, Any]]
    constants: list[Any]
    kinds: list[Result | None]
    """The kinds of the leaves of the state; None for one that may be of any."""
    places: tuple[list[int | None], list[int | None]]
    """Records of the leaves that enter, and of those of ``xs``."""
    left: list[tuple[int, Any] | None]
    """Record and spec of each leaf and output that leaves, None where it does not depend on the inputs."""
    returned: list[Any]
    """Values of the leaves and outputs."""
    after: list[Any]
    """The state after the step, in which Python's numbers are such again."""
    masks: bool
    read: list[Any] = field(factory=list)
    """The values that were read while it ran, and what calls have given that have an effect."""
    ordered: list[Any] = field(factory=list)
    """Those of them that calls with an effect have given."""
    of_loop: bool = True
    """Whether it is the step of a loop, and no call of a function."""
    advances: bool = True
    """Whether such loops run steps that they do not keep, as policies have it."""
    masks_itself: bool = False
    """Whether it leaves elements out itself, not only what came before the loop."""

    @property
    def entered(self) -> list[int]:
        """Record of each input."""
        return [i for part in self.places for i in part if i is not None]

    @property
    def returns_own(self) -> bool:
        """Whether what it returns owns its memory, which is none of a captured value or a plain operand: these may be
        read-only in one step and not in another."""
        others = [*(value for _, value in self.captured), *self.constants]
        return all(own_leaf(x) is x and not any(share_memory(x, one) for one in others) for x in self.returned)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The places of the leaves that NumPy has returned as numbers of its own, and that are Python's again."""
        pairs = zip(self.returned, self.after, strict=False)
        return tuple(k for k, (old, new) in enumerate(pairs) if type(old) is np.float64 and type(new) is float)

    def enters_again(self, leaves: list[Any]) -> bool:
        """Whether leaves are of the kinds that have entered the step."""
        return all(kind is None or enters_as(kind, x) for kind, x in zip(self.kinds, leaves, strict=False))


def gives_seeds(stage: Any, cts: Sequence[Any]) -> bool:
    """Whether these cotangents of what enters are seeds of the step before: of the same leaves, and of their kinds.
    Those of rows of ``xs`` come behind them."""
    entered = iter(stage.entered)
    leaves = [ident is not None and next(entered) for ident in stage.places[0]]
    return leaves == list(stage.seeded[: len(leaves)]) and all(
        isinstance(x, np.ndarray if spec.shape else np.generic)
        and x.flags.c_contiguous
        and x.shape == spec.shape
        and x.dtype == spec.dtype
        for x, spec in zip(cts[: sum(leaves)], stage.specs, strict=False)
    )


def seeds_of(
    program: Program, left: Sequence[tuple[int, Any]], samples: Sequence[Any] | None = None
) -> tuple[dict[int, Symbol], list[Symbol]]:
    """The sum of the seeds of each record, by its id, and the seeds, of what leaves by these records with these specs;
    their ``samples`` are ones unless they are given."""
    ones = (np.ones(spec.shape, spec.dtype)[()] for _, spec in left)
    given = [program.value(sample) for sample in (ones if samples is None else samples)]
    seeds: dict[int, Symbol] = {}
    for (ident, _), seed in zip(left, given, strict=True):
        seeds[ident] = seeds[ident] + seed if ident in seeds else seed
    return seeds, given


def own_seeds(program: Program, parts: list[list[int]], given: list[Symbol], n: int) -> list[int]:
    """The seeds that may be written to when they are what the function has returned for the step after: those whose
    memory nothing else has that it returns, and that is no seed handed on. The first ``n`` of them are those of the
    state, and so are the first cotangents that it returns; the others are rows, of outputs and of ``xs``."""
    samples = [program.samples[number] for part in parts for number in part]
    return [
        seed.number
        for k, seed in enumerate(given[:n])
        if isinstance(samples[k], np.ndarray)
        and samples[k].base is None
        and parts[0][k] not in [x.number for x in given]
        and not any(share_memory(samples[k], other) for j, other in enumerate(samples) if j != k)
    ]


def n_carried(seeded: Sequence[bool], idents: Sequence[int | None], cts: Sequence[Any]) -> int:
    """How many seeds are those of the state, of the leaves that are ``seeded``, and so how many cotangents that a step
    gives, of the records that leaves enter by; 0 where it gives those of other leaves than it takes."""
    entered = [ident is not None and cts[ident] is not None for ident in idents]
    return sum(entered) if list(seeded[: len(entered)]) == entered else 0


def share_memory(one: Any, other: Any) -> bool:
    """Whether both are arrays, whose memory may overlap."""
    return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and bool(np.may_share_memory(one, other))


def require_same(stage: Any, step: RecordedStep) -> tuple[Any, Any]:
    """Run the functions on what the recorded step was run on: all that leaves must have the same bytes. The slots, and
    the seeds that were drawn.

    One function after the other: what it has given is let go of before the next one runs.
    """
    work = Workspace()
    if stage.advance is not stage.record:
        _forward(stage.advance, step, work)
    slots = _forward(stage.record, step, work)
    random = np.random.default_rng(0)
    seeds = [draw(random, spec) for spec in stage.specs]
    trial = ComparedPull()
    with trial.run():
        entered, gathered = _swept(step, seeds)
    for function in dict.fromkeys((stage.reverse, stage.reverse_own)):
        with trial.run():
            _backward(function, (slots, [seed.copy() for seed in seeds]), (entered, gathered), work)
    if stage.both is not None:
        forwards = step.inputs, [value for _, value in step.captured], step.constants
        require_at_once(stage, forwards, seeds, (step.returned, entered, gathered), random)
    return slots, seeds


def _forward(function: Any, step: RecordedStep, work: Workspace) -> Any:
    """The slots, where a function of a step gives what the recorded one has given; the last of its results."""
    captured = [value for _, value in step.captured]
    with quiet(), fed(step.ordered):  # what there is to be warned of has been warned of by the recorded step
        read, found = function.whole(step.inputs, captured, step.constants, *work.of(function))
    require_equal(read, step.read, "what is read")
    require_equal(found[0], step.returned, "what the step returns")
    return found[-1]


def _swept(step: RecordedStep, seeds: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The cotangents of what entered a step, and of what it captured, by a sweep of its records."""
    cts: list[Any] = [None] * len(step.tape.records)
    one = Sweep(cts, masks=step.masks)
    for at, seed in zip((at for at in step.left if at is not None), seeds, strict=True):
        cts[at[0]] = seed.copy() if cts[at[0]] is None else cts[at[0]] + seed
    records = step.tape.records
    try:
        if step.tape.collective:
            step.tape.records = [
                tried(k, record, masks=step.masks) if record is not None and is_taken_part_in(record) else record
                for k, record in enumerate(records)
            ]
        sweep(step.tape, step.tape.n_inputs, len(records), [one])
    finally:
        step.tape.records = records
    gathered = [one.gathered.get(ident) for ident, _ in step.captured]
    entered = [cts[ident] for ident in step.entered]
    return [ct for ct in entered if ct is not None], [ct for ct in gathered if ct is not None]


def _backward(function: Any, given: tuple[Any, Any], wanted: tuple[Sequence[Any], ...], work: Workspace) -> None:
    with quiet():
        found = function.function(*given, *work.of(function))
    for values, expected, what in zip(found, wanted, ("", " of captured values"), strict=True):
        require_equal(values, expected, f"the cotangents{what}")


def require_at_once(
    stage: Any,
    forwards: tuple[Sequence[Any], Sequence[Any], Sequence[Any]],
    seeds: Sequence[Any],
    wanted: tuple[Sequence[Any], ...],
    random: np.random.Generator,
) -> None:
    """``both`` and ``leaf`` must give what the functions give that they stand for, added to sums that are drawn.
    ``forwards`` is what enters the step, what it captures, and its plain operands."""
    work = Workspace()
    returned, entered, gathered = wanted
    sums = [np.asarray(draw(random, ct)) if isinstance(ct, np.ndarray) else draw(random, ct) for ct in gathered]
    added = [np.add(total, ct) for total, ct in zip(sums, gathered, strict=True)]
    for generated, expected in ((stage.both, (returned, entered, added)), (stage.leaf, (entered, added))):
        given = [seed.copy() for seed in seeds], [x.copy() for x in sums]
        with quiet():
            found = generated.function(*forwards, *given, *work.of(generated))
        for values, wanted_here in zip(found, expected, strict=True):
            require_equal(values, wanted_here, "a step that is reversed at once")
        del found, given


def require_equal(found: Sequence[Any], wanted: Sequence[Any], what: str, *, nans_alike: bool = False) -> None:
    """Raise :class:`NotStageableError` where values have not the bytes and strides of those that were recorded; where
    NaNs are alike, NaNs of any bits are the same."""
    if len(found) != len(wanted):
        raise NotStageableError(f"{what}: {len(found)} values, {len(wanted)} were recorded")
    for a, b in zip(found, wanted, strict=True):
        a, b = np.asarray(a), np.asarray(b)  # noqa: PLW2901
        if nans_alike and a.shape == b.shape and a.dtype == b.dtype and a.strides == b.strides and a.dtype.kind in "fc":
            b = np.where(np.isnan(a) & np.isnan(b), a, b)  # noqa: PLW2901
            if same_bits(a, b):
                continue
        if a.shape != b.shape or a.dtype != b.dtype or a.strides != b.strides or not same_bits(a, b):
            raise NotStageableError(f"{what}: other bytes than were recorded")
