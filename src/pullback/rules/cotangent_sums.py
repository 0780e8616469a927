"""Where the cotangents of a value are added up: one after the other, in place where nobody else can see the array."""

from itertools import pairwise
from sys import getrefcount
from typing import Any

import numpy as np

from pullback.words.sniffs import JOINED


def _in_c_order(g: Any) -> bool:
    """True where a sum of ``g`` and a C-contiguous array is C-contiguous."""
    if g.flags.c_contiguous:
        return True
    strides = g.strides
    return all(s > 0 for s in strides) and all(s >= t for s, t in pairwise(strides))


def alone(p: Any) -> bool:
    """True where nobody but ``cts`` can see the array ``p``, an element of it and a local of the caller: it may be
    written."""
    return type(p) is np.ndarray and getrefcount(p) <= JOINED and p.base is None and p.flags.writeable


def takes(p: Any, g: Any) -> bool:
    """Whether the array ``p`` can become ``p + g`` and have the strides that a new array would have."""
    return p.dtype is g.dtype and p.flags.carray and p.shape == g.shape and _in_c_order(g)


def added(parts: list[Any]) -> Any:
    """The sum of tangents, one after the other, in place where the next is an array that nobody but ``parts`` can see.

    Into the newer of two, since what is freed then lies below it, where the allocator keeps it, and not at the end of
    the heap.
    """
    total = parts[0]
    for k in range(1, len(parts)):
        part = parts[k]
        if type(total) is np.ndarray and alone(part) and takes(part, total):
            total = np.add(total, part, out=part)
        else:
            total = total + part
    return total


def join(p: Any, g: Any, i: int, sweep: Any) -> Any:
    """``p + g`` for value ``i``, where ``p`` is an element of ``cts`` and a local of the caller.

    In place where the sweep owns the buffer, and where nobody but ``cts`` can see it. In that case the sum must have
    the strides that a new array would have: they decide the order in which whoever sums over it adds, and may not
    depend on who holds what.
    """
    if type(p) is np.ndarray and type(g) is np.ndarray:
        if i in sweep.owned:
            np.add(p, g, out=p)
            return p
        if getrefcount(p) <= JOINED and p.base is None and takes(p, g):
            np.add(p, g, out=p)
            sweep.owned.add(i)
            return p
    elif sweep.outer is not None and getrefcount(p) <= JOINED and sweep.outer.tangents is not None:
        return sweep.outer.tangents.joined(p, g)
    total = p + g
    if type(total) is np.ndarray:
        sweep.owned.add(i)
    else:
        sweep.owned.discard(i)  # a scalar, to which nobody can write
    return total


def send(cts: Any, i: int, g: Any, sweep: Any) -> None:
    """Add ``g`` to the cotangent of value ``i``: to what other readers of the value have sent, if any has.

    Generated pulls have these two lines in their text (:data:`pullback.rules.generated_pulls.SEND`).
    """
    p = cts[i]
    cts[i] = g if p is None else join(p, g, i, sweep)
