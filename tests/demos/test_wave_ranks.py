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
    def start(u, widths, axis, room):
        return u

    @staticmethod
    def finish(sent):
        return sent

    @staticmethod
    def total(x):
        return x


@pytest.fixture(scope="module", params=[1, 3], ids=["one shot", "three shots"])
def survey(request):
    return make_survey(evolve(DEFAULT, shape=(36, 40), n_steps=30, border=5, n_shots=request.param))


def test_a_rank_that_has_all_rows_computes_the_whole(survey):
    problem, c = survey.problem, survey.initial_velocity
    rows = slice(0, c.shape[0])
    part = wave_ranks.part_of(problem, rows, rows)
    value, gradient = pb.value_and_grad(lambda c: wave_ranks.misfit_of_part(c, part, Alone))(c)
    expected, whole = pb.value_and_grad(lambda c: misfit_by_loop(c, problem, pb.fori_loop))(c)
    assert value == expected
    np.testing.assert_array_equal(gradient, whole)


def test_the_parts_hold_every_recording_once_and_every_source_they_see(survey):
    problem, (nz, nx) = survey.problem, survey.initial_velocity.shape
    cuts = [slice(0, 7), slice(7, 30), slice(30, nz)]
    held = [slice(max(cut.start - 1, 0), min(cut.stop + 1, nz)) for cut in cuts]
    parts = [wave_ranks.part_of(problem, cut, rows) for cut, rows in zip(cuts, held, strict=True)]
    assert sum(part.data.size for part in parts) == problem.data.size
    pressed = np.zeros(problem.field_shape)
    pressed[problem.receiver_index] += 2.0
    again = np.zeros_like(pressed)
    for part, rows in zip(parts, held, strict=True):
        again[..., rows, :][part.receiver_index] += 2.0
    np.testing.assert_array_equal(again, pressed)
    pressed[problem.source_index] += 1.0
    for part, rows in zip(parts, held, strict=True):
        own = again[..., rows, :]
        own[part.source_index] = pressed[..., rows, :][part.source_index]
    np.testing.assert_array_equal(again, pressed)
    assert [part.gain.shape for part in parts] == [(rows.stop - rows.start - 2, nx - 2) for rows in held]


def test_the_command_names_a_plugin_that_is_missing(monkeypatch):
    monkeypatch.setattr(plugins, "entry_points", lambda group: [])
    plugins.communicator.cache_clear()
    result = CliRunner().invoke(commands, ["demo", "wave", "--mpi", "--quiet"])
    plugins.communicator.cache_clear()
    assert result.exit_code == 1
    assert "no communicator 'mpi' is installed (there is: none); pip install pullback-mpi" in result.output
