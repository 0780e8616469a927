"""One call of a loop function: its body is frozen and its record made; or it runs without holding anything, outside any
trace, in forward mode, and in a re-run of plain code."""

from array import array
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from operator import index
from types import FunctionType
from typing import Any, Final

import numpy as np
from attrs import define, field

from pullback.loops.bodies.closures import Frozen, frozen_function
from pullback.loops.bodies.first_errors import warnings_are_errors
from pullback.loops.bodies.proofs import NO_ROWS, Proof, rows_of
from pullback.loops.bodies.randomness import Randomness
from pullback.loops.bodies.reachable import GENERATORS, Reachable
from pullback.loops.bodies.surroundings import Surroundings, surroundings_of
from pullback.loops.functions.loop_chain import LoopChain
from pullback.loops.functions.loop_record import LOOP, LoopRecord
from pullback.loops.stepping.replay_check import Verifier, digests
from pullback.loops.stepping.rerun import LoopSteps, plain_leaves, value_for, writable
from pullback.loops.stepping.stacked_outputs import Outputs
from pullback.loops.stepping.staged_steps import staged_steps
from pullback.memory.in_force import (
    advancing,
    innermost,
    planned,
    policy_in_force,
    progress_in_force,
    staging_in_force,
    threads_in_force,
    using,
    verify_in_force,
)
from pullback.memory.ledger import Ledger
from pullback.memory.store import Store, is_lossy
from pullback.policies.save_all import SaveAll
from pullback.recording.crossing import movable, present, writable_leaf
from pullback.recording.handles import Handle, active_id, freeze, is_apart, is_foreign, plain_value, resolve, twin_of
from pullback.recording.results import component
from pullback.recording.tape import CAPTURED, FORWARD, PAUSED, REPLAYABLE, Ident, Tape
from pullback.words.call_sites import site_here
from pullback.words.errors import PullbackError, StructureError
from pullback.words.specs import carries_derivative
from pullback.words.structures import LEAF, flatten, unflatten

ORDER: Final = {
    "fori_loop": "write fori_loop(lower, upper, body, init)",
    "scan": "write scan(step, init, xs)",
    "while_loop": "write while_loop(condition, body, init)",
}


@define(eq=False)
class LoopCall:
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
    read: list[Any] = field(factory=list, init=False)
    """The traced values that the body closes over."""
    looks: bool = field(default=False, init=False)
    """Whether it can read others, which objects have."""
    kept: frozenset[int] = field(default=frozenset(), init=False)
    """Those behind traced values, which stay as long as the body does."""
    bound_handles: list[Any] = field(factory=list, init=False)
    """The handles that are bound in the surroundings, frozen."""

    def frozen(self, f: Any) -> Any:
        """The user's body, as it is now."""
        if not callable(f):
            raise StructureError(
                f"{self.name}: the body is of type {type(f).__name__}, and must be a function; {ORDER[self.name]}"
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
        leaves = [leaf if is_apart(leaf) else writable_leaf(leaf) for leaf in leaves]
        if xs is not None:
            xs = [present(leaf, tape) if is_foreign(leaf, tape) else leaf for leaf in xs]
        if tape is None:
            steps, around = self._steps(xs, None), advancing()
            steps.ledger = around.ledger.untold if around is not None and around.ledger is not None else steps.ledger
            results = run_untraced(steps, [value_for(leaf, None) for leaf in leaves], n, self._goes_on)
            return self._structured(steps, results, len(leaves))
        if n == 0:
            return unflatten(self.definition, [twin_of(leaf) for leaf in leaves]), None
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
            with record.agrees():
                record.forward()
            if record.n == 0:
                return unflatten(self.definition, [twin_of(leaf) for leaf in leaves]), None
            return self._structured(record.chain.steps, self._recorded(record, leaves, xs, tape), len(leaves))
        except BaseException:  # an interrupt, too: until the record is on the tape, nobody else knows it
            record.release()
            raise
        finally:
            record.chain.store.ledger.rests()

    def _goes_on(self, k: int, leaves: list[Any]) -> bool:
        assert self.condition is not None  # asked of a while_loop only
        if (found := self.condition(k, unflatten(self.definition, leaves))) is None:
            raise StructureError("while_loop: the condition returned None; is its return missing?")
        try:
            return bool(found)
        except ValueError as error:  # NumPy's, of an array
            shape = np.shape(found)
            raise StructureError(
                f"while_loop: the condition returned an array of shape {shape}; take np.any(...) or np.all(...) of it"
            ) from error

    def _structured(self, steps: LoopSteps, results: list[Any], n_leaves: int) -> tuple[Any, Any]:
        """The carry and the outputs as the user gets them."""
        definition = steps.y_definition
        outputs = None if definition is None else unflatten(definition, results[n_leaves:])
        return unflatten(self.definition, results[:n_leaves]), outputs

    def _steps(self, xs: list[Any] | None, tape: Tape | None, *, reruns: bool = False) -> LoopSteps:
        ledger = tape.ledger if tape is not None and tape.ledger is not None else Ledger()
        values = None if xs is None else [value_for(leaf, tape) for leaf in xs]
        within = tape is not None and tape.captures is not None  # a step of another loop, which may be run again
        ledger = ledger.untold if within else self._told(ledger, tape)
        verifier = Verifier(self.name, reruns and self.verify != "off", (reruns or within) and self.verify == "all")
        if self.surroundings is not None:
            verifier.suspects = self.surroundings.suspects
        return LoopSteps(
            self.name, self.call, self.definition, self.made.of_handles, tape, ledger, Outputs(self.n), verifier,
            self.lower, values,
        )  # fmt: skip

    def _told(self, ledger: Any, tape: Tape | None) -> Any:
        """The ledger, where somebody watches one that shows how far the loop is."""
        if tape is not None and progress_in_force(self.progress) and planned() is None and ledger.untold is ledger:
            from pullback.instruments.watching.progress import told  # noqa: PLC0415 - for those who watch

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
        steps.x_active, read = [i is not None for i in x_entering], self.read
        steps.readable = {h._id: h._value for h in read if isinstance(h, Handle) and active_id(h, tape) is not None}
        if policy.within is None:
            rows = rows_of(xs, steps.x_active, alone=self.x_definition is LEAF) if xs else NO_ROWS
            proof = Proof(self.functions[0], self.name, rows)
            steps.staging = staged_steps(steps, self, proof, held=type(policy) is SaveAll)
        else:
            steps.within, policy = policy.within, policy.between.at_call()
        # whoever has a plain array may write to it before the reverse pass
        state = [value_for(x, tape) if isinstance(x, Handle) else twin_of(value_for(x, tape)) for x in leaves]
        for leaf in (*leaves, *(xs or ())):
            if isinstance(leaf, Handle):
                freeze(leaf)  # steps hold what enters by reference: whoever writes to it from now on copies
        start = list(state) if tape.repeatable else []
        parts = Store(steps.ledger, policy), steps, steps.verifier, self.randomness, state, start
        if self.condition is None:
            chain = LoopChain(*parts)
        else:
            from pullback.loops.functions.while_chain import WhileChain  # noqa: PLC0415 - while_loop alone

            chain = WhileChain(*parts, condition=self._goes_on)
        record = LoopRecord(chain, policy, self.n, policy_in_force(), entering, x_entering, self.surroundings)
        record.own, record.reached, record.kept, record.looks = own, self.reached, self.kept, self.looks
        return record

    def _may_run_again(self, tape: Tape) -> bool:
        policy = policy_in_force(self.policy)
        return tape.repeatable or not isinstance(policy.between, SaveAll)

    def _look_around(self, leaves: list[Any], xs: list[Any] | None, tape: Tape) -> None:
        """Find the random generators that the body can reach, or that are in its state, and all that it reads besides
        where this is watched."""
        roots = [(getattr(f, "__name__", "body"), f) for f in self.functions]
        reachable = Reachable().walk(roots, self.made.lasting)
        self.reached, self.kept = frozenset(reachable.arrays), frozenset(reachable.values)
        self.looks = not reachable.traced <= set(map(id, self.made.handles))
        self.read = [present(h, tape) if is_foreign(h, tape) else h for h in self.made.handles]
        catches = reachable.catches and warnings_are_errors()  # a stage warns when the body is over
        self.staging = "off" if catches else self.staging
        inside = {id(leaf): leaf for leaf in leaves if isinstance(leaf, GENERATORS)}
        self.randomness = Randomness(list((reachable.generators | inside).values()))
        self.verify = "off" if is_lossy(policy_in_force(self.policy)) else verify_in_force(self.verify)
        again = self._may_run_again(tape) or (tape.mode == REPLAYABLE and tape.governor.replays)
        if again and planned() is None:
            self.surroundings, self.bound_handles = surroundings_of(self.name, reachable, xs or (), self.verify)

    def _recorded(self, record: LoopRecord, leaves: list[Any], xs: list[Any] | None, tape: Tape) -> list[Any]:
        """The results, handles where they depend on what enters: the loop is one operation on the tape."""
        captured = record.chain.steps.captured_values
        results = record.results()
        if not record.ids and not record.collective:
            record.release()
            return results
        on_tape = (LOOP.opcode, tuple(record.ids), record, site_here())
        if tape.mode == REPLAYABLE and tape.governor.replays:
            handles = [h for h in (*leaves, *(xs or ())) if active_id(h, tape) is not None]
            values = [h._value for h in handles] + [captured[i] for i in record.known]
            frozen = (*self.made.handles, *self.bound_handles)
            # Those of others stay as they are, and what depends on no input: nobody gives it a value again.
            closure = [handle for handle in frozen if handle._tape is tape and active_id(handle, tape) is not None]
            run = partial(self._record, tape=tape)
            again = rerun_of(record, run, leaves, xs, closure, digests(results), self.verify)
            tape.governor.before_record(on_tape, [*handles, *map(Ident, record.known)], values, {}, again)
        ident = len(tape.records)
        tape.records.append(on_tape)
        return [
            component(tape, ident, k, twin_of(leaf) if k < len(leaves) else leaf, len(results))
            if carries_derivative(leaf)
            else leaf
            for k, leaf in enumerate(results)
        ]


def run_untraced(
    steps: LoopSteps, state: list[Any], n: int | None, goes_on: Callable[[int, list[Any]], bool]
) -> list[Any]:
    """The leaves of the last state and the stacked outputs, of ``n`` steps on arrays of our own, or as long as the loop
    goes on; the ledger counts them."""
    state = [twin_of(leaf) for leaf in state]
    if n or (n is None and goes_on(0, state)):
        k = 0
        with steps.on_values():
            while True:
                state = steps.plain(k, state)
                k += 1
                if k == n or (n is None and not goes_on(k, state)):
                    break
        steps.ledger.n_forward += k
    return [*state, *steps.outputs.taken()]


def run_forward_mode(
    steps: LoopSteps, leaves: list[Any], xs: list[Any] | None, n: int | None, goes_on: Callable[[int, list[Any]], bool],
) -> list[Any]:  # fmt: skip
    """Run the loop on handles of a forward trace: nothing of a step is held once the next has run."""
    tape = steps.enclosing
    assert tape is not None  # the forward trace
    state, ys, k = [movable(leaf, tape) for leaf in leaves], [], 0
    steps.ledger.sweeps(n)
    try:
        while k < n if n is not None else goes_on(k, [plain_value(leaf) for leaf in state]):
            before = writable(state)
            state, y = steps.call_body(k + steps.lower, before, None if xs is None else [leaf[k] for leaf in xs])
            steps.require_same_specs([value_for(h, tape) for h in before], [value_for(h, tape) for h in state], k)
            ys.append([twin_of(leaf) for leaf in y])
            seen = {id(h): h for h in before}
            state = [h if seen.pop(id(h), None) is not None else movable(h, tape) for h in state]
            k += 1
            steps.ledger.n_forward += 1
    finally:
        steps.ledger.rests()
    return [*state, *(np.stack(column) for column in zip(*ys, strict=True))]


def rerun_of(
    record: LoopRecord,
    anew: Callable[..., LoopRecord],
    leaves: list[Any],
    xs: list[Any] | None,
    closure: list[Any],
    wanted: "array[int]",
    verify: str,
) -> Callable[[list[Any]], tuple[list[Any], tuple[LoopRecord]]]:
    """The function that runs the loop anew from the values of what entered: its results, and what its record holds.
    Between runs the ``closure``, handles of the body, holds no array for the loop's sake.

    Raises :class:`ReplayError` where the results have not the digests ``wanted``, unless ``verify`` is ``"off"``.
    """
    entering, x_entering, known, ambient = record.entering, record.x_entering, record.known, record.ambient
    fixed = [None if i is not None else twin_of(leaf) for i, leaf in zip(entering, leaves, strict=True)]
    fixed_xs = [None if i is not None else twin_of(leaf) for i, leaf in zip(x_entering, xs or (), strict=True)]
    has_xs = xs is not None
    randomness, random = record.chain.randomness, record.chain.start_random
    record.closure = closure
    surroundings = record.surroundings

    def rerun(values: list[Any]) -> tuple[list[Any], tuple[LoopRecord]]:
        entered = iter(values)
        state = [next(entered) if i is not None else leaf for i, leaf in zip(entering, fixed, strict=True)]
        rows = [next(entered) if i is not None else leaf for i, leaf in zip(x_entering, fixed_xs, strict=True)]
        by_id = dict(zip(known, entered, strict=True))
        for handle in closure:
            if handle._id in by_id:
                handle._value = by_id[handle._id]
        # under the policy of the first run, not the one around the reverse pass, which may be another trace's
        watched = nullcontext() if surroundings is None else surroundings.put_back(lambda: True)
        errors = record.errors.put_back(state=True)
        with randomness.put_back(), using(ambient, agreement=record.agreement), watched, errors:
            randomness.restore(random)
            again = anew(state, rows if has_xs else None, entering=entering, x_entering=x_entering)
            try:
                again.forward()
                again.closure = closure
                results = again.results()
                if verify != "off":
                    happened = "run again, the loop gave other bytes than in the first run"
                    again.chain.verifier.require(wanted, results, happened, "its result")
            except BaseException:
                again.release()
                raise
        return results, (again,)

    return rerun


def whole(what: str, number: Any) -> int:
    """A whole number as one of Python's: with NumPy's the numbers of steps would wrap. Raises
    :class:`StructureError` for any other."""
    try:
        return index(number)
    except TypeError as error:
        if isinstance(error, PullbackError):
            raise
        raise StructureError(
            f"{what} takes a whole number, got {type(number).__name__}; write int(n) for a number, and "
            "int(pullback.value(n)) where it is traced"
        ) from None


def scan_length(x_leaves: list[Any], length: int | None) -> int:
    """How many steps a ``scan`` has; raises :class:`StructureError` where its arrays do not agree."""
    if not all(map(np.ndim, map(plain_value, x_leaves))):
        raise StructureError("scan: a leaf of xs has no axis; give arrays with one slice for each step, or length=")
    if not x_leaves and length is None:
        raise StructureError("scan: xs has no array, and no length= is given; pass length=, the number of steps")
    lengths = {np.shape(plain_value(leaf))[0] for leaf in x_leaves}
    if length is not None:
        lengths.add(whole("scan: length=", length))
    if len(lengths) != 1:
        raise StructureError(f"scan: the leading axes of xs and length= are {sorted(lengths)}; give one length")
    return int(lengths.pop())
