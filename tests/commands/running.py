"""Commands, run in this process."""

from click.testing import CliRunner

from pullback import cli

FUNCTION = ("model.py:misfit", "--arg", "c=c.npy", "--arg", "data=data.npy")


def run(*words):
    """What a person sees who writes these words."""
    return CliRunner().invoke(cli.commands, list(words), prog_name="pullback")
