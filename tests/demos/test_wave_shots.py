"""The wave with its shots on workers, without a cluster: the shots, the table, the command where the plugin is
missing. With one it is tested where the plugin is."""

import json

import numpy as np
import pytest
from attrs import evolve
from click.testing import CliRunner

import pullback as pb
from pullback.cli import commands
from pullback.demos import wave_data, wave_shots
from pullback.demos.wave import WaveMisfit
from pullback.demos.wave_shots import WorkersReport, misfit_of_shot, run_on_workers, shots_of
from pullback.scaling import Term, plus, tree_sum
from pullback.words import plugins

TINY = evolve(wave_data.DEFAULT, shape=(30, 36), n_steps=30, border=5, n_shots=3)


class Here:
    """A sum over items in this process, in the form of a plugin's."""

    bits_lost = 0.0

    def __init__(self, f, items, *, policy, workers):
        self.term, self.items, self.workers, self.moved_bytes = Term.here(f, policy), items, workers, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def value_and_grad(self, x):
        self.moved_bytes += 1000 * self.workers
        value, gradient = tree_sum((self.term(x, item, k) for k, item in enumerate(self.items)), plus)
        return value, gradient + self.bits_lost


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(wave_shots, "sum_over_items", {"dask": Here}.__getitem__)


def test_the_misfits_of_the_shots_add_up():
    survey = wave_data.make_survey(TINY)
    shots, c = shots_of(survey.problem), survey.initial_velocity
    value, gradient = pb.value_and_grad(WaveMisfit(survey.problem))(c)
    parts = [pb.value_and_grad(misfit_of_shot)(c, shot) for shot in shots]
    assert len(shots) == 3
    np.testing.assert_allclose(sum(part[0] for part in parts), value, rtol=1e-12)
    np.testing.assert_allclose(sum(part[1] for part in parts), gradient, rtol=1e-9, atol=1e-12 * np.max(gradient))


def test_one_shot_is_not_divided():
    problem = wave_data.make_survey(evolve(TINY, n_shots=1)).problem
    with pytest.raises(pb.PullbackError, match="one shot is nothing to divide"):
        shots_of(problem)


def test_the_table_compares_workers_with_this_process(here):
    told = []
    report = run_on_workers(TINY, 2, policy=pb.Binomial(3), repeat=1, progress=lambda *what: told.append(what))
    assert [row.where for row in report.rows] == ["this process", "1 worker of Dask", "2 workers of Dask"]
    assert [row.moved_bytes for row in report.rows] == [0, 1000, 2000]
    assert all(row.same_bits for row in report.rows)
    assert "gradient of 3 shots, 30 x 36 nodes, 30 steps, under Binomial(3)" in str(report)
    assert [what[1:] for what in told] == [(0, 3), (0, 3), (1, 3), (2, 3)]


def test_other_bits_are_told(here, monkeypatch):
    monkeypatch.setattr(Here, "bits_lost", 1e-9)
    report = run_on_workers(TINY, 1, repeat=1)
    assert isinstance(report, WorkersReport)
    assert [row.same_bits for row in report.rows] == [True, False]
    assert "NO" in str(report)


def test_the_command(here):
    sizes = ("--grid", "30", "36", "--steps", "8", "--repeat", "1", "--quiet")
    found = CliRunner().invoke(commands, ["demo", "wave", "--workers", "2", *sizes, "--json"])
    assert [row["same_bits"] for row in json.loads(found.output)["rows"]] == [True] * 3
    found = CliRunner().invoke(commands, ["demo", "wave", "--workers", "1", *sizes, "--policy", "Binomial(2)"])
    assert "16 shots, 30 x 36 nodes, 8 steps, under Binomial(2)" in found.output
    found = CliRunner().invoke(
        commands, ["demo", "wave", "--workers", "1", "--policy", "SaveAll", "--policy", "Binomial(2)"]
    )
    assert found.exit_code == 2
    assert "under one policy: give --policy once" in found.output


def test_the_command_names_a_plugin_that_is_missing(monkeypatch):
    monkeypatch.setattr(plugins, "entry_points", lambda group: [])
    plugins.sum_over_items.cache_clear()
    found = CliRunner().invoke(commands, ["demo", "wave", "--workers", "2", "--quiet"])
    plugins.sum_over_items.cache_clear()
    assert found.exit_code == 1
    assert "no sum over items 'dask' is installed (there is: none); pip install pullback-dask" in found.output
