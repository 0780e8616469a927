"""``coverage``: every name of the installed NumPy that dispatches, and what it means on tracers. The page
docs/coverage.md is its text."""

import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import numpy as np
from attrs import frozen
from numpy.testing.overrides import get_overridable_numpy_array_functions, get_overridable_numpy_ufuncs

from pullback.instruments.inspect.tables import Column, Table
from pullback.primitives.elementwise.zero_derivative import STRUCTURE
from pullback.primitives.selecting.put_and_place import FILLING
from pullback.primitives.shaping.creation import CREATED_BY_LIKE
from pullback.rules.catalogue import registry
from pullback.rules.declaration import Composite, Primitive
from pullback.tracing.dispatch import TAKEN_BY_LIKE

DIFFERENTIABLE, ZERO, STRUCTURAL = "differentiable", "zero derivative", "structure"
CREATION, WRITES, REFUSED, UNCLASSED = "creation", "writes", "refused", "unclassed"
MEANINGS = {
    DIFFERENTIABLE: "has a derivative, of every floating and complex argument that it depends on",
    ZERO: "derivative 0 wherever it exists: the result is NumPy's, plain",
    STRUCTURAL: "asks about shape, dtype or memory: the answer is NumPy's",
    CREATION: "with `like=` a tracer gives an array that may be filled with traced values; plain for integers and "
    "booleans",
    WRITES: "writes into its first argument, which must be traced where what is written is",
    REFUSED: "has no meaning for what carries a derivative: raises `UnknownFunctionError`",
}
LAZY_MODULES = (
    "numpy.fft",
    "numpy.polynomial",
    "numpy.char",
    "numpy.strings",
    "numpy.lib.recfunctions",
    "numpy.lib.scimath",
)
"""Modules whose functions NumPy lists only when they have been imported."""
MODULE_REASONS = {
    "numpy.strings": "text",
    "numpy.char": "text",
    "numpy.lib.recfunctions": "fields of structured arrays",
}
NAME_REASONS = {
    **dict.fromkeys(
        ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_count", "invert", "left_shift", "right_shift"), "bits"
    ),
    **dict.fromkeys(("packbits", "unpackbits"), "bits"),
    **dict.fromkeys(("gcd", "lcm"), "integers"),
    **dict.fromkeys(("isnat", "busday_count", "busday_offset", "datetime_as_string", "is_busday"), "dates"),
    **dict.fromkeys(("imag", "real"), "ufuncs without a public name: write np.real(x), np.imag(x)"),
    "polyvalnd": "new in NumPy 2.5: write polyval2d, or polyval along one axis after the other",
    **dict.fromkeys(("save", "savetxt", "savez", "savez_compressed"), "files: write pullback.value(x)"),
}
TEXT_UFUNCS = frozenset((
    *(
        "count", "endswith", "find", "index", "isalnum", "isalpha", "isdecimal", "isdigit", "islower", "isnumeric",
        "isspace",
    ),
    *("istitle", "isupper", "rfind", "rindex", "startswith", "str_len"),
))  # fmt: skip


@frozen
class CoveredName:
    """One name: where it is, what it means on tracers, and by what is registered for it, or why it is refused."""

    module: str
    name: str
    status: str
    by: str


@frozen
class Coverage:
    """The rows of the installed NumPy, sorted by module and name. ``str`` gives the counts."""

    numpy_version: str
    rows: tuple[CoveredName, ...]
    others: tuple[CoveredName, ...] = ()
    """Functions of other libraries that installed plugins serve."""

    def counts(self) -> dict[str, int]:
        """How many names have each status."""
        return {status: sum(row.status == status for row in self.rows) for status in (*MEANINGS, UNCLASSED)}

    def of(self, name: str) -> tuple[CoveredName, ...]:
        """The rows of a name, with or without its module: ``"fft"``, ``"np.sin"``, ``"numpy.linalg.norm"``."""
        endings = tuple({"." + name.removeprefix("np."), "." + name.removeprefix("numpy.")})
        return tuple(row for row in (*self.rows, *self.others) if f".{row.module}.{row.name}".endswith(endings))

    def nearest(self, name: str) -> str | None:
        """The name among these that one is most like; None where none is much like it."""
        last = name.rpartition(".")[2]
        return next(iter(get_close_matches(last, [row.name for row in (*self.rows, *self.others)], 1)), None)

    def __str__(self) -> str:
        counts = {status: n for status, n in self.counts().items() if n}
        columns = (
            Column("status", tuple(counts), text=True),
            Column("names", tuple(map(str, counts.values()))),
            Column(
                "meaning", tuple(MEANINGS.get(s, "nobody has said yet").replace("`", "") for s in counts), text=True
            ),
        )
        besides = f", and {len(self.others)} of other libraries by plugins" if self.others else ""
        return str(Table(f"The {len(self.rows)} names of NumPy {self.numpy_version} that dispatch{besides}", columns))

    def markdown(self) -> str:
        """The counts and all rows as tables of a document."""
        lines = [
            f"NumPy {self.numpy_version}: {len(self.rows)} names.",
            "",
            "| status | names | meaning |",
            "|---|---:|---|",
        ]
        lines += [f"| {status} | {n} | {MEANINGS.get(status, '')} |" for status, n in self.counts().items()]
        for module in dict.fromkeys(row.module for row in self.rows):
            lines += ["", f"### {module}", "", "| name | status | by |", "|---|---|---|"]
            lines += [f"| `{row.name}` | {row.status} | {row.by} |" for row in self.rows if row.module == module]
        return "\n".join(lines) + "\n"


def coverage() -> Coverage:
    """Every function and ufunc of the installed NumPy that dispatches, classed, plugins included; and what else these
    serve."""
    for module in LAZY_MODULES:
        import_module(module)
    registry.complete()
    ufuncs = [_row(f"{u.__name__}", "numpy (ufuncs)", u) for u in get_overridable_numpy_ufuncs()]
    functions = [_row(f.__name__, f.__module__ or "numpy", f) for f in get_overridable_numpy_array_functions()]
    rows = {(row.module, row.name): row for row in (*ufuncs, *functions)}  # variants for like= come twice
    listed = {*get_overridable_numpy_ufuncs(), *get_overridable_numpy_array_functions()}
    strangers = [f for f in registry.functions if f not in listed and not isinstance(_owner(f), np.ufunc)]
    others = sorted((_row(f.__name__, _public_module(f), f) for f in strangers), key=lambda row: (row.module, row.name))
    return Coverage(np.__version__, tuple(rows[key] for key in sorted(rows)), tuple(others))


def _owner(function: Callable[..., Any]) -> Any:
    """The ufunc of which a function is a method, such as ``np.add.reduce``."""
    return getattr(function, "__self__", None)


def _public_module(function: Callable[..., Any]) -> str:
    """The shortest name of an imported module that holds the function under its name: a ufunc does not say its own."""
    name = function.__name__
    holders = [m for m, module in list(sys.modules.items()) if getattr(module, "__dict__", {}).get(name) is function]
    own = str(getattr(function, "__module__", None) or "")
    return min((m for m in holders if "._" not in m), key=len, default=own)


def _row(name: str, module: str, function: Callable[..., Any]) -> CoveredName:
    status, by = _status(name, module, function)
    return CoveredName(module, name, status, by)


def _status(name: str, module: str, function: Callable[..., Any]) -> tuple[str, str]:
    declared = registry.functions.get(function)
    if declared is not None:
        by = f"`{_home(declared)}`" if _home(declared) else ""
        if any(function in kept.serves for kept in STRUCTURE):
            return STRUCTURAL, by
        if function is np.copyto or any(function in kept.serves for kept in FILLING):
            return WRITES, by
        return (ZERO if isinstance(declared, Composite) and declared.plain else DIFFERENTIABLE), by
    if _among(function, name, TAKEN_BY_LIKE):
        return DIFFERENTIABLE, "`like=` a tracer; contents may be traced"
    if _among(function, name, CREATED_BY_LIKE):
        return CREATION, "`like=`"
    reason = (
        MODULE_REASONS.get(module)
        or NAME_REASONS.get(name)
        or ("text" if name in TEXT_UFUNCS or name.startswith("_") else "")
    )
    return (REFUSED, reason) if reason else (UNCLASSED, "")


def _among(function: Callable[..., Any], name: str, functions: Iterable[Callable[..., Any]]) -> bool:
    """Whether the function, or the public one that it is the ``like=`` variant of, is among those."""
    return any(function is other or (name == other.__name__ and hasattr(np, name)) for other in functions)


def _home(declared: Primitive | Composite) -> str:
    """Where it is declared: the file of ours, ``primitives/reducing/scans.py``, or another package's module."""
    if isinstance(declared, Composite):
        modules = [declared.function.__module__]
    else:
        modules = [rule.fn.__module__ for rules in declared.rules.values() for rule in rules]
    home = next((m for m in modules if m and not m.startswith("numpy")), "")
    if home == "pullback.rules.declaration":  # what zero_derivative makes
        home = "pullback.primitives.elementwise.zero_derivative"
    inner = home.removeprefix("pullback.")
    return home if inner == home else inner.replace(".", "/") + ".py"
