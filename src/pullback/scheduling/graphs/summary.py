"""What schedules of chains and of graphs share: their numbers as tuples, and the small table as which they print."""

from collections.abc import Iterable
from typing import Any


def numbers(values: Iterable[float]) -> tuple[Any, ...]:
    """Bytes or costs, as a tuple."""
    return tuple(values)


def summary(schedule: Any, whole: Any, parts: str, part: str) -> str:
    """Cost, forward runs and peak of a schedule of ``whole``, which has ``n`` parts."""
    return "\n".join([
        f"schedule of a {parts} within {schedule.max_bytes:,} bytes",
        f"  cost        {schedule.cost:g}  ({schedule.cost / (whole.least_cost or 1):.2f} of save-all)",
        f"  n_forward   {schedule.n_forward}  ({schedule.n_forward / whole.n:.2f} {part})",
        f"  peak_bytes  {schedule.peak_bytes:,}",
        f"  exact       {schedule.exact}",
    ])
