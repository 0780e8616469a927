"""``pullback demo``: programs that show the library at work."""

from pathlib import Path

import click
from attrs import asdict

from pullback.commands.command_line_inputs import parse_policy
from pullback.commands.options_and_output import (
    JSON,
    OUT,
    POLICIES,
    QUIET,
    as_plain,
    known_policies,
    one_line_errors,
    progress_bar,
    repeats,
    show,
    show_json,
)
from pullback.demos.assimilation import AssimilationSettings, run_assimilation
from pullback.demos.digits import run_digits
from pullback.demos.wave import run_wave, sized
from pullback.demos.wave_data import DEFAULT, FULL, WaveSettings
from pullback.demos.wave_ranks import DIVIDED, DIVIDED_POLICIES, run_on_ranks
from pullback.demos.wave_shots import SHOTS, SHOTS_POLICY, run_on_workers
from pullback.instruments.profiling.profile_runs import DEFAULT_POLICIES
from pullback.policies.base import MemoryPolicy


@click.group()
def demo() -> None:
    """Programs that show the library at work."""


@demo.command()
@click.option(
    "--full", is_flag=True, help="256 x 256 nodes, 4000 steps, one shot: minutes, and about 2 GiB under save-all."
)
@click.option(
    "--dtype", type=click.Choice(["float64", "float32"]), default="float64", show_default=True, help="Of every array."
)
@click.option("--grid", type=(int, int), metavar="NZ NX", help="Another number of nodes, down and across.")
@click.option("--steps", type=click.IntRange(min=1), help="Another number of time steps.")
@POLICIES
@click.option(
    "--iterations", type=click.IntRange(min=1), default=8, show_default=True, help="L-BFGS iterations of the inversion."
)
@repeats(2)
@click.option(
    "--rss/--no-rss",
    default=None,
    help="Measure the peak RSS, in one process for each policy.  [default: where memory-profiler is there]",
)
@click.option(
    "--mpi", is_flag=True, help="Divide the section over the ranks of mpiexec, and compare with one; no inversion."
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Give 16 shots to so many workers of a cluster on this machine, and compare with one; no inversion.",
)
@OUT
@JSON
@QUIET
def wave(
    full: bool, dtype: str, grid: tuple[int, int] | None, steps: int | None, policies: tuple[str, ...],
    iterations: int, repeat: int,
    rss: bool | None, mpi: bool, workers: int | None, out: Path, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Recover a velocity model from seismic recordings, and compare memory policies on the way.

    The 2-D acoustic wave equation under real terrain, written as ordinary NumPy. Its misfit is differentiated once
    per policy, and one table says what each policy holds, executes and takes, whether the gradient is right, and
    whether its bits are the same. Then a few L-BFGS iterations lower the misfit. Two pictures are written: memory
    against time, and the models.

    \b
    pullback demo wave                                    under a minute, under 500 MiB
    pullback demo wave --dtype float32 --out pictures
    pullback demo wave --policy SaveAll --policy 'Binomial(5)' --no-rss
    mpiexec -n 2 pullback demo wave --mpi                 one gradient, by rows on two ranks
    pullback demo wave --workers 2                        one gradient, its shots on two workers
    """  # noqa: D301  see commands
    if mpi and workers is not None:
        raise click.UsageError("--mpi divides the section, --workers the shots: give one of them")
    with one_line_errors():
        to_compare = [parse_policy(text, known_policies()) for text in policies]
        usual = DIVIDED if mpi else DEFAULT if workers is None else SHOTS
        settings = sized(FULL if full else usual, grid=grid, n_steps=steps, dtype=dtype)
        if mpi:
            _wave_on_ranks(settings, to_compare, repeat, as_json=as_json, quiet=quiet)
            return
        if workers is not None:
            _wave_on_workers(settings, workers, to_compare, repeat, as_json=as_json, quiet=quiet)
            return
        to_compare = to_compare or list(DEFAULT_POLICIES)
        with progress_bar(quiet=quiet) as tell:
            report = run_wave(
                settings, policies=to_compare, iterations=iterations, repeat=repeat, rss=rss, out=out, progress=tell
            )
    if as_json:
        inversion = {"inversion": report.inversion_lines(), "pictures": [str(path) for path in report.pictures]}
        show_json(report.profile.to_dict() | inversion)
        return
    show(report.profile.table())
    for line in ("", *report.inversion_lines(), *(f"picture: {path}" for path in report.pictures)):
        click.echo(line)


def _wave_on_ranks(
    settings: WaveSettings, policies: list[MemoryPolicy], repeat: int, *, as_json: bool, quiet: bool
) -> None:
    """What ``wave --mpi`` does on each rank; the first shows it."""
    with progress_bar(quiet=quiet) as tell:
        report = run_on_ranks(settings, policies=policies or DIVIDED_POLICIES, repeat=repeat, progress=tell)
    if report.rank == 0:
        show_json(report.to_dict()) if as_json else show(report.table())


def _wave_on_workers(
    settings: WaveSettings, workers: int, policies: list[MemoryPolicy], repeat: int, *, as_json: bool, quiet: bool
) -> None:
    """What ``wave --workers`` does."""
    if len(policies) > 1:
        raise click.UsageError("--workers compares workers, under one policy: give --policy once")
    [policy] = policies or [SHOTS_POLICY]
    with progress_bar(quiet=quiet) as tell:
        report = run_on_workers(settings, workers, policy=policy, repeat=repeat, progress=tell)
    show_json(report.to_dict()) if as_json else show(report.table())


@demo.command()
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    default=15,
    show_default=True,
    help="Passes over the 1347 digits for training.",
)
@OUT
@JSON
@QUIET
def digits(epochs: int, out: Path, as_json: bool, quiet: bool) -> None:
    """Train a small network on handwritten digits, and judge it on digits it has not seen.

    The products `x @ w` come from the plugin pullback-linalg, the digits from scikit-learn. A picture shows what was
    misread.
    """

    def tell(what: str, _done: int, _total: int) -> None:
        if not quiet:
            click.echo(what, err=as_json)

    with one_line_errors():
        found = run_digits(epochs=epochs, out=out, progress=tell)
    if as_json:
        known = asdict(found, filter=lambda field, _: field.name != "parameters", value_serializer=as_plain)
        show_json(known)
    else:
        click.echo(str(found))


@demo.command()
@click.option(
    "--cycles",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Assimilation windows, one after the other.",
)
@click.option(
    "--policy", metavar="POLICY", default="SaveAll", show_default=True, help="Of the gradients, such as 'Binomial(3)'."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the truth and the observation errors.")
@OUT
@JSON
@QUIET
def assimilation(cycles: int, policy: str, seed: int, out: Path, as_json: bool, quiet: bool) -> None:
    """Assimilate observations of the Lorenz-96 model by 4D-Var, window after window.

    40 variables, every second of them observed every 5 steps; an analysis, forecast to the end of its window, is the
    next background. Once with the gradient of the cost and L-BFGS, once by Gauss-Newton with products of the
    linearised model and its adjoint. Printed: the errors of background and analysis against the truth, and the bytes
    held, which are the same in every cycle.

    \b
    pullback demo assimilation                            under a minute
    pullback demo assimilation --cycles 20 --policy 'Binomial(3)' --out pictures
    """  # noqa: D301  see commands
    with one_line_errors():
        settings = AssimilationSettings(cycles=cycles, seed=seed, policy=parse_policy(policy, known_policies()))
        with progress_bar(quiet=quiet) as tell:
            report = run_assimilation(settings, out=out, progress=tell)
    if as_json:
        show_json(asdict(report, value_serializer=as_plain))
    else:
        click.echo(str(report))
