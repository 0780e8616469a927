"""Whole runs: bookkeeping does not grow with the steps, but for 8 bytes of digest a step and leaf; per-step outputs
enter no snapshot, the process is as large as the plan says."""

import gc
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import pullback as pb
from pullback.rules.forms import FORMS

MIB = 2**20


def test_a_hundred_thousand_steps_keep_twenty_snapshots():
    x = np.linspace(0.1, 1.0, 8)
    _, pull = pb.vjp(lambda x: pb.fori_loop(0, 100_000, lambda k, u: u * 0.99999, x * 1.0, policy=pb.Binomial(20)), x)
    (run,) = [record[2] for record in pull._traced.tape.records if FORMS[record[0]].wide]
    assert len(run.chain.store.entries) == 20
    assert len(run.chain.verifier.expected) <= 20
    assert len(run.chain.verifier.digests) <= 100_000
    assert pull.report.live_bytes <= (20 + 2) * x.nbytes
    pull.close()


def test_bookkeeping_does_not_grow_with_steps():
    """Counted in blocks of the interpreter's allocator, in the body, so that the peak of Python objects is seen at
    little cost. The interpreter's lists of free tuples are filled before: they are emptied by a collection alone."""

    def most_blocks(n):
        most, calls = 0, 0

        def body(k, u):
            nonlocal most, calls
            calls += 1
            if calls % 97 == 0:
                most = max(most, sys.getallocatedblocks())
            return u * 0.9999

        before = sys.getallocatedblocks()
        pb.grad(lambda x: pb.fori_loop(0, n, body, x).sum(), policy=pb.Binomial(20))(np.linspace(0.1, 1.0, 8))
        return most - before

    gc.collect()
    gc.disable()
    try:
        most_blocks(20_000)
        few, many = most_blocks(1_000), most_blocks(20_000)
    finally:
        gc.enable()
    assert many - few < 300, f"{few} blocks at the peak of 1000 steps, {many} of 20000"


@pytest.mark.usefixtures("all_loaded")  # modules of long loops would count
def test_bytes_of_bookkeeping_do_not_grow_with_steps():
    """Looked at in the body after a collection, which empties the interpreter's free lists: they fill up over a run."""

    def most_bytes(n, every):
        most, calls = 0, 0

        def body(k, u):
            nonlocal most, calls
            calls += 1
            if calls % every == 0:
                gc.collect()
                most = max(most, tracemalloc.get_traced_memory()[0])
            return u * 0.9999

        gc.collect()
        tracemalloc.start()
        try:
            base = tracemalloc.get_traced_memory()[0]
            pb.grad(lambda x: pb.fori_loop(0, n, body, x).sum(), policy=pb.Binomial(5))(np.linspace(0.1, 1.0, 8))
            return most - base
        finally:
            tracemalloc.stop()

    most_bytes(100, 10)
    few, many = most_bytes(100, 10), most_bytes(800, 149)
    assert many - few < 6_000 + 8 * 700, f"{few} bytes at the peak of 100 steps, {many} of 800"


def test_receivers_enter_no_snapshot():
    """What scan gives out at each step is written once, outside the state: the peak has it once, not once for each
    snapshot."""
    size, copies, snapshots, n = 200, 20, 10, 30

    def f(x):
        _, ys = pb.scan(
            lambda u, _: (np.sin(u) * x, np.concatenate([u] * copies)), x * 1.0, length=n, policy=pb.Binomial(snapshots)
        )
        return (ys[:, ::7] ** 2).sum()

    x = np.linspace(0.1, 1.0, size)
    pb.grad(f)(x)  # what a first gradient loads is no part of the peak
    gc.collect()
    tracemalloc.start()
    try:
        base = tracemalloc.get_traced_memory()[0]
        _, pull = pb.vjp(f, x)
        pull(1.0)
        measured = tracemalloc.get_traced_memory()[1] - base
        report = pull.report
        pull.close()
    finally:
        tracemalloc.stop()
    assert report.bytes_by_reason["snapshot"] <= (snapshots + 2) * size * 8
    record = n * size * copies * 8
    assert (
        measured < 4 * record
    )  # the record, its handing out, its cotangent, the slice of it: ten snapshots would hold five more


WAVE = """
import sys

import numpy as np
from memory_profiler import memory_usage

import pullback as pb

N, STEPS = 120_000, 60
POLICIES = {"save all": pb.SaveAll(), "recompute": pb.Recompute(), "binomial": pb.Binomial(10)}


def misfit(c):
    c2 = c * c

    def body(k, carry):
        before, u, loss = carry
        after = 2.0 * u - before
        after[1:-1] += c2[1:-1] * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        after[5] += np.exp(-0.1 * (k - 10.0) ** 2)
        return u, after, loss + np.sum(after[::1000] ** 2)

    return pb.fori_loop(0, STEPS, body, (np.zeros(N), np.zeros(N), 0.0))[2]


c = np.full(N, 0.5)
policy = POLICIES[sys.argv[1]]
gradient_of = pb.grad(misfit, policy=policy)
before = memory_usage(max_usage=True)
peak = memory_usage((gradient_of, (c,)), interval=0.002, max_usage=True)
print(int((peak - before) * 2**20), pb.plan(misfit, c, policy=policy).peak_bytes)
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Growth of RSS and planned peak bytes by policy, one process each: the peak of a process never falls."""
    pytest.importorskip("memory_profiler", reason="RSS is read with memory-profiler, an optional extra")
    script = tmp_path_factory.mktemp("rss") / "wave.py"
    script.write_text(WAVE, encoding="utf-8")
    figures = {}
    for name in ("save all", "recompute", "binomial"):
        done = subprocess.run([sys.executable, str(script), name], capture_output=True, text=True, check=True)
        figures[name] = tuple(map(int, done.stdout.split()))
    return figures


@pytest.mark.parametrize("name", ["recompute", "binomial"])
def test_the_process_shrinks_by_what_is_predicted(measured, name):
    (all_rss, all_planned), (rss, planned) = measured["save all"], measured[name]
    saved, predicted = all_rss - rss, all_planned - planned
    assert predicted > 30 * MIB
    assert abs(saved - predicted) <= 0.25 * predicted, (
        f"RSS fell by {saved / MIB:.0f} MiB, the plans say {predicted / MIB:.0f} MiB"
    )


def test_the_process_of_each_policy_is_as_large_as_planned(measured):
    for name, (rss, planned) in measured.items():
        assert 0.9 * planned <= rss <= 1.02 * planned + 24 * MIB, (
            f"{name}: {rss / MIB:.0f} MiB resident, {planned / MIB:.0f} MiB planned"
        )
