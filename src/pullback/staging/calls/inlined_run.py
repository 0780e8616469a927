"""The shadow run of a staged function that is called within a trace. Where it cannot be followed, the function goes on
in that trace, as if it were not staged.

Its twins are therefore handles of that very trace, the arguments among them: what is carried out is recorded there in
order, and a write to an argument is a write to the caller's array.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from attrs import define, field

from pullback.recording.handles import FROZEN, Handle, freeze, make, plain_value, resolve, root_of, steps_to
from pullback.recording.regions import Region
from pullback.recording.tape import CAPTURED, DEFERRED, FORWARD, NOTHING_KEPT, RECORDING, Tape
from pullback.recording.writes import write_region
from pullback.staging.shadow.operations import ADD, CAPTURE, TAKE, WRITE, Constant, Operation, Result, result_of
from pullback.staging.shadow.quick_operators import KnownStep
from pullback.staging.shadow.shadow_run import ShadowRun
from pullback.staging.shadow.twins import Twins
from pullback.staging.shadow.valueless import ValuelessView
from pullback.staging.shadow.values_asked_for import Parts
from pullback.words.errors import WriteError


@define(eq=False)
class InlinedTwins(Twins):
    """Handles of the trace around, which records while they are asked."""

    given: Sequence[Any] = field(default=(), init=False)
    """The handles of the arguments."""
    mode: int = field(default=RECORDING, init=False)
    """What the trace around does: it records, or computes tangents."""

    def opened(self) -> Tape:
        """The trace around."""
        assert self.tape is not None  # set as the run begins
        return self.tape

    def enter(self, number: int, value: Any) -> None:  # noqa: ARG002 - the handle has it
        """An argument is its own twin."""
        self.by_number[number] = self.given[number]

    def run(self, what: Any, operands: tuple[Any, ...], params: Any) -> Any:
        """What an operation gives in the trace around."""
        if what is CAPTURE:
            return operands[0]
        tape: Any = self.tape
        tape.mode = self.mode
        try:
            return super().run(what, operands, params)
        finally:
            tape.mode = CAPTURED

    def takes_over(self, number: int, result: int) -> bool:
        """As the trace around says; one that computes tangents never."""
        return self.mode != FORWARD and super().takes_over(number, result)

    def current(self, number: int) -> Any:
        """The handle that stands for a value; a stale view has been derived again."""
        tape: Any = self.tape
        before, tape.mode = tape.mode, self.mode
        try:
            return resolve(self.by_number[number])
        finally:
            tape.mode = before


@define(eq=False)
class InlinedRun(ShadowRun):
    """One call under way. Its arguments, and what it captures, belong to the caller: they are *outside*."""

    inlines: ClassVar[bool] = True
    outside: list[Any] = field(factory=list, init=False)
    """The handles from around that have been met."""
    stood: dict[int, Any] | None = field(default=None, init=False)
    """The handles for which there were frozen ones before."""
    left: list[Any] = field(factory=list, init=False)
    """The handles from around for which the function holds frozen ones since it went on in the ordinary way."""
    masked: bool = field(default=False, init=False)
    """Whether the trace around had masked something before."""

    latest: KnownStep | None = field(default=None, init=False)
    """The list that was followed last to the end: the next call is compared with it first."""

    def enters(
        self,
        around: Tape,
        level: int,
        known: Sequence[KnownStep],
        given: Sequence[Any],
        computes: Callable[[KnownStep], Parts] | None = None,
    ) -> None:
        """The call begins in the trace ``around``, whose handles ``given`` are its traced arguments."""
        tape, twins = self.tape, self.eager
        tape.mode, tape.enclosing, tape.level, tape.inner = DEFERRED, around, level, None
        tape.masks, tape.outer = False, None
        twins.mode = around.mode  # type: ignore[attr-defined]
        twins.tape, twins.given, self.outside = around, given, list(given)  # type: ignore[attr-defined]
        self.lasting, self.operations, self.ranges, self.left = {}, [], [], []
        self.stood = around.stands
        self.why, self.surrendered = "", False
        self.masked, around.masks = around.masks, False
        if len(known) > 1 and self.latest is not None:
            known = sorted(known, key=lambda each: each is not self.latest)
        self.begin(known, [entered_as(handle) for handle in given], computes)
        tape.kept = NOTHING_KEPT
        around.mode, around.inner = CAPTURED, tape

    def leaves(self, *, whole: bool = False) -> None:
        """It is over; the handles of a ``whole`` call, which nobody has kept, serve the next."""
        around: Any = self.eager.tape
        around.mode, around.inner = self.eager.mode, None  # type: ignore[attr-defined]
        around.masks = around.masks or self.masked or self.tape.masks
        around.stands, self.stood = self.stood, None
        self.latest = self.following
        self.end(whole=whole)
        self.tape.enclosing = self.eager.tape = None
        self.tape.inner, self.tape.kept = None, NOTHING_KEPT
        self.outside, self.left, self.eager.given = [], [], ()  # type: ignore[attr-defined]
        self.inputs, self.constants, self.values, self.operations = [], [], [], []

    def capture(self, operand: Any) -> Any:
        """What stands for a handle of the trace around."""
        if operand._id is None:
            freeze(operand)
        elif operand._id not in self.stands:
            self.outside.append(operand)
        return super().capture(operand)

    def meet(self, operand: Any) -> None:
        """A handle of the trace around is about to be used: a stale one will be derived again there, at this place."""
        if self.following is not None and is_stale(operand):
            self._go_eager()

    def carry_out(self) -> None:
        """What was followed is carried out in the trace around."""
        self._go_eager()

    def finish(self, leaves: list[Any], ys: list[Any]) -> None:
        """The function returns something else. A view that would derive itself again does so where it is used."""
        if any(isinstance(leaf, Handle) and leaf._tape is self.tape and _would_derive(leaf) for leaf in leaves):
            self.why = self.why or "a view is returned of what was written since"
            self._go_eager()
        else:
            super().finish(leaves, ys)

    def twin(self, leaf: Any) -> Any:
        """The ordinary handle that a leaf stands for."""
        if isinstance(leaf, Handle) and leaf._tape is self.tape:
            return self.eager.by_number[leaf._id]
        if self.left and isinstance(leaf, Handle):  # it has gone on with frozen ones, and returns one, or a view of it
            view, root = None, leaf
            while type(root) is root._tape.kinds.view:
                view, root = root, root._parent  # type: ignore[attr-defined]  # of a view
            for handle in self.left:
                if root._flag == FROZEN and root._id == handle._id:
                    if view is None:
                        return handle
                    view._parent = handle  # type: ignore[attr-defined]
        return leaf

    def _carried_out(self, what: Any, operands: tuple[Any, ...], params: Any) -> Any:
        if what is WRITE or what is ADD or what is TAKE:
            twin: Any = self.eager.by_number.get(operands[0]._id)
            if any(twin is handle for handle in self.outside):
                self.why = self.why or "an argument, or a captured value, is written"
                if type(twin) is twin._tape.kinds.view:
                    return self._written_through(twin, operands, params, add=what is ADD)
        if what is not CAPTURE:
            return super()._carried_out(what, operands, params)
        (handle,), number, at = operands, self.n_values, len(self.eager.opened().records)
        result = entered_as(handle)
        self.operations.append(Operation(CAPTURE, (Constant.of(handle._value),), None, (number,), (result,)))
        self.ranges.append((at, at))
        self.eager.by_number[number] = handle
        return self._made(number, result)

    def _written_through(self, view: Any, operands: tuple[Any, ...], params: Any, *, add: bool) -> None:
        """A write to what lies outside and is a view there: through that, into what it looks at."""
        steps, *rest = params
        value = self.twin(operands[1])
        around, number = self.eager.opened(), self.n_values
        start = len(around.records)
        around.mode = self.eager.mode  # type: ignore[attr-defined]
        try:
            write_region(view, Region((*steps_to(view), *steps), *rest), value, add=add)
        finally:
            around.mode = CAPTURED
        root = operands[0]
        self.operations.append(Operation(WRITE, (root._id,), params, (number,), (root._flag,)))
        self.ranges.append((start, len(around.records)))
        self.eager.by_number[number], root._id = view, number

    def go_on(self, tape: Tape) -> None:
        """Every handle becomes one of the trace around; of what lies outside the function has frozen ones."""
        tape.mode, tape.inner = self.eager.mode, None  # type: ignore[attr-defined]  # twins of this kind
        outside = {id(handle) for handle in self.outside}

        def instead(twin: Any) -> Any:
            if id(twin) not in outside:
                return twin
            self.left.append(twin)
            tape.stands = {**(tape.stands or {}), twin._id: twin}
            return self.unwritable(resolve(twin))

        self.eager.replace(self.alone, instead)

    def unwritable(self, twin: Any) -> Any:
        """A handle of the trace around that cannot be written, with the value of another one. Not a tracer: what holds
        one of these marks it as saved, and the refusal of writes would be lost."""
        around = self.eager.opened()
        kind = around.kinds.weak if type(twin) is around.kinds.weak else around.kinds.buffer
        return make(kind, freeze(twin)._value, twin._id, around, FROZEN)

    def require_unwritten(self) -> None:
        """Raise :class:`WriteError` where what lies outside was written since the function holds frozen handles."""
        stands = self.eager.opened().stands or {}  # a mark of one has moved it there
        if any(stands.get(handle._id) is not handle for handle in self.left):
            raise WriteError(
                "a staged function writes to a traced value from around it, besides an operation that is not "
                "followed; write to a copy, or leave the decorator out"
            )


def _would_derive(handle: Any) -> bool:
    """Whether a handle without value is a view that would derive itself again."""
    while type(handle) is ValuelessView:
        if handle._parent._id != handle._parent_id:
            return True
        handle = handle._parent
    return False


def is_stale(handle: Any) -> bool:
    """Whether a view would derive itself again, or hangs on one that would."""
    view = handle._tape.kinds.view
    while type(handle) is view:
        parent = handle._parent
        if parent._id != handle._parent_id or parent._value is not handle._parent_value:
            return True
        handle = parent
    return False


def entered_as(handle: Any) -> Result:
    """What kind of value the function gets for a handle from around."""
    return result_of(plain_value(handle._value), "weak" if type(handle) is handle._tape.kinds.weak else "tracer")


def unstageable(found: list[Any], outside: list[Any]) -> str:
    """Why what is returned cannot be handed out by a record of its own; empty where it can."""
    around = [root_of(handle) for handle in outside]
    roots: list[Any] = []
    for leaf in found:
        if isinstance(leaf, Handle):
            root = root_of(leaf)
            if root is not leaf and any(root is other for other in around):
                return "a view of an argument is returned"
            roots.append((root, leaf))
    for k, (root, leaf) in enumerate(roots):
        if any(root is other and leaf is not one for other, one in roots[:k]):
            return "two views of one array are returned"
    return ""
