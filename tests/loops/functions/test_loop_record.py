"""What loops hold and give back: pulls called again, derivatives of derivatives, ledgers and weak references at the
end."""

import gc
import weakref

import numpy as np
import pytest
from tests.programs.policies import LOOPED, UNTOLD, X

import pullback as pb
from pullback.scheduling.optimal.binomial_split import advances, forward_steps
from pullback.testing.comparing.bits import same_bits

pytestmark = pytest.mark.filterwarnings(UNTOLD)


def state_after(x, policy, n=9):
    """A loop with captured values, a write in place and a per-step output."""
    scale = x * 2

    def step(u, d):
        v = np.sin(u) * scale + d
        v[0] += u[1] * 0.5
        return v, np.sum(v * v)

    return pb.scan(step, x, np.linspace(0, 1, n), policy=policy)


@pytest.mark.parametrize("policy", LOOPED, ids=repr)
def test_a_pull_called_again(policy):
    (_u, _ys), pull = pb.vjp(lambda x: state_after(x, policy), X)
    cts = [
        (np.ones(3), np.zeros(9)),
        (np.zeros(3), np.ones(9)),
        (np.array([1.0, 2, 3]), np.arange(9.0)),
        (np.ones(3), np.zeros(9)),
    ]
    first = [pull(ct)[0] for ct in cts]
    assert first[0].tobytes() == first[3].tobytes()
    for ct, found in zip(cts, first, strict=True):
        _, fresh = pb.vjp(lambda x: state_after(x, pb.SaveAll()), X)
        assert fresh(ct)[0].tobytes() == found.tobytes()
    np.testing.assert_allclose(first[2], first[0] * 0 + pull(cts[2])[0], rtol=0)
    pull.close()
    assert pull.report.live_bytes == 0
    with pytest.raises(pb.TracerError, match=r"pull is closed.*call vjp again"):
        pull(cts[0])


@pytest.mark.parametrize("policy", LOOPED, ids=repr)
def test_pulls_of_two_points_interleaved(policy):
    pulls = [pb.vjp(lambda x: np.sum(state_after(x, policy)[1]), x)[1] for x in (X, -X)]
    expected = [pb.grad(lambda x: np.sum(state_after(x, pb.SaveAll())[1]))(x) for x in (X, -X)]
    for _ in range(2):
        for pull, right in zip(pulls, expected, strict=True):
            assert pull(1.0)[0].tobytes() == right.tobytes()


@pytest.mark.parametrize("policy", LOOPED, ids=repr)
def test_the_gradient_of_a_gradient(policy):
    def f(x, p):
        return np.sum(pb.fori_loop(0, 5, lambda k, u: np.sin(u) * x + u[0], x, policy=p))

    def unrolled(x):
        u = x
        for _ in range(5):
            u = np.sin(u) * x + u[0]
        return np.sum(u)

    v = np.array([1.0, -2.0, 0.5])

    def twice(g):
        return pb.grad(lambda x: np.sum(pb.grad(g)(x) * v))

    found = twice(lambda x: f(x, policy))(X)
    np.testing.assert_allclose(found, twice(unrolled)(X), rtol=1e-10)
    e = 1e-6
    slope = (pb.grad(unrolled)(X + e * v) - pb.grad(unrolled)(X - e * v)) / (2 * e)
    np.testing.assert_allclose(found, slope, rtol=1e-5)


@pytest.mark.parametrize("policy", LOOPED, ids=repr)
def test_a_gradient_inside_a_body(policy):
    def energy(u, x):
        return np.sum(np.cos(u) * x)

    def f(x, p):
        return np.sum(pb.fori_loop(0, 4, lambda k, u: u - 0.1 * pb.grad(energy)(u, x), x, policy=p))

    def unrolled(x):
        u = x
        for _ in range(4):
            u = u + 0.1 * np.sin(u) * x
        return np.sum(u)

    np.testing.assert_allclose(pb.grad(lambda x: f(x, policy))(X), pb.grad(unrolled)(X), rtol=1e-12)


@pytest.mark.parametrize("policy", LOOPED, ids=repr)
def test_nothing_is_held_after_close(policy):
    _, pull = pb.vjp(lambda x: state_after(x, policy), X)
    assert pull.report.live_bytes > 0
    pull((np.ones(3), np.ones(9)))
    pull.close()
    assert pull.report.live_bytes == 0
    _, unused = pb.vjp(lambda x: state_after(x, policy), X)
    unused.close()
    assert unused.report.live_bytes == 0


@pytest.mark.parametrize(("n", "slots"), [(1, 1), (2, 1), (10, 1), (10, 3), (37, 4), (100, 7), (300, 300)])
def test_forward_steps_meet_the_closed_form(n, slots):
    ran = []

    def f(x):
        def body(k, u):
            ran.append(k)
            return np.sin(u) + x

        return np.sum(pb.fori_loop(0, n, body, x, policy=pb.Binomial(slots)))

    _, pull = pb.vjp(f, X)
    pull(1.0)
    assert pull.report.n_forward == forward_steps(n, slots) == len(ran) == n + advances(n, slots)
    assert pull.report.bytes_by_reason.get("snapshot", 0) <= slots * X.nbytes


def test_save_all_runs_each_step_once():
    ran = []

    def body(k, u):
        ran.append(k)
        return np.sin(u)

    pb.grad(lambda x: np.sum(pb.fori_loop(0, 20, body, x)))(X)
    assert ran == list(range(20))


def test_per_step_outputs_enter_no_snapshot():
    n, wide = 200, 50
    x = np.linspace(0, 1, wide)

    def f(x):
        _, ys = pb.scan(lambda u, _: (np.sin(u) + x, u[3:5]), x, np.arange(n), policy=pb.Binomial(4))
        return np.sum(ys)

    _, pull = pb.vjp(f, x)
    pull(1.0)
    assert pull.report.bytes_by_reason["snapshot"] <= 4 * x.nbytes


def test_using_governs_loops():
    with pb.using(pb.Binomial(2)):
        _, pull = pb.vjp(lambda x: np.sum(pb.fori_loop(0, 30, lambda k, u: np.sin(u), x)), X)
        pull(1.0)
    assert pull.report.n_forward == forward_steps(30, 2)


@pytest.mark.parametrize("n", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_n_steps_hold_few_snapshots(n):
    slots = 20

    def f(x):
        return pb.fori_loop(0, n, lambda k, u: u * 0.99999, x, policy=pb.Binomial(slots))

    x = np.ones(4)
    out, pull = pb.vjp(f, x)
    held = pull.report.live_bytes
    assert held <= (slots + 2) * x.nbytes + 4096
    (gradient,) = pull(np.ones(4))
    np.testing.assert_allclose(gradient, out, rtol=1e-12)
    report = pull.report
    assert report.n_forward == forward_steps(n, slots)
    assert report.bytes_by_reason["snapshot"] <= slots * x.nbytes
    pull.close()
    assert pull.report.live_bytes == 0


def test_weak_references_die():
    gc.disable()
    try:
        for policy in LOOPED:
            x = np.ones(50)
            seen = []

            def body(k, u, seen=seen):
                seen.append(weakref.ref(pb.value(u).base if pb.value(u).base is not None else pb.value(u)))
                return np.sin(u)

            gradient = pb.grad(lambda a, policy=policy, body=body: np.sum(pb.fori_loop(0, 7, body, a, policy=policy)))(
                x
            )
            alive = [r for r in seen if r() is not None and r() is not x]
            assert not alive, f"{policy}: {len(alive)} of {len(seen)} states live on"
            assert gradient.shape == (50,)
    finally:
        gc.enable()


@pytest.mark.parametrize("size", [4, 400], ids=["small", "large"])
@pytest.mark.parametrize("policy", [pb.Recompute(), pb.Binomial(1), pb.Binomial(3)], ids=repr)
def test_a_body_may_use_a_scratch_array_again_after_it_was_read(policy, size):
    """What a step that is recorded to be reversed next has read of it is what the pullback needs, not what is in it
    at the step's end."""

    def f(x, slope):
        scratch = np.linspace(0.5, 1.5, size)

        def body(k, u):
            factor = scratch.copy()
            new = np.sin(u * factor) * slope
            factor **= 2
            return new + slope * factor

        return np.sum(pb.fori_loop(0, 5, body, x))

    x = np.linspace(0.1, 0.9, size)
    found = pb.grad(f, (0, 1), policy=policy)(x, 0.8)
    assert same_bits(found, pb.grad(f, (0, 1))(x, 0.8))
    assert found[1] == pytest.approx((f(x, 0.8 + 1e-6) - f(x, 0.8 - 1e-6)) / 2e-6, rel=1e-7)


def test_a_loop_hands_its_results_out_in_the_layout_of_its_state():
    """``ravel("K")`` of an array with gaps is a copy, of one without a view: the second loop must meet the same as
    in NumPy."""
    x = np.linspace(0.1, 0.9, 24).reshape(2, 3, 4)[..., ::2]

    def doubled(_, u):
        u.ravel("K")[::2] *= 2.0
        return u

    def f(x):
        return np.sum(pb.fori_loop(0, 2, doubled, pb.fori_loop(0, 2, doubled, x)) ** 2)

    assert pb.value_and_grad(f)(x)[0] == f(x) == np.sum(x**2)
