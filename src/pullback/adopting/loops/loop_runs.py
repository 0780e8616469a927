"""A loop that runs as one record: its values go in, its generated forward computes, and what it assigns comes out."""

from sys import getrefcount
from types import FrameType
from typing import Any, Final

import numpy as np
from attrs import frozen

from pullback.adopting.loops.expressions import DeclinedError
from pullback.adopting.loops.generated import Callees, Written
from pullback.adopting.loops.kinds import ACTIVE, PLAIN, WHOLE, LoopKind, RefusedError
from pullback.adopting.loops.loop_code import LoopCode
from pullback.adopting.loops.loop_records import LOOP, NO_RUN, LoopAgain, computed
from pullback.memory.in_force import innermost, staging_in_force
from pullback.recording.copies import is_lent
from pullback.recording.crossing import present
from pullback.recording.handles import (
    BORROWED,
    FROZEN,
    SAVED,
    WRITTEN,
    WRITTEN_SHARED,
    Handle,
    activate,
    is_foreign,
    over,
    resolve,
    root_of,
)
from pullback.recording.recorder import hold
from pullback.recording.results import component
from pullback.recording.tape import RECORDING, REPLAYABLE, Ident
from pullback.recording.writes import create_record
from pullback.rules.cotangent_sums import LARGE
from pullback.words.call_sites import find_site

COPIED: Final = 1 << 15
"""Bytes of arrays that may be copied for a loop of a single turn, and for each turn more a quarter of it."""
UNFIT: Final = "a view, an array with gaps or of which there is a plain view, or a value with another name"
FEW: Final = 16
"""Items of a loop from which on it is one record in a step that may be staged."""
WITHIN: Final = 4
"""Items taken for each turn of a loop that has another one in it."""


def _references(given: dict[str, Any], name: str) -> int:
    """How many hold the value of a name, as ``getrefcount`` counts."""
    return getrefcount(given[name])


def _measured() -> int:
    x = object()
    names = {"x": x}
    given, _handles = dict(names), dict(names)
    return _references(given, "x")


HELD: Final = _measured()
"""What is counted of a value that a local of an adopted function alone has: it is in three dicts, too."""


def joining() -> Any:
    """The trace under way, where a loop may be one record of it: a step of a loop function, too. Why not, where that is
    by its policy, or by who looks at each operation; None where there is no trace, or one of another kind."""
    tape = innermost(follows=True)
    if tape is None:
        return None
    if tape.trap is not None:
        return "a trap looks at each operation"
    if tape.tangents is not None:
        return "forward mode takes the tangent of each operation"
    if not tape.joins or tape.mode not in (RECORDING, REPLAYABLE):
        return None
    if tape.outer is not None:
        return "it is in a derivative within another one"
    if tape.mode == REPLAYABLE and not tape.governor.joins:
        return "the policy decides of values within steps"
    return None if staging_in_force() == "off" else tape


def run_loop(code: LoopCode, tape: Any, given: dict[str, Any], frame: FrameType) -> dict[str, Any] | None:
    """Run a loop of adopted code as one record of a trace; ``given`` are the values of its names where it stands in
    ``frame``.

    Returns
    -------
    The values of the names that it assigns; None where it has to run the ordinary way, and nothing has been done.
    """
    module, staging = frame.f_globals, staging_in_force()
    values = {name: present(x, tape) if is_foreign(x, tape) else x for name, x in given.items()}
    handles = {name: resolve(x) for name, x in values.items() if isinstance(x, Handle)}
    values |= {name: handle._value for name, handle in handles.items()}
    written = _written(code, values, handles, tape, module)
    if type(written) is str or not _may_write(written, given, handles, values):
        code.why = written if type(written) is str else UNFIT
        return None
    try:
        if _is_short(tape, written, values):
            code.why = "it is short: the step around it can be staged"
            return None
        if not _pays(written, handles, values):
            code.why = "its arrays are large: they would be copied, or cotangents of them made anew"
            return None
        packs = tape.mode != RECORDING or tape.captures is not None or tape.repeatable
        own, made, pushed, compiled = computed(written, values, staging, packs=packs)
    except DeclinedError as why:
        code.why = str(why)
        return None
    except Exception as error:  # noqa: BLE001 - the ordinary way raises it, at the user's line
        code.why = f"it raises {type(error).__name__}"
        return None
    code.why = ""
    return _Recorded(tape, written, staging, handles, values, find_site(tape, frame))(own, made, pushed, compiled)


def _written(code: LoopCode, values: Any, handles: Any, tape: Any, module: Any) -> Any:
    """The functions of a loop for these values; why not, where it cannot be written backwards."""
    kinds, dtypes = {}, set()
    for name, x in values.items():
        kind = _kind_of(x, handles.get(name), tape)
        if kind is not None:
            kinds[name] = kind
            if kind.level != WHOLE and hasattr(x, "dtype"):
                dtypes.add(x.dtype.char)
    if not dtypes <= {"d"}:
        return "numbers that are not float64"
    key = tuple(kinds.items())
    if key not in code.made:
        try:
            code.made[key] = Written(code, kinds, Callees(module))
        except RefusedError as why:
            code.made[key] = str(why)
    found = code.made[key]
    if type(found) is Written and not found.callees.unchanged(module):
        return "its module means another function by a name than it did"
    return found


def _kind_of(x: Any, handle: Any, tape: Any) -> LoopKind | None:
    """What is known of a value; None for what no loop can compute with."""
    if handle is not None and (handle._tape is not tape or isinstance(x, Handle)):
        return None
    kind = type(x)
    if kind is int or isinstance(x, np.integer):
        return LoopKind(WHOLE, 0)
    level = ACTIVE if handle is not None and handle._id is not None else PLAIN
    if kind is float or kind is np.float64:
        return LoopKind(level, 0)
    if kind is not np.ndarray or not x.ndim:
        return None
    if x.dtype.kind in "iu":
        return LoopKind(WHOLE, x.ndim) if handle is None else None
    return LoopKind(level, x.ndim) if x.dtype.kind == "f" else None


def _may_write(written: Written, given: Any, handles: Any, values: Any) -> bool:
    """Whether what is written and bound anew is nobody else's, so that nothing is seen of it but by its name."""
    code, roots = written.code, set()
    for name in code.stored:
        handle = handles.get(name)
        if handle is None or handle is not given[name]:  # of a trace around: the ordinary way refuses the write
            return False
        if type(handle) is handle._tape.kinds.view or handle._flag == FROZEN:
            return False
        if handle._id in handle._tape.overlapping or id(handle) in roots:
            return False
        if handle._flag == BORROWED and handle._tape.adopted is not None:
            handle._tape.adopted.require_alone(handle)
        if handle._tape.lent and is_lent(values[name], handle._tape):  # whoever looks at it would see no write
            return False
        if not (values[name].flags.c_contiguous and values[name].flags.writeable):
            return False
        roots.add(id(handle))
    if any(id(root_of(handles[name])) in roots for name in handles if name not in code.stored):
        return False
    # Two names of one value would each go on with the cotangent that the other has begun.
    idents = [handles[name]._id for name in (*written.scalars, *written.arrays) if name in handles]
    if len({ident for ident in idents if ident is not None}) < sum(ident is not None for ident in idents):
        return False
    for name in code.assigned:
        if type(values[name]) is np.ndarray:  # it may go on the stack as it is
            if name not in handles or type(handles[name]) is handles[name]._tape.kinds.view:
                return False
            hold(handles[name], values[name], handles[name]._tape)
    # Another name of the same value may get cotangents of it later than this loop.
    return all(_references(given, name) <= HELD for name in code.assigned if name in handles)


def _is_short(tape: Any, written: Written, values: Any) -> bool:
    """Whether a loop has so few items that these cost less in a step that is staged; as one record it keeps the step
    from being so. Marked steps of a program's own run are followed later, and at a higher price, than bodies."""
    if tape.captures is None and tape.mode == RECORDING:
        return False
    within = WITHIN if written.code.nested else 1
    return within * int(written.trips(*values.values())) < (FEW // 2 if tape.captures is None else FEW)


def _pays(written: Written, handles: Any, values: Any) -> bool:
    """Whether the arrays that are copied, and those that a write after the loop will copy, are small for its length.
    Loops that make large arrays do not: operation by operation the sweep writes into cotangents that die."""
    flags = (WRITTEN, WRITTEN_SHARED)
    arrays = {name: values[name] for name in written.known if type(values.get(name)) is np.ndarray}
    large = sum(
        x.nbytes
        for name, x in arrays.items()
        if name in written.code.stored or (name in handles and root_of(handles[name])._flag in flags)
    )
    makes = any(written.known[name].rank for name in written.scalars)
    if makes and max((x.nbytes for x in arrays.values()), default=0) >= LARGE:
        return False
    return bool(large <= COPIED or large <= COPIED // 4 * int(written.trips(*values.values())))


@frozen
class _Recorded:
    """Appends the record of a loop that has run, and one for each of its outputs."""

    tape: Any
    written: Written
    staging: str
    handles: dict[str, Any]
    values: dict[str, Any]
    site: int

    def __call__(self, own: Any, made: dict[str, Any], pushed: Any, compiled: Any) -> dict[str, Any]:
        """What each name stands for then. ``own`` are the arrays that the forward has written to, ``made`` is what it
        gives."""
        code, handles, values = self.written.code, self.handles, self.values
        active = [name for name in (*self.written.scalars, *self.written.arrays) if name in handles]
        entering = {name: handles[name]._id for name in active if handles[name]._id is not None}
        out = {name: made[name] for name in code.assigned if name in made}
        told = self.written.told(made)
        results = {name: own[name] if name in own and name in code.stored else out[name] for name in told}
        for name in code.stored:
            if name not in results and name not in entering:  # else nothing was written
                self._stands(name, own[name])
        if results:
            self._append(entering, results, pushed, compiled, out)
        for name in [name for name, x in out.items() if type(x) is np.ndarray]:
            if out[name] is values[name]:
                del out[name]  # it is bound to what it was
            else:
                out[name] = over(out[name], self.tape, SAVED)
        return out

    def _append(self, entering: dict[str, int], results: dict[str, Any], pushed: Any, compiled: Any, out: Any) -> None:
        tape, written, handles, values = self.tape, self.written, self.handles, self.values
        operands = tuple(name for name in written.code.names if name in written.entering)
        again = LoopAgain(written, operands, tuple(entering), tuple(results), self.staging)
        if tape.mode == REPLAYABLE:
            self._tell(again, tuple(entering.values()))
        read = [_kept(handles.get(name), values[name], tape) for name in written.read]
        ident = len(tape.records)
        held = again.held(pushed, read, values, compiled)
        tape.records.append((LOOP.opcode, tuple(entering.values()), *held, self.site))
        for k, (name, result) in enumerate(results.items()):
            part = component(tape, ident, k, result, len(results))
            if name in written.code.stored:
                self._stands(name, result)
                activate(handles[name], part._id)
            else:
                part._flag, out[name] = SAVED, part  # it may be among what was pushed

    def _tell(self, again: LoopAgain, ids: tuple[int, ...]) -> None:
        """Who governs the records hears what runs the loop again, and on what."""
        tape, handles, values, operands = self.tape, self.handles, self.values, list[Any]()
        for name in again.operands:
            operand = handles.get(name, values[name])
            if name in handles and operand._id is None and name in again.leaving and tape.governor.executes:
                operand = Ident(create_record(operand))
            operands.append(operand)
        record = (LOOP.opcode, ids, NO_RUN, self.site)
        tape.governor.before_record(record, operands, [values[name] for name in again.operands], {}, again)

    def _stands(self, name: str, array: Any) -> None:
        """The handle of an array stands for what has been written."""
        handle = self.handles[name]
        handle._value, handle._flag, handle._spec = array, WRITTEN, None


def _kept(handle: Any, value: Any, tape: Any) -> Any:
    """A value for the reverse, which no later write reaches."""
    if handle is not None:
        return hold(handle, value, tape)
    return tape.keep(value) if type(value) is np.ndarray else value
