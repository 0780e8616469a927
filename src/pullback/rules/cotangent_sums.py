"""Where the cotangents of a value are added up: one after the other, in place where nobody else can see the array.

A rule may also compute into a large cotangent that it consumes, or into a saved value that only its record holds.
Written in place are only real numbers of one dtype in C order, element by element: where they go does not change their
bits.
"""

from collections.abc import Callable
from itertools import pairwise
from sys import getrefcount
from typing import Any

import numpy as np

from pullback.rules.generated_code import compile_function
from pullback.words.undocumented import JOINED, PULLED, RECORDED

LARGE = 1 << 16
"""Bytes from which on a new array costs more than looking whether one may be written."""
_REAL = frozenset("fd")
_OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "negative": np.negative}


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
        if type(total) is np.ndarray and total.size != 1 and alone(part) and takes(part, total):
            total = np.add(total, part, out=part)
        else:
            total = total + part
    return total


def join(p: Any, g: Any, i: int, sweep: Any) -> Any:
    """``p + g`` for value ``i``, where ``p`` is an element of ``cts`` and a local of the caller.

    In place where the sweep owns the buffer, and where nobody but ``cts`` can see it. In that case the sum must have
    the strides that a new array would have: they decide the order in which whoever sums over it adds, and may not
    depend on who holds what. A single element is never added in place: NumPy takes that for a sum over many, in which
    the other of two NaNs stays, and a 0-d array would not become the scalar that a new sum is.
    """
    if type(p) is np.ndarray and type(g) is np.ndarray:
        if p.size != 1:
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


def multiplied(ct: Any, y: Any) -> Any:
    """``ct * y`` in ``ct``, a local of a sweep that was handed to a pull; None, and nothing done, where somebody else
    can see it or the new array would be another."""
    if getrefcount(ct) <= PULLED and _consumable(ct) and _factor(ct, y):
        return np.multiply(ct, y, out=ct)
    return None


def of_one(ct: Any, y: Any) -> Any:
    """``ct * y`` where ``ct`` is one number 1 for all elements, as a sum sends it: ``y`` itself, which is not written
    as long as somebody else has it; None for any other, and where the new array would be another."""
    if any(ct.strides) or ct.dtype.char not in _REAL or type(y) is not np.ndarray or not _factor(ct, y):
        return None
    return y if ct[(0,) * ct.ndim] == 1 else None


def negated(ct: Any) -> Any:
    """``-ct`` in ``ct``, as :func:`multiplied`."""
    return np.negative(ct, out=ct) if getrefcount(ct) <= PULLED and _consumable(ct) else None


def multiplied_masked(ct: Any, y: Any) -> Any:
    """As :func:`multiplied`; None also where a product may be NaN, of which a cotangent of 0 makes 0."""
    if getrefcount(ct) <= PULLED and _consumable(ct) and type(y) is np.ndarray and _factor(ct, y):
        trial = ct.reshape(-1).dot(y.reshape(-1))
        if trial == trial:  # noqa: PLR0124 - only a NaN differs from itself
            return np.multiply(ct, y, out=ct)
    return None


def multiplied_into(ct: Any, fresh: Any) -> Any:
    """``ct * fresh`` in ``fresh``, an array that the caller has just computed; None where a product is NaN or the new
    array would be another. What was in ``fresh`` is lost."""
    return _whole(np.multiply(ct, fresh, out=fresh)) if receives(ct, fresh) else None


def divided_into(ct: Any, fresh: Any) -> Any:
    """``ct / fresh``, as :func:`multiplied_into`."""
    return _whole(np.divide(ct, fresh, out=fresh)) if receives(ct, fresh) else None


def _consumable(ct: Any) -> bool:
    return ct.base is None and ct.flags.carray and ct.dtype.char in _REAL


def _factor(ct: Any, y: Any) -> bool:
    """Whether a product with ``y`` has the shape, dtype and strides of ``ct``."""
    if type(y) is np.ndarray:
        return y.dtype is ct.dtype and y.shape == ct.shape and y.flags.c_contiguous
    return type(y) is float or type(y) is int


def receives(ct: Any, fresh: Any) -> bool:
    """Whether what is made of ``ct`` and ``fresh``, element by element, has the shape, dtype and strides of ``fresh``,
    an array of real numbers."""
    return (
        type(fresh) is np.ndarray and fresh.flags.carray and fresh.dtype is ct.dtype and fresh.shape == ct.shape
        and ct.dtype.char in _REAL and in_rows(ct)
    )  # fmt: skip


def in_rows(ct: Any) -> bool:
    """Whether a new array that is made of ``ct`` and one in C order is in C order."""
    return bool(ct.flags.c_contiguous) or not any(ct.strides)


def _whole(g: Any) -> Any:
    """``g``, None if one of its elements is NaN (or infinities met in the sum of their squares)."""
    flat = g.reshape(-1)
    trial = flat.dot(flat)
    return g if trial == trial else None  # noqa: PLR0124 - only a NaN differs from itself


def dies(ct: Any, value: Any) -> bool:
    """Whether a cotangent can be computed into ``value``, an element of a record that a generated pull has handed on
    twice: nobody else has the array, and it is as a new one made of ``ct`` would be."""
    return getrefcount(value) <= RECORDED and receives(ct, value) and value.base is None


def into_dying(found: Any, namespace: dict[str, Any]) -> tuple[Callable[[Any, Any], Any] | None, str]:
    """What computes a rule, seen as the term ``found``, of a cotangent and the saved value that it reads, in the array
    of that value, and leaves None where this does not die; with the text of that value. None for a rule that is no
    chain."""
    steps: list[Any] = []
    term = found
    while term is not None:
        made = [part for part in term.parts if part.parts]
        if len(made) > 1 or _ufunc(term, namespace) is None:
            return None, ""
        steps.append(term)
        term = made[0] if made else None
    saved = {leaf for leaf in found.leaves() if leaf.startswith("record[")}
    first = {part.text for part in steps[-1].parts} & saved
    above = {part.text for step in steps[:-1] for part in step.parts if not part.parts}
    if len(saved) != 1 or first != saved or above & saved:
        return None, ""
    (place,) = saved
    lines = ["def into_dying(ct, value):", "    if not dies(ct, value):", "        return None"]
    names: dict[str, Any] = {"dies": dies}
    for k, step in enumerate(reversed(steps)):
        names[f"ufunc{k}"] = _ufunc(step, namespace)
        given = ["value" if part.parts or part.text == place else part.text for part in step.parts]
        lines.append(f"    ufunc{k}({', '.join(given)}, out=value)")
    made_function = compile_function("into_dying", "\n".join([*lines, "    return value"]) + "\n", names)
    return made_function, place


def _ufunc(term: Any, namespace: dict[str, Any]) -> Any:
    """What computes a term into an array; None where that is no ufunc."""
    return _OPERATORS.get(term.what) or namespace.get(f"ufunc_{term.what}")
