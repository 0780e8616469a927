"""Operators of handles of which all are the very ones that are expected: those of a pool that serves again.

Where that is not so, ``quick_operators`` compares by number.
"""

import warnings
from collections.abc import Callable
from sys import intern
from typing import Any

from pullback.primitives.selecting.indexing import GETITEM
from pullback.primitives.shaping.reshaping import lay_out
from pullback.recording.handles import Handle
from pullback.recording.tape import DEFERRED
from pullback.staging.shadow.operations import MOST
from pullback.tracing.results_into_operands import laid_out, lies_plainly
from pullback.words.undocumented import error_state


def of_two(key: str, own: int, general: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operator of two operands, called on the one at place ``own`` of a bound operation, 1 or 2 (its reflection);
    ``general`` where that says otherwise."""
    name, others = intern(key), 3 - own

    def operator(self: Any, other: Any) -> Any:
        run = self._tape.shadow
        at = run.at
        bound = run.bound[at]
        if bound[own] is self and bound[0] is name and error_state() is run.errors and warnings.filters is run.filters:
            wanted = bound[others]
            if other is wanted:
                run.at = at + 1
                return bound[3]
            if type(other) is wanted and (wanted is float or -MOST < other < MOST):  # a number of Python's
                run.constants.append(other)
                run.at = at + 1
                return bound[3]
        return general(self, other)

    return operator


def element(run: Any, at: int, handle: Any, key: Any) -> Any:
    """What the read of one element by a number gives; None where it is not the one expected."""
    known, mine, wanted, made = run.bound[at]
    if (
        mine is handle
        and known is GETITEM
        and type(key) is int
        and key == wanted
        and error_state() is run.errors
        and warnings.filters is run.filters
    ):
        run.at = at + 1
        return made
    return None


def again(run: Any, function: Any, args: tuple[Any, ...], plain: type[Any]) -> Any:
    """What a function of NumPy's gives for handles alone, all of the class ``plain``, where ``repeated`` knows that it
    is expected; else None."""
    pool = run.pool
    found = None if pool is None else pool.repeats.get(run.at)
    if found is None or found[0] is not function:
        return None
    numbers = found[3]
    if numbers is None or len(numbers) != len(args) or error_state() is not run.errors:
        return None
    tape = run.tape
    for number, given in zip(numbers, args, strict=True):
        if type(given) is not plain or given._id != number or given._tape is not tape:
            return None
    if warnings.filters is not run.filters:
        return None
    run.at = found[2]
    return pool.made[found[2] - 1]


def is_large(made: Any, x: Any, y: Any) -> bool:
    """Whether an operator of two arrays of one shape has given a large one."""
    spec = made._spec if isinstance(made, Handle) and made._tape.mode == DEFERRED else None
    return (
        spec is not None and spec.large
        and getattr(x, "shape", None) == getattr(y, "shape", None)
    )  # fmt: skip


def as_plain(made: Any, symbol: str, x: Any, y: Any, frame: Any, limits: Any) -> Any:
    """What an operator has given, in the order of memory that it has where no array is traced (``lies_plainly``). A
    handle that is made where nothing is known is held by the run, too."""
    if made.strides == x.strides == y.strides:
        return made
    run = made._tape.shadow
    if run.following is not None:
        op = run.following.operations[run.at]
        strides = op.params["strides"] if op.what is lay_out and op.operands == (made._id,) else None
    else:
        most = [limit and (limit + isinstance(end, Handle), 0) for (limit, _), end in zip(limits, (x, y), strict=True)]
        strides = lies_plainly(symbol, x, y, made, made._tape, frame, most)
    return laid_out(made, strides) if strides else made
