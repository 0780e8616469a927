"""Values that a body asks for while its step is under way, as in a comparison: what comes before is computed then, and
the rest of the step is compared as ever. And values that it marks."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from typing import Any, Final, Protocol

from attrs import define, field

from pullback.recording.copies import faithful
from pullback.recording.handles import freeze
from pullback.rules.declaration import Primitive
from pullback.staging.shadow.operations import CAPTURE, MARK, READ, Operation
from pullback.staging.shadow.quick_operators import EAGER, UNBOUND, KnownStep
from pullback.staging.shadow.valueless import Following, ValuelessTracer, ValuelessWeak
from pullback.words.call_sites import called_at
from pullback.words.ordered_calls import UNDER_WAY, fed
from pullback.words.undocumented import quiet

ERROR_STATE = "NumPy's error state, or Python's warning filters, are changed within the step"

_MARKED: Final = (ValuelessTracer, ValuelessWeak)
"""The handles whose values are marked in the run: a view, and what depends on no input, are marked in the trace."""


class Parts(Protocol):
    """What computes a step that is known, up to one value that is read after the other; the last part gives what the
    step gives."""

    def next(self, *, again: bool = False) -> Any:
        """The next part. ``again``: of a stretch that was computed before, whose warnings have come."""


@define(eq=False)
class Reading(Following):
    """How far a step is computed whose values are read while it is under way."""

    computes: Callable[[KnownStep], Parts] | None = field(default=None, init=False)
    """Begins to compute a step that does what a list says; None where nobody can."""
    parts: Parts | None = field(default=None, init=False)
    """The parts of the list that is followed."""
    n_read: int = field(default=0, init=False)
    """How many values it has given, or another list whose operations were the same so far."""
    read: list[Any] = field(factory=list, init=False)
    """What an eager run has given, copied; and so for calls that have an effect."""
    logged: list[Any] = field(factory=list, init=False)
    """What calls that have an effect have given, copied: they are made at the moment at which they come, and once."""

    def begins_to_read(self, computes: Callable[[KnownStep], Parts] | None) -> None:
        """A step begins."""
        self.computes, self.parts, self.n_read, self.read, self.logged = computes, None, 0, [], []

    def value(self, handle: Any) -> Any:
        """The value of a handle: somebody asks for it in the middle of the step."""
        return self._read(handle, kept=False)

    def value_kept(self, handle: Any) -> Any:
        """The value of a handle, for somebody who keeps it."""
        return self._read(handle, kept=True)

    def mark(self: Any, handle: Any, told: Any, marks: Callable[..., Any]) -> bool:
        """Whether a value is marked in the run, its handle then standing for another one. ``told`` is the tag with the
        number; ``marks(handle, told)`` marks the value of an ordinary handle."""
        if handle._tape is not self.tape or type(handle) not in _MARKED:
            return False
        if self.nests or (self.inlines and not self.marks):
            return False
        self._made_of(MARK, (handle, told), marks)
        return True

    def next_part(self) -> Any:
        """What the next part of the list that is followed gives."""
        if self.parts is None:
            assert self.computes is not None  # or nothing is read in this way
            self.parts = self.computes(self.following)  # type: ignore[arg-type]  # one is followed
            if self.n_read:
                with fed(self.logged):
                    for _ in range(self.n_read):
                        self.parts.next(again=True)
        self.n_read += 1
        return self.parts.next()

    def _read(self: Any, handle: Any, *, kept: bool) -> Any:
        """The value: that of the generated functions where the list that is followed has it read here, else that of its
        twin."""
        self.resolve(handle)
        number = handle._id
        if self.following is not None:
            if self.holds and self.computes is not None and self._matching(READ, (handle,), None) is not None:
                self.at += 1
                return faithful(self.next_part())
            self._go_eager()
        if not self.holds:
            self.why = self.why or ERROR_STATE
        n_records = len(self.eager.opened().records)
        self.operations.append(Operation(READ, (number,), None, (), ()))
        self.ranges.append((n_records, n_records))
        twin = self.eager.current(number)
        found = freeze(twin)._value if kept else twin._value
        self.read.append(faithful(found))
        return found

    def _go_eager(self: Any) -> None:
        """Carry out what was followed so far, on twins; what comes is carried out immediately."""
        followed = self.following
        if followed is None:
            return
        self.operations = followed.operations[: self.at]
        self._lay_down()
        self.following, self.quick, self.bound, self.at = None, EAGER, UNBOUND, 0
        tape = self.eager.opened()
        for number, value in enumerate(self.inputs):
            self.eager.enter(number, value)
        constants, outer, logged = iter(self.constants), iter(self.outer), iter(self.logged)
        self.logged = []
        computed = max(
            (k for k, op in enumerate(self.operations) if op.what is READ or is_ordered(op.what)), default=-1
        )
        for k, op in enumerate(self.operations):
            if op.what is CAPTURE:
                operands: tuple[Any, ...] = (next(outer),)
            else:
                operands = tuple(self.eager.by_number[o] if type(o) is int else next(constants) for o in op.operands)
            start = len(tape.records)
            run = partial(called_at, op.site, self.eager.run) if op.site else self.eager.run
            with warned_before(k < computed), fed(islice(logged, 1)) if is_ordered(op.what) else nullcontext():
                self.eager.place(op, run(op.what, operands, op.params))
            if op.what is READ:
                self.read.append(faithful(self.eager.current(op.operands[0])._value))
            elif is_ordered(op.what):
                self.note_ordered(op)
            self.ranges.append((start, len(tape.records)))
        tape.shares_kept(self.tape)

    def make_call(self: Any, prim: Primitive) -> None:
        """The call that has come in the list has an effect: it is made now, and what comes before it is computed."""
        token = UNDER_WAY.set(())  # no trace records what the forward itself may call
        try:
            self.logged.append(self.next_part())  # whose memory no statement takes (``placing``)
        except BaseException:
            self.at -= 1  # it has given nothing, and somebody may go on without
            self.why = self.why or f"{prim.name} is ordered, and has failed"
            self._go_eager()
            raise
        finally:
            UNDER_WAY.reset(token)

    def note_ordered(self: Any, op: Operation) -> None:
        """An eager run has made a call that has an effect."""
        if op.several or op.what.residuals or op.results[0].kind == "plain":
            self.why = self.why or f"{op.what.name} is ordered, and gives more than one array or number"
        else:
            self.logged.append(faithful(self.eager.current(op.makes[0])._value))
            self.read.append(self.logged[-1])

    def _follow(self, known: KnownStep, entering: Any) -> None:
        self.parts = None
        super()._follow(known, entering)


def is_ordered(what: Any) -> bool:
    """Whether an operation is a call that has an effect."""
    return type(what) is Primitive and what.ordered


def warned_before(again: bool) -> AbstractContextManager[Any]:
    """No warning comes, in the block, of operations that are carried out ``again``: they were computed for a value to
    be read."""
    return quiet() if again else nullcontext()
