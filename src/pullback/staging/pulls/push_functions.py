"""The derivative of a pull as a generated function, made from the tape that the pull sweeps.

The sweep is carried out once in a trace of its own, on handles without values, and that trace is swept likewise. The
result is a list of operations for every value, also for those that do not depend on the direction.
"""

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np
from attrs import define

from pullback.memory.in_force import Tracing, next_level
from pullback.memory.reverse_sweep import Sweep
from pullback.recording.copies import faithful
from pullback.recording.crossing import entered, raised
from pullback.recording.handles import SHARED, Handle, kind_of, layout_of, make, resolve
from pullback.recording.recorder import INPUT
from pullback.recording.tape import Tape
from pullback.rules.forms import FORMS, PULLS
from pullback.rules.generated_pulls import make_pull
from pullback.rules.nan_masking import LEAVES_NAN_OUT, WITHOUT_NAN, without_nan
from pullback.staging.calls.derivative_stages import nesting_of
from pullback.staging.generated.forward_statements import NotStageableError, forward_statements
from pullback.staging.generated.generated import Generated
from pullback.staging.generated.placing import needed, plan_of
from pullback.staging.generated.recorded_steps import require_equal
from pullback.staging.generated.text import Draft
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.pulls.reverse_functions import MOST_BYTES, stacked_seeds, with_held
from pullback.staging.pulls.stacked_statements import DISTINCT, stacked_statements
from pullback.staging.shadow.collective_pulls import draw
from pullback.tracing.tracer import KINDS
from pullback.words.specs import ArraySpec
from pullback.words.undocumented import quiet

Outs = Sequence[tuple[int, ArraySpec] | None]
"""The record and the spec of each output; None for one that depends on no input."""
Group = tuple[tuple[tuple[int, ArraySpec], ...], int]
"""The inputs that directions of one kind have a part for, and how many such directions there are."""


@define(eq=False)
class Push:
    """The generated function: from directions, group by group, to the tangents of the outputs."""

    generated: Generated
    groups: tuple[Group, ...]
    reached: tuple[tuple[bool, ...], ...]
    """Which outputs have a tangent, for each group."""
    constants: tuple[Any, ...]
    """What it is given beside the slots."""
    ordering: Generated | None
    """The function that lays some of what directions share in C order; None where nothing is to be."""

    def in_order(self, slots: Sequence[Any], work: Workspace) -> Sequence[Any]:
        """What the function is given beside slots and constants, for all directions at these slots."""
        return laid_in_order(self.ordering, (*slots, *self.constants), work)

    def each(
        self, slots: Sequence[Any], ordered: Sequence[Any], groups: Sequence[Sequence[Sequence[Any]]], work: Workspace
    ) -> list[list[list[Any]]] | None:
        """The tangents of the outputs for each group and direction, None where there is none; the records of the pull
        hold ``slots``. None where a tangent is NaN (see ``ReverseFunction.each``), and where the pull leaves a NaN
        out."""
        seeds = [part for several in groups for part in stacked_seeds(several, len(several))]
        with quiet():
            shared = (*slots, *self.constants, *ordered)
            *found, flags = self.generated.function(shared, seeds, *work.of(self.generated))
        if any(flags) or any(np.isnan(t).any() for part in found for t in part):
            return None
        answers = []
        for part, reached, several in zip(found, self.reached, groups, strict=True):
            left = iter(part)
            tangents = [next(left) if wanted else None for wanted in reached]
            answers.append([[None if t is None else t[k] for t in tangents] for k in range(len(several))])
        return answers


def made_push(tape: Tape, outs: Outs, groups: tuple[Group, ...], slots: list[Any], pushes: Any) -> Push | None:
    """The function for these groups of directions; None where there is none. It has to give what ``pushes`` gives, for
    drawn directions."""
    try:
        made = _generated(tape, outs, groups, slots)
        _require_same(made, slots, tape.n_inputs, pushes)
    except Exception:  # noqa: BLE001 - whatever a rule does with what has no value: the derivative is recorded
        return None
    return made


def _generated(tape: Tape, outs: Outs, groups: tuple[Group, ...], slots: list[Any]) -> Push:
    if sum(value.nbytes for value in slots) > MOST_BYTES:
        raise NotStageableError("the tape holds much")
    random = np.random.default_rng(0)
    given = [[draw(random, spec) for _, spec in parts] for parts, _ in groups]
    flags: list[Any] = []
    with quiet(), nesting_of([*slots, *(x for parts in given for x in parts)]) as run:
        with Tracing(run.tape):
            run.sweeps = True
            held = [run.enter(faithful(x)) for x in slots]
            directions = [
                {place: run.enter(x) for (place, _), x in zip(parts, drawn, strict=True)}
                for (parts, _), drawn in zip(groups, given, strict=True)
            ]
            found = _derivatives(tape, outs, slots, held, directions, flags)
            run.sweeps = False
        leaving = [[t for t in tangents if t is not None] for tangents in found]
        returned = [x for part in (*leaving, flags) for x in part]
        if any(not isinstance(x, Handle) or x._tape is not run.tape for x in returned):
            raise NotStageableError("a value that depends on nothing")
        run.finish(returned, [])
    if run.why or run.captured:
        raise NotStageableError(run.why or "a captured value")
    counts = [n for parts, n in groups for _ in parts]
    generated, ordering, _ = written_for_many(run, len(slots), lambda _: counts, [*leaving, flags], "push")
    tangents_of = tuple(tuple(t is not None for t in tangents) for tangents in found)
    return Push(generated, groups, tangents_of, tuple(run.constants), ordering)


def laid_in_order(ordering: Generated | None, shared: Sequence[Any], work: Workspace) -> Sequence[Any]:
    """What ``ordering`` gives, of :func:`written_for_many`."""
    if ordering is None:
        return ()
    with quiet():
        found: Sequence[Any] = ordering.function(shared, *work.of(ordering))[0]
    return found


def written_for_many(
    run: Any, n_shared: int, counts_of: Callable[[Sequence[Any]], list[int]], parts: Sequence[Sequence[Any]], name: str
) -> tuple[Generated, Generated | None, list[int]]:
    """The function of what a run of :func:`nesting_of` has done, for many directions: of the values that entered it so
    many are shared, the others are parts of directions, as many of each as ``counts_of`` says, which is told of samples
    of all values. The function gives these ``parts`` of what was returned, of which all but ``flags`` at the end, if
    there are any, have to depend on the directions. Then the function that gives it, from what is shared, more that is:
    copies in C order; None where it takes none."""
    forward = forward_statements(run.operations, run.inputs, [], run.constants, [0] * len(run.operations))
    source, inputs = forward.program, [symbol.number for symbol in forward.inputs]
    zeros = {x.number for x, value in zip(forward.constants, run.constants, strict=True) if _is_zeros(value)}
    shared = [*inputs[:n_shared], *(symbol.number for symbol in forward.constants)]
    numbers = [symbol.number for symbol in forward.returned]
    live = needed(source.statements, frozenset(numbers), all_of=False)
    counts = counts_of([source.samples[one.makes] for one in live])
    many = stacked_statements(source, live, shared, dict(zip(inputs[n_shared:], counts, strict=True)), zeros)
    results = iter(many.symbols[number].number for number in numbers)
    leaving = [list(islice(results, len(part))) for part in parts]
    if not many.stacked.issuperset(x for part in (leaving[:-1] or leaving) for x in part):
        raise NotStageableError("a tangent that depends on no direction")
    slots, statements, ordering = [many.symbols[k].number for k in shared], many.program.statements, None
    ordered = [symbol.number for symbol in many.ordered.values()]
    if ordered:
        before = [one for one in statements if one.makes not in many.stacked]
        plan = plan_of(many.program, before, ordered)
        ordering = Draft(many.program, "ordered", plan, [("slots", slots)], [ordered]).generated()
    arguments = [
        ("slots", [*slots, *ordered]),
        ("seeds", [many.symbols[k].number for k in inputs[n_shared:]]),
    ]
    left = [one for one in statements if one.makes not in ordered]
    plan = plan_of(many.program, left, [x for part in leaving for x in part])
    generated = Draft(many.program, name, plan, arguments, leaving).generated()
    source.samples.clear()
    many.program.samples.clear()
    return generated, ordering, counts


def _is_zeros(value: Any) -> bool:
    return type(value) is np.ndarray and not any(value.tobytes())


def _derivatives(
    tape: Tape, outs: Outs, slots: list[Any], held: list[Any], directions: list[dict[int, Any]], flags: list[Any]
) -> list[list[Any]]:
    """The tangents of the outputs in each direction, None where there is none: the pull of the pull, at a cotangent 1
    of each. ``held`` stands for the values ``slots`` that the records hold. The ``flags`` are 1 where the first sweep
    leaves a NaN out."""
    instead = {id(value): handle for value, handle in zip(slots, held, strict=True)}
    records = [with_held(record, lambda value: instead[id(value)]) for record in tape.records]
    inner, cts = Tape(next_level(), KINDS), list[Any]([None] * len(records))
    reached = [out for out in outs if out is not None]
    for number, (ident, spec) in enumerate(reached):
        value = entered(np.ones(spec.shape, spec.dtype)[()], inner)
        ct = make(kind_of(inner, value), value, number, inner, SHARED)
        inner.records.append((INPUT.opcode, 0))
        cts[ident] = ct if cts[ident] is None else cts[ident] + ct
    inner.n_inputs = len(reached)

    def flagged(g: Any, ct: Any) -> Any:
        made, sent = layout_of(g), layout_of(ct)
        if isinstance(made, Handle) or isinstance(sent, Handle):
            flags.append(LEAVES_NAN_OUT(made, sent))
        elif without_nan(made, sent) is not made:
            raise NotStageableError("a NaN is left out")
        return g

    with Tracing(inner):
        _sweep(records, tape.n_inputs, cts, inner, flagged if tape.masks else None)
    inner.close()
    found = []
    for parts in directions:
        back = list[Any]([None] * len(inner.records))
        for place, t in parts.items():
            out = cts[place]
            if isinstance(out, Handle) and resolve(out)._tape is inner and out._id is not None:
                back[out._id] = t if back[out._id] is None else back[out._id] + t
        around = next(iter(parts.values()))._tape
        _sweep(inner.records, inner.n_inputs, back, around, WITHOUT_NAN if inner.masks else None)
        tangents = iter(back[: inner.n_inputs])
        found.append([None if out is None else next(tangents) for out in outs])
    return found


def _sweep(records: Sequence[Any], n_inputs: int, cts: list[Any], outer: Tape, clean: Any) -> None:
    """As ``memory.reverse_sweep.sweep``, with ``clean`` for what takes a NaN out."""
    one = Sweep(cts, outer=outer)
    with quiet():
        for i in range(len(records) - 1, n_inputs - 1, -1):
            ct, cts[i] = cts[i], None
            if ct is None:
                continue
            if not isinstance(ct, Handle) or ct._tape is not outer:
                ct = raised(ct, outer)
            form = FORMS[records[i][0]]
            masked = (
                clean is not None and form.primitive.elementwise and bool(form.rules) and not form.primitive.outputs
            )
            pull = make_pull(form, clean) if masked else PULLS[records[i][0]]
            pull(records[i], ct, cts, one)


def _require_same(made: Push, slots: list[Any], n_inputs: int, pushes: Any) -> None:
    random = np.random.default_rng(1)
    groups, several, counts = [], [], []
    for parts, n in made.groups:
        drawn = [{k: draw(random, spec) for k, spec in parts} for _ in range(min(n, DISTINCT))]
        groups.append([list(one.values()) for one in islice(cycle(drawn), n)])
        several += [[one.get(k) for k in range(n_inputs)] for one in drawn]
        counts.append(len(drawn))
    work = Workspace()
    wanted, found = iter(pushes(several)), made.each(slots, made.in_order(slots, work), groups, work)
    if found is None:
        raise NotStageableError("tangents that are NaN")
    for count, group in zip(counts, found, strict=True):
        for tangents, expected in zip(group, cycle(list(islice(wanted, count))), strict=False):
            require_equal(handed_out(tangents, expected), expected, "the tangents")


def handed_out(tangents: list[Any], specs: Sequence[Any]) -> list[Any]:
    """Tangents as the user gets them: zeros where there is none, sharing memory with nothing."""
    return [
        t.copy(order="K") if isinstance(t, np.ndarray) else zeros_of(spec) if t is None else t
        for t, spec in zip(tangents, specs, strict=True)
    ]


def zeros_of(spec: Any) -> Any:
    """An array of zeros, or the number 0."""
    return np.zeros(spec.shape, spec.dtype) if spec.shape else np.zeros((), spec.dtype)[()]
