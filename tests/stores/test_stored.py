"""Drawn programs under policies with places: the bits of save-all at two inputs, effects called once, the bytes that
were planned, and nothing left."""

import gc
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.programs.stored_programs import drawn_program, made

import pullback as pb
from pullback.stores import Disk, InMemory, Stored, Zlib

X = np.array([0.3, -0.7, 0.9, 0.2])
POLICIES = {
    "states on disk": lambda at: Stored(pb.Binomial(2), memory=Disk(at)),
    "tapes on disk": lambda at: Stored(pb.SaveAll(), memory=Disk(at, queue=1)),
    "segments on disk": lambda at: Stored(pb.Recompute(), memory=Disk(at, codec=Zlib(), queue=3)),
    "periods on disk": lambda at: pb.Periodic(3, tier=Disk(at)),
    "two tiers": lambda at: pb.Tiered(1, 2, directory=at),
    "bytes": lambda at: Stored(pb.Budget("1 MB"), memory=Disk(at)),
    "in memory": lambda at: Stored(pb.Binomial(3), memory=InMemory(Zlib())),
}
STAGINGS = ("auto", "numpy", "off")
checks = [HealthCheck.too_slow, HealthCheck.data_too_large]


def pulled(f, seen, x, policy):
    """The bits of the value and of two pulls, what the effects were told, and the figures of one pull."""
    seen.clear()
    out, pull = pb.vjp(f, x, policy=policy)
    first = pull(1.0)[0]
    report = pull.report
    second = pull(1.0)[0]
    pull.close()
    assert pull.report.live_bytes == 0
    return (np.asarray(out).tobytes(), first.tobytes(), second.tobytes(), tuple(seen)), report


def require_as_without(text, name, staging):
    """A program under a policy does what it does without one."""
    seen = []
    f = made(text, seen)
    try:
        with pb.using(staging="off"), np.errstate(all="ignore"):
            expected = [pulled(f, seen, x, pb.SaveAll())[0] for x in (X, -1.5 * X)]
    except (pb.PullbackError, ValueError, TypeError):
        return  # what a state may not be, and a broadcast that may not be written to
    with TemporaryDirectory() as at, pb.using(staging=staging), np.errstate(all="ignore"):
        policy = POLICIES[name](at)
        for x, wanted in zip((X, -1.5 * X, X), (*expected, expected[0]), strict=True):
            found, report = pulled(f, seen, x, policy)
            assert found == wanted, text
        seen.clear()
        plan = pb.plan(f, X, policy=policy)
        assert list(Path(at).iterdir()) == []
        if name != "in memory":  # which plans what it takes without its codec
            assert (plan.n_forward, plan.peak_bytes) == (report.n_forward, report.peak_bytes), text


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize(
    ("seed", "name", "staging"), [(4381612, "two tiers", "auto"), (4039275664, "tapes on disk", "off")]
)
def test_programs_that_were_found(seed, name, staging):
    """What a loop in a step made had the address, and so the name, of what was booked for the step and dead; save-all
    elsewhere than in memory, of a loop of unknown length, was said to hold two running states."""
    require_as_without(drawn_program(Random(seed)), name, staging)  # noqa: S311


@given(st.integers(0, 2**32), st.sampled_from(list(POLICIES)), st.sampled_from(STAGINGS))
@settings(max_examples=5, deadline=None, suppress_health_check=checks)
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_drawn_programs(seed, name, staging):
    require_as_without(drawn_program(Random(seed)), name, staging)  # noqa: S311


@pytest.mark.slow
@given(st.integers(0, 2**32), st.sampled_from(list(POLICIES)), st.sampled_from(STAGINGS))
@settings(max_examples=5_000, deadline=None, suppress_health_check=checks)
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_many_drawn_programs(seed, name, staging):
    require_as_without(drawn_program(Random(seed)), name, staging)  # noqa: S311


@pytest.mark.parametrize(
    "policy", [lambda at: pb.Tiered(2, None, directory=at), lambda at: Stored(pb.SaveAll(), memory=Disk(at))]
)
def test_after_a_part_that_is_broken_nothing_waits_for_the_collector(policy, tmp_path):
    """The error that a job of the disk kept had the frames of the reverse pass, and these the job."""

    def f(x):
        for _ in pb.steps(30):
            x = np.sin(x) * 1.1
        return np.sum(x)

    def parts():
        return list(tmp_path.rglob("*.npy"))

    def broken():
        _, pull = pb.vjp(f, np.linspace(0.2, 0.9, 1_000), policy=policy(tmp_path))
        while len(parts()) < 3:
            time.sleep(0.01)
        time.sleep(0.1)
        for path in parts():
            path.unlink(missing_ok=True)
        with pytest.raises(pb.StoreError, match="is missing"):
            pull(1.0)

    gc.disable()
    try:
        broken()
        assert parts() == []
        assert list(tmp_path.iterdir()) == []
    finally:
        gc.enable()
