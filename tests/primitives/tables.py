"""Every table of cases, in one place; each stands beside the tests of its room, in ``<room>/cases_*.py``."""

from importlib import import_module
from pathlib import Path

from tests.primitives.case import Case

_FILES = sorted(Path(__file__).parent.glob("*/cases_*.py"))

TABLES: dict[str, tuple[Case, ...]] = {
    f"{path.parent.name}.{path.stem}": import_module(f"tests.primitives.{path.parent.name}.{path.stem}").CASES
    for path in _FILES
}
"""The name of a table, ``shaping.cases_padding``, to its cases."""

CASES: tuple[Case, ...] = tuple(case for table in TABLES.values() for case in table)
