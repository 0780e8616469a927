"""Writes: ``x[key] = v``, ``x += v``, ``out=``. A write makes a new value and re-points the handle that owns the
memory.

Physically it goes into the old buffer unless a record, a snapshot or the user may still read that; then a copy is
written once and later writes stay in place. Adjoint of a set: the region of the cotangent goes to the value and is
zeroed in place; of an increment: the region is read, the rest passes untouched.
"""

from sys import _getframe, getrefcount
from typing import Any, NoReturn

import numpy as np

from pullback.recording.copies import is_lent, require_not_lent
from pullback.recording.crossing import leave_followed, left_alone, present, raised, standing_for
from pullback.recording.handles import (
    BORROWED,
    FREE,
    FROZEN,
    WRITTEN,
    Handle,
    activate,
    freeze,
    is_array,
    is_foreign,
    layout_of,
    over,
    resolve,
    root_of,
    spec_of_handle,
    steps_to,
    tape_of,
    twin_of,
)
from pullback.recording.recorder import form_of, value_on
from pullback.recording.regions import Region, is_fancy, region_at, require_writable
from pullback.recording.tape import CAPTURED, DEFERRED, FORWARD, PAUSED, REPLAYABLE
from pullback.rules.cotangent_sums import send
from pullback.rules.forms import Form, special_form
from pullback.rules.unbroadcast import settle
from pullback.words.call_sites import find_site, site_here, site_text
from pullback.words.errors import WriteError
from pullback.words.foreign_operands import plain_operand
from pullback.words.specs import new_array
from pullback.words.undocumented import PULLED


def set_item(handle: Any, key: Any, value: Any) -> None:
    """``handle[key] = value`` as NumPy does it, recorded."""
    handle, value = _meeting(handle, value, "an assignment")
    if is_own_region(handle, key, value):
        return
    if handle._tape.mode != DEFERRED and not isinstance(handle._value, np.ndarray | Handle):
        raise TypeError(f"{type(handle._value).__name__!r} object does not support item assignment")
    key = concrete_key(key)
    write_region(handle, region_at(steps_to(handle), handle, key), value, add=False)


def increment(handle: Any, value: Any, *, sign: int = 1, key: Any = Ellipsis, repeats: bool = False) -> None:
    """``handle[key] += value`` (or ``-=``) in place, recorded as one increment; with ``repeats`` as ``np.add.at``
    does."""
    handle, value = _meeting(handle, value, "an increment")
    region = region_at(steps_to(handle), handle, key, subtracts=sign < 0)
    if region.repeats and not repeats:
        region = Region(region.steps, region.key, region.fancy, subtracts=region.subtracts)
    write_region(handle, region, value, add=True)


def _meeting(handle: Any, value: Any, doing: str) -> tuple[Any, Any]:
    """The target of a write and the value that is written, both as the trace of the target sees them: it records the
    write."""
    if handle._tape.mode == CAPTURED:
        leave_followed(handle)
    if is_foreign(value, handle._tape):
        value = standing_for(value)
    if type(value) not in handle._tape.kinds.ordinary:
        value = plain_operand(handle._tape.kinds.joined(value), elementwise=True)
    tape, target = tape_of((handle, value), doing, follows=True), handle
    if handle._tape is not tape:
        if left_alone(handle):
            _refuse_body()
        target = present(handle, tape)
        if target._tape is not tape:
            _refuse_outer()
    value = present(value, tape) if is_foreign(value, tape) else value
    return resolve(target), value


def is_own_region(handle: Any, key: Any, value: Any) -> bool:
    """Whether the value is that region of ``handle`` as it stands, as where ``x[k] += w`` ends in ``x[k] = view``:
    nothing is left to do."""
    if type(value) is not handle._tape.kinds.view or value._parent is not handle or value._params.get("key") is not key:
        return False
    if value._written_in is not None and value._written_in == stamp(root_of(handle)):
        return True
    return value._parent_id == handle._id and (handle._tape.mode == DEFERRED or value._parent_value is handle._value)


def stamp(root: Any) -> tuple[Any, int]:
    return root._id, 0 if root._tape.mode == DEFERRED else id(root._value)


def concrete_key(key: Any) -> Any:
    """An index with every traced integer or boolean array replaced by its value."""
    from_tuple = key if isinstance(key, tuple) else (key,)
    if any(isinstance(k, Handle) for k in from_tuple):
        raise WriteError(
            "an index depends on the inputs of the trace as a floating value; take pullback.value(index) and "
            "convert it to int"
        )
    return key


def write_region(handle: Any, region: Region, value: Any, *, add: bool) -> None:
    root = root_of(handle)
    tape = root._tape
    if tape.mode == DEFERRED:
        tape.shadow.write(handle, region, value, add=add)
        if type(handle) is tape.kinds.view:
            handle._written_in = stamp(root)
        return
    source = value_on(value, tape) if isinstance(value, Handle) else value
    if tape.mode == PAUSED:
        _refuse_body()
    if type(handle._value) is np.ndarray and not handle._value.flags.writeable:
        require_writable(handle._value, "the target of a write", site_text(site_here()))
    active = isinstance(value, Handle) and value._tape is tape and value._id is not None
    if tape.mode == REPLAYABLE:
        if root._id is None and tape.governor.executes and (active or tape.adopted is None):
            activate(root, create_record(root))
        tape.governor.before_write(root)
    copied = root._flag not in (FREE, WRITTEN)
    if copied:
        _refuse_captured(root)
        root._value = twin_of(root._value)
    if not _fits(region, source, root._value) or (tape.mode == REPLAYABLE and _is_seen(value, source, root._value)):
        source = np.array(source)
    if isinstance(source, Handle):
        root._value = raised(root._value, source._tape)
    root._flag = WRITTEN
    before = tape.trap.seen(root._value) if tape.mode and tape.trap is not None else None
    (region.add if add else region.write)(root._value, source)
    if before is not None:
        tape.trap.wrote("increment" if add else "assignment", before, root._value, source)
    if tape.mode == FORWARD and (root._id is not None or active):
        tape.tangents.write(root, region, value if active else None, add=add, copied=copied)
    elif root._id is not None or active:
        record_write(root, region, value if active else None, source, add=add)
    if type(handle) is tape.kinds.view:
        handle._written_in = stamp(root)


def _is_seen(value: Any, source: Any, target: Any) -> bool:
    """Whether what is written, and kept as a plain operand, looks at the memory that is about to change."""
    plain = not isinstance(value, Handle) or value._id is None
    return plain and isinstance(source, np.ndarray) and bool(np.may_share_memory(source, target))


def takes_over(handle: Any, result: Any) -> bool:
    """Where an in-place operation has given an array of the very layout of the handle's own: the handle becomes it, and
    nothing is copied.

    False for a view, whose array must change with it, and wherever shape, dtype or strides would. In a forward trace
    too: a write lays the tangent out as the value, and that of the result may lie otherwise, which a sum over it would
    round otherwise.
    """
    tape, kinds = handle._tape, handle._tape.kinds
    if tape.mode in (FORWARD, DEFERRED) or type(result) is not kinds.tracer or result._tape is not tape:
        return False
    old, new = handle._value, result._value
    if type(handle) not in (kinds.tracer, kinds.buffer) or type(old) is not np.ndarray or type(new) is not np.ndarray:
        return False
    if old.dtype != new.dtype or old.shape != new.shape or old.strides != new.strides:
        return False
    if tape.lent and is_lent(old, tape):
        return False
    if handle._flag not in (FREE, WRITTEN):
        _refuse_captured(handle)
    handle._value, handle._flag = new, result._flag
    activate(handle, result._id)
    return True


def _fits(region: Region, source: Any, target: Any) -> bool:
    """False when the value overlaps the buffer it is written to with an advanced key, where NumPy makes no promise."""
    both = isinstance(source, np.ndarray) and isinstance(target, np.ndarray)
    return not (region.fancy and both and np.may_share_memory(source, target))


def _refuse_captured(root: Any) -> None:
    if root._tape.lent:  # who sees the memory would not see a copy of it
        require_not_lent(root._value, root._tape)
    if root._flag == BORROWED and root._tape.adopted is not None:
        root._tape.adopted.require_alone(root)
    both = root._tape.overlapping.get(root._id)
    if both:
        raise WriteError(
            f"an argument that overlaps another one in memory is written (at {site_text(site_here())}): {both} share "
            "it, and NumPy would change both; pass copies, or write to a copy"
        )
    if root._flag == FROZEN and root._tape.captures is None:  # no step of a loop
        raise WriteError(
            f"a staged function writes to its argument (at {site_text(site_here())}), besides an operation that is not "
            "followed, as a loop, a checkpoint or a gradient; write to a copy, or leave the decorator out"
        )
    captured = any(root._id == ident for ident, _ in (root._tape.captures or {}).values())
    if captured or root._flag == FROZEN or both is not None:
        _refuse_body("a value it captures" if both is None else "its slice of xs")


def _refuse_body(what: str = "a value it captures") -> NoReturn:
    at = site_text(site_here())
    raise WriteError(f"a body writes to {what} (at {at}); make it part of the loop's state, or write to a copy")


def _refuse_outer() -> NoReturn:
    raise WriteError(
        f"a value of an inner trace is written into an array of an outer one (at {site_text(site_here())}); "
        "return the value from the inner function and assign it outside"
    )


def record_write(root: Any, region: Region, value: Any, source: Any, *, add: bool) -> None:
    """Append the record of a write and re-point the root to it."""
    tape, before, contents = root._tape, root._id, root._value
    site = find_site(tape, _getframe(3))  # whoever writes comes by way of two functions
    ident = len(tape.records)
    if region.fancy and not add:
        tape.masks = True
    opcode = OPCODES[add, before is not None, value is not None]
    spec = root._spec or spec_of_handle(root)
    strides = contents.strides if type(contents) is np.ndarray else _strides(contents)
    if value is None:
        record: Any = (opcode, before, region, spec, strides, None, ident, site)
    elif before is None:
        record = (opcode, value._id, region, spec, strides, value._spec or spec_of_handle(value), ident, site)
    else:
        record = (opcode, before, value._id, region, spec, strides, value._spec or spec_of_handle(value), ident, site)
    if tape.mode == REPLAYABLE:
        amount = value if value is not None else source
        tape.governor.before_record(record, (root, amount), (contents, source), {"region": region})
    tape.records.append(record)
    activate(root, ident)


def create_record(root: Any) -> int:
    """The id for a buffer that is about to be written under a policy, of a record: a replay makes it anew, or from a
    held copy."""
    tape = root._tape
    value = root._value
    while isinstance(value, Handle) and value._id is None:
        # No outer trace differentiates it either: to that trace, too, it is a plain array.
        value = resolve(value)._value
    record = (CREATE.opcode, site_here())
    contents = () if _is_blank(value) else (freeze(value) if isinstance(value, Handle) else value,)
    params = {"shape": value.shape, "dtype": value.dtype, "strides": value.strides}
    tape.governor.before_record(record, contents, contents, params)
    tape.records.append(record)
    return len(tape.records) - 1


def _is_blank(value: Any) -> bool:
    """Whether every byte is 0, as ``zeros_like`` leaves it: a replay then needs no copy of the contents."""
    if hasattr(value, "__pullback_hollow__"):
        return bool(value.is_blank)
    return isinstance(value, np.ndarray) and bool(value.flags.forc) and not value.ravel(order="K").view(np.uint8).any()


def created(contents: Any, shape: Any, dtype: Any, strides: Any) -> Any:
    """The array that a replay makes for a buffer: zeros, or a copy of the held contents."""
    if contents:
        return twin_of(contents[0].value)
    array = empty_with_strides(shape, dtype, strides)
    array[...] = 0
    return array


def _strides(value: Any) -> Any:
    """The strides of an array, under whatever outer traces."""
    if isinstance(value, np.ndarray):
        return value.strides
    return layout_of(value).strides if isinstance(value, Handle) and is_array(value) else None


def owned_buffer(ct: Any, ident: int, strides: Any, sweep: Any) -> Any:
    """A cotangent that may be written in place, with its primal's strides so that view functions stay views of it."""
    if isinstance(ct, Handle):
        plain = layout_of(ct)
        fits = is_array(ct) and plain.flags.writeable and (strides is None or plain.strides == strides)
        return freeze(ct) if fits else copied(ct, strides)
    alone = type(ct) is np.ndarray and getrefcount(ct) <= PULLED and ct.base is None and ct.flags.writeable
    if (alone or (ident in sweep.owned and type(ct) is np.ndarray)) and (strides is None or ct.strides == strides):
        return ct
    buffer = empty_with_strides(ct.shape, ct.dtype, strides)
    buffer[...] = ct
    return buffer


def copied(ct: Any, strides: Any = None) -> Any:
    """A copy of a cotangent that can be written to: a sum without axes is a scalar of NumPy's, which cannot."""
    if not isinstance(ct, Handle):
        return ct.copy(order="K") if hasattr(ct, "__pullback_hollow__") else np.array(ct)
    whole: Any = over(blank(layout_of(ct), strides), ct._tape)
    whole[...] = ct
    return whole


def blank(value: Any, strides: Any = None) -> Any:
    """Zeros with the shape and dtype of an array, and with its strides if no others are given."""
    zeros = empty_with_strides(value.shape, value.dtype, strides or getattr(value, "strides", None))
    zeros[...] = 0
    return zeros


def empty_with_strides(shape: tuple[int, ...], dtype: Any, strides: Any) -> Any:
    """An uninitialised dense array whose axes lie in memory in the order and in the direction of ``strides``: what is a
    view of an array with these strides is a view of it, too."""
    if strides is None or (len(shape) < 2 and min(strides, default=0) >= 0):
        return new_array(shape, dtype)
    order = sorted(range(len(shape)), key=lambda k: -abs(strides[k]))
    memory = new_array(tuple(shape[k] for k in order), dtype).transpose(np.argsort(order))
    return (
        memory[tuple(slice(None, None, -1 if stride < 0 else 1) for stride in strides)] if min(strides) < 0 else memory
    )


def _pull_set(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    """The region of the cotangent goes to the value; zeroed, the rest goes to the array before the write."""
    form = form_of(record)
    region, spec, strides, value_spec, ident, site = record[1 + form.n_ids :]
    buffer = owned_buffer(ct, ident, strides, sweep)
    if form.name in ("set_both", "set_value"):
        g = region.sent(buffer, region.read(buffer))
        if region.repeats:
            from_last = sweep.winners(region, spec.shape, g.shape)
            g = g * from_last
        _send(g, record[form.n_ids], value_spec, form, site, cts, sweep)
    if form.name != "set_value":
        region.write(buffer, 0)
        _pass_on(buffer, record[1], cts, sweep)


def _pull_increment(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    """The region of the cotangent goes to the increment; all of it goes to the array before."""
    form = form_of(record)
    region, _, strides, value_spec, ident, site = record[1 + form.n_ids :]
    if region.steps or isinstance(ct, Handle):
        buffer, ours = owned_buffer(ct, ident, strides, sweep), True
    else:
        buffer, ours = ct, ident in sweep.owned  # a key alone finds the same elements whatever the strides
    if form.name in ("increment_both", "increment_value"):
        g = region.sent(buffer, region.part(buffer))
        ours = ours and getattr(g, "base", None) is not buffer and g is not buffer
        _send(g, record[form.n_ids], value_spec, form, site, cts, sweep)
        del g  # so that only cts may still hold a view of the buffer
    if form.name != "increment_value":
        _pass_on(buffer, record[1], cts, sweep, ours=ours)


def _send(g: Any, ident: int, spec: Any, form: Form, site: int, cts: list[Any], sweep: Any) -> None:
    if len(spec.shape) > len(g.shape):  # an assignment drops leading axes of length 1 of the value
        g = g.reshape((1,) * (len(spec.shape) - len(g.shape)) + g.shape)
    g = settle(g, spec, form, 0, site, g)
    send(cts, ident, g, sweep)


def _pass_on(buffer: Any, ident: int, cts: list[Any], sweep: Any, *, ours: bool = True) -> None:
    """``ours`` says that nothing else looks at the buffer; otherwise whoever wants to write to it asks again."""
    if ours and cts[ident] is None:
        sweep.owned.add(ident)
    send(cts, ident, buffer, sweep)


def _run_set(root: Any, value: Any, region: Region) -> Any:
    region.write(root, value)
    return root


def _run_increment(root: Any, value: Any, region: Region) -> Any:
    region.add(root, value)
    return root


_FORMS = {
    (add, root, value): special_form(
        f"{'increment' if add else 'set'}_{'both' if root and value else 'value' if value else 'root'}",
        _pull_increment if add else _pull_set,
        _run_increment if add else _run_set,
        root + value,
        own=-2,
    )
    for add in (False, True)
    for root in (False, True)
    for value in (False, True)
}
CREATE = special_form("create", lambda record, ct, cts, sweep: None, n_ids=0)
OPCODES = {key: form.opcode for key, form in _FORMS.items()}  # keys as those of _FORMS
WRITE_OPCODES = frozenset(OPCODES.values())
__all__ = ["WRITE_OPCODES", "empty_with_strides", "increment", "is_fancy", "set_item"]
