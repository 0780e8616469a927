"""Leaves out copies and broadcast arrays that the statements which read them do not need."""

from functools import partial

import numpy as np
from attrs import evolve

from pullback.backends.plans import Ref
from pullback.staging.statements.symbols import Program, Statement, mapped, renamed
from pullback.staging.statements.ufuncs import elementwise_ufunc_of
from pullback.staging.statements.writes import BASIC_WRITES

_ARITHMETIC = frozenset((np.add, np.subtract, np.multiply, np.true_divide))


def without_copies(program: Program, statements: list[Statement], kept: frozenset[int], large: int) -> list[Statement]:
    """The statements without copies that are read by ufuncs into ``large`` dense arrays alone, of so many bytes: what
    these give does not depend on how their operands lie."""
    if not any(statement.symbol == ".copy()" for statement in statements):
        return statements
    readers: dict[int, list[Statement]] = {}
    for statement in statements:
        for number in statement.reads:
            readers.setdefault(number, []).append(statement)
    source: dict[int, int] = {}
    found = []
    for statement in statements:
        if (
            statement.symbol == ".copy()"
            and statement.makes not in kept
            and all(_reads_anyhow(program, reader, large) for reader in readers.get(statement.makes, ()))
        ):
            (number,) = statement.reads
            source[statement.makes] = source.get(number, number)
        elif source.keys() & set(statement.reads):
            args = mapped(statement.args, partial(renamed, source))
            found.append(evolve(statement, args=args))
        else:
            found.append(statement)
    return found


def without_broadcasts(
    program: Program, statements: list[Statement], kept: frozenset[int], large: int
) -> list[Statement]:
    """The statements without arrays that are broadcast for arithmetic with a small whole array: that does it by itself,
    and in less time. ``large`` ones go into blocks."""
    source = {
        statement.makes: statement.reads[0]
        for statement in statements
        if statement.function is np.broadcast_to and type(program.samples[statement.reads[0]]) is np.ndarray
    }
    if not source:
        return statements
    found = []
    for statement in statements:
        made = program.samples[statement.makes]
        if (
            elementwise_ufunc_of(statement) in _ARITHMETIC
            and 0 < getattr(made, "nbytes", 0) < large
            and any(
                type(leaf) is Ref and leaf.number not in source and np.shape(program.samples[leaf.number]) == made.shape
                for leaf in statement.args
            )
        ):
            statement = evolve(statement, args=mapped(statement.args, partial(renamed, source)))  # noqa: PLW2901
        found.append(statement)
    read = kept.union(n for statement in found for n in statement.reads)
    return [statement for statement in found if statement.makes not in source or statement.makes in read]


def _reads_anyhow(program: Program, reader: Statement, large: int) -> bool:
    made = program.samples[reader.makes]
    if reader.writes:  # a value that is added to a part of the target, or written there
        return reader.function in BASIC_WRITES and Ref(reader.reads[0]) not in reader.args[1:]
    return (
        elementwise_ufunc_of(reader) is not None
        and isinstance(made, np.ndarray)
        and made.nbytes >= large
        and made.flags.c_contiguous
        and all(
            sample.shape == made.shape
            for sample in map(program.samples.__getitem__, reader.reads)
            if isinstance(sample, np.ndarray)
        )
    )
