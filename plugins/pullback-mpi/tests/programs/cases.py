"""A program of cases: each runs on all ranks, and what became of it on this one is written down before the next."""

import json
import sys
import traceback
from pathlib import Path

from mpi4py import MPI

import pullback_mpi

WORLD = MPI.COMM_WORLD
CASES = []


def case(function):
    CASES.append(function)
    return function


def run_cases():
    """All cases, in order; the first that fails on a rank ends all of them."""
    path = Path(sys.argv[1]) / f"{WORLD.rank:02}.json"
    told = {}
    for function in CASES:
        try:
            function()
            told[function.__name__] = "ok"
        except BaseException:  # noqa: BLE001 - it is told, and ends the program
            told[function.__name__] = traceback.format_exc()
        path.with_suffix(".new").write_text(json.dumps(told), encoding="utf-8")
        path.with_suffix(".new").rename(path)  # the other ranks may end this one at any moment
        if told[function.__name__] != "ok":
            WORLD.Abort(1)
        WORLD.Barrier()


def error_of(function, **options):
    """The error that a function of a new communicator raises within an agreed block, or None."""
    comm = pullback_mpi.Communicator(WORLD, **options)
    try:
        with comm.agree():
            function(comm)
    except Exception as error:  # noqa: BLE001 - it is what is asked for
        return error
    return None
