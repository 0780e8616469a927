"""One loop on its tape: its forward sweep, its reverse, and what it keeps in between."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field

from pullback.loops.body import digests
from pullback.loops.chain import LoopChain
from pullback.loops.cotangents import Pass, StepTape
from pullback.loops.forecast import ShadowChain, Template, store_of_names, template_of
from pullback.memory.executor import run_forward, run_reverse
from pullback.memory.in_force import planned, recorded, using
from pullback.memory.ledger import value_items
from pullback.memory.sweep import Sweep, innermost_of
from pullback.policies.machine import Machine
from pullback.policies.save_all import SaveAll
from pullback.rules.forms import FORMS, release_records, special_form
from pullback.rules.unbroadcast import join
from pullback.words.errors import TracerError
from pullback.words.specs import buffer_of


@define(eq=False)
class LoopRun:
    """The record of a loop on its tape: the chain with what it holds, and how cotangents enter and leave it."""

    chain: LoopChain
    policy: Any
    n: int | None
    start: list[Any]
    """The initial state, in memory of its own: where a second reverse pass begins again."""
    ambient: Any
    """The policy in force around the loop: what loops in its body go by, in re-runs too."""
    schedule: Any = None
    machine: Machine = field(factory=lambda: Machine(None))
    entering: list[int | None] = field(factory=list)
    x_entering: list[int | None] = field(factory=list)
    known: list[int] = field(factory=list)
    n_leaves: int = 0
    closure: list[Any] = field(factory=list)
    """Inside steps: the frozen handles of the body, emptied when the run is over so that they keep no value of the
    step alive."""
    random_start: tuple[Any, ...] = ()
    fresh: bool = True
    reached: tuple[bytes, ...] = ()
    """Digests of the last state, which another sweep must reach."""
    sizes: dict[str, int] = field(factory=dict)
    shadow: Any = None
    """While planning: the chain on names of buffers."""
    start_items: list[Any] = field(factory=list)
    uneven: bool = False
    """While planning: whether steps hold what two recorded ones cannot tell: loops of their own, a leaf twice, a
    captured value as a leaf."""

    def forward(self) -> None:
        """The initial sweep: step 0 runs on tracers and tells what is captured and what a step's tape costs, then
        the schedule runs."""
        chain = self.chain
        self.random_start = chain.start_random = chain.randomness.save()
        if self.n is None and chain.condition is not None and not chain.goes_on(0):
            self.n = 0
            return
        start = chain.state
        self._probe()
        if chain.enclosing is not None and recorded(chain.enclosing.outer):
            self.policy = SaveAll()
        loops = planned()
        if not any(i is not None for i in (*self.entering, *self.x_entering, *self.known)):
            self._run_unneeded()
            return
        if self.start:  # for another reverse pass: where it begins, and what the body's closure has captured
            self.start_items = [
                *value_items(self.start, "snapshot"),
                *value_items(chain.captured_values.values(), "snapshot"),
            ]
            chain.ledger.hold(self.start_items)
        if loops is not None:
            self._forward_of_shadow(start)
            loops.append(self)
            return
        del start  # the executor alone says how long the initial state lives
        chain.ledger.n_forward += 1
        self.schedule, self.machine = self.policy.schedule(self.n, **self.sizes), Machine(self.n)
        chain.keeps_lookback = self.n is None
        run_forward(self.schedule, self.machine, chain)
        chain.keeps_lookback, chain.lookback = False, None
        self.n = self.machine.n
        if self.start:
            self.reached = digests(chain.state)

    def _probe(self) -> None:
        """Run step 0 on tracers: what is captured, and what a state and a step's tape cost."""
        chain = self.chain
        chain.probe = chain.run_recorded(0)
        step, after, _ = chain.probe
        self.known = sorted(chain.known or ())
        self.uneven = any(record is not None and FORMS[record[0]].wide for record in step.tape.records)
        self.sizes = {
            "state_bytes": sum(leaf.nbytes for leaf in after if isinstance(leaf, np.ndarray)),
            "tape_bytes": sum(nbytes for _, nbytes, _ in step.items),
        }

    def _run_unneeded(self) -> None:
        """Nothing traced enters: the loop runs plainly, and holds nothing."""
        chain = self.chain
        assert chain.probe is not None
        self.start, chain.start = [], []
        unused, after, ys = chain.probe
        release_records(unused.tape.records)
        chain.give_ys(0, ys)
        chain.ledger.n_forward += 1
        self.n = self._run_rest(after)

    def _forward_of_shadow(self, start: list[Any]) -> None:
        """The sweep on names of buffers, after a second recorded step that stands for all later ones."""
        chain = self.chain
        assert chain.probe is not None
        first, after, ys = chain.probe
        chain.give_ys(0, ys)
        chain.state = after
        goes_on = self.n > 1 if self.n is not None else chain.goes_on(1)
        random = chain.randomness.save()
        second, last, _ = chain.run_recorded(1) if goes_on else chain.probe
        self.uneven = self.uneven or not _plain_passage(chain, last)
        captured = list(chain.captured_values.values())
        places = {id(buffer_of(value)) for value in captured if isinstance(value, np.ndarray)}
        both = {key for key, _, _ in first.items} & {key for key, _, _ in second.items}
        held = {key: key if key in places else (id(self), "shared", key) for key in both}
        templates = (
            template_of(first, start, after),
            template_of(second, after, last) if goes_on else template_of(first, start, after),
        )
        release_records(first.tape.records)
        if goes_on:
            release_records(second.tape.records)
            self._compare_third(last, templates[1], _constants(first) & _constants(second), _constants(first))
        chain.randomness.restore(random)
        n = self._run_rest(after)
        initial = [id(buffer_of(leaf)) if isinstance(leaf, np.ndarray) else None for leaf in start]
        self.shadow = ShadowChain(
            *templates,
            store_of_names(chain.store),
            chain.ledger,
            n,
            unknown=self.n is None,
            shared=held,
            alive=captured,
            initial=initial,
            kept=bool(self.start),
        )
        self.schedule, self.machine = self.policy.schedule(self.n, **self.sizes), Machine(self.n)
        run_forward(self.schedule, self.machine, self.shadow)
        self.n = n

    def _compare_third(self, state: list[Any], later: Template, shared: set[Any], first: set[Any]) -> None:
        """A third recorded step must hold what the second does."""
        chain = self.chain
        chain.state = state
        if not (self.n > 2 if self.n is not None else chain.goes_on(2)):
            return
        third, after, _ = chain.run_recorded(2)
        release_records(third.tape.records)
        found = template_of(third, state, after)
        self.uneven = self.uneven or (found.shape, found.passes, found.sizes) != (
            later.shape,
            later.passes,
            later.sizes,
        )
        self.uneven = self.uneven or _constants(third) & first != shared

    def _run_rest(self, after: list[Any]) -> int:
        """Run the steps after the first on plain arrays, holding nothing, so that the program goes on with true
        values; the length."""
        chain, k = self.chain, 1
        before = chain.ledger.n_forward
        chain.state, chain.probe, chain.owned = after, None, False
        while k < self.n if self.n is not None else chain.goes_on(k):
            chain.advance(k, k + 1)
            k += 1
        chain.ledger.n_forward = before
        return k

    def reverse(self, given: Sequence[Any], runs: Sequence[Sweep]) -> list[list[tuple[int, Any]]]:
        """For each run the cotangents of what entered, given those of the results, or None.

        The steps that the policy runs again are run once for all. Sweeps the loop again if it was reversed before.
        """
        chain = self.chain
        with chain.randomness.put_back(), using(self.ambient):
            try:
                if not self.fresh:
                    self._restart()
                self.fresh = False
                chain.passes = [self._pass(cts, run) for cts, run in zip(given, runs, strict=True)]
                chain.hold_cotangents(len(runs))
                run_reverse(self.schedule, self.machine, chain)
                sent = [self._sent(each) for each in chain.passes]
            finally:
                chain.release()
        chain.state = []
        if runs[-1].frees:
            self.release()
        return sent

    def _pass(self, cts: Any, run: Sweep) -> Pass:
        """Where the pass of one seed begins."""
        enclosing = self.chain.enclosing
        cts = [None] * self.n_leaves if cts is None else cts
        outer = innermost_of(enclosing.outer if enclosing is not None else None, cts)
        return Pass(
            run,
            outer,
            self.n or 0,
            list(cts[: self.n_leaves]),
            list(cts[self.n_leaves :]),
            [None] * len(self.x_entering),
        )

    def _sent(self, ended: Pass) -> list[tuple[int, Any]]:
        """The cotangents that a pass has brought to what entered the loop."""
        entered = zip((*self.entering, *self.x_entering), (*ended.cts, *ended.x_cts), strict=True)
        sent = [(i, ct) for i, ct in entered if i is not None and ct is not None]
        return sent + [(i, ended.gathered[i]) for i in self.known if i in ended.gathered]

    def release(self) -> None:
        """The run is over: nothing of it is held any more."""
        self.chain.release()
        self.chain.state = []
        self.chain.ledger.release(self.start_items)
        self.start, self.start_items, self.chain.start = [], [], []
        self.chain.body.call = _over  # the closure holds handles of the tape that holds this run
        for handle in self.closure:
            handle._value = None

    def _restart(self) -> None:
        """The forward sweep again, from the initial state and the random states of that moment."""
        chain = self.chain
        chain.release()
        chain.state, chain.owned, chain.lookback = list(self.start), False, None
        chain.randomness.restore(self.random_start)
        n = self.n
        self.schedule = self.policy.schedule(n, **self.sizes)
        self.machine = Machine(n)
        chain.keeps_lookback = False
        run_forward(self.schedule, self.machine, chain)
        if n is not None and self.reached:
            chain.expected[n] = self.reached
            chain.verify(n, chain.state)
        chain.swept()


def _constants(step: StepTape) -> set[Any]:
    return {key for key, _, reason in step.items if reason == "constant"}


def _over(*_: Any) -> Any:
    message = "this loop was released; call vjp again"
    raise TracerError(message)


def _plain_passage(chain: LoopChain, leaves: list[Any]) -> bool:
    """Whether the leaves after a recorded step have buffers of their own, as those of a plain step have."""
    buffers = [id(buffer_of(leaf)) for leaf in leaves if isinstance(leaf, np.ndarray)]
    captured = {id(buffer_of(value)) for value in chain.captured_values.values() if isinstance(value, np.ndarray)}
    views = any(isinstance(leaf, np.ndarray) and leaf.base is not None for leaf in leaves)
    return not views and len(set(buffers)) == len(buffers) and not captured & set(buffers)


def _pull_loop(record: tuple[Any, ...], ct: Any, cts: list[Any], run: Sweep) -> None:
    _pull_loop_of_several(record, (ct,), (run,))


def _pull_loop_of_several(record: tuple[Any, ...], given: Sequence[Any], runs: Sequence[Sweep]) -> None:
    """Reverse the loop once for all seeds, and send what comes out to what entered."""
    for run, sent in zip(runs, record[2].reverse(given, runs), strict=True):
        for ident, g in sent:
            before = run.cts[ident]
            run.cts[ident] = g if before is None else join(before, g, ident, run)


LOOP = special_form("loop", _pull_loop, n_ids=0, wide=True, together=_pull_loop_of_several)
