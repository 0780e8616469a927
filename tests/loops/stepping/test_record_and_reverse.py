"""Steps that are recorded one at a time between advances wait in an open run, and give the bits of recorded ones."""

import gc
import warnings
from contextlib import nullcontext, suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.loops.bodies.proofs import Proof
from pullback.loops.functions.loop_chain import LoopChain
from pullback.loops.stepping.record_and_reverse import RecordAndReverse
from pullback.memory.in_force import depth

N = 40
U = np.linspace(0.1, 0.9, 7)
C = np.linspace(-0.5, 0.5, 7)


def gradients(body, staging, u=U, c=C, **said):
    def f(u, c):
        return np.sum(pb.fori_loop(0, N, body(c), u, policy=pb.Binomial(3), staging=staging, **said) ** 2)

    return pb.grad(f, argnums=(0, 1))(u, c)


def same(body, **said):
    for found, wanted in zip(gradients(body, "numpy", **said), gradients(body, "off", **said), strict=True):
        assert found.tobytes() == wanted.tobytes()


def plain(c):
    return lambda k, u: u + 0.01 * (c * u * (1.0 - u))


def test_the_bits_are_those_of_recorded_steps():
    same(plain)


def test_a_step_that_keeps_a_handle_closes_the_run():
    def body(c):
        kept = []

        def step(k, u):
            w = c * u
            if k % 5 == 2:
                kept.append(w)
            return u + 0.01 * (w * (1.0 - u))

        return step

    same(body, verify="state")


def test_a_step_that_does_something_else_closes_the_run():
    def body(c):
        return lambda k, u: u + 0.01 * (c * u) if k % 7 == 3 else u - 0.02 * (u * u) + 0.01 * c

    same(body)


@pytest.mark.parametrize("staging", ["numpy", "off"])
def test_a_hidden_counter_is_found(staging):
    seen = [0.0]

    def body(c):
        def step(k, u):
            seen[0] += 1e-3
            return u + seen[0] * (c * u)

        return step

    with pytest.raises(pb.ReplayError):
        gradients(body, staging)


def test_a_step_that_sets_the_error_state():
    def body(c):
        def step(k, u):
            with np.errstate(over="ignore"):
                w = c * u
            return u + 0.01 * w

        return step

    same(body)


@pytest.fixture
def both(monkeypatch):
    """The steps that were recorded and reversed by one function, while no body rests."""
    monkeypatch.setattr(Proof, "repeats", lambda *_: False)
    seen = []
    computed = RecordAndReverse._computed

    def noted(self, k, state, *, keeps):
        if keeps:
            seen.append(k)
        return computed(self, k, state, keeps=keeps)

    monkeypatch.setattr(RecordAndReverse, "_computed", noted)
    return seen


def test_nearly_all_steps_are_recorded_and_reversed_at_once(both):
    same(plain)
    assert len(both) >= N - 5


@pytest.mark.parametrize("odd", [None, 1, 2, 17, N - 2])
@pytest.mark.parametrize("keeps", [False, True])
def test_stages_that_work_in_buffers_advance_in_the_same_run(both, monkeypatch, odd, keeps):
    monkeypatch.setattr(Proof, "repeats", lambda *_: False)  # else the body rests soon

    def body(c):
        kept = []

        def step(k, u):
            if k == odd:
                return np.sin(u) * c
            w = c * u
            if keeps and k % 5 == 2:
                kept.append(w)
            return u + 0.01 * (w * (1.0 - u))

        return step

    u, c = np.resize(U, 4096), np.resize(C, 4096)  # of 32 KiB, from which a stage has buffers
    found = gradients(body, "numpy", u=u, c=c, verify="state")
    assert [x.tobytes() for x in found] == [x.tobytes() for x in gradients(body, "off", u=u, c=c, verify="state")]
    assert keeps or len(both) >= N - 10


@pytest.mark.parametrize("odd", [1, 2, 17, N - 2])
def test_one_step_that_differs_is_reversed_by_itself(both, odd):
    def body(c):
        return lambda k, u: np.sin(u) * c if k == odd else u + 0.01 * (c * u * (1.0 - u))

    same(body)
    assert odd not in both
    assert len(both) >= N - 8


@pytest.mark.parametrize("n", [1, 2, 7, 400, 3000])
def test_sums_and_seeds_are_added_to_in_place_whatever_their_size(n):
    c, u = np.linspace(-0.5, 0.5, n), np.linspace(0.1, 0.9, n)

    def f(u, c, b, policy, staging):
        body = lambda k, state: (state[1] * b + 0.9 * state[0], state[0] + 0.01 * (c * state[1]) - b * c)  # noqa: E731
        out = pb.fori_loop(0, N, body, (u, 0.5 * u), policy=policy, staging=staging)
        return np.sum(out[0] * out[1])

    found = []
    for policy, staging in ((pb.SaveAll(), "off"), (pb.Binomial(3), "numpy"), (pb.Binomial(3), "numpy")):
        found.append(pb.grad(f, (0, 1, 2))(u, c, c + 2.0, policy, staging))
    for each in found[1:]:
        assert [a.tobytes() for a in each] == [a.tobytes() for a in found[0]]


def test_a_pull_is_repeated():
    def f(u, c):
        return pb.fori_loop(0, N, plain(c), u, policy=pb.Binomial(3), staging="numpy")

    _, pull = pb.vjp(f, U, C)
    wanted = [pull(np.eye(7)[k]) for k in range(3)]
    for k, each in enumerate(wanted):
        with pb.using(staging="off"):
            recorded = pb.vjp(lambda u, c: pb.fori_loop(0, N, plain(c), u), U, C)[1](np.eye(7)[k])
        assert [a.tobytes() for a in each] == [a.tobytes() for a in recorded]


def test_what_the_forward_warns_of_is_told_and_what_the_sweep_computes_is_not():
    def body(c):
        return lambda k, u: np.sqrt(u * u) + 0.0 * np.log(c * c)

    def told(staging):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            pb.grad(lambda u: np.sum(pb.fori_loop(0, N, body(np.array([0.0, 1.0])), u, policy=pb.Binomial(3),
                                                  staging=staging)))(np.array([0.0, 1.0]))  # fmt: skip
        return [str(each.message) for each in seen]

    assert told("numpy") == told("off")


def test_an_error_in_a_step_that_is_run_again_leaves_nothing():
    runs = [0]

    def body(c):
        def step(k, u):
            runs[0] += 1
            if runs[0] == 70:
                raise ValueError("no")
            return u + 0.01 * (c * u)

        return step

    with pytest.raises(ValueError, match="no"):
        gradients(body, "numpy", verify="off")
    same(plain)


TIMES = 4  # from the third time on the actions of a schedule are known, and the block is turned between them


@settings(max_examples=12, deadline=None)
@given(
    n=st.integers(25, 60),
    snapshots=st.integers(1, 6),
    size=st.sampled_from([1, 7, 2100]),
    odd=st.sets(st.integers(0, 60), max_size=3),
)
def test_drawn_loops_whose_actions_are_known(n, snapshots, size, odd):
    def f(u, c, staging):
        def step(k, state):
            a, b = state
            a = np.sin(a) * c if k in odd else a + 0.01 * (c * a * (1.0 - b))
            return a, 0.9 * b + c * a

        return sum(np.sum(x * x) for x in pb.fori_loop(0, n, step, (u, 0.5 * u), policy=policy, staging=staging))

    policy = pb.Binomial(snapshots)
    u, c = np.linspace(0.1, 0.9, size), np.linspace(-0.5, 0.5, size)
    for inputs in ((u, c), (c, u)):
        wanted = [x.tobytes() for x in pb.grad(f, (0, 1))(*inputs, "off")]
        for _ in range(TIMES):
            assert [x.tobytes() for x in pb.grad(f, (0, 1))(*inputs, "numpy")] == wanted


def test_the_body_is_in_the_same_traces_as_ever():
    def seen(staging):
        calls = []

        def body(c):
            def step(k, u):
                calls.append((k, type(u) is np.ndarray, type(c) is np.ndarray, depth()))
                return u + 0.01 * (c * u * (1.0 - u))

            return step

        gradients(body, staging)
        return calls

    recorded = seen("off")
    assert {on_arrays for _, on_arrays, _, _ in recorded} == {True, False}
    assert [seen("numpy") for _ in range(TIMES)] == [recorded] * TIMES
    assert not depth()


@pytest.mark.parametrize("on_arrays", [True, False])
def test_an_error_between_actions_that_are_known_leaves_nothing(on_arrays):
    left = [None]

    def body(c):
        def step(k, u):
            if left[0] is not None and (type(u) is np.ndarray) is on_arrays:
                left[0] -= 1
                if not left[0]:
                    raise ValueError("no")
            return u + 0.01 * (c * u * (1.0 - u))

        return step

    for _ in range(TIMES):
        wanted = gradients(body, "numpy")
    left[0] = 60 if on_arrays else 20
    with pytest.raises(ValueError, match="no"):
        gradients(body, "numpy")
    assert not depth()
    left[0] = None
    assert [x.tobytes() for x in gradients(body, "numpy")] == [x.tobytes() for x in wanted]


def test_numbers_that_are_drawn_are_drawn_again_between_actions_that_are_known():
    def f(u, staging):
        np.random.seed(3)  # noqa: NPY002 - the legacy generator is put back, too

        def step(k, u):
            return u + 0.01 * np.random.standard_normal() * np.sin(u)  # noqa: NPY002

        return np.sum(pb.fori_loop(0, N, step, u, policy=pb.Binomial(3), staging=staging))

    wanted = pb.grad(f)(U, "off").tobytes()
    assert [pb.grad(f)(U, "numpy").tobytes() for _ in range(TIMES)] == [wanted] * TIMES


@pytest.mark.parametrize("watched", [False, True])
def test_an_error_in_any_step_leaves_no_cycle(watched):
    left = [0]

    def body(_, u):
        left[0] -= 1
        if left[0] == 0:
            raise ZeroDivisionError
        return np.sin(u) * 1.1

    def fails_after(n):
        left[0] = n
        with suppress(ZeroDivisionError), pb.profile() if watched else nullcontext():
            pb.grad(lambda x: np.sum(pb.fori_loop(0, 12, body, x, staging="numpy")), policy=pb.Binomial(2))(U)
        return left[0] <= 0

    assert not fails_after(100)  # what is made once and kept is made here
    gc.collect()
    gc.disable()
    try:
        assert [n for n in range(1, 100) if fails_after(n)][-1] > 30
        assert gc.collect() == 0
    finally:
        gc.enable()


def watched_programs():
    """Programs whose steps hold their state, captured values, rows and constants in different ways."""
    rows, factor = np.random.default_rng(0).random((60, U.size)), np.linspace(0.9, 1.1, U.size)

    def two(x):
        c = x * x
        return np.sum(pb.fori_loop(0, 60, lambda k, s: (s[1] * c + rows[k] * s[0], np.sin(s[0]) * s[1]), (x, 2 * x))[0])

    def scanned(x):
        return np.sum(pb.scan(lambda u, row: (u * row + np.cos(u[::-1]), None), x, rows)[0])

    def constant(x):
        return np.sum(pb.fori_loop(0, 60, lambda _, u: np.sin(u[1:-1].sum() * factor) + 0.1 * factor * u * u, x))

    def passed_on(x):  # a leaf is no other array after the step, but a snapshot has one of its own
        return np.sum(pb.fori_loop(0, 60, lambda _, s: (s[0] * s[1] + 0.1 * np.sin(s[0]), s[1]), (x, 0.5 * x))[0])

    def swapped(x):
        return np.sum(pb.fori_loop(0, 60, lambda _, s: (np.sin(s[1]) * s[0] * s[1], s[0]), (x, x))[0])

    def turned(x):
        return np.sum(pb.fori_loop(0, 60, lambda _, s: ((s[0] * s[1])[::-1], s[1][::-1]), (x, 0.5 * x))[0])

    def spread(x):  # what is kept of these constants are few bytes, of each by itself
        def body(k, u):
            return np.sin(u * np.broadcast_to(rows[k, 0], x.shape)) * u + u * np.broadcast_to(rows[k, 1], x.shape)

        return np.sum(pb.fori_loop(0, 60, body, x))

    def odd(x):
        return np.sum(pb.fori_loop(0, 60, lambda k, u: factor * np.sin(u) if k % 17 == 3 else np.exp(-u) * u, x))

    given = (two, scanned, constant, passed_on, swapped, turned, spread, odd)
    return {each.__name__: each for each in given}


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize(
    "policy", [pb.SaveAll(), pb.Binomial(3), pb.Recompute(), pb.Periodic(7), pb.Mixed(3), pb.Budget(9000)], ids=repr
)
@pytest.mark.parametrize("name", watched_programs())
def test_who_watches_hears_the_same_whether_steps_are_reversed_at_once_or_not(name, policy):
    f, found = watched_programs()[name], []
    for staging in ("off", "numpy"):
        with pb.using(staging=staging):
            for _ in range(2):
                with pb.profile() as p:
                    pb.grad(f, policy=policy)(U)
                _, pull = pb.vjp(f, U, policy=policy)
                pull(1.0)
                found.append((p.peak_bytes, p.bytes_by_reason, p.n_forward, pull.report.bytes_by_reason))
                planned = pull.report.peak_bytes
                pull.close()
    assert planned == pb.plan(f, U, policy=policy).peak_bytes
    assert all(one == found[0] for one in found)


def test_within_a_profile_as_few_steps_are_reversed_by_themselves(monkeypatch):
    reverse, alone = LoopChain.reverse, []
    monkeypatch.setattr(LoopChain, "reverse", lambda chain, step: (alone.append(step), reverse(chain, step))[1])
    gradient = pb.grad(
        lambda x: np.sum(pb.fori_loop(0, 60, lambda _, u: np.sin(u) * 1.1 + 0.3, x)), policy=pb.Binomial(3)
    )
    for _ in range(3):
        with pb.profile():
            alone.clear()
            gradient(U)
        assert len(alone) <= 5
