"""The tree by which terms are added up: it depends on how many there are, and on nothing else."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from pullback.words.errors import PullbackError

T = TypeVar("T")


def tree_sum(nodes: Iterable[T], add: Callable[[T, T], T]) -> T:
    """The sum of ``nodes`` in a fixed pairwise tree, where ``add(left, right)`` makes the sum of two.

    Neighbours are added as soon as both are there: two nodes, two pairs, two fours; at the end what is left, the
    smallest first. So the bits depend on the order and the number of the nodes alone, at most ``log2(n) + 1`` sums are
    held at once, and every 2, 4, 8 ... neighbours whose first number is a multiple of that are a subtree: their sum may
    be made elsewhere. The error grows with log2(n), where that of a running sum grows with n (Higham, SIAM J. Sci.
    Comput. 14 (1993) 783-799). Nodes may be anything: values, futures, names of tasks. Raises :class:`PullbackError`
    where there are none.

    >>> tree_sum("abcdefg", lambda left, right: f"({left}{right})")
    '(((ab)(cd))((ef)g))'
    """
    sums: list[T] = []
    for n, node in enumerate(nodes, 1):
        sums.append(node)
        del node  # the caller's own, which it may let go
        for _ in range((n & -n).bit_length() - 1):  # as many as n has zeros at its end
            _join(sums, add)
    if not sums:
        raise PullbackError("there are no items, and so no sum: give at least one")
    while len(sums) > 1:
        _join(sums, add)
    return sums.pop()


def _join(sums: list[T], add: Callable[[T, T], T]) -> None:
    right = sums.pop()
    sums.append(add(sums.pop(), right))
