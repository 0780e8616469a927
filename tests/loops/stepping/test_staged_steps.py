"""The switch ``staging``, and loops that are staged within other traces, threads and policies."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from tests.staging.generated.both_ways import stages

import pullback as pb
from pullback.loops.functions.loop_record import LoopRecord
from pullback.loops.stepping.rerun import LoopSteps
from pullback.memory.in_force import staging_in_force
from pullback.staging.generated import shelf
from pullback.testing.comparing.bits import same_bits

X = np.array([0.3, -0.7, 1.1, 0.2])
POLICIES = (pb.SaveAll(), pb.Recompute(3), pb.Binomial(3))
LOOPS = {
    "fori_loop": lambda body, x, **given: pb.fori_loop(0, 12, lambda k, u: body(u), x, **given),
    "scan": lambda body, x, **given: pb.scan(lambda u, _: (body(u), None), x, length=12, **given)[0],
    "while_loop": lambda body, x, **given: pb.while_loop(
        lambda s: s[0] < 12, lambda s: (s[0] + 1, body(s[1])), (0, x), **given
    )[1],
}


pytestmark = pytest.mark.usefixtures("nothing_is_known")


def n_stages():
    return len(stages())


def sines(u):
    return np.sin(u) * 0.9 + u[::-1]


@pytest.mark.parametrize("loop", LOOPS)
def test_every_loop_function_takes_the_switch(loop):
    gradients = {
        staging: pb.grad(lambda x, staging=staging: np.sum(LOOPS[loop](sines, x, staging=staging)))(X)
        for staging in ("off", "auto", "numpy")
    }
    assert n_stages() == 1
    assert same_bits(gradients["off"], gradients["numpy"])
    assert same_bits(gradients["off"], gradients["auto"])


@pytest.mark.parametrize("staging", ["no-name", "", True, "1", 1])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_switch_that_is_none_names_those_there_are(loop, staging):
    said = r"staging= takes one of 'auto', 'off', 'numpy' or the name of a backend, got"
    with pytest.raises(pb.PolicyError, match=said):
        pb.grad(lambda x: np.sum(LOOPS[loop](sines, x, staging=staging)))(X)
    with pytest.raises(pb.PolicyError, match=said):
        pb.using(staging=staging)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_backend_that_is_not_installed_is_named_with_the_line_that_installs_it(loop):
    said = r"no backend 'fast' is installed \(there is: .*\); pip install pullback-fast"
    with pytest.raises(pb.PluginError, match=said):
        pb.grad(lambda x: np.sum(LOOPS[loop](sines, x, staging="fast")))(X)
    with pytest.raises(pb.PluginError, match=said):
        pb.using(staging="fast")


def test_using_is_what_none_means_and_an_argument_wins():
    assert staging_in_force() == "auto"
    with pb.using(staging="off"):
        assert staging_in_force() == "off"
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 40, lambda k, u: np.sin(u), x)))(X)
        assert n_stages() == 0
        with pb.using(pb.Binomial(2)):
            assert staging_in_force() == "off"
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 12, lambda k, u: np.sin(u), x, staging="numpy")))(X)
        assert n_stages() == 1
    assert staging_in_force() == "auto"


def test_without_a_gradient_nothing_is_staged():
    with pb.using(staging="numpy"):
        pb.fori_loop(0, 40, lambda k, u: np.sin(u), X)
        pb.jvp(lambda x: pb.fori_loop(0, 40, lambda k, u: np.sin(u), x), (X,), (X,))
    assert n_stages() == 0


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("verify", ["off", "state", "all"])
def test_every_verify_has_the_same_bits(policy, verify):
    def of(staging):
        with pb.using(policy, verify=verify, staging=staging):
            return pb.grad(lambda x: np.sum(pb.fori_loop(0, 12, lambda k, u: np.sin(u) * x, x)))(X)

    assert same_bits(of("numpy"), of("off"))


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_loops_in_loops_and_in_other_traces(policy):
    def inner(u, x):
        return pb.fori_loop(0, 6, lambda j, v: np.sin(v) * x + u[0], u)

    def f(x):
        u = pb.fori_loop(0, 8, lambda k, u: inner(u, x) * 0.5, x)
        for _ in pb.steps(3):
            u = pb.fori_loop(0, 8, lambda k, v: np.cos(v) * x, u)
        return np.sum(pb.checkpoint(partial(inner, x=x))(u))

    def of(staging):
        with pb.using(staging=staging):
            return [pb.grad(f, policy=policy)(X), pb.hvp(f, (X,), (X[::-1],), policy=policy)]

    assert same_bits(of("numpy"), of("off"))


def test_threads_share_stages_and_no_buffers():
    def f(x):
        return np.sum(pb.fori_loop(0, 40, lambda k, u: np.sin(u) * x + u[::-1] * 0.1, x, staging="numpy"))

    points = [np.linspace(-1, 1, 4096) * (k + 1) for k in range(8)]
    alone = [pb.grad(f)(x) for x in points]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(pb.grad(f), points))
    assert same_bits(together, alone)


def test_a_trap_sees_every_operation():
    def body(k, u):
        return np.log(u - 0.1 * k)

    for staging in ("off", "numpy"):
        with pb.trap("nan"), pytest.raises(pb.NonFiniteError, match="log"), np.errstate(all="ignore"):
            pb.grad(lambda x, staging=staging: np.sum(pb.fori_loop(0, 12, body, x, staging=staging)))(X + 2)


_NOTED = []


@pytest.mark.parametrize("policy", [pb.Recompute(), pb.Binomial(2), pb.Binomial(5), pb.Periodic(3)], ids=repr)
def test_what_a_body_notes_does_not_matter_to_it_however_its_steps_are_recorded(policy):
    def f(x):
        captured = x * 1.0

        def body(k, u):
            _NOTED.append(k)
            b = captured + 0.1
            np.copyto(b, u)
            b *= 0.7
            if np.max(u) > 0.5 and np.min(b) < 0.2:  # what was written is dead, and no stage tells of it
                b = np.zeros_like(u)
            return np.tanh(u * 0.9 + u * 0.5 * b * 0.1)

        return np.sum(pb.fori_loop(0, 13, body, x) ** 2)

    one, other = np.array([0.3, -0.4, 0.8, 0.1]), 1.3 * np.array([-0.7, 0.9, 0.2, -0.1])
    for x in (one, other, one, other):
        _NOTED.clear()
        with pb.using(staging="off"):
            recorded = pb.grad(f, policy=policy)(x)
        for _ in range(3):
            with pb.using(staging="numpy"):
                assert same_bits(pb.grad(f, policy=policy)(x), recorded)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("at", [1, 4, 11])
def test_a_handle_that_is_held_and_not_used_disturbs_no_other_loop(policy, at):
    held = _HELD
    held.clear()

    def f(x):
        return np.sum(pb.fori_loop(0, 3, lambda j, u: pb.fori_loop(0, 12, partial(holding, at), u * 0.9), x) ** 2)

    with pb.using(staging="off"):
        recorded = pb.grad(f, policy=policy)(X)
    held.clear()
    for _ in range(3):
        with pb.using(staging="numpy"):
            assert same_bits(pb.grad(f, policy=policy)(X), recorded)


_HELD = {}


def holding(at, k, u):
    v = u * 0.5
    if k == at:
        _HELD.setdefault(k, v)
    return u * 0.9 + v[:1] * 0.1


@pytest.mark.parametrize("sizes", [(3, 2), (11, 30), (100, 2), (2, 100)], ids=str)
@pytest.mark.parametrize("staging", ["auto", "numpy"])
def test_two_loops_in_a_staged_step(sizes, staging):
    """The second once ran outside of the trace of the step: what it captures got no cotangent from it."""
    n, m = sizes

    def f(x):
        def body(j, u):
            return np.sin(u) * x

        def step(k, u):
            return pb.fori_loop(0, m, body, pb.fori_loop(0, m, body, u))

        return np.sum(pb.fori_loop(0, n, step, x))

    x = np.array([0.3, -0.7, 1.1])
    with pb.using(staging="off"):
        expected = pb.grad(f)(x)
    with pb.using(staging=staging):
        assert pb.grad(f)(x).tobytes() == expected.tobytes()


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize(
    ("policy", "n", "staged"),
    [
        (pb.SaveAll(), 110, True), (pb.SaveAll(), 60, False), (pb.Binomial(104), 110, True),
        (pb.Binomial(5), 60, False), (pb.Periodic(2), 220, True), (pb.Recompute(), 60, False),
        (pb.Budget("200 MB"), 60, False),
    ],
    ids=str,
)  # fmt: skip
def test_steps_of_large_arrays_are_staged_where_the_policy_holds_much_more(policy, n, staged):
    """The stage is made of the first steps, when little is held."""

    def body(k, u):
        return 0.9 * np.sin(u)

    f = lambda x: np.sum(pb.fori_loop(0, n, body, x))  # noqa: E731
    x = np.linspace(0.1, 1.0, 150_000)  # 1.2 MB
    _, pull = pb.vjp(f, x, policy=policy)
    found = pull(1.0)[0]
    assert bool(pb.explain_stage(body).stages) == staged
    assert pull.report.peak_bytes == pb.plan(f, x, policy=policy).peak_bytes
    with pb.using(staging="off"):
        np.testing.assert_array_equal(pb.grad(f, policy=policy)(x), found)


def test_short_loops_that_are_run_again_and_again_are_staged():
    def body(k, u):
        return u + 0.1 * np.sin(u) * u

    gradient = pb.grad(lambda x: np.sum(pb.fori_loop(0, 10, body, x) ** 2))
    x = np.linspace(0.1, 1.0, 30)
    known = []
    for k in range(4):
        found = gradient(x + k)
        known.append(len(pb.explain_stage(body).stages))
        with pb.using(staging="off"):
            np.testing.assert_array_equal(gradient(x + k), found)
    assert known == [0, 0, 1, 1]


def test_a_loop_that_is_called_again_begins_with_the_stage_of_the_call_before():
    ran = []

    def body(k, u):
        ran.append(k)
        return np.sin(u) * scale[0] + u * k

    def loss(x):
        return np.sum(pb.fori_loop(0, 5, body, x * 2.0, staging="numpy"))

    scale = [0.5]
    with pb.using(staging="off"):
        wanted = [pb.grad(loss)(x).tobytes() for x in (np.ones(3), np.full(3, 0.3))]
    found = [pb.grad(loss)(np.ones(3)).tobytes()]
    [stage] = [stage for each in shelf.shelves_of(body)[0].variants for stage in each.stages]
    ordinary, stepped = LoopSteps.finished, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LoopSteps, "finished", lambda self, k, *rest: stepped.append(k) or ordinary(self, k, *rest))
        ran.clear()
        found.append(pb.grad(loss)(np.full(3, 0.3)).tobytes())
        assert (ran, stepped) == ([0, 1, 2, 3, 4], [])
        scale[0] = 0.25  # another constant is the same step
        pb.grad(loss)(np.ones(3))
        assert stepped == []
    assert found == wanted
    assert [one for each in shelf.shelves_of(body)[0].variants for one in each.stages] == [stage]


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(2), pb.Recompute(), pb.Budget("1 GB")])
def test_a_first_step_that_is_another_is_recorded_and_soon_not_tried_any_more(policy):
    def body(k, carry):
        u, w = carry
        return (np.tanh(u) if k == 0 else np.sin(u) * w) * outside, w * 1.01

    def loss(x):
        nonlocal outside
        outside = x * 3.0
        return np.sum(pb.fori_loop(0, 40, body, (x, np.linspace(0.5, 1.0, 3)), policy=policy, staging="numpy")[0])

    outside = None
    x = np.array([0.3, 0.7, 1.1])
    with pb.using(staging="off"):
        wanted = pb.grad(loss)(x)
    for _ in range(5):
        assert pb.grad(loss)(x).tobytes() == wanted.tobytes()
    tried = 2 if policy == pb.SaveAll() else 0  # of what is run again, the records of step 0 are compared
    assert sum(each.n_begun_otherwise for each in shelf.shelves_of(body)[0].variants) == tried
    assert all(each.n_failed == 0 for each in shelf.shelves_of(body)[0].variants)


def test_what_is_left_out_before_a_loop_is_not_taken_for_left_out_by_its_steps():
    def body(k, u):
        return np.sqrt(np.abs(u)) * 0.0 + u

    def loss(x, *, masked):
        u = pb.fori_loop(0, 6, body, np.where(x > 0, x, 0.0) if masked else x, staging="numpy")
        return np.sum(u) + np.sum(np.sqrt(x) * 0.0)

    x, wanted = np.array([0.0, 1.0, 2.0]), {}
    with np.errstate(all="ignore"):
        for masked in (True, False):
            with pb.using(staging="off"):
                wanted[masked] = pb.grad(loss)(x, masked=masked).tobytes()
        for masked in (True, True, False, False, True):
            assert pb.grad(loss)(x, masked=masked).tobytes() == wanted[masked]
    assert wanted[True] != wanted[False]


def test_the_sizes_that_are_told_are_those_of_a_recorded_first_step(monkeypatch):
    weights, captured, told = np.linspace(0.1, 1.0, 50), [None], []

    def body(k, carry):
        u, n = carry
        return np.tanh(u * weights) + u * captured[0], n + 0.5

    def loss(x):
        captured[0] = x * 0.5
        return np.sum(pb.fori_loop(0, 8, body, (x, 0.0), staging="numpy")[0])

    ordinary = LoopRecord._decide
    monkeypatch.setattr(LoopRecord, "_decide", lambda self: told.append(self.sizes) or ordinary(self))
    for _ in range(3):
        pb.grad(loss)(np.linspace(0, 1, 50))
    assert told[0] == told[1] == told[2]
