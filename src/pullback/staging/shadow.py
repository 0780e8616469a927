"""The shadow run: the body of a step is called on handles without values, and every operation is compared with those of
a step that is known.

Where all agree nothing has been computed yet, and the generated functions compute it with the constants that were met.
Where one does not, what was logged is carried out on *twins*, handles of an ordinary trace, and the same call of the
body goes on, each operation carried out at once (the run is *eager* then). What a shadow cannot follow, it surrenders
to: every handle becomes its twin.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from attrs import define, field

from pullback.memory.in_force import Tracing
from pullback.recording.copies import faithful_copy
from pullback.recording.crossing import stand_in
from pullback.recording.handles import FREE, SHARED, Handle, freeze, lasting, resolve, root_of
from pullback.recording.recorder import call, operand_value
from pullback.recording.regions import Region
from pullback.recording.tape import CAPTURED, Tape
from pullback.recording.writes import takes_over, write_region
from pullback.staging.operations import (
    ADD,
    CAPTURE,
    CREATE,
    FROZEN,
    RESULT,
    TAKE,
    WRITE,
    Constant,
    Operation,
    Result,
    result_of,
    same,
    same_params,
)
from pullback.staging.valueless import CLASSES, ENDED, KIND_OF, VALUELESS, kind_name
from pullback.words.foreign import ORDINARY

_MISSED: Final = object()


@define(eq=False)
class ShadowRun:
    """One step under way on the tape ``tape``. ``known`` are the lists of operations that it may turn out to be."""

    tape: Tape
    known: Sequence[list[Operation]]
    ordinary: Callable[[], Tape]
    """Opens the tape of the twins."""
    following: list[Operation] | None = field(default=None, init=False)
    at: int = field(default=0, init=False)
    n_values: int = field(default=0, init=False)
    inputs: list[tuple[Any, Any]] = field(factory=list, init=False)
    """The handles of the leaves that enter, with their values."""
    made: list[Any] = field(factory=list, init=False)
    """Every handle of the run: it keeps their identities, and ends them."""
    log: list[tuple[Any, tuple[Any, ...], Any, tuple[Any, ...]]] = field(factory=list, init=False)
    constants: list[Any] = field(factory=list, init=False)
    """The plain operands in the order in which they came, as they were then."""
    captured: list[tuple[int, Any]] = field(factory=list, init=False)
    """Ids in the trace around, and values, of what was captured."""
    stands: dict[int, Any] = field(factory=dict, init=False)
    operations: list[Operation] = field(factory=list, init=False)
    """What an eager run has done."""
    ranges: list[tuple[int, int]] = field(factory=list, init=False)
    """For each of these, its records on the tape of the twins."""
    twins: dict[int, Any] = field(factory=dict, init=False)
    twin_tape: Tape | None = field(default=None, init=False)
    why: str = field(default="", init=False)
    """Why this step cannot be staged; empty where it can."""
    surrendered: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.tape.shadow = self
        self.following = self.known[0] if self.known else None

    # What enters.
    def enter(self, value: Any) -> Any:
        """The handle of a leaf that enters the step."""
        kind = "weak" if type(value) in (float, complex) else "tracer"
        handle = self._handle(kind, result_of(value, kind), SHARED)
        self.inputs.append((handle, value))
        if self.following is None:
            self._twin_input(handle, value)
        return handle

    def capture(self, operand: Any) -> Any:
        """What stands for a handle of a trace around."""
        if operand._id is None:
            return self._made_of(FROZEN, (lasting(operand, root_of(operand)),), None)
        stands = self.stands.get(operand._id)
        if stands is None:
            freeze(operand)
            value = operand._value
            stands = self.stands[operand._id] = self._made_of(CAPTURE, (operand,), None)
            self.captured.append((operand._id, value))
        return stands

    # What happens.
    def call(self, prim: Any, operands: tuple[Any, ...], params: Any) -> Any:
        """A call of a primitive: handles without values, or what it has given."""
        checked = []
        for operand in operands:
            if isinstance(operand, Handle):
                if operand._tape is not self.tape:
                    return self._elsewhere(prim, operands, params)
                if type(operand) is VALUELESS.view:
                    self.resolve(operand)
            elif type(operand) is not float and (type(operand) not in ORDINARY or type(operand) is np.ndarray):
                operand = operand_value(operand, self.tape, prim)  # noqa: PLW2901 - as it is to an ordinary trace
            checked.append(operand)
        return self._made_of(prim, tuple(checked), params)

    def create(self, function: Any, handle: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        """A new array like the value of a handle."""
        self.resolve(handle)
        return self._made_of(CREATE, (handle,), (function, args, kwargs))

    def write(self, handle: Any, region: Region, value: Any, *, add: bool) -> None:
        """Part of an array is written: its root stands for another value."""
        root = root_of(handle)
        if isinstance(value, Handle):
            if value._tape is not self.tape:
                self.why = "a value of another trace is written"
            else:
                self.resolve(value)
        params = (region.steps, region.key, region.fancy, region.repeats, region.subtracts)
        self._made_of(ADD if add else WRITE, (root, value), params)

    def take_over(self, handle: Any, result: Any) -> bool:
        """Whether an in-place operation makes the handle stand for its result."""
        if self.following is not None:
            op = self.following[self.at]
            if op.what is not TAKE or op.operands != (handle._id, result._id):
                return False
        elif not takes_over(self.twins[id(handle)], self.twins[id(result)]):
            return False
        self._made_of(TAKE, (handle, result), None)
        return True

    def resolve(self, handle: Any) -> Any:
        """The handle itself; a stale view has been derived again."""
        if type(handle) is not VALUELESS.view:
            return handle
        parent = self.resolve(handle._parent)
        if parent._id != handle._parent_id:
            fresh = self._made_of(handle._primitive, (parent,), handle._params)
            handle._id, handle._parent_id = fresh._id, parent._id
            if self.following is None:
                self.twins[id(handle)] = self.twins[id(fresh)]
            self.log.append((None, (handle, fresh), None, ()))
        return handle

    def result(self, handle: Any) -> Result:
        """What kind of value a handle has."""
        found: Result = handle._flag
        return found

    def value(self, handle: Any) -> Any:
        """The value of a handle: somebody asks for it in the middle of the step."""
        self.why = self.why or "a value is read while the step runs"
        self._go_eager()
        return resolve(self.twins[id(handle)])._value

    def finish(self, leaves: list[Any], ys: list[Any]) -> None:
        """The step returns."""
        for leaf in (*leaves, *ys):
            if isinstance(leaf, Handle) and leaf._tape is self.tape:
                self.resolve(leaf)
        if any(isinstance(leaf, Handle) and leaf._tape is not self.tape for leaf in (*leaves, *ys)):
            self.why = self.why or "a value of another trace is returned"
            self._go_eager()
            return
        self._made_of(RESULT, (*leaves, *ys), (len(leaves), len(ys)))

    def surrender(self) -> Tape:
        """Every handle becomes its twin; the tape of these."""
        self.why = self.why or "an operation is met that is not followed"
        self._go_eager()
        tape = self.twin_tape
        assert tape is not None  # made by going eager
        if self.surrendered:
            return tape
        self.surrendered = True
        for handle in self.made:
            if type(handle) in KIND_OF:
                _become(handle, self.twins[id(handle)])
        self.tape.mode, self.tape.inner = CAPTURED, tape
        if tape.enclosing is not None:
            tape.enclosing.inner = tape
        Tracing(tape).__enter__()  # until the step ends
        return tape

    def end(self) -> None:
        """No handle of the run can be used any more."""
        for handle in self.made:
            if type(handle) in KIND_OF:
                handle._tape = ENDED
        self.made, self.log, self.twins, self.stands, self.inputs = [], [], {}, {}, []
        self.tape.shadow = None  # type: ignore[assignment]  # or the two would keep each other alive
        self.tape.close()

    # How.
    def _made_of(self, what: Any, operands: tuple[Any, ...], params: Any) -> Any:
        if self.following is not None:
            op = self._matching(what, operands, params)
            if op is not None:
                return self._followed(op, operands, params)
            self._go_eager()
        return self._carried_out(what, operands, params)

    def _matching(self, what: Any, operands: tuple[Any, ...], params: Any) -> Operation | None:
        following = self.following
        assert following is not None
        op = following[self.at]
        if self._agrees(op, what, operands, params):
            return op
        for other in self.known:
            if other is following or len(other) <= self.at:
                continue
            if all(map(same, other[: self.at], following)) and self._agrees(other[self.at], what, operands, params):
                self.following = other
                return other[self.at]
        return None

    def _agrees(self, op: Operation, what: Any, operands: tuple[Any, ...], params: Any) -> bool:
        if op.what is not what or len(op.operands) != len(operands):
            return False
        for wanted, given in zip(op.operands, operands, strict=True):
            if type(wanted) is int:
                if not isinstance(given, Handle) or given._id != wanted:
                    return False
            elif what is not CAPTURE and (isinstance(given, Handle) or not wanted.admits(given)):
                return False
            elif what is CAPTURE and not wanted.admits(given._value):
                return False
        return same_params(op.params, params)

    def _followed(self, op: Operation, operands: tuple[Any, ...], params: Any) -> Any:
        if op.what is not CAPTURE:
            for given in operands:
                if not isinstance(given, Handle):
                    self.constants.append(self._kept(given))
        self.at += 1
        return self._handed_out(op, operands, params)

    def _kept(self, value: Any) -> Any:
        """A plain operand with the content of this moment, held as a record would hold it."""
        return self.tape.keep(value) if type(value) is np.ndarray else value

    def _handed_out(self, op: Operation, operands: tuple[Any, ...], params: Any) -> Any:
        """The handles of what an operation gives; a write and a take-over re-point theirs."""
        self.n_values += len(op.makes)
        what = op.what
        if what is WRITE or what is ADD or what is TAKE:
            root, result = operands[0], op.results[0]
            root._id, root._flag = op.makes[0], result
            root.__class__ = CLASSES[result.kind]
            made: tuple[Any, ...] = ()
        else:
            made = tuple(map(self._made, op.makes, op.results))
            for handle in made:
                if type(handle) is VALUELESS.view:
                    handle._parent, handle._parent_id = operands[0], operands[0]._id
                    handle._primitive, handle._params, handle._written_in = what, params, None
        self.log.append((what, operands, params, made))
        return made if op.several else made[0] if made else None

    def _made(self, number: int, result: Result) -> Any:
        handle = CLASSES[result.kind]()
        handle._tape, handle._id, handle._spec, handle._flag = self.tape, number, result.spec, result
        self.made.append(handle)
        return handle

    def _handle(self, kind: str, result: Result, flag: int) -> Any:  # noqa: ARG002
        handle = self._made(self.n_values, result)
        self.n_values += 1
        return handle

    # The eager run.
    def _go_eager(self) -> None:
        """Carry out what was logged, on twins; what comes is carried out at once."""
        if self.following is None:
            self._opened()
            return
        self.operations, self.following = self.following[: self.at], None
        tape = self._opened()
        for handle, value in self.inputs:
            self._twin_input(handle, value)
        log, self.log = self.log, []
        places = iter(self.operations)
        for entry in log:
            what, operands, params, made = entry
            if what is None:
                self.twins[id(operands[0])] = self.twins[id(operands[1])]
            else:
                start = len(tape.records)
                self._place_twins(next(places), self._run(what, operands, params), operands, made)
                self.ranges.append((start, len(tape.records)))
            self.log.append(entry)

    def _opened(self) -> Tape:
        if self.twin_tape is None:
            tape = self.twin_tape = self.ordinary()
            tape.level = self.tape.level
        return self.twin_tape

    def _twin_input(self, handle: Any, value: Any) -> None:
        from pullback.tracing.running import open_input  # noqa: PLC0415

        tape = self._opened()
        self.twins[id(handle)] = open_input(tape, value)
        tape.n_inputs = len(tape.records)

    def _run(self, what: Any, operands: tuple[Any, ...], params: Any) -> Any:
        """What an operation gives on the twins."""
        tape, twins = self._opened(), self.twins
        if what is CAPTURE:
            return stand_in(operands[0], tape)
        if what is FROZEN:
            from pullback.recording.handles import FROZEN as KEPT, make  # noqa: PLC0415

            return make(tape.kinds.buffer, operands[0], None, tape, KEPT)
        if what is RESULT:
            return None
        twin = [twins[id(o)] if isinstance(o, Handle) else o for o in operands]
        if what is CREATE:
            function, args, kwargs = params
            return function(twin[0], *args, **kwargs)
        if what is WRITE or what is ADD:
            write_region(twin[0], Region(*params), twin[1], add=what is ADD)
            return twin[0]
        if what is TAKE:
            if twin[0]._id != twin[1]._id:
                takes_over(twin[0], twin[1])
            return twin[0]
        return call(what, tuple(twin), params)

    def _carried_out(self, what: Any, operands: tuple[Any, ...], params: Any) -> Any:
        tape = self._opened()
        start = len(tape.records)
        entries = tuple(self._entry(what, o) for o in operands)
        given = self._run(what, operands, params)
        if given is NotImplemented:
            self.why = self.why or "an operator is left to another operand"
            return given
        several = type(given) is tuple or isinstance(given, tuple)
        parts = tuple(given) if several else () if what is RESULT else (given,)
        results = tuple(_told(part) for part in parts)
        if any(result.kind == "plain" for result in results):
            self.why = self.why or f"{getattr(what, 'name', what)} gives a plain value"
        makes = tuple(range(self.n_values, self.n_values + len(parts)))
        op = Operation(what, entries, params, makes, results, several)
        self.operations.append(op)
        self.ranges.append((start, len(tape.records)))
        for operand in operands:
            if not isinstance(operand, Handle):
                self.constants.append(faithful_copy(operand) if type(operand) is np.ndarray else operand)
        handed = self._handed_out(op, operands, params)
        made = self.log[-1][3]
        self._place_twins(op, given, operands, made)
        if any(result.kind == "plain" for result in results):
            out = tuple(part if r.kind == "plain" else h for part, r, h in zip(parts, results, made, strict=True))
            return (type(given)._make(out) if hasattr(given, "_make") else out) if several else out[0]
        if several and hasattr(given, "_make"):
            return type(given)._make(handed)
        return handed

    def _entry(self, what: Any, operand: Any) -> Any:
        if what is CAPTURE:
            return Constant.of(operand._value)
        return operand._id if isinstance(operand, Handle) else Constant.of(operand)

    def _place_twins(self, op: Operation, given: Any, operands: tuple[Any, ...], made: tuple[Any, ...]) -> None:
        if op.what is WRITE or op.what is ADD or op.what is TAKE:
            return
        parts = tuple(given) if op.several else (given,)
        for handle, part in zip(made, parts, strict=False):
            self.twins[id(handle)] = part

    def _elsewhere(self, prim: Any, operands: tuple[Any, ...], params: Any) -> Any:
        """A value of a trace around comes in that is no captured one: an ordinary call."""
        self.surrender()
        return call(prim, operands, params)


def _told(part: Any) -> Result:
    if not isinstance(part, Handle):
        return result_of(part, "plain")
    return result_of(resolve(part)._value, kind_name(part))


def _become(handle: Any, twin: Any) -> None:
    """A handle without value becomes an ordinary one: what its twin is."""
    is_view = type(handle) is VALUELESS.view
    handle.__class__ = type(twin)
    handle._value, handle._id, handle._tape, handle._spec = twin._value, twin._id, twin._tape, None
    handle._flag = twin._flag
    if is_view:  # its parent has become an ordinary handle, too, and is the user's own
        handle._parent_id, handle._parent_value = twin._parent_id, twin._parent_value


_ = FREE
