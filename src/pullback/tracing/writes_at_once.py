"""The fast way to write: ``x[key] = v`` and ``x += v`` in a trace that saves all, at a basic key or through a view,
into memory that nobody else reads.

The records are those that ``recording.writes`` writes; every other write goes there.
"""

from threading import get_ident
from typing import Any

import numpy as np

from pullback.recording.handles import FREE, WRITTEN, resolve, root_of, steps_to
from pullback.recording.regions import Region
from pullback.recording.writes import record_write, stamp

LOOSE = (FREE, WRITTEN)
"""The flags of memory that nobody else reads."""
PLAIN = frozenset((np.ndarray, np.float64, np.float32, float, int, bool))
"""The types of values that are written as they are."""
NUMBERS = frozenset((float, int))
"""The types of numbers that are added as they are."""


def assigned(handle: Any, key: Any, value: Any) -> bool:
    """Do ``handle[key] = value``, where that can be done at once; else False, and nothing has been done. ``handle`` has
    been resolved, the key is a basic one."""
    tape, kind = handle._tape, type(value)
    if tape.mode:
        return False
    source = value if kind in PLAIN else _own(handle, kind, value)
    root = None if source is None else _free_root(handle)
    if root is None:
        return False
    root._flag = WRITTEN
    handle._value[key] = source
    _record(handle, root, key, value if kind not in PLAIN and value._id is not None else None, source, 0)
    return True


def added(handle: Any, value: Any, sign: int) -> bool:
    """Do ``handle += value``, or ``-=``, where that can be done at once and NumPy neither casts nor broadcasts; else
    False, and nothing has been done. ``handle`` has been resolved."""
    tape, kind = handle._tape, type(value)
    if tape.mode:
        return False
    target = handle._value
    source = value if kind in PLAIN else _own(handle, kind, value)
    if type(source) is np.ndarray:
        if type(target) is not np.ndarray or source.dtype is not target.dtype or source.shape != target.shape:
            return False
    elif type(target) is not np.ndarray or type(source) not in NUMBERS or target.dtype.kind not in "fc":
        return False
    root = _free_root(handle)
    if root is None:
        return False
    root._flag = WRITTEN
    if sign > 0:
        target += source
    else:
        target -= source
    _record(handle, root, Ellipsis, value if kind not in PLAIN and value._id is not None else None, source, sign)
    return True


def _own(handle: Any, kind: Any, value: Any) -> Any:
    """The plain value of a tracer of the same trace; None for anything else, and for a view of the handle itself, which
    may be the very region that is written."""
    tape, kinds = handle._tape, handle._tape.kinds
    if kind is kinds.view and value._tape is tape and value._parent is not handle:
        resolve(value)
    elif (kind is not kinds.tracer and kind is not kinds.buffer) or value._tape is not tape:
        return None
    return value._value if type(value._value) in PLAIN else None


def _free_root(handle: Any) -> Any:
    """Who owns the memory that a handle shows, where it can be written to at once; else None."""
    tape, target = handle._tape, handle._value
    root = handle if type(handle) is not tape.kinds.view else root_of(handle)
    if root._flag not in LOOSE or tape.thread != get_ident():
        return None
    if type(target) is not np.ndarray or not target.ndim or not target.flags.writeable:
        return None
    if root is not handle:
        whole, base = root._value, target.base
        if type(whole) is not np.ndarray or (base is not whole and (base is None or base is not whole.base)):
            return None  # what it shows lies elsewhere
    return root


def _record(handle: Any, root: Any, key: Any, active: Any, source: Any, sign: int) -> None:
    if root is handle:
        if root._id is not None or active is not None:
            record_write(root, Region((), key, False, False, sign < 0), active, source, add=sign != 0)
        return
    if root._id is not None or active is not None:
        record_write(root, Region(steps_to(handle), key, False, False, sign < 0), active, source, add=sign != 0)
    handle._written_in = stamp(root)
