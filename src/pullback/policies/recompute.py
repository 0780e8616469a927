"""Recompute by segments: snapshots at equal distances, the tapes of one whole segment at a time.

Source: T. Chen et al., "Training deep nets with sublinear memory cost", arXiv:1604.06174, section 4.1.
"""

from collections.abc import Callable, Iterator
from math import isqrt

from attrs import field, frozen

from pullback.policies.base import MemoryPolicy
from pullback.scheduling.machine.actions import (
    MEMORY,
    Action,
    Advance,
    Delete,
    EndForward,
    EndReverse,
    Load,
    Record,
    Reverse,
    Save,
)
from pullback.scheduling.machine.schedule import Schedule, whole_number
from pullback.scheduling.machine.tapes_first import Tapes
from pullback.words.errors import PolicyError

_REMEDY = 'Pass the number of segments, at least 1, or "sqrt"'


def _as_segments(value: int | str) -> int | str:
    if isinstance(value, str):
        if value != "sqrt":
            raise PolicyError(f"segments must be a whole number or 'sqrt', got {value!r}. {_REMEDY}.")
        return value
    return whole_number(value, "segments", 1, _REMEDY)


@frozen(repr=False)
class Recompute(MemoryPolicy):
    """2n - q forward steps with k - 1 snapshots and the tapes of one segment of q = ceil(n / k) steps.

    ``segments`` is k (clipped to n), or ``"sqrt"``: k ~ sqrt(n), or where the sizes are known the k of fewest bytes,
    which makes segments of about sqrt(n state_bytes / tape_bytes) steps. Segment j is steps j n // k .. (j+1) n // k -
    1; the last one, none longer, is recorded in the sweep.

    Length unknown: snapshots at multiples of a period, at first 1. When the slots are full and another snapshot is due,
    every second one is deleted and the period doubles. The slots are ``segments``, or for ``"sqrt"`` 2 period
    tape_bytes / state_bytes (sizes unknown: 2 period). So there are q to 2 q segments of q steps, whose snapshots
    balance the tapes of one segment.

    Parameters
    ----------
    segments
        How many segments there are, or ``"sqrt"``.

    Raises
    ------
    PolicyError
        Where ``segments`` is neither ``"sqrt"`` nor an integer of at least 1.

    Example
    -------
    >>> from pullback.schedules import simulate
    >>> simulate(Recompute().schedule(100), 100).n_forward
    190
    """

    needs_sizes = False
    counts_states = True

    segments: int | str = field(default="sqrt", converter=_as_segments)

    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> Schedule:
        """Actions for ``n`` steps; :meth:`~pullback.policies.base.MemoryPolicy.schedule` checks ``n``."""
        snapshots: list[int] = []
        if n is None:
            sweep = _sweep_unknown(snapshots, _slots(self.segments, state_bytes, tape_bytes))
            return Schedule(sweep, n, policy=self, finish=lambda end: finish_advanced(snapshots, end))
        segments = best_segments(n, state_bytes, tape_bytes) if isinstance(self.segments, str) else self.segments
        tapes = Tapes(first=n, stop=n)  # none yet
        known = _known(n, max(1, min(segments, n)), snapshots, tapes)
        return Schedule(known, n, policy=self, finish=lambda end: finish_recorded(snapshots, tapes, end))


def best_segments(n: int, state_bytes: int = 0, tape_bytes: int = 0) -> int:
    """The number of equal segments, 1 .. max(1, n), that holds the fewest bytes; their length is about
    sqrt(n state_bytes / tape_bytes) (Chen et al., section 4.1).

    k segments hold k-1 snapshots and the tapes of one segment. Where a size is unknown (0) both count as equal.
    """
    if n <= 1:
        return 1
    state, tape = (state_bytes, tape_bytes) if state_bytes > 0 and tape_bytes > 0 else (1, 1)
    q = min(max(isqrt(n * state // tape), 1), n)
    counts = {-(-n // length) for length in (q, min(q + 1, n))}
    return min(sorted(counts), key=lambda k: (k - 1) * state + -(-n // k) * tape)


def _known(n: int, segments: int, snapshots: list[int], tapes: Tapes) -> Iterator[Action]:
    """The whole schedule; ``snapshots`` and ``tapes`` say at each yield what is stored."""
    start = 0
    for j in range(1, segments):
        stop = j * n // segments
        snapshots.append(start)
        yield Save("state", start)
        yield Advance(start, stop)
        start = stop
    yield from tapes.record(start, n)
    yield from finish_recorded(snapshots, tapes, n)


def finish_recorded(snapshots: list[int], tapes: Tapes, n: int, tier: str = MEMORY) -> Iterator[Action]:
    """Reverse n steps; the loop may have been left before its end, in the recorded segment or before it."""
    yield EndForward()
    yield from tapes.reverse(n)
    yield from reverse_segments(snapshots, min(n, tapes.first), tier)
    yield EndReverse()


def reverse_segments(snapshots: list[int], r: int, tier: str) -> Iterator[Action]:
    """Reverse steps r-1 .. 0, recording each segment whole from its snapshot, which is deleted as soon as it is
    live."""
    while snapshots:
        start = snapshots.pop()
        if start < r:
            yield Load("state", start, tier)
        yield Delete("state", start, tier)
        if start < r:
            tapes = Tapes()
            yield from tapes.record(start, r)
            yield from tapes.reverse(r)
            r = start


def _slots(segments: int | str, state_bytes: int, tape_bytes: int) -> Callable[[int], int]:
    """Period -> the most snapshots to hold."""
    if not isinstance(segments, str):
        return lambda _period: segments
    if state_bytes > 0 and tape_bytes > 0:
        return lambda period: max(1, 2 * period * tape_bytes // state_bytes)
    return lambda period: 2 * period


def _sweep_unknown(snapshots: list[int], slots: Callable[[int], int]) -> Iterator[Action]:
    """Never ends. x_k is judged after step k has run: it is still in WORK, and the loop is known to go on."""
    k, period = 0, 1
    while True:
        yield Advance(k, k + 1)
        while k % period == 0 and len(snapshots) >= slots(period):
            for dropped in snapshots[1::2]:
                snapshots.remove(dropped)
                yield Delete("state", dropped)
            period *= 2
        if k % period == 0:
            snapshots.append(k)
            yield Save("state", k)
        k += 1


def finish_advanced(snapshots: list[int], n: int, tier: str = MEMORY) -> Iterator[Action]:
    """Step n-1 is recorded from the lookback state; the rest by segments."""
    if n > 0:
        yield Record(n - 1)
    yield EndForward()
    if n > 0:
        yield Reverse(n - 1)
    yield from reverse_segments(snapshots, n - 1, tier)
    yield EndReverse()
