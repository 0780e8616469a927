"""The ledger that times phases: nothing is counted twice, and everything is."""

from time import perf_counter

import numpy as np

import pullback as pb
from pullback.instruments.watching.phases import in_phases


def test_the_seconds_add_up_and_operations_are_counted():
    def marked(x):
        for _ in pb.steps(20):
            x = np.sin(x) * 1.5
        return np.sum(x)

    began = perf_counter()
    with in_phases() as ledger:
        out, pull = pb.vjp(marked, np.ones(50), policy=pb.Binomial(3))
        ledger.turn()
        pull(np.ones_like(out))
        found, elapsed = ledger.by_phase(), perf_counter() - began
        pull.close()
    assert all(spent.seconds > 0 for spent in found.values())
    together = sum(spent.seconds for spent in found.values())
    assert 0.9 * elapsed < together < 1.1 * elapsed
    assert ledger.operations == {"sin": ledger.n_forward - 20, "multiply": ledger.n_forward - 20}


def test_nothing_is_executed_again_under_save_all():
    with in_phases() as ledger:
        _, pull = pb.vjp(lambda x: np.sum(pb.fori_loop(0, 9, lambda _, u: np.sin(u), x)), np.ones(5))
        ledger.turn()
        pull(np.float64(1.0))
        pull.close()
    assert ledger.by_phase()["recompute"].seconds == 0
