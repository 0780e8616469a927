"""How a schedule of a chain or a graph prints: a small table."""

from typing import Any


def summary(schedule: Any, whole: Any, parts: str, part: str) -> str:
    """Cost, forward runs and peak of a schedule of ``whole``, which has ``n`` parts."""
    return "\n".join([
        f"schedule of a {parts} within {schedule.max_bytes:,} bytes",
        f"  cost        {schedule.cost:g}  ({schedule.cost / (whole.least_cost or 1):.2f} of save-all)",
        f"  n_forward   {schedule.n_forward}  ({schedule.n_forward / whole.n:.2f} {part})",
        f"  peak_bytes  {schedule.peak_bytes:,}",
        f"  exact       {schedule.exact}",
    ])
