"""The divided wave without MPI: the program of a rank that has all rows, parts that hold all there is, and the command
where the plugin is missing."""

import numpy as np
import pytest
from attrs import evolve
from click.testing import CliRunner

import pullback as pb
from pullback.cli import commands
from pullback.demos import wave_ranks
from pullback.demos.wave_data import DEFAULT, make_survey
from pullback.demos.wave_model import misfit_by_loop
from pullback.words import plugins


class Alone:
    """A communicator of one rank."""

    @staticmethod
    def halo(u, widths, axis):
        edge = np.zeros_like(u, shape=(*u.shape[:-2], widths, u.shape[-1]))
        return np.concatenate([edge, u, edge], axis)

    @staticmethod
    def total(x):
        return x


@pytest.fixture(scope="module", params=[1, 3], ids=["one shot", "three shots"])
def survey(request):
    return make_survey(evolve(DEFAULT, shape=(36, 40), n_steps=30, border=5, n_shots=request.param))


def test_a_rank_that_has_all_rows_computes_the_whole(survey):
    problem, c = survey.problem, survey.initial_velocity
    part = wave_ranks.part_of(problem, slice(0, c.shape[0]))
    value, gradient = pb.value_and_grad(lambda c: wave_ranks.misfit_of_part(c, part, Alone))(c)
    expected, whole = pb.value_and_grad(lambda c: misfit_by_loop(c, problem, pb.fori_loop))(c)
    assert value == pytest.approx(expected, rel=1e-14)
    assert np.max(np.abs(gradient - whole)) <= 4e-15 * np.max(np.abs(whole))


def test_the_parts_hold_every_source_and_recording_once(survey):
    problem, (nz, nx) = survey.problem, survey.initial_velocity.shape
    cuts = [slice(0, 7), slice(7, 30), slice(30, nz)]
    parts = [wave_ranks.part_of(problem, cut) for cut in cuts]
    assert sum(part.data.size for part in parts) == problem.data.size
    pressed = np.zeros(problem.field_shape)
    pressed[problem.source_index] += 1.0
    pressed[problem.receiver_index] += 2.0
    again = np.zeros_like(pressed)
    for part, cut in zip(parts, cuts, strict=True):
        again[..., cut, :][part.source_index] += 1.0
        again[..., cut, :][part.receiver_index] += 2.0
    np.testing.assert_array_equal(again, pressed)
    assert [part.gain.shape for part in parts] == [(7, nx - 2), (23, nx - 2), (nz - 30, nx - 2)]
    assert not parts[0].gain[0].any() and not parts[-1].gain[-1].any() and parts[1].gain.all()


def test_the_command_names_a_plugin_that_is_missing(monkeypatch):
    monkeypatch.setattr(plugins, "entry_points", lambda group: [])
    plugins.communicator.cache_clear()
    result = CliRunner().invoke(commands, ["demo", "wave", "--mpi", "--quiet"])
    plugins.communicator.cache_clear()
    assert result.exit_code == 1
    assert "no communicator 'mpi' is installed (there is: none); pip install pullback-mpi" in result.output
