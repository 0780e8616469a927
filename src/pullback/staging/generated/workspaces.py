"""Arrays for generated functions to work in and to return, used again as soon as nobody has them."""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from math import prod
from sys import getrefcount
from typing import Any
from weakref import getweakrefcount

import numpy as np
from attrs import define, field

from pullback.memory.in_force import threads_in_force
from pullback.staging.generated.generated import Generated
from pullback.staging.generated.placing import LARGE

MOST_FRESH = 12
"""How many arrays of a kind are looked through, the newest: states, slots and cotangents of a few steps."""
FEWEST_FRESH, MOST_FRESH_NBYTES = 4, 1 << 20
"""The same of large arrays, and the bytes that those of a kind have together otherwise: they may all wait for a use."""
MOST_LENT = 2
"""The same of arrays that users get: who asks again mostly has what came last."""
MOST_LENT_NBYTES = 1 << 22
"""Bytes of such an array: the pages of larger ones are large, and soon had."""
ArrayKind = tuple[tuple[int, ...], Any]
"""Shape and dtype."""


def _count_unused() -> int:
    """What is counted for an array that only such a list has."""
    arrays = [np.empty(1)]
    return max(getrefcount(arrays[k]) for k in range(1))


UNUSED = _count_unused()


class Fresh:
    """Arrays of one kind that leave a function: one that has come back, since nobody has it any more, or a new one."""

    __slots__ = ("_arrays", "_dtype", "_most", "_shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self._shape, self._dtype = shape, dtype
        self._most = max(FEWEST_FRESH, min(MOST_FRESH, MOST_FRESH_NBYTES // max(1, _nbytes((shape, dtype)))))
        self._arrays: list[Any] = []

    def __call__(self) -> Any:
        arrays = self._arrays
        for k in range(len(arrays)):
            if getrefcount(arrays[k]) <= UNUSED:
                return arrays[k]
        made = np.empty(self._shape, self._dtype)
        if len(arrays) == self._most:
            del arrays[0]
        arrays.append(made)
        return made


class LentArrays:
    """Arrays of one kind that users get: one that has come back, or a new one, all of whose pages the system has to
    hand out. One has come back when nobody has it any more, not by a weak reference either, and it is as it was made.
    """

    __slots__ = ("_arrays", "_kind", "_lent")

    def __init__(self, kind: ArrayKind, lent: dict[int, Any]) -> None:
        self._kind, self._lent = kind, lent
        self._arrays: list[Any] = []

    def __call__(self) -> Any:
        arrays = self._arrays
        for k in range(len(arrays)):
            if getrefcount(arrays[k]) <= 1 + UNUSED and _is_as_made(arrays[k], self._kind):
                return arrays[k]
        made = np.empty(*self._kind)
        if len(arrays) == MOST_LENT:
            del self._lent[id(arrays[0])], arrays[0]
        arrays.append(made)
        self._lent[id(made)] = made
        return made


def _is_as_made(array: Any, kind: ArrayKind) -> bool:
    flags = array.flags
    return (
        array.shape == kind[0]
        and array.dtype == kind[1]
        and flags.c_contiguous
        and flags.writeable
        and flags.owndata
        and not getweakrefcount(array)
    )


@define(eq=False)
class Arrays:
    """The arrays of all functions of one execution, of which one runs at a time: they share them."""

    buffers: dict[ArrayKind, list[Any]] = field(factory=dict)
    fresh: dict[ArrayKind, Fresh] = field(factory=dict)
    stay: bool = True
    """Whether what leaves stays here when nobody has it any more."""

    def buffers_of(self, kinds: Iterable[ArrayKind | None], *, own: bool = False) -> tuple[Any, ...]:
        """Different arrays of these kinds, which no other function has if they are to be its ``own``."""
        buffers: dict[ArrayKind, list[Any]] = {} if own else self.buffers
        taken: Counter[ArrayKind] = Counter()
        found: list[Any] = []
        for kind in kinds:
            if kind is None:
                found.append(None)
                continue
            alike = buffers.setdefault(kind, [])
            if taken[kind] == len(alike):
                alike.append(np.empty(*kind))
            found.append(alike[taken[kind]])
            taken[kind] += 1
        return tuple(found)

    def fresh_of(self, kinds: Iterable[ArrayKind]) -> tuple[Any, ...]:
        """Who makes arrays of these kinds that leave."""
        return tuple(
            self.fresh.setdefault(kind, Fresh(*kind)) if self.stay and _is_large(kind) else _new(kind) for kind in kinds
        )

    def free(self) -> None:
        """Keep none of them: whoever needs one asks again."""
        self.buffers.clear()
        self.fresh.clear()


def _is_large(kind: ArrayKind) -> bool:
    """Whether an array is worth looking for one that nobody has."""
    return _nbytes(kind) >= LARGE


def _nbytes(kind: ArrayKind) -> int:
    return prod(kind[0]) * int(kind[1].itemsize)


def _new(kind: ArrayKind) -> Any:
    return partial(np.empty, *kind)


def buffer_bytes(functions: Iterable[Generated]) -> int:
    """What such functions work in, together."""
    most, own = Counter[ArrayKind](), 0
    for generated in functions:
        if generated.reads:
            own += generated.plan.nbytes
        else:
            most |= Counter(kind for kind in generated.plan.buffers if kind is not None)
    return own + sum(n * _nbytes(kind) for kind, n in most.items())


@define(eq=False)
class Workspace:
    """The arrays that the functions of a stage work in, of one execution of a loop; ``steps`` are those of the loop."""

    steps: Any = None
    threads: int | None = None
    """None for the number in force when a function is called."""
    shared: Arrays = field(factory=Arrays)
    """The arrays that all stages of the execution share."""
    hands_over: bool = False
    """Whether what leaves belongs to who gets it: it is not looked at again, so that nobody has to copy it."""
    lent: dict[int, Any] | None = None
    """The arrays that are kept to be used again, by their ids, where users get what leaves."""
    arrays: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = field(factory=dict)

    def of(self, generated: Generated) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The buffers, and the makers of what leaves, of one function."""
        found = self.arrays.get(generated.name)
        if found is None:
            plan = generated.plan
            # one that is waiting for a value to be read keeps what it has computed while others may run
            buffers = self.shared.buffers_of(plan.buffers, own=generated.reads)
            makers = tuple(map(self._maker, plan.fresh)) if self.hands_over else self.shared.fresh_of(plan.fresh)
            found = self.arrays[generated.name] = buffers, makers
        return ((*found[0], threads_in_force(self.threads)), found[1]) if generated.plan.divided else found

    def _maker(self, kind: ArrayKind) -> Any:
        """Who makes an array of what is handed over."""
        is_lent = self.lent is not None and LARGE <= _nbytes(kind) <= MOST_LENT_NBYTES
        return LentArrays(kind, self.lent) if is_lent else _new(kind)  # type: ignore[arg-type]


def work_of(works: dict[Any, Workspace], stage: Any, threads: int, *, hands_over: bool = False) -> Workspace:
    """The workspace of a stage, for so many threads, among ``works`` of one execution, which share their arrays."""
    work = works.get((stage, threads))
    if work is None:
        first = next(iter(works.values()), None)
        work = works[stage, threads] = Workspace(None, threads, Arrays() if first is None else first.shared, hands_over)
    return work
