"""The fast way to parts of arrays in a trace that saves all: ``x[key]``, and ``x[key] = v`` and ``x += v`` at a basic
key or through a view, into memory that nobody else reads.

The records are those that ``recording.recorder`` and ``recording.writes`` write; everything else goes there, and so
does what NumPy refuses. What costs a call is written out here: a small part costs little besides.
"""

from collections.abc import Callable
from sys import _getframe
from threading import get_ident
from typing import Any

import numpy as np

from pullback.primitives.selecting.indexing import READ, gathered, getitem, read
from pullback.recording.handles import FREE, WRITTEN, Handle, activate, resolve, root_of, spec_of_handle, steps_to
from pullback.recording.index_keys import is_basic
from pullback.recording.regions import Region, is_mask
from pullback.recording.writes import OPCODES
from pullback.tracing.dispatch import called
from pullback.tracing.flat import own_key
from pullback.tracing.in_place import in_place
from pullback.words.call_sites import find_site

PLAIN = frozenset((np.ndarray, np.float64, np.float32, float, int, bool))
"""The types of values that are written as they are."""
MET, VARIES = (), False
"""What ``Tape.reads`` has for a call site that has come once, and for one whose keys differ or are no slices."""
_READ, _BOTH = READ.opcode, OPCODES[True, True, True]
_REFUSALS = (TypeError, ValueError)
"""What NumPy raises before it writes anything: a cast, or shapes that do not fit."""


def item(handle: Any, key: Any) -> Any:
    """The method of ``handle[key]``."""
    tape, kind = handle._tape, type(key)
    if (kind is slice or kind is tuple) and not tape.mode and tape.thread == get_ident():
        frame = _getframe(1)
        site = tape.sites[frame.f_lasti] if frame.f_code is tape.code else find_site(tape, frame)
        known = tape.reads.get(site)
        if known:
            try:
                same = known[0] == key
            except Exception:  # noqa: BLE001 - whatever an array or an object of the user's says to a slice
                same = False
            if not same:
                known = tape.reads[site] = VARIES
        elif known is not VARIES:
            known = _met(tape, site, known, key)
        if known:
            value = handle._value if type(handle) is tape.kinds.tracer else resolve(handle)._value
            if handle._id is not None and type(value) is np.ndarray:
                out = value[key]
                if out.size:  # else it shares no memory with anything, so it is no view
                    part = tape.kinds.view()
                    part._parent, part._parent_id, part._parent_value = handle, handle._id, value
                    part._primitive, part._params, part._written_in, part._known = getitem, {"key": key}, None, known
                    records = tape.records
                    part._value, part._id, part._tape, part._flag, part._spec = out, len(records), tape, FREE, None
                    records.append((_READ, handle._id, handle._spec or spec_of_handle(handle), known, site))
                    return part
    if kind is np.ndarray and key.dtype.kind in "iu":
        return gathered(handle, key)
    if kind is int or is_basic(key):
        return read(handle, key)
    key = own_key(key, handle)
    found = called(getitem, (handle,), {"key": key})
    if isinstance(found, Handle) and is_mask(key):
        found._tape.masks = True
    return found


def _met(tape: Any, site: int, known: Any, key: Any) -> Any:
    """What is known of a call site from now on, of which no key was: the second one, if it is made of slices of
    integers. Whatever is equal to that means the same."""
    slices = known is MET and is_basic(key) and (type(key) is slice or {*map(type, key)} == {slice})
    met = tape.reads[site] = MET if known is None else (key,) if slices else VARIES
    return met


def assigned(handle: Any, key: Any, value: Any) -> bool:
    """Do ``handle[key] = value``, where that can be done immediately; else False, and nothing has been done. The key is
    a basic one."""
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
    _record(handle, root, key, None if kind in PLAIN else value, _getframe(2))
    return True


def increments(name: str, *, subtracts: bool) -> Callable[[Any, Any], Any]:
    """The method of ``+=`` or ``-=``: immediately where that can be done."""

    def method(handle: Any, value: Any) -> Any:
        tape, kind, root, known = handle._tape, type(value), handle, None
        if tape.mode or tape.thread != get_ident():
            return in_place(name, resolve(handle), value)
        kinds = tape.kinds
        if type(handle) is kinds.view:
            root = handle._parent
            if type(root) is kinds.view or root._id != handle._parent_id or root._value is not handle._parent_value:
                root = root_of(resolve(handle))
            else:
                known = handle._known
        if kind is kinds.tracer and value._tape is tape:
            source = value._value if type(value._value) in PLAIN else None
        else:
            source = value if kind in PLAIN else _own(handle, kind, value)
        before, target = root._flag, handle._value
        # What a key of slices has read is an array, and looks at the root.
        if source is None or ((known is None or before != WRITTEN) and not _is_free(target, root)):
            return in_place(name, resolve(handle), value)
        root._flag = WRITTEN
        try:
            if subtracts:
                target -= source
            else:
                target += source
        except _REFUSALS:
            root._flag = before
            return in_place(name, resolve(handle), value)
        frame = _getframe(1)
        if known is None or root._id is None or kind is not kinds.tracer or value._id is None:
            _record(handle, root, Ellipsis, None if kind in PLAIN else value, frame, True, subtracts)
            return handle
        site = tape.sites[frame.f_lasti] if frame.f_code is tape.code else find_site(tape, frame)
        region = tape.regions.get(site)
        if region is None or region.known is not known or region.subtracts is not subtracts:
            region = Region(((getitem, {"key": known[0]}),), Ellipsis, False, False, subtracts, known)
            tape.regions[site] = region
        records, spec, contents = tape.records, root._spec or spec_of_handle(root), root._value
        of_value, ident = value._spec or spec_of_handle(value), len(records)
        records.append((_BOTH, root._id, value._id, region, spec, contents.strides, of_value, ident, site))
        root._id, handle._written_in = ident, (ident, id(contents))
        return handle

    return method


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
    """Whether an array can be written to immediately, which is that of ``root`` or a view of it."""
    if type(target) is not np.ndarray or not target.ndim:
        return False
    if root._flag != WRITTEN and (root._flag != FREE or not target.flags.writeable):
        return False
    whole = root._value
    if target is whole or target.base is whole:
        return True
    return type(whole) is np.ndarray and target.base is not None and target.base is whole.base  # else it lies elsewhere


def _record(
    handle: Any, root: Any, key: Any, value: Any, frame: Any, adds: bool = False, subtracts: bool = False
) -> None:
    """What ``recording.writes.record_write`` appends, for a write that a method of the user's expression does."""
    before, contents = root._id, root._value
    active = value is not None and value._id is not None
    if before is not None or active:
        tape = root._tape
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
