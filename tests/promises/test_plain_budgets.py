"""``Budget`` on code without marks: within the bytes, the bits of save-all, fewer forward steps with more bytes, and no
more than ``Recompute`` takes at what it holds."""

import gc
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pullback as pb

SIZE = 10_000
X, C = np.linspace(0.2, 0.9, SIZE), np.linspace(0.5, 1.0, SIZE)
SLACK = 64 * 1024
"""Of Python's own objects that belong to no step."""
PARTS = (
    "v = np.sin(u) * 0.3 + v", "u, v = v, u", "u = u * c", "t = np.exp(-u * u); u = u + 0.1 * t", "v = np.roll(v, 1)",
    "w = u.copy(); w[1:-1] += 0.1 * (u[2:] - u[:-2]); u = w", "u = u + 0.1 * np.sum(v) / v.size", "v = v * 0.5",
    "a = np.concatenate([u[1:], v[:1]]); u = 0.5 * a", "u = np.where(u > 0.5, u, 0.9 * v)", "v = v + 0.1 * u",
    "v = np.maximum(u, v) + c", "z = np.zeros_like(u); z[1:] = u[1:] - u[:-1]; v = v + z", "u = np.tanh(u * v) * c",
)  # fmt: skip


def program(parts, n, after):
    """These statements n times, and others after them."""
    text = "def f(x, c):\n    u, v = x * 1.5, np.cos(x)\n    for _ in range(n):\n"
    text += "".join(f"        {PARTS[p]}\n" for p in parts) + "".join(f"    {PARTS[p]}\n" for p in after)
    names = {"np": np, "n": n}
    exec(f"{text}    return np.sum(u * v)\n", names)  # noqa: S102 - a program is drawn as text
    return names["f"]


def run(f, policy, *inputs):
    """The value with the gradients, and the report."""
    out, pull = pb.vjp(f, *inputs, policy=policy)
    found = [np.asarray(part).tobytes() for part in (out, *pull(1.0))]
    report = pull.report
    pull.close()
    return found, report


def require_binds(parts, n, after, share):
    f = program(parts, n, after)
    wanted, report = run(f, pb.SaveAll(), X, C)
    budget, found, peak = int(share * report.peak_bytes), None, 0
    for _ in range(20):
        gc.collect()
        tracemalloc.start()
        try:
            found = pb.value_and_grad(f, (0, 1), policy=pb.Budget(budget))(X, C)
            break
        except pb.BudgetError as error:  # the next one may come at a later step
            more, budget = error.minimum_bytes - budget, error.minimum_bytes
            assert more > 0
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
    assert found is not None
    assert [np.asarray(part).tobytes() for part in (found[0], *found[1])] == wanted
    assert peak <= budget + SLACK, (peak / X.nbytes, budget / X.nbytes)


drawn = given(
    st.lists(st.integers(0, len(PARTS) - 1), min_size=1, max_size=6), st.integers(1, 40),
    st.lists(st.integers(0, len(PARTS) - 1), max_size=5), st.floats(0.02, 1.2),
)  # fmt: skip


@drawn
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_drawn_programs(parts, n, after, share):
    require_binds(parts, n, after, share)


@pytest.mark.slow
@drawn
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_many_drawn_programs(parts, n, after, share):
    require_binds(parts, n, after, share)


def heat(u):
    for _ in range(150):
        u = u + 0.1 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u) * u
    return np.sum(u * u)


def test_more_bytes_never_cost_forward_steps():
    x = np.random.default_rng(0).random((60, 60)) * 0.01
    wanted, saved = run(heat, pb.SaveAll(), x)
    other = run(heat, pb.Recompute(), x)[1]
    at_its_bytes = int(other.peak_bytes + 12 * x.nbytes)  # its working bytes are not in the report
    steps = {}
    for budget in sorted([at_its_bytes, *(k * x.nbytes for k in (20, 26, 40, 60, 100, 200, 400))]):
        found, report = run(heat, pb.Budget(budget), x)
        assert found == wanted
        assert report.peak_bytes <= budget
        steps[budget] = report.n_forward
    counts = list(steps.values())
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] <= 152 < counts[0]
    assert steps[at_its_bytes] <= other.n_forward
    assert saved.peak_bytes > 200 * x.nbytes
