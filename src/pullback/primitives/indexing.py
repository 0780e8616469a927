"""Reading by index. Basic keys give views, advanced keys copies; the pullback adds into one buffer per array, in place."""

from sys import _getframe
from threading import get_ident
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from pullback.declare import Primitive, composite, primitive
from pullback.forms import Form, new_form
from pullback.handles import FREE, Handle, make, resolve, spec_of_handle
from pullback.primitives.axes import cut
from pullback.recorder import call
from pullback.regions import has_repeats, is_basic, is_fancy
from pullback.settle import alone
from pullback.tape import find_site
from pullback.writes import empty_with_strides


def _getitem(x: Any, *, key: Any) -> Any:
    return x[key]


getitem = primitive(_getitem, name="getitem", view=True)


def _pull_getitem(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    """Add the cotangent into the array's own, a buffer of ours from the first read on: n reads of a row cost n rows, not n arrays."""
    _, ident, spec, params, _ = record
    buffer = cts[ident]
    if buffer is None:
        buffer = empty_with_strides(spec.shape, spec.dtype, None)
        buffer[...] = 0
        buffer = make(ct._tape.kinds.buffer, buffer, None, ct._tape) if isinstance(ct, Handle) else buffer
        cts[ident] = buffer
        sweep.owned.add(ident)
    elif ident not in sweep.owned:
        if not alone(buffer):
            traced: Any = buffer
            buffer = cts[ident] = traced.copy() if isinstance(buffer, Handle) else np.array(buffer)
        sweep.owned.add(ident)
    (key,) = params
    if not is_basic(key) and is_fancy(key) and has_repeats(key, spec.shape):
        np.add.at(buffer, key, ct)
    else:
        buffer[key] += ct


def _build(opcode: int) -> tuple[Form, Any]:
    return Form(opcode, getitem, (0,), 1, (), (), ("@0",), has_params=True), _pull_getitem


GETITEM: Primitive = getitem
READ = getitem.forms[(0,), 1, frozenset(), False] = new_form(_build)


def read(handle: Any, key: Any) -> Any:
    """``handle[key]`` for a basic key, called by the method of the user's expression: what ``call(getitem, ...)`` records, sooner."""
    tape, params = handle._tape, {"key": key}
    if tape.mode or tape.thread != get_ident() or resolve(handle)._id is None or type(handle._value) is not np.ndarray:
        return call(getitem, (handle,), params)
    out, kinds = handle._value[key], tape.kinds
    if type(out) is np.ndarray:
        if not out.size:
            return call(getitem, (handle,), params)  # shares no memory with anything, so it is no view
        made = kinds.view()
        made._parent, made._parent_id, made._parent_value = handle, handle._id, handle._value
        made._primitive, made._params, made._written_in = getitem, params, None
    else:
        made = kinds.tracer()
    frame = _getframe(2)
    site = tape.sites[frame.f_lasti] if frame.f_code is tape.code else find_site(tape, frame)
    made._value, made._id, made._tape, made._flag, made._spec = out, len(tape.records), tape, FREE, None
    tape.records.append((READ.opcode, handle._id, handle._spec or spec_of_handle(handle), (key,), site))
    return made


@composite(np.take)
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Any:
    """numpy.take: ``a[..., indices]`` along an axis, along the flat array for None."""
    line = np.ravel(a) if axis is None else a
    place = 0 if axis is None else normalize_axis_index(axis, np.ndim(a))
    wanted, extent = np.asarray(indices), line.shape[place]
    if mode == "wrap":
        wanted = wanted % extent
    elif mode == "clip":
        wanted = np.clip(wanted, 0, extent - 1)
    return line[cut(line.ndim, place, wanted)]


INDEXING = (getitem, take)
