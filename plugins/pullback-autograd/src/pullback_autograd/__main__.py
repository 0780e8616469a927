"""``python -m pullback_autograd program.py ARGUMENTS`` or ``-m MODULE ARGUMENTS``: a program under :func:`install`."""

import runpy
import sys
from pathlib import Path

from pullback_autograd.drop_in import install

USAGE = "usage: python -m pullback_autograd (program.py | -m module) [arguments]"


def main() -> None:
    """Runs the program as Python would, with its folder (or the current one) first on the path."""
    given = sys.argv[1:]
    if not given or given[0] in {"-h", "--help"} or given == ["-m"]:
        sys.exit(USAGE)
    install()
    if given[0] == "-m":
        sys.argv = given[1:]
        sys.path[0] = ""
        runpy.run_module(given[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = given
        sys.path[0] = str(Path(given[0]).resolve().parent)
        runpy.run_path(given[0], run_name="__main__")


if __name__ == "__main__":
    main()
