"""Joins masked products and quotients of a cotangent that follow one another, with changes of sign between them, into
one statement."""

from collections import Counter

import numpy as np
from attrs import evolve

from pullback.backends.plans import Ref
from pullback.staging.statements.symbols import Program, Statement
from pullback.staging.statements.ufuncs import ufunc_of

MOST = 65_536
"""Bytes of an array up to which masked products that follow one another are one statement."""


def in_chains(program: Program, statements: list[Statement], kept: frozenset[int]) -> list[Statement]:
    """The statements with masked products and quotients of a cotangent that follow one another as one: so NaN is looked
    for once, and a sign that changes twice stays."""
    if not any(statement.chain is not None for statement in statements):
        return statements
    readers = Counter(number for statement in statements for number in statement.reads)
    runs: list[list[Statement]] = []
    for statement in statements:
        before = runs[-1][-1] if runs else statement
        if (
            _is_link(program, before)
            and _is_link(program, statement)
            and statement.args[0] == Ref(before.makes)
            and Ref(before.makes) not in statement.args[1:]
            and readers[before.makes] == 1
            and before.makes not in kept
        ):
            runs[-1].append(statement)
        else:
            runs.append([statement])
    return [statement for run in runs for statement in (_chained(run) if len(run) > 1 else run)]


def _is_link(program: Program, statement: Statement) -> bool:
    """Whether a statement is a masked product or quotient of small arrays of one shape and dtype, or changes the sign
    of one; large ones go into blocks."""
    if (statement.chain is None and not _changes_sign(statement)) or not all(type(x) is Ref for x in statement.args):
        return False
    parts = [program.samples[n] for n in (*statement.reads, statement.makes)]
    first = parts[-1]
    return type(first) is np.ndarray and all(
        type(x) is np.ndarray
        and x.shape == first.shape
        and x.dtype == first.dtype
        and x.flags.c_contiguous
        and x.dtype.kind == "f"
        and x.nbytes <= MOST
        for x in parts
    )


def _changes_sign(statement: Statement) -> bool:
    return ufunc_of(statement) is np.negative


def _chained(run: list[Statement]) -> list[Statement]:
    """The statements of a run as one; a change of sign that has no other, and stands at an end, stays beside it."""
    if len([s for s in run if _changes_sign(s)]) % 2:
        if _changes_sign(run[0]):
            return [run[0], *_chained(run[1:])]
        if _changes_sign(run[-1]):
            return [*_chained(run[:-1]), run[-1]]
    masked = [statement for statement in run if not _changes_sign(statement)]
    if len(run) == 1 or not masked:
        return run
    kinds = tuple(None if _changes_sign(statement) else statement.chain[1] for statement in run)
    function, into = masked[0].chain[0](kinds)
    slopes = [statement.args[1] for statement in masked]
    return [evolve(run[-1], function=function, args=(run[0].args[0], *slopes), computes_into=into, symbol="")]
