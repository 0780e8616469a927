"""Loops of adopted code as one record under every policy, in steps and in bodies of loop functions: the bits, the bytes
and the replays of their operations one by one."""

import re
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from attrs import frozen
from tests.adopting.loops.drawn_loops import STEPS, Drawn, in_steps, whole_arrays

import pullback as pb
from pullback.adopting.loops import loop_runs
from pullback.adopting.modules import python_builtins
from pullback.schedules import Delete, EndForward, EndReverse, Load, Record, Reverse, Save

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:.*so everything is held:pullback.PolicyWarning"),
]
A = np.random.default_rng(3).uniform(0.2, 1, 6)
M = np.random.default_rng(4).uniform(0.2, 1, (6, 5))
POLICIES = (
    pb.SaveAll(), pb.Recompute(), pb.Recompute(2), pb.Binomial(2), pb.Periodic(2), pb.Mixed(3), pb.Budget("10 MB"),
    pb.Budget("40 kB"), "auto",
)  # fmt: skip


def bits(*values):
    return [np.asarray(value).tobytes() for value in values]


def one_by_one(f, args, argnums):
    """Value and gradients of a program, item by item under save-all, by their bits; None where Python overflows."""
    with pb.using(staging="off"), suppress(OverflowError):
        value, gradients = pb.value_and_grad(f, argnums)(*args)
        return bits(value, *gradients)
    return None


def require_policies(f, args, policies=POLICIES, argnums=(0, 1, 2)):
    """The same bits under every policy, in second pulls, too; and the plan is the report."""
    expected = one_by_one(f, args, argnums)
    for policy in policies if expected is not None else ():
        with suppress(pb.BudgetError):
            value, gradients = pb.value_and_grad(f, argnums, policy=policy)(*args)
            assert bits(value, *gradients) == expected
            value, pull = pb.vjp(f, *args, policy=policy)
            first, report = pull(1.0), pull.report
            assert bits(value, *first) == bits(value, *pull(1.0)) == expected
            pull.close()
            plan = pb.plan(f, *args, policy=policy)
            assert (plan.peak_bytes, plan.bytes_by_reason) == (report.peak_bytes, report.bytes_by_reason)


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("how", STEPS)
@pytest.mark.parametrize("seed", range(4))
def test_drawn_loops_in_steps(adopted, seed, how):
    require_policies(adopted(in_steps(seed, how)).program, (0.8, A.copy(), M.copy()), POLICIES[seed % 3 :: 3])


@pytest.mark.parametrize("seed", range(100, 106))
def test_drawn_loops_in_one_piece(adopted, seed):
    policies = POLICIES[seed % 3 :: 3]
    require_policies(adopted(Drawn(seed).text()).program, (0.8, A.copy(), M.copy()), policies)
    require_policies(adopted(whole_arrays(seed)).program, (0.8, A[:4].copy(), M[:4, :4].copy()), policies)


@pytest.mark.slow
@pytest.mark.parametrize("how", STEPS)
@pytest.mark.parametrize("start", range(1000, 1400, 20))
def test_many_drawn_loops_in_steps(adopted, start, how):
    for seed in range(start, start + 20):
        require_policies(adopted(in_steps(seed, how)).program, (0.8, A.copy(), M.copy()))


def test_most_drawn_loops_in_steps_run_as_a_whole(adopted, ran):
    for seed in range(10):
        for how in STEPS:
            with suppress(OverflowError):
                pb.grad(adopted(in_steps(seed, how)).program, policy=pb.Binomial(2))(0.8, A.copy(), M.copy())
    assert sum(whole for _, whole in ran) > len(ran) / 2


SWEEPS = """
import numpy as np
import pullback as pb

def sweep(u, c):
    n = u.shape[0]
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            f = u[i, j] * u[i, j] / (1.0 + c * u[i - 1, j])
            u[i, j] = 0.5 * u[i, j] + 0.1 * np.sin(f) * u[i, j - 1]

def marked(x, c, n):
    u = x * 1.0
    for k in pb.steps(n):
        sweep(u, c)
    return np.sum(u * u)

def whole(x, c, n):
    u = x * 1.0
    for k in range(n):
        sweep(u, c)
    return np.sum(u * u)

def body(x, c, n):
    def step(k, u):
        u = u * 1.0
        sweep(u, c)
        return u
    return np.sum(pb.fori_loop(0, n, step, x) ** 2)
"""
X = np.random.default_rng(5).uniform(0.2, 1, (24, 24))


NESTED = (
    SWEEPS
    + """
def relaxed(k, v):
    v = v * 1.0
    for i in range(1, len(v)):
        for j in range(1, len(v)):
            if v[i, j] > 0.4:
                v[i, j] = 0.5 * v[i, j] + np.sin(v[i - 1, j]) * v[i, j - 1]
    return v

def loops_in_loops(x, c):
    def outer(k, u):
        return pb.fori_loop(0, 3, relaxed, u * c)
    return np.sum(pb.fori_loop(0, 4, outer, x) ** 2)

def loops_in_marked_steps(x, c):
    u = x * 1.0
    for k in pb.steps(4):
        u = pb.fori_loop(0, 3, relaxed, u * c)
        sweep(u, c)
    return np.sum(u * u)

def one_after_the_other(x, c):
    u = x * 1.0
    sweep(u, c)
    u, ys = pb.scan(lambda v, j: (relaxed(0, v) * j, np.sum(v)), u, np.linspace(0.5, 1.0, 5))
    for k in pb.steps(5):
        sweep(u, c)
    w = u * c
    for k in range(6):
        sweep(w, c)
    return np.sum(w * w) + np.sum(ys)

def checkpoints(x, c):
    @pb.checkpoint
    def step(u):
        u = u * 1.0
        sweep(u, c)
        return pb.fori_loop(0, 3, relaxed, u)
    for k in range(4):
        x = step(x)
    return np.sum(x * x)

def until(x, c):
    def step(state):
        return relaxed(0, state[0]) * c, state[1] + 1
    return np.sum(pb.while_loop(lambda state: state[1] < 5, step, (x, 0))[0] ** 2)
"""
)


@frozen
class TapesOnDisk(pb.MemoryPolicy):
    """Every tape on disk, where it lies through the forward pass."""

    def actions(self, n, *, state_bytes=0, tape_bytes=0):
        for k in range(n):
            yield Record(k)
            yield Save("tape", k, "disk")
        yield EndForward()
        for k in reversed(range(n)):
            yield Load("tape", k, "disk")
            yield Reverse(k)
            yield Delete("tape", k, "disk")
        yield EndReverse()


@pytest.mark.filterwarnings("ignore:.*nothing is saved:pullback.PolicyWarning")
@pytest.mark.parametrize(
    "name", ["loops_in_loops", "loops_in_marked_steps", "one_after_the_other", "checkpoints", "until"]
)
def test_loops_within_loops(adopted, name):
    f = getattr(adopted(NESTED), name)
    policies = (pb.SaveAll(), pb.Binomial(2), pb.Budget("60 kB"), pb.Budget("30 kB"), pb.Keep("sin"), "auto")
    require_policies(f, (X[:9, :9], 0.8), policies, argnums=(0, 1))


@pytest.mark.parametrize("name", ["marked", "body"])
def test_what_is_pushed_goes_to_disk_with_its_tape(adopted, name):
    f = getattr(adopted(SWEEPS), name)
    expected = pb.grad(f, (0, 1))(X, 0.3, 6)
    _, pull = pb.vjp(lambda x, c: f(x, c, 6), X, 0.3, policy=TapesOnDisk())
    assert bits(*pull(1.0)) == bits(*expected)
    assert pull.report.bytes_by_reason["residual"] < 4 * 22 * 22 * 7 * 8  # of six steps those on their way


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("name", ["marked", "body"])
@pytest.mark.parametrize("nbytes", [100_000, 200_000, 700_000])
def test_a_budget_binds(adopted, name, nbytes):
    """What a loop pushes is booked, and no list of numbers is held beside it while it runs."""
    f, policy = getattr(adopted(SWEEPS), name), pb.Budget(nbytes)
    expected = pb.grad(f, (0, 1))(X, 0.3, 12)
    pb.grad(f, (0, 1), policy=policy)(X, 0.3, 12)  # text is written, and functions are made
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    found = pb.grad(f, (0, 1), policy=policy)(X, 0.3, 12)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert bits(*found) == bits(*expected)
    assert peak - before <= nbytes + (1 << 16)  # for Python's own objects


@pytest.mark.parametrize("name", ["marked", "body", "whole"])
def test_what_is_pushed_is_told_by_reason(adopted, name):
    f = getattr(adopted(SWEEPS), name)
    n_pushed = 22 * 22 * 7  # numbers in each step
    _, pull = pb.vjp(lambda x: f(x, 0.3, 4), X, policy=pb.SaveAll())
    pull(1.0)
    residuals = pull.report.bytes_by_reason["residual"]
    assert 4 * 8 * n_pushed <= residuals <= 1.07 * 4 * 8 * n_pushed + 512


def test_steps_that_do_the_same_share_what_runs_them_again(adopted):
    f = adopted(SWEEPS).marked

    def books(n):
        _, pull = pb.vjp(lambda x: f(x, 0.3, n), X, policy=pb.Binomial(3))
        pull(1.0)
        return pull.report.bytes_by_reason["bookkeeping"]

    assert books(30) - books(20) < 10 * 100


@pytest.mark.parametrize("name", ["marked", "body", "whole"])
def test_nothing_is_left(adopted, name):
    f = getattr(adopted(SWEEPS), name)
    _, pull = pb.vjp(lambda x: f(x, 0.3, 6), X, policy=pb.Recompute())
    pull(1.0)
    pull.close()
    assert pull.report.live_bytes == 0


def test_an_error_in_the_middle_leaves_what_it_leaves_item_by_item(adopted):
    """The loop has not run: it stands in its body, and the array is written as far as it goes."""
    text = """
import numpy as np
import pullback as pb

def f(x, log):
    u = x * 1.0
    for k in pb.steps(3):
        try:
            for i in range(40):
                u[i] = u[i] * x[0] * 1.5
        except IndexError:
            log.append(k)
    return np.sum(u * u)
"""
    f = adopted(text).f
    for policy in (None, pb.Binomial(2)):
        log = []
        value, gradient = pb.value_and_grad(f, policy=policy)(A, log)
        assert log == [0, 1, 2]
        with pb.using(staging="off"):
            assert bits(value, gradient) == bits(*pb.value_and_grad(f)(A, []))


def test_a_captured_array_is_not_written(adopted):
    text = """
import numpy as np
import pullback as pb

def f(x):
    u = x * 1.0
    def step(k, s):
        for i in range(20):
            u[i % 4] = u[i % 4] * s
        return s + u[0]
    return pb.fori_loop(0, 3, step, x[0])
"""
    with pytest.raises(pb.WriteError, match=r"writes to a value it captures"):
        pb.grad(adopted(text).f)(A)


def test_captured_values_get_their_cotangents(adopted, ran):
    text = """
import numpy as np
import pullback as pb

def f(c, a, m):
    b, d = a * c, np.sin(c)
    def step(k, u):
        u = u * 1.0
        for i in range(1, 6):
            for j in range(4):
                u[i] = u[i] * 0.5 + b[i - 1] * d * m[i, j] + k
        return u
    u = pb.fori_loop(0, 5, step, a)
    return np.sum(u * b) + d
"""
    require_policies(adopted(text).f, (0.8, A.copy(), M.copy()))
    assert any(whole for _, whole in ran)


def test_values_of_a_trace_that_is_left_alone(adopted):
    """A gradient within a body that advances: what is closed over is a plain value there."""
    text = """
import numpy as np
import pullback as pb

def f(c, a, m):
    b = a * c
    def step(k, u):
        def energy(v):
            s = v[0]
            for i in range(6):
                for j in range(5):
                    s = s + v[i] * v[i] * b[i] * m[i, j]
            return s
        return u - 0.1 * pb.grad(energy)(u)
    return np.sum(pb.fori_loop(0, 5, step, a) ** 2)
"""
    require_policies(adopted(text).f, (0.8, A.copy(), M.copy()), (pb.SaveAll(), pb.Binomial(2), pb.Recompute()))


@pytest.mark.parametrize("policy", [None, pb.Binomial(2)], ids=str)
def test_memory_that_others_look_at_is_not_left_behind(adopted, policy):
    """A loop writes into an array of its own: a plain view of the one before would not see it."""
    text = """
import numpy as np

def f(c, look):
    u = np.zeros(20)
    seen = look(u)
    for i in range(20):
        u[i] = c * i
    return np.sum(u) + np.sum(seen)
"""
    with pytest.raises(pb.WriteError, match=r"plain view"):
        pb.grad(adopted(text).f, policy=policy)(0.7, np.asarray)


def test_short_loops_leave_a_body_to_be_staged(adopted, ran, monkeypatch):
    monkeypatch.setattr(loop_runs, "FEW", 4)
    text = """
import numpy as np
import pullback as pb

def f(x):
    def step(k, u):
        s = 0.0
        for i in range(3):
            s = s + u[i] * x[i]
        return u * 0.9 + s * 0.01
    return np.sum(pb.fori_loop(0, 60, step, x))
"""
    f = adopted(text).f
    gradient = pb.grad(f)(A)
    assert not any(whole for _, whole in ran)
    with pb.using(staging="off"):
        assert bits(gradient) == bits(pb.grad(f)(A))


def test_a_body_whose_loop_is_one_record_is_not_staged(adopted, ran):
    """On handles without values the loop would be all its operations."""
    f = adopted(SWEEPS).body
    pb.grad(f, policy=pb.Binomial(3))(X, 0.3, 40)
    assert all(whole for _, whole in ran)


def test_a_body_does_in_each_run_what_it_has_done(adopted, monkeypatch):
    """A loop that had to run as it stands several times is asked all the same: a step that runs again would differ."""
    f = adopted(SWEEPS).body
    expected = pb.grad(f, policy=pb.Recompute(3))(X, 0.3, 7)
    monkeypatch.setattr(type(python_builtins.LOOPS[-1]), "rests", lambda _: True)
    assert bits(expected) == bits(pb.grad(f, policy=pb.Recompute(3))(X, 0.3, 7))


def test_a_loop_in_a_body_under_every_seed(adopted):
    f = adopted(SWEEPS.replace("return np.sum(u * u)", "return u * u")).marked
    expected = pb.jacobian(lambda x: f(x, 0.3, 3), mode="reverse")(X[:6, :6])
    for policy in (pb.Binomial(2), pb.Recompute()):
        assert bits(pb.jacobian(lambda x: f(x, 0.3, 3), mode="reverse", policy=policy)(X[:6, :6])) == bits(expected)
    with pb.using(staging="off"):
        assert bits(pb.jacobian(lambda x: f(x, 0.3, 3), mode="reverse")(X[:6, :6])) == bits(expected)


def test_cotangents_of_a_trace_around_under_a_policy(adopted):
    f = adopted(SWEEPS).marked

    def outer(y):
        _, pull = pb.vjp(lambda x: f(x, 0.3, 4), X[:6, :6], policy=pb.Binomial(2))
        return np.sum(pull(np.sin(y))[0] ** 2)

    with pb.using(staging="off"):
        expected = pb.grad(outer)(0.4)
    np.testing.assert_array_equal(pb.grad(outer)(0.4), expected)


def trapped(f, x):
    with pb.trap("nan"):
        return pb.grad(f)(x)


@pytest.mark.filterwarnings("ignore:.*nothing is saved:pullback.PolicyWarning")
@pytest.mark.parametrize(
    ("derivative", "why"),
    [
        (lambda f: pb.grad(f, policy=pb.Keep("sin"))(X[:5, :5]), "the policy decides of values within steps"),
        (lambda f: pb.hvp(f, (X[:5, :5],), (X[:5, :5],)), "it is in a derivative within another one"),
        (lambda f: pb.jvp(f, (X[:5, :5],), (X[:5, :5],)), "forward mode takes the tangent of each operation"),
        (lambda f: trapped(f, X[:5, :5]), "a trap looks at each operation"),
        (lambda f: pb.grad(f)(X[:5, :5]), ""),
    ],
)
def test_why_a_loop_that_could_be_one_record_is_none_is_told(adopted, derivative, why):
    module = adopted(SWEEPS)
    derivative(lambda x: module.marked(x, 0.3, 3))
    told = pb.explain_stage(module.sweep).why
    assert told[:1] == ((f"the loop at line 7 is not followed as a whole: {why}",) if why else ())


def test_why_an_item_by_item_loop_in_a_body_is_so(adopted):
    text = SWEEPS.replace("u[i, j] = 0.5", "u[i, int(j)] = 0.5").replace("0.1 * np.sin(f)", "0.1 * np.cumsum(f)[0]")
    module = adopted(text)
    pb.grad(module.marked, policy=pb.Binomial(2))(X[:5, :5], 0.3, 3)
    assert re.search("is not followed as a whole", str(pb.explain_stage(module.sweep)))
