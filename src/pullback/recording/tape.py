"""The tape, the hot form of a recorded program: an append-only list of tuples in single-assignment order.

A record is ``(opcode, ids of active operands..., saved values..., specs..., params?, site)``; its own id is its place
in the list, so the list is the topological order. It holds integers and arrays only: nothing the garbage collector must
walk, and never a handle of its own tape (a cycle would keep every tape alive).
"""

from array import array
from collections.abc import Sequence
from threading import get_ident
from types import CodeType
from typing import Any, ClassVar, Final, Protocol

import numpy as np
from attrs import define, field

from pullback.recording.copies import faithful_copy, shared_copy
from pullback.words.specs import ArraySpec, shared_spec

RECORDING: Final = 0
"""Save-all: a record holds the declared values."""
REPLAYABLE: Final = 1
"""A policy may drop the saved values: what re-executes each record is written beside it."""
PAUSED: Final = 2
"""Operations on handles run on their values and give plain arrays."""
CLOSED: Final = 3
"""The trace has ended."""
CAPTURED: Final = 4
"""A loop body is being recorded on a tape of its own: handles of this one become inputs of that one, ``inner``."""

FORWARD: Final = 5
"""Forward mode: operations on handles compute tangents and append nothing."""

DEFERRED: Final = 6
"""A step is run on handles without values: its operations are compared with those of a step that is known, and
computed afterwards. ``shadow`` is told of each."""

RECORDS: Final = f"(not tape.mode or tape.mode == {REPLAYABLE} and tape.trap is None)"
"""The condition in a generated text that the trace ``tape`` takes records, and nobody looks at results."""
MODE_NAMES = ("recording", "replayable", "paused", "closed", "captured", "forward", "deferred")


SMALL = 512
"""Bytes up to which a copy costs less than looking for one that is there."""


@define
class Kept:
    """The small plain array that was copied last, as it was then, and its copy: a loop that reads one array again
    and again, or two in turn, shares it."""

    array: Any
    spec: Any
    data: bytes
    copy: Any
    before: "Kept | None" = None
    """The one before it."""


NOTHING_KEPT: Final = Kept(None, None, b"", None)


class Governor(Protocol):
    """What a trace asks of its ``Tape.governor``, in the mode ``REPLAYABLE`` only."""

    lifetimes: Any
    """While it has to be known what steps need: those of the values of handles."""

    def open(self, tape: Any) -> None:
        """The trace begins."""

    def finish(self) -> None:
        """The user's function has returned."""

    def close(self) -> None:
        """No reverse pass will come."""

    def before_record(
        self, record: tuple[Any, ...], operands: Any, values: Any, params: Any, rerun: Any = None
    ) -> None:
        """``record`` is about to be appended, made from operands with these values (an operand without a handle is an
        :class:`Ident`). A loop brings ``rerun``, the function that runs it again on other values."""

    def before_write(self, root: Any) -> None:
        """The array of a handle is about to be written."""

    def watch(self, handle: Any) -> None:
        """A handle was made."""

    def activated(self, handle: Any) -> None:
        """A handle stands for another value than it did."""

    def bytes_beside(self, held: Any, before: int) -> int:  # noqa: ARG002 - for who counts bytes
        """What variables of the program have from before a record, beside the buffers ``held``."""
        return 0

    def variables(self, held: Any, stays: Any, before: int) -> Any:  # noqa: ARG002 - as above
        """The same one by one (``memory.working_bytes.Variables``); others can reach the buffers ``stays``."""
        return None

    def returned(self, name: str, handle: Any) -> None:
        """A NumPy function that is made of several primitives has returned what the handle stands for."""

    def meet(self) -> None:
        """A value of a trace around this one has come in."""

    def mark(self) -> None:
        """A mark has come that says where steps begin: a loop, marked steps, a checkpoint."""

    @property
    def executes(self) -> bool:
        """Whether what is recorded now is noted in recipes, from which it can be executed again."""

    @property
    def replays(self) -> bool:
        """Whether what is recorded now may be executed again."""

    @property
    def joins(self) -> bool:
        """Whether a loop may be one record now: not where it is decided of its values one by one."""


class Shadow(Protocol):
    """What a trace in the mode ``DEFERRED`` asks of its ``Tape.shadow``."""

    def call(self, prim: Any, operands: tuple[Any, ...], params: Any) -> Any:
        """A primitive is called."""

    def create(self, function: Any, handle: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        """A new array is made that is like the value of a handle."""

    def write(self, handle: Any, region: Any, value: Any, *, add: bool) -> None:
        """Part of a handle's array is written."""

    def mark(self, handle: Any, told: Any, marks: Any) -> bool:
        """A value is marked (``pullback.name``): whether it has been, in the shadow."""

    inlines: ClassVar[bool]
    """Whether what is carried out is recorded by the trace around itself (``calls.InlinedRun``): then that asks more,
    ``meet`` and ``value_kept``."""
    marks: ClassVar[bool]
    """Whether it follows what stands between two marks, whose values of the trace around may be written."""
    nests: ClassVar[bool]
    """Whether its handles may be the values of traces within: then it is asked ``frozen``, too."""

    def capture(self, operand: Any) -> Any:
        """A handle of a trace around this one comes in: what stands for it here."""

    def repeated(self, key: Any, args: Any, kwargs: Any, ordinary: Any) -> Any:
        """A function of NumPy's is called: what ``ordinary`` says, sooner where it has said it before."""

    def resolve(self, view: Any) -> Any:
        """A view is used, which may be stale."""

    def take_over(self, handle: Any, result: Any) -> bool:
        """An operation in place has given an array that the handle may stand for from now on: whether it does."""

    def value(self, handle: Any) -> Any:
        """The value of a handle is asked for."""

    def result(self, handle: Any) -> Any:
        """What kind of value a handle has: its ``spec``, ``strides``, and whether it is an ``array``."""

    def lifted(self, value: Any) -> Any:
        """A plain array becomes one of the step, which may be written to."""

    def surrender(self) -> Any:
        """Something comes that a shadow cannot follow: every handle becomes one of an ordinary trace, which goes on;
        its tape."""


@define(eq=False)
class Marks:
    """The values that a trace has marked: their specs and ids by tag, in forward order, and the tags that loop
    functions mark in their steps. A record tells its id, not which it is among these: else no two steps were alike."""

    specs: dict[str, list[ArraySpec]] = field(factory=dict)
    places: dict[str, "array[int]"] = field(factory=dict)
    in_loops: set[str] = field(factory=set)

    def note(self, tag: str, spec: ArraySpec, ident: int) -> None:
        """A value is marked, by the record with this id."""
        self.specs.setdefault(tag, []).append(spec)
        self.places.setdefault(tag, array("q")).append(ident)


def marks_of(tape: "Tape") -> Marks:
    """What a trace has marked."""
    if tape.marks is None:
        tape.marks = Marks()
    return tape.marks


class Ident:
    """An operand of a record of which only the id is known."""

    __slots__ = ("ident",)

    def __init__(self, ident: int) -> None:
        self.ident = ident


class Tape:
    """Records of one trace, with what the trace knows of itself. ``mode`` is falsy on the hot path and only there.

    It is ``collective`` where a call of a collective primitive has been recorded here, or in a step of a loop: such
    records are pulled back in any case. ``unrecorded`` is the name of a loop while its steps run none of which is
    recorded, since nothing traced enters it. ``agreement`` is that by which ranks agree that record such a trace each.
    If it holds all and only a sweep looks at it, ``objects`` says how many arrays of objects there were when it began
    (``tracing.results_into_operands``), else 0. It ``joins`` the operations of a loop of adopted code in one record
    (``adjoints``) where only a sweep looks at them. ``refused`` is what the last conversion that was refused here said.
    """

    __slots__ = (
        "__weakref__", "adopted", "agreement", "captures", "code", "collective", "constants", "enclosing", "governor",
        "inner", "joins", "kept", "kinds", "ledger", "lent", "level", "marked", "marks", "masks", "mode", "n_inputs",
        "nest", "objects", "outer", "overlapping", "reads", "records", "refused", "regions", "repeatable", "shadow",
        "sites", "stands", "tangents", "telling", "thread", "trap", "unrecorded",
    )  # fmt: skip
    agreement: Any
    lent: tuple[Any, ...]
    """Weak references to arrays that see the memory of buffers (``copies.lent``)."""
    regions: dict[int, Any]
    """The region that was written last at a call site: the next write there is to the same one, as a rule."""
    reads: dict[int, Any]
    """The key of slices that was read at a call site, in a tuple, where the next is equal to it, as a rule."""
    stands: dict[int, Any] | None
    """While a staged function goes on that is not followed: the handles, by id, for which it has frozen ones."""

    def __init__(self, level: int, kinds: Any) -> None:
        self.kinds = kinds
        """The handle classes of this trace (see ``handles.Kinds``)."""
        self.records: list[tuple[Any, ...] | None] = []
        self.mode, self.level = RECORDING, level
        self.adopted: Any = None
        """What stands for plain arrays that adopted code has met, in ``adopting``; None before any."""
        self.thread = get_ident()
        self.outer: Tape | None = None
        """The tape whose handles are values here: then cotangents are handles too."""
        self.n_inputs, self.masks = 0, False
        """Whether some elements were left out (``where``, ``clip``, a mask as a key): their cotangents are 0 and
        stay 0."""
        self.collective, self.joins, self.agreement, self.objects = False, False, None, 0
        self.unrecorded = self.refused = ""
        self.lent = ()
        self.marks: Marks | None = None
        """Which values have been marked by name (``naming.Marks``); None before the first."""
        self.marked: list[Any] = []  # where everything is held: the MarkedSteps of each marked loop
        self.constants: dict[Any, Any] = {}
        """Copies of plain arrays that a pullback reads, by place in memory; shared while equal."""
        self.captures: dict[int, tuple[int, Any]] | None = None
        """What the step of a loop captures: id in the enclosing tape to the id and value that stand for it here."""
        self.nest: Any = None
        """What the loops in a step get of a number of bytes (``loops.functions.loop_bytes.Places``)."""
        self.enclosing: Tape | None = None
        """The tape that the loop is an operation of, where this one is of its step."""
        self.inner: Tape | None = None
        """While CAPTURED: the tape of the step being recorded."""
        self.ledger: Any = None
        self.telling: Any = None
        """What loops of this trace book in what they hold, where that is not the ledger."""
        self.governor: Governor = None  # type: ignore[assignment]  # asked while REPLAYABLE only, and then there is one
        """What decides, while REPLAYABLE, which of the records may be dropped and executed again."""
        self.shadow: Shadow = None  # type: ignore[assignment]  # asked while DEFERRED only, and then there is one
        """What follows the operations while DEFERRED."""
        self.tangents: Any = None
        """While FORWARD: what computes the tangents."""
        self.overlapping: dict[Any, str] = {}
        """Ids of inputs, and ``("array", id)`` of arguments, that may not be written, to the words for two that share
        memory; of a slice of ``xs``, none."""
        self.repeatable = False
        """Whether the reverse pass may be run again (a ``pull`` that stays)."""
        self.trap: Any = None
        """What looks at every result while a trap is in force; the mode is not RECORDING then."""
        self.kept, self.regions, self.reads, self.stands = NOTHING_KEPT, {}, {}, None
        self.code: CodeType | None = None
        """The user's code that made the last record, and the ids of its call sites by instruction offset."""
        self.sites: Sequence[int] = ()

    def meet(self, other: "Tape") -> None:
        """A handle of ``other`` is a value here: cotangents will be handles of the innermost trace met, which meets
        the others."""
        if other.mode == DEFERRED and not other.shadow.nests:
            other = other.shadow.surrender()
        before = self.outer
        if before is None:
            self.outer = other
        elif other is not before:
            inner, around = (other, before) if other.level > before.level else (before, other)
            inner.meet(around)
            self.outer = inner
        if self.mode == REPLAYABLE:
            self.governor.meet()

    def shares_kept(self, other: "Tape") -> None:
        """What was kept here of the copies of another trace is what arrays held of which these were made: who reads
        such an array again finds it."""
        mine: Kept | None = self.kept
        while mine is not None:
            theirs: Kept | None = other.kept
            while theirs is not None and (theirs.copy is None or theirs.copy is not mine.array):
                theirs = theirs.before
            if theirs is not None:
                mine.array = theirs.array
            mine = mine.before

    def keep(self, array: Any) -> Any:
        """A copy of a plain array that a record reads: one for each distinct content."""
        if type(array) is not np.ndarray and hasattr(array, "__pullback_hollow__"):
            key = (array.shape, array.dtype) if array.is_blank else id(array)  # zeros are one content
            return self.constants.setdefault(key, (array, array.copy()))[1]
        if array.nbytes <= SMALL:
            last = self.kept
            if last.array is not array and last.before is not None:
                last = last.before
            found: Any = last.copy
            if (
                last.array is array
                and found.dtype is array.dtype  # it may be set, as the shape may
                and found.shape == array.shape
                and last.data == array.tobytes()
            ):
                return found
            copy = array.copy() if array.flags.c_contiguous else faithful_copy(array)
            last, last.before = self.kept, None
            self.kept = Kept(array, shared_spec(array), array.tobytes(), copy, last)
            return copy
        return shared_copy(self.constants, array)

    def close(self) -> None:
        """End the trace: every later use of one of its handles raises."""
        self.mode, self.constants, self.kept, self.regions, self.reads = CLOSED, {}, NOTHING_KEPT, {}, {}
        if self.adopted is not None:  # its handles are of this trace: a cycle
            self.adopted.close()

    def __repr__(self) -> str:
        return f"<Tape of {len(self.records)} records, level {self.level}, {MODE_NAMES[self.mode]}>"


def recording_of(tapes: Sequence[Tape]) -> tuple[Tape | None, tuple[Tape, ...]]:
    """The innermost that records of the traces under way, of which the innermost is last; and those around it.

    A loop that runs plainly has paused its own; one that is captured records elsewhere. The trace to which a shadow has
    surrendered is asked of the shadow's: it was entered in the context of the call that was not followed, which may be
    over.
    """
    for at in range(len(tapes) - 1, -1, -1):
        found = _stands_for(tapes[at])
        if found.mode not in (PAUSED, CAPTURED, CLOSED):
            return found, tuple(tape for tape in tapes[:at] if _stands_for(tape) is not found)
    return None, ()


def forward_around(tape: Tape | None) -> Tape | None:
    """The forward trace that goes on around a trace which is left alone meanwhile; None where there is none."""
    while tape is not None and tape.mode in (PAUSED, CAPTURED):
        tape = tape.outer
    return tape if tape is not None and tape.mode == FORWARD else None


def _stands_for(tape: Any) -> Any:
    """The trace to which a shadow has surrendered; any other is itself."""
    while tape.mode == CAPTURED and tape.shadow is not None:
        tape = tape.inner
    return tape
