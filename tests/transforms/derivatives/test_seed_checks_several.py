"""A pull of several seeds: the bits of a call for each, what a policy runs again run once for all, cotangents held
for each."""

import numpy as np
import pytest
from tests.programs.step_programs import (
    POLICIES,
    PROGRAMS,
    N,
    X,
    looped,
    move,
    nested,
    plain,
    scanned,
    stepped,
    while_held,
)

import pullback as pb

SEEDS = [(np.array([1.0, 0.0, 2.0, -1.0]), None), (None, 2.0), (np.linspace(0.1, 0.7, 4), -0.3)]


def alone(f, policy, seeds=SEEDS, x=X):
    """The answers of a fresh pull for each seed."""
    return [pb.vjp(f, x, policy=policy)[1](seed) for seed in seeds]


# ----------------------------------------------------------------------------------------------------------------- bits


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_every_seed_has_the_bits_of_a_call_of_its_own(f, policy):
    _, pull = pb.vjp(f, X, policy=policy)
    for _ in range(2):  # the second call begins at the initial state again
        together = pull(SEEDS)
        assert len(together) == len(SEEDS)
        for (got,), (wanted,) in zip(together, alone(f, policy), strict=True):
            assert got.tobytes() == wanted.tobytes()
            assert got.flags.writeable and not any(
                np.shares_memory(got, other) for (other,) in together if other is not got
            )


@pytest.mark.parametrize("f", [stepped, looped, scanned, nested], ids=lambda f: f.__name__)
def test_several_seeds_go_through_a_trace_around_them(f):
    """The derivative of the answers, by the primal and by the seeds."""

    def answers(x, a, b):
        _, pull = pb.vjp(f, x, policy=pb.Binomial(2))
        return [g for (g,) in pull([(a, None), (b, 1.0)])]

    def one_by_one(x, a, b):
        _, pull = pb.vjp(f, x, policy=pb.Binomial(2))
        return [pull((a, None))[0], pull((b, 1.0))[0]]

    a, b = SEEDS[0][0], SEEDS[2][0]
    weigh = lambda g: np.sum(g[0] * np.arange(4.0)) + np.sum(np.sin(g[1]))  # noqa: E731
    got = pb.grad(lambda *args: weigh(answers(*args)), argnums=(0, 1, 2))(X, a, b)
    wanted = pb.grad(lambda *args: weigh(one_by_one(*args)), argnums=(0, 1, 2))(X, a, b)
    for g, w in zip(got, wanted, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-14)
    sent = pb.jvp(lambda x: answers(x, a, b), (X,), (a,))[1]
    for g, w in zip(sent, pb.jvp(lambda x: one_by_one(x, a, b), (X,), (a,))[1], strict=True):
        assert g.tobytes() == w.tobytes()


def test_complex_seeds_in_the_other_convention():
    z = X + 1j * X[::-1]
    f = lambda z: pb.fori_loop(0, 4, lambda _, u: u * z * 0.5, z)  # noqa: E731
    seeds = [np.exp(1j * X), 1j * np.ones(4)]
    _, pull = pb.vjp(f, z, policy=pb.Binomial(1), conj=True)
    for got, seed in zip(pull(seeds), seeds, strict=True):
        assert got[0].tobytes() == pb.vjp(f, z, policy=pb.Binomial(1), conj=True)[1](seed)[0].tobytes()


# ------------------------------------------------------------------------------------------------- what is run and held


@pytest.mark.parametrize("f", [stepped, looped, scanned, while_held, plain], ids=lambda f: f.__name__)
@pytest.mark.parametrize("policy", POLICIES[1:], ids=repr)
def test_several_seeds_run_no_more_steps_than_one(f, policy):
    _, one = pb.vjp(f, X, policy=policy)
    one(SEEDS[0])
    _, several = pb.vjp(f, X, policy=policy)
    several(SEEDS)
    assert several.report.n_forward == one.report.n_forward


def test_inner_loops_are_run_again_once_for_all_seeds():
    calls = []

    def f(x):
        def inner(_, v):
            calls.append(1)
            return move(v, x)

        return pb.fori_loop(
            0, 4, lambda _, u: pb.fori_loop(0, 3, inner, u, policy=pb.Binomial(1)), x, policy=pb.Binomial(1)
        )

    counts = []
    for seeds in ([np.ones(4)], [np.ones(4), X, 2 * X]):
        calls.clear()
        pb.vjp(f, X)[1](seeds)
        counts.append(len(calls))
    assert counts[0] == counts[1]


def test_the_cotangents_of_each_seed_are_booked_and_nothing_is_left():
    peaks = []
    for count in (1, 3):
        _, pull = pb.vjp(looped, X, policy=pb.Binomial(2))
        held = pull.report.live_bytes
        pull(SEEDS[:count])
        peaks.append(pull.report.bytes_by_reason["cotangent"])
        assert 0 < pull.report.live_bytes < held  # the initial state, for another call
        pull.close()
        assert pull.report.live_bytes == 0
    assert peaks[0] == 2 * X.nbytes  # the carry's, and that of sin(x), which the body reads
    assert peaks[1] == 3 * peaks[0] + 2 * X.nbytes  # what the second output, in two seeds, sends past the loop


@pytest.mark.parametrize("rows", ["reverse", "auto"])
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_the_rows_of_a_jacobian_share_what_is_run_again(policy, rows):
    calls = []

    def f(x):
        def body(_, u):
            calls.append(1)
            return move(u, x)

        return pb.fori_loop(0, N, body, x)

    pb.grad(lambda x: np.sum(f(x)), policy=policy)(X)
    gradient, calls[:] = len(calls), []
    jacobian = pb.jacobian(f, mode=rows, policy=policy)(X)
    assert len(calls) == gradient
    for k, row in enumerate(jacobian):
        assert row.tobytes() == pb.vjp(f, X)[1](np.eye(4)[k])[0].tobytes()
    small = pb.jacobian(f, mode=rows, policy=policy, chunk=jacobian.nbytes)(X)  # fewer rows at once
    assert small.tobytes() == jacobian.tobytes()
    assert len(calls) > 2 * gradient


# -------------------------------------------------------------------------------------------------------- marked values


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("loop", ["range", "steps", "fori_loop"])
def test_a_callback_gets_a_list_with_one_cotangent_for_each_seed(loop, policy):
    def f(x):
        body = lambda _, u: pb.name(move(u, x), "u")  # noqa: E731
        if loop == "fori_loop":
            return pb.fori_loop(0, N, body, x)
        u = x
        for k in {"range": range, "steps": pb.steps}[loop](N):
            u = body(k, u)
        return u

    seeds = [np.ones(4), np.zeros(4), X]
    heard = []
    _, pull = pb.vjp(f, X, policy=policy)
    pull(seeds, on_adjoint={"u": lambda k, cts: heard.append((k, [np.array(ct) for ct in cts]))})
    for j, seed in enumerate(seeds):
        own = []
        tell = lambda k, ct: own.append((k, np.array(ct)))  # noqa: B023, E731 - called at once
        pb.vjp(f, X, policy=policy)[1](seed, on_adjoint={"u": tell})
        assert [k for k, _ in own] == [k for k, _ in heard] == list(range(N))[::-1]
        for (_, cts), (_, ct) in zip(heard, own, strict=True):
            assert cts[j].tobytes() == ct.tobytes()


def test_adjoint_has_one_cotangent_for_each_seed_zeros_where_it_does_not_depend():
    _, pull = pb.vjp(lambda x: (np.sum(pb.name(np.sin(x), "s")), np.sum(x)), X)
    pull([(2.0, None), (None, 1.0), (1.0, 1.0)])
    adjoint = pull.adjoint("s")
    np.testing.assert_array_equal(adjoint, [np.full(4, 2.0), np.zeros(4), np.ones(4)])
    pull([(None, 1.0)])
    np.testing.assert_array_equal(pull.adjoint("s"), [np.zeros(4)])
    pull((3.0, None))
    np.testing.assert_array_equal(pull.adjoint("s"), np.full(4, 3.0))


# ------------------------------------------------------------------------------------------------ structures and errors


def test_a_list_with_the_structure_of_the_output_is_one_seed():
    _, pull = pb.vjp(lambda x: [np.sum(x), np.sum(x * x)], X)
    np.testing.assert_array_equal(pull([1.0, 2.0])[0], 1 + 4 * X)
    both = pull([[1.0, 2.0], [None, 1.0]])
    np.testing.assert_array_equal(both[0][0], 1 + 4 * X)
    np.testing.assert_array_equal(both[1][0], 2 * X)
    assert pull([]) == []


def test_a_seed_that_does_not_fit_is_named_by_its_number():
    _, pull = pb.vjp(lambda x: (x, np.sum(x)), X)
    with pytest.raises(
        pb.StructureError,
        match=r"the cotangent number 1 has structure .*; give one leaf per output leaf.* list of such",
    ):
        pull([(X, 1.0), X])
    with pytest.raises(pb.StructureError, match=r"the cotangent has structure .*or a list of such for several seeds"):
        pull({"a": 1})
    with pytest.raises(pb.StructureError, match=r"the cotangent number 1 has shape \(3,\).*has \(4,\)"):
        pull([(X, 1.0), (np.ones(3), None)])


def test_an_error_in_a_loop_tells_the_step_for_several_seeds_too():
    @pb.primitive
    def odd(x):
        return x * 2.0

    @odd.vjp("x")
    def _(ct, x):
        raise ValueError("no derivative at all")

    _, pull = pb.vjp(lambda x: pb.fori_loop(0, 3, lambda _, u: odd(u), x), X, policy=pb.Binomial(1))
    with pytest.raises(ValueError, match="no derivative at all") as raised:
        pull([np.ones(4), X])
    assert any("in step 2 of fori_loop" in note for note in raised.value.__notes__)
