"""Regions: which part of a root array a write goes to, and what its adjoint does with the same part of a cotangent.

A region is a chain of view functions from the root, and a last key. The *same* functions applied to a cotangent buffer
of the root's strides give the same part of it, so every view NumPy has works without a rule of its own for writing.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from attrs import define, field, frozen

from pullback.recording.copies import faithful_copy
from pullback.recording.handles import Handle
from pullback.recording.index_keys import is_basic
from pullback.rules.declaration import Primitive
from pullback.words.errors import WriteError

_SMALL = 4096


@define  # not frozen: one is made in each write, and a frozen one takes three times as long to make
class Region:
    """View functions from the root, then a key; ``fancy`` when the key holds arrays (reading it copies), ``adds``
    for ``ufunc.at``."""

    steps: tuple[tuple[Primitive, dict[str, Any]], ...] = field(repr=False)
    key: Any
    fancy: bool
    repeats: bool = False
    """True when the key names an element more than once."""
    subtracts: bool = False
    """Whether an increment takes the value away. Not the same as adding its negative, which gives zeros another
    sign."""
    known: Any = field(default=None, eq=False, repr=False)
    """What is known of the one key that leads to it (``Tape.reads``), where that is known."""

    def view(self, root: Any) -> Any:
        """The view of ``root`` that the steps lead to; writing to it writes to ``root``."""
        part = root
        for prim, params in self.steps:
            part = prim(part, **params)
        return part

    def read(self, root: Any) -> Any:
        """The region's values, owning their memory."""
        part = self.view(root)[self.key]
        return part if self.fancy or not hasattr(part, "copy") else part.copy()

    def sent(self, ct: Any, part: Any) -> Any:
        """The cotangent of what was written to the region, from the region's ``part`` of the cotangent ``ct``.

        That is df/dx - i df/dy, so what went to the imaginary part of a complex array has its cotangent there with the
        other sign.
        """
        through = any(prim.name == "imag" for prim, _ in self.steps)
        return -part if (through and ct.dtype.kind == "c") != self.subtracts else part

    def part(self, root: Any) -> Any:
        """As :meth:`read`, but a view where the region is half of the root or more: a small view would keep a large
        root from being written."""
        if self.fancy or self.steps or not isinstance(root, np.ndarray):
            return self.read(root)
        found = root[self.key]
        if not isinstance(found, np.ndarray) or 2 * found.nbytes < root.nbytes:
            return self.read(root)
        return found if root.base is None else faithful_copy(found)  # whoever sums over it must not see the difference

    def write(self, root: Any, value: Any) -> None:
        """``root``'s region becomes ``value``, in place."""
        self.view(root)[self.key] = value

    def add(self, root: Any, value: Any) -> None:
        """``value`` is added to ``root``'s region in place (or taken away), repeated elements as often as they are
        named."""
        part = self.view(root)
        if self.repeats:
            (np.subtract if self.subtracts else np.add).at(part, self.key, value)
            return
        target = part[self.key]
        if self.fancy or not is_array(target):
            part[self.key] = target - value if self.subtracts else target + value
        elif self.subtracts:
            target -= value
        else:
            target += value


def is_array(part: Any) -> bool:
    """True for an array of one axis or more, traced or not: what ``+=`` changes in place."""
    # A handle has the array's attributes.
    return isinstance(part, np.ndarray | Handle) and bool(part.shape != ())  # type: ignore[union-attr]


def region_at(
    steps: tuple[tuple[Primitive, dict[str, Any]], ...], part: Any, key: Any, *, subtracts: bool = False
) -> Region:
    """The region ``part[key]`` of a root, where ``steps`` lead from the root to ``part``."""
    if is_basic(key):
        return Region(steps, key, False, subtracts=subtracts)
    fancy = is_fancy(key)
    return Region(steps, key, fancy, fancy and has_repeats(key, part.shape), subtracts)


def is_fancy(key: Any) -> bool:
    """True when reading with this key copies: it holds an array, a list or a boolean."""
    items = key if isinstance(key, tuple) else (key,)
    return any(isinstance(k, np.ndarray | list | bool | np.bool_) for k in items)


def is_mask(key: Any) -> bool:
    """True when the key holds a boolean array: it leaves elements out for what they are."""
    if type(key) is np.ndarray:
        return bool(key.dtype.kind == "b")
    items = key if isinstance(key, tuple) else (key,)
    return any(isinstance(k, np.ndarray) and k.dtype.kind == "b" for k in items)


def has_repeats(key: Any, shape: tuple[int, ...]) -> bool:
    """True when an advanced key names some element twice. Boolean masks never do."""
    items = key if isinstance(key, tuple) else (key,)
    if sum(k.nbytes for k in items if isinstance(k, np.ndarray)) > _SMALL:
        return _has_repeats(items, shape)
    return _small_has_repeats(tuple(_Item.of(k) for k in items), shape)


@frozen
class _Item:
    """An item of a key that can be looked up: an array by its bytes."""

    plain: Any
    array: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, k: Any) -> "_Item":
        """An item by value; slices only by being one, since they name no element twice."""
        if isinstance(k, list):
            k = np.asarray(k)
        if isinstance(k, np.ndarray):
            return cls(None, (k.tobytes(), k.dtype, k.shape))
        return cls("slice" if isinstance(k, slice) else (type(k), k))  # True is equal to 1 and means something else

    def value(self) -> Any:
        """The item again."""
        if self.array is None:
            return slice(None) if self.plain == "slice" else self.plain[1]
        data, dtype, shape = self.array
        return np.frombuffer(data, dtype).reshape(shape)


@lru_cache(maxsize=256)
def _small_has_repeats(items: tuple[_Item, ...], shape: tuple[int, ...]) -> bool:
    return _has_repeats(tuple(item.value() for item in items), shape)


def _has_repeats(items: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    axis, arrays, extents = 0, [], []
    for k in items:
        if k is None:
            continue
        if k is Ellipsis:
            taken = sum(_axes_of(i) for i in items)
            axis += len(shape) - taken
            continue
        if isinstance(k, slice):
            axis += 1
            continue
        array = np.asarray(k)
        if array.dtype.kind == "b":
            axis += array.ndim
            continue
        arrays.append(np.where(array < 0, array + shape[axis], array))
        extents.append(shape[axis])
        axis += 1
    if not arrays:
        return False
    flat = np.ravel_multi_index(np.broadcast_arrays(*arrays), tuple(extents), mode="clip").ravel()
    return names_twice(flat, math.prod(extents))


def names_twice(places: Any, extent: int) -> bool:
    """True when some place below ``extent`` is named twice: by marking them, and by sorting them where they are few
    in a large extent."""
    if 16 * places.size < extent:
        line = np.sort(places, axis=None)  # np.unique would import numpy.ma, a megabyte
        return bool((line[1:] == line[:-1]).any())
    seen = np.zeros(extent, bool)
    seen[places] = True
    return bool(np.count_nonzero(seen) < places.size)


def _axes_of(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, slice | int | np.integer):
        return 1
    array = np.asarray(item)
    return array.ndim if array.dtype.kind == "b" else 1


def winners(region: Region, root_shape: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """1.0 for the elements of the value that survive a write with repeated indices (the last write wins), 0.0 for the
    others."""
    count = int(np.prod(shape, dtype=np.intp))
    order = np.arange(1, count + 1).reshape(shape)
    parts = any(
        prim.name in ("real", "imag") for prim, _ in region.steps
    )  # of a complex array, which a view of one must be taken of
    last = np.zeros(root_shape, np.complex128 if parts else np.intp)
    part = region.view(last)
    part[region.key] = order
    return np.asarray(part[region.key] == order, float)


def require_writable(value: Any, what: str, where: str) -> None:
    """Raise :class:`WriteError` for a view NumPy gives read-only (``broadcast_to``, ``diagonal``)."""
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        raise WriteError(
            f"{what} is read-only in NumPy too (at {where}): it is a view such as broadcast_to or diagonal "
            "gives; write to a copy, x.copy()"
        )
