"""``Budget`` on code without marks, or with checkpoints: within the bytes, the bits of save-all, fewer forward steps
with more bytes, and no more than ``Recompute`` takes at what it holds. A measured run follows one that has loaded what
is needed."""


import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.programs.measured import peak_of

import pullback as pb
from pullback.programs.exact_budget.foreseen import forget

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


def program(parts, n, after, checkpointed="none"):
    """These statements n times, and others after them; the first in a checkpoint for each time, or in one for all."""
    indented = "".join(f"        {PARTS[p]}\n" for p in parts)
    first, last = "    u, v = x * 1.5, np.cos(x)\n", "".join(f"    {PARTS[p]}\n" for p in after)
    loop, repeat = f"    for _ in range(n):\n{indented}", "    for _ in range(n):\n        u, v = g(u, v, c)\n"
    if checkpointed == "none":
        text = f"def f(x, c):\n{first}{loop}{last}"
    else:
        inner = loop if checkpointed == "whole" else indented.replace("        ", "    ")
        text = f"@pb.checkpoint\ndef g(u, v, c):\n{inner}    return u, v\ndef f(x, c):\n{first}"
        text += ("    u, v = g(u, v, c)\n" if checkpointed == "whole" else repeat) + last
    names = {"np": np, "n": n, "pb": pb}
    exec(f"{text}    return np.sum(u * v)\n", names)  # noqa: S102 - a program is drawn as text
    return names["f"]


def run(f, policy, *inputs):
    """The value with the gradients, and the report."""
    out, pull = pb.vjp(f, *inputs, policy=policy)
    found = [np.asarray(part).tobytes() for part in (out, *pull(1.0))]
    report = pull.report
    pull.close()
    return found, report


def require_binds(parts, n, after, share, checkpointed, known):
    f = program(parts, n, after, checkpointed)
    wanted, report = run(f, pb.SaveAll(), X, C)
    budget = int(share * report.peak_bytes)
    for _ in range(20):
        try:
            pb.value_and_grad(f, (0, 1), policy=pb.Budget(budget))(X, C)
            break
        except pb.BudgetError as error:  # the next one may come at a later step
            budget = error.minimum_bytes
    if not known:
        forget()
    (value, gradients), peak = peak_of(pb.value_and_grad(f, (0, 1), policy=pb.Budget(budget)), X, C)
    assert [np.asarray(part).tobytes() for part in (value, *gradients)] == wanted
    assert peak <= budget + SLACK, (peak / X.nbytes, budget / X.nbytes)


drawn = given(
    st.lists(st.integers(0, len(PARTS) - 1), min_size=1, max_size=6), st.integers(1, 40),
    st.lists(st.integers(0, len(PARTS) - 1), max_size=5), st.floats(0.001, 1.2),
    st.sampled_from(["none", "each", "whole"]), st.booleans(),
)  # fmt: skip


@drawn
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_drawn_programs(parts, n, after, share, checkpointed, known):
    require_binds(parts, n, after, share, checkpointed, known)


@pytest.mark.slow
@drawn
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_many_drawn_programs(parts, n, after, share, checkpointed, known):
    require_binds(parts, n, after, share, checkpointed, known)


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


def require_monotone(parts, n, after, checkpointed):
    f, least = program(parts, n, after, checkpointed), 1
    for _ in range(20):
        try:
            run(f, pb.Budget(least), X, C)
            break
        except pb.BudgetError as error:
            least = error.minimum_bytes
    reports = [run(f, pb.Budget(int(k * least)), X, C)[1] for k in (1, 1.1, 1.25, 1.5, 1.8, 2.2, 3, 5, 9, 20)]
    counts = [report.n_forward for report in reports]
    for k in range(len(counts) - 1):  # of steps that are not equal a later one may change the plan of those before it
        assert counts[k + 1] <= 1.05 * counts[k] + 1
    assert counts[-1] == min(counts)


some_parts = given(
    st.lists(st.integers(0, len(PARTS) - 1), min_size=1, max_size=5), st.integers(1, 40),
    st.lists(st.integers(0, len(PARTS) - 1), max_size=3), st.sampled_from(["none", "each", "whole"]),
)  # fmt: skip


@pytest.mark.parametrize("checkpointed", ["none", "each", "whole"])
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_equal_steps_run_less_often_with_more_bytes(checkpointed):
    require_monotone([0, 3, 10], 20, [6], checkpointed)


@pytest.mark.slow
@some_parts
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_many_drawn_programs_run_fewer_steps_with_more_bytes(parts, n, after, checkpointed):
    require_monotone(parts, n, after, checkpointed)
