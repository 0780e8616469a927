"""Policies on marked steps of plain code."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.programs.policies import MARKED, UNTOLD, X, same_everywhere

import pullback as pb
from pullback.memory.in_force import depth
from pullback.scheduling.optimal.binomial_split import forward_steps

pytestmark = pytest.mark.filterwarnings(UNTOLD)


def test_marked_steps():
    def f(x):
        u, scale = x * 1, x * x
        for k in pb.steps(17):
            u = np.sin(u) * scale + 0.1 * k
        return np.sum(u * x)

    same_everywhere(f)


def test_a_leapfrog_with_writes_in_place():
    data = np.random.default_rng(0).normal(size=(12, 2))

    def f(c, marked=pb.steps):
        u_prev, u = np.zeros_like(c), np.zeros_like(c)
        c2, loss = (0.5 * c) ** 2, 0.0
        for k in marked(12):
            u_next = 2 * u - u_prev
            u_next[1:-1] += c2[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
            u_next[3] += np.sin(k)
            u_prev, u = u, u_next
            loss = loss + np.sum((u[[1, 5]] - data[k]) ** 2)
        return loss

    c = np.linspace(0.5, 1, 7)
    same_everywhere(f, c, c[::-1].copy())
    same_everywhere(lambda c: f(c, range), c, c[::-1].copy())


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_steps(n):
    def f(x):
        u = x * 2
        for _ in pb.steps(n):
            u = u * x
        return np.sum(u**2)

    same_everywhere(f)


def test_steps_over_an_iterable_of_unknown_length():
    def f(x):
        u = x * 1
        for w in pb.steps(w for w in (0.1, 0.5, 0.9, 1.3, 1.2)):
            u = np.sin(u) + w * x
        return np.sum(u)

    same_everywhere(f)


def test_steps_left_by_break():
    def f(x):
        u = x * 1
        for k in pb.steps(40):
            u = u * 1.3 + x
            if np.sum(u * u) > 30 or k == 25:
                break
        return np.sum(u * u)

    same_everywhere(f)


def test_steps_left_by_continue_and_return():
    def inner(x):
        u = x * 1
        for k in pb.steps(20):
            if k % 3 == 1:
                continue
            u = np.sin(u) * x
            if k == 14:
                return u
        return u

    same_everywhere(lambda x: np.sum(inner(x)))


def test_an_exception_in_the_steps_that_the_user_catches():
    def f(x):
        u = x * 1
        try:
            for k in pb.steps(20):
                u = np.sin(u) * x
                if k == 7:
                    raise ArithmeticError  # noqa: TRY301 - where it is raised is what is tested
        except ArithmeticError:
            u = u + 1
        return np.sum(u * u)

    same_everywhere(f)


def test_an_exception_in_the_steps():
    for policy in MARKED:

        def f(x):
            for k in pb.steps(9):
                x = np.sin(x)
                if k == 5:
                    raise KeyError("here")
            return np.sum(x)

        with pytest.raises(KeyError, match="here"):
            pb.grad(f, policy=policy)(X)
        assert depth() == 0


def test_nested_steps_belong_to_the_outermost():
    def f(x):
        u = x * 1
        for _ in pb.steps(4):
            for j in pb.steps(3):
                u = np.sin(u) * x + j
        return np.sum(u)

    same_everywhere(f)


def test_values_that_live_through_many_steps():
    def f(x):
        early, kept, u = x * 3, [], x * 1
        for k in pb.steps(11):
            u = np.sin(u) + early * 0.1
            if k in (2, 6):
                kept.append(u * 2)
        return np.sum(kept[0] * kept[1] * u)

    same_everywhere(f)


def test_a_buffer_written_at_every_step():
    def f(x):
        u, trace = x * 1, np.zeros((9, 3), like=x)
        view = trace[:, 1]
        for k in pb.steps(9):
            u = np.sin(u) + x
            trace[k] = u * u
            if k == 4:
                view[:3] *= 2
        return np.sum(trace**2) + np.sum(view)

    same_everywhere(f)


def test_views_across_cuts():
    def f(x):
        u = x * 1
        for k in pb.steps(8):
            edge = u[1:]
            v = np.sin(u)
            edge *= 0.9
            edge[0] += v[2]
            u = u * v if k % 2 else u
        return np.sum(u * u)

    same_everywhere(f)


def test_writes_first():
    def f(x):
        x += 1.0
        x[0] *= 3
        for _ in pb.steps(5):
            x *= np.sin(x)
        return np.sum(x)

    def g(x):
        x += 1.0
        for _ in range(6):
            x *= np.sin(x)
        return np.sum(x)

    def h(x):
        np.add.at(x, [0, 0], 2.0)
        for _ in pb.steps(6):
            np.add.at(x, [1, 1], x[0] * 0.1)
            x *= 1.1
        return np.sum(x * x)

    for loss in (f, g, h):
        for x in (X, -X):
            gradient = pb.grad(loss)(x.copy())
            for policy in MARKED:
                assert pb.grad(loss, policy=policy)(x.copy()).tobytes() == gradient.tobytes(), (loss.__name__, policy)


def test_plain_arrays_changed_by_the_user():
    def f(x):
        mask, force = np.zeros(3, bool), np.zeros(3)
        u = x * 1
        for k in pb.steps(9):
            mask[:] = False
            mask[k % 3] = True
            force[...] = k
            u = np.where(mask, np.sin(u) * x, u) + force * x
            u[mask] *= 0.5
        return np.sum(u)

    same_everywhere(f)


def test_random_numbers_are_drawn_once():
    calls = []

    def f(x):
        rng = np.random.default_rng(3)
        u = x * 1
        for k in pb.steps(9):
            calls.append(k)
            u = np.sin(u) + x * rng.normal(size=3)
        return np.sum(u)

    expected = pb.grad(f)(X)
    for policy in MARKED:
        calls.clear()
        assert pb.grad(f, policy=policy)(X).tobytes() == expected.tobytes()
        assert calls == list(range(9))


def test_several_outputs_and_structures():
    def f(tree):
        u, v = tree["u"] * 1, tree["v"]
        for k in pb.steps(6):
            u, v = np.sin(v) * u, np.concatenate([u[1:], v[:1]]) + k
            a, b = np.split(np.concatenate([u, v]), 2)
            u = a * b.sum()
        return {"loss": np.sum(u * v)}["loss"]

    tree = {"u": X, "v": X + 1, "n": 3}
    gradient = pb.grad(f)(tree)
    for policy in MARKED:
        found = pb.grad(f, policy=policy)(tree)
        assert found["n"] is None
        assert all(found[k].tobytes() == gradient[k].tobytes() for k in "uv")


def test_loop_functions_inside_steps():
    def f(x):
        u = x * 1
        for k in pb.steps(4):
            u = pb.fori_loop(0, 5, lambda j, v: np.sin(v) * x + 0.1 * j, u) + k
            u, ys = pb.scan(lambda c, d: (c * d, c[0]), u, np.array([0.5, 0.8]))
            u = u + np.sum(ys)
        return np.sum(u)

    same_everywhere(f)


def test_steps_inside_a_loop_function():
    def f(x):
        def body(k, u):
            for _ in pb.steps(3):
                u = np.sin(u) * x + k
            return u

        return np.sum(pb.fori_loop(0, 5, body, x))

    same_everywhere(f)


def test_float32_and_complex():
    def f(z):
        u = z * 1
        for _ in pb.steps(7):
            u = u * z + np.conj(u) * 0.1
        return np.sum(np.abs(u) ** 2)

    for z in (
        np.array([0.3 + 0.4j, -0.2j]),
        np.array([0.3 + 0.4j, -0.2j], np.complex64),
        np.array([0.5, 0.2], np.float32),
    ):
        gradient = pb.grad(f)(z)
        for policy in MARKED:
            found = pb.grad(f, policy=policy)(z)
            assert found.dtype == z.dtype
            assert found.tobytes() == gradient.tobytes()


@pytest.mark.parametrize("policy", MARKED, ids=repr)
def test_a_pull_called_again(policy):
    def f(x):
        u = x * 1
        for k in pb.steps(9):
            u[k % 3] *= x[0]
            u = np.sin(u) + x
        return u

    _, fresh = pb.vjp(f, X)
    out, pull = pb.vjp(f, X, policy=policy)
    cts = [np.ones(3), np.array([1.0, 0, 0]), np.array([3.0, -1, 2]), np.ones(3)]
    for ct in cts:
        assert pull(ct)[0].tobytes() == fresh(ct)[0].tobytes()
    out[...] = 0
    assert pull(cts[0])[0].tobytes() == fresh(cts[0])[0].tobytes()
    pull.close()
    assert pull.report.live_bytes == 0


@pytest.mark.parametrize("policy", MARKED, ids=repr)
def test_second_order(policy):
    def f(x):
        u = x * 1
        for _ in pb.steps(5):
            u = np.sin(u) * x + u[0]
        return np.sum(u)

    v = np.array([1.0, -2.0, 0.5])

    def twice(inner, outer):
        return pb.grad(lambda x: np.sum(pb.grad(f, policy=inner)(x) * v), policy=outer)(X)

    expected = twice(None, None)
    e = 1e-6
    np.testing.assert_allclose(expected, (pb.grad(f)(X + e * v) - pb.grad(f)(X - e * v)) / (2 * e), rtol=1e-5)
    np.testing.assert_allclose(twice(policy, None), expected, rtol=1e-12)
    np.testing.assert_allclose(twice(None, policy), expected, rtol=1e-12)
    np.testing.assert_allclose(twice(policy, policy), expected, rtol=1e-12)


@pytest.mark.parametrize(("n", "slots"), [(1, 1), (2, 1), (10, 3), (37, 4), (100, 7)])
def test_forward_steps_meet_the_closed_form(n, slots):
    def f(x):
        u = x
        for _ in pb.steps(n):
            u = np.sin(u)
        return np.sum(u)

    _, pull = pb.vjp(f, X, policy=pb.Binomial(slots))
    pull(1.0)
    assert pull.report.n_forward == forward_steps(n, slots)
    assert pull.report.bytes_by_reason.get("snapshot", 0) <= slots * X.nbytes


def test_what_a_policy_holds():
    n, x = 400, np.linspace(0.1, 1, 1000)

    def f(a):
        u = a
        for _ in pb.steps(n):
            u = np.sin(u)
        return np.sum(u)

    _, everything = pb.vjp(f, x)
    assert everything.report.live_bytes >= n * x.nbytes
    for policy, limit in ((pb.Binomial(5), 8), (pb.Recompute(), 60)):
        _, pull = pb.vjp(f, x, policy=policy)
        pull(1.0)
        books = pull.report.bytes_by_reason["bookkeeping"]
        assert pull.report.peak_bytes - books <= limit * x.nbytes
        assert 100 * n > books - 2 * 700 > 8 * n  # a step, and once what re-executes it
        pull.close()
        assert pull.report.live_bytes == 0


@pytest.mark.parametrize("policy", MARKED, ids=repr)
def test_nothing_is_left(policy):
    gc.collect()
    gc.disable()
    try:
        seen = []

        def f(x):
            u = x * 1
            for _ in pb.steps(6):
                u = np.sin(u) * x
                u[0] = 0
                seen.append(weakref.ref(u._value))
            return np.sum(u)

        pb.grad(f, policy=policy)(np.ones(50))
        assert len(seen) == 6
        assert not [r for r in seen if r() is not None]
        assert gc.collect() == 0
    finally:
        gc.enable()


@settings(max_examples=50)
@given(
    n=st.integers(0, 30), marked=st.booleans(), seed=st.integers(0, 1000), writes=st.booleans(),
    stop=st.integers(0, 40),
    policy=st.one_of(st.builds(pb.Recompute, st.integers(1, 12)), st.builds(pb.Binomial, st.integers(1, 12)),
        st.just(pb.Recompute())),
)  # fmt: skip
def test_drawn_steps(n, marked, seed, writes, stop, policy):
    weights = np.random.default_rng(seed).uniform(-1, 1, (max(n, 1), 3))

    def f(x):
        u, trace = x * 0.5, np.zeros_like(x)
        for k in pb.steps(n) if marked else range(n):
            v = np.tanh(u) * weights[k] + x * 0.3
            if writes:
                v[1:] += u[:-1] * x[0]
                trace[k % 3] = v[0]
                trace[1:] *= 0.9
            u = v
            if k == stop:
                break
        return np.sum(u) + np.sum(trace * trace)

    for x in (X, X * 0.5):
        assert pb.grad(f, policy=policy)(x).tobytes() == pb.grad(f)(x).tobytes()


def test_an_empty_buffer_of_each_step_is_held_by_nobody():
    """What ``empty_like`` leaves in memory is no constant of the program: a step that fills a fresh buffer holds
    none for its replay."""
    x = np.linspace(0.1, 1.0, 5000)

    def f(x):
        u = x * 1
        for k in pb.steps(12):
            np.full(
                5000, float(k)
            )  # freed at once: memory that the next buffer is given, with other contents at every step
            v = np.empty_like(u)
            v[1:] = np.sin(u[:-1])
            v[0] = u[-1]
            u = v
        return np.sum(u * u)

    _, pull = pb.vjp(f, x, policy=pb.Binomial(2))
    assert np.array_equal(pull(1.0)[0], pb.grad(f)(x))
    assert "constant" not in pull.report.bytes_by_reason


def test_a_forward_that_depends_on_more_than_its_operands_is_found_out():
    """Its records are executed again, and the next step has begun with something else."""
    calls = []

    def forward(x):
        calls.append(0)
        return x * (1.0 + 0.5 * len(calls))

    impure = pb.primitive(forward, name="impure", operands=("x",), vjps={"x": lambda ct: ct})

    def gradient(**options):
        def f(x):
            for _ in pb.steps(6, **options):
                x = np.sin(impure(x))
            return np.sum(x)

        calls.clear()
        return pb.grad(f, policy=pb.Binomial(1))(np.array([0.3, 0.5]))

    with pytest.raises(pb.ReplayError, match=r"gave other bytes when it was executed again.*its operands"):
        gradient()
    gradient(verify="off")
    with pb.using(verify="off"):
        gradient()
