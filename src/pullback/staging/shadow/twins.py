"""The twins of a shadow run: handles of an ordinary trace, on which an eager run carries out what comes."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from attrs import define, field

from pullback.recording.crossing import stand_in
from pullback.recording.handles import FROZEN as KEPT
from pullback.recording.handles import Handle, make, plain_value, resolve
from pullback.recording.recorder import call
from pullback.recording.regions import Region
from pullback.recording.tape import Tape
from pullback.recording.writes import takes_over, write_region
from pullback.staging.shadow.operations import (
    ADD,
    CAPTURE,
    CREATE,
    FROZEN,
    MARK,
    READ,
    RESULT,
    TAKE,
    WRITE,
    Operation,
    Result,
    result_of,
)
from pullback.staging.shadow.valueless import KIND_OF, ValuelessView, kind_name
from pullback.tracing.collectives import recorded_on
from pullback.tracing.running import open_input


@define(eq=False)
class Twins:
    """The ordinary handles of one run, on a tape that is opened when the first is made."""

    ordinary: Callable[[], Tape]
    """Opens the tape."""
    level: int
    tape: Tape | None = field(default=None, init=False)
    by_number: dict[int, Any] = field(factory=dict, init=False)
    """Number of a value to the handle that stands for it."""
    n_own: float = inf
    """How many of what enters may be written; slices of ``xs`` follow, which may not."""

    def opened(self) -> Tape:
        """The tape."""
        if self.tape is None:
            self.tape = self.ordinary()
            self.tape.level = self.level
        return self.tape

    def enter(self, number: int, value: Any) -> None:
        """A leaf enters the step."""
        tape = self.opened()
        if number >= self.n_own:
            tape.overlapping[len(tape.records)] = ""
        self.by_number[number] = open_input(tape, value)
        tape.n_inputs = len(tape.records)

    def run(self, what: Any, operands: tuple[Any, ...], params: Any) -> Any:
        """What an operation gives on twins."""
        tape = self.opened()
        if what is CAPTURE:
            return stand_in(operands[0], tape)
        if what is FROZEN:
            return make(tape.kinds.buffer, operands[0], None, tape, KEPT)
        if what is RESULT or what is READ:
            return None
        if what is CREATE:
            function, args, kwargs = params
            return function(operands[0], *args, **kwargs)
        if what is WRITE or what is ADD:
            write_region(operands[0], Region(*params), operands[1], add=what is ADD)
            return operands[0]
        if what is TAKE:
            if operands[0]._id != operands[1]._id and not takes_over(*operands):
                operands[0][...] = operands[1]
            return operands[0]
        if what is MARK:
            params(*operands)
            return operands[0]
        if what.collective:
            return recorded_on(tape, what, operands, params)
        return call(what, operands, params)

    def current(self, number: int) -> Any:
        """The handle that stands for a value; a stale view has been derived again."""
        return resolve(self.by_number[number])

    def takes_over(self, number: int, result: int) -> bool:
        """Whether a value becomes that which an operation in place has given."""
        return takes_over(self.by_number[number], self.by_number[result])

    def place(self, op: Operation, given: Any) -> None:
        """What an operation has given stands for the values that it makes."""
        for number, part in zip(op.makes, given if op.several else (given,), strict=False):
            self.by_number[number] = part

    def replace(self, handles: Sequence[Any], instead: Callable[[Any], Any] = lambda twin: twin) -> None:
        """Handles without value become their twins, or what there is ``instead`` of one."""
        for handle in handles:
            twin = self.by_number.get(handle._id)
            if type(handle) in KIND_OF and isinstance(twin, Handle):
                become(handle, instead(twin))


def told(part: Any) -> Result:
    """What kind of value an ordinary operation has given."""
    if not isinstance(part, Handle):
        return result_of(part, "plain")
    return result_of(plain_value(part), kind_name(part))


def become(handle: Any, twin: Any) -> None:
    """A handle without value becomes an ordinary one: what its twin is."""
    is_view = type(handle) is ValuelessView
    handle.__class__ = type(twin)
    handle._value, handle._id, handle._tape, handle._spec = twin._value, twin._id, twin._tape, None
    handle._flag = twin._flag
    if is_view:  # its parent has become an ordinary handle, too, and is the user's own
        handle._parent_id, handle._parent_value, handle._known = twin._parent_id, twin._parent_value, None
