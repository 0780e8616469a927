"""Copies of plain arrays: faithful ones, with the strides of the original, so that sums over them keep their bits;
saved ones, shared while equal; and memory that is lent instead of copied."""

import gc
from sys import getrefcount
from typing import Any, Final
from weakref import ref

import numpy as np

from pullback.words.call_sites import site_here, site_text
from pullback.words.digests import digest, same_bits
from pullback.words.errors import WriteError
from pullback.words.undocumented import LISTED, limit, references

RETURNED = limit(lambda leaves: max(map(getrefcount, list(leaves))), 3)
"""How many references there are to a leaf in a list, where one other list or tuple has it as well. Test:
test_an_array_that_nobody_keeps_is_not_copied. A leaf with more is looked at."""
N_TOLD = 8
"""How many elements, or some more, tell arrays apart at first."""


def faithful_copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that owns its memory and has the strides of the original, so that whatever reads it does so in the same
    order.

    A slice that spans more than four times its own bytes gets smaller strides, of the same signs and order, in which
    the same axes can be seen as one.
    """
    flags = array.flags
    if flags.c_contiguous or flags.f_contiguous:
        return array.copy(order="K")
    low, high = np.lib.array_utils.byte_bounds(array)
    if high - low > 4 * array.nbytes + 64:
        small = _compacted(array)
        small[...] = array
        return small
    memory = np.empty_like(array, np.uint8, shape=(high - low,), subok=False)
    address = array.__array_interface__["data"][0]
    copy: np.ndarray[Any, Any] = type(memory)(array.shape, array.dtype, memory, address - low, array.strides)
    if 0 in array.strides:
        compact = tuple(slice(None) if step else slice(0, 1) for step in array.strides)
        copy[compact] = array[compact]
    else:
        copy[...] = array
    return copy


def overlaps_itself(array: np.ndarray[Any, Any]) -> bool:
    """Whether elements lie in each other's memory, as those of ``np.broadcast_to`` do: the array spans fewer bytes than
    it has."""
    reach = sum((n - 1) * abs(step) for n, step in zip(array.shape, array.strides, strict=True))
    return array.size > 1 and reach + array.itemsize < array.nbytes


def own_leaf(leaf: Any) -> Any:
    """A leaf of a state as its body gets it, which may write to it: of an array that is read-only, or whose elements
    lie in each other's memory, a copy."""
    if type(leaf) is np.ndarray and overlaps_itself(leaf):
        return leaf.copy()
    return faithful_copy(leaf) if type(leaf) is np.ndarray and not leaf.flags.writeable else leaf


def _compacted(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of the shape, dtype and kind of layout of another one, uninitialised, with gaps of one element for
    gaps of any size."""
    order = sorted(range(array.ndim), key=lambda k: abs(array.strides[k]))
    strides, step, before = [0] * array.ndim, array.itemsize, None
    for k in order:
        if array.shape[k] == 1 or not array.strides[k]:
            continue
        if before is None:
            gap = array.itemsize if abs(array.strides[k]) != array.itemsize else 0
        else:
            gap = step if abs(array.strides[k]) != abs(array.strides[before]) * array.shape[before] else 0
            step = abs(strides[before]) * array.shape[before]
            gap = array.itemsize if gap else 0
        step += gap
        strides[k] = step if array.strides[k] > 0 else -step
        before = k
    reach = [(n - 1) * s for n, s in zip(array.shape, strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    memory = np.empty_like(array, np.uint8, shape=(high - low + array.itemsize,), subok=False)
    return type(memory)(array.shape, array.dtype, memory, -low, strides)


def faithful(value: Any) -> Any:
    """A faithful copy of an array; any other value as it is."""
    return faithful_copy(value) if type(value) is np.ndarray else value


def packed_copy(value: Any) -> Any:
    """A copy of an array, without gaps in its memory; any other value as it is."""
    return value.copy(order="K") if type(value) is np.ndarray else value


def owned(value: Any) -> Any:
    """What no other value has: of a view a copy, without gaps in its memory; any other value as it is."""
    return value.copy(order="K") if type(value) is np.ndarray and value.base is not None else value


def shared_copy(constants: Any, array: np.ndarray[Any, Any]) -> Any:
    """The copy of an array that ``constants`` hold, one for each distinct content, made now where there is none. It is
    found by the array first, then by some of its elements."""
    lately = id(array), array.strides  # another array may have got the id since: shape, dtype and bits tell
    found = constants.get(lately)
    if found is not None and found.shape == array.shape and found.dtype is array.dtype and same_bits(found, array):
        return found
    key, whole = _told(array)
    found = constants.get(key)
    if found is None and not whole:  # whatever is held begins otherwise, so no hash of all of it is needed
        found = constants[key] = faithful_copy(array)
    elif found is None or not same_bits(found, array):
        content = digest(array)
        found = constants.get(content)
        if found is None or not same_bits(found, array):  # no hash is trusted with a gradient
            found = constants[content] = faithful_copy(array)
        if whole:
            constants[key] = found
    constants[lately] = found
    return found


def _told(array: np.ndarray[Any, Any]) -> tuple[Any, bool]:
    """The key by which a copy of the array is found, and whether one that is not found so may be found by the whole
    content: a few elements tell arrays apart where these can be had without a copy, else the place in memory."""
    if array.flags.c_contiguous:
        line = array.reshape(-1)
        return (array.shape, array.strides, array.dtype, line[:: line.size // N_TOLD or 1].tobytes()), False
    return (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype), True


def copy_kept(leaves: list[Any], before: list[Any]) -> None:
    """Put copies in the place of arrays among the leaves that a body has returned and keeps as well, as it keeps what
    it captures: a later step may write to its state. One tuple or other structure holds them besides. Of those that it
    was given, which stand in ``before``, it may keep what it likes."""
    for k in range(len(leaves)):
        kept = isinstance(leaves[k], np.ndarray) and references(leaves, k) > LISTED + 1
        if kept and not any(leaves[k] is leaf for leaf in before):
            leaves[k] = faithful_copy(leaves[k])


def separate(leaves: list[Any]) -> list[Any]:
    """The leaves with no two sharing memory, so that a body that writes to one does not write to another."""
    seen: set[int] = set()
    apart = []
    for shared in leaves:
        leaf = shared
        if isinstance(leaf, np.ndarray) and (leaf.base is not None or id(leaf) in seen):
            leaf = faithful_copy(leaf)
        seen.add(id(leaf))
        apart.append(leaf)
    return apart


# ---------------------------------------------------------------------------------------------------------- lent memory
# In a trace of adopted code an array that depends on nothing may be read as it is, and who reads it may keep a view.
# What is traced must not be written there as long as one lives: its reader would find the new values, and no
# derivative.
_DIFFERENTIABLE: Final = frozenset("fc")


def lent(value: Any, tape: Any) -> Any:
    """An array that may be read only, over the memory of another one, of which the tape notes it."""
    plain: Any = np.asarray(value)
    if plain.dtype.kind not in _DIFFERENTIABLE:
        plain = plain.view()
        plain.flags.writeable = False
        return plain
    # Views of this array keep it, and not the one whose memory it is: an array that lies over no other one is the end
    # of their chain.
    seen = np.asarray(memoryview(plain).toreadonly())
    tape.lent = (*(other for other in tape.lent if other() is not None), ref(seen))
    return seen


def is_lent(value: Any, tape: Any) -> bool:
    """Whether somebody has a view of the memory of an array."""

    def seen() -> bool:
        views = (other() for other in tape.lent)
        return any(view is not None and np.may_share_memory(view, value) for view in views)

    if type(value) is not np.ndarray or not seen():
        return False
    gc.collect()  # what only garbage has, nobody has
    return seen()


def require_not_lent(value: Any, tape: Any) -> None:
    """Nothing, or :class:`WriteError` where somebody has a view of memory that is about to hold what is traced, or to
    be written elsewhere."""
    if is_lent(value, tape):
        raise WriteError(
            f"an array is written (at {site_text(site_here())}) of which code that was not adopted has a plain view, "
            "made when nothing in it was traced: that view would show the new values without their derivative, or the "
            "old ones still. Hand such code a copy, np.array(x), or make the view anew after the write"
        )
