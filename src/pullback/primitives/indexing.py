"""Reading by index. Basic keys give views, advanced keys copies; the pullback adds into one buffer per array, in place."""

from typing import Any

import numpy as np

from pullback.declare import Primitive, primitive
from pullback.forms import Form, new_form
from pullback.handles import Handle, make
from pullback.recorder import form_of
from pullback.regions import has_repeats, is_fancy
from pullback.writes import empty_with_strides


def _getitem(x: Any, *, key: Any) -> Any:
    return x[key]


getitem = primitive(_getitem, name="getitem", view=True)


def _pull_getitem(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    """Add the cotangent into the array's own, which becomes a buffer of ours at the first read: n reads of a row cost n rows, not n arrays."""
    _, ident, spec, params, _ = record
    buffer = cts[ident]
    if buffer is None:
        buffer = empty_with_strides(spec.shape, spec.dtype, None)
        buffer[...] = 0
        buffer = make(ct._tape.kinds.buffer, buffer, None, ct._tape) if isinstance(ct, Handle) else buffer
        cts[ident] = buffer
        sweep.owned.add(ident)
    elif ident not in sweep.owned:
        buffer = cts[ident] = buffer.copy() if isinstance(buffer, Handle) else np.array(buffer)
        sweep.owned.add(ident)
    (key,) = params
    if is_fancy(key) and has_repeats(key, spec.shape):
        np.add.at(buffer, key, ct)
    else:
        buffer[key] += ct


def _build(opcode: int) -> tuple[Form, Any]:
    return Form(opcode, getitem, (0,), 1, (), (), ("@0",), has_params=True), _pull_getitem


GETITEM: Primitive = getitem
getitem.forms[(0,), 1, frozenset(), False] = new_form(_build)
INDEXING = (getitem,)
