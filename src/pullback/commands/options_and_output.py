"""How commands take options and show what they found: tables, progress, one line for an error."""

import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import click
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from pullback.choosing.budget_pool import BudgetPool
from pullback.instruments.inspect.tables import Table
from pullback.instruments.watching.parts import bar_on
from pullback.policies.base import MemoryPolicy
from pullback.policies.binomial import Binomial
from pullback.policies.budget import Budget
from pullback.policies.keep import Keep
from pullback.policies.mixed import Mixed
from pullback.policies.periodic import Periodic
from pullback.policies.recompute import Recompute
from pullback.policies.save_all import SaveAll
from pullback.policies.tiered import Tiered
from pullback.words.call_sites import users_part
from pullback.words.errors import InputFileError, PolicyWarning, PullbackError, RefusalWarning

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


JSON = click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON instead of the table.")
ARGUMENTS = click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of a parameter: a number, an array (a .npy file), or a dict of arrays (an .npz file).",
)
ARGUMENTS_OR_SHAPES = click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of a parameter: a number, an array (a .npy file), or a dict of arrays (an .npz file); or the shape "
    "of an array, such as float64[4096,4096].",
)


def known_policies() -> dict[str, type[MemoryPolicy]]:
    """Every public policy by its name."""
    kinds = Binomial, Budget, BudgetPool, Keep, Mixed, Periodic, Recompute, SaveAll, Tiered
    return {kind.__name__: kind for kind in kinds}


class BadInputError(click.ClickException):
    """A fault in what a person wrote; click prints its message without traceback."""

    exit_code = 2


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Within the block, an error of pullback becomes one line on stderr, with exit code 2 for bad input and else 1, and
    a warning of it one line, too. Of any other error the traceback begins with the user's program; the code is 1."""
    with warnings.catch_warnings():
        warnings.showwarning = _one_line(warnings.showwarning)
        try:
            yield
        except PullbackError as error:
            kind = BadInputError if isinstance(error, InputFileError) else click.ClickException
            raise kind(" ".join(str(error).split())) from error
        except click.ClickException:
            raise
        except Exception as error:
            of_user = users_part(error.__traceback__)
            if of_user is None or os.environ.get("PULLBACK_TRACEBACK") == "full":
                raise
            click.echo("".join(traceback.format_exception(error.with_traceback(of_user))).rstrip(), err=True)
            raise click.exceptions.Exit(1) from error


def _one_line(otherwise: Callable[..., None]) -> Callable[..., None]:
    """What shows a warning: each of pullback once, without the line, which is one of the command; others as ever."""
    told = set[str]()

    def showwarning(message: Warning | str, category: type[Warning], *where: Any, **options: Any) -> None:
        text = " ".join(str(message).split())
        if not issubclass(category, PolicyWarning | RefusalWarning):
            otherwise(message, category, *where, **options)
        elif text not in told:
            told.add(text)
            click.echo(f"Warning: {text}", err=True)

    return showwarning


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A function that shows progress on stderr: a bar on a terminal, lines elsewhere; None when quiet."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield lambda what, done, total: click.echo(f"[{done}/{total}] {what}", err=True)
        return
    with bar_on(Console(stderr=True)) as tell:
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


def show_json(value: Any) -> None:
    """Print plain values as JSON."""
    click.echo(json.dumps(value, indent=2))


def as_plain(_owner: Any, _field: Any, value: Any) -> Any:
    """What JSON can hold, for ``attrs.asdict``: an array as its numbers, a policy as its text."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if attrs.has(type(value)) and not isinstance(value, MemoryPolicy):
        return value
    return value if isinstance(value, int | float | str | None | dict | list | tuple) else str(value)
