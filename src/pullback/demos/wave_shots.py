"""The wave demo with its shots on several workers: a sum over items, which a plugin computes on a cluster that it
starts on this machine."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from pullback.demos.wave_data import DEFAULT, WaveSettings, WaveSurvey, make_survey
from pullback.demos.wave_model import WaveProblem, misfit_by_loop
from pullback.instruments.inspect.tables import Column, Table
from pullback.instruments.watching.parts import Tell, silent
from pullback.loops.functions.loop_functions import fori_loop
from pullback.policies.base import MemoryPolicy
from pullback.policies.binomial import Binomial
from pullback.scaling.terms import Term, plus
from pullback.scaling.trees import tree_sum
from pullback.words.errors import PullbackError
from pullback.words.plugins import sum_over_items

SHOTS = evolve(DEFAULT, shape=(128, 128), n_steps=200, n_shots=16)
SHOTS_POLICY = Binomial(10)
"""What is computed unless something else is given."""


def shots_of(problem: WaveProblem) -> list[WaveProblem]:
    """A problem of one shot for each shot of a problem of several; their misfits add up to its misfit."""
    if len(problem.field_shape) != 3:
        raise PullbackError("one shot is nothing to divide: take settings with several")
    _, sz, sx = problem.source_index
    _, rz, rx = problem.receiver_index
    return [
        evolve(
            problem,
            field_shape=problem.field_shape[1:],
            source_index=(int(sz[shot]), int(sx[shot])),
            receiver_index=(rz, rx),
            data=problem.data[:, shot].copy(),
        )
        for shot in range(problem.field_shape[0])
    ]


def misfit_of_shot(c: Any, shot: WaveProblem) -> Any:
    """The misfit of one shot: at the top of a module, so that any process can be sent it."""
    return misfit_by_loop(c, shot, fori_loop)


@frozen
class WorkersRow:
    """One way to compute the sum."""

    where: str
    seconds: float
    """Seconds of a gradient, the fastest of several."""
    same_bits: bool
    """Whether the bits are as in this process."""
    moved_bytes: int
    """Bytes moved in one gradient, between processes."""


@frozen
class WorkersReport:
    """What was measured; prints as a table."""

    problem: WaveProblem = field(repr=False)
    policy: MemoryPolicy
    rows: tuple[WorkersRow, ...]

    def table(self) -> Table:
        """One row for each number of workers."""
        (n_shots, nz, nx), rows = self.problem.field_shape, self.rows
        columns = (
            Column("computed by", tuple(row.where for row in rows), text=True),
            Column("time|s", tuple(f"{row.seconds:.2f}" for row in rows)),
            Column("speed-up", tuple(f"{rows[0].seconds / row.seconds:.2f}" for row in rows)),
            Column("same bits", tuple("yes" if row.same_bits else "NO" for row in rows), text=True),
            Column("moved|MB", tuple(f"{row.moved_bytes / 1e6:.2f}" for row in rows)),
        )
        title = f"gradient of {n_shots} shots, {nz} x {nx} nodes, {self.problem.n_steps} steps, under {self.policy!r}"
        notes = (
            "time: of one gradient, the fastest of several; a worker is a process with one thread",
            "moved: between processes in one gradient; the shots, which stay on the workers, not counted",
        )
        return Table(title, columns, notes)

    def __str__(self) -> str:
        return str(self.table())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rows = [
            {
                "where": row.where, "seconds": row.seconds, "speed_up": self.rows[0].seconds / row.seconds,
                "same_bits": row.same_bits, "moved_bytes": row.moved_bytes,
            }
            for row in self.rows
        ]  # fmt: skip
        return {"shots": self.problem.field_shape[0], "policy": repr(self.policy), "rows": rows}


def run_on_workers(
    settings: WaveSettings = SHOTS,
    workers: int = 2,
    *,
    policy: MemoryPolicy = SHOTS_POLICY,
    repeat: int = 2,
    progress: Tell | None = None,
) -> WorkersReport:
    """The :class:`WorkersReport`: the gradient in this process, on one worker and on ``workers``, each the fastest of
    ``repeat``.

    Raises :class:`PluginError` with the line that installs the plugin, where it is missing.
    """
    tell, cluster_sum = progress or silent, sum_over_items("dask")
    numbers = sorted({1, workers})
    tell("survey: recordings on the finer grid", 0, len(numbers) + 1)
    survey = make_survey(settings)
    shots, c = shots_of(survey.problem), survey.initial_velocity
    tell("gradient in this process", 0, len(numbers) + 1)
    term = Term.here(misfit_of_shot, policy)
    expected, seconds = _timed(lambda: tree_sum(map(partial(term, c), shots, range(len(shots))), plus), repeat)
    rows = [WorkersRow("this process", seconds, same_bits=True, moved_bytes=0)]
    for done, number in enumerate(numbers, 1):
        tell(f"gradient on {number} worker{'s' if number > 1 else ''}", done, len(numbers) + 1)
        with cluster_sum(misfit_of_shot, shots, policy=policy, workers=number) as total:
            rows.append(_row(total, number, survey, expected, repeat))
    return WorkersReport(survey.problem, policy, tuple(rows))


def _row(total: Any, number: int, survey: WaveSurvey, expected: Any, repeat: int) -> WorkersRow:
    """One number of workers."""
    found, seconds = _timed(lambda: total.value_and_grad(survey.initial_velocity), repeat)
    before = total.moved_bytes
    total.value_and_grad(survey.initial_velocity)
    same = bool(found[0] == expected[0]) and np.array_equal(found[1], expected[1])
    where = f"{number} worker{'s' if number > 1 else ''} of Dask"
    return WorkersRow(where, seconds, same, total.moved_bytes - before)


def _timed(run: Callable[[], Any], repeat: int) -> tuple[Any, float]:
    """The result and the seconds of the fastest run; the first, which stages the steps, is not timed."""
    result, least = run(), float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        result = run()
        least = min(least, time.perf_counter() - start)
    return result, least
