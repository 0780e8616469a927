"""How a domain is divided, without MPI."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import pullback as pb
from pullback_mpi import PartError, RankError
from pullback_mpi.grid import Grid


def grids(*parts, axes=None):
    n = int(np.prod(parts))
    return [Grid(rank, parts, axes or tuple(range(len(parts)))) for rank in range(n)]


@pytest.mark.parametrize("parts", [(1,), (3,), (2, 2), (3, 1), (2, 2, 2), (1, 3, 2)], ids=str)
def test_the_parts_tile_the_whole(parts):
    shape = (7, 8, 9)
    count = np.zeros(shape, int)
    found = grids(*parts)
    cuts = [grid.slices(shape) for grid in found]
    for cut in cuts:
        count[cut] += 1
    assert (count == 1).all()
    sizes = [count[cut].shape for cut in cuts]
    assert found[0].tiled(sizes) == (shape, cuts)
    assert max(s[0] for s in sizes) - min(s[0] for s in sizes) <= 1


@pytest.mark.parametrize("periodic", [False, True])
def test_neighbours_are_each_others(periodic):
    found = grids(2, 3)
    for grid in found:
        for direction in (0, 1):
            before, after = grid.neighbours(direction, periodic=periodic)
            if before is not None:
                assert found[before].neighbours(direction, periodic=periodic)[1] == grid.rank
            at_the_end = grid.place[direction] == grid.parts[direction] - 1
            assert (after is None) == (at_the_end and not periodic)
    assert found[4].neighbours(1, periodic=False) == (3, 5)
    assert found[4].neighbours(0, periodic=False) == (1, None)


def test_uneven_parts_tile_as_well():
    whole, cuts = grids(2, 2)[0].tiled([(5, 1), (5, 7), (2, 1), (2, 7)])
    assert whole == (7, 8)
    assert cuts[3] == (slice(5, 7), slice(1, 8))
    with pytest.raises(PartError, match="that of rank 2 is"):
        grids(2, 2)[0].tiled([(5, 1), (5, 7), (2, 1), (3, 7)])


def test_divided_axes_may_be_counted_from_the_end():
    grid = grids(2, 2, axes=(-2, -1))[3]
    assert grid.slices((3, 4, 6)) == (slice(0, 3), slice(2, 4), slice(3, 6))
    assert grid.slices((4, 6)) == (slice(2, 4), slice(3, 6))
    assert (grid.direction(1, 3), grid.direction(-1, 3), grid.direction(0, 3)) == (0, 1, None)
    with pytest.raises(PartError, match="axes="):
        grid.slices((4,))
    with pytest.raises(PartError, match="take fewer parts along it"):
        grid.slices((1, 6))


def test_importing_it_starts_no_mpi_and_a_missing_one_is_named():
    code = (
        "import sys, pullback_mpi; assert not any(name.startswith('mpi4py') for name in sys.modules);"
        "sys.modules['mpi4py'] = None; pullback_mpi.Communicator()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    words = "PluginError: pullback_mpi needs mpi4py and an MPI library: python -m pip install mpi4py mpich"
    assert words in done.stderr


def test_errors_travel_between_processes():
    error = pickle.loads(pickle.dumps(RankError("rank 1 has failed", 1)))  # noqa: S301 - written here
    assert (str(error), error.rank) == (str(RankError("rank 1 has failed", 1)), 1)
    assert isinstance(pickle.loads(pickle.dumps(PartError("x"))), pb.PullbackError)  # noqa: S301 - as above
