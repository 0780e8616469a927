"""``pullback profile``, ``plan``, ``saved`` and ``draw``: what a function of yours holds and costs."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from attrs import asdict

from pullback.commands.command_line_inputs import FileFunction, bind, load_function, load_value, parse_policy, places
from pullback.commands.options_and_output import (
    ARGUMENTS,
    ARGUMENTS_OR_SHAPES,
    JSON,
    POLICIES,
    QUIET,
    BadInputError,
    as_plain,
    known_policies,
    one_line_errors,
    progress_bar,
    repeats,
    show,
    show_json,
)
from pullback.instruments.inspect.graph_of_tape import record
from pullback.instruments.inspect.saved_table import GROUPS
from pullback.instruments.inspect.saved_values import saved
from pullback.instruments.pictures.folded_graph import FOLDS
from pullback.instruments.pictures.graph_drawing import SUFFIXES
from pullback.instruments.planning.plans import plan
from pullback.instruments.profiling.profile_runs import profile
from pullback.instruments.profiling.profile_table import Profile
from pullback.instruments.reports.contents import contents_of
from pullback.instruments.reports.page import page_of, require_writable
from pullback.policies.base import MemoryPolicy
from pullback.shapes_only.hollow_arrays import has_spec
from pullback.words.byte_sizes import as_bytes
from pullback.words.errors import InputFileError, PolicyError

FUNCTION = click.argument("function", metavar="FILE.py:FUNCTION")
POLICY = click.option("--policy", metavar="POLICY", help="The policy, such as 'Binomial(20)'.  [default: SaveAll]")


@click.command("profile", short_help="What each memory policy costs for a function of yours.")
@FUNCTION
@ARGUMENTS
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
@click.option("--timeline", is_flag=True, help="Add what was held when, by reason, phase and step.")
@click.option(
    "--lines",
    type=click.IntRange(min=0),
    help="Add rows for so many lines: what it costs not to hold what each makes.  [default: 2 with --html, else 0]",
)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a report, a page of its own, too.")
@JSON
@QUIET
def profile_command(
    function: str, arguments: tuple[str, ...], wrt: tuple[str, ...], policies: tuple[str, ...], repeat: int,
    taylor: bool, dot_product: bool, rss: bool, timeline: bool, lines: int | None, html: Path | None, as_json: bool,
    quiet: bool,
) -> None:  # fmt: skip
    """What each memory policy costs for a function of your own.

    The Python file is run once, and the gradient of FUNCTION is computed under each policy. Arrays come from .npy
    files; pickled ones are refused. The report of --html shows the curve of memory against time, what was held when,
    what is saved, the schedules, and the source with bytes by line.

    \b
    pullback profile model.py:misfit --arg c=velocity.npy --arg n=400
    pullback profile model.py:misfit --arg c=velocity.npy --policy SaveAll --policy 'Binomial(20)' --taylor --rss
    pullback profile model.py:misfit --arg c=velocity.npy --html report.html
    """  # noqa: D301  see plan_command
    with one_line_errors():
        if html is not None:
            require_writable(html)
        f, args = loaded(function, arguments)
        argnums = places(f, args, wrt)
        to_compare = [parse_policy(text, known_policies()) for text in policies] or None
        with progress_bar(quiet=quiet) as tell:
            wanted: dict[str, Any] = {
                "policies": to_compare, "argnums": argnums, "repeat": repeat, "progress": tell,
                "taylor": taylor, "dot_product": dot_product, "rss": rss,
                "timeline": timeline, "lines": lines if lines is not None else 0 if html is None else 2,
            }  # fmt: skip
            result: Profile = profile(f, *args, **wanted) if html is None else reported(html, f, args, wanted)
    if as_json:
        click.echo(result.to_json())
    else:
        show(result.table())


def reported(path: Path, f: FileFunction, args: tuple[Any, ...], wanted: dict[str, Any]) -> Profile:
    """The profile, of which the report is written, too. After an error the report shows what came before it."""
    contents, result, error = contents_of(f, *args, **wanted)
    path.write_text(page_of(contents.to_dict(), version("pullback")), "utf-8")
    click.echo(f"report: {path}", err=True)
    if error is not None or result is None:
        raise error or AssertionError(path)
    return result


@click.command("plan", short_help="What a policy will hold, or which to take within a budget.")
@FUNCTION
@ARGUMENTS_OR_SHAPES
@POLICY
@click.option("--budget", metavar="BYTES", help="Name the policy to take within these bytes: '100 MB', '50 %'.")
@JSON
def plan_command(
    function: str, arguments: tuple[str, ...], policy: str | None, budget: str | None, as_json: bool
) -> None:
    """What a gradient will hold and cost under a policy, or which policy to take within a number of bytes.

    FUNCTION is run once or twice. Prints bytes by reason, forward steps and seconds; with --budget the fastest policy,
    the next one that holds less, and the next one that is faster. Where arguments are given as shapes, no array of that
    size is made, and there are no seconds.

    \b
    pullback plan model.py:misfit --arg c=velocity.npy --policy 'Binomial(20)'
    pullback plan model.py:misfit --arg c=velocity.npy --budget '100 MB'
    pullback plan model.py:misfit --arg 'c=float64[4096,4096]' --policy 'Binomial(20)'
    """  # noqa: D301  \b is click's mark for lines that keep their breaks
    with one_line_errors():
        require_bytes(budget)
        f, args = loaded(function, arguments, shapes=True)
        found = plan(f, *args, policy=parsed(policy), budget=budget)
    if as_json:
        show_json(asdict(found, value_serializer=as_plain))
    else:
        click.echo(str(found))


@click.command("saved", short_help="What is held from forward to reverse, by your lines.")
@FUNCTION
@ARGUMENTS
@POLICY
@click.option("--by", type=click.Choice(GROUPS), help="Sums, the largest first.")
@click.option("--top", type=click.IntRange(min=1), help="The largest rows alone.")
@JSON
def saved_command(
    function: str, arguments: tuple[str, ...], policy: str | None, by: str | None, top: int | None, as_json: bool
) -> None:
    """What is held between the forward and the reverse pass, buffer by buffer, with your lines.

    \b
    pullback saved model.py:misfit --arg c=velocity.npy
    pullback saved model.py:misfit --arg c=velocity.npy --by line --policy 'Recompute()'
    """  # noqa: D301  see plan_command
    with one_line_errors():
        f, args = loaded(function, arguments)
        table = saved(f, *args, policy=parsed(policy))
        groups = None if by is None else table.group(by)
    if as_json:
        show_json(table.to_dict() if groups is None else [asdict(group) for group in groups])
    else:
        click.echo(str(groups) if groups is not None else table.listing(top) if top else str(table))


@click.command("draw", short_help="A schedule, or the graph of a function, as a picture.")
@click.argument("function", metavar="[FILE.py:FUNCTION]", required=False)
@ARGUMENTS
@POLICY
@click.option("--steps", type=click.IntRange(min=0), help="Draw the schedule of the policy over so many steps.")
@click.option("--fold", type=click.Choice(FOLDS), help="What becomes one box in a large graph.  [default: auto]")
@click.option("--cotangents", is_flag=True, help="Say how much each value influences the output.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write: .svg; of a graph also .mmd, .dot, .txt.",
)
@JSON
def draw_command(
    function: str | None, arguments: tuple[str, ...], policy: str | None, steps: int | None, fold: str | None,
    cotangents: bool, out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """The schedule of a policy, or the graph of a function, as text or as a picture.

    A large graph is folded, and says so: the steps of a loop onto one, then the operations of each function. Its form
    is that of the file's name: SVG (which needs the extra plot), Mermaid (.mmd), Graphviz (.dot) or text (.txt). As
    JSON it has every node, and a schedule every action.

    \b
    pullback draw --policy 'Binomial(3)' --steps 20
    pullback draw --policy 'Binomial(20)' --steps 4000 --out schedule.svg
    pullback draw model.py:misfit --arg c=velocity.npy --cotangents --out graph.svg
    """  # noqa: D301  see plan_command
    if (function is None) == (steps is None):
        raise BadInputError("draw takes FILE.py:FUNCTION for its graph, or --steps for a schedule; give one of the two")
    for_graph = {"--arg": arguments, "--fold": fold, "--cotangents": cotangents}
    unused = (
        [name for name, value in for_graph.items() if value]
        if function is None
        else []
        if policy is None
        else ["--policy"]
    )
    if unused:
        what = "the graph of a function" if function is None else "a schedule: give --steps in the place of a function"
        raise BadInputError(f"{unused[0]} is for {what}")
    with one_line_errors():
        if out is not None:
            require_suffix(out, SUFFIXES if steps is None else (".svg",))
            require_writable(out)
        drawing: Any
        plain: Callable[[], dict[str, Any]]
        if steps is not None:
            chosen = parsed(policy) or known_policies()["SaveAll"]()
            drawing = chosen.schedule(steps).draw()
            plain = partial(schedule_dict, chosen, steps)
        else:
            f, args = loaded(str(function), arguments)
            graph = record(f, *args, cotangents=cotangents)
            drawing, plain = graph.draw(fold=fold or "auto"), graph.to_dict
        if out is not None:
            click.echo(f"picture: {drawing.save(out)}", err=as_json)
        if as_json:
            show_json(plain())
        elif out is None:
            click.echo(str(drawing))


def schedule_dict(policy: MemoryPolicy, steps: int) -> dict[str, Any]:
    """The actions of a policy over so many steps as plain values."""
    actions = [{"action": type(action).__name__, **asdict(action)} for action in policy.schedule(steps)]
    return {"policy": repr(policy), "steps": steps, "actions": actions}


def require_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """Raise :class:`InputFileError` where the name of a picture does not say a form that it can have."""
    if path.suffix not in suffixes:
        forms = ", ".join(suffixes)
        raise InputFileError(f"{path} is to hold a picture; name a file that ends in {forms}")


def loaded(function: str, arguments: Sequence[str], *, shapes: bool = False) -> tuple[FileFunction, tuple[Any, ...]]:
    """The function, and the arguments of its call; shapes in the place of arrays where they may be."""
    f = load_function(function)
    values = dict(map(named_value, arguments))
    hollow = [name for name, value in values.items() if has_spec(value)]
    if hollow and not shapes:
        raise InputFileError(f"--arg {hollow[0]}= is a shape, by which pullback plan alone can go; name a .npy file")
    return f, bind(f, values)


def require_bytes(budget: str | None) -> None:
    """Raise :class:`InputFileError` where this is no number of bytes."""
    try:
        as_bytes(budget or 0, "--budget")
    except PolicyError as error:
        raise InputFileError(error.args[0]) from error


def parsed(policy: str | None) -> MemoryPolicy | None:
    """The policy that is written; None for none."""
    return None if policy is None else parse_policy(policy, known_policies())


def named_value(text: str) -> tuple[str, Any]:
    """``NAME=FILE.npy`` or ``NAME=NUMBER`` as the name and the value."""
    name, sign, rest = text.partition("=")
    if not sign or not name.isidentifier() or not rest:
        raise InputFileError(f"--arg {text!r} names no value; write NAME=FILE.npy or NAME=NUMBER")
    return name, load_value(rest)
