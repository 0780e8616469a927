"""``pareto``: every point is what its policy gives when it is passed again; the frontier and the best by definition."""

import json

import numpy as np
import pytest

import pullback as pb
from pullback.commands.command_line_inputs import parse_policy
from pullback.commands.options_and_output import known_policies
from pullback.instruments.planning import breakpoints as of_budgets
from pullback.instruments.planning import measured_curves as of_curves
from pullback.instruments.planning.breakpoints import breakpoints

X = np.linspace(0.1, 1.0, 400)


def loop(x):
    return np.sum(pb.fori_loop(0, 60, lambda k, u: u + 0.1 * np.sin(u) * u, x))


def short(x):
    return np.sum(pb.fori_loop(0, 6, lambda k, u: u + 0.1 * np.sin(u) * u, x))


def plain(x):
    for _ in range(12):
        x = x + 0.1 * np.sin(x) * x
    return np.sum(x)


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    """Planning may take half a second."""
    monkeypatch.setattr(of_budgets, "SECONDS", 0.5)


def test_breakpoints_are_the_least_budgets_of_their_steps():
    told = []
    curve = pb.pareto(short, X, seconds=None, progress=lambda what, done, total: told.append((what, done, total)))
    assert curve.complete
    shares = [done for what, done, total in told if what.startswith("breakpoints: ") and total == 100]
    assert shares == sorted(shares)
    assert shares[-1] >= 99
    found = curve.breakpoints
    budgets, steps = [p.policy.max_bytes for p in found], [p.n_forward for p in found]
    assert budgets == sorted(budgets)
    assert steps == sorted(steps, reverse=True)
    assert len(set(steps)) == len(steps) >= 5
    assert steps[-1] == 6
    for plan in found[::4]:
        again = pb.plan(short, X, policy=plan.policy)
        assert (again.peak_bytes, again.n_forward) == (plan.peak_bytes, plan.n_forward)
        try:
            assert pb.plan(short, X, policy=pb.Budget(plan.policy.max_bytes - 3200 // 32)).n_forward > plan.n_forward
        except pb.BudgetError:
            assert plan is found[0]
    tried = {p.policy.max_bytes for p in curve.points if isinstance(p.policy, pb.Budget)}
    assert tried <= set(budgets)
    assert {min(budgets), max(budgets)} <= tried
    assert curve.to_dict()["breakpoints"][0]["policy"] == f"Budget({budgets[0]})"
    assert "breakpoints of Budget are predicted" in str(curve)
    assert breakpoints(plain, (X,)) is None


def test_breakpoints_of_marked_steps():
    def f(x):
        u = x
        for _ in pb.steps(12):
            u = u + 0.1 * np.sin(u) * x
        return np.sum(u)

    found, complete = breakpoints(f, (X,), None)
    budgets, steps = [p.policy.max_bytes for p in found], [p.n_forward for p in found]
    assert complete
    assert budgets == sorted(budgets)
    assert steps == sorted(set(steps), reverse=True)
    assert len(steps) >= 8
    assert steps[-1] == 12
    for plan in found:
        run = pb.plan(f, X, policy=plan.policy)
        assert run.n_forward == plan.n_forward
        assert run.peak_bytes <= plan.peak_bytes == plan.policy.max_bytes
        try:
            assert pb.plan(f, X, policy=pb.Budget(plan.policy.max_bytes - X.nbytes // 32)).n_forward > plan.n_forward
        except pb.BudgetError:
            assert plan is found[0]


def test_what_there_is_no_time_for_is_said():
    found, complete = breakpoints(loop, (X,), 0.0)
    assert not complete
    assert len(found) >= 1
    curve = pb.pareto(loop, X, seconds=0.0, policies=())
    assert "there are more between them: pareto(..., seconds=None) finds all" in str(curve)
    assert curve.to_dict()["complete"] is False


@pytest.mark.parametrize("f", [loop, plain])
def test_a_point_is_what_its_expression_gives(f):
    curve = pb.pareto(f, X)
    assert len(curve.points) >= 4
    for point in curve.points:
        policy = parse_policy(repr(point.policy), known_policies())
        _, pull = pb.vjp(f, X, policy=policy)
        pull(1.0)
        assert pull.report.peak_bytes == point.peak_bytes == point.predicted_bytes
        assert pull.report.n_forward == point.n_forward
        assert point.seconds > 0
        pull.close()
    assert json.loads(json.dumps(curve.to_dict()))["points"][0]["policy"] == repr(curve.points[0].policy)


def test_the_frontier_and_the_best():
    curve = pb.pareto(loop, X, budgets=["60 kB", 100_000, "10 B"], policies=[pb.Binomial(4), "auto"], repeat=2)
    assert len(curve.points) == 4, "a budget that is too little is left out"
    assert [p.peak_bytes for p in curve.points] == sorted(p.peak_bytes for p in curve.points)
    for point in curve.points:
        beaten = any(p.peak_bytes <= point.peak_bytes and p.seconds < point.seconds for p in curve.points)
        assert (point in curve.frontier) == (not beaten)
    best = curve.best(100_000)
    assert best.seconds == min(p.seconds for p in curve.points if p.peak_bytes <= 100_000)
    with pytest.raises(pb.BudgetError, match="no policy of this curve holds 10 bytes or less; the least is") as caught:
        curve.best(10)
    assert caught.value.minimum_bytes == curve.points[0].peak_bytes
    assert "Binomial(4)" in str(curve)
    assert "Binomial(4)" in curve._repr_html_()


def test_the_picture(tmp_path):
    curve = pb.pareto(loop, X, budgets=["100 kB"])
    curve.plot(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_steps_are_not_run_very_often_unless_it_is_asked_for():
    def marked(x):
        for _ in pb.steps(60):
            x = x + 0.1 * np.sin(x) * x
        return np.sum(x)

    seen = []
    curve = pb.pareto(marked, X, progress=lambda *part: seen.append(part))
    assert max(point.n_forward for point in curve.points) <= of_curves.MOST_AGAIN * 60
    assert min(point.n_forward for point in curve.points) == 60
    assert len(curve.points) == of_curves.N_BUDGETS + 2
    assert seen[-1] == ("done", 20, 20)
    assert [done for _, done, total in seen if total == 20] == [*range(21)]
    assert any("run; about 0:0" in what for what, _, _ in seen)
    named = pb.pareto(loop, X, budgets=[of_curves.breakpoints(loop, (X,))[0][0].policy.max_bytes], policies=())
    assert named.points[0].n_forward > of_curves.MOST_AGAIN * 60


def test_points_of_one_argument_of_several():
    curve = pb.pareto(lambda x, y: np.sum(x * y), X, X, argnums=1, budgets=[], policies=[pb.SaveAll()])
    assert [(p.predicted_bytes, p.peak_bytes) for p in curve.points] == [(X.nbytes, X.nbytes)]


def test_refusals():
    with pytest.raises(ValueError, match="repeat >= 1, got 0"):
        pb.pareto(loop, X, repeat=0)
    with pytest.raises(ValueError, match=r"budgets='some'; pass 'auto' or a list"):
        pb.pareto(loop, X, budgets="some")
    with pytest.raises(pb.PolicyError, match=r"progress= takes True, False or a function .*, got 'yes'"):
        pb.pareto(loop, X, progress="yes")
    with pytest.raises(pb.PolicyError, match="needs a known length"):
        pb.pareto(lambda x: np.sum(pb.while_loop(lambda u: pb.value(u[0]) < 4, lambda u: u * 1.5, x)), X,
                  budgets=[], policies=[pb.Mixed(3)])  # fmt: skip
