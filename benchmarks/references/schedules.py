"""A revolve schedule as plain tuples, for the handwritten adjoint when no policy is at hand.

Source: Griewank and Walther, ACM TOMS 26 (2000) 19-45 (algorithm 799). The split is found by the dynamic programme
``E(n, s) = min_m m + E(n - m, s - 1) + E(m, s)``, slow and plain on purpose: it shares nothing with the library.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

Action = tuple[Any, ...]


@cache
def advances(n: int, snapshots: int) -> int:
    """Fewest non-recording steps that reverse ``n`` steps with ``snapshots`` slots, one of which holds the start."""
    if n == 1:
        return 0
    if snapshots == 1:
        return n * (n - 1) // 2
    return min(m + advances(n - m, snapshots - 1) + advances(m, snapshots) for m in range(1, n))


def binomial(n: int, snapshots: int) -> list[Action]:
    """The actions that reverse steps ``n - 1 .. 0``; ``n`` of a few hundred at most, for the dynamic programme's
    sake."""
    return [("Save", "state", 0), *_reverse(0, n, snapshots, live=True), ("EndReverse",)]


def _reverse(start: int, stop: int, snapshots: int, *, live: bool) -> Iterator[Action]:
    """Reverse ``start .. stop - 1``; the state at ``start`` is stored, and live as well where ``live`` says so.

    The recursion is as deep as the snapshots are nested, at most ``snapshots`` plus the repetitions.
    """
    while stop - start > 1:
        if not live:
            yield ("Load", "state", start)
        length = stop - start
        if snapshots == 1:
            split = length - 1
            yield ("Advance", start, stop - 1)
            yield from (("Record", stop - 1), ("Reverse", stop - 1))
        else:
            split = min(
                range(1, length), key=lambda m: m + advances(length - m, snapshots - 1) + advances(m, snapshots)
            )
            yield from (("Advance", start, start + split), ("Save", "state", start + split))
            yield from _reverse(start + split, stop, snapshots - 1, live=True)
        stop, live = start + split, False
    if not live:
        yield ("Load", "state", start)
    yield from (("Record", start), ("Reverse", start), ("Delete", "state", start))
