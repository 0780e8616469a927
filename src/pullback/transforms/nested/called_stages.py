"""Makes the stage of such a derivative, once the function is proved to do the same in each call
(``loops.bodies.deterministic_functions``).

The derivative is carried out as a whole on handles without values (``staging.calls.derivative_stages``). Where the
trace around records, active and still leaves enter the stage, and its reverse has cotangents for the active ones. Where
it computes tangents, values and tangents enter. Where nothing is active, all leaves that are not fixed enter, and
nothing is recorded.
"""

from collections.abc import Callable
from itertools import combinations
from types import FunctionType
from typing import Any

import numpy as np
from attrs import define, field

from pullback.loops.bodies.deterministic_functions import Reads, reads_of
from pullback.memory.in_force import Tracing, next_level
from pullback.memory.reverse_sweep import Sweep, sweep
from pullback.recording.copies import faithful
from pullback.recording.crossing import entered
from pullback.recording.handles import SHARED, Handle, kind_of, make, plain_value
from pullback.recording.recorder import INPUT
from pullback.recording.tape import FORWARD, Tape
from pullback.staging.calls.derivative_stages import exits_of
from pullback.staging.calls.hot_runs import Ready
from pullback.staging.calls.known_functions import function_within
from pullback.staging.calls.shortcut_making import carried
from pullback.staging.generated.forward_statements import NotStageableError
from pullback.staging.generated.recorded_steps import require_equal
from pullback.staging.shadow.collective_pulls import draw
from pullback.tracing.tracer import KINDS
from pullback.transforms.nested.call_leaves import ACTIVE, STILL, LeafKind, filled
from pullback.words.undocumented import quiet

MOST_OPERATIONS = 1000
"""The most operations of the derivative: to make a stage takes as long as some hundred runs."""
PLAIN, PUSHED, RECORDED = "plain", "pushed", "recorded"

Derivative = Callable[[Any, list[Any]], list[Any]]
"""A function of a function and its arguments that gives the values of the derivative."""


@define(eq=False)
class Called:
    """The stage of one derivative, with all that has to be as it was."""

    names: dict[str, Any]
    """The globals of the function."""
    parts: tuple[int, ...]
    """How many leaves are defaults, and each cell has, as ``call_leaves.leaves_of`` says."""
    kinds: list[LeafKind]
    reads: Reads
    way: str
    """What becomes of its values: they are recorded, pushed with their tangents, or plain."""
    active: list[int] = field(factory=list)
    """The places of the leaves that are active; of all that enter where none is."""
    still: list[int] = field(factory=list)
    """The places of the leaves that are still; none where no leaf is active."""
    ready: Any = None
    constants: list[Any] = field(factory=list)
    moves: list[bool] = field(factory=list)
    """Which values of the derivative have a tangent, or a place in the record."""
    n_compared: int = 0
    n_served: int = 0
    """Calls since then."""

    @property
    def masks(self) -> bool:
        """Whether the stage masks something."""
        return bool(self.ready.exits.stage.masks)


def made(
    derivative: Derivative, f: FunctionType, n_args: int, parts: tuple[int, ...], leaves: list[Any],
    kinds: list[LeafKind], around: Any,
) -> Called:  # fmt: skip
    """The stage for such a call; raises where there is none."""
    places = {what: [k for k, kind in enumerate(kinds) if kind.what is what] for what in (ACTIVE, STILL)}
    way = PLAIN if not places[ACTIVE] else PUSHED if around.mode == FORWARD else RECORDED
    called = Called(f.__globals__, parts, kinds, _reads(f, n_args, parts, leaves), way, places[ACTIVE], places[STILL])
    if way is PLAIN:
        called.active, called.still = called.still, []
    values = [_plain(x) for x in leaves]

    def program(active: list[Any], still: list[Any]) -> list[Any]:
        filled_in = list(values)
        for k, x in zip([*called.active, *called.still], [*active, *still], strict=True):
            filled_in[k] = x
        function, args = filled(f, n_args, parts, filled_in)
        return derivative(function, args)

    active, still = [values[k] for k in called.active], [values[k] for k in called.still]
    with carried():
        if way is PLAIN:
            exits, called.constants = exits_of(lambda xs: program(xs, []), active, most=MOST_OPERATIONS)
        elif way is PUSHED:
            classes = type(leaves[called.active[0]]._id), type(around.tangents)
            tangents = [leaves[k]._id.value for k in called.active]
            whole = _pushing(program, called, classes)
            exits, called.constants = exits_of(whole, [*active, *still, *tangents], most=MOST_OPERATIONS)
        else:
            one = Ordinary.of(program, active, still)
            called.moves, n = one.moves, len(active)
            exits, called.constants = exits_of(
                lambda xs: program(xs[:n], xs[n:]), [*active, *still], n, called.moves, MOST_OPERATIONS
            )
    if exits.stage.record.reads:
        raise NotStageableError("it looks at values")
    if not called.reads.hold():
        raise NotStageableError("it changes what it reads")
    called.ready = Ready(exits)
    called.constants = list(map(faithful, called.constants))
    if way is PLAIN:
        called.moves = [False] * len(exits.stage.seeded)
    elif way is RECORDED:
        one.require_same(called.ready, [*active, *still], called.constants)
    return called


def _reads(f: FunctionType, n_args: int, parts: tuple[int, ...], leaves: list[Any]) -> Reads:
    """What the function reads from outside besides what is in its cells, where nothing but functions is compared."""
    # Copies, so that an array in a cell is told from one that is read elsewhere as well.
    values = [faithful(_plain(x)) for x in leaves]
    function, _ = filled(f, n_args, parts, values)
    reads = reads_of(function, function_within)
    own = {id(cell) for cell in function.__closure__ or ()}
    entering = {id(x) for x in values if type(x) is np.ndarray}
    reads.cells = [(cell, held) for cell, held in reads.cells if id(cell) not in own]
    reads.arrays = [(array, copy) for array, copy in reads.arrays if id(array) not in entering]
    reads.functions = [one for one in reads.functions if one[0] is not function]
    return reads


def _pushing(program: Any, called: Called, classes: tuple[Any, Any]) -> Callable[[list[Any]], list[Any]]:
    """The program of a forward trace: of values and tangents, to the values, then the tangents of those that have
    one."""
    kind, of_tape = classes
    n, m = len(called.active), len(called.still)

    def whole(xs: list[Any]) -> list[Any]:
        tape = Tape(next_level(), KINDS)
        tape.mode, tape.tangents = FORWARD, of_tape(tape)
        given = []
        for x, t in zip(xs[:n], xs[n + m :], strict=True):
            value = entered(x, tape)
            given.append(make(kind_of(tape, value), value, kind(t), tape, SHARED))
        with Tracing(tape):
            outs = program(given, xs[n : n + m])
        tape.close()
        tape.tangents = None  # a cycle with the tape
        # One without a tangent is plain in the ordinary way, where what it was computed of has a value.
        ours = [isinstance(out, Handle) and out._tape is tape for out in outs]
        called.moves = [mine and out._id is not None for mine, out in zip(ours, outs, strict=True)]
        values = [out._value if mine else out for mine, out in zip(ours, outs, strict=True)]
        return values + [out._id.value for moving, out in zip(called.moves, outs, strict=True) if moving]

    return whole


def _plain(leaf: Any) -> Any:
    """The value of an active leaf; a still or fixed one as it is."""
    return plain_value(leaf._value) if isinstance(leaf, Handle) else leaf


@define(eq=False)
class Ordinary:
    """One run of the derivative in a trace of its own, in the ordinary way: what the stage is compared with."""

    tape: Tape
    outs: list[Any]
    n_active: int

    @classmethod
    def of(cls, program: Any, active: list[Any], still: list[Any]) -> "Ordinary":
        """The run at these leaves."""
        tape = Tape(next_level(), KINDS)
        given = []
        for x in active:
            given.append(make(kind_of(tape, x), faithful(x), len(tape.records), tape, SHARED))
            tape.records.append((INPUT.opcode, 0))
        tape.n_inputs = len(given)
        with quiet(), Tracing(tape):
            outs = program(given, list(map(faithful, still)))
        tape.close()
        return cls(tape, outs, len(given))

    @property
    def moves(self) -> list[bool]:
        """Which of the values are values of the trace."""
        found = [isinstance(out, Handle) for out in self.outs]
        if any(moving and out._id is None for moving, out in zip(found, self.outs, strict=True)):
            raise NotStageableError("a value of the trace that depends on nothing")
        return found

    def require_same(self, ready: Ready, entering: list[Any], constants: list[Any]) -> None:
        """The stage has to give the values, and for drawn seeds the cotangents; what it gives is part of nothing
        else."""
        stage = ready.exits.stage
        with quiet():
            values, slots = ready.forward(entering, (), constants)
        plain = [plain_value(out._value) if isinstance(out, Handle) else out for out in self.outs]
        require_equal(values, plain, "the derivative")
        arrays = [x for x in (*entering, *constants, *values) if type(x) is np.ndarray]
        if any(np.may_share_memory(x, y) for x, y in combinations(arrays, 2) if any(y is v for v in values)):
            raise NotStageableError("a value that is part of another one")
        random = np.random.default_rng(0)
        seeds = [draw(random, spec) for spec in stage.specs]
        if not seeds:
            return
        one = Sweep([None] * len(self.tape.records))
        moving = [out._id for out in self.outs if isinstance(out, Handle)]
        for ident, seed in zip(moving, seeds, strict=True):
            one.cts[ident] = seed.copy()
        sweep(self.tape, self.tape.n_inputs, len(self.tape.records), (one,))
        with quiet():
            found = ready.reverse(slots, seeds)[0]
        wanted = [ct for ct in one.cts[: self.n_active] if ct is not None]
        if [ct is not None for ct in one.cts[: self.n_active]] != list(stage.entered):
            raise NotStageableError("other cotangents")
        require_equal(found, wanted, "the cotangents")
