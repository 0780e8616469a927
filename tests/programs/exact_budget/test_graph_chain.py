"""What ``Budget(..., exact=True)`` computes again, against the least there is where the first run may hold what it
likes: every way through small drawn programs is looked at."""

import numpy as np
import pytest

import pullback as pb
from pullback.programs.exact_budget import planned_reverse
from pullback.scheduling.graphs.fixed_order import Event, FixedOrder, best_of_order

X = np.linspace(0.2, 0.9, 10_000)
OPERATIONS = (
    "{a} * {b}", "np.sin({a})", "np.exp(-{a})", "{a} + np.cos({b})", "np.tanh({a})", "{a} / (1 + {b} * {b})",
    "{a} - 0.1 * {b}", "np.maximum({a}, {b})",
)  # fmt: skip
SHARES = (1, 1.1, 1.25, 1.5, 1.75)


def drawn(rng, n):
    """A program of n lines, each of which reads the one before, or another, and one of the newest."""
    names, text = ["x"], "def f(x):\n"
    for k in range(n):
        a = names[-1] if rng.random() < 0.7 else names[rng.integers(len(names))]
        b = names[rng.integers(max(0, len(names) - 4), len(names))]
        text += f"    v{k} = {OPERATIONS[rng.integers(len(OPERATIONS))].format(a=a, b=b)}\n"
        names.append(f"v{k}")
    found = {"np": np}
    exec(f"{text}    return np.sum({names[-1]} * {names[-2]})\n", found)  # noqa: S102 - a program is drawn as text
    return found["f"]


def whole(problem):
    """The first run and the reverse: values are made in order, may be dropped, and are computed again in the reverse.
    What handles hold meanwhile is left out, so no run has a lower cost."""
    n, least = len(problem.sizes), min(event.before for event in problem.events)
    first = [Event(problem.reads[v], 1 << v, 0, least, least) for v in range(n)]
    return FixedOrder(
        problem.sizes, problem.costs, problem.reads, problem.extras, first + problem.events, problem.max_bytes,
        again_from=n,
    )  # fmt: skip


def ratios(monkeypatch, seed, n_programs, most_lines):
    """Over the budgets of some programs: the cost of all that is computed, by the least."""
    planned, found = [], []
    known_way = planned_reverse.known_way

    def plan(problem, resident):
        planned.append((problem, known_way(problem, resident)))
        return planned[-1][1]

    monkeypatch.setattr(planned_reverse, "known_way", plan)
    rng = np.random.default_rng(seed)
    for _ in range(n_programs):
        f = drawn(rng, int(rng.integers(3, most_lines)))
        with pytest.raises(pb.BudgetError) as caught:
            pb.grad(f, policy=pb.Budget(1, exact=True))(X)
        for share in SHARES:
            gradient = pb.grad(f, policy=pb.Budget(int(caught.value.minimum_bytes * share), exact=True))
            assert gradient(X).tobytes() == pb.grad(f)(X).tobytes()
            problem, (way, optimal) = planned[-1]
            cost, once = problem.cost_of(way), sum(problem.costs)
            best = best_of_order(whole(problem), 0, 50_000)
            if best.complete:
                assert cost >= best.cost
                found.append((once + cost) / (once + best.cost))
            if not cost:
                assert optimal
                break
    return np.array(found)


def test_near_the_least_cost(monkeypatch):
    found = ratios(monkeypatch, 3, 8, 7)
    assert len(found) > 10
    assert found.mean() < 1.03
    assert found.max() < 1.15


@pytest.mark.slow
def test_many_near_the_least_cost(monkeypatch):
    found = ratios(monkeypatch, 4, 150, 10)
    assert np.mean(found < 1 + 1e-12) > 0.75
    assert found.mean() < 1.02
    assert found.max() < 1.25
