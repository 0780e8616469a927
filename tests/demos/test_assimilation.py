"""4D-Var on Lorenz-96: the model, its derivatives against an adjoint by hand, and the cycled demo at a small size."""

import re

import numpy as np
import pytest
from attrs import evolve
from click.testing import CliRunner
from tests.demos.test_wave_model import reference

import pullback as pb
from pullback.cli import commands
from pullback.demos.assimilation import (
    METHODS,
    PICTURE,
    AssimilationSettings,
    Cycled,
    conjugate_gradients,
    incremental,
    make_twin,
    run_assimilation,
    strong_constraint,
)
from pullback.demos.assimilation_model import Lorenz96, Window, circulant_root
from pullback.words.errors import PullbackError

lorenz_adjoint = reference("lorenz_adjoint")
MODEL = Lorenz96()
SHORT = AssimilationSettings(cycles=5)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return run_assimilation(SHORT, out=tmp_path_factory.mktemp("pictures") / "made")


@pytest.fixture
def window():
    rng = np.random.default_rng(3)
    background = MODEL.run(8.0 + rng.standard_normal(40), range(200))
    weights = circulant_root(40, 0.4, 1.0, 4)
    return Window(MODEL, background, rng.normal(2.0, 3.0, (2, 20)), slice(None, None, 2), 5, 0.5, weights, pb.steps)


def test_the_tendency_is_that_of_lorenz():
    x = np.random.default_rng(0).standard_normal(7)
    by_index = [(x[(i + 1) % 7] - x[i - 2]) * x[i - 1] - x[i] + 8.0 for i in range(7)]
    np.testing.assert_allclose(Lorenz96(7).tendency(x), by_index, rtol=1e-15)


def test_the_step_is_of_fourth_order():
    x = MODEL.run(8.0 + np.random.default_rng(1).standard_normal(40), range(100))
    exact = Lorenz96(dt=0.05 / 64).run(x, range(64))
    errors = [np.max(np.abs(Lorenz96(dt=0.05 / n).run(x, range(n)) - exact)) for n in (1, 2)]
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.25)


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(3)], ids=repr)
def test_the_adjoint_is_the_one_by_hand(policy):
    x = MODEL.run(8.0 + np.random.default_rng(1).standard_normal(40), range(100))
    ct = np.random.default_rng(2).standard_normal(40)
    end, pull = pb.vjp(lambda x: MODEL.run(x, pb.steps(30)), x, policy=policy)
    by_hand_end, by_hand = lorenz_adjoint.run_and_adjoint(x, ct, 30, MODEL.forcing, MODEL.dt)
    np.testing.assert_allclose(end, by_hand_end, rtol=1e-12)
    np.testing.assert_allclose(pull(ct)[0], by_hand, rtol=1e-12, atol=1e-12 * np.max(np.abs(by_hand)))


def test_the_two_directions_are_transposes_of_each_other(window):
    v, ct, t = (np.random.default_rng(k).standard_normal(n) for k, n in ((4, 40), (5, (2, 20)), (6, 40)))
    departures, push = pb.linearize(window.departures, v)
    _, pull = pb.vjp(window.departures, v)
    np.testing.assert_array_equal(departures, window.departures(v))
    assert np.sum(ct * push(t)) == pytest.approx(np.sum(pull(ct)[0] * t), rel=1e-12)


def test_the_background_covariance_has_the_variance_asked_for(window):
    root = np.stack([window.spread(row) for row in np.eye(40)])
    covariance = root @ root.T
    np.testing.assert_allclose(np.diag(covariance), 0.16, rtol=1e-13)
    np.testing.assert_allclose(covariance[0, 1:4] / 0.16, np.exp(-(np.arange(1, 4) ** 2) / 2), atol=0.02)
    assert len(circulant_root(5, 1.0, 1.0, 9)) == 3


def test_both_methods_find_the_minimum_of_one_cost(window):
    settings = evolve(SHORT, iterations=200, outer=12, inner=40)
    observations = (
        window.model.run(window.background, range(5))[::2],
        window.model.run(window.background, range(10))[::2],
    )
    window = evolve(
        window, observations=np.stack(observations) + 0.1 * np.random.default_rng(7).standard_normal((2, 20))
    )
    strong, products, *_ = strong_constraint(window, settings)
    by_products, *_ = incremental(window, settings)
    gradient = pb.grad(window.cost)
    assert np.max(np.abs(gradient(by_products))) < 1e-6
    assert window.cost(strong) == pytest.approx(window.cost(by_products), rel=1e-6)
    assert products > 1


def test_conjugate_gradients_solve_and_count():
    a = np.diag(np.arange(1.0, 5.0))
    x, taken = conjugate_gradients(lambda p: a @ p, np.ones(4), 20, 1e-12)
    np.testing.assert_allclose(x, 1 / np.arange(1.0, 5.0), rtol=1e-10)
    assert taken == 4


def test_the_analysis_is_nearer_to_the_truth_than_the_background(report):
    assert [run.method for run in report.runs] == list(METHODS)
    for run in report.runs:
        assert run.analysis_rmse.shape == run.background_rmse.shape == (5,)
        assert np.all(run.analysis_rmse < run.background_rmse)
    assert "every second variable observed every 5 steps" in str(report)
    assert f"background {np.mean(report.runs[0].background_rmse):.3f}" in str(report)


def test_every_cycle_holds_the_same_and_leaves_nothing(report):
    for run in report.runs:
        assert run.flat
        assert len(run.live_bytes) == 5 and run.live_bytes[0] > 10_000
        assert run.bytes_left == (0,) * 5
        assert f"held in each cycle {run.live_bytes[0]:,} B, after it 0 B" in str(run)
    uneven = Cycled("x", np.ones(2), np.ones(2), 1, (10, 20), (0, 5))
    assert not uneven.flat
    assert "10 to 20 B, after it 5 B" in str(uneven)


def test_a_policy_gives_the_same_analyses_and_holds_less():
    short = evolve(SHORT, cycles=2)
    kept, replayed = run_assimilation(short), run_assimilation(evolve(short, policy=pb.Binomial(3)))
    for one, other in zip(kept.runs, replayed.runs, strict=True):
        np.testing.assert_array_equal(one.analysis_rmse, other.analysis_rmse)
        assert other.live_bytes[0] < one.live_bytes[0]
    assert kept.picture is None


def test_the_twin_is_what_the_settings_say():
    twin = make_twin(evolve(SHORT, cycles=50))
    assert twin.truth.shape == (50, 2, 40)
    assert np.std(twin.observations - twin.truth[..., ::2]) == pytest.approx(0.5, rel=0.05)
    np.testing.assert_array_equal(twin.truth[1, 0], MODEL.run(twin.truth[0, -1], range(5)))
    assert np.array_equal(make_twin(evolve(SHORT, cycles=50)).truth, twin.truth)


def test_the_picture_is_written(report):
    assert report.picture.name == PICTURE
    assert report.picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert str(report).endswith(f"picture: {report.picture}")


def test_the_assimilation_command(tmp_path):
    result = CliRunner().invoke(
        commands, ["demo", "assimilation", "--cycles", "2", "--policy", "Binomial(3)", "--out", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("4D-Var on Lorenz-96: 40 variables, 2 windows of 10 steps")
    assert len(re.findall(r"background \d\.\d{3}  analysis \d\.\d{3}", result.stdout)) == 2
    assert "[1/4] strong constraint, L-BFGS: window 1" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {PICTURE}


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--cycles", "0"), "'--cycles': 0 is not in the range x>=1"), (("--policy", "Nothing(3)"), "Nothing")],
)
def test_bad_input_is_one_line(words, said, tmp_path):
    result = CliRunner().invoke(commands, ["demo", "assimilation", "--quiet", "--out", str(tmp_path), *words])
    assert result.exit_code == 2
    assert said in result.stderr.strip().splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_without_scipy_the_extra_is_named(window, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr("pullback.words.optional_libraries.import_module", absent)
    with pytest.raises(PullbackError, match=r"scipy is missing: install pullback\[demo\]"):
        strong_constraint(window, SHORT)
