"""Masked products and quotients of a cotangent that follow one another, as one statement."""

from collections import Counter

import numpy as np
from attrs import evolve

from pullback.backends.plans import Ref
from pullback.statements.symbols import Program, Statement

MOST = 65_536
"""Bytes of an array up to which masked products that follow one another are one statement."""


def in_chains(program: Program, statements: list[Statement], kept: frozenset[int]) -> list[Statement]:
    """The statements with masked products and quotients of a cotangent that follow one another as one: so NaN is looked
    for once."""
    readers = Counter(number for statement in statements for number in statement.reads)
    runs: list[list[Statement]] = []
    for statement in statements:
        before = runs[-1][-1] if runs else statement
        if (
            _is_masked(program, before)
            and _is_masked(program, statement)
            and statement.args[0] == Ref(before.makes)
            and statement.args[1] != Ref(before.makes)
            and readers[before.makes] == 1
            and before.makes not in kept
        ):
            runs[-1].append(statement)
        else:
            runs.append([statement])
    return [run[0] if len(run) == 1 else _chain(run) for run in runs]


def _is_masked(program: Program, statement: Statement) -> bool:
    """Whether a statement is a masked product or quotient of small arrays of one shape and dtype; large ones go into
    blocks."""
    if statement.chain is None or not all(type(leaf) is Ref for leaf in statement.args):
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


def _chain(run: list[Statement]) -> Statement:
    function, into = run[0].chain[0](tuple(statement.chain[1] for statement in run))
    slopes = [statement.args[1] for statement in run]
    return evolve(run[-1], function=function, args=(run[0].args[0], *slopes), computes_into=into)
