"""Ranges, grids and powers at their ends, of integers, and where NumPy refuses."""

import numpy as np
import pytest
from tests.primitives.gradients import close, same

import pullback as pb


# --------------------------------------------------------------------------------------------------------------- ranges
def test_the_last_element_of_a_range_is_its_stop():
    same(np.asarray(pb.grad(lambda b: np.linspace(0.1, b, 7)[-1])(0.7)), 1)
    same(np.asarray(pb.grad(lambda a: np.linspace(a, 0.7, 7)[-1])(0.1)), 0)
    close(pb.grad(lambda b: np.geomspace(0.1, b, 7)[-1])(0.7), 1.0)


def test_ranges_of_integers_are_plain():
    def ranges(a):
        for line in (
            np.linspace(a, 9, 4, dtype=int),
            np.geomspace(a, 9, 4, dtype=int),
            np.logspace(a, 2, 4, dtype=int),
        ):
            assert type(line) is np.ndarray
        line, step = np.linspace(a, 9.0, 4, retstep=True, dtype=int)
        assert type(line) is np.ndarray
        return step

    close(pb.grad(ranges)(1.5), -1 / 3)


def test_geomspace_with_zero_is_refused_as_by_numpy():
    with pytest.raises(ValueError, match="cannot include zero"):
        pb.vjp(lambda a: np.geomspace(a, 1.0), 0.0)


def test_meshgrid_keeps_plain_lines_plain_and_numpys_containers():
    def grids(x):
        a, b = np.meshgrid(x, [1, 2])
        assert type(b) is np.ndarray
        assert type(np.meshgrid(x, x, sparse=True, copy=False)) is type(np.meshgrid([1], [1], sparse=True, copy=False))
        return np.sum(a)

    same(pb.grad(grids)(np.ones(3)), [2, 2, 2])
    with pytest.raises(ValueError, match="indexing='yx'"):
        pb.vjp(lambda x: np.meshgrid(x, x, indexing="yx"), np.ones(2))
