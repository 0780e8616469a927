"""The wave demo at a small size: its table, inversion and pictures."""

import pickle

import numpy as np
import pytest
from attrs import evolve
from click.testing import CliRunner

import pullback as pb
from pullback.cli import commands
from pullback.demos import pictures, wave_data
from pullback.demos.digits import load_digits
from pullback.demos.wave import MODELS, TRADE_OFF, WaveMisfit, run_wave, sized
from pullback.words.errors import PullbackError

TINY = evolve(wave_data.DEFAULT, shape=(44, 56), n_steps=90, border=6, n_shots=2)
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    out = tmp_path_factory.mktemp("pictures") / "made"
    return run_wave(TINY, iterations=3, repeat=1, rss=False, out=out)


def test_the_wave_demo_compares_four_policies(report):
    assert [row.policy for row in report.profile.rows] == ["SaveAll()", "Recompute()", "Binomial(10)", "Binomial(30)"]
    for row in report.profile.rows:
        assert row.same_bits
        assert row.predicted_bytes == row.peak_bytes
        assert row.taylor_rate == pytest.approx(2, abs=0.15)
        assert row.dot_product_error < 1e-12
    save_all, *others = report.profile.rows
    assert save_all.n_forward == TINY.n_steps
    assert all(row.n_forward > TINY.n_steps and row.peak_bytes < save_all.peak_bytes for row in others)


def test_the_inversion_lowers_misfit_and_model_error(report):
    found = report.inversion
    assert len(found.misfits) == 4
    assert found.misfits[-1] < found.misfits[0]
    assert found.model_errors[-1] < found.model_errors[0]
    text = str(report)
    assert "inversion: 3 L-BFGS iterations" in text
    assert "m/s, root mean square below the sea floor" in text


def test_two_pictures_are_written(report):
    assert [path.name for path in report.pictures] == [TRADE_OFF, MODELS]
    for path in report.pictures:
        assert path.read_bytes().startswith(PNG)
        assert f"picture: {path}" in str(report)


def test_float32_stays_float32():
    small = sized(TINY, grid=(30, 36), n_steps=30, dtype="float32")
    assert small.border == 5
    found = run_wave(small, policies=[pb.SaveAll(), pb.Binomial(4)], iterations=1, repeat=1, rss=False)
    assert found.inversion.velocity.dtype == np.float32
    assert all(row.same_bits for row in found.profile.rows)
    assert found.profile.derivative == "complex step"
    assert found.profile.rows[0].dot_product_error < 1e-4
    assert found.pictures == ()


def test_the_misfit_travels_by_pickle():
    survey = wave_data.make_survey(sized(TINY, grid=(30, 36), n_steps=20))
    misfit = WaveMisfit(survey.problem)
    again = pickle.loads(pickle.dumps(misfit))  # noqa: S301  written here
    assert again(survey.initial_velocity) == misfit(survey.initial_velocity)
    assert misfit.__name__ == "wave misfit, 30 x 36 nodes, 20 steps, 2 shots, float64"


def test_the_wave_command(tmp_path):
    sizes = "--grid 30 36 --steps 20 --iterations 1 --repeat 1 --no-rss".split()
    result = CliRunner().invoke(
        commands, ["demo", "wave", *sizes, "--policy", "SaveAll", "--policy", "Binomial(5)", "--out", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    assert "gradient of wave misfit, 30 x 36 nodes, 20 steps, 3 shots, float64, by memory policy" in result.stdout
    assert "model error" in result.stdout
    assert "survey: recordings on the finer grid" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {TRADE_OFF, MODELS}


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr("pullback.words.optional_libraries.import_module", absent)
    with pytest.raises(PullbackError, match=r"matplotlib is missing: install pullback\[demo\]"):
        pictures.new_figure(1, 1)
    with pytest.raises(PullbackError, match=r"scikit-learn is missing: install pullback\[demo\]"):
        load_digits()
