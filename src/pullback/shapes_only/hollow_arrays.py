"""Arrays that have a shape and a dtype and no values: what a program is planned on from shapes alone.

A :class:`Hollow` is an ndarray at addresses behind which there is no memory. What NumPy computes with it is not
computed: the shape and the dtype of the result are found, and the result is hollow, too. So the whole of a program
runs, forward and back, its views and buffers are counted as ever, and nothing of that size is made. What would read a
value raises :class:`ShapesOnlyError`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, Final, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from pullback.memory.in_force import using
from pullback.shapes_only.hollow_functions import of_function, of_ufunc
from pullback.shapes_only.hollow_shapes import HollowResult, holds_hollow, is_hollow, nothing_of, refuse
from pullback.shapes_only.unread_pages import Addresses, region_of
from pullback.words.specs import NEW_ARRAY, buffer_of
from pullback.words.structures import flatten


class Hollow(NDArrayOperatorsMixin, np.ndarray):  # type: ignore[misc]  # operators go through __array_ufunc__
    """An array without values. ``scalar`` says that NumPy would have given a number, which is no buffer."""

    __pullback_value__ = None
    """What is said to those who ask whether a value is a plain array: it is one of the library's own."""
    __pullback_hollow__ = True
    scalar: bool = False
    blank: bool = False
    """Whether it is zeros that nobody has written to."""

    @property
    def is_blank(self) -> bool:
        """Whether what it looks at is zeros that nobody has written to."""
        return bool(getattr(buffer_of(self), "blank", False))

    def mark_blank(self, blank: bool) -> None:
        """Say whether what it looks at is zeros."""
        root = buffer_of(self)
        if is_hollow(root):
            root.blank = blank

    def __array_finalize__(self, of: Any) -> None:
        """A view of a number's memory is an array."""

    @property
    def nbytes(self) -> int:
        """What an array with values takes; a number is no buffer."""
        return 0 if self.scalar else self.size * self.itemsize

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """What the ufunc gives: without values."""
        if any(hasattr(type(x), "__pullback_record__") for x in inputs):
            return NotImplemented
        return given(of_ufunc(ufunc, method, inputs, kwargs))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """What the function gives: without values."""
        if not all(issubclass(kind, np.ndarray) for kind in types):
            return NotImplemented
        return given(of_function(func, args, kwargs))

    def __getitem__(self, key: Any) -> Any:
        """A view, or a new hollow array where the key has arrays in it."""
        if holds_hollow(key):
            refuse("an index")
        if self.scalar and isinstance(key, int):
            refuse("a value")  # who takes the first of something has asked whether it is a number
        stand_in = nothing_of(self)[key]
        basic = not any(isinstance(part, np.ndarray | list) for part in (key if isinstance(key, tuple) else (key,)))
        if basic and stand_in.shape == () and not isinstance(stand_in, np.ndarray):
            return hollow((), self.dtype, scalar=True)
        if not basic:
            return hollow(stand_in.shape, self.dtype, scalar=stand_in.shape == ())
        return np.ndarray.__getitem__(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Nothing is written; the shapes must fit."""
        if holds_hollow(key):
            refuse("an index")
        self.mark_blank(False)
        into = np.shape(nothing_of(self)[key])
        np.broadcast_shapes(np.shape(value), into)

    def __iter__(self) -> Iterator[Any]:
        """Its rows."""
        return (self[k] for k in range(len(self)))

    def copy(self, order: Any = "C") -> Any:
        """Another one, of a buffer of its own."""
        return hollow(self.shape, self.dtype, scalar=self.scalar, like=self if order in "KA" else None)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def astype(self, dtype: Any, order: Any = "K", *_: Any, copy: Any = True, **__: Any) -> Any:
        """One of another dtype; itself where that is the same and no copy is asked for."""
        new = np.dtype(dtype)
        same = new == self.dtype and not copy
        return self if same else hollow(self.shape, new, scalar=self.scalar, like=self if order in "KA" else None)

    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
        """A view where that can be, else another one."""
        given = shape[0] if len(shape) == 1 else shape
        into = nothing_of(self).reshape(given).shape
        line = self if order == "C" or self.ndim < 2 else self.T
        if line.flags.c_contiguous and not copy:
            whole = np.ndarray.reshape(line, into if order == "C" else into[::-1])
            return whole if order == "C" else whole.T
        return hollow(into, self.dtype)

    def ravel(self, order: Any = "C") -> Any:
        """A view where that can be, else another one."""
        line = self.T if order == "F" or (order in "KA" and self.flags.f_contiguous) else self
        return line.reshape(-1)

    def flatten(self, *_: Any) -> Any:
        """One axis, in a buffer of its own."""
        return hollow((self.size,), self.dtype)

    def fill(self, *_: Any) -> None:
        """Nothing is written."""
        self.mark_blank(False)

    def sort(self, *args: Any, **kwargs: Any) -> None:
        """Nothing moves."""

    def dot(self, other: Any, out: Any = None) -> Any:
        """As ``np.dot``."""
        return np.dot(self, other, out)

    def repeat(self, *args: Any, **kwargs: Any) -> Any:
        """As ``np.repeat``."""
        return np.repeat(self, *args, **kwargs)

    def take(self, *args: Any, **kwargs: Any) -> Any:
        """As ``np.take``."""
        return np.take(self, *args, **kwargs)

    def __eq__(self, other: object) -> Any:
        """True of itself: there is no NaN in it."""
        return True if other is self else self._asked(np.equal, other)

    def __ne__(self, other: object) -> Any:
        """False of itself."""
        return False if other is self else self._asked(np.not_equal, other)

    def _asked(self, compare: Any, other: Any) -> Any:
        return compare(self, other)

    __hash__ = None  # as that of an array

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        refuse("a value")

    __bool__ = __int__ = __float__ = __complex__ = __index__ = _refused

    def values(self) -> NoReturn:
        """Asked for where an array is an index."""
        refuse("an index")

    __contains__ = item = tolist = tobytes = nonzero = searchsorted = choose = compress = _refused
    argsort = argmax = argmin = partition = argpartition = _refused

    def __repr__(self) -> str:
        return f"spec({self.shape}, {self.dtype})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce__(self) -> Any:
        return hollow, (self.shape, self.dtype)


def hollow(shape: tuple[int, ...], dtype: Any, *, scalar: bool = False, like: Any = None) -> Any:
    """A new one, with a buffer of its own; its axes lie in memory in the order of those of ``like``."""
    if NEW_ARRAY.get() is hollow and _REGIONS and _REGIONS[-1].begins_read():
        _REGIONS[-1].forget()
        refuse(READ, "at, or just before,")
    kind = np.dtype(dtype)
    made: Any = np.ndarray.__new__(Hollow, shape, kind, _region(prod(shape) * kind.itemsize))
    if like is not None and len(shape) > 1 and not like.flags.c_contiguous and like.shape == shape:
        order = sorted(range(len(shape)), key=lambda k: -abs(like.strides[k]))
        made = np.ndarray.__new__(Hollow, tuple(shape[k] for k in order), kind, _region(made.size * kind.itemsize))
        made = made.transpose(tuple(order.index(k) for k in range(len(shape))))
    made.scalar = scalar
    return made


_REGIONS: Final[list[Addresses]] = []


def _region(nbytes: int) -> Any:
    """Addresses of so many bytes. All hollow arrays lie at the same ones: what tells them apart is the array that a
    view looks at."""
    if not _REGIONS or len(_REGIONS[-1].memory) < nbytes:
        _REGIONS.append(region_of(max(nbytes, 2 * len(_REGIONS[-1].memory) if _REGIONS else 1 << 24)))
    return _REGIONS[-1].memory


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Within the block the library makes arrays without values, and compares none. Raises :class:`ShapesOnlyError`
    where somebody has read such an array as a plain one, which is zeros."""
    for region in _REGIONS:
        region.forget()
    token = NEW_ARRAY.set(hollow)
    try:
        with using(verify="off", staging="off"):
            yield
    finally:
        NEW_ARRAY.reset(token)
    if any(region.was_read() for region in _REGIONS):
        refuse(READ, "before")


READ: Final = "a value, which was read from a plain array such as np.asarray(pb.value(x)),"


def given(found: Any) -> Any:
    """What a function gives, new arrays in the place of what is known of them."""
    if isinstance(found, HollowResult):
        made = hollow(found.shape, found.dtype, scalar=found.scalar, like=found.like)
        made.mark_blank(found.blank)
        return made
    if isinstance(found, tuple | list) and any(isinstance(part, HollowResult) for part in found):
        return type(found)(map(given, found))
    return found


def spec(shape: int | tuple[int, ...], dtype: Any = float) -> Any:
    """What stands for an array of this shape and dtype in ``pullback.plan``, which then goes by shapes alone: nothing
    of that size is allocated.

    Arrays that the function makes by itself are made: write ``np.zeros_like(x)``, not ``np.zeros(x.shape)``. What will
    be a view of a larger array is a view of a larger spec, ``pb.spec((200, 200))[::2]``: all of that is held.

    Parameters
    ----------
    shape
        A number, or a tuple of them.
    dtype
        Any dtype of numbers.

    Returns
    -------
    An array without values.

    Raises
    ------
    ShapesOnlyError
        Where a number of it is needed: a branch, an index, the condition of a ``while_loop``; on Linux and macOS also
        where a plain array that looks at it is read (``np.asarray(pullback.value(x))``), at the next operation or at
        the end.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> def f(x):
    ...     return np.sum(pb.fori_loop(0, 100, lambda k, u: u + 0.1 * np.sin(u), x))
    >>> pb.plan(f, pb.spec((4096, 4096)), policy=pb.Binomial(10)).peak_bytes
    1744830464
    """
    return hollow((shape,) if isinstance(shape, int) else tuple(shape), dtype)


def has_spec(args: Any) -> bool:
    """Whether an argument, or a part of one, is without values."""
    return any(isinstance(leaf, Hollow) for leaf in flatten(args)[0])
