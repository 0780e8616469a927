"""Generated code for statements that run in blocks, divided among threads. Each block is computed once, by whichever
thread is free, so the bits do not depend on the number of threads."""

import sys
from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from pullback.backends.plans import Ref
from pullback.backends.threads import side_by_side
from pullback.rules.nan_masking import without_nan
from pullback.staging.generated.generated import warn_at
from pullback.staging.statements.symbols import Statement
from pullback.words.undocumented import error_state, is_quiet

BLOCK = 1 << 17
"""Bytes of an array that are computed at a time."""
LEAST = 1 << 15
"""Bytes below which the calls would take longer than the work."""
LINE = 64
"""Bytes of a line of a cache, and of the widest registers."""
CACHED = 1 << 20
"""Bytes that the arrays of a block may have together."""
DIVIDED = 4
"""How many times as large blocks are that are divided among threads: each call ends in waiting for Python's lock."""
_CHOICE = 3
"""Operands of ``np.where`` that gives no indices."""


def run_in_blocks(
    block: Callable[..., Any], shape: int | tuple[int, ...], reads: Sequence[Any], stored: Sequence[Any],
    scratch: Sequence[Any], threads: int,
) -> None:  # fmt: skip
    """Call ``block`` on slices of the arrays that are read and ``stored``, and on arrays of the dtypes in ``scratch``:
    on elements in a row, so many altogether, or on rows of arrays of a shape.

    NumPy's warnings come when all is computed, once for each line, as from whole arrays."""
    size, row = (shape, ()) if isinstance(shape, int) else (shape[0], shape[1:])
    arrays = [*reads, *stored] if row else [_flat(x, size) for x in (*reads, *stored)]
    ndim, each = 1 + len(row), prod(row)
    nbytes = max(LINE, min(BLOCK, max(CACHED // (len(arrays) + len(scratch)), LEAST)))
    nbytes *= DIVIDED if threads > 1 else 1
    step = max(1, nbytes // max(x.itemsize for x in arrays) // each)
    todo = deque(pairwise(_cuts(() if row else arrays[len(reads) :], size, step)))

    def work() -> None:
        spare = [x.reshape(step, *row) for x in _scratch(scratch, step * each)]
        while True:
            try:
                start, stop = todo.popleft()
            except IndexError:
                return
            parts = [x[start:stop] if np.ndim(x) == ndim and len(x) > 1 else x for x in arrays]
            block(*parts, *(spare if stop - start == step else [x[: stop - start] for x in spare]))

    _divided(work, min(threads, len(todo)), block.__code__.co_filename)


def all_of(functions: Sequence[Callable[[], Any]], threads: int) -> list[Any]:
    """What each of the functions gives; each is called in one of the threads."""
    if threads <= 1:
        return [function() for function in functions]
    found = [None] * len(functions)
    todo = deque(enumerate(functions))

    def work() -> None:
        while True:
            try:
                k, function = todo.popleft()
            except IndexError:
                return
            found[k] = function()

    _divided(work, min(threads, len(functions)), functions[0].__code__.co_filename)
    return found


def _divided(work: Callable[[], None], n_threads: int, filename: str) -> None:
    """``work`` in so many threads. What NumPy warns of is told when all is computed, once for each line of the file."""
    if is_quiet(error_state()):
        side_by_side(work, n_threads)
        return
    told: set[tuple[int, str]] = set()

    def tell(kind: str, _: int) -> None:
        frame: Any = sys._getframe(1)
        while frame.f_code.co_filename != filename:
            frame = frame.f_back
        told.add((frame.f_lineno, kind))

    with np.errstate(call=tell):
        side_by_side(work, n_threads)
    for line, kind in sorted(told, key=lambda each: (each[0], _KINDS.index(each[1]))):
        warn_at(kind, filename, line)


_KINDS = ("divide by zero", "overflow", "underflow", "invalid value")
"""The names of warnings, in the order in which NumPy tells of them."""


def _cuts(stored: Sequence[Any], size: int, step: int) -> list[int]:
    """Where blocks begin and end: at the full lines of a cache in most arrays, since these lie alike in them."""
    lead = 0
    for x in stored[:1]:
        lead = -x.__array_interface__["data"][0] % LINE // x.itemsize
    return [*dict.fromkeys((0, *range(lead, size, step), size))]


def _scratch(dtypes: Sequence[Any], step: int) -> list[Any]:
    """Arrays of ``step`` elements, at full lines of a cache, no two at the same place of a page."""
    sizes = [step * dtype.itemsize + LINE for dtype in dtypes]
    memory = np.empty(sum(-(-size // LINE) * LINE for size in sizes) + LINE, np.uint8)
    at = -memory.__array_interface__["data"][0] % LINE
    found = []
    for size, dtype in zip(sizes, dtypes, strict=True):
        found.append(memory[at : at + size - LINE].view(dtype))
        at += -(-size // LINE) * LINE
    return found


def _flat(x: Any, size: int) -> Any:
    """The elements in a row; one of them where all are the same."""
    return x.reshape(-1) if x.flags.c_contiguous and x.size == size else x.reshape(-1)[:1]


def block_form_of(statement: Statement, samples: Any) -> Any:
    """The function that computes a statement into an array that it is given last; None where there is none."""
    if statement.symbol == "**":
        base, exponent = (_sample_of(arg, samples) for arg in statement.args)
        # Of an array without directions NumPy asks what it asks of a number, in some of its versions.
        return _power_into if np.ndim(base) and not (np.ndim(exponent) == 0 and _is_array(exponent)) else None
    if statement.function is np.where and len(statement.args) == _CHOICE and not statement.kwargs:
        return _where_into
    return None


def _sample_of(arg: Any, samples: Any) -> Any:
    return samples[arg.number] if type(arg) is Ref else arg


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray)


def _power_into(x: Any, y: Any, out: Any) -> Any:
    np.copyto(out, x)
    out **= y  # the operator takes shorter ways for some exponents, and so does this one
    return out


def _where_into(condition: Any, x: Any, y: Any, out: Any) -> Any:
    out[...] = np.where(condition, x, y)  # quicker than masked copies
    return out


def without_nan_in_place(g: Any, ct: Any) -> Any:
    """What :func:`without_nan` gives, in ``g``."""
    cleaned = without_nan(g, ct)
    if cleaned is not g:
        g[...] = cleaned
    return g


@cache
def bits_stay(ufunc: Any, kind: str) -> bool:
    """Whether a ufunc gives an element the same bits wherever it stands in an array, as it does unless it computes the
    last elements of an array, or those at odd addresses, by other instructions than the others."""
    random = np.random.default_rng(5)
    given = [_drawn(random, kind) for _ in range(ufunc.nin)]
    with np.errstate(all="ignore"):
        for numbers in ((), (0,), (1,)) if ufunc.nin == 2 else ((),):
            args = [x[0] if k in numbers else x for k, x in enumerate(given)]
            whole = ufunc(*args)
            for start, stop in _trials(random, len(given[0])):
                part = [x if np.ndim(x) == 0 else x[start:stop] for x in args]
                if ufunc(*part).tobytes() != whole[start:stop].tobytes():
                    return False
    return True


def _drawn(random: np.random.Generator, kind: str) -> Any:
    x = random.standard_normal(1031) * random.choice([1e-3, 1.0, 30.0, 1e4], 1031)
    special = random.random(1031) < 0.4  # of fmax(0, -0) the sign depends on the place
    x[special] = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 1e-310, 700.0], 1031)[special]
    return x.astype(kind)


def _trials(random: np.random.Generator, n: int) -> Collection[tuple[int, int]]:
    found = [(k, k + m) for k in range(9) for m in (1, 2, 3, 5, 8, 17, 64, 101)]
    starts = random.integers(0, n - 1, 40)
    return [*found, *((int(k), int(random.integers(k + 1, n + 1))) for k in starts)]
