"""The command ``pullback``: demos, functions of yours under memory policies, what is registered, pages on errors.

Bad input is one line on stderr and exit code 2; any other error of pullback is one line and exit code 1.
"""

import pullback

try:  # the two libraries of the extra `cli`; a person who starts the command without them gets a sentence, no traceback
    import click
    import rich  # noqa: F401  what tables and progress are shown with
except ImportError as missing:
    raise SystemExit(f"the command line needs {missing.name}, which is missing: install pullback[cli]") from missing

from pullback.commands.demo_commands import demo
from pullback.commands.function_commands import draw_command, plan_command, profile_command, saved_command
from pullback.commands.program_commands import port_command, run_command
from pullback.commands.registry_commands import check, compare, coverage, explain, primitives

COMMANDS = (
    demo, profile_command, plan_command, saved_command, draw_command, explain, coverage, primitives, check, compare,
    run_command, port_command,
)  # fmt: skip


@click.group(commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(pullback.__version__, prog_name="pullback")
def commands() -> None:
    """Gradients of ordinary NumPy programs, with memory as a choice made per call.

    \b
    pullback demo wave            the main example: seismic inversion under four memory policies
    pullback demo digits          a small network learns handwritten digits
    pullback demo assimilation    4D-Var on Lorenz-96, by gradients and by the linearised model
    pullback profile FILE.py:F    what each memory policy costs for a function of yours
    pullback plan FILE.py:F       what a policy will hold, or which to take: --budget '100 MB'
    pullback saved FILE.py:F      what is held between forward and reverse, by your lines
    pullback draw FILE.py:F       its graph; --policy 'Binomial(3)' --steps 20 draws a schedule
    pullback run FILE.py --grad F runs a script that knows nothing of pullback, and prints a gradient
    pullback port FILE.py:F       the smallest patch with which pullback can differentiate a file
    pullback explain PB201        what an error means, and what to write instead
    pullback coverage np.interp   what a function of NumPy means on traced arrays
    pullback primitives matmul    what is registered, by whom, and what each rule saves
    pullback check my_plugin      every primitive of a plugin, checked
    pullback compare A.json B     two profiles beside each other, for a CI job
    """  # noqa: D301  \b is click's mark for lines that keep their breaks


def main() -> None:
    """Run the command line."""
    commands(prog_name="pullback")
