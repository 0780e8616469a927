"""The fast way to write: ``x[key] = v`` and ``x += v`` in a trace that saves all, at a basic key or through a view,
into memory that nobody else reads.

The records are those that ``recording.writes`` writes; every other write goes there, and so does one that NumPy
refuses. What costs a call is written out here: a small write costs little besides.
"""

from sys import _getframe
from threading import get_ident
from typing import Any

import numpy as np

from pullback.primitives.selecting.indexing import getitem
from pullback.recording.handles import FREE, WRITTEN, activate, resolve, root_of, spec_of_handle, steps_to
from pullback.recording.regions import Region
from pullback.recording.writes import OPCODES
from pullback.words.call_sites import find_site

PLAIN = frozenset((np.ndarray, np.float64, np.float32, float, int, bool))
"""The types of values that are written as they are."""
_REFUSALS = (TypeError, ValueError)
"""What NumPy raises before it writes anything: a cast, or shapes that do not fit."""


def assigned(handle: Any, key: Any, value: Any) -> bool:
    """Do ``handle[key] = value``, where that can be done at once; else False, and nothing has been done. The key is a
    basic one."""
    tape, kind = handle._tape, type(value)
    if tape.mode or tape.thread != get_ident():
        return False
    root = handle if type(handle) is tape.kinds.tracer else root_of(resolve(handle))
    source = value if kind in PLAIN else _own(handle, kind, value)
    before, target = root._flag, handle._value
    if source is None or not _is_free(target, root):
        return False
    root._flag = WRITTEN
    try:
        target[key] = source
    except _REFUSALS:
        root._flag = before
        return False
    _record(handle, root, key, None if kind in PLAIN else value)
    return True


def added(handle: Any, value: Any, subtracts: bool) -> bool:
    """Do ``handle += value``, or ``-=``, where that can be done at once; else False, and nothing has been done."""
    tape, kind, root = handle._tape, type(value), handle
    if tape.mode or tape.thread != get_ident():
        return False
    kinds = tape.kinds
    if type(handle) is kinds.view:
        root = handle._parent
        if type(root) is kinds.view or root._id != handle._parent_id or root._value is not handle._parent_value:
            root = root_of(resolve(handle))
    if kind in PLAIN:
        source = value
    elif kind is not kinds.tracer or value._tape is not tape:
        source = _own(handle, kind, value)
    else:
        source = value._value if type(value._value) in PLAIN else None
    before, target = root._flag, handle._value
    if source is None or not _is_free(target, root):
        return False
    root._flag = WRITTEN
    try:
        if subtracts:
            target -= source
        else:
            target += source
    except _REFUSALS:
        root._flag = before
        return False
    _record(handle, root, Ellipsis, None if kind in PLAIN else value, True, subtracts)
    return True


def _own(handle: Any, kind: Any, value: Any) -> Any:
    """The plain value of a handle of the same trace; None for anything else, and for a view of the handle itself, which
    may be the very region that is written."""
    tape, kinds = handle._tape, handle._tape.kinds
    if kind is kinds.view and value._tape is tape and value._parent is not handle:
        resolve(value)
    elif (kind is not kinds.tracer and kind is not kinds.buffer) or value._tape is not tape:
        return None
    return value._value if type(value._value) in PLAIN else None


def _is_free(target: Any, root: Any) -> bool:
    """Whether an array can be written to at once, which is that of ``root`` or a view of it."""
    if type(target) is not np.ndarray or not target.ndim:
        return False
    if root._flag != WRITTEN and (root._flag != FREE or not target.flags.writeable):
        return False
    whole = root._value
    if target is whole or target.base is whole:
        return True
    return type(whole) is np.ndarray and target.base is not None and target.base is whole.base  # else it lies elsewhere


def _record(handle: Any, root: Any, key: Any, value: Any, adds: bool = False, subtracts: bool = False) -> None:
    """What ``recording.writes.record_write`` appends, for a write that was called by a method of the user's
    expression."""
    before, contents = root._id, root._value
    active = value is not None and value._id is not None
    if before is not None or active:
        tape, frame = root._tape, _getframe(3)
        site = tape.sites[frame.f_lasti] if frame.f_code is tape.code else find_site(tape, frame)
        if root is handle:
            steps: Any = ()
        else:
            steps = ((handle._primitive, handle._params),) if handle._parent is root else steps_to(handle)
        region = tape.regions.get(site) if root is handle or handle._primitive is getitem else None
        if region is None or region.steps != steps or region.key != key or region.subtracts is not subtracts:
            region = tape.regions[site] = Region(steps, key, False, False, subtracts)
        records, spec = tape.records, root._spec or spec_of_handle(root)
        ident = len(records)
        record: Any
        if not active:
            record = (OPCODES[adds, True, False], before, region, spec, contents.strides, None, ident, site)
        else:
            of_value = value._spec or spec_of_handle(value)
            opcode = OPCODES[adds, before is not None, True]
            if before is None:
                record = (opcode, value._id, region, spec, contents.strides, of_value, ident, site)
            else:
                record = (opcode, before, value._id, region, spec, contents.strides, of_value, ident, site)
        records.append(record)
        if before is None:
            activate(root, ident)
        else:
            root._id = ident
    if root is not handle:
        handle._written_in = root._id, id(contents)  # see ``recording.writes.stamp``
