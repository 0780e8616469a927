"""``policy="auto"``: what it takes, what it tells, and the bits."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.programs.loops_and_marks import looped, unknown
from tests.programs.policies import X, same_everywhere
from tests.programs.stages import programs
from tests.programs.step_programs import PROGRAMS

import pullback as pb
from pullback.choosing import auto
from pullback.choosing.auto import Auto, LoopSizes
from pullback.loops.functions.loop_chain import LoopChain
from pullback.policies.run_again import RunAgain
from pullback.scheduling.machine.simulator import simulate

POINTS = np.linspace(0.1, 2.0, 100)


def marked(x):
    u, c = np.abs(x), x * x
    for k in pb.steps(60):
        u = u + 0.1 * np.sin(u) * np.exp(-u * k) * c
    return np.sum(u**2)


def left(x):
    u = np.abs(x)
    for k in pb.steps(60):
        u = u + 0.1 * np.sin(u)
        if k == 33:
            break
    return np.sum(u**2)


def generated(x):
    u = np.abs(x)
    for _ in pb.steps(iter(range(40))):
        u = u + 0.1 * np.sin(u)
    return np.sum(u**2)


def plain(x):
    u = np.abs(x)
    for _ in range(60):
        u = u + 0.1 * np.sin(u)
    return np.sum(u**2)


def within_checkpoint(x):
    return np.sum(pb.checkpoint(plain, policy="auto")(x) * x)


def all_of_them(x):
    return marked(x) + left(x) * plain(x) + looped(x)


ALL = (looped, unknown, marked, left, generated, plain, within_checkpoint, all_of_them)
LIMITS = (10**9, 60_000, 20_000, 16_000, 100)


@pytest.mark.share(2)
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("f", ALL)
def test_bits_and_nothing_left(f, limit):
    for x in (POINTS, POINTS[::-1] * 0.9):
        expected = pb.grad(f)(x)
        np.testing.assert_array_equal(pb.grad(f, policy=Auto(limit))(x), expected)
        _, pull = pb.vjp(f, x, policy=Auto(limit))
        for _ in range(2):
            np.testing.assert_array_equal(pull(1.0)[0], expected)
        assert pull.report.choices
        pull.close()
        assert pull.report.live_bytes == 0


@pytest.mark.parametrize("limit", [60_000, 20_000, 16_000])
@pytest.mark.parametrize("f", [looped, unknown, left, plain])
def test_the_limit_is_kept(f, limit):
    """Where more than the least fits; recorded steps are measured, and a tape of a state's size may be too many."""
    _, pull = pb.vjp(f, POINTS, policy=Auto(limit))
    pull(1.0)
    slack = 0 if f in (looped, unknown) else max(0, 13_000 - limit) + 2_400
    books = pull.report.bytes_by_reason.get("bookkeeping", 0)  # of arrays as small as these they are most of it
    assert pull.report.peak_bytes - books <= limit + slack


@settings(max_examples=40)
@given(programs(("fori_loop", "scan", "while_loop", "steps", "plain")), st.sampled_from(LIMITS))
def test_bits_of_drawn_programs(program, limit):
    x = np.linspace(0.3, 0.8, program.size).astype(program.dtype)
    with np.errstate(all="ignore"):
        for at in (x, -0.7 * x):
            out, pull = pb.vjp(program, at, policy=Auto(limit))
            expected, reference = pb.vjp(program, at)
            assert np.asarray(out).tobytes() == np.asarray(expected).tobytes()
            seed = np.ones_like(out)
            assert pull(seed)[0].tobytes() == reference(seed)[0].tobytes()


@pytest.mark.parametrize("f", PROGRAMS)
def test_second_order(f):
    def total(x):
        return f(x)[1]

    expected = pb.hvp(total, (X_OF_STEPS,), (X_OF_STEPS,))
    np.testing.assert_array_equal(pb.hvp(total, (X_OF_STEPS,), (X_OF_STEPS,), policy=Auto(500)), expected)


X_OF_STEPS = np.array([0.3, 1.0, -0.5, 0.8])


def test_every_transform_takes_it():
    same_everywhere(lambda x: np.sum(np.sin(x) * x), policies=["auto"])
    f = lambda x: pb.fori_loop(0, 5, lambda k, u: np.sin(u) * x, x)  # noqa: E731
    g = lambda x: np.sum(f(x))  # noqa: E731
    np.testing.assert_array_equal(pb.jacobian(f, policy="auto", mode="reverse")(X), pb.jacobian(f, mode="reverse")(X))
    np.testing.assert_array_equal(pb.hessian(g, policy="auto")(X), pb.hessian(g)(X))
    np.testing.assert_array_equal(pb.value_and_grad(g, policy="auto")(X)[1], pb.grad(g)(X))
    inside = lambda x: np.sum(pb.fori_loop(0, 5, lambda k, u: np.sin(u) * x, x, policy="auto"))  # noqa: E731
    np.testing.assert_array_equal(pb.grad(inside)(X), pb.grad(g)(X))
    with pb.using("auto"):
        _, pull = pb.vjp(g, X)
    assert [choice.policy for choice in pull.report.choices] == [pb.SaveAll()]


def test_a_profile_and_a_check_take_it():
    profile = pb.profile(looped, POINTS, policies=[pb.SaveAll(), "auto", Auto(20_000), pb.BudgetPool(50_000)])
    assert [row.same_bits for row in profile.rows] == [True] * 4
    assert all(row.predicted_bytes == row.peak_bytes for row in profile.rows)
    pb.testing.check_policy(Auto(20_000))


def test_save_all_where_it_fits_else_budget():
    def taken(limit):
        _, pull = pb.vjp(looped, POINTS, policy=Auto(limit))
        pull(1.0)
        [choice] = pull.report.choices
        assert str(choice) in str(pull.report)
        return choice.policy, pull.report.n_forward

    assert taken(10**9) == (pb.SaveAll(), 50)
    policy, n_forward = taken(20_000)
    assert policy == pb.Budget(20_000)
    _, pull = pb.vjp(looped, POINTS, policy=policy)
    pull(1.0)
    assert n_forward == pull.report.n_forward > 50
    assert taken(100)[0] == auto.LEAST


def test_it_is_half_of_what_is_free(monkeypatch):
    monkeypatch.setattr(auto, "available_bytes", lambda: 40_000)
    auto._READ.clear()
    _, pull = pb.vjp(looped, POINTS, policy="auto")
    assert [choice.policy for choice in pull.report.choices] == [pb.Budget(20_000)]
    monkeypatch.setattr(auto, "available_bytes", lambda: None)
    auto._READ.clear()
    with pytest.raises(pb.PolicyError, match=r'"auto".*how much memory is free.*Budget\("2 GB"\)'):
        pb.grad(looped, policy="auto")(POINTS)


def test_two_loops_share_it():
    def two(x):
        return looped(pb.fori_loop(0, 50, lambda k, u: np.sin(u) * u, x))

    def kinds(limit):
        return [type(choice.policy) for choice in pb.vjp(two, POINTS, policy=Auto(limit))[1].report.choices]

    assert kinds(10**6) == [pb.SaveAll, pb.SaveAll]
    assert kinds(300_000) == [pb.SaveAll, pb.Budget]


def test_of_a_sum_over_two_loops_nobody_hears_the_second_counts_the_first():
    seen = []

    class Noted(Auto):
        def decided(self, loop, ledger):
            seen.append(loop.reserved)
            return super().decided(loop, ledger)

    def two(x):
        return looped(pb.fori_loop(0, 50, lambda k, u: np.sin(u) * u, x))

    pb.grad(two, policy=Noted(10**6))(POINTS)
    assert seen[1] - seen[0] >= 50 * POINTS.nbytes


def test_marked_steps_tell_what_they_keep():
    for f, where in ((marked, "steps"), (plain, "the program")):
        _, pull = pb.vjp(f, POINTS, policy=Auto(20_000))
        assert re.match(rf"{where}[^:]*:\d+, from step \d+ on: (Binomial|Recompute)", str(pull.report.choices[0]))
        _, pull = pb.vjp(f, POINTS, policy=Auto(10**7))
        assert [(c.loop.split(" at ")[0], c.policy) for c in pull.report.choices] == [(where, pb.SaveAll())]


@pytest.mark.parametrize(("limit", "taken"), [(10**6, pb.SaveAll()), (20_000, RunAgain())])
def test_the_inside_of_a_checkpoint_is_kept_or_run_again(limit, taken):
    block = pb.checkpoint(plain, policy=Auto(limit))
    f = lambda x: block(x) * np.sum(x)  # noqa: E731
    for x in (POINTS, POINTS[::-1] * 0.9):
        np.testing.assert_array_equal(pb.grad(f)(x), pb.grad(lambda x: plain(x) * np.sum(x))(x))
        _, pull = pb.vjp(f, x)
        assert [choice.policy for choice in pull.report.choices] == [taken]
        assert (pull.report.live_bytes < limit) and (pull.report.live_bytes > 40_000) == (limit == 10**6)
        for _ in range(2):
            np.testing.assert_array_equal(pull(1.0)[0], pb.grad(f)(x))


def test_marked_steps_count_what_loops_in_them_keep():
    def f(x):
        u = x
        for _ in pb.steps(12):
            u = pb.fori_loop(0, 8, lambda k, v: np.cos(v) * x, u)
        return np.sum(u)

    _, pull = pb.vjp(f, np.linspace(0.1, 2.0, 4000), policy=pb.SaveAll())
    pull(1.0)
    everything = pull.report.peak_bytes
    for limit in (everything // 2, 2 * everything):
        _, pull = pb.vjp(f, np.linspace(0.1, 2.0, 4000), policy=Auto(limit))
        pull(1.0)
        [told] = [choice for choice in pull.report.choices if choice.loop.startswith("steps")]
        assert (type(told.policy) is pb.SaveAll) == (limit > everything)


@given(n=st.integers(0, 200), kept=st.integers(1, 50_000), state=st.integers(1, 300), tape=st.integers(0, 300))
def test_of_unknown_length_within_the_limit(n, kept, state, tape):
    sizes = {"state_bytes": state, "tape_bytes": tape}
    policy, _ = Auto(kept, LoopSizes("", None, state, tape, 0, False)).decided(
        LoopSizes("while_loop", None, state, tape, 0, False), _Ledger()
    )
    found = simulate(policy.schedule(None, **sizes), n, **sizes)
    if policy is auto.LEAST:
        return
    assert found.peak_bytes <= kept
    if n * tape <= auto._tapes_room(kept - 2 * state - tape, state):
        assert found.n_forward == n


class _Ledger:
    def __init__(self):
        self.choices = []


def test_two_loops_on_one_line_are_told_each():
    def f(x):
        for _ in range(2):  # the calls of a loop in a loop are one
            x = pb.fori_loop(0, 3, lambda k, u: np.sin(u), x) + pb.fori_loop(0, 2, lambda k, u: np.cos(u), x)
        return np.sum(x)

    _, pull = pb.vjp(f, np.ones(100), policy="auto")
    texts = [str(choice) for choice in pull.report.choices]
    assert [text.partition("since its ")[2][:7] for text in texts] == ["3 tapes", "2 tapes"]
    assert texts[0].partition(": ")[0] == texts[1].partition(": ")[0]


@pytest.mark.parametrize("limit", [20_000_000, 1_500_000])
def test_of_unknown_length_tapes_are_kept_as_by_save_all_while_there_is_room(monkeypatch, limit):
    """Without an action for each step; the steps after the last tape go by actions."""
    recorded, record = [], LoopChain.record

    def counted(chain, step):
        recorded.append(step)
        return record(chain, step)

    def f(x):
        u, _ = pb.while_loop(lambda s: s[1] < 600, lambda s: (s[0] + 0.01 * np.sin(s[0] * x), s[1] + 1), (x, 0))
        return np.sum(u)

    expected = pb.value_and_grad(f)(X)
    monkeypatch.setattr(LoopChain, "record", counted)
    found = pb.value_and_grad(f, policy=Auto(limit))(X)
    assert all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(found, expected, strict=True))
    assert (len(recorded) == 0) == (limit == 20_000_000)
    assert len(recorded) < 600
