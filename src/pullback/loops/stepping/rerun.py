"""Where a step of a loop function runs, and runs again: the user's body is called, on plain arrays to advance, on
tracers to record."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import compress
from sys import getrefcount
from types import CellType
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np
from attrs import define, field

from pullback.loops.bodies.surroundings import OnValues
from pullback.loops.stepping.held_steps import StepTape, exits_of
from pullback.loops.stepping.replay_check import Verifier
from pullback.loops.stepping.stacked_outputs import Outputs
from pullback.memory.in_force import Enclosed, next_level, recorded
from pullback.memory.ledger import Ledger, record_items
from pullback.memory.reverse_sweep import Releasing
from pullback.memory.working_bytes import Lifetimes
from pullback.policies.save_all import SaveAll
from pullback.programs.plain.plain_code import PlainCode
from pullback.programs.replay.recipes import Calls
from pullback.recording.copies import RETURNED, copy_kept, separate
from pullback.recording.crossing import by_value, movable, present, writable_leaf
from pullback.recording.handles import Handle, active_id, is_apart, is_foreign, resolve, twin_of
from pullback.recording.tape import CAPTURED, REPLAYABLE, Tape, forward_around
from pullback.recording.traps import TRAPPED, sentinel
from pullback.rules.forms import FORMS
from pullback.tracing.running import open_input, released_governor
from pullback.tracing.tracer import KINDS
from pullback.words.errors import StructureError, TracerError
from pullback.words.foreign_operands import ORDINARY, plain_parts
from pullback.words.specs import carries_derivative, native, spec_of
from pullback.words.structures import LEAF, NOTHING, flatten, flattened, is_flat, unflatten
from pullback.words.undocumented import HELD


def plain_leaves(leaves: list[Any]) -> list[Any]:
    """The leaves of a state as plain arrays where they are other arrays: tracers, and what is no array, as they are."""
    for leaf in leaves:
        if type(leaf) not in ORDINARY and not isinstance(leaf, Handle):
            return [plain_parts(leaf) for leaf in leaves]
    return leaves


@define(eq=False)
class LoopSteps:
    """The steps of a loop, counted from 0 (the user's numbers begin at ``lower``). ``enclosing`` is the trace that the
    loop is an operation of."""

    name: str
    """The name of the loop function, for messages."""
    call: Callable[[Any, Any, Any], tuple[Any, Any]]
    """The user's body: ``call(k, carry, x)`` returns ``(carry, y)``."""
    definition: Any
    """The structure of the carry."""
    cells: list[CellType]
    """The cells of the body's closure that hold handles."""
    enclosing: Tape | None
    ledger: Ledger
    outputs: Outputs
    verifier: Verifier
    lower: int = 0
    xs: list[Any] | None = None
    x_active: list[bool] = field(factory=list)  # which leaves of ``xs`` depend on the inputs of the enclosing trace
    flat: bool = field(init=False)  # whether the carry is a tuple of leaves
    y_definition: Any = field(default=None, init=False)
    readable: dict[int, Any] = field(factory=dict, init=False)
    """What the body closes over, by id in the enclosing trace: captured, whichever step is the first to read it."""
    captured_values: dict[int, Any] = field(factory=dict, init=False)  # this, and what step 0 captured besides
    captured_specs: dict[int, Any] | None = field(default=None, init=False)
    """The specs of these; None before step 0 has run."""
    reads: set[int] = field(factory=set, init=False)  # those that recorded steps have read
    staging: Any = field(default=None, init=False)  # who may record steps in another way (``staged_steps``)
    lifetimes: Lifetimes | None = field(default=None, init=False)  # of values of step 0, where the policy counts bytes
    collective: bool = field(default=False, init=False)  # whether a step has called such a primitive
    nest: Any = field(default=None, init=False)  # what loops in the steps get of a number of bytes (``nests.Nest``)
    within: Any = field(default=None, init=False)  # what decides which values of a step are kept; None for all
    calls: Calls = field(factory=partial(Calls, may_miss=True), init=False)
    """What steps of which some values are kept have in common."""
    constants: WeakValueDictionary[Any, Any] = field(factory=WeakValueDictionary, init=False)
    """Copies of plain arrays that steps read, shared by the tapes that hold them and gone with them."""

    def __attrs_post_init__(self) -> None:
        self.flat = is_flat(self.definition)

    def plain(self, k: int, state: list[Any]) -> list[Any]:
        """The state after step ``k``, computed on plain arrays without recording."""
        row = None if self.xs is None else self.row(k)
        if (around := forward_around(self.enclosing)) is not None:  # tangents are computed of what the body writes
            state = [movable(leaf, around) for leaf in state]
        if row is not None and True in self.x_active:  # on tracers a write to it is refused: here nobody would see it
            row = [twin_of(x) if active else x for x, active in zip(row, self.x_active, strict=True)]
        return self._after(k, state, self.called(k + self.lower, state, row))

    def _after(self, k: int, state: list[Any], returned: tuple[Any, Any]) -> list[Any]:
        """The state after step ``k``, of which the body has returned this, which nobody else has."""
        new, ys = self._one_leaf(*returned) or self.leaves_of(k + self.lower, *returned)
        if max(map(getrefcount, new), default=0) > RETURNED:
            copy_kept(new, state)
        if goes_on(state, new):
            if ys:
                ys = [by_value(leaf) if isinstance(leaf, Handle) else leaf for leaf in ys]
                self.outputs.write(k, ys)
            if self.verifier.compares:
                self.verifier.after(k, new, ys)
            return new
        new = [by_value(leaf) if isinstance(leaf, Handle) else leaf for leaf in new]
        self.require_same_specs(state, new, k)
        ys = [by_value(leaf) if isinstance(leaf, Handle) else leaf for leaf in ys]
        self.outputs.write(k, ys)
        new = as_before(state, new)
        self.verifier.after(k, new, ys)
        return separate(new)

    def advance(self, k: int, stop: int, state: list[Any]) -> None:
        """Put in the place of ``state`` that after the steps ``k .. stop-1``, computed as by ``plain``. Of a state that
        is one array, which each step makes anew, a re-run compares the one that it reaches."""
        call, lower, verifier, ledger = self.call, self.lower, self.verifier, self.ledger
        alone = self.xs is None and self.y_definition is NOTHING and self.definition is LEAF
        if not alone or type(state[0]) is not np.ndarray or forward_around(self.enclosing) is not None:
            for step in range(k, stop):
                state[:] = self.plain(step, state)
                ledger.n_forward += 1
            return
        shape, dtype, array, last = state[0].shape, state[0].dtype, np.ndarray, stop - 1
        told = 0 if verifier.stride > 1 else min(verifier.n_seen, last) if verifier.compares else stop
        notes = verifier.notes_alone(k, stop, state[0])
        for step in range(k, stop):
            new, y = call(step + lower, state[0], None)
            plain = y is None and type(new) is array and new.base is None and new.dtype is dtype and new.shape == shape
            if plain and new.flags.writeable and (getrefcount(new) <= HELD or new is state[0]):
                if notes is not None and new.flags.c_contiguous:
                    notes(new)
                elif step >= told:
                    verifier.after(step, [new], [])
                state[0] = new
            else:
                state[:] = self._after(step, state, (new, y))
            ledger.n_forward += 1

    def recorded(self, k: int, state: list[Any]) -> tuple[StepTape, list[Any]]:
        """Step ``k`` on tracers: its tape, and the state after it."""
        state = writable(state)
        if self.staging is not None and (self.staging.takes(k) if k else self.staging.begins(state)):
            staged: tuple[StepTape, list[Any]] = self.staging.recorded(k, state)
            return staged
        tape = self.opened(k)
        handles = [open_input(tape, leaf) if carries_derivative(leaf) else leaf for leaf in state]
        row = self.row(k)
        x_handles = row and [
            open_input(tape, leaf) if active else leaf for leaf, active in zip(row, self.x_active, strict=True)
        ]
        tape.n_inputs = len(tape.records)
        # before the body writes to them
        entered, x_entered = ([active_id(h, tape) for h in part] for part in (handles, x_handles or ()))
        tape.overlapping = {i: "" for i in x_entered if i is not None}
        with Releasing(tape):
            with Enclosed(self.enclosing, CAPTURED, tape):
                parts = self.call_body(k + self.lower, handles, x_handles)
                new, ys = ([returned_by(leaf, tape) for leaf in part] for part in parts)
            return self.finished(k, tape, (entered, x_entered), (new, ys), state)

    def finished(
        self, k: int, tape: Tape, entered: tuple[list[Any], list[Any]], parts: tuple[list[Any], list[Any]],
        state: list[Any],
    ) -> tuple[StepTape, list[Any]]:  # fmt: skip
        """What is held of a step that was run on ``tape``, which returned ``parts``, and the state after it."""
        self._require_known(tape, k)
        step = StepTape(tape, *entered, exits_of(parts[0], tape), exits_of(parts[1], tape), xs=self.xs or ())
        governor = tape.governor if self.within is not None else None
        if isinstance(governor, PlainCode):
            governor.end()
        tape.close()
        values, y_values = (
            [leaf._value if isinstance(leaf, Handle) and leaf._tape is tape else leaf for leaf in part]
            for part in parts
        )
        self.require_same_specs(state, values, k)
        self.outputs.write(k, y_values)
        if k == 0 or self.ledger.heard:  # the policy is told the size of step 0
            step.items = record_items(tape.records)
        if k == 0 and any(FORMS[record[0]].wide and not FORMS[record[0]].steps for record in tape.records if record):
            self.staging = None  # a loop of adopted code is one record: on handles without values it would be many
        values = as_before(state, values)
        self.verifier.after(k, values, y_values)
        if isinstance(governor, PlainCode):  # its own replay compares what it has read
            step.governor = released_governor(tape)
        else:
            self.verifier.recorded(k, tape.records)
        return step, values

    def on_values(self) -> OnValues:
        """Within the block the cells of the closure hold values in the place of handles, so that the body runs at
        NumPy's own speed.

        Those of a trace that goes on meanwhile, around the one that the loop is an operation of, stay: it
        differentiates what is computed.
        """
        return OnValues(self.cells)

    def call_body(self, k: int, leaves: list[Any], x: Any) -> tuple[list[Any], list[Any]]:
        """The leaves after a step, and those of its output. Raises :class:`StructureError` where a structure
        changes."""
        return self.leaves_of(k, *self.called(k, leaves, x))

    def called(self, k: int, leaves: list[Any], x: Any) -> tuple[Any, Any]:
        """What the user's body returns: the carry after a step, and its output."""
        return self.call(k, self.carry_of(leaves), x)

    def carry_of(self, leaves: Sequence[Any]) -> Any:
        """These leaves in the structure of the carry."""
        return tuple(leaves) if self.flat else unflatten(self.definition, leaves)

    def _one_leaf(self, carry: Any, y: Any) -> tuple[list[Any], list[Any]] | None:
        """As ``leaves_of``, where the carry is a plain array and there is no output; else None."""
        found = y is None and type(carry) is np.ndarray and self.definition is LEAF and self.y_definition is NOTHING
        return ([carry], []) if found else None

    def leaves_of(self, k: int, carry: Any, y: Any) -> tuple[list[Any], list[Any]]:
        """The leaves of what it has returned from step ``k``. Raises :class:`StructureError` where a structure
        changes."""
        new, definition = flattened(carry, self.definition) if self.flat else flatten(carry)
        if definition is not self.definition and definition != self.definition:
            raise StructureError(
                f"{self.name}: the carry had structure {self.definition} and step {k} returned {definition}; return "
                f"what came in, same structure"
            )
        if y is None and self.y_definition is NOTHING:
            return plain_leaves(new), []
        ys, y_definition = flatten(y)
        if self.y_definition is None:
            self.y_definition = y_definition
        elif y_definition is not self.y_definition and y_definition != self.y_definition:
            raise StructureError(
                f"{self.name}: step {k} returned a per-step output of structure {y_definition}, earlier steps "
                f"{self.y_definition}; return one structure from every step"
            )
        return plain_leaves(new), plain_leaves(ys)

    def require_same_specs(self, before: list[Any], after: list[Any], k: int) -> None:
        """Raise :class:`StructureError` where a leaf of the carry changes shape or dtype; a Python number may become
        what NumPy makes of it."""
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            if type(new) is type(old) is np.ndarray:
                if new.shape == old.shape and new.dtype == old.dtype:
                    continue
            elif not hasattr(old, "dtype") and np.shape(old) == getattr(new, "shape", ()):
                continue
            spec, wanted = spec_of(new), spec_of(old)
            if spec != wanted:
                raise StructureError(
                    f"{self.name}: leaf {number} of the carry is {wanted} before step {k} and {spec} after it; "
                    "a loop's carry keeps shape and dtype. Convert the initial value, or the result with .astype"
                )

    def place(self, k: int) -> str:
        """A step, for messages."""
        return f"step {k} of {self.name}"

    def row(self, k: int) -> list[Any] | None:
        return None if self.xs is None else [leaf[k] for leaf in self.xs]

    def taken(self, k: int, n: int, returned: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """The ``n`` leaves of the state and the outputs among what step ``k`` returned, which are written."""
        if ys := returned[n:]:
            self.outputs.write(k, ys)
        return returned[:n], ys

    def entered(self, k: int, handles: Sequence[Any] = ()) -> tuple[list[Any] | None, list[Any]]:
        """What the body gets for the row of step ``k``, with handles for the leaves that are differentiated by; and the
        values of these."""
        row = self.row(k)
        if row is None or True not in self.x_active:
            return row, []
        values, left = list(compress(row, self.x_active)), iter(handles)
        return [next(left, None) if active else x for x, active in zip(row, self.x_active, strict=True)], values

    def opened(self, k: int) -> Tape:
        """The tape of a step. While a trap is in force nothing on it takes the fast way: its values are looked at."""
        enclosing = self.enclosing
        tape = Tape(max(next_level(), enclosing.level + 1 if enclosing is not None else 1), KINDS)
        tape.captures, tape.enclosing = {}, enclosing
        tape.constants = self.constants  # type: ignore[assignment]  # a mapping is all that is asked of it
        tape.ledger, tape.outer = self.ledger, enclosing.outer if enclosing is not None else None
        tape.joins = enclosing is not None and enclosing.joins and self.within is None
        tape.nest = self.nest and self.nest.places()
        if TRAPPED.get():
            tape.trap = sentinel(self.place(k), enclosing.trap if enclosing is not None else None)
        if TRAPPED.get() or self.lifetimes is not None:
            tape.mode = REPLAYABLE
            tape.governor = PlainCode(SaveAll(), self.ledger, repeatable=False, marked=True, lifetimes=self.lifetimes)
        if self.within is not None and not recorded(tape.outer):
            tape.mode = REPLAYABLE
            tape.governor = PlainCode(
                self.within, self.ledger, repeatable=False, calls=self.calls, lifetimes=self.lifetimes
            )
            tape.governor.open(tape)
        return tape

    def _require_known(self, tape: Tape, k: int) -> None:
        """Step 0 tells what is captured, and which traces around will reverse it too; a later step may add nothing."""
        captures, enclosing = tape.captures or {}, self.enclosing
        if self.captured_specs is None:
            self.begins_with({i: value for i, (_, value) in captures.items()}, masks=tape.masks)
        else:
            self.require_captures(captures, k)
            if enclosing is not None and recorded(tape.outer) and not recorded(enclosing.outer):
                raise self._unknown(k)
        self.collective |= tape.collective
        if enclosing is not None:
            enclosing.collective |= tape.collective
            if tape.outer is not None:
                enclosing.meet(tape.outer)

    def begins_with(self, captured: dict[int, Any], *, masks: bool) -> None:
        """Step 0 has captured these values, by their ids; ``masks`` says that it has left elements out."""
        self.reads |= captured.keys()
        self.captured_values = known = self.readable | captured
        self.captured_specs = {i: spec_of(x) if hasattr(x, "dtype") else None for i, x in known.items()}
        if self.enclosing is not None:
            self.enclosing.masks |= masks  # of step 0 alone: what is known at the end, under every policy

    def require_captures(self, captures: Iterable[int], k: int) -> None:
        """Raise :class:`TracerError` where step ``k`` captures a value that step 0 did not."""
        self.reads |= {*captures}
        if not (self.captured_specs or {}).keys() >= self.reads:
            raise self._unknown(k)

    def _unknown(self, k: int) -> TracerError:
        return TracerError(
            f"{self.name}: step {k} uses a traced value of an object, which step 0 did not use, so no cotangent was "
            "kept; give it a name before the loop (k = model.k) and read that, or make it part of the loop's state"
        )


def value_for(leaf: Any, tape: Tape | None) -> Any:
    """What a leaf is within the steps of a loop in the trace ``tape``."""
    if isinstance(leaf, Handle) and resolve(leaf)._tape is tape:
        return leaf._value
    return native(leaf)


def writable(leaves: list[Any]) -> list[Any]:
    """The leaves for a body that gets handles: other arrays are copied, since the body may write to them."""
    if not any(isinstance(leaf, np.ndarray) and not carries_derivative(leaf) for leaf in leaves):
        return leaves
    return [leaf if carries_derivative(leaf) else twin_of(leaf) for leaf in leaves]


_NUMBERS: Final = frozenset((float, int, bool, complex, np.float64, np.float32, np.int64, np.complex128))
"""Types of numbers, each of which has one spec."""


def goes_on(before: list[Any], after: list[Any]) -> bool:
    """Whether the leaves after a step are as the next one takes them: plain arrays that own their memory, each its own,
    of the shape and dtype of those before, and numbers of the types of those before."""
    if len(before) != len(after):
        return False
    n_arrays = 0
    for old, new in zip(before, after, strict=True):
        kind = type(new)
        if kind is not type(old):
            return False
        if kind is np.ndarray:
            if new.base is not None or not new.flags.writeable or new.shape != old.shape or new.dtype != old.dtype:
                return False
            n_arrays += 1
        elif kind not in _NUMBERS:
            return False
    return n_arrays < 2 or len({id(new) for new in after if type(new) is np.ndarray}) == n_arrays


def as_before(before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """The leaves after a step, as the next may write to them; a Python float stays one: a tracer over it gives float64,
    which would promote float32 in a later step."""
    return [
        float(new) if type(old) is float and type(new) is np.float64 else new if is_apart(new) else writable_leaf(new)
        for old, new in zip(before, after, strict=True)
    ]


def returned_by(leaf: Any, tape: Tape) -> Any:
    """A leaf that a recorded step has returned, as it is to the tape of the step; a view derived."""
    result = present(leaf, tape) if is_foreign(leaf, tape) else leaf
    return resolve(result) if isinstance(result, Handle) else result
