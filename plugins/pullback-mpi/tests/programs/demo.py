"""The command line on a rank: ``demo.py demo wave --mpi``; after "then" the command that follows it."""

import sys

from pullback.cli import commands

for command in " ".join(sys.argv[1:]).split(" then "):
    commands(command.split(), prog_name="pullback", standalone_mode=False)
