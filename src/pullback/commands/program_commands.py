"""``pullback run`` and ``pullback port``: programs that know nothing of derivatives."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from pullback.adopting.modules.porting import ported
from pullback.adopting.modules.scripts import run_script
from pullback.commands.command_line_inputs import FileFunction, bind, places
from pullback.commands.function_commands import POLICY, named_value, parsed
from pullback.commands.options_and_output import ARGUMENTS, JSON, as_plain, one_line_errors, show_json
from pullback.memory.in_force import using
from pullback.transforms.derivatives.reverse import value_and_grad
from pullback.words.errors import InputFileError
from pullback.words.specs import spec_of

WRT = click.option(
    "--wrt", multiple=True, metavar="NAME", help="Differentiate by this parameter.  [default: the first floating one]"
)


@click.command("run", short_help="Run a script that knows nothing of pullback, and print a gradient.")
@click.argument("file", metavar="FILE.py")
@click.argument("words", nargs=-1, metavar="[-- ARGUMENTS OF THE SCRIPT]")
@click.option("--grad", "name", metavar="FUNCTION", help="Print the gradient of this function of the script.")
@ARGUMENTS
@WRT
@POLICY
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the gradient to this .npy file.")
@JSON
def run_command(
    file: str, words: Sequence[str], name: str | None, arguments: Sequence[str], wrt: Sequence[str],
    policy: str | None, save: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Run a script as python does, without changing a line of it, and print the gradient of FUNCTION.

    \b
    pullback run simulation.py --grad misfit --arg c=velocity.npy
    pullback run simulation.py --grad misfit --arg c=velocity.npy --policy 'Binomial(20)' --save gradient.npy
    """  # noqa: D301  see plan_command
    with one_line_errors():
        module = run_script(file, words)
        if name is None:
            return
        function = getattr(module, name, None)
        if not callable(function):
            raise InputFileError(f"{file} defines no function {name}; name one that stands at its top level")
        f = FileFunction(str(Path(file).absolute()), name, function)
        args = bind(f, dict(map(named_value, arguments)))
        argnums = places(f, args, wrt)
        with using(parsed(policy)):
            value, gradients = value_and_gradients(function, args, argnums)
    names = list(inspect.signature(function).parameters)
    named = {names[number]: gradient for number, gradient in zip(argnums, gradients, strict=True)}
    if as_json:
        plain = {parameter: as_plain(None, None, np.asarray(gradient)) for parameter, gradient in named.items()}
        show_json({"value": as_plain(None, None, value), "gradients": plain})
    else:
        click.echo(f"{name} = {value}")
        for parameter, gradient in named.items():
            click.echo(f"gradient by {parameter}: {shown(gradient)}")
    if save is not None:
        np.save(save, gradients[0])


def value_and_gradients(function: Any, args: Sequence[Any], argnums: tuple[int, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The value, and a gradient for each place."""
    value, gradients = value_and_grad(function, argnums)(*args)
    return value, tuple(gradients)


def shown(gradient: Any) -> str:
    """A number as it is; of an array what tells it from another."""
    array = np.asarray(gradient)
    if not array.ndim:
        return str(array[()])
    return f"{spec_of(array)}, norm {np.linalg.norm(array.ravel()):.6g}, from {array.min():.6g} to {array.max():.6g}"


@click.command("port", short_help="The smallest patch with which pullback can differentiate a file.")
@click.argument("function", metavar="FILE.py:FUNCTION")
@ARGUMENTS
@WRT
@JSON
def port_command(function: str, arguments: Sequence[str], wrt: Sequence[str], as_json: bool) -> None:
    """Print the smallest patch with which pullback can differentiate FUNCTION without adopting the file.

    FUNCTION is run to find the lines that make arrays into which traced values are written. Each gets `like=`, or 0
    times a traced number is added there. The patched program still runs on plain NumPy.

    \b
    pullback port simulation.py:misfit --arg c=velocity.npy > simulation.patch
    """  # noqa: D301  see plan_command
    with one_line_errors():
        path, colon, name = function.rpartition(":")
        if not colon:
            raise InputFileError(f"{function!r} names no function; write FILE.py:FUNCTION")
        patch = ported(path, name, lambda found: _arguments(found, path, name, arguments, wrt))
    if as_json:
        show_json({"patch": patch.text, "program": patch.program, "notes": list(patch.notes)})
        return
    click.echo(patch.text, nl=False)
    for note in patch.notes:
        click.echo(f"# {note}", err=True)


def _arguments(
    found: Any, path: str, name: str, arguments: Sequence[str], wrt: Sequence[str]
) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    f = FileFunction(path, name, found)
    args = bind(f, dict(map(named_value, arguments)))
    return args, places(f, args, wrt)
