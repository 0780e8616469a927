"""``pullback explain``, ``coverage``, ``primitives``, ``check`` and ``compare``: what there is, and whether it is
right."""

import json
import math
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
from attrs import asdict

from pullback.commands.checking import check_each, declarations_of
from pullback.commands.error_pages import codes, page_on
from pullback.commands.options_and_output import JSON, BadInputError, one_line_errors, show, show_json
from pullback.commands.registered import registered, registered_table
from pullback.instruments.inspect.coverage import MEANINGS
from pullback.instruments.inspect.coverage import coverage as name_coverage
from pullback.instruments.inspect.tables import Column, Table
from pullback.memory.ledger import mib
from pullback.words.errors import InputFileError


@click.command(short_help="What an error means, and what to write instead.")
@click.argument("error", metavar="[CODE|CLASS]", required=False)
@JSON
def explain(error: str | None, as_json: bool) -> None:
    """The page on an error, such as PB201 or ConversionError; without a word, the list of all.

    \b
    pullback explain PB201
    pullback explain ConversionError
    """  # noqa: D301  \b is click's mark for lines that keep their breaks
    page = page_on(error)
    if page is None:
        names = {name.lower(): name for pair in codes().items() for name in pair}
        near = get_close_matches(str(error).lower(), names, n=1, cutoff=0.75)
        meant = f" (did you mean {names[near[0]]}?)" if near else ""
        raise BadInputError(f"{error!r} names no error of pullback{meant}; `pullback explain` lists them all")
    if as_json:
        show_json(codes() if error is None else {"error": error, "page": page})
    else:
        click.echo(page, nl=False)


@click.command(short_help="What a function of NumPy means on traced arrays.")
@click.argument("name", required=False)
@JSON
def coverage(name: str | None, as_json: bool) -> None:
    """What a function of the installed NumPy means on traced arrays; without a name, how many mean what.

    \b
    pullback coverage np.interp
    pullback coverage linalg.norm
    """  # noqa: D301  see commands
    table = name_coverage()
    if name is None:
        if as_json:
            show_json(table.counts())
        else:
            click.echo(table)
        return
    rows = table.of(name)
    if not rows:
        near = table.nearest(name)
        raise BadInputError(
            f"{name!r} is no function of NumPy {table.numpy_version} that reaches pullback"
            f"{f' (did you mean {near}?)' if near is not None else ''}; it sees plain arrays, or raises ConversionError"
        )
    if as_json:
        show_json([asdict(row) for row in rows])
        return
    for row in rows:
        click.echo(
            f"{row.module}.{row.name}: {row.status}, {MEANINGS[row.status].replace('`', '')}"
            + (f" ({row.by})" if row.by else "")
        )


@click.command(short_help="What is registered, by whom, and what each rule saves.")
@click.argument("name", required=False)
@JSON
def primitives(name: str | None, as_json: bool) -> None:
    """The primitives that are registered: by whom, what they serve, and what each rule saves.

    \b
    pullback primitives
    pullback primitives matmul
    """  # noqa: D301  see explain
    with one_line_errors():
        rows = registered(name)
    if not rows:
        raise BadInputError(f"no primitive is named like {name!r}; `pullback primitives` lists them all")
    if as_json:
        show_json([row.to_dict() for row in rows])
    else:
        show(registered_table(rows))


@click.command(short_help="Every primitive of a plugin, checked.")
@click.argument("target", metavar="MODULE|FILE.py")
@JSON
def check(target: str, as_json: bool) -> None:
    """Check every primitive and every function of a plugin.

    A primitive by its declaration: its rules, what they read and leave alone, their second order; a function that is
    made of primitives by its gradients of two orders. Each on the first operands that it takes: vectors, square
    matrices, numbers. One that needs parameters is told, and not checked: call pullback.testing.check_primitive with
    them. The exit code is 1 where a fault was found.

    \b
    pullback check my_plugin
    pullback check my_kernels.py
    """  # noqa: D301  see explain
    with one_line_errors():
        results = check_each(declarations_of(target))
    if as_json:
        show_json([{"primitive": name, "result": word, "text": text} for name, word, text in results])
    else:
        columns = [
            Column(title, tuple(cell), text=True)
            for title, cell in zip(
                ("primitive", "result"), zip(*((n, w) for n, w, _ in results), strict=True), strict=True
            )
        ]
        show(Table(f"{len(results)} primitives and functions of {target}", tuple(columns)))
        for _, word, text in results:
            if word != "right":
                click.echo(text)
    if any(word == "wrong" for _, word, _ in results):
        raise SystemExit(1)


@click.command(short_help="Two profiles beside each other, for a CI job.")
@click.argument("before", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("after", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--tolerance", type=click.FloatRange(min=0), default=0.01, show_default=True, help="Of the peak, relative."
)
@JSON
def compare(before: Path, after: Path, tolerance: float, as_json: bool) -> None:
    """Two profiles beside each other, as pullback profile --json wrote them: peak, forward steps, CPU time.

    The exit code is 1 where a peak has grown by more than the tolerance, bits are no longer the same, or a policy of
    BEFORE is not in AFTER: for a CI job.

    \b
    pullback profile model.py:misfit --arg c=velocity.npy --json > after.json
    pullback compare before.json after.json
    """  # noqa: D301  see explain
    with one_line_errors():
        old, new = profile_rows(before), profile_rows(after)
    if not old.keys() & new.keys():
        raise BadInputError(f"{before} and {after} have no policy in common; profile both under one policy at least")
    rows = [difference(policy, old[policy], new.get(policy), tolerance) for policy in old]
    if as_json:
        show_json(rows)
    else:
        figures: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
            ("peak before", "peak_before", mib),
            ("after", "peak_after", mib),
            ("steps before", "steps_before", str),
            ("after", "steps_after", str),
            ("CPU time after|over before", "time_ratio", "{:.2f}".format),
        )
        columns = (
            Column("policy", tuple(row["policy"] for row in rows), text=True),
            *(
                Column(title, tuple("-" if row[name] is None else form(row[name]) for row in rows))
                for title, name, form in figures
            ),
            Column("verdict", tuple(row["verdict"] for row in rows), text=True),
        )
        more = [policy for policy in new if policy not in old]
        notes = (f"in {after} alone: {', '.join(more)}",) if more else ()
        show(Table(f"{before} against {after}", columns, notes))
    if any(row["verdict"] != "as before" for row in rows):
        raise SystemExit(1)


def difference(policy: str, old: dict[str, Any], new: dict[str, Any] | None, tolerance: float) -> dict[str, Any]:
    """What has changed under one policy, with a verdict; None stands for one that is there no more."""
    verdict = "as before"
    if new is None:
        new, verdict = {"peak_bytes": None, "n_forward": None, "cpu_seconds": None}, "IS GONE"
    elif new["peak_bytes"] > old["peak_bytes"] * (1 + tolerance):
        verdict = "PEAK GREW"
    elif old["same_bits"] and not new["same_bits"]:
        verdict = "OTHER BITS"
    return {
        "policy": policy,
        "peak_before": old["peak_bytes"],
        "peak_after": new["peak_bytes"],
        "steps_before": old["n_forward"],
        "steps_after": new["n_forward"],
        "time_ratio": None if new["cpu_seconds"] is None else new["cpu_seconds"] / (old["cpu_seconds"] or math.nan),
        "verdict": verdict,
    }


def profile_rows(path: Path) -> dict[str, dict[str, Any]]:
    """The rows of a profile in a file, by policy."""
    wanted = {"policy", "peak_bytes", "n_forward", "cpu_seconds", "same_bits"}
    try:
        rows = json.loads(path.read_text("utf-8"))["rows"]
        if all(wanted <= row.keys() for row in rows):
            return {row["policy"]: row for row in rows}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputFileError(
            f"{path} is no profile ({error}); write one with pullback profile ... --json > {path}"
        ) from error
    raise InputFileError(f"{path} is no profile of this version; write one with pullback profile ... --json > {path}")
