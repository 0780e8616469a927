"""The command ``pullback``: demos, memory policies measured on a function of yours, pages on errors, NumPy coverage.

Bad input is one line on stderr and exit code 2; any other error of pullback is one line and exit code 1.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pullback
from pullback.demos.assimilation import AssimilationSettings, run_assimilation
from pullback.demos.digits import run_digits
from pullback.demos.wave import run_wave, sized
from pullback.demos.wave_data import DEFAULT, FULL
from pullback.inspect.command_line_inputs import bind, load_function, load_value, parse_policy, places
from pullback.inspect.coverage import MEANINGS
from pullback.inspect.coverage import coverage as name_coverage
from pullback.inspect.error_pages import page_on
from pullback.inspect.profile_table import DEFAULT_POLICIES, Profile, profile
from pullback.inspect.tables import Table
from pullback.policies.base import MemoryPolicy
from pullback.words.errors import InputFileError, PullbackError

try:  # the two libraries of the extra `cli`; a person who starts the command without them gets a sentence, no traceback
    import click
    from rich import box
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.table import Table as RichTable
    from rich.text import Text
except ImportError as missing:
    raise SystemExit(f"the command line needs {missing.name}, which is missing: install pullback[cli]") from missing

OUT = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("pullback-demo"),
    show_default=True,
    help="Folder for the pictures.",
)
QUIET = click.option("--quiet", is_flag=True, help="Show no progress.")
POLICIES = click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="POLICY",
    help="A policy to compare, such as 'Binomial(20)'; may be repeated.",
)


def repeats(default: int) -> Callable[[Any], Any]:
    """The option ``--repeat`` with this default."""
    return click.option(
        "--repeat",
        type=click.IntRange(min=1),
        default=default,
        show_default=True,
        help="Gradients for each policy; the fastest counts.",
    )


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(pullback.__version__, prog_name="pullback")
def commands() -> None:
    """Gradients of ordinary NumPy programs, with memory as a choice made per call.

    \b
    pullback demo wave            the main example: seismic inversion under four memory policies
    pullback demo digits          a small network learns handwritten digits
    pullback demo assimilation    4D-Var on Lorenz-96, by gradients and by the linearised model
    pullback profile FILE.py:F    the same table for your own function
    pullback explain PB201        what an error means, and what to write instead
    pullback coverage np.interp   what a function of NumPy means on traced arrays
    """  # noqa: D301  \b is click's mark for lines that keep their breaks


@commands.group()
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
@OUT
@QUIET
def wave(
    full: bool, dtype: str, grid: tuple[int, int] | None, steps: int | None, policies: tuple[str, ...],
    iterations: int, repeat: int,
    rss: bool | None, out: Path, quiet: bool,
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
    """  # noqa: D301  see commands
    with one_line_errors():
        to_compare = [parse_policy(text, known_policies()) for text in policies] or DEFAULT_POLICIES
        settings = sized(FULL if full else DEFAULT, grid=grid, n_steps=steps, dtype=dtype)
        with progress_bar(quiet=quiet) as tell:
            report = run_wave(
                settings, policies=to_compare, iterations=iterations, repeat=repeat, rss=rss, out=out, progress=tell
            )
    show(report.profile.table())
    for line in ("", *report.inversion_lines(), *(f"picture: {path}" for path in report.pictures)):
        click.echo(line)


@demo.command()
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    default=15,
    show_default=True,
    help="Passes over the 1347 digits for training.",
)
@OUT
@QUIET
def digits(epochs: int, out: Path, quiet: bool) -> None:
    """Train a small network on handwritten digits, and judge it on digits it has not seen.

    The products `x @ w` come from the plugin pullback-linalg, the digits from scikit-learn. A picture shows what was
    misread.
    """

    def tell(what: str, _done: int, _total: int) -> None:
        if not quiet:
            click.echo(what)

    with one_line_errors():
        click.echo(str(run_digits(epochs=epochs, out=out, progress=tell)))


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
@QUIET
def assimilation(cycles: int, policy: str, seed: int, out: Path, quiet: bool) -> None:
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
    click.echo(str(report))


@commands.command("profile")
@click.argument("function", metavar="FILE.py:FUNCTION")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="A parameter's array, saved by numpy.save, or its number.",
)
@click.option(
    "--wrt", multiple=True, metavar="NAME", help="Differentiate by this parameter.  [default: the first floating one]"
)
@POLICIES
@repeats(3)
@click.option(
    "--taylor", is_flag=True, help="Add the rate of the Taylor test: 2 for a right gradient. For scalar functions."
)
@click.option("--dot-product", is_flag=True, help="Add the error of the dot-product test.")
@click.option("--rss", is_flag=True, help="Add the peak RSS, measured in one process for each policy.")
@click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON instead of the table.")
@QUIET
def profile_command(
    function: str, arguments: tuple[str, ...], wrt: tuple[str, ...], policies: tuple[str, ...], repeat: int,
    taylor: bool,
    dot_product: bool, rss: bool, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """What each memory policy costs for a function of your own.

    The Python file is run once, and the gradient of FUNCTION is computed under each policy. Arrays come from .npy
    files; pickled ones are refused.

    \b
    pullback profile model.py:misfit --arg c=velocity.npy --arg n=400
    pullback profile model.py:misfit --arg c=velocity.npy --policy SaveAll --policy 'Binomial(20)' --taylor --rss
    """  # noqa: D301  see commands
    with one_line_errors():
        f = load_function(function)
        args = bind(f, dict(map(named_value, arguments)))
        argnums = places(f, args, wrt)
        to_compare = [parse_policy(text, known_policies()) for text in policies] or None
        with progress_bar(quiet=quiet) as tell:
            result: Profile = profile(
                f,
                *args,
                policies=to_compare,
                argnums=argnums,
                repeat=repeat,
                taylor=taylor,
                dot_product=dot_product,
                rss=rss,
                progress=tell,
            )
    if as_json:
        click.echo(result.to_json())
    else:
        show(result.table())


@commands.command()
@click.argument("error", metavar="[CODE|CLASS]", required=False)
def explain(error: str | None) -> None:
    """The page on an error, such as PB201 or ConversionError; without a word, the list of all.

    \b
    pullback explain PB201
    pullback explain ConversionError
    """  # noqa: D301  see commands
    page = page_on(error)
    if page is None:
        raise BadInputError(f"{error!r} names no error of pullback; `pullback explain` lists them all")
    click.echo(page, nl=False)


@commands.command()
@click.argument("name", required=False)
def coverage(name: str | None) -> None:
    """What a function of the installed NumPy means on traced arrays; without a name, how many mean what.

    \b
    pullback coverage np.interp
    pullback coverage linalg.norm
    """  # noqa: D301  see commands
    table = name_coverage()
    if name is None:
        click.echo(table)
        return
    rows = table.of(name)
    if not rows:
        raise BadInputError(
            f"{name!r} is no function of NumPy {table.numpy_version} that reaches pullback; it sees plain arrays, or "
            "raises ConversionError"
        )
    for row in rows:
        click.echo(
            f"{row.module}.{row.name}: {row.status}, {MEANINGS[row.status].replace('`', '')}"
            + (f" ({row.by})" if row.by else "")
        )


def named_value(text: str) -> tuple[str, Any]:
    """``NAME=FILE.npy`` or ``NAME=NUMBER`` as the name and the value."""
    name, sign, rest = text.partition("=")
    if not sign or not name.isidentifier() or not rest:
        raise InputFileError(f"--arg {text!r} names no value; write NAME=FILE.npy or NAME=NUMBER")
    return name, load_value(rest)


def known_policies() -> dict[str, type[MemoryPolicy]]:
    """Every public policy by its name."""
    public = {name: getattr(pullback, name) for name in pullback.__all__}
    return {
        n: p for n, p in public.items() if isinstance(p, type) and issubclass(p, MemoryPolicy) and p is not MemoryPolicy
    }


class BadInputError(click.ClickException):
    """A fault in what a person wrote; click prints its message without traceback."""

    exit_code = 2


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Within the block, an error of pullback becomes one line on stderr, with exit code 2 for bad input and else 1.
    Other errors keep their traceback."""
    try:
        yield
    except PullbackError as error:
        kind = BadInputError if isinstance(error, InputFileError) else click.ClickException
        raise kind(" ".join(str(error).split())) from error


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A function that shows progress on stderr: a bar on a terminal, lines elsewhere; None when quiet."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield lambda what, done, total: click.echo(f"[{done}/{total}] {what}", err=True)
        return
    # Drawn when something begins, not by a thread of its own, which would disturb the timings.
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as bar:
        task = bar.add_task("", total=1)

        def tell(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total, refresh=True)

        yield tell


def show(table: Table) -> None:
    """Print a table: in colour on a terminal, with one column for each row where the terminal is narrow; plain text
    elsewhere.

    On a terminal too narrow for either it is plain text, too: rich would cut the columns.
    """
    console = Console(highlight=False)
    fitting = [form for form in (table, table.transposed()) if form.width + len(form.columns) + 1 <= console.width]
    if not sys.stdout.isatty() or not fitting:
        click.echo(str(table))
        return
    console.print(rich_table(fitting[0]))
    for note in table.notes:
        console.print(Text(note, style="dim"))


def rich_table(table: Table) -> RichTable:
    """The table in rich's form; the answer to "same bits" stands out."""
    rich = RichTable(
        title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1)
    )
    for column in table.columns:
        header = "\n".join(part for part in column.lines if part)
        rich.add_column(header, justify="left" if column.text else "right", no_wrap=True, vertical="bottom")
    for row in table.rows:
        rich.add_row(*(Text(cell, style={"yes": "green", "NO": "bold red"}.get(cell, "")) for cell in row))
    return rich


def main() -> None:
    """Run the command line."""
    commands(prog_name="pullback")
