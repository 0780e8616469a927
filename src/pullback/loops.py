"""Loop functions: ``scan``, ``fori_loop``, ``while_loop``. A loop is one operation of the program around it.

The body is called again where a policy recomputes, so its closure is frozen at entry, random generators are put back, and every
state that a re-run reaches again is compared with the first run's.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field

from pullback.arrays import carries_derivative, spec_of
from pullback.context import innermost, policy_in_force
from pullback.errors import ReplayError, StructureError
from pullback.executor import run_forward, run_reverse
from pullback.forms import Form, new_form
from pullback.handles import Handle, make, resolve
from pullback.ledger import Ledger
from pullback.loop_body import Body, Randomness, frozen_function, generators_of
from pullback.loop_chain import LoopChain, own
from pullback.policies.machine import Machine
from pullback.recorder import _special, component
from pullback.settle import join
from pullback.structures import flatten, unflatten
from pullback.tape import CAPTURED, Tape, site_here


def fori_loop(lower: int, upper: int, body: Callable[[Any, Any], Any], init: Any, *, policy: Any = None) -> Any:
    """The carry after ``for k in range(lower, upper): carry = body(k, carry)``, differentiable under any policy.

    ``init`` is any structure; ``body`` returns the same structure with the same shapes and dtypes
    (:class:`StructureError` otherwise). With ``policy`` (default: the one in force) the steps between snapshots run at NumPy's own
    speed, and what is held does not grow with the number of steps. The body may write to its carry in place; it may not write to traced values it
    captures, and must do the same when called again (:class:`ReplayError`).
    """
    frozen = frozen_function(body)
    carry, _ = _Loop("fori_loop", lambda k, carry, _: (frozen(k, carry), None), body, init, policy).run(max(0, upper - lower), lower=lower)
    return carry


def scan(
    step: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None, *, policy: Any = None
) -> tuple[Any, Any]:
    """``(carry, ys)`` of ``for x in xs: carry, y = step(carry, x)``, where ``ys`` stacks the ``y`` along a new first axis.

    ``xs`` is a structure of arrays with one leading axis of equal length, or None with ``length``. Per-step outputs are written once, outside
    the state: they enter no snapshot. Errors as :func:`fori_loop`.
    """
    x_leaves, x_definition = flatten(xs)
    n = _scan_length(x_leaves, length)
    frozen = frozen_function(step)

    def call(k: Any, carry: Any, x: Any) -> tuple[Any, Any]:
        result = frozen(carry, unflatten(x_definition, x) if x is not None else None)
        if not isinstance(result, tuple) or len(result) != 2:
            message = f"scan: step {k} returned {type(result).__name__}; return (carry, y), with None for y where there is none"
            raise StructureError(message)
        return result

    return _Loop("scan", call, step, init, policy, x_leaves if xs is not None else None).run(n)


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any, *, policy: Any = None) -> Any:
    """The carry after ``while condition(carry): carry = body(carry)``. The length need not be known: policies decide as the loop goes.

    ``condition`` sees plain values. Errors as :func:`fori_loop`.
    """
    frozen, frozen_condition = frozen_function(body), frozen_function(condition)
    loop = _Loop("while_loop", lambda _, carry, __: (frozen(carry), None), body, init, policy)
    loop.condition = lambda leaves: bool(frozen_condition(unflatten(loop.definition, leaves)))
    carry, _ = loop.run(None)
    return carry


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
    xs: list[Any] | None = None
    condition: Callable[[list[Any]], bool] | None = None
    definition: Any = field(default=None, init=False)
    ys: list[Any] = field(factory=list, init=False)

    def run(self, n: int | None, *, lower: int = 0) -> tuple[Any, Any]:
        """Carry out the forward sweep; the carry and the stacked per-step outputs, traced where anything that enters is."""
        leaves, self.definition = flatten(self.init)
        tape = innermost()
        while tape is not None and tape.mode == CAPTURED:
            tape = tape.inner
        chain = self._chain(leaves, tape, n, lower)
        if tape is None:
            return self._untraced(chain, n)
        if n == 0:
            return self.init, unflatten(chain.body.y_definition, []) if chain.body.y_definition else None
        if tape.mode and not (tape.chain.active is not None and tape.chain.marked):
            tape.chain.mark()
        chosen = policy_in_force(self.policy)
        run = LoopRun(chain, chosen, n, [own(leaf) for leaf in chain.state])
        run.forward()
        return self._leave(run, leaves, tape)

    def _chain(self, leaves: list[Any], tape: Tape | None, n: int | None, lower: int) -> LoopChain:
        body = Body(self.call, self.name, self.definition)
        state = [_value_for(leaf, tape) for leaf in leaves]
        chain = LoopChain(
            body, tape, tape.ledger if tape is not None and tape.ledger is not None else Ledger(), Randomness(generators_of(self.body, self.init)),
            state, lower=lower, condition=self.condition, on_y=self._store(n),
        )  # fmt: skip
        if self.xs is not None:
            values = [_value_for(leaf, tape) for leaf in self.xs]
            chain.x_at = lambda k: [leaf[k] for leaf in values]
        return chain

    def _store(self, n: int | None) -> Callable[[int, list[Any]], None]:
        """Write per-step outputs into buffers made at the first step."""

        def store(k: int, ys: list[Any]) -> None:
            if k == 0:
                self.ys.extend(np.empty((n or 0, *np.shape(y)), spec_of(y).dtype) if not isinstance(y, Handle) else [] for y in ys)
            for buffer, y in zip(self.ys, ys, strict=True):
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
        return unflatten(self.definition, chain.state), unflatten(definition, self.ys) if definition is not None else None

    def _leave(self, run: "LoopRun", leaves: list[Any], tape: Tape) -> tuple[Any, Any]:
        """Record the loop as one operation and hand out its results."""
        chain = run.chain
        ys = [np.stack(y) if isinstance(y, list) else y for y in self.ys]
        entering = [_active_id(leaf, tape) for leaf in leaves]
        x_entering = [_active_id(leaf, tape) for leaf in self.xs or ()]
        known = sorted(chain.known or ())
        handles = [h for h in (*leaves, *(self.xs or ())) if _active_id(h, tape) is not None] + [chain.captured_handles[i] for i in known]
        ids = tuple(i for i in (*entering, *x_entering, *known) if i is not None)
        results = [*chain.state, *ys]
        if ids:
            run.connect(entering, x_entering, known, len(chain.state), [spec_of(leaf) if _plain_array(leaf) else None for leaf in results])
            ident = len(tape.records)
            tape.records.append((LOOP.opcode, ids, run, site_here(2)))
            if tape.mode:
                tape.chain.note_loop(ident, ids, handles, run.again)
            results = [
                component(tape, ident, k, _handed_out(leaf), len(results)) if carries_derivative(leaf) else leaf for k, leaf in enumerate(results)
            ]
        carry = unflatten(self.definition, results[: len(chain.state)])
        definition = chain.body.y_definition
        return carry, unflatten(definition, results[len(chain.state) :]) if definition is not None else None


def _plain_array(leaf: Any) -> bool:
    return not isinstance(leaf, Handle)


def _handed_out(leaf: Any) -> Any:
    """A loop's result: the user may write to it, so it is no buffer of the chain's."""
    return leaf.copy(order="K") if isinstance(leaf, np.ndarray) else leaf


def _value_for(leaf: Any, tape: Tape | None) -> Any:
    if isinstance(leaf, Handle):
        resolve(leaf)
        if leaf._tape is tape:
            return leaf._value
    return leaf


def _active_id(leaf: Any, tape: Tape) -> int | None:
    return leaf._id if isinstance(leaf, Handle) and leaf._tape is tape else None


@define(eq=False)
class LoopRun:
    """The record of a loop on its tape: the chain with what it holds, and how cotangents enter and leave it."""

    chain: LoopChain
    policy: Any
    n: int | None
    start: list[Any]
    """The initial state, in memory of its own: where a second reverse pass begins again."""
    schedule: Any = None
    machine: Machine = field(factory=lambda: Machine(None))
    entering: list[int | None] = field(factory=list)
    x_entering: list[int | None] = field(factory=list)
    known: list[int] = field(factory=list)
    n_leaves: int = 0
    specs: list[Any] = field(factory=list)
    random_start: tuple[Any, ...] = ()
    fresh: bool = True
    sizes: dict[str, int] = field(factory=dict)

    def forward(self) -> None:
        """The initial sweep: step 0 runs on tracers and tells what is captured and what a step's tape costs, then the schedule runs."""
        chain = self.chain
        self.random_start = chain.randomness.save()
        if self.n is None and chain.condition is not None and not chain.goes_on(0):
            self.n = 0
            return
        with_state = chain.state
        chain.probe = chain.run_recorded(0, stays=True)
        chain.ledger.n_forward += 1
        chain.state = with_state
        step, after, _ = chain.probe
        self.sizes = {
            "state_bytes": sum(leaf.nbytes for leaf in after if isinstance(leaf, np.ndarray)),
            "tape_bytes": sum(nbytes for _, nbytes, _ in step.items),
        }
        self.schedule = self.policy.schedule(self.n, **self.sizes)
        self.machine = Machine(self.n)
        chain.keeps_lookback = self.n is None
        run_forward(self.schedule, self.machine, chain)
        self.n = self.machine.n

    def connect(self, entering: list[int | None], x_entering: list[int | None], known: list[int], n_leaves: int, specs: list[Any]) -> None:
        """Say which ids of the enclosing tape enter."""
        self.entering, self.x_entering, self.known, self.n_leaves, self.specs = entering, x_entering, known, n_leaves, specs

    def reverse(self, cts: list[Any], *, free: bool) -> list[tuple[int, Any]]:
        """The cotangents of what entered, given those of the results; sweeps the loop again if it was reversed before."""
        chain = self.chain
        if not self.fresh:
            self._restart()
        self.fresh = False
        before = chain.randomness.save()
        chain.cts = list(cts[: self.n_leaves])
        y_cts = cts[self.n_leaves :]
        chain.y_cts = (lambda k: [None if ct is None else ct[k] for ct in y_cts]) if y_cts else None
        x_sums = self._gather_xs()
        chain.run_of.outer = chain.enclosing.outer if chain.enclosing is not None else None
        chain.hold_cotangents()
        try:
            run_reverse(self.schedule, self.machine, chain)
            gathered = chain.run_of.gathered
            sent = [(i, ct) for i, ct in zip(self.entering, chain.cts, strict=True) if i is not None and ct is not None]
            sent += [(i, ct) for i, ct in zip(self.x_entering, x_sums, strict=False) if i is not None and ct is not None]
            sent += [(i, gathered[i]) for i in self.known if i in gathered]
        finally:
            chain.randomness.restore(before)
            chain.release()
        if free:
            self.start = []
        return sent

    def again(self, values: list[Any]) -> tuple[list[Any], "LoopRun"]:
        """Run the loop anew on the values of what entered it, for a replay of the program around it: its results and the new record."""
        by_place = dict(zip((*self.entering, *self.x_entering), range(len(values)), strict=False))
        message = f"a {self.chain.body.name} inside steps cannot be replayed yet ({len(by_place)} values enter it)"
        raise ReplayError(message)

    def _restart(self) -> None:
        chain = self.chain
        chain.release()
        chain.state, chain.owned, chain.lookback = list(self.start), False, None
        chain.randomness.restore(self.random_start)
        n = self.n
        self.schedule = self.policy.schedule(n, **self.sizes)
        self.machine = Machine(n)
        chain.keeps_lookback = False
        run_forward(self.schedule, self.machine, chain)

    def _gather_xs(self) -> list[Any]:
        """Buffers for the cotangents of ``xs``, filled a row at a time."""
        sums: list[Any] = [None] * len(self.x_entering)

        def take(k: int, cts: list[Any]) -> None:
            for place, ct in enumerate(cts):
                if ct is None:
                    continue
                if sums[place] is None:
                    rows = np.zeros((self.n or 0, *ct.shape), ct.dtype)
                    sums[place] = make(ct._tape.kinds.buffer, rows, None, ct._tape) if isinstance(ct, Handle) else rows
                sums[place][k] = ct

        self.chain.x_ct = take if self.x_entering else None
        return sums


def _pull_loop(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    """Reverse the loop, and send what comes out to what entered."""
    _, _, run, _ = record
    for ident, g in run.reverse(ct, free=sweep.frees):
        before = cts[ident]
        cts[ident] = g if before is None else join(before, g, ident, sweep)


def _build_loop(opcode: int) -> tuple[Form, Any]:
    template = _special("loop", _pull_loop, n_ids=0)
    return Form(opcode, template.primitive, (), 0, (), (), wide=True), _pull_loop


LOOP = new_form(_build_loop)
