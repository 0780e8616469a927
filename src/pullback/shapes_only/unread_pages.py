"""Addresses behind which there is no memory, and whether somebody has read there all the same.

A plain array that looks at a hollow one (``np.asarray(pb.value(x))``) asks nobody when it is read: it reads zeros. But
the page that is read is mapped by then, and the kernel tells so (``mincore``). Where it cannot be asked, nothing is
told.
"""

import ctypes
import mmap
import sys
from functools import cache
from typing import Any, Final

import numpy as np
from attrs import define, field

from pullback.words.errors import ShapesOnlyError

FIRST: Final = 64
"""Pages that are looked at again and again; the others at the end."""
CHUNK: Final = 1 << 20
"""Pages that the kernel is asked of at once."""
_UNRESERVED: Final = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


@define(eq=False)
class Addresses:
    """So many bytes of addresses, and nothing behind them until somebody reads or writes there."""

    memory: mmap.mmap
    address: int = field(init=False)
    first: Any = field(init=False)
    """What the kernel tells of the first pages."""

    def __attrs_post_init__(self) -> None:
        self.address = np.frombuffer(self.memory, np.uint8).ctypes.data
        self.first = ctypes.create_string_buffer(min(FIRST, -(-len(self.memory) // mmap.PAGESIZE)))

    def begins_read(self) -> bool:
        """Whether one of the first pages was touched."""
        return _mapped(self.address, self.first)

    def was_read(self) -> bool:
        """Whether any page was touched."""
        pages = -(-len(self.memory) // mmap.PAGESIZE)
        return any(
            _mapped(self.address + start * mmap.PAGESIZE, ctypes.create_string_buffer(min(CHUNK, pages - start)))
            for start in range(0, pages, CHUNK)
        )

    def forget(self) -> None:
        """Let go of the pages that were touched."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self.memory.madvise(mmap.MADV_DONTNEED)


def region_of(nbytes: int) -> Addresses:
    """A new one. Raises :class:`ShapesOnlyError` where there are not so many addresses."""
    flags = {} if sys.platform == "win32" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _UNRESERVED}
    try:
        return Addresses(mmap.mmap(-1, nbytes, **flags))
    except (OSError, OverflowError) as error:
        raise ShapesOnlyError(
            f"there are no addresses for an array of {nbytes:,} bytes here ({error}); plan with smaller specs, or "
            "where memory may be reserved without limit (ulimit -v)"
        ) from error


def _mapped(address: int, told: Any) -> bool:
    """Whether one of as many pages as ``told`` has bytes was touched."""
    ask = _asked()
    if ask is None:
        return False
    ask(ctypes.c_void_p(address), ctypes.c_size_t(len(told) * mmap.PAGESIZE), told)
    return any(told.raw)


@cache
def _asked() -> Any:
    """The kernel's function; None where there is none, or where it tells something else of pages."""
    try:
        ask = ctypes.CDLL(None).mincore
        memory = mmap.mmap(-1, 2 * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        array = np.frombuffer(memory, np.uint8)
        told = ctypes.create_string_buffer(2)
        read = int(array[0])
        answer = ask(ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(2 * mmap.PAGESIZE), told)
    except (OSError, AttributeError, TypeError, ValueError):
        return None
    return ask if (answer, told.raw, read) == (0, b"\1\0", 0) else None
