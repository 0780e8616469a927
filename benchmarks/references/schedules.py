"""A revolve schedule as plain tuples, for the handwritten adjoint when no policy is at hand, and the loop by which an
adjoint without buffers of its own follows a policy's schedule.

Source: Griewank and Walther, ACM TOMS 26 (2000) 19-45 (algorithm 799). The split is found by the dynamic programme
``E(n, s) = min_m m + E(n - m, s - 1) + E(m, s)``, slow and plain on purpose: it shares nothing with the library.
"""

from collections.abc import Callable, Iterable, Iterator
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


def prepared(actions: Iterable[Any]) -> list[Action]:
    """The actions of a policy's schedule that concern an adjoint without tiers, as tuples: what a person who writes a
    revolve by hand has as a table."""
    table: list[Action] = []
    for action in actions:
        name = type(action).__name__
        if name == "Advance":
            table.append((name, action.start, action.stop))
        elif name in ("Record", "Reverse") or getattr(action, "kind", "") == "state":
            table.append((name, action.step, 0))
    return table


def follow(
    table: Iterable[Action],
    n_steps: int,
    state: Any,
    advance: Callable[[int, int, Any], Any],
    kept_step: Callable[[int, Any], tuple[Any, Any]],
    seed: Callable[[Any], Any],
    step_adjoint: Callable[[int, Any, Any], Any],
) -> tuple[Any, Any]:
    """``(last state, cotangent of the first state)`` by the actions of a :func:`prepared` schedule.

    ``advance(start, stop, state)`` is the state after these steps, ``kept_step(k, state)`` the next one and what its
    reverse reads, ``seed(last state)`` the cotangent of the last state, ``step_adjoint(k, kept, cotangent)`` the
    cotangent one step earlier. States are kept by reference: a step makes a new one.
    """
    states: dict[int, Any] = {}
    tapes: dict[int, Any] = {}
    last = ct = None
    for name, first, stop in table:
        if name == "Advance":
            state = advance(first, stop, state)
        elif name == "Record":
            state, tapes[first] = kept_step(first, state)
            if first == n_steps - 1:
                last, ct = state, seed(state)
        elif name == "Reverse":
            ct = step_adjoint(first, tapes.pop(first), ct)
        elif name == "Save":
            states[first] = state
        elif name == "Load":
            state = states[first]
        elif name == "Delete":
            del states[first]
    return last, ct
