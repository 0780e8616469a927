"""The shadow run: the body of a step is called on handles without values, and every operation is compared with those of
a step that is known.

Where all agree nothing has been computed yet, and the generated functions compute it with the constants that were met.
Where one does not, what was logged is carried out on *twins*, handles of an ordinary trace, and the same call of the
body goes on, each operation carried out immediately (the run is *eager* then). Where a shadow run cannot go on at all,
every handle is turned into its twin, and the body continues in the ordinary trace (the run *surrenders*).
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from attrs import define, field

from pullback.memory.in_force import Tracing
from pullback.memory.reverse_sweep import release_records
from pullback.primitives.shaping.reshaping import copy
from pullback.recording.copies import faithful
from pullback.recording.crossing import present
from pullback.recording.handles import Handle, freeze, lasting, resolve, root_of
from pullback.recording.recorder import call, operand_value
from pullback.recording.regions import Region
from pullback.recording.tape import CAPTURED, NOTHING_KEPT, Tape
from pullback.recording.writes import write_region
from pullback.rules.declaration import Primitive
from pullback.staging.shadow.operations import (
    ADD,
    CAPTURE,
    CREATE,
    FROZEN,
    REPOINTS,
    RESULT,
    TAKE,
    WRITE,
    Operation,
    Result,
    agrees,
    entering,
    operand_of,
    same,
)
from pullback.staging.shadow.postponed_operations import fails_as_a_number, may_wait
from pullback.staging.shadow.quick_operators import EAGER, UNBOUND, KnownStep
from pullback.staging.shadow.twins import Twins, told
from pullback.staging.shadow.valueless import CLASSES, ValuelessTracer, ValuelessView
from pullback.staging.shadow.values_asked_for import ERROR_STATE, Parts, Reading, is_ordered
from pullback.tracing.collectives import recorded_on
from pullback.words.foreign_operands import ORDINARY
from pullback.words.undocumented import error_state


@define(eq=False)
class ShadowRun(Reading):
    """One step under way on the tape ``tape``. ``known`` are the lists of operations that it may turn out to be."""

    inlines: ClassVar[bool] = False
    nests: ClassVar[bool] = False
    marks: ClassVar[bool] = False
    eager: Twins
    known: Sequence[KnownStep] = field(default=(), init=False)
    entering: Sequence[Result | None] = field(default=(), init=False)
    """What kind of leaves enter."""
    inputs: list[Any] = field(factory=list, init=False)
    """Their values."""
    outer: list[Any] = field(factory=list, init=False)
    """The handles of traces around that were captured."""
    captured: list[int] = field(factory=list, init=False)
    """Ids in the trace around of what was captured."""
    values: list[Any] = field(factory=list, init=False)
    """The values of these."""
    stands: dict[int, Any] = field(factory=dict, init=False)
    lasting: dict[int, Any] = field(factory=dict, init=False)
    """The values of captured handles, by id: no write reaches them while the loop runs."""
    admitted: dict[int, Operation] = field(factory=dict, init=False)
    """The operation of a list that such a value was last seen to be what it captures."""
    operations: list[Operation] = field(factory=list, init=False)
    """What an eager run has done."""
    ranges: list[tuple[int, int]] = field(factory=list, init=False)
    """The records of each of these on the tape of the twins."""
    why: str = field(default="", init=False)
    """Why this step cannot be staged; empty where it can."""
    surrendered: bool = field(default=False, init=False)

    def begin(
        self,
        known: Sequence[KnownStep],
        entering: Sequence[Result | None],
        computes: Callable[[KnownStep], Parts] | None = None,
    ) -> None:
        """A step begins, which leaves of these kinds enter."""
        self.begins_to_read(computes)
        self.tape.shadow, self.tape.kept = self, NOTHING_KEPT
        self.errors, self.filters = error_state(), warnings.filters
        self.known, self.entering, self.at = known, entering, 0
        self.inputs, self.constants, self.outer, self.captured, self.values = [], [], [], [], []
        if known:
            self._follow(known[0], entering)
        else:
            self.following, self.quick, self.bound = None, EAGER, UNBOUND
            self.pool, self.made = None, ()  # of a step before, whose run has waited open
            self.eager.opened()

    @property
    def n_values(self) -> int:
        """How many values there are, where operations are carried out immediately; they are numbered as they come."""
        newest = next((op.makes for op in reversed(self.operations) if op.makes), None)
        return newest[-1] + 1 if newest else len(self.inputs)

    # What enters.
    def entered(self, leaves: list[Any], results: Sequence[Result | None]) -> list[Any]:
        """What the body gets for leaves: handles for those that carry a derivative."""
        pool = self.pool
        if pool is not None and not self.inputs and None not in results:
            self.inputs += leaves
            return pool.entering[: len(leaves)]
        return [x if result is None else self.enter(x, result) for x, result in zip(leaves, results, strict=True)]

    def enter(self, value: Any, result: Result | None = None) -> Any:
        """The handle of a leaf that enters the step."""
        number = len(self.inputs)
        self.inputs.append(value)
        if self.pool is not None:
            return self.pool.entering[number]
        self.eager.enter(number, value)
        return self._made(number, entering(value) if result is None else result)

    def foreign(self, operand: Any) -> Any:
        """What a handle of another trace is to this one (``present``); in short where that is the trace around."""
        around: Any = self.tape.enclosing
        if (
            operand._tape is around
            and around.mode == CAPTURED
            and around.inner is self.tape
            and type(operand) is not around.kinds.view
        ):
            return self.capture(operand)
        return present(operand, self.tape)

    def capture(self, operand: Any) -> Any:
        """What stands for a handle of a trace around."""
        ident = operand._id
        if ident is None:
            return self._made_of(FROZEN, (lasting(operand, root_of(operand)),), None)
        stands = self.stands.get(ident)
        if stands is None:
            value = self.lasting.get(ident)
            if value is None:
                freeze(operand)
                value = self.lasting[ident] = operand._value
                self.admitted.pop(ident, None)
            op = None if self.following is None else self.following.operations[self.at]
            if op is not None and (
                self.admitted.get(ident) is op or (op.what is CAPTURE and op.operands[0].admits(value))
            ):
                self.admitted[ident] = op
                self.outer.append(operand)
                stands = self.made[self.at]
                self.at += 1
            else:
                stands = self._made_of(CAPTURE, (operand,), None)
            self.stands[ident] = stands
            self.captured.append(ident)
            self.values.append(value)
        return stands

    # What happens.
    def call(self, prim: Any, operands: tuple[Any, ...], params: Any) -> Any:
        """A call of a primitive: handles without values, or what it has given."""
        tape, plain = self.tape, None
        for k, operand in enumerate(operands):
            if isinstance(operand, Handle):
                if operand._tape is not tape:
                    return self._elsewhere(prim, operands, params)
                if type(operand) is ValuelessView:
                    self.resolve(operand)
            elif type(operand) is not float and (type(operand) not in ORDINARY or type(operand) is np.ndarray):
                plain = list(operands) if plain is None else plain
                plain[k] = operand_value(operand, tape, prim)  # as it is to an ordinary trace
        return self._made_of(prim, operands if plain is None else tuple(plain), params)

    def create(self, function: Any, handle: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        """A new array like the value of a handle."""
        if handle._tape is not self.tape:
            handle = present(handle, self.tape)
        self.resolve(handle)
        return self._made_of(CREATE, (handle,), (function, args, kwargs))

    def lifted(self, value: Any) -> Any:
        """A plain array that becomes one of the step, and may be written to: a copy of what is taken anew in each."""
        return self.call(copy, (self._taken_in(value),), {"order": "K"})

    def _taken_in(self, value: Any) -> Any:
        return self._made_of(FROZEN, (value,), None)

    def write(self, handle: Any, region: Region, value: Any, *, add: bool) -> None:
        """Part of an array is written: its root stands for another value."""
        if isinstance(value, Handle):
            if value._tape is not self.tape:
                self.surrender()
                write_region(handle, region, value, add=add)
                return
            self.resolve(value)
        params = (region.steps, region.key, region.fancy, region.repeats, region.subtracts)
        self._made_of(ADD if add else WRITE, (root_of(handle), value), params)

    def take_over(self, handle: Any, result: Any) -> bool:
        """Whether an in-place operation makes the handle stand for its result."""
        if not isinstance(result, Handle):  # of what depends on no input
            return False
        if self.following is not None:
            op = self.following.operations[self.at]
            if op.what is not TAKE or op.operands != (handle._id, result._id):
                return False
        elif not self.eager.takes_over(handle._id, result._id):
            return False
        self._made_of(TAKE, (handle, result), None)
        return True

    def resolve(self, handle: Any) -> Any:
        """The handle itself; a stale view has been derived again."""
        if type(handle) is not ValuelessView:
            return handle
        parent = self.resolve(handle._parent)
        if parent._id != handle._parent_id:
            fresh = self._made_of(handle._primitive, (parent,), handle._params)
            handle._id, handle._parent_id = fresh._id, parent._id
        return handle

    def result(self, handle: Any) -> Result:
        """What kind of value a handle has."""
        found: Result = handle._flag
        return found

    def ends(self, leaves: list[Any], ys: list[Any]) -> bool:
        """Whether the step returns what is expected: then it is over."""
        following = self.following
        if following is None or self.at != len(following.operations) - 1 or following.n_leaves != len(leaves):
            return False
        tape, returned = self.tape, leaves + ys if ys else leaves
        if len(following.ends) != len(returned):
            return False
        for leaf, end in zip(returned, following.ends, strict=True):
            if type(leaf) is not ValuelessTracer or leaf._id != end or leaf._tape is not tape:
                return False
        self.at += 1
        return True

    def finish(self, leaves: list[Any], ys: list[Any]) -> None:
        """The step returns something else, which is no handle of a trace around."""
        for leaf in (*leaves, *ys):
            if isinstance(leaf, Handle):
                if leaf._tape is not self.tape:
                    self.why = self.why or "a value of another trace is returned"
                    self._go_eager()
                    return
                self.resolve(leaf)
        self._made_of(RESULT, (*leaves, *ys), (len(leaves), len(ys)))

    def twin(self, leaf: Any) -> Any:
        """The ordinary handle that a leaf stands for."""
        return resolve(self.eager.by_number[leaf._id]) if isinstance(leaf, Handle) and leaf._tape is self.tape else leaf

    def surrender(self) -> Tape:
        """Every handle becomes its twin, and the code goes on with these; their tape."""
        self.why = self.why or "an operation is met that is not followed"
        self._go_eager()
        tape = self.eager.opened()
        if not self.surrendered:
            self.surrendered = True
            self.go_on(tape)
            self.tape.mode, self.tape.inner = CAPTURED, tape
            Tracing(tape).__enter__()  # until the step ends
        return tape

    def go_on(self, tape: Tape) -> None:
        """Every handle becomes its twin, on this tape."""
        if tape.enclosing is not None:
            tape.enclosing.inner = tape
        self.eager.replace(self.alone)

    def failed(self) -> None:
        """The step has ended in an error: nobody will reverse what it has recorded."""
        if self.eager.tape is not None:
            release_records(self.eager.tape.records)

    def end(self, *, whole: bool) -> None:
        """No handle of the run can be used any more; those of a ``whole`` one, which nobody has, serve the next."""
        self.stands, self.outer, self.parts, self.computes, self.read, self.logged = {}, [], None, None, [], []
        self._put_back(whole=whole)
        self.tape.shadow = None  # type: ignore[assignment]  # or the two would keep each other alive
        self.eager.by_number = {}

    # How.
    def _made_of(self, what: Any, operands: tuple[Any, ...], params: Any) -> Any:
        if self.following is not None:
            op = self._matching(what, operands, params) if self.holds else None
            if op is not None:
                return self._followed(op, operands, params)
            self._go_eager()
        return self._carried_out(what, operands, params)

    def _matching(self, what: Any, operands: tuple[Any, ...], params: Any) -> Operation | None:
        following, at = self.following, self.at
        assert following is not None
        op = following.operations[at]
        if agrees(op, what, operands, params):
            return op
        for other in self.known:
            if other is following or len(other.operations) <= at:
                continue
            same_so_far = all(map(same, other.operations[:at], following.operations))
            if same_so_far and agrees(other.operations[at], what, operands, params):
                self._lay_down()
                self._follow(other, self.entering)
                return other.operations[at]
        return None

    def _followed(self, op: Operation, operands: tuple[Any, ...], params: Any) -> Any:
        if op.what is CAPTURE:
            self.outer.append(operands[0])
        else:
            for given in operands:
                if not isinstance(given, Handle):
                    self.constants.append(self._taken(op.what, given))
        what, made = op.what, self.made[self.at]
        if what in REPOINTS:
            self.repoint(operands[0], op.makes[0], op.results[0])
            return None
        self.at += 1
        if is_ordered(what):
            self.make_call(what)
        for number, handle in zip(op.makes, made if op.several else (made,), strict=False):
            if type(handle) is ValuelessView:
                handle._id, handle._parent, handle._parent_id = number, operands[0], operands[0]._id
                handle._params, handle._written_in = params, None
        return made

    def _taken(self, what: Any, given: Any) -> Any:
        """A plain operand with the content of this moment; what is returned is the user's own array."""
        return self.taken(given) if type(given) is np.ndarray and what is not RESULT else given

    def _handed_out(self, op: Operation, operands: tuple[Any, ...], params: Any) -> Any:
        """The handles of what an operation gives; a write and a take-over re-point theirs."""
        what = op.what
        if what in REPOINTS:
            root, result = operands[0], op.results[0]
            root._id, root._flag = op.makes[0], result
            root.__class__ = CLASSES[result.kind]
            return None
        made = tuple(map(self._made, op.makes, op.results))
        for handle in made:
            if type(handle) is ValuelessView:
                handle._parent, handle._parent_id = operands[0], operands[0]._id
                handle._primitive, handle._params, handle._written_in = what, params, None
        return made if op.several else made[0] if made else None

    # The eager run.
    def _carried_out(self, what: Any, operands: tuple[Any, ...], params: Any) -> Any:
        tape = self.eager.opened()
        start, first = len(tape.records), self.n_values
        noted = tuple(operand_of(what, o) for o in operands)
        if what is not CAPTURE:
            for operand in operands:
                if not isinstance(operand, Handle):
                    self.constants.append(faithful(operand))
        given = self.eager.run(what, operands if what is CAPTURE else tuple(map(self.twin, operands)), params)
        if given is NotImplemented:
            self.why = self.why or "an operator is left to another operand"
            return given
        several = isinstance(given, tuple)
        parts = tuple(given) if several else () if what is RESULT else (given,)
        results = tuple(map(told, parts))
        if not may_wait(what) or (type(what) is Primitive and fails_as_a_number(what, results)):
            self.why = self.why or f"{what.name} may fail, or give another shape, for what its operands hold"
        if not self.holds:
            self.why = self.why or ERROR_STATE
        site = tape.records[start][-1] if len(tape.records) > start else 0  # type: ignore[index]
        op = Operation(what, noted, params, tuple(range(first, first + len(parts))), results, several, site)
        self.operations.append(op)
        self.ranges.append((start, len(tape.records)))
        self.eager.place(op, given)
        if is_ordered(what):
            self.note_ordered(op)
        handed = self._handed_out(op, operands, params)
        if any(result.kind == "plain" for result in results):
            self.why = self.why or f"{getattr(what, 'name', what)} gives a plain value"
            handed = tuple(
                part if result.kind == "plain" else handle
                for part, result, handle in zip(parts, results, handed if several else (handed,), strict=True)
            )
            handed = handed if several else handed[0]
        return type(given)._make(handed) if several and hasattr(given, "_make") else handed

    def _elsewhere(self, prim: Any, operands: tuple[Any, ...], params: Any) -> Any:
        """A value of a trace around comes in that is no captured one: an ordinary call."""
        tape = self.surrender()
        return recorded_on(tape, prim, operands, params) if prim.collective else call(prim, operands, params)
