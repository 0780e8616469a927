"""Loop functions: ``scan``, ``fori_loop``, ``while_loop``. A loop is one operation of the program around it.

The body is called again where a policy recomputes, so its closure is frozen at entry, random generators are put back,
and every state that a re-run reaches again is compared with the first run's.
"""

from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
from attrs import define, field

from pullback.bodies.closures import Frozen, frozen_function
from pullback.bodies.effects import Effects
from pullback.bodies.proofs import Proof
from pullback.bodies.reachable import GENERATORS, Reachable
from pullback.bodies.surroundings import Randomness, Surroundings, surroundings_of
from pullback.loops.loop_chain import LoopChain
from pullback.loops.loop_record import LoopRecord
from pullback.loops.replay_check import Verifier, digests
from pullback.loops.rerun import Outputs, Steps, plain_leaves, value_for
from pullback.loops.staged_steps import staged_steps
from pullback.loops.whole_loops import lasting_value, rerun_of, run_forward_mode, run_untraced, scan_length
from pullback.memory.in_force import (
    innermost,
    planned,
    policy_in_force,
    progress_in_force,
    staging_in_force,
    stepping,
    threads_in_force,
    verify_in_force,
)
from pullback.memory.ledger import Ledger
from pullback.memory.store import Store, is_lossy
from pullback.memory.sweep import Sweep
from pullback.policies.base import PolicyOrAuto
from pullback.policies.save_all import SaveAll
from pullback.recording.crossing import present
from pullback.recording.handles import Handle, active_id, is_foreign, resolve, twin_of
from pullback.recording.results import component
from pullback.recording.tape import CAPTURED, FORWARD, PAUSED, REPLAYABLE, Ident, Tape
from pullback.rules.cotangent_sums import send
from pullback.rules.forms import special_form
from pullback.words.call_sites import public, site_here
from pullback.words.errors import StructureError
from pullback.words.specs import carries_derivative
from pullback.words.structures import LEAF, flatten, unflatten


@public
def fori_loop(
    lower: int,
    upper: int,
    body: Callable[[Any, Any], Any],
    init: Any,
    *,
    policy: PolicyOrAuto = None,
    verify: Any = None,
    staging: Any = None,
    threads: Any = None,
    progress: bool | None = None,
) -> Any:
    """The carry after ``for k in range(lower, upper): carry = body(k, carry)``, differentiable under any policy.

    ``init`` is any structure; ``body`` returns the same structure with the same shapes and dtypes
    (:class:`StructureError` otherwise). With ``policy`` (default: the one in force) the steps between snapshots run at
    NumPy's own speed, and what is held does not grow with the number of steps. The body may write to its carry in
    place; it may not write to traced values it captures, and must do the same when called again (:class:`ReplayError`).

    ``verify`` (default: that of :func:`using`, else ``"all"``) says what is compared where steps are run again:
    ``"all"`` the states that are reached, outputs, what step 0 reads, and the arrays and containers that the body can
    reach; ``"state"`` states and outputs alone, so that what a zero or a tie hides is not seen; ``"off"`` nothing.

    ``staging`` (default: that of :func:`using`, else ``"auto"``) says how steps that repeat are computed, with the same
    bits: ``"auto"`` by generated functions where the loop is long enough for that to pay, ``"numpy"`` by these from the
    first step that repeats, ``"off"`` by recording every step.
    ``threads`` (default: that of :func:`using`, else 1) says among how many threads these functions divide large arrays
    (:class:`PolicyError` below 1).
    ``progress=True`` (default: that of :func:`using`) shows how far the loop is, forward and back.
    """
    loop = _Loop("fori_loop", policy, verify, staging, threads, progress, lower)
    frozen, effects = loop.frozen(body), Effects()

    def step_of_loop(k: Any, carry: Any, _: Any) -> tuple[Any, Any]:
        effects.runs += 1
        return frozen(k, carry), None

    return loop.run(step_of_loop, init, max(0, upper - lower))[0]


@public
def scan(
    step: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    *,
    policy: PolicyOrAuto = None,
    verify: Any = None,
    staging: Any = None,
    threads: Any = None,
    progress: bool | None = None,
) -> tuple[Any, Any]:
    """``(carry, ys)`` of ``for x in xs: carry, y = step(carry, x)``, where ``ys`` stacks the ``y`` along a new first
    axis.

    ``xs`` is a structure of arrays with one leading axis of equal length, or None with ``length``. Per-step outputs are
    written once, outside the state: they enter no snapshot. ``verify``, ``staging``, ``threads``, ``progress`` and
    errors as :func:`fori_loop`.
    """
    x_leaves, x_definition = flatten(xs)
    x_leaves = plain_leaves(x_leaves)
    n = scan_length(x_leaves, length)
    loop = _Loop("scan", policy, verify, staging, threads, progress)
    frozen, effects = loop.frozen(step), Effects()

    def step_of_loop(k: Any, carry: Any, x: Any) -> tuple[Any, Any]:
        effects.runs += 1
        result = frozen(carry, unflatten(x_definition, x) if x is not None else None)
        if not isinstance(result, tuple) or len(result) != 2:
            raise StructureError(
                f"scan: step {k} returned {type(result).__name__}; return (carry, y), with None for y where "
                "there is none"
            )
        return result

    loop.x_definition = x_definition
    return loop.run(step_of_loop, init, n, x_leaves if xs is not None else None)


@public
def while_loop(
    condition: Callable[[Any], Any],
    body: Callable[[Any], Any],
    init: Any,
    *,
    policy: PolicyOrAuto = None,
    verify: Any = None,
    staging: Any = None,
    threads: Any = None,
    progress: bool | None = None,
) -> Any:
    """The carry after ``while condition(carry): carry = body(carry)``. The length need not be known: policies decide as
    the loop goes.

    ``condition`` sees plain values. ``verify``, ``staging``, ``threads``, ``progress`` and errors as :func:`fori_loop`.
    """
    loop = _Loop("while_loop", policy, verify, staging, threads, progress)
    frozen, loop.condition = loop.frozen(body), _before_step(loop.frozen(condition))
    effects = Effects()

    def step_of_loop(k: Any, carry: Any, _: Any) -> tuple[Any, Any]:
        effects.runs += 1
        return frozen(carry), None

    return loop.run(step_of_loop, init, None)[0]


def _before_step(condition: Callable[[Any], Any]) -> Callable[[int, Any], Any]:
    """The condition, as a step of its own to the effects in it: it is asked again where steps are run again."""
    effects = Effects()

    def step_of_loop(k: int, carry: Any) -> Any:
        effects.runs += 1
        return condition(carry)

    return step_of_loop


_ORDER = {
    "fori_loop": "write fori_loop(lower, upper, body, init)",
    "scan": "write scan(step, init, xs)",
    "while_loop": "write while_loop(condition, body, init)",
}


@define(eq=False)
class _Loop:
    """One call of a loop function, but for the values that enter it."""

    name: str
    policy: Any
    verify: Any
    staging: Any
    threads: Any
    progress: Any
    lower: int = 0
    condition: Callable[[int, Any], Any] | None = field(default=None, init=False)
    made: Frozen = field(factory=Frozen, init=False)
    """What freezing the closures made."""
    functions: list[Any] = field(factory=list, init=False)
    """The frozen functions."""
    body: Any = field(default=None, init=False)
    """The user's body."""
    x_definition: Any = field(default=None, init=False)
    """The structure of ``xs``."""
    call: Callable[[Any, Any, Any], tuple[Any, Any]] = field(init=False)
    definition: Any = field(init=False)
    n: int | None = field(init=False)
    randomness: Randomness = field(init=False)
    surroundings: Surroundings | None = field(default=None, init=False)
    reached: frozenset[int] = field(default=frozenset(), init=False)
    """The plain arrays that the body can reach, by ``id``."""
    bound_handles: list[Any] = field(factory=list, init=False)
    """The handles that are bound in the surroundings, frozen."""

    def frozen(self, f: Any) -> Any:
        """The user's body, as it is now."""
        if not callable(f):
            raise StructureError(
                f"{self.name}: the body is of type {type(f).__name__}, and must be a function; {_ORDER[self.name]}"
            )
        self.body = self.body or f
        if type(f) is not FunctionType or f.__closure__ or f.__defaults__ or f.__kwdefaults__:
            f = frozen_function(f, self.made)
        self.functions.append(f)
        return f

    def run(
        self,
        call: Callable[[Any, Any, Any], tuple[Any, Any]],
        init: Any,
        n: int | None,
        xs: list[Any] | None = None,
    ) -> tuple[Any, Any]:
        """The carry and the stacked per-step outputs, traced where anything that enters is."""
        self.staging, self.threads = staging_in_force(self.staging), threads_in_force(self.threads)
        found, self.definition = flatten(init)
        leaves = plain_leaves(found)
        self.call, self.n = call, n
        tape = innermost()
        leaves = [present(leaf, tape) if is_foreign(leaf, tape) else leaf for leaf in leaves]
        if xs is not None:
            xs = [present(leaf, tape) if is_foreign(leaf, tape) else leaf for leaf in xs]
        if tape is None:
            steps, around = self._steps(xs, None), stepping()
            steps.ledger = steps.ledger if around is None else around.behind
            results = run_untraced(steps, [value_for(leaf, None) for leaf in leaves], n, self._goes_on)
            return self._structured(steps, results, len(leaves))
        if n == 0:
            return init, None
        for leaf in (*leaves, *(xs or ())):
            if isinstance(leaf, Handle):
                resolve(leaf)  # a view that was written to, or its base, stands for another value by now
        if tape.mode == FORWARD:
            steps = self._steps(xs, tape)
            return self._structured(steps, run_forward_mode(steps, leaves, xs, n, self._goes_on), len(leaves))
        for handle in self.made.handles:  # whichever step is the first to read it
            if handle._tape is not tape and handle._tape.mode not in (PAUSED, CAPTURED):
                tape.meet(handle._tape)
        if tape.mode == REPLAYABLE:
            tape.governor.mark()
        self._look_around(leaves, xs, tape)
        entering, x_entering = ([active_id(leaf, tape) for leaf in part] for part in (leaves, xs or ()))
        record = self._record(leaves, xs, tape, entering, x_entering)
        try:
            record.forward()
            if record.n == 0:
                return init, None
            return self._structured(record.chain.steps, self._recorded(record, leaves, xs, tape), len(leaves))
        except BaseException:  # an interrupt, too: until the record is on the tape, nobody else knows it
            record.release()
            raise
        finally:
            record.chain.store.ledger.rests()

    def _goes_on(self, k: int, leaves: list[Any]) -> bool:
        assert self.condition is not None  # asked of a while_loop only
        found = self.condition(k, unflatten(self.definition, leaves))
        if found is None:
            raise StructureError("while_loop: the condition returned None; is its return missing?")
        return bool(found)

    def _structured(self, steps: Steps, results: list[Any], n_leaves: int) -> tuple[Any, Any]:
        """The carry and the outputs as the user gets them."""
        definition = steps.y_definition
        outputs = None if definition is None else unflatten(definition, results[n_leaves:])
        return unflatten(self.definition, results[:n_leaves]), outputs

    def _steps(self, xs: list[Any] | None, tape: Tape | None, *, reruns: bool = False) -> Steps:
        ledger = tape.ledger if tape is not None and tape.ledger is not None else Ledger()
        values = None if xs is None else [value_for(leaf, tape) for leaf in xs]
        within = tape is not None and tape.captures is not None  # a step of another loop, which may be run again
        ledger = ledger.behind if within else self._told(ledger, tape)
        verifier = Verifier(self.name, reruns and self.verify != "off", (reruns or within) and self.verify == "all")
        if self.surroundings is not None:
            verifier.suspects = self.surroundings.suspects
        return Steps(
            self.name, self.call, self.definition, self.made.of_handles, tape, ledger, Outputs(self.n), verifier,
            self.lower, values,
        )  # fmt: skip

    def _told(self, ledger: Any, tape: Tape | None) -> Any:
        """The ledger, where somebody watches one that shows how far the loop is."""
        if tape is not None and progress_in_force(self.progress) and planned() is None and ledger.behind is ledger:
            from pullback.watching.progress import told  # noqa: PLC0415 - for those who watch

            return told(ledger)
        return ledger

    def _record(
        self,
        leaves: list[Any],
        xs: list[Any] | None,
        tape: Tape,
        entering: list[int | None],
        x_entering: list[int | None],
    ) -> LoopRecord:
        # a re-run of the loop, in a replay, is under the policy of its first run
        own, self.policy = self.policy is not None, policy_in_force(self.policy).at_call()
        policy = self.policy
        steps = self._steps(xs, tape, reruns=self._may_run_again(tape))
        steps.x_active = [i is not None for i in x_entering]
        if policy.within is None:
            proof = None if any(steps.x_active) else Proof(self.functions[0], self.name, self._rows(steps.xs))
            steps.staging = staged_steps(steps, self.body, self.n, self.staging, self.threads, proof)
        else:
            steps.within, policy = policy.within, policy.between.at_call()
        state = [value_for(leaf, tape) for leaf in leaves]
        start = [lasting_value(*pair) for pair in zip(leaves, state, strict=True)] if tape.repeatable else []
        condition = None if self.condition is None else self._goes_on
        chain = LoopChain(
            Store(steps.ledger, policy), steps, steps.verifier, self.randomness, list(start) or state, start,
            condition,
        )  # fmt: skip
        record = LoopRecord(chain, policy, self.n, policy_in_force(), entering, x_entering, self.surroundings)
        record.own, record.reached = own, self.reached
        return record

    def _rows(self, xs: list[Any] | None) -> Any:
        """The one array whose rows the steps of a ``scan`` get as they are; else None."""
        return xs[0] if xs is not None and self.x_definition is LEAF and type(xs[0]) is np.ndarray else None

    def _may_run_again(self, tape: Tape) -> bool:
        policy = policy_in_force(self.policy)
        return tape.repeatable or not isinstance(policy.between, SaveAll)

    def _look_around(self, leaves: list[Any], xs: list[Any] | None, tape: Tape) -> None:
        """Find the random generators that the body can reach, or that are in its state, and all that it reads besides
        where this is watched."""
        roots = [(getattr(f, "__name__", "body"), f) for f in self.functions]
        reachable = Reachable().walk(roots, self.made.lasting)
        self.reached = frozenset(reachable.arrays)
        inside = {id(leaf): leaf for leaf in leaves if isinstance(leaf, GENERATORS)}
        self.randomness = Randomness(list((reachable.generators | inside).values()))
        self.verify = "off" if is_lossy(policy_in_force(self.policy)) else verify_in_force(self.verify)
        again = self._may_run_again(tape) or (tape.mode == REPLAYABLE and tape.governor.replays)
        if again and self.verify == "all" and planned() is None:
            self.surroundings, self.bound_handles = surroundings_of(self.name, reachable, xs or ())

    def _recorded(self, record: LoopRecord, leaves: list[Any], xs: list[Any] | None, tape: Tape) -> list[Any]:
        """The results, handles where they depend on what enters: the loop is one operation on the tape."""
        captured = record.chain.steps.captured_values
        results = record.results()
        if not record.ids and not record.collective:
            record.release()
            return results
        entry = (LOOP.opcode, tuple(record.ids), record, site_here())
        if tape.mode == REPLAYABLE and tape.governor.replays:
            handles = [h for h in (*leaves, *(xs or ())) if active_id(h, tape) is not None]
            values = [h._value for h in handles] + [captured[i] for i in record.known]
            frozen = (*self.made.handles, *self.bound_handles)
            # Those of others stay as they are, and what depends on no input: nobody gives it a value again.
            closure = [handle for handle in frozen if handle._tape is tape and active_id(handle, tape) is not None]
            run = partial(self._record, tape=tape)
            again = rerun_of(record, run, leaves, xs, closure, digests(results), self.verify)
            tape.governor.before_record(entry, [*handles, *map(Ident, record.known)], values, {}, again)
        ident = len(tape.records)
        tape.records.append(entry)
        return [
            component(tape, ident, k, twin_of(leaf) if k < len(leaves) else leaf, len(results))
            if carries_derivative(leaf)
            else leaf
            for k, leaf in enumerate(results)
        ]


def _pull_loop(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Sweep) -> None:
    _pull_loops(record, (ct,), (sweep,))


def _pull_loops(record: tuple[Any, ...], seeds: Sequence[Any], sweeps: Sequence[Sweep]) -> None:
    """Reverse the loop once for all seeds, and send what comes out to what entered."""
    try:
        found = record[2].reverse(seeds, sweeps)
    finally:
        record[2].chain.store.ledger.rests()
    for sweep, sent in zip(sweeps, found, strict=True):
        for ident, g in sent:
            if sweep.cts[ident] is None:
                sweep.cts[ident] = g
            else:
                send(sweep.cts, ident, g, sweep)


LOOP = special_form("loop", _pull_loop, n_ids=0, wide=True, together=_pull_loops, unreached=lambda r: r[2].unreached)
