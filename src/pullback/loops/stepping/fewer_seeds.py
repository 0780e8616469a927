"""Reverse functions for steps of which not every leaf has a cotangent: none comes back to a clock, or to what is only
looked at. They are made when some such steps have been reversed in the ordinary way."""

from collections.abc import Sequence
from copy import copy
from math import inf
from typing import Any, Final

import numpy as np

from pullback.loops.stepping.held_steps import StagedStep, StepKind
from pullback.memory.reverse_sweep import Sweep, sweep
from pullback.staging.generated.forward_statements import Forward, forward_statements
from pullback.staging.generated.generated import Generated, computed
from pullback.staging.generated.placing import plan_of
from pullback.staging.generated.recorded_steps import (
    gives_seeds,
    n_carried,
    own_seeds,
    require_at_once,
    require_equal,
    seeds_of,
)
from pullback.staging.generated.reverse_statements import reverse_statements, skeleton, with_symbols
from pullback.staging.generated.stages import Stage, at_once, both_by, with_kernels
from pullback.staging.generated.text import Draft
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.shadow.collective_pulls import draw
from pullback.staging.statements.symbols import Program
from pullback.words.undocumented import quiet

BEFORE: Final = 4
"""Steps with such seeds that are reversed in the ordinary way before a function is made, in each loop that comes first
to them."""
MOST: Final = 8
"""Sets of leaves for which one stage has a reverse: a body whose cotangents come now here and now there is swept."""


def kind_for(work: StagedStep, cts: Sequence[Any]) -> StepKind:
    """The kind of a step whose reverse takes the cotangents of these leaves and outputs, where some are None; its own
    kind where there is none."""
    base = work.kind
    stage = base.stage
    wanted = tuple(at is not None and ct is not None for at, ct in zip(stage.left, cts, strict=True))
    if wanted == stage.seeded or stage.collective or not any(wanted):
        return base
    found = base.fewer.get(wanted)
    if found is None:
        base.n_missed += 1
        staging = base.work.steps.staging
        at_work = inf if staging is None else staging.at_work
        if wanted not in stage.others and base.n_missed > BEFORE and len(stage.others) < MOST and at_work == inf:
            stage.others[wanted] = _made(work, stage, cts)
        other = stage.others.get(wanted)
        if other is None or other.buffer_bytes > at_work:
            return base
        own = Workspace(base.work.steps, base.work.threads, base.work.shared)
        found = base.fewer[wanted] = StepKind(other, base.captured, own, base.n_leaves, base.family)
    return found


def _made(work: StagedStep, stage: Stage, cts: Sequence[Any]) -> Stage | None:
    try:
        return _stage_for(work, stage, cts)
    except Exception:  # noqa: BLE001 - whatever a rule does with what is no array: the step is reversed by its records
        return None


def _stage_for(work: StagedStep, stage: Stage, cts: Sequence[Any]) -> Stage:
    """The stage with a reverse for these cotangents, which gives what a sweep of the step's records gives."""
    program = Program()
    by_number = {n: program.value(x) for n, x in zip(stage.slots, work.slots, strict=True)}
    records = [with_symbols(record, by_number) for record in stage.records]
    left = [(at, ct) for at, ct in zip(stage.left, cts, strict=True) if at is not None and ct is not None]
    seeds, given = seeds_of(program, [at for at, _ in left], [ct for _, ct in left])
    swept = reverse_statements(Forward(program), records, stage.n_inputs, seeds, masks=stage.masks)
    entered = [swept.cts[ident] for part in stage.places for ident in part if ident is not None]
    gathered = [swept.gathered.get(ident) for ident in stage.captured]
    parts = [[x.number for x in part if x is not None] for part in (entered, gathered)]
    arguments = [("slots", [x.number for x in by_number.values()]), ("seeds", [x.number for x in given])]
    made = copy(stage)
    made.seeded = tuple(at is not None and ct is not None for at, ct in zip(stage.left, cts, strict=True))
    made.specs = tuple(spec for (_, spec), _ in left)
    made.entered, made.gathered = (tuple(x is not None for x in part) for part in (entered, gathered))
    made.both, made.leaf, made.lacks_both = None, None, stage.both is not None
    made.returns_seeds = gives_seeds(made, [program.samples[n] for n in parts[0]])
    n = n_carried(made.seeded, stage.places[0], swept.cts)
    wanted = _swept(work, stage, [(ident, ct) for (ident, _), ct in left])
    values = work.slots, [ct for _, ct in left]

    def function(name: str, writable: Sequence[int]) -> Generated:
        plan = plan_of(program, program.statements, [*parts[0], *parts[1]], writable)
        draft = Draft(program, name, plan, arguments, parts)
        generated = draft.generated()
        _require_same(generated, values, wanted)
        backend = work.kind.work.steps.staging.shelf.backend
        return generated if backend is None else with_kernels(draft, generated, backend, values)[0]

    made.reverse = function("reverse", ())
    made.reverse_own = function("reverse_own", own_seeds(program, parts, given, n))
    program.samples.clear()
    return made


def add_both(kind: StepKind, k: int, before: Sequence[Any], values: list[Any], constants: list[Any]) -> None:
    """Give a kind for fewer seeds the functions that record and reverse a step in one, made from step ``k`` of that
    kind, from the state ``before`` it, with these captured values and plain operands."""
    if kind.work.steps.staging.at_work < inf:  # they are made of the first steps or never
        return
    kind.stage.lacks_both = False
    try:
        rows = kind.work.steps.entered(k)[1]
        _add_both(kind, k, (list(kind.inputs(before, rows)), list(values), list(constants)))
    except Exception:  # noqa: BLE001 - whatever a rule does with what is no array: two functions do it
        kind.stage.both = kind.stage.leaf = None


def _add_both(kind: StepKind, k: int, forwards: tuple[list[Any], list[Any], list[Any]]) -> None:
    stage, program = kind.stage, Program()
    returned, slots = computed(stage.record, *forwards, *Workspace().of(stage.record))
    operations, tape = stage.known.operations, StagedStep(kind, slots, k).tape
    records: list[Any] = list(tape.records)
    sites = [records[start][-1] if stop > start else 0 for start, stop in stage.ranges]
    forward = forward_statements(operations, *forwards, sites, program=program)
    held, n_forward = skeleton(records, stage.ranges, operations, forward), len(program.statements)
    left = [at for at, wanted in zip(stage.left, stage.seeded, strict=True) if at is not None and wanted]
    seeds, given = seeds_of(program, left)
    swept = reverse_statements(forward, held, stage.n_inputs, seeds, masks=stage.masks)
    entered = [swept.cts[ident] for part in stage.places for ident in part if ident is not None]
    gathered = [swept.gathered.get(ident) for ident in kind.captured]
    found = [x for x in entered if x is not None], [x for x in gathered if x is not None]
    n, backend = n_carried(stage.seeded, stage.places[0], swept.cts), kind.work.steps.staging.shelf.backend
    stage.both, stage.leaf, drafts = at_once(forward, n_forward, found, given, n, by=backend)
    random = np.random.default_rng(0)
    drawn = [draw(random, spec) for _, spec in left]
    with quiet():
        wanted = stage.reverse.function(slots, [ct.copy() for ct in drawn], *Workspace().of(stage.reverse))
    require_at_once(stage, forwards, drawn, (returned, *wanted), random)
    if backend is not None and (stage.record.kernels or stage.reverse_own.kernels):
        stage.both, stage.leaf = both_by(backend, drafts, (*forwards, drawn), stage.notes)
    program.samples.clear()


def _swept(work: StagedStep, stage: Stage, seeds: Sequence[tuple[int, Any]]) -> list[list[Any]]:
    """What a sweep of the step's records gives."""
    records = work.tape.records
    cts: list[Any] = [None] * len(records)
    for ident, ct in seeds:
        cts[ident] = ct.copy() if cts[ident] is None else cts[ident] + ct
    one = Sweep(cts, masks=stage.masks)
    with quiet():
        sweep(work.tape, stage.n_inputs, len(records), [one])
    entered = [cts[ident] for part in stage.places for ident in part if ident is not None]
    return [
        [ct for ct in part if ct is not None] for part in (entered, [one.gathered.get(i) for i in work.kind.captured])
    ]


def _require_same(generated: Generated, values: tuple[Any, Any], wanted: Sequence[Sequence[Any]]) -> None:
    slots, seeds = values
    with quiet():
        found = generated.function(slots, [ct.copy() for ct in seeds], *Workspace().of(generated))
    for given, expected in zip(found, wanted, strict=True):
        require_equal(given, expected, "the cotangents")
