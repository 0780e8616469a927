"""What the parts share: the ways to stage that exist here, rows, and the check of a reference."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

import numpy as np
from harness import Comparison, Row, compare

import pullback as pb

Call = Callable[[], Any]
Ways = Mapping[str, Mapping[str, Any]]
"""Names of candidates, and the keywords that a loop function takes for each."""

US = "pullback"
NOT_BUILT = "not built"
TOLERANCE = 1e-12


def accepts(function: Callable[..., Any], keyword: str) -> bool:
    """Whether the function has a parameter of this name."""
    return keyword in inspect.signature(function).parameters


def installed(module: str) -> str:
    """Nothing where the module is there, else the note of a row that needs it."""
    return "" if find_spec(module) else f"{module} is not installed"


def backend_missing(name: str) -> str:
    """Nothing where loops can be staged by this backend, else the note that says why not."""
    if not accepts(pb.fori_loop, "staging"):
        return NOT_BUILT
    if not entry_points(group="pullback.backends", name=name):
        return f"pullback-{name} is not installed"
    return installed(name)


def by_default() -> Ways:
    """The default, and beside it steps that are recorded, where the two can be told apart."""
    recorded = {f"{US}, staging off": {"staging": "off"}} if accepts(pb.fori_loop, "staging") else {}
    return {US: {}, **recorded}


def staged(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function under ``@pb.staged``, None where that is not built."""
    decorator = getattr(pb, "staged", None)
    return None if decorator is None else decorator(function)


def row(
    work: str, candidate: str, us: float | None = None, x: float | None = None, over: str = "", note: str = ""
) -> Row:
    """One row, with the columns that all rows have."""
    return {"work": work, "candidate": candidate, "us": us, "x": x, "over": over, "note": note}


def rows_of(work: str, timed: Comparison, *, operations: int = 1, notes: Mapping[str, str] | None = None) -> list[Row]:
    """A row for each candidate of a comparison, over its baseline."""
    told = notes or {}
    return [
        row(work, r.name, r.seconds / operations * 1e6, timed.ratio(r.name), timed.baseline, told.get(r.name, ""))
        for r in timed
    ]


def compared(
    work: str, candidates: Mapping[str, Call], rounds: int, *, operations: int = 1, **options: Any
) -> list[Row]:
    """The candidates timed over the first of them, after each result was compared with its: the note says how well the
    two agree."""
    names = list(candidates)
    expected = candidates[names[0]]()
    notes = {name: agreement(f"{work}: {name}", candidates[name](), expected) for name in names[1:]}
    return rows_of(work, compare(candidates, rounds=rounds, **options), operations=operations, notes=notes)


def agreement(what: str, got: Any, expected: Any, tolerance: float = TOLERANCE) -> str:
    """How well two results agree: "same bits", or their greatest difference over the greatest element of its array.

    ``AssertionError`` where that is above the tolerance, times the ratio of their precision to float64's.
    """
    furthest = 0.0
    pairs = list(zip(leaves(got), leaves(expected), strict=True))
    if all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs):
        return "same bits"
    for a, b in pairs:
        eps = np.finfo(np.result_type(a, b)).eps / np.finfo(np.float64).eps
        difference = float(np.max(np.abs(a - b))) / max(float(np.max(np.abs(b))), np.finfo(np.float64).tiny)
        furthest = max(furthest, difference)
        assert difference <= tolerance * eps, f"{what} is off by {difference:.2g} of the greatest element"
    return f"to {furthest:.0e}"


def leaves(result: Any) -> Sequence[Any]:
    """The arrays of a result: a number, an array, or tuples and lists of them."""
    if isinstance(result, tuple | list):
        return [leaf for part in result for leaf in leaves(part)]
    return [np.asarray(result)]
