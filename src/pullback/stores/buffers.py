"""The arrays of an entry as dense buffers, which files and codecs understand, and what makes the arrays of them again.

Strides, order, dtype and what shares memory come back as they were: the bits of a sum depend on them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

from pullback.recording.copies import faithful_copy
from pullback.words.specs import buffer_of


@frozen
class Window:
    """How an array looks at a buffer: all that its strides, and so its bits in a sum, depend on."""

    root: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    writeable: bool
    whole: bool
    """Whether it is the buffer itself."""


def packed(arrays: Sequence[np.ndarray[Any, Any]]) -> tuple[list[np.ndarray[Any, Any]], list[Window]]:
    """The dense buffers that arrays look at, each once, and how each array looks at its own. A small slice of a large
    buffer is copied, in its strides, unless another one of the arrays looks at the same buffer."""
    found = [buffer_of(array) for array in arrays]
    shared = [id(root) for root in found]
    roots: list[np.ndarray[Any, Any]] = []
    numbers: dict[int, int] = {}
    windows = []
    for array, buffer in zip(arrays, found, strict=True):
        looked, root = array, buffer
        if not _dense(root) or (root.nbytes > 4 * array.nbytes + 64 and shared.count(id(root)) == 1):
            looked = faithful_copy(array)
            root = buffer_of(looked)
        number = numbers.get(id(root))
        if number is None:
            number = numbers[id(root)] = len(roots)
            roots.append(root)
        offset = _address(looked) - _address(root)
        windows.append(
            Window(
                number, offset, array.shape, looked.strides, array.dtype, bool(array.flags.writeable), looked is root
            )
        )
    return roots, windows


def unpacked(roots: Sequence[np.ndarray[Any, Any]], windows: Sequence[Window]) -> list[np.ndarray[Any, Any]]:
    """The arrays again: in the same strides, those of one buffer in one buffer."""
    arrays = []
    for window in windows:
        root = roots[window.root]
        array = root
        if not window.whole:
            array = np.ndarray(window.shape, window.dtype, bytes_of(root), window.offset, window.strides)
        arrays.append(array)
    for array, window in zip(arrays, windows, strict=True):  # last: a view of a frozen buffer may be written
        if not window.writeable:
            array.flags.writeable = False
    return arrays


def bytes_of(dense: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The memory of a dense array as bytes, in place."""
    line = dense if dense.flags.c_contiguous else dense.T
    return line.reshape(-1).view(np.uint8)


def _dense(root: Any) -> bool:
    if type(root) is not np.ndarray or root.dtype.hasobject or not root.nbytes:
        return False
    return bool(root.flags.c_contiguous or root.flags.f_contiguous)


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])
