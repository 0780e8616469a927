"""How long a step of a loop function takes: a few of them are run, forward and reverse, from the initial state."""

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from attrs import frozen

from pullback.loops.loop_record import LoopRecord, Pass
from pullback.memory.in_force import using
from pullback.memory.ledger import Ledger
from pullback.memory.store import Store
from pullback.memory.sweep import Sweep
from pullback.policies.save_all import SaveAll
from pullback.words.specs import carries_derivative

FEW, MORE = 4, 16
"""Steps of two runs, whose difference tells of a step: what a run costs besides is in both."""
ROUNDS: Final = 3
"""How often short runs are made: the least seconds are the step's, the others the machine's."""
LONG: Final = 0.02
"""Seconds of a step from which one run of two steps tells enough."""


@frozen
class StepSeconds:
    """Of one step of one loop."""

    advance: float
    """Run on plain arrays."""
    record: float
    """Run on tracers, and its tape kept."""
    reverse: float

    def total(self, n: int, n_forward: int) -> float:
        """Of ``n`` steps that are recorded and reversed, ``n_forward`` having been run in all."""
        return (n_forward - n) * self.advance + n * (self.record + self.reverse)


def step_seconds(record: LoopRecord) -> StepSeconds:
    """Measured on the loop that ``record`` is of; what it held is given up."""
    chain, n = record.chain, record.n or 0
    if n == 0:
        return StepSeconds(0.0, 0.0, 0.0)
    chain.store = Store(Ledger(heard=False), SaveAll())
    chain.steps.ledger, chain.verifier.compares, chain.verifier.compares_tapes = chain.store.ledger, False, False
    with chain.randomness.put_back(), using(record.ambient):
        few = _both(record, min(2, n))  # which meets cold caches, and tells how many to run
        if n > FEW and max(few) < LONG:
            most = min(MORE, n)
            _both(record, most)  # functions for steps that repeat are made
            ends = [map(min, *(_both(record, k) for _ in range(ROUNDS))) for k in (FEW, most)]
            forward, reverse = (max(b - a, 0.0) / (most - FEW) for a, b in zip(*ends, strict=True))
            advance = min(_advanced(record, most) for _ in range(ROUNDS))
        else:
            forward, reverse = (seconds / min(2, n) for seconds in few)
            advance = _advanced(record, min(2, n))
    return StepSeconds(advance, forward, reverse)


def _both(record: LoopRecord, n: int) -> tuple[float, float]:
    """Seconds of the forward and of the reverse pass of the first ``n`` steps under save-all."""
    chain = record.chain
    chain.rewind()
    seconds, reached = _timed(lambda: chain.go_forward_saving(n))
    cts: list[Any] = [np.ones_like(leaf) if carries_derivative(leaf) else None for leaf in chain.state]
    one = Pass(Sweep(None, frees=True), None, reached, cts, [], [None] * len(record.x_entering), None)
    back, _ = _timed(lambda: chain.go_back_saving(reached, [one]))
    chain.release()
    return seconds, back


def _advanced(record: LoopRecord, n: int) -> float:
    chain = record.chain
    chain.rewind()
    chain.advance(0, 1)
    seconds, _ = _timed(lambda: chain.advance(1, n))
    chain.release()
    return seconds / max(1, n - 1) if n > 1 else 0.0


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = call()
    return time.perf_counter() - began, found
