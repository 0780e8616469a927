"""The shadow run of the code between two marks.

That code is no function: it goes on with handles that it has, and keeps what it makes. So these handles are *lent*:
they belong to the run, and the run has their values, until a step does what is not known or keeps what others did not
keep. Then they become handles of the trace again, with all that the step has made.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from sys import getrefcount
from typing import Any, ClassVar
from weakref import getweakrefcount

from attrs import define, field

from pullback.recording.copies import faithful
from pullback.recording.handles import (
    FREE,
    SHARED,
    WRITTEN,
    WRITTEN_SHARED,
    freeze,
    lasting,
    make,
    root_of,
    steps_to,
)
from pullback.recording.handles import FROZEN as KEPT
from pullback.recording.regions import Region
from pullback.recording.tape import CAPTURED, NOTHING_KEPT, Tape
from pullback.recording.writes import write_region
from pullback.staging.calls.inlined_run import InlinedRun, InlinedTwins, entered_as
from pullback.staging.shadow.operations import FROZEN, MARK, REPOINTS, Constant, Operation, Result, result_of
from pullback.staging.shadow.quick_operators import UNBOUND, KnownStep
from pullback.staging.shadow.valueless import KIND_OF, VALUELESS, Pool, ValuelessView, handle_of
from pullback.words.call_sites import called_at
from pullback.words.undocumented import holders


@define(eq=False)
class LentHandle:
    """A handle of the user's on which steps go on: what it stands for in the trace, while the run has it."""

    handle: Any
    value: Any
    ident: int
    flag: int
    kind: Result

    def enter(self, tape: Tape, number: int) -> None:
        """It is the handle of what enters the step as that number."""
        handle = self.handle
        handle.__class__ = VALUELESS.weak if self.kind.kind == "weak" else VALUELESS.tracer
        handle._tape, handle._id, handle._spec, handle._flag = tape, number, self.kind.spec, self.kind

    def leave(self, around: Tape) -> None:
        """It is a handle of the trace again."""
        handle = self.handle
        handle.__class__ = around.kinds.weak if self.kind.kind == "weak" else around.kinds.tracer
        handle._value, handle._id, handle._tape = self.value, self.ident, around
        handle._flag, handle._spec = self.flag, None


def are_watched(handles: Iterable[Any]) -> bool:
    """Whether a weak reference asks how long one of them lives: one that is lent lives until the next mark."""
    return any(map(getweakrefcount, handles))


@define(eq=False)
class MarkedPool:
    """The handles of a step that is known, and which of them stay with the user."""

    pool: Pool
    ends: tuple[Any, ...]
    """The numbers of the values that live on."""
    places: list[int] = field(init=False)
    """The place of the operation that has made the handle of each."""
    watched: list[Any] = field(init=False)
    """The handles that nobody may have when the step is over."""
    held: list[int] = field(init=False)
    """How many have each of these."""
    numbers: dict[int, int] = field(init=False)
    """The place of each among these, by its place in memory."""
    n_inputs: int = field(init=False)
    views: list[Any] = field(init=False)
    """Views of what enters."""

    def __attrs_post_init__(self) -> None:
        pool, made_at = self.pool, dict[int, int]()
        self.n_inputs = len(pool.entering)
        for at, op in enumerate(pool.known.operations):
            if op.what in REPOINTS:
                if op.operands[0] in made_at:
                    made_at[op.makes[0]] = made_at[op.operands[0]]
            elif op.makes:
                made_at |= dict.fromkeys(op.makes, at)
        self.places = [made_at[end] for end in self.ends]
        pool.bind()
        pool.starting = pool.ending = ()
        leaving = {id(pool.made[place]) for place in self.places} | {id(handle) for handle in pool.entering}
        pool.bound = [UNBOUND[0] if any(id(x) in leaving for x in bound) else bound for bound in pool.bound]
        made = [h for part in pool.made if part is not None for h in (part if type(part) is tuple else (part,))]
        self.watched = [handle for handle in made if id(handle) not in leaving]
        entering = {id(handle) for handle in pool.entering}
        self.views = [h for h in made if type(h) is ValuelessView and id(h._parent) in entering]
        for ident in leaving:
            pool.origins.pop(ident, None)
        pool.handles, pool.entering = [], []
        del made  # those who have a handle are counted
        self.held = holders(self.watched)
        self.numbers = {id(handle): k for k, handle in enumerate(self.watched)}

    def enters(self, lent: Sequence[LentHandle]) -> None:
        """A step begins with what is lent."""
        self.pool.entering = [each.handle for each in lent]

    def is_left_alone(self, written: list[Any]) -> bool:
        """Whether nobody has kept a handle that none is to have, but for the list of those that were ``written`` to,
        and nobody watches how long one lives that is to be lent."""
        if are_watched(self.pool.made[place] for place in self.places):
            return False
        view = None
        for view in self.views:
            view._parent = None
        del view  # it would be one more who has it
        found = holders(self.watched)
        for handle in written:
            k = self.numbers.get(id(handle))
            if k is not None:
                found[k] -= 1
        return found == self.held

    def handed_over(self, tape: Tape, written: list[Any]) -> list[Any]:
        """The handles that live on, which are the user's; others take their places. What was ``written`` to stands for
        its first value again."""
        pool, found = self.pool, []
        for place in self.places:
            handle, op = pool.made[place], pool.known.operations[place]
            found.append(handle)
            pool.made[place] = handle_of(tape, op.makes[0], op.results[0])
        while written:
            handle = written.pop()
            origin = pool.origins.get(id(handle))
            if origin is not None:
                handle._id, handle._flag = origin
                handle.__class__ = type(handle_of(tape, *origin))
            del handle
        return found


@define(eq=False)
class MarkedTwins(InlinedTwins):
    """The handles of the trace; what is carried out late stands at the line where it came."""

    sites: Iterator[int] | None = field(default=None, init=False)

    buffers: list[Any] = field(factory=list, init=False)
    """The handles of the user's that depend on no input, in the order in which they came in."""
    n_come: int = field(default=0, init=False)
    """How many of these have come."""

    def run(self, what: Any, operands: tuple[Any, ...], params: Any) -> Any:
        """What an operation gives in the trace."""
        if what is FROZEN:
            next(self.sites or iter((0,)))
            self.n_come += 1
            return self.buffers[self.n_come - 1]
        if self.sites is None:
            return super().run(what, operands, params)
        return called_at(next(self.sites), super().run, what, operands, params)


@define(eq=False)
class MarkedRun(InlinedRun):
    """The code between two marks."""

    marks: ClassVar[bool] = True
    lent: list[LentHandle] = field(factory=list, init=False)
    marked: dict[KnownStep, MarkedPool] = field(factory=dict, init=False)
    sites: Sequence[int] = field(default=(), init=False)
    """The call sites of the operations of the list that is followed."""
    frozen: list[Any] = field(factory=list, init=False)
    """What stands for handles of the trace that depend on no input."""
    keeps: Callable[[Any, int], Any]
    """The copy of a plain array that is read at a call site, which the trace keeps."""

    def starts(self, around: Tape, known: Sequence[KnownStep], lent: list[LentHandle]) -> None:
        """The code after a mark begins."""
        self.lent = lent
        for number, each in enumerate(lent):
            each.enter(self.tape, number)
        self.tape.thread = around.thread
        self.frozen = []
        self.eager.buffers, self.eager.n_come = [], 0  # type: ignore[attr-defined]  # twins of this kind
        self.enters(around, around.level + 1, known, ())
        self._has_entered()

    def starts_again(self) -> None:
        """A step begins after one that was followed to its end, of the same list."""
        for number, each in enumerate(self.lent):
            each.enter(self.tape, number)
        self.stands, self.outer, self.outside, self.at = {}, [], [], 0
        self.frozen = []
        self.eager.buffers = []  # type: ignore[attr-defined]  # twins of this kind
        self.constants, self.captured, self.values, self.inputs = [], [], [], []
        self.tape.kept = NOTHING_KEPT
        self.eager.tape.mode = CAPTURED  # type: ignore[union-attr]  # it stands around this run
        self.marked[self.following].enters(self.lent)  # type: ignore[index]  # a list was followed
        self._has_entered()

    def _has_entered(self) -> None:
        self.inputs += [each.value for each in self.lent]
        if self.pool is None:
            self.alone += [each.handle for each in self.lent]

    def _follow(self, known: KnownStep, entering: Any) -> None:  # noqa: ARG002 - what is lent enters
        marked = self.marked.get(known)
        if marked is None:
            pool = Pool(known, self.tape, [each.handle for each in self.lent])
            marked = self.marked[known] = MarkedPool(pool, known.ends)
        marked.enters(self.lent)
        self.parts = None
        self.pools[known] = marked.pool
        self.following, self.quick, self.bound = known, known.quick, marked.pool.bound
        self.pool, self.made = marked.pool, marked.pool.made

    def _lay_down(self) -> None:
        if self.pool is not None:
            self.marked.pop(self.pool.known, None)
        super()._lay_down()

    def _go_eager(self) -> None:
        if self.following is None:
            return
        self._lend_twins()
        twins: Any = self.eager
        twins.sites, twins.n_come = iter(self.sites), 0
        try:
            super()._go_eager()
        finally:
            twins.sites = None

    def _lend_twins(self) -> None:
        """What is lent has twins: handles of the trace."""
        around = self.eager.opened()
        kinds = around.kinds
        self.eager.given = [  # type: ignore[attr-defined]  # twins of this kind
            make(kinds.weak if each.kind.kind == "weak" else kinds.tracer, each.value, each.ident, around, each.flag)
            for each in self.lent
        ]
        self.outside += self.eager.given  # type: ignore[attr-defined]

    def begins_eager(self) -> None:
        """Nothing is known of the step: what comes is carried out immediately."""
        self._lend_twins()
        for number, value in enumerate(self.inputs):
            self.eager.enter(number, value)

    def capture(self, operand: Any) -> Any:
        """What stands for a handle of the trace."""
        if operand._id is not None:
            return super().capture(operand)
        freeze(operand)
        self.eager.buffers.append(operand)  # type: ignore[attr-defined]  # twins of this kind
        stands = self._made_of(FROZEN, (lasting(operand, root_of(operand)),), None)
        self.frozen.append(stands)
        return stands

    def mark(self, handle: Any, told: Any, marks: Callable[..., Any]) -> bool:
        """As any run; of what has begun the loop in the first of its steps, too, in which nothing is lent yet."""
        if handle._tape is self.tape:
            return super().mark(handle, told, marks)
        kinds = handle._tape.kinds
        if self.lent or self.following is not None or type(handle) not in (kinds.tracer, kinds.weak):
            return False
        if handle._id is None or handle._tape is not self.eager.opened():
            return False
        stands = self.capture(handle)
        self._made_of(MARK, (stands, told), marks)
        self.stands[handle._id] = stands
        return True

    def _taken_in(self, value: Any) -> Any:
        around = self.eager.opened()  # its twin is a handle of the trace, as every twin here
        return self.capture(make(around.kinds.buffer, value, None, around, KEPT))

    def _carried_out(self, what: Any, operands: tuple[Any, ...], params: Any) -> Any:
        if what is not FROZEN:
            return super()._carried_out(what, operands, params)
        (value,), number, at = operands, self.n_values, len(self.eager.opened().records)
        twin = self.eager.run(what, operands, params)
        result = result_of(value, "buffer")
        self.constants.append(faithful(value))
        self.operations.append(Operation(FROZEN, (Constant.of(value),), None, (number,), (result,)))
        self.ranges.append((at, at))
        self.eager.by_number[number] = twin
        return self._made(number, result)

    def taken(self, array: Any) -> Any:
        """A plain array with the content of this moment, as the trace keeps it."""
        return self.keeps(array, self.sites[self.at] if self.at < len(self.sites) else 0)

    def _read(self, handle: Any, *, kept: bool) -> Any:
        number = handle._id
        if type(handle) is not ValuelessView and number < len(self.inputs):  # it is there
            return self.inputs[number]
        return super()._read(handle, kept=kept)

    def write(self, handle: Any, region: Region, value: Any, *, add: bool) -> None:
        """As of any shadow run; where a value from around is written through a view, in the trace itself."""
        root = root_of(handle)
        if any(root is each for each in (*self.stands.values(), *self.frozen)):
            number = root._id
            self.surrender()
            around: Any = self.eager.by_number[number]
            if type(around) is around._tape.kinds.view:
                steps = (*steps_to(around), *region.steps)
                region = Region(steps, region.key, region.fancy, region.repeats, region.subtracts)
            write_region(handle, region, value, add=add)
        else:
            super().write(handle, region, value, add=add)

    def survivors(self) -> tuple[list[Any], list[int]]:
        """The handles that a step has made that was carried out immediately, and somebody has, and the places of what
        was lent and somebody has."""
        self.stands, self.frozen, alone, made = {}, [], self.alone, []
        n_lent, self.alone, self.made = len(self.lent), [], ()
        lent = alone[:n_lent]
        del alone[:n_lent]
        while alone:
            handle = alone.pop()
            if getrefcount(handle) > _ALONE and type(handle) in KIND_OF:
                made.append(handle)
            del handle
        stay = [k for k in range(n_lent) if getrefcount(lent[k]) > _LENT]
        self.alone = [*lent, *made[::-1]]
        return made[::-1], stay

    def hand_back(self) -> None:
        """Every handle is one of the trace; a frozen one where the user has the handle itself, which would not hear of
        a write to this one."""
        twins: Any = self.eager
        captured = {id(handle) for handle in (*self.outside, *twins.buffers)}
        captured -= {id(twin) for twin in twins.given}
        for handle in self.alone:
            if type(handle) is ValuelessView:
                of = self.eager.by_number.get(handle._parent._id) if type(handle._parent) in KIND_OF else None
                handle._parent = of if id(of) in captured else handle._parent
        twins.replace(self.alone, lambda twin: self.unwritable(twin) if id(twin) in captured else twin)
        self.alone, self.lent, self.frozen, twins.buffers = [], [], [], []

    def go_on(self, tape: Tape) -> None:
        """The code goes on in the trace itself."""
        tape.mode, tape.inner = self.eager.mode, None  # type: ignore[attr-defined]
        self.hand_back()

    def over(self) -> None:
        """The step is over; handles that are still those of the run cannot be used any more."""
        self.lent, self.frozen = [], []
        self.eager.buffers = []  # type: ignore[attr-defined]  # twins of this kind
        self.marked.clear()
        self.leaves(whole=False)


def lend(handle: Any) -> LentHandle:
    """A handle of the trace, to be lent: whoever writes to it afterwards copies, as others may have its memory."""
    flag = {FREE: SHARED, WRITTEN: WRITTEN_SHARED}.get(handle._flag, handle._flag)
    return LentHandle(handle, handle._value, handle._id, flag, entered_as(handle))


def _counts() -> tuple[int, int]:
    """What is counted for a thing that was taken out of a list and that nobody has, and for one that a list and an
    attribute have."""
    things, lent = [Tape(0, VALUELESS)], [Tape(0, VALUELESS)]
    other = things.pop()
    lent[0].shadow = lent  # type: ignore[assignment]  # any attribute
    holder = [lent[0]]
    found = getrefcount(other), getrefcount(lent[0])
    holder.clear()
    del lent[0].shadow
    return found


_ALONE, _LENT = _counts()
