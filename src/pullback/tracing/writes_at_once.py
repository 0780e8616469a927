"""Writes of the common kind, done at once: in a trace that saves all, at a basic key or through a view, into memory
that nobody else reads.

They write the records that ``writes`` writes, which takes whatever is not of this kind.
"""

from threading import get_ident
from typing import Any

import numpy as np

from pullback.recording.handles import FREE, WRITTEN, root_of, steps_to
from pullback.recording.regions import Region
from pullback.recording.writes import record_write, stamp

LOOSE = (FREE, WRITTEN)
"""The flags of memory that nobody else reads."""
PLAIN = frozenset((np.ndarray, np.float64, np.float32, float, int, bool))
"""The types of values that are written as they are."""
_NEITHER: tuple[Any, Any] = None, None


def assigned(handle: Any, key: Any, value: Any) -> bool:
    """Do ``handle[key] = value``, where that can be done at once; else False, and nothing has been done. ``handle`` has
    been resolved, the key is a basic one."""
    root = root_of(handle)
    active, source = _operand(handle, root, value)
    if source is None:
        return False
    root._flag = WRITTEN
    handle._value[key] = source
    _record(handle, root, key, active, source, 0)
    return True


def added(handle: Any, value: Any, sign: int) -> bool:
    """Do ``handle += value``, or ``-=``, where that can be done at once and NumPy neither casts nor broadcasts; else
    False, and nothing has been done. ``handle`` has been resolved."""
    root = root_of(handle)
    active, source = _operand(handle, root, value)
    if source is None:
        return False
    target = handle._value
    if type(source) is np.ndarray:
        if source.dtype is not target.dtype or source.shape != target.shape:
            return False
    elif (type(source) is not float and type(source) is not int) or target.dtype.kind not in "fc":
        return False
    root._flag = WRITTEN
    if sign > 0:
        target += source
    else:
        target -= source
    _record(handle, root, Ellipsis, active, source, sign)
    return True


def _operand(handle: Any, root: Any, value: Any) -> tuple[Any, Any]:
    """What is written: its handle where it depends on the inputs, and its plain value; None for both where the general
    way is to be taken."""
    tape, kind = handle._tape, type(value)
    if tape.mode or tape.thread != get_ident() or root._flag not in LOOSE or type(root._value) is not np.ndarray:
        return _NEITHER
    target = handle._value
    if type(target) is not np.ndarray or not target.ndim or not target.flags.writeable:
        return _NEITHER
    if (
        root is not handle
        and target.base is not root._value
        and (target.base is None or target.base is not root._value.base)
    ):
        return _NEITHER  # what it shows lies elsewhere
    if kind in PLAIN:
        return None, value
    if kind is not tape.kinds.tracer or value._tape is not tape or type(value._value) not in PLAIN:
        return _NEITHER
    return (None if value._id is None else value), value._value


def _record(handle: Any, root: Any, key: Any, active: Any, source: Any, sign: int) -> None:
    if root._id is not None or active is not None:
        steps = () if root is handle else steps_to(handle)
        record_write(root, Region(steps, key, False, False, sign < 0), active, source, add=sign != 0)
    if root is not handle:
        handle._written_in = stamp(root)
