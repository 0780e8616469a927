"""``Pareto``: what each policy holds and takes; its table, its picture, and the best point within a number of bytes."""

from pathlib import Path
from typing import Any

from attrs import frozen

from pullback.instruments.inspect.tables import Column, Table
from pullback.instruments.planning.advice import seconds_of_plan
from pullback.instruments.profiling.plan_forecast import Plan
from pullback.memory.ledger import mib
from pullback.policies.base import MemoryPolicy
from pullback.words.byte_sizes import as_bytes
from pullback.words.errors import BudgetError
from pullback.words.optional_libraries import optional_library

MEBI = 2.0**20


@frozen
class Point:
    """One policy: what ``plan`` predicts and what a run has shown. ``repr(point.policy)`` is the expression that makes
    it again."""

    policy: MemoryPolicy
    predicted_bytes: int
    peak_bytes: int
    """Bytes at the peak, as the run's ledger counted it."""
    n_forward: int
    predicted_seconds: float | None
    seconds: float
    """Seconds of a run, forward and reverse."""


@frozen(repr=False)
class Pareto:
    """The points of ``pareto``, those that hold least first. Prints as a table; a star marks what nothing beats in
    both bytes and seconds."""

    name: str
    points: tuple[Point, ...]
    forward_seconds: float
    """Seconds of one run on plain arrays."""
    breakpoints: tuple[Plan, ...] = ()
    """What is predicted for each number of bytes at which ``Budget`` runs fewer steps again, those that hold least
    first; of marked steps the bytes are those of the budget, which are not exceeded. Empty for other programs that
    must be run to be planned, and where budgets are named."""
    complete: bool = True
    """Whether these are all; else ``pareto(..., seconds=None)`` looks on."""

    @property
    def frontier(self) -> tuple[Point, ...]:
        """The points that no other beats in both."""
        found: list[Point] = []
        for point in self.points:
            if not found or point.seconds < found[-1].seconds:
                found.append(point)
        return tuple(found)

    def best(self, budget: int | str) -> Point:
        """The fastest point that holds at most so many bytes (``"100 MB"``); raises :class:`BudgetError` where none
        does."""
        most = as_bytes(budget, "budget")
        fitting = [point for point in self.points if point.peak_bytes <= most]
        if not fitting:
            least = min(point.peak_bytes for point in self.points)
            raise BudgetError(
                f"no policy of this curve holds {most:,} bytes or less; the least is {least:,}. Allow that, or try "
                "others: pareto(..., policies=[...])",
                least,
            )
        return min(fitting, key=lambda point: point.seconds)

    def plot(self, path: str | Path | None = None) -> Any:
        """A matplotlib figure: bytes across, seconds upwards; circles are measured, crosses predicted. Written to
        ``path`` where one is given. Needs the extra ``plot``."""
        figure = optional_library("matplotlib.figure", "pictures are drawn with matplotlib").Figure(
            figsize=(6.4, 4.2), layout="constrained"
        )
        axes = figure.subplots()
        axes.step(
            *zip(*((p.peak_bytes / MEBI, p.seconds) for p in self.frontier), strict=True), where="post", alpha=0.5
        )
        axes.scatter(*zip(*((p.peak_bytes / MEBI, p.seconds) for p in self.points), strict=True), label="measured")
        if self.breakpoints:
            corners = [(p.peak_bytes / MEBI, seconds_of_plan(p)) for p in self.breakpoints]
            axes.step(
                *zip(*corners, strict=True), where="post", linewidth=1, color="0.6", label="every budget, predicted"
            )
        told = [(p.predicted_bytes / MEBI, p.predicted_seconds) for p in self.points if p.predicted_seconds is not None]
        if told:
            axes.scatter(*zip(*told, strict=True), marker="x", label="predicted")
        for point in self.frontier:
            axes.annotate(
                repr(point.policy), (point.peak_bytes / MEBI, point.seconds), xytext=(5, 5),
                textcoords="offset points", fontsize=8,
            )  # fmt: skip
        axes.axhline(self.forward_seconds, linestyle="--", linewidth=1, color="0.5", label="one plain run")
        axes.set(xscale="log", xlabel="peak bytes held (MiB)", ylabel="seconds", ylim=(0, None))
        axes.set_title(f"gradient of {self.name}: memory against time", fontsize=10.5)
        axes.legend(fontsize=8)
        if path is not None:
            figure.savefig(path, dpi=130)
        return figure

    def to_dict(self) -> dict[str, Any]:
        """Everything in it as plain values, ready for ``json.dump``."""
        names = ("predicted_bytes", "peak_bytes", "n_forward", "predicted_seconds", "seconds")
        points = [{"policy": repr(p.policy)} | {name: getattr(p, name) for name in names} for p in self.points]
        corners = [
            {
                "policy": repr(plan.policy),
                "peak_bytes": plan.peak_bytes,
                "n_forward": plan.n_forward,
                "seconds": plan.seconds,
            }
            for plan in self.breakpoints
        ]
        return {
            "name": self.name,
            "forward_seconds": self.forward_seconds,
            "points": points,
            "breakpoints": corners,
        } | {"complete": self.complete}

    def table(self) -> Table:
        """One row a point."""
        best = {id(point) for point in self.frontier}
        cells: dict[str, list[str]] = {
            "": ["*" if id(p) in best else "" for p in self.points],
            "policy": [repr(p.policy) for p in self.points],
            "predicted|bytes": [mib(p.predicted_bytes) for p in self.points],
            "measured|bytes": [mib(p.peak_bytes) for p in self.points],
            "forward|steps": [str(p.n_forward) for p in self.points],
            "predicted|seconds": [
                "-" if p.predicted_seconds is None else f"{p.predicted_seconds:.3g}" for p in self.points
            ],
            "measured|seconds": [f"{p.seconds:.3g}" for p in self.points],
            "x plain|forward": [f"{p.seconds / self.forward_seconds:.1f}" for p in self.points],
        }
        columns = tuple(Column(title, tuple(column), text=title in ("", "policy")) for title, column in cells.items())
        more = "" if self.complete else ", and there are more between them: pareto(..., seconds=None) finds all"
        notes = [f"{len(self.breakpoints)} breakpoints of Budget are predicted: see .breakpoints{more}"]
        title = f"gradient of {self.name}: memory against time (* is beaten by none in both)"
        return Table(title, columns, tuple(notes) if self.breakpoints else ())

    def _repr_html_(self) -> str:
        return self.table().html()

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        return str(self)
