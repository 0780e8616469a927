"""The wave demo divided over MPI ranks: each has some rows of the section, and one row more of each neighbour, which is
exchanged in every step.

The program of one rank is the step of :mod:`pullback.demos.wave_model` on these rows, with two calls that fill those of
the neighbours; so every number that belongs to one node has the bits of the undivided program.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from pullback.demos.wave_data import DEFAULT, WaveSettings, WaveSurvey, make_survey
from pullback.demos.wave_model import State, WaveProblem, advance, initial_state, misfit_by_loop, scaled_speed
from pullback.instruments.inspect.tables import Column, Table
from pullback.instruments.watching.parts import Tell, silent
from pullback.loops.functions.loop_functions import fori_loop
from pullback.policies.base import MemoryPolicy
from pullback.policies.binomial import Binomial
from pullback.policies.save_all import SaveAll
from pullback.transforms.derivatives.reverse import value_and_grad
from pullback.words.plugins import communicator

DIVIDED = evolve(DEFAULT, shape=(512, 512), n_steps=100, n_shots=1, border=24)
"""What is divided unless other sizes are given: one shot on a section that is worth dividing."""
DIVIDED_POLICIES: tuple[MemoryPolicy, ...] = (SaveAll(), Binomial(10))


def part_of(problem: WaveProblem, own: slice, held: slice) -> WaveProblem:
    """The problem of the rank that has its ``own`` rows, and holds some of its neighbours, too: the sources in what it
    holds, the receivers and recordings of its own rows."""
    first, last = held.start, held.stop
    every, rz, rx = problem.receiver_index
    heard = (rz >= own.start) & (rz < own.stop)
    return evolve(
        problem,
        field_shape=(*problem.field_shape[:-2], last - first, problem.field_shape[-1]),
        source_index=_sources(problem.source_index, first, last),
        receiver_index=(every, rz[heard] - first, rx[heard]),
        damp=problem.damp[held],
        gain=problem.gain[first : last - 2],
        data=problem.data[..., heard],
    )


def _sources(index: tuple[Any, ...], first: int, last: int) -> tuple[Any, ...]:
    """The sources within these rows. A single one as slices, which are empty on the other ranks: what arrays of places
    leave out would have to be looked at for NaN in every product of the reverse pass."""
    *shots, sz, sx = index
    if not shots:
        row = sz - first if first <= sz < last else 0
        return slice(row, row + (first <= sz < last)), slice(sx, sx + 1)
    here = (sz >= first) & (sz < last)
    return (*(places[here] for places in shots), sz[here] - first, sx[here])


def misfit_of_part(c: Any, part: WaveProblem, comm: Any, **options: Any) -> Any:
    """The misfit of the whole section, on every rank, of the velocities of the rows that this rank holds; ``options``
    are those of the loop function."""
    c2 = scaled_speed(c, part)

    def body(k: int, state: State) -> State:
        u_prev, u, loss = state
        u_next = advance(c2, u_prev, u, part, k)
        sent = comm.start(u_next, 1, axis=-2, room=True)  # own rows are ready: what follows needs no others
        residual = u_next[part.receiver_index] - part.data[k]
        return u, comm.finish(sent), loss + np.sum(residual * residual)

    _, _, loss = fori_loop(0, part.n_steps, body, initial_state(part), **options)
    return part.scale * comm.total(loss)


@frozen
class RanksRow:
    """One policy: seconds of the undivided program on one rank, of the divided one on all, and what else was seen."""

    policy: MemoryPolicy
    seconds_alone: float
    seconds: float
    same_bits: bool
    """Whether the bits are those under the first policy, on every rank."""
    apart: float
    """The largest difference to the undivided gradient, of its largest element."""
    value_apart: float
    sent_bytes: int
    """Bytes sent in one gradient, by all ranks."""


@frozen
class RanksReport:
    """What was measured; prints as a table. The same on every rank."""

    rank: int
    size: int
    problem: WaveProblem = field(repr=False)
    rows: tuple[RanksRow, ...]

    def table(self) -> Table:
        """One row for each policy."""
        nz, nx = self.problem.damp.shape
        rows = self.rows
        columns = (
            Column("policy", tuple(repr(row.policy) for row in rows), text=True),
            Column("undivided|s", tuple(f"{row.seconds_alone:.3f}" for row in rows)),
            Column(f"{self.size} ranks|s", tuple(f"{row.seconds:.3f}" for row in rows)),
            Column("speed-up", tuple(f"{row.seconds_alone / row.seconds:.2f}" for row in rows)),
            Column("same bits|as the first", tuple("yes" if row.same_bits else "NO" for row in rows), text=True),
            Column("gradient apart|from undivided", tuple(f"{row.apart:.1e}" for row in rows)),
            Column("sent|MiB", tuple(f"{row.sent_bytes / 2**20:.2f}" for row in rows)),
        )
        title = f"gradient of wave misfit, {nz} x {nx} nodes, {self.problem.n_steps} steps, rows on {self.size} ranks"
        return Table(
            title,
            columns,
            (
                "undivided: the whole section on one rank, while the others wait; the least of several rounds",
                "gradient apart: the largest difference, of the largest element of the undivided gradient",
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rows = [
            {
                "policy": repr(row.policy), "seconds_alone": row.seconds_alone, "seconds": row.seconds,
                "speed_up": row.seconds_alone / row.seconds, "same_bits": row.same_bits, "apart": row.apart,
                "value_apart": row.value_apart, "sent_bytes": row.sent_bytes,
            }
            for row in self.rows
        ]  # fmt: skip
        return {"ranks": self.size, "steps": self.problem.n_steps, "rows": rows}


def run_on_ranks(
    settings: WaveSettings = DIVIDED,
    *,
    policies: Sequence[MemoryPolicy] = DIVIDED_POLICIES,
    repeat: int = 2,
    progress: Tell | None = None,
) -> RanksReport:
    """The :class:`RanksReport`; every rank of MPI calls it. ``repeat`` is the number of timed gradients.

    Raises :class:`PluginError` where the plugin, mpi4py or MPI is missing.
    """
    comm = communicator("mpi")(axes=(-2,))
    tell = progress if progress is not None and comm.rank == 0 else silent
    tell("survey: recordings on the finer grid", 0, len(policies))
    survey = make_survey(settings)
    rows: list[RanksRow] = []
    first: Any = None
    for done, policy in enumerate(policies):
        tell(f"gradient under {policy!r}", done, len(policies))
        row, gradient = _measured(comm, survey, policy, repeat)
        first = gradient if first is None else first
        rows.append(evolve(row, same_bits=not comm.total(float(not np.array_equal(gradient, first)))))
    tell("done", len(policies), len(policies))
    return RanksReport(comm.rank, comm.size, survey.problem, tuple(rows))


def _measured(comm: Any, survey: WaveSurvey, policy: MemoryPolicy, repeat: int) -> tuple[RanksRow, NDArray[Any]]:
    """The row of one policy, and this rank's part of the gradient."""
    problem, c = survey.problem, survey.initial_velocity
    rows, held = comm.slices(c.shape), comm.slices(c.shape, 1)
    part = part_of(problem, rows[0], held[0])
    undivided = value_and_grad(lambda c: misfit_by_loop(c, problem, fori_loop), policy=policy)
    divided = value_and_grad(lambda c: misfit_of_part(c, part, comm), policy=policy)
    whole = _timed(comm, lambda: undivided(c) if comm.rank == 0 else (0.0, c), repeat)
    with comm.agree(policy):
        ours = _timed(comm, lambda: divided(c[held]), repeat)
    own = ours.gradient[rows[0].start - held[0].start :][: rows[0].stop - rows[0].start]
    gradient, expected, value = comm.gather(own), comm.bcast(whole.gradient), comm.bcast(whole.value)
    row = RanksRow(
        policy,
        seconds_alone=whole.seconds,
        seconds=ours.seconds,
        same_bits=True,
        apart=float(np.max(np.abs(gradient - expected)) / np.max(np.abs(expected))),
        value_apart=float(abs(ours.value - value) / abs(value)),
        sent_bytes=int(comm.total(ours.sent_bytes)),
    )
    return row, ours.gradient


@frozen(eq=False)
class Timed:
    """A value and a gradient, the seconds of the slowest rank in the fastest of several runs, and the bytes that this
    rank sent in one."""

    value: Any
    gradient: NDArray[Any]
    seconds: float
    sent_bytes: int


def _timed(comm: Any, run: Callable[[], Any], repeat: int) -> Timed:
    """All ranks begin together; the first run, which stages the steps, is not timed."""
    run()
    least = float("inf")
    for _ in range(repeat):
        comm.settled(None)
        before, start = comm.sent_bytes, time.perf_counter()
        value, gradient = run()
        nanoseconds = int(1e9 * (time.perf_counter() - start))
        sent = comm.sent_bytes - before
        least = min(least, comm.largest((nanoseconds,))[0] / 1e9)
    return Timed(value, gradient, least, sent)
