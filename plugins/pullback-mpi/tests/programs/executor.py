"""A sum over items by an executor of ``mpi4py.futures``, run as ``mpiexec -n 3 python -m mpi4py.futures executor.py``.
Its last line says whether the bits are those of threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from mpi4py.futures import MPIPoolExecutor

import pullback as pb

ITEMS = [0.1 * k for k in range(11)]
X = np.linspace(0.2, 1.0, 5)


def misfit(x, item):
    return np.sum(pb.fori_loop(0, 12, lambda k, u: np.sin(u) + x * item, x) ** 2)


def fails(x, item):
    return np.sum(x) / (pb.value(x) @ np.ones(3) if item == ITEMS[3] else 1)


if __name__ == "__main__":
    with ThreadPoolExecutor(2) as threads:
        value, gradient = pb.over_executor(threads, misfit, X, ITEMS, policy=pb.Binomial(3))
    with MPIPoolExecutor(2) as ranks:
        for window in (None, 1, 5):
            found = pb.over_executor(ranks, misfit, X, ITEMS, policy=pb.Binomial(3), window=window)
            assert found[0] == value
            assert found[1].tobytes() == gradient.tobytes()
        with pytest.raises(ValueError, match="size 3 is different from 5") as told:
            pb.over_executor(ranks, fails, X, ITEMS)
        assert "item 3 of the sum" in "".join(told.value.__notes__)
    print("the same bits")  # noqa: T201 - what the test reads
