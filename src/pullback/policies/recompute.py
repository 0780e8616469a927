"""Recompute by segments: snapshots at equal distances, the tapes of one whole segment at a time.

Source: T. Chen et al., "Training deep nets with sublinear memory cost", arXiv:1604.06174, section 4.1.
"""

from collections.abc import Callable, Iterator

from attrs import field, frozen

from pullback.policies.actions import Action, Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save
from pullback.policies.base import MemoryPolicy, Schedule, whole_number
from pullback.policies.binomial_split import best_segments
from pullback.policies.save_all import Tapes
from pullback.words.errors import PolicyError

_REMEDY = 'Pass the number of segments, at least 1, or "sqrt"'


def _as_segments(value: object) -> int | str:
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

    Length unknown: snapshots at multiples of a period, at first 1. When the slots are full and another is due, every
    second snapshot is deleted and the period doubles. The slots are ``segments``, or for ``"sqrt"`` 2 period tape_bytes
    / state_bytes (sizes unknown: 2 period), so that between k = q and k = 2 q segments of q steps balance the tapes of
    one.
    """

    segments: int | str = field(default="sqrt", converter=_as_segments)

    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> Schedule:
        """Actions for ``n`` steps; :meth:`~pullback.policies.base.MemoryPolicy.schedule` checks ``n``."""
        held: list[int] = []
        if n is None:
            sweep = _sweep_unknown(held, _slots(self.segments, state_bytes, tape_bytes))
            return Schedule(sweep, n, policy=self, finish=lambda end: _finish_unknown(held, end))
        segments = best_segments(n, state_bytes, tape_bytes) if isinstance(self.segments, str) else self.segments
        tapes = Tapes(first=n, stop=n)  # none yet
        known = _known(n, max(1, min(segments, n)), held, tapes)
        return Schedule(known, n, policy=self, finish=lambda end: _finish_known(held, tapes, end))


def _known(n: int, segments: int, held: list[int], tapes: Tapes) -> Iterator[Action]:
    """The whole schedule; ``held`` and ``tapes`` say at each yield what is stored."""
    start = 0
    for j in range(1, segments):
        stop = j * n // segments
        held.append(start)
        yield Save("state", start)
        yield Advance(start, stop)
        start = stop
    yield from tapes.record(start, n)
    yield EndForward()
    yield from tapes.reverse(n)
    yield from _reverse_segments(held, start)
    yield EndReverse()


def _finish_known(held: list[int], tapes: Tapes, n: int) -> Iterator[Action]:
    """The loop was left at n: in the recorded segment, or before it."""
    yield EndForward()
    yield from tapes.reverse(n)
    yield from _reverse_segments(held, min(n, tapes.first))
    yield EndReverse()


def _reverse_segments(held: list[int], r: int) -> Iterator[Action]:
    """Reverse steps r-1 .. 0, recording each segment whole from its snapshot, which is deleted as soon as it is
    live."""
    while held:
        start = held.pop()
        if start < r:
            yield Load("state", start)
        yield Delete("state", start)
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


def _sweep_unknown(held: list[int], slots: Callable[[int], int]) -> Iterator[Action]:
    """Never ends. x_k is judged after step k has run: it is still in WORK, and the loop is known to go on."""
    k, period = 0, 1
    while True:
        yield Advance(k, k + 1)
        while k % period == 0 and len(held) >= slots(period):
            for dropped in held[1::2]:
                held.remove(dropped)
                yield Delete("state", dropped)
            period *= 2
        if k % period == 0:
            held.append(k)
            yield Save("state", k)
        k += 1


def _finish_unknown(held: list[int], n: int) -> Iterator[Action]:
    """Step n-1 is recorded from the lookback state; the rest by segments."""
    if n > 0:
        yield Record(n - 1)
    yield EndForward()
    if n > 0:
        yield Reverse(n - 1)
    yield from _reverse_segments(held, n - 1)
    yield EndReverse()
