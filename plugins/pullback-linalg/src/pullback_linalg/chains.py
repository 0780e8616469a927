"""multi_dot: a product of many matrices, in the order that takes the fewest multiplications."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback as pb
from pullback_linalg.products import as_array


def splits(extents: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where the cheapest product of matrices i to j is split, after matrix k: the matrices are ``extents[i]`` by
    ``extents[i + 1]``.

    Cormen, Leiserson, Rivest and Stein, "Introduction to Algorithms", section 15.2; of equal costs the first split, as
    in NumPy.
    """
    count = len(extents) - 1
    cost = {(k, k): 0 for k in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + extents[i] * extents[k + 1] * extents[j + 1], k) for k in range(i, j)
            )
    return split


def _ordered_product(matrices: Sequence[Any]) -> Any:
    """The products from the shortest chain up; each pair is multiplied when both of its halves are there."""
    split = splits([*(a.shape[0] for a in matrices), matrices[-1].shape[1]])
    wanted = [(0, len(matrices) - 1)]
    for i, j in wanted:  # grows as it goes: a chain before its halves
        if i < j:
            wanted += [(i, split[i, j]), (split[i, j] + 1, j)]
    made: dict[tuple[int, int], Any] = {(k, k): a for k, a in enumerate(matrices)}
    for i, j in reversed(wanted):
        if i < j:
            made[i, j] = np.dot(made.pop((i, split[i, j])), made.pop((split[i, j] + 1, j)))
    return made[0, len(matrices) - 1]


@pb.composite(np.linalg.multi_dot, name="linalg.multi_dot")
def linalg_multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Any:
    """numpy.linalg.multi_dot: the first and the last may be vectors."""
    matrices = [as_array(a) for a in arrays]
    if len(matrices) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(matrices) == 2:
        return np.dot(*matrices)
    row, column = matrices[0].ndim == 1, matrices[-1].ndim == 1
    if row:
        matrices[0] = matrices[0][None, :]
    if column:
        matrices[-1] = matrices[-1][:, None]
    for k, a in enumerate(matrices):
        if a.ndim != 2:
            message = (
                f"multi_dot: array {k} has {a.ndim} axes; all must be matrices, but for the first and the last, "
                "which may be vectors"
            )
            raise np.linalg.LinAlgError(message)
    result = _ordered_product(matrices)
    return result[0, 0] if row and column else result.ravel() if row or column else result


CHAINS = (linalg_multi_dot,)
