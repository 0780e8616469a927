"""Runs of a function in which its inputs are followed to its outputs, and runs that are compared with one of these."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define

from pullback.memory.in_force import Tracing, next_level
from pullback.recording.handles import SHARED, Handle, kind_of, make, plain_value
from pullback.recording.tape import FORWARD, Tape
from pullback.tracing.running import Input, run_function
from pullback.tracing.tracer import KINDS
from pullback.transforms.derivatives.tangents import Tangent
from pullback.transforms.sparsity.influence import Influence, Named
from pullback.transforms.sparsity.input_sets import Names, Sets
from pullback.transforms.sparsity.pattern_groups import sparse_library
from pullback.transforms.sparsity.programs import NotedProgram
from pullback.words.specs import carries_derivative, spec_of
from pullback.words.structures import flatten, paths, unflatten


@define(eq=False)
class FollowedRun:
    """A run of a function: its outputs, and names of what reaches each of their elements."""

    sets: Sets
    inputs: list[Input]
    """The differentiable leaves of the arguments, in order; their elements are the first columns of the pattern."""
    marks: dict[str, list[Names]]
    """The columns of each value that bears a name, one array for each time it was made."""
    outputs: list[tuple[str, Names]]
    """Path and names of each differentiable leaf of the result."""
    is_complex: bool
    """Whether a leaf of the result is complex."""
    coarse: tuple[tuple[str, str], ...]
    program: tuple[Any, ...] | None
    """What the pattern follows from (see :func:`is_again`); None where that cannot be said."""

    def pattern(self) -> Any:
        """The sparse boolean matrix of outputs by inputs, and by named values: a ``csr_array``."""
        from_all = np.concatenate([np.zeros(0, np.int64), *(names.reshape(-1) for _, names in self.outputs)])
        sizes, members = self.sets.of(from_all)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        shape = (len(from_all), self.sets.n_sources)
        return sparse_library().csr_array((np.ones(len(members), bool), members, starts), shape=shape)


def follow(
    f: Callable[..., Any],
    args: Sequence[Any],
    argnums: Sequence[int],
    kwargs: Mapping[str, Any],
    *,
    named: bool = False,
) -> FollowedRun:
    """One run of ``f`` in which every element of the arguments at ``argnums``, and of ``named`` values, is followed
    to the outputs."""
    influence = Influence(Tape(next_level(), KINDS), named)
    inputs, leaves = _run(influence, f, args, argnums, kwargs)
    outputs, is_complex = [], False
    for path, leaf, ident in leaves:
        if carries_derivative(leaf):
            outputs.append((path, np.zeros(np.shape(leaf), np.int64) if ident is None else ident.value))
            is_complex |= spec_of(leaf).dtype.kind == "c"
    program = tuple(influence.program.entries) if influence.program.same else None
    return FollowedRun(influence.sets, inputs, influence.marks, outputs, is_complex, tuple(influence.coarse), program)


class Comparing(Influence):
    """A run that follows nothing, and only compares its operations with those of an earlier one."""

    def entered(self, spec: Any) -> Named:
        """An argument."""
        return Named(_NOTHING, self.program.note(spec.shape, spec.dtype))

    def reaching(self, *_: Any) -> Names:
        """Nothing."""
        return _NOTHING

    def _written(self, *_: Any, **__: Any) -> Names:
        return _NOTHING

    def solution(self, leaves: list[Any], *_: Any) -> list[Tangent]:
        """Nothing: what is solved is followed anew."""
        self.program.differs()
        return [Named(_NOTHING, None) for _ in leaves]


_NOTHING = np.zeros((), np.int64)


def is_again(
    program: tuple[Any, ...],
    f: Callable[..., Any],
    args: Sequence[Any],
    argnums: Sequence[int],
    kwargs: Mapping[str, Any],
) -> bool:
    """Whether a run of ``f`` is of a program that has been followed, so that its pattern is that one's."""
    comparing = Comparing(Tape(next_level(), KINDS), program=NotedProgram(program))
    _run(comparing, f, args, argnums, kwargs)
    return comparing.program.complete


def _run(
    influence: Influence, f: Callable[..., Any], args: Sequence[Any], argnums: Sequence[int], kwargs: Mapping[str, Any]
) -> tuple[list[Input], list[tuple[str, Any, Any]]]:
    """Run ``f`` in the trace of ``influence``: its inputs, and path, leaf and names of each leaf of the result."""
    tape = influence.tape
    tape.mode = FORWARD
    tape.tangents = influence
    given, inputs = _entered(args, argnums, influence)
    try:
        with Tracing(tape):
            out = run_function(f, given, dict(kwargs), tape)
    finally:
        tape.close()
        tape.tangents = None  # a cycle with the tape
    found = []
    for leaf, path in zip(flatten(out)[0], paths(out), strict=True):
        known = isinstance(leaf, Handle) and leaf._tape is tape and leaf._id is not None
        found.append((path, leaf, leaf._id if known else None))
    influence.program.note([
        (path, np.shape(plain_value(leaf)), carries_derivative(leaf), None if ident is None else ident.number)
        for path, leaf, ident in found
    ])
    return inputs, found


def _entered(args: Sequence[Any], argnums: Sequence[int], influence: Influence) -> tuple[list[Any], list[Input]]:
    """The arguments, those at ``argnums`` with handles whose elements are inputs of their own."""
    tape, given = influence.tape, list(args)
    inputs: list[Input] = []
    for number in argnums:
        leaves, definition = flatten(args[number])
        entered = []
        for leaf, path in zip(leaves, paths(args[number]), strict=True):
            handle = leaf
            if carries_derivative(leaf):
                value = plain_value(leaf)
                inputs.append(Input(f"argument {number}{path}", spec_of(value), value, None))
                ident: Any = influence.entered(spec_of(value))
                handle = make(kind_of(tape, value), value, ident, tape, SHARED)
            entered.append(handle)
        given[number] = unflatten(definition, entered)
    return given, inputs
