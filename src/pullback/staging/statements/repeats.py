"""Leaves out what would be computed twice: the same function on the same values."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import evolve

from pullback.backends.plans import Ref
from pullback.staging.statements.symbols import Program, Statement, looked_at, mapped, renamed
from pullback.staging.statements.ufuncs import ufunc_of

_MAKES_ANOTHER = ".copy()"
"""What is asked for an array of its own, although another one has the same elements."""


def without_repeats(
    program: Program, statements: list[Statement], kept: frozenset[int], told: frozenset[int]
) -> list[Statement]:
    """The statements without those that compute once more what one before them has computed. Who reads the second
    reads the first; what is ``kept``, ``told`` or written to later is computed on its own."""
    touched = changed(statements)
    own = kept | told | touched
    source: dict[int, int] = {}
    first: dict[Any, int] = {}
    found = []
    for statement in statements:
        if not source.keys().isdisjoint(statement.reads):
            statement = _reading(source, statement)  # noqa: PLW2901
        what = _computed_by(program, statement)
        if what is not None:
            if what in first and statement.makes not in own:
                source[statement.makes] = first[what]
                continue
            if statement.makes not in touched:
                first.setdefault(what, statement.makes)
        found.append(statement)
    return found


def changed(statements: Sequence[Statement]) -> set[int]:
    """The values that look at memory which is written to."""
    written: set[int] = set()
    for statement in reversed(statements):
        if statement.writes or statement.makes in written:
            written.update(looked_at(statement))
    touched: set[int] = set()
    for statement in statements:
        sources, makes = looked_at(statement), statement.makes
        own = makes in written and (statement.writes or not sources)
        if own or any(n in touched or n in written for n in sources):
            touched.add(makes)
    return touched


def _reading(source: dict[int, int], statement: Statement) -> Statement:
    args, kwargs = mapped((statement.args, statement.kwargs), partial(renamed, source))
    return evolve(statement, args=args, kwargs=kwargs, aliases=tuple(source.get(n, n) for n in statement.aliases))


def _computed_by(program: Program, statement: Statement) -> Any:
    """What is equal for statements that compute the same; None where it may be another thing each time. It is found
    once for all functions that are made of a statement."""
    if statement not in program.computed_by:
        what = _function_of(program, statement)
        given = None if what is None else (_told_apart(statement.args), _told_apart(tuple(statement.kwargs.items())))
        program.computed_by[statement] = None if what is None else (what, given)
    return program.computed_by[statement]


def _function_of(program: Program, statement: Statement) -> Any:
    """What tells the function of a statement from others, where it gives the same whenever it is called; else None."""
    if statement.writes or statement.symbol == _MAKES_ANOTHER:
        return None
    function = statement.function
    if isinstance(program.samples[statement.makes], np.ndarray) and ufunc_of(statement) is not None:
        return ufunc_of(statement)
    ufunc = getattr(function, "__self__", None)
    if isinstance(ufunc, np.ufunc):
        return ufunc, function.__name__
    if statement.symbol:
        return statement.symbol
    return function if statement.computes_into is not None or function is np.broadcast_to else None


def _told_apart(leaf: Any) -> Any:
    """What is equal for arguments that are the same: numbers by their bits, what is unknown by identity."""
    kind = type(leaf)
    if kind in (tuple, list):
        return kind, tuple(map(_told_apart, leaf))
    if kind is slice:
        return kind, tuple(map(_told_apart, (leaf.start, leaf.stop, leaf.step)))
    if kind is Ref:
        return kind, leaf.number
    if kind in (int, str, bool, type(None), type(Ellipsis)):
        return kind, leaf
    if kind in (float, complex) or isinstance(leaf, np.generic):
        return kind, np.asarray(leaf).tobytes()
    return (kind, leaf) if isinstance(leaf, np.dtype) else (kind, id(leaf))
