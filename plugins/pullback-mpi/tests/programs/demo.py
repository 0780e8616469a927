"""The command line on a rank: ``demo.py demo wave --mpi``."""

from pullback.cli import main

main()
