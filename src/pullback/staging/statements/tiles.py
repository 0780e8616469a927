"""Leaves out the zeros of an array whose parts are written, or added to, one after the other until none is left."""

from collections import defaultdict
from typing import Any

import numpy as np
from attrs import evolve

from pullback.backends.plans import Ref
from pullback.staging.statements.symbols import Program, Statement, numbers_in
from pullback.staging.statements.writes import ADD_TO, PUT

LEAST = 512
"""Bytes of an array from which its zeros are worth a thought."""


def without_zeros(program: Program, statements: list[Statement], kept: frozenset[int]) -> list[Statement]:
    """The statements without zeros that nobody sees: where the parts that are written tile an array, it need not hold
    any before.

    What is added to a zero is written instead, and 0.0 is added to the whole at the end: so -0.0 becomes 0.0, as it
    does in a sum with 0.
    """
    if not any(statement.function is np.zeros for statement in statements):
        return statements
    readers = defaultdict[int, list[Statement]](list)
    for statement in statements:
        for number in statement.reads:
            readers[number].append(statement)
    new: dict[int, list[Statement]] = {}
    for statement in statements:
        if statement.function is np.zeros and program.samples[statement.makes].nbytes >= LEAST:
            writes = _tiling(program, statement, readers, kept)
            if len(writes) > 1:
                new[statement.makes] = [evolve(statement, function=np.empty)]
                new |= _as_writes(program, writes)
    return (
        [other for statement in statements for other in new.get(statement.makes, (statement,))] if new else statements
    )


def _tiling(program: Program, zeros: Statement, readers: Any, kept: frozenset[int]) -> list[Statement]:
    """The writes, all of one kind, by which each element of an array is written once before anybody reads it; none
    where there are no such."""
    whole = program.samples[zeros.makes]
    left, number, found = np.ones(whole.shape, bool), zeros.makes, list[Statement]()
    while number not in kept and len(readers[number]) == 1:
        (write,) = readers[number]
        if write.function not in (ADD_TO, PUT) or (found and write.function is not found[0].function):
            break
        target, key, value = write.args
        if target != Ref(number) or numbers_in(key) or not _is_alike(program, value, whole) or not left[key].all():
            break
        left[key] = False
        found.append(write)
        if not left.any():
            return found
        number = write.makes
    return []


def _is_alike(program: Program, value: Any, whole: Any) -> bool:
    """Whether adding a value to zeros of an array gives the value, but for the sign of its zeros."""
    sample = program.samples[value.number] if type(value) is Ref else None
    return isinstance(sample, np.ndarray | np.generic) and sample.dtype == whole.dtype and sample.dtype.kind in "fc"


def _as_writes(program: Program, writes: list[Statement]) -> dict[int, list[Statement]]:
    """What comes in the place of the writes, by what they make."""
    if writes[0].function is PUT:
        return {}
    found = {write.makes: [evolve(write, function=PUT)] for write in writes}
    last = writes[-1]
    signed = program.value(program.samples[last.makes])
    total = Statement(np.add, (Ref(signed.number), 0.0), {}, last.makes, site=last.site)
    found[last.makes] = [evolve(last, function=PUT, makes=signed.number), total]
    return found
