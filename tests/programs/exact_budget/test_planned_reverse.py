"""``Budget(..., exact=True)`` on plain code: the bits of save-all, within the bytes, and as little computed
again as the plan says."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.programs.measured import peak_of

import pullback as pb
from pullback.programs.exact_budget import planned_reverse
from pullback.programs.exact_budget.graph_replayer import GraphReplayer

SIZE = 10_000
X, C = np.linspace(0.2, 0.9, SIZE), np.linspace(0.5, 1.0, SIZE)
SLACK = 64 * 1024
PARTS = (
    "v = np.sin(u) * 0.3 + v", "u, v = v, u", "u = u * c", "t = np.exp(-u * u); u = u + 0.1 * t", "v = np.roll(v, 1)",
    "w = u.copy(); w[1:-1] += 0.1 * (u[2:] - u[:-2]); u = w", "u = u + 0.1 * np.sum(v) / v.size", "v = v * 0.5",
    "a = np.concatenate([u[1:], v[:1]]); u = 0.5 * a", "u = np.where(u > 0.5, u, 0.9 * v)", "v = v + k", "k = u",
    "v = np.maximum(u, v) + c", "z = np.zeros_like(u); z[1:] = u[1:] - u[:-1]; v = v + z", "k = np.exp(-k)",
    "m = u.reshape(100, 100) @ v.reshape(100, 100); u = np.tanh(m * 0.01).ravel()", "u = u.reshape(100, 100).T.ravel()",
    "u[2:5000] += v[2:5000] * u[:4998]", "u = u - np.mean(u)",
    "u = np.linalg.solve(12 * np.eye(100) + v.reshape(100, 100), u.reshape(100, 100)).ravel()",
    "u = u / np.hypot(1, v)", "u = np.fft.irfft(np.fft.rfft(u) * 0.9, n=u.size)",
    "v = np.cumsum(u) / 1000", "k = np.linalg.norm(u) * k * 0.01",
)  # fmt: skip


def program(parts):
    """These statements, straight on."""
    names = {"np": np}
    text = "def f(x, c):\n    u, v, k = x * 1.5, np.cos(x), x * 0.5\n" + "".join(f"    {PARTS[p]}\n" for p in parts)
    exec(f"{text}    return np.sum(u * v) + np.sum(k)\n", names)  # noqa: S102 - a program is drawn as text
    return names["f"]


def bits(found):
    return [np.asarray(part).tobytes() for part in (found[0], *found[1])]


def chain_of(pull):
    [chain] = pull._governor.chains
    return chain


def layered(x):
    for k in range(12):
        x = np.tanh(np.sin(x) * np.cos(x * C)) + 0.1 * k
    return np.sum(x * x)


def require(parts, share):
    f = program(parts)
    gradient = pb.value_and_grad(f, (0, 1))
    wanted, other = gradient(X, C), gradient(0.7 * X, C)
    with pytest.raises(pb.BudgetError) as caught:
        pb.value_and_grad(f, (0, 1), policy=pb.Budget(1, exact=True))(X, C)
    least = caught.value.minimum_bytes
    for budget in (least, int(least * (1 + share))):
        policy = pb.Budget(budget, exact=True)
        gradient = pb.value_and_grad(f, (0, 1), policy=policy)
        gradient(X, C)
        found, peak = peak_of(gradient, X, C)
        assert bits(found) == bits(wanted)
        assert bits(gradient(0.7 * X, C)) == bits(other)
        assert peak <= budget + SLACK, (peak / X.nbytes, budget / X.nbytes)
        out, pull = pb.vjp(f, X, C, policy=policy)
        assert bits((out, pull(1.0))) == bits((out, pull(1.0))) == bits(wanted)
        assert pull.report.peak_bytes <= budget
        pull.close()
        assert pull.report.live_bytes == 0


drawn = given(st.lists(st.integers(0, len(PARTS) - 1), min_size=1, max_size=24), st.floats(0, 2))


@drawn
@example([15, 0, 17, 5, 3, 13], 0.3)
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_drawn_programs(parts, share):
    require(parts, share)


@pytest.mark.slow
@drawn
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_drawn_programs(parts, share):
    require(parts, share)


def written_views(x):
    u, v = np.tanh(x.reshape(100, 100)).ravel(), np.cos(x.reshape(100, 100)).ravel()
    u[2:] *= 0.5
    v[2:] *= 0.5
    return np.sum(np.roll(u * v, 1) * u * v)


def solved(x):
    u = x.reshape(100, 100)
    for _ in range(5):
        u = np.linalg.solve(0.1 * u + 12 * np.eye(100), u)
    return np.sum(u * u)


def factored(x):
    u = x.reshape(100, 100)
    for _ in range(3):
        q, r = np.linalg.qr(u + 12 * np.eye(100))
        u = q * r + 0.1 * q
    return np.sum(u)


@pytest.mark.parametrize("f", [written_views, solved, factored])
def test_the_copies_and_residuals_that_records_hold_are_counted(f):
    with pytest.raises(pb.BudgetError) as caught:
        pb.grad(f, policy=pb.Budget(1, exact=True))(X)
    gradient = pb.grad(f, policy=pb.Budget(caught.value.minimum_bytes, exact=True))
    gradient(X)
    _, peak = peak_of(gradient, X)
    assert peak <= caught.value.minimum_bytes


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 400])
def test_long_programs_bind_with_what_their_plans_take(n):
    def f(x):
        for _ in range(n):
            x = np.sin(x) * x + 0.1
        return np.sum(x)

    gradient = pb.grad(f, policy=pb.Budget("12 MB", exact=True))
    gradient(X)
    _, peak = peak_of(gradient, X)
    assert peak <= 12_000_000 + SLACK


def test_less_is_computed_again_with_more_bytes():
    wanted, counts = pb.grad(layered)(X), []
    for arrays in (14, 20, 30, 50, 80):
        _, pull = pb.vjp(layered, X, policy=pb.Budget(arrays * X.nbytes, exact=True))
        (found,) = pull(1.0)
        assert found.tobytes() == wanted.tobytes()
        counts.append(chain_of(pull).again)
        pull.close()
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 0 == counts[-1]


def require_monotone(parts):
    """What is computed again costs no more with more bytes; by number it may be more operations, which cost less."""
    f = program(parts)
    with pytest.raises(pb.BudgetError) as caught:
        pb.grad(f, (0, 1), policy=pb.Budget(1, exact=True))(X, C)
    costs, computed = [], GraphReplayer.compute

    def counted(replayer, ident, *rest):
        costs[-1] += replayer.chain.costs[ident]
        return computed(replayer, ident, *rest)

    with mock.patch.object(GraphReplayer, "compute", counted):
        for share in (1, 1.15, 1.3, 1.5, 1.8, 2.2, 3, 6):
            costs.append(0.0)
            _, pull = pb.vjp(f, X, C, policy=pb.Budget(int(share * caught.value.minimum_bytes), exact=True))
            pull(1.0)
            pull.close()
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 0


some_parts = given(st.lists(st.integers(0, len(PARTS) - 1), min_size=1, max_size=10))


@some_parts
@example([0, 3, 7, 12, 0, 20])
@example([15, 15, 13, 1, 0, 15, 0])  # ten operations for nine, which cost less
@settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_drawn_programs_compute_less_again_with_more_bytes(parts):
    require_monotone(parts)


@pytest.mark.slow
@some_parts
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_drawn_programs_compute_less_again_with_more_bytes(parts):
    require_monotone(parts)


def test_too_little_is_refused_by_name():
    with pytest.raises(pb.BudgetError, match=r"Budget\(200000, exact=True\) is too little for this program") as caught:
        pb.grad(layered, policy=pb.Budget(200_000, exact=True))(X)
    found = pb.grad(layered, policy=pb.Budget(caught.value.minimum_bytes, exact=True))(X)
    assert found.tobytes() == pb.grad(layered)(X).tobytes()


def test_the_plan_is_told_to_be_the_best():
    def small(x):
        a = np.exp(x)
        b = np.sin(a) * a
        return np.sum(np.cos(b) * a)

    with pytest.raises(pb.BudgetError) as caught:
        pb.grad(small, policy=pb.Budget(1, exact=True))(X)
    _, pull = pb.vjp(small, X, policy=pb.Budget(caught.value.minimum_bytes + X.nbytes, exact=True))
    (found,) = pull(1.0)
    assert chain_of(pull).optimal
    assert found.tobytes() == pb.grad(small)(X).tobytes()
    pull.close()


def test_loops_and_marks_beside_it():
    def f(x):
        u = np.sin(x) * x
        for _ in pb.steps(4):
            u = np.sin(u) * u
        v = pb.fori_loop(0, 5, lambda k, s: np.cos(s) * s, np.exp(u) * u)
        return np.sum(np.tanh(v) * v)

    found = pb.grad(f, policy=pb.Budget("20 MB", exact=True))(X)
    assert found.tobytes() == pb.grad(f)(X).tobytes()


def of_marked_steps(x):
    for _ in pb.steps(3):
        u = np.tanh(x.reshape(100, 100)).T
        x = np.sin(u).ravel()
    return u, x


def of_code_before(x):
    u = np.tanh(x.reshape(100, 100))
    return u.T, pb.fori_loop(0, 3, lambda k, x: np.sin(x), np.cos(x))


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("before", [of_marked_steps, of_code_before])
def test_a_view_from_before_loops_is_read_as_it_looks(before, writes):
    def f(x):
        u, x = before(x)
        w = u[::-1]
        y = np.sin(u) * u * w
        if writes:
            u[3] *= 2.0
        return np.sum(y * u) + np.sum(x)

    for x in (X, 0.7 * X):
        wanted = pb.grad(f)(x)
        budget = 1
        for arrays in (0, 25, 100):
            for _ in range(6):
                try:
                    found = pb.grad(f, policy=pb.Budget(max(budget, arrays * X.nbytes), exact=True))(x)
                    break
                except pb.BudgetError as error:
                    budget = error.minimum_bytes
            assert found.tobytes() == wanted.tobytes()


def test_reverse_over_reverse_holds_everything():
    x = np.linspace(0.2, 0.9, 50)

    def inner(x, policy):
        return np.sum(pb.grad(lambda z: np.sum(np.sin(z) * np.exp(z)), policy=policy)(x) ** 2)

    found = pb.grad(lambda x: inner(x, pb.Budget("1 MB", exact=True)))(x)
    assert found.tobytes() == pb.grad(lambda x: inner(x, None))(x).tobytes()


def test_rows_of_a_jacobian():
    def f(x):
        return np.stack([np.sum(np.sin(x) * x), np.sum(np.exp(np.cos(x)))])

    found = pb.jacobian(f, mode="reverse", policy=pb.Budget("2 MB", exact=True))(X)
    assert found.tobytes() == pb.jacobian(f, mode="reverse")(X).tobytes()


def test_without_exact_plain_code_is_cut_and_binds_or_refuses():
    wanted = pb.grad(layered)(X)
    with pytest.raises(pb.BudgetError) as caught:
        pb.grad(layered, policy=pb.Budget(400_000))(X)
    policy = pb.Budget(caught.value.minimum_bytes)
    assert pb.grad(layered, policy=policy)(X).tobytes() == wanted.tobytes()
    _, peak = peak_of(pb.grad(layered, policy=policy), X)
    assert peak <= policy.max_bytes + SLACK


def test_equal_programs_are_planned_once(monkeypatch):
    planned = []

    def best(problem, resident):
        planned.append(len(problem.sizes))
        return best_way(problem, resident)

    best_way = planned_reverse.best_way
    monkeypatch.setattr(planned_reverse, "best_way", best)
    monkeypatch.setattr(planned_reverse, "_WAYS", {})
    gradient = pb.grad(layered, policy=pb.Budget(30 * X.nbytes, exact=True))
    wanted = pb.grad(layered)
    for x in (X, X, 0.7 * X, X):
        assert gradient(x).tobytes() == wanted(x).tobytes()
    first = len(planned)
    assert first < 4  # what lives when the first run ends may differ between the first calls
    gradient(0.5 * X)
    assert len(planned) == first
    pb.grad(layered, policy=pb.Budget(31 * X.nbytes, exact=True))(X)
    assert len(planned) == first + 1


def test_code_before_marked_steps_is_planned_for_its_own_operations():
    """What planning takes grows with the square of these: it counted those of the steps, and asked for 219 kB."""

    def f(x):
        c = np.sin(x)
        for _ in pb.steps(40):
            x = x + 0.01 * np.sin(x) * c
        return np.sum(np.cos(x) * x)

    x = np.linspace(0.1, 0.9, 10)
    np.testing.assert_array_equal(pb.grad(f, policy=pb.Budget(20_000, exact=True))(x), pb.grad(f)(x))


@pytest.mark.slow
def test_a_program_of_many_operations_is_planned():
    """Its masks have more decimal digits than Python writes."""

    def f(x):
        for _ in range(14_400):
            x = x + 1e-4 * x
        return np.sum(np.sin(x))

    x = np.linspace(0.1, 0.2, 3)
    np.testing.assert_array_equal(pb.grad(f, policy=pb.Budget("1 GB", exact=True))(x), pb.grad(f)(x))
