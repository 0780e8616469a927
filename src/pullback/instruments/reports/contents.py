"""What a report shows, measured: plain values, ready to be written into the page."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import define, field

from pullback.instruments.inspect.saved_table import Saved
from pullback.instruments.inspect.saved_values import saved
from pullback.instruments.planning.measured_curves import pareto
from pullback.instruments.profiling.profile_measurements import MeasuredProgram, NotedPolicy, make_program
from pullback.instruments.profiling.profile_runs import DEFAULT_POLICIES, profile
from pullback.instruments.profiling.profile_table import Profile
from pullback.instruments.profiling.seconds import timeline_of
from pullback.instruments.reports.sources import source_lines
from pullback.instruments.watching.parts import Tell, silent
from pullback.policies.base import MemoryPolicy
from pullback.policies.save_all import SaveAll
from pullback.transforms.derivatives.argnums import name_of
from pullback.words.errors import PullbackError
from pullback.words.specs import spec_of

LARGEST_PICTURE = 400_000
"""Characters of a schedule's picture; a larger one is left out, and the page says so."""
N_BUDGETS = 6
"""Numbers of bytes that the curve has beside the compared policies."""
MOST_ROWS = 60
"""Rows of the table of saved values; of more, those that are alike become one, and the page says so."""
SHOWN = (
    "policy snapshots n_forward recompute_factor predicted_bytes peak_bytes rss_bytes seconds cpu_seconds ratio "
    "taylor_rate dot_product_error same_bits"
).split()
"""What the page shows of a row of the profile."""
PARTS = "profile", "curve", "timelines", "saved", "sources"


@define(eq=False)
class Contents:
    """What is measured for a report, part by part. ``failed`` says which part an error ended, and its text."""

    name: str
    call: str
    parts: dict[str, Any] = field(factory=dict)
    failed: str = ""
    answer: list[str] = field(factory=list)
    """Which line holds the memory, and what it would cost not to hold it, in sentences; empty where that is not
    known."""

    def to_dict(self) -> dict[str, Any]:
        """All parts as plain values; those that were not reached are None."""
        given = {part: self.parts.get(part) for part in PARTS}
        return {"name": self.name, "call": self.call, "failed": self.failed, "answer": self.answer, **given}

    def note(self, part: str, error: Exception) -> None:
        """A part has failed; the others go on."""
        text = f"{part}: {type(error).__name__}: {error}"
        self.failed = f"{self.failed}; {text}" if self.failed else text


def contents_of(
    f: Callable[..., Any],
    *args: Any,
    policies: Sequence[MemoryPolicy] | None = None,
    argnums: Sequence[int] = (0,),
    repeat: int = 3,
    progress: Tell | None = None,
    **options: Any,
) -> tuple[Contents, Profile | None, Exception | None]:
    """The :class:`Contents` for ``f(*args)``, its profile, and the error that ended it early, if one did: then the
    parts before that are there.

    ``options`` are those of :func:`profile` that add columns.
    """
    compared = tuple(DEFAULT_POLICIES if policies is None else policies)
    program = make_program(f, args, tuple(argnums))
    found = Contents(name_of(f), ", ".join(_argument_text(arg) for arg in args))
    tell, errors = progress or silent, list[Exception]()
    try:
        measured = profile(
            f, *args, policies=compared, argnums=tuple(argnums), repeat=repeat, progress=progress, **options
        )
    except Exception as error:  # noqa: BLE001  the function is the user's; what came before is shown, and it is raised
        found.note("profile", error)
        found.parts["timelines"] = [_timeline(program, compared[0], whole=False)]
        with _part(found, "saved", []):
            _add_saved(found, program.as_far_as_it_goes, compared[0])
        return found, None, error
    found.answer = list(measured.answer)
    found.parts["profile"] = {
        "rows": [{name: getattr(row, name) for name in SHOWN} for row in measured.rows],
        "forward_seconds": measured.forward_seconds,
        "notes": measured.table().notes[: -len(measured.answer) or None],
    }
    served = [policy for policy in compared if repr(policy) in {row.policy for row in measured.rows}] or [*compared]
    n = len(served) + 3
    with _part(found, "curve", errors):
        tell("the curve of memory against time", 0, n)
        between = _between([row.peak_bytes for row in measured.rows])
        active = tuple(range(len(program.active)))
        budgets = pareto(program.call, *program.active, budgets=between, policies=(), argnums=active)
        found.parts["curve"] = budgets.to_dict()["points"]
    found.parts["timelines"] = []
    for k, policy in enumerate(served):
        with _part(found, f"timeline under {policy!r}", errors):
            tell(f"{policy!r}: timeline", 1 + k, n)
            found.parts["timelines"].append(_timeline(program, policy))
    with _part(found, "saved", errors):
        tell("the saved values", n - 2, n)
        _add_saved(found, program, next((policy for policy in served if isinstance(policy, SaveAll)), served[0]))
    tell("done", n, n)
    return found, measured, errors[0] if errors else None


def _add_saved(found: Contents, program: MeasuredProgram, policy: MemoryPolicy) -> None:
    """The table of saved values, and the source with their bytes."""
    table = saved(program.named, *program.active, policy=policy)
    found.parts["saved"], found.parts["sources"] = _saved(table, repr(policy)), source_lines(table)


@contextmanager
def _part(found: Contents, name: str, errors: list[Exception]) -> Iterator[None]:
    """An error within the block is noted as that of this part, and the next begins."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - as above
        found.note(name, error)
        errors.append(error)


def _between(peaks: Sequence[int]) -> list[int]:
    """Budgets from the least to the most that the compared policies hold, by equal factors. Still less is not asked
    for: the least that is feasible may take a hundred times as long."""
    most, least = max(peaks), min(peaks)
    least = max(1, least if least < most else most // 8)
    return sorted({round(least * (most / least) ** (k / (N_BUDGETS - 1))) for k in range(N_BUDGETS)})


def _argument_text(value: Any) -> str:
    """An array by its spec, a number by itself, a dict by what it holds."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_argument_text(each)}' for name, each in value.items())}}}"
    try:
        return str(spec_of(value)) if np.ndim(value) else repr(value)
    except (ValueError, TypeError):  # no array, and none that it could become
        return type(value).__name__


def _timeline(program: MeasuredProgram, policy: MemoryPolicy, *, whole: bool = True) -> dict[str, Any]:
    """What was held when, in a run of its own, and the schedule of the longest loop; not ``whole``, up to where the
    function fails."""
    observed = policy if isinstance(policy, SaveAll) else NotedPolicy(policy)
    line = timeline_of(program, observed, whole=whole)
    return {"policy": repr(policy), "peak": str(line), "picture": _picture(observed), **line.to_dict()}


def _picture(policy: MemoryPolicy) -> str:
    """The picture of the schedule of the longest loop; a sentence where there is none, or where it is too large."""
    if not isinstance(policy, NotedPolicy) or not policy.schedules:
        return "Every step is recorded, and reversed in turn: there is no schedule to draw."
    (_, state_bytes, tape_bytes), schedule = max(policy.schedules.items(), key=lambda pair: pair[1].n or 0)
    try:
        svg: str = schedule.policy.schedule(schedule.n, state_bytes=state_bytes, tape_bytes=tape_bytes).draw().svg
    except PullbackError as error:  # a length that became known too late
        return f"There is no picture of this schedule: {error}"
    if len(svg) > LARGEST_PICTURE:
        return (
            f"The picture of this schedule is left out: it has {len(svg):,} characters, more than {LARGEST_PICTURE:,}."
        )
    return svg


def _saved(table: Saved, under: str) -> dict[str, Any]:
    """The table, with the place of each row as it is shown, and in how many buffers it is; folded where it has too many
    rows."""
    shown = table.folded() if len(table) > MOST_ROWS else table
    found = shown.to_dict()
    rows = [
        row | {"where": each.where, "buffers": each.steps} for row, each in zip(found["rows"], shown.rows, strict=True)
    ]
    return {
        "total_bytes": table.total_bytes,
        "argument_bytes": table.argument_bytes,
        "policy": under,
        "rows": rows,
        "n_rows": len(table),
        "choices": [str(choice) for choice in table.choices],
    }
