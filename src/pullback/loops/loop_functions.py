"""Loop functions: ``scan``, ``fori_loop``, ``while_loop``. A loop is one operation of the program around it.

The body is called again where a policy recomputes, so its closure is frozen at entry, random generators are put back,
and every state that a re-run reaches again is compared with the first run's.
"""

from collections.abc import Callable
from types import CellType
from typing import Any

import numpy as np
from attrs import define, field

from pullback.loops.body import Body, digests
from pullback.loops.chain import LoopChain, own
from pullback.loops.closures import frozen_function
from pullback.loops.randomness import Randomness, generators_of
from pullback.loops.run import LOOP, LoopRun
from pullback.memory.in_force import innermost, policy_in_force, using
from pullback.memory.ledger import Ledger
from pullback.memory.store import Store
from pullback.policies.save_all import SaveAll
from pullback.recording.crossing import present
from pullback.recording.governor import Ident
from pullback.recording.handles import Handle, freeze, make, plain_value, resolve
from pullback.recording.recorder import component
from pullback.recording.tape import CAPTURED, FORWARD, PAUSED, REPLAYABLE, Tape
from pullback.words.call_sites import site_here
from pullback.words.errors import StructureError
from pullback.words.specs import carries_derivative, native, spec_of
from pullback.words.structures import flatten, unflatten


def fori_loop(lower: int, upper: int, body: Callable[[Any, Any], Any], init: Any, *, policy: Any = None) -> Any:
    """The carry after ``for k in range(lower, upper): carry = body(k, carry)``, differentiable under any policy.

    ``init`` is any structure; ``body`` returns the same structure with the same shapes and dtypes
    (:class:`StructureError` otherwise). With ``policy`` (default: the one in force) the steps between snapshots run at
    NumPy's own speed, and what is held does not grow with the number of steps. The body may write to its carry in
    place; it may not write to traced values it captures, and must do the same when called again (:class:`ReplayError`).
    """
    held: list[Any] = []
    cells: list[CellType] = []
    frozen = frozen_function(body, held, cells)
    loop = _Loop(
        "fori_loop", lambda k, carry, _: (frozen(k, carry), None), body, init, policy, held, cells, lower=lower
    )
    return loop.run(max(0, upper - lower))[0]


def scan(
    step: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    *,
    policy: Any = None,
) -> tuple[Any, Any]:
    """``(carry, ys)`` of ``for x in xs: carry, y = step(carry, x)``, where ``ys`` stacks the ``y`` along a new first
    axis.

    ``xs`` is a structure of arrays with one leading axis of equal length, or None with ``length``. Per-step outputs are
    written once, outside the state: they enter no snapshot. Errors as :func:`fori_loop`.
    """
    x_leaves, x_definition = flatten(xs)
    n = _scan_length(x_leaves, length)
    held: list[Any] = []
    cells: list[CellType] = []
    frozen = frozen_function(step, held, cells)

    def call(k: Any, carry: Any, x: Any) -> tuple[Any, Any]:
        result = frozen(carry, unflatten(x_definition, x) if x is not None else None)
        if not isinstance(result, tuple) or len(result) != 2:
            message = (
                f"scan: step {k} returned {type(result).__name__}; return (carry, y), with None for y where "
                "there is none"
            )
            raise StructureError(message)
        return result

    return _Loop("scan", call, step, init, policy, held, cells, xs=x_leaves if xs is not None else None).run(n)


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any, *, policy: Any = None) -> Any:
    """The carry after ``while condition(carry): carry = body(carry)``. The length need not be known: policies decide as
    the loop goes.

    ``condition`` sees plain values. Errors as :func:`fori_loop`.
    """
    held: list[Any] = []
    cells: list[CellType] = []
    frozen, frozen_condition = frozen_function(body, held, cells), frozen_function(condition, held, [])
    loop = _Loop("while_loop", lambda _, carry, __: (frozen(carry), None), body, init, policy, held, cells)
    loop.condition = frozen_condition
    return loop.run(None)[0]


def _scan_length(x_leaves: list[Any], length: int | None) -> int:
    lengths = {np.shape(leaf)[0] if not isinstance(leaf, Handle) else leaf.shape[0] for leaf in x_leaves}  # type: ignore[attr-defined]
    if length is not None:
        lengths.add(length)
    if len(lengths) != 1:
        message = f"scan: the leading axes of xs and length= are {sorted(lengths)}; give one length"
        raise StructureError(message)
    return int(lengths.pop())


@define(eq=False)
class _Loop:
    """One run of a loop function: what enters it, its chain, and how its results leave."""

    name: str
    call: Callable[[Any, Any, Any], tuple[Any, Any]]
    body: Callable[..., Any]
    init: Any
    policy: Any
    held: list[Any]
    """The handles that freezing the closures made, and the cells that hold them."""
    cells: list[CellType]
    lower: int = 0
    xs: list[Any] | None = None
    condition: Callable[[Any], Any] | None = None
    definition: Any = field(default=None, init=False)
    ys: list[Any] = field(factory=list, init=False)

    def run(self, n: int | None) -> tuple[Any, Any]:
        """Carry out the forward sweep; the carry and the stacked per-step outputs, traced where anything that enters
        is."""
        leaves, self.definition = flatten(self.init)
        tape = innermost()
        leaves = [present(leaf, tape) for leaf in leaves]
        self.xs = None if self.xs is None else [present(leaf, tape) for leaf in self.xs]
        if tape is None:
            return self._untraced(self._chain(leaves, self.xs, None, n), n)
        if n == 0:
            return self.init, None
        if tape.mode == FORWARD:
            return self._unrolled(leaves, tape, n)
        for handle in self.held:  # whichever step is the first to read it
            if handle._tape is not tape and handle._tape.mode not in (PAUSED, CAPTURED):
                tape.meet(handle._tape)
        if tape.mode == REPLAYABLE:
            tape.governor.mark()
        run = self._start(
            leaves,
            self.xs,
            tape,
            n,
            [_active_id(leaf, tape) for leaf in leaves],
            [_active_id(leaf, tape) for leaf in self.xs or ()],
        )
        if run.n == 0:
            return self.init, None
        return self._leave(run, leaves, tape, n)

    def _start(
        self,
        leaves: list[Any],
        xs: list[Any] | None,
        tape: Tape,
        n: int | None,
        entering: list[int | None],
        x_entering: list[int | None],
    ) -> LoopRun:
        chain = self._chain(leaves, xs, tape, n)
        chain.x_active = [i is not None for i in x_entering]
        start = (
            [_lasting(leaf, value) for leaf, value in zip(leaves, chain.state, strict=True)] if tape.repeatable else []
        )
        chain.start = start
        chain.state = list(start) or chain.state
        self.policy = policy_in_force(
            self.policy
        )  # a re-run of the loop, in a replay, is under the policy of its first run
        chain.reruns = tape.repeatable or not isinstance(self.policy, SaveAll)
        chain.store.policy = self.policy
        run = LoopRun(
            chain,
            self.policy,
            n,
            start,
            policy_in_force(),
            entering=entering,
            x_entering=x_entering,
            n_leaves=len(leaves),
        )
        run.forward()
        return run

    def _chain(self, leaves: list[Any], xs: list[Any] | None, tape: Tape | None, n: int | None) -> LoopChain:
        body = Body(self.call, self.name, self.definition, self.cells)
        state = [_value_for(leaf, tape) for leaf in leaves]
        ledger = tape.ledger if tape is not None and tape.ledger is not None else Ledger()
        chain = LoopChain(
            body, tape, Store(ledger, self.policy), ledger,
            Randomness(generators_of(self.body, self.init)),
            state, lower=self.lower, condition=None if self.condition is None else self._holds, on_y=self._store(n),
        )  # fmt: skip
        if xs is not None:
            values = [_value_for(leaf, tape) for leaf in xs]
            chain.x_bytes = [getattr(value, "nbytes", 0) for value in values]
            chain.x_at = lambda k: [leaf[k] for leaf in values]
        return chain

    def _holds(self, leaves: list[Any]) -> bool:
        assert self.condition is not None  # asked of a while_loop only
        return bool(self.condition(unflatten(self.definition, leaves)))

    def _store(self, n: int | None) -> Callable[[int, list[Any]], None]:
        """Write per-step outputs into buffers made at the first step."""

        def store(k: int, ys: list[Any]) -> None:
            if k == 0:
                self.ys = [
                    [] if isinstance(y, Handle) else np.empty((n or 0, *np.shape(y)), spec_of(y).dtype) for y in ys
                ]
            for place, y in enumerate(ys):
                buffer = self.ys[place]
                if isinstance(y, Handle) and not isinstance(buffer, list):
                    buffer = self.ys[place] = list(buffer[:k])  # an outer trace has come in after the first step
                if isinstance(buffer, list):
                    buffer.append(y)
                else:
                    buffer[k] = y

        return store

    def _untraced(self, chain: LoopChain, n: int | None) -> tuple[Any, Any]:
        """Outside any trace a loop function is a plain loop."""
        k = 0
        while (n is not None and k < n) or (n is None and chain.goes_on(k)):
            chain.advance(k, k + 1)
            k += 1
        definition = chain.body.y_definition
        return unflatten(self.definition, chain.state), unflatten(
            definition, self.ys
        ) if definition is not None else None

    def _unrolled(self, leaves: list[Any], tape: Tape, n: int | None) -> tuple[Any, Any]:
        """In a forward trace a loop function is a plain loop too, on handles: nothing of a step is held once the
        next has run."""
        body = Body(self.call, self.name, self.definition, self.cells)
        state, ys, k = [_movable(leaf, tape) for leaf in leaves], [], 0
        while k < n if n is not None else self._holds([plain_value(leaf) for leaf in state]):
            xs = None if self.xs is None else [leaf[k] for leaf in self.xs]
            new, y = body.run(k + self.lower, state, xs)
            body.require_same_specs(
                [_value_for(leaf, tape) for leaf in state], [_value_for(leaf, tape) for leaf in new], k
            )
            state = new
            ys.append(y)
            k += 1
        definition = body.y_definition
        stacked = [np.stack(column) for column in zip(*ys, strict=True)]
        return unflatten(self.definition, state), unflatten(definition, stacked) if definition is not None else None

    def _leave(self, run: LoopRun, leaves: list[Any], tape: Tape, n: int | None) -> tuple[Any, Any]:
        """Record the loop as one operation and hand out its results."""
        chain = run.chain
        results = self._results(run)
        ids = tuple(i for i in (*run.entering, *run.x_entering, *run.known) if i is not None)
        if ids:
            record = (LOOP.opcode, ids, run, site_here(2))
            if tape.mode == REPLAYABLE and tape.governor.replays:
                handles = [h for h in (*leaves, *(self.xs or ())) if _active_id(h, tape) is not None]
                values = [h._value for h in handles] + [chain.captured_values[i] for i in run.known]
                rerun = self._rerun(run, leaves, tape, n, digests(results))
                tape.governor.before_record(record, [*handles, *map(Ident, run.known)], values, {}, rerun)
            ident = len(tape.records)
            tape.records.append(record)
            results = [
                component(tape, ident, k, own(leaf) if k < len(leaves) else leaf, len(results))
                if carries_derivative(leaf)
                else leaf
                for k, leaf in enumerate(results)
            ]
        carry = unflatten(self.definition, results[: len(leaves)])
        definition = chain.body.y_definition
        chain.swept()
        if not ids:
            run.release()
        self.ys, self.init, self.xs, chain.on_y = [], None, None, None
        return carry, unflatten(definition, results[len(leaves) :]) if definition is not None else None

    def _results(self, run: LoopRun) -> list[Any]:
        return [*run.chain.state, *(np.stack(y) if isinstance(y, list) else y for y in self.ys)]

    def _rerun(
        self, run: LoopRun, leaves: list[Any], tape: Tape, n: int | None, wanted: tuple[bytes, ...]
    ) -> Callable[[list[Any]], tuple[list[Any], LoopRun]]:
        """How a replay of the program around it runs the loop anew; between runs the closure holds no array for the
        loop's sake.

        Raises :class:`ReplayError` where its results have not the digests ``wanted``.
        """
        fixed = [None if i is not None else own(leaf) for i, leaf in zip(run.entering, leaves, strict=True)]
        fixed_xs = [None if i is not None else own(leaf) for i, leaf in zip(run.x_entering, self.xs or (), strict=True)]
        definition, has_xs = self.definition, self.xs is not None
        closure = run.closure = [
            handle for handle in self.held if handle._tape is tape
        ]  # those of traces around it stay as they are
        randomness, entered_with = run.chain.randomness, run.random_start

        def rerun(values: list[Any]) -> tuple[list[Any], LoopRun]:
            given = iter(values)
            starts = [next(given) if i is not None else leaf for i, leaf in zip(run.entering, fixed, strict=True)]
            xs = [next(given) if i is not None else leaf for i, leaf in zip(run.x_entering, fixed_xs, strict=True)]
            by_id = dict(zip(run.known, given, strict=True))
            for handle in closure:
                if handle._id in by_id:
                    handle._value = by_id[handle._id]
            self.definition = definition
            with (
                randomness.put_back(),
                using(run.ambient),
            ):  # not the one in force around the reverse pass, which may be another trace's
                randomness.restore(entered_with)
                again = self._start(starts, xs if has_xs else None, tape, n, run.entering, run.x_entering)
            again.closure = closure
            results = self._results(again)
            again.chain.swept()
            again.chain.body.require_same_bytes(
                wanted, results, "run again, the loop gave other bytes than in the first run", "its result"
            )
            return results, again

        return rerun


def _movable(leaf: Any, tape: Tape) -> Any:
    """A leaf of the state that a body may write to: a plain array becomes a buffer of the trace."""
    if isinstance(leaf, np.ndarray) and carries_derivative(leaf):
        return make(tape.kinds.buffer, own(leaf), None, tape)
    return freeze(leaf) if isinstance(leaf, Handle) and leaf._tape is tape else leaf


def _lasting(leaf: Any, value: Any) -> Any:
    """An initial value that a second reverse pass can start from: a handle's value by reference, a plain array
    copied."""
    if isinstance(leaf, Handle):
        freeze(leaf)
        return value
    return own(value)


def _value_for(leaf: Any, tape: Tape | None) -> Any:
    if isinstance(leaf, Handle):
        resolve(leaf)
        if leaf._tape is tape:
            return leaf._value
    return native(leaf)


def _active_id(leaf: Any, tape: Tape) -> int | None:
    return leaf._id if isinstance(leaf, Handle) and leaf._tape is tape else None
