"""``staged``: a function that is called often on arguments of equal kinds, computed by generated functions wherever it
is differentiated."""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from sys import _getframe
from threading import get_ident
from typing import Any, TypeVar
from weakref import WeakValueDictionary, ref

import numpy as np
from attrs import define, field

from pullback.memory.in_force import (
    Tracing,
    innermost_alone,
    planned,
    recording_alone,
    staging_in_force,
    threads_in_force,
)
from pullback.recording.crossing import present
from pullback.recording.handles import Handle
from pullback.recording.recorder import hold
from pullback.recording.tape import FORWARD, RECORDING, Tape
from pullback.recording.traps import TRAPPED
from pullback.staging.calls.call_excerpt import excerpt_of
from pullback.staging.calls.call_record import MOST_IDLE, Exits
from pullback.staging.calls.derivative_calls import pushed_call
from pullback.staging.calls.hot_runs import HotRun, OpenRuns, Ready, kinds_of
from pullback.staging.calls.inlined_run import InlinedRun, InlinedTwins, entered_as, is_stale, unstageable
from pullback.staging.generated.forward_statements import NotStageableError
from pullback.staging.generated.generated import UnderWay, begun, computed, errors_are_ordinary
from pullback.staging.generated.shelf import Shelf, Variants, shelf_of
from pullback.staging.generated.stages import Stage
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.shadow.quick_operators import KnownStep
from pullback.staging.shadow.valueless import VALUELESS
from pullback.tracing.tracer import View
from pullback.travelling.made_functions import made
from pullback.words.call_sites import find_site
from pullback.words.errors import StructureError
from pullback.words.structures import LEAVES, flatten, unflatten

F = TypeVar("F", bound=Callable[..., Any])
MOST_KINDS = 64
"""The most kinds of arguments of which anything is remembered."""
_PLAIN = frozenset((np.ndarray, np.float64, np.float32, float))


def staged(f: F | None = None, *, staging: str | None = None, threads: int | None = None) -> Any:
    """``f``, whose gradient is computed by generated functions from the second call on arguments of equal kinds on,
    with the same bits.

    Called plainly it runs ``f``. Called where something is differentiated it runs ``f`` on handles without values,
    which compare each operation with what is known, as in the steps of a loop; then generated functions compute it.
    Where an operation is another one, the same call goes on as if the decorator were not there. Kinds are shape, dtype
    and strides of traced values; all else may change, as the operations say. A warm ``grad`` or ``jvp`` does not run
    ``f`` where its bytecode shows that it does the same again (docs/staged-functions.md).

    Parameters
    ----------
    f
        Any function; a traced value may leave it by ``return`` alone. Without it a decorator with these settings is
        returned.
    staging
        ``"auto"``, ``"off"`` or the name of a backend (default: that of :func:`using`, else ``"auto"``).
    threads
        Among how many threads large arrays are divided (default: that of :func:`using`, else 1).

    Returns
    -------
    A function of the arguments of ``f``.

    Raises
    ------
    StructureError
        For what is no function.
    PolicyError
        For another word of ``staging``, and fewer threads than 1.
    TracerError
        Where a value is used that left ``f`` another way.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> @pb.staged
    ... def potential(q):
    ...     return 0.5 * np.dot(q, q) + q[0] ** 2 * q[1]
    >>> [pb.grad(potential)(np.array([1.0, k])).tolist() for k in range(3)]
    [[1.0, 1.0], [3.0, 2.0], [5.0, 3.0]]
    """
    if f is None:
        return partial(staged, staging=staging, threads=threads)
    if not callable(f):
        raise StructureError(f"staged takes a function, got {type(f).__name__}; write @pullback.staged above a def")
    known = StagedFunction(f, None if staging is None else staging_in_force(staging), shelf_of(f))
    known.threads = None if threads is None else threads_in_force(threads)

    @wraps(f)
    def called(*args: Any, **kwargs: Any) -> Any:
        return known.call(args, kwargs)

    function = made("staged", f, called, staging=staging, threads=threads)
    vars(function)["__pullback_staged__"] = known
    known.itself = ref(function)
    return function


def staged_alone(f: Callable[..., Any]) -> "StagedFunction":
    """What is known of the calls of ``f``, which is nothing, for whoever calls it in the place of ``f``."""
    return StagedFunction(f, None, Shelf())


@define(eq=False)
class StagedFunction:
    """A function with what is known of its calls."""

    f: Callable[..., Any]
    staging: str | None
    shelf: Shelf
    threads: int | None = field(default=None, init=False)
    itself: Any = field(default=None, init=False)
    """The function that users have, held weakly: what wraps that has its attributes, and is another."""
    by_kinds: dict[Any, Variants] = field(factory=dict, init=False)
    """What is known, by what enters."""
    exits: dict[Stage, Exits] = field(factory=dict, init=False)
    idle: list[tuple[InlinedRun, dict[Stage, Workspace]]] = field(factory=list, init=False)
    """Runs that are not under way, with what the functions of the stages work in."""
    derivatives: dict[Any, Any] = field(factory=dict, init=False)
    """What is known of derivatives within others, by their kind and what enters."""
    open_runs: OpenRuns = field(factory=OpenRuns, init=False)
    """Runs that serve one call after another, by the derivative that is asked for."""
    warm: Any = field(default=None, init=False)
    """The shortcuts of its gradients and tangents, once such are asked for."""
    constants: WeakValueDictionary[Any, Any] = field(factory=WeakValueDictionary, init=False)
    """Copies of plain arrays that calls read, shared while somebody holds them."""

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``f(*args, **kwargs)``."""
        tape = recording_alone()
        if tape is None and not kwargs:
            around = innermost_alone()
            if around is not None and around.mode == FORWARD and around.thread == get_ident():
                pushed = pushed_call(self, around, args)
                if pushed is not None:
                    return pushed[0]
        if tape is None or staging_in_force(self.staging) == "off" or tape.thread != get_ident() or TRAPPED.get():
            return self.f(*args, **kwargs)
        definition = None
        if not kwargs and all(type(arg) in LEAVES or isinstance(arg, Handle) for arg in args):
            leaves: Sequence[Any] = args
        else:
            leaves, definition = flatten((args, kwargs))
        found = traced_among(leaves, tape)
        if found is None or not errors_are_ordinary() or planned() is not None:
            return self.f(*args, **kwargs)
        given, key = found
        variants = self.variants(key)
        if variants.over:
            return self.f(*args, **kwargs)
        return self._run(tape, leaves, definition, given, variants)

    def variants(self, key: Any) -> Variants:
        """What is known of calls that values of these kinds enter."""
        found = self.by_kinds.get(key)
        if found is None:
            if len(self.by_kinds) >= MOST_KINDS:
                self.by_kinds.clear()
            found = self.by_kinds[key] = self.shelf.of(("function", key))
        return found

    def opened(
        self, tape: Tape, args: Sequence[Any], places: Sequence[int], given: list[Any], variants: Variants
    ) -> Any:
        """A run for a call in the trace ``tape`` that is made for it; None where an argument is a structure."""
        kinds = kinds_of(args, places)
        if kinds is None:
            return None
        run, works = self.taken()
        known = [stage.known for stage in variants.stages]
        return HotRun(tape, given, places, kinds, variants, variants.stages, known, run, works)

    def closed(self, hot: HotRun, variants: Variants) -> None:
        """An open run ends after all."""
        self.ended(hot.run, variants, whole=True)
        self.put_back(hot.run, hot.works)

    def followed(self, hot: HotRun, args: Sequence[Any], values: list[Any], variants: Variants) -> Any:
        """One call in a trace of its own: exits, values and slots where it was followed, else None, and what the
        function has returned in that trace. Where the run ``stays``, whoever called puts it back or closes it."""
        run, works, tape, given = hot.run, hot.works, hot.tape, hot.given
        whole = hot.stays = False
        hot.computes = partial(self._begun, run, works, variants)
        try:
            parts = hot.returned_by(self.f, args, values, partial(self.parts_of, run=run))
            if parts is None:
                if hot.ready is None:
                    hot.ready = Ready(self.exits_of(run, variants))
                whole, found = True, hot.ready.forward(run.inputs, run.values, run.constants)
                hot.stays = hot.over()
                return hot.ready.exits, *found
            returned, definition = parts
            if run.following is not None and definition is None:
                exits, whole = self.exits_of(run, variants), True
                returned.clear()
                found = self._values(run, works, exits)
                hot.stays = hot.over()
                return exits, *found
            ids = [handle._id for handle in given]
            if run.following is not None:
                leaves = self._computed(tape, run, works, variants, ids, returned)
            else:
                leaves = self._recorded(tape, run, variants, ids, len(given), returned)
            return None, leaves[0] if definition is None else unflatten(definition, leaves), None
        finally:
            if not hot.stays:
                self.ended(run, variants, whole=whole)
                self.put_back(run, works)

    def _run(self, tape: Tape, leaves: Sequence[Any], definition: Any, given: list[Any], variants: Variants) -> Any:
        run, works = self.taken()
        run.tape.thread = get_ident()
        start, ids = len(tape.records), [handle._id for handle in given]
        known = [stage.known for stage in variants.stages]
        run.enters(tape, tape.level + 1, known, given, partial(self._begun, run, works, variants))
        whole = False
        try:
            own: dict[int, Any] = {}
            for handle in given:
                own[id(handle)] = run.stands[handle._id] = run.enter(handle._value, entered_as(handle))
            taken = [own.get(id(leaf), leaf) for leaf in leaves]
            with Tracing(run.tape):
                returned, out_definition = self.returned_by(taken, definition, run, self.f)
            if run.following is not None:
                found, whole = self._computed(tape, run, works, variants, ids, returned), True
                own.clear()
                returned.clear()
                taken.clear()
            else:
                found = self._recorded(tape, run, variants, ids, start, returned)
        finally:
            self.ended(run, variants, whole=whole)
            self.put_back(run, works)
        return found[0] if out_definition is None else unflatten(out_definition, found)

    def taken(self) -> tuple[InlinedRun, dict[Stage, Workspace]]:
        """A run that is not under way."""
        try:
            return self.idle.pop()
        except IndexError:
            return self._new_run(), {}

    def put_back(self, run: InlinedRun, works: dict[Stage, Workspace]) -> None:
        """A run is over."""
        if len(self.idle) < MOST_IDLE:
            self.idle.append((run, works))

    def _new_run(self) -> InlinedRun:
        tape = Tape(1, VALUELESS)
        tape.captures = {}
        tape.constants = self.constants  # type: ignore[assignment]  # a mapping is all that is asked of it
        return InlinedRun(tape, InlinedTwins(_no_tape, 0))

    def returned_by(
        self, taken: Sequence[Any], definition: Any, run: InlinedRun, call: Callable[..., Any]
    ) -> tuple[list[Any], Any]:
        """What ``f`` returns, its leaves, and its structure; None for a single one. ``call`` is ``f``, or carries it
        out."""
        if definition is None:
            return self.parts_of(call(*taken), run)
        args, kwargs = unflatten(definition, taken)
        out = call(*args, **kwargs)
        _require_unchanged(args, kwargs, taken, definition)
        return self.parts_of(out, run)

    def parts_of(self, out: Any, run: InlinedRun) -> tuple[list[Any], Any]:
        """The leaves of what ``f`` has returned, and their structure, as in ``returned_by``; the run is told."""
        out_definition = None
        if isinstance(out, Handle):
            returned = [out]
        else:
            returned, out_definition = flatten(out)
        if not run.surrendered:
            returned = [present(leaf, run.tape) if isinstance(leaf, Handle) else leaf for leaf in returned]
            if not run.ends(returned, []):
                run.finish(returned, [])
        return returned, out_definition

    def ended(self, run: InlinedRun, variants: Variants, *, whole: bool) -> None:
        """The run is over, however it ended."""
        if run.following is not None and any(stage.known is run.following and stage.masks for stage in variants.stages):
            run.masked = True
        run.leaves(whole=whole)

    def _computed(
        self, tape: Tape, run: InlinedRun, works: dict[Stage, Workspace], variants: Variants, ids: list[int],
        leaves: list[Any],
    ) -> list[Any]:  # fmt: skip
        """The call has done what is known: it is computed, and is one record, which holds what its slots have."""
        exits = self.exits_of(run, variants)
        if not exits.stage.record.reads:
            self._hold(run, exits.stage)
        values, slots = self._values(run, works, exits)
        tape.mode, site = RECORDING, find_site(tape, _getframe(3))
        found = exits.recorded(tape, [*ids, *run.captured], values, slots, run.outside, site)
        return [leaf if handle is None else handle for leaf, handle in zip(leaves, found, strict=True)]

    def _begun(self, run: InlinedRun, works: dict[Stage, Workspace], variants: Variants, known: KnownStep) -> UnderWay:
        """A call that does what is known, and in which values are read: computed up to these."""
        [stage] = [stage for stage in variants.stages if stage.known is known]
        self._hold(run, stage)
        work = works.setdefault(stage, Workspace())
        return begun(stage.record, run.inputs, run.values, run.constants, *work.of(stage.record))

    def _hold(self, run: InlinedRun, stage: Stage) -> None:
        """Later writes to arguments that slots have go into a copy."""
        for k, held in enumerate(stage.held):
            if held:
                run.inputs[k] = hold(run.outside[k], run.inputs[k], run.eager.opened())

    def exits_of(self, run: InlinedRun, variants: Variants) -> Exits:
        """The exits of the stage that was followed."""
        for stage in variants.stages:
            if stage.known is run.following:
                break
        exits = self.exits.get(stage)
        if exits is None:
            exits = self.exits[stage] = Exits(stage, self.threads)
        return exits

    def _values(self, run: InlinedRun, works: dict[Stage, Workspace], exits: Exits) -> tuple[Any, Any]:
        stage = exits.stage
        if stage.record.reads:
            values, slots = run.next_part()
            return values, slots
        work = works.get(stage)
        if work is None:
            work = works[stage] = Workspace(threads=self.threads)
        values, slots = computed(stage.record, run.inputs, run.values, run.constants, *work.of(stage.record))
        return values, slots

    def _recorded(
        self, tape: Tape, run: InlinedRun, variants: Variants, ids: list[int], start: int, leaves: list[Any]
    ) -> list[Any]:
        """The call has been recorded as if the function were not staged: a stage may be made of it."""
        own = tape.masks or run.tape.masks
        run.require_unwritten()
        found = [run.twin(leaf) for leaf in leaves]
        why = run.why or unstageable(found, run.outside)
        if why:
            variants.failed(why)
        elif not variants.over:
            try:
                step = excerpt_of(tape, run, ids, start, found, masks=own)
            except NotStageableError as error:
                variants.failed(str(error))
            else:
                variants.learn(step)
        return found


def _no_tape() -> Tape:
    raise AssertionError("the twins of a function are in the trace around")


def traced_among(leaves: Sequence[Any], tape: Tape) -> tuple[list[Any], Any] | None:
    """The handles among the arguments, each once, and the kinds of their values; None where the function has to be
    called as it is."""
    given: list[Any] = []
    key: list[Any] = []
    for leaf in leaves:
        if not isinstance(leaf, Handle):
            continue
        if leaf._tape is not tape or leaf._id is None or (type(leaf) is View and is_stale(leaf)):
            return None
        if any(leaf is other for other in given):
            continue
        if any(leaf._id == other._id for other in given):
            return None
        value = leaf._value
        kind = type(value)
        if kind is np.ndarray:
            key.append((value.shape, value.strides, value.dtype))
        elif kind in _PLAIN or isinstance(value, np.generic | complex):
            key.append((kind, type(leaf) is tape.kinds.weak))
        else:
            return None
        given.append(leaf)
    return (given, tuple(key)) if given else None


def _require_unchanged(args: Any, kwargs: Any, taken: Sequence[Any], definition: Any) -> None:
    leaves, now = flatten((args, kwargs))
    if now != definition or any(a is not b for a, b in zip(leaves, taken, strict=True)):
        raise StructureError(
            "a staged function has changed a structure that it was given: a list, a dict or an object, of which it has "
            "a copy, as in every transform; return the new one"
        )
