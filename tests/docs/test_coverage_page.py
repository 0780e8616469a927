"""docs/coverage.md: every dispatched name of the installed NumPy is classed, and the page says what the registry says.

After a change of what is served, or with a new NumPy: ``python -m tests.docs.test_coverage_page`` writes the tables
again.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from pullback.instruments.inspect.coverage import DIFFERENTIABLE, MEANINGS, UNCLASSED, ZERO, coverage

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coverage.md"
BEGIN, END = "<!-- written by tests/docs/test_coverage_page.py -->\n", "<!-- end -->\n"
WHAT_TO_DO = (
    "declare it in src/pullback/primitives or in a plugin, or class it in src/pullback/instruments/inspect/coverage.py"
)


def parts(text):
    """The page before the tables, the tables, and what follows."""
    before, rest = text.split(BEGIN)
    tables, after = rest.split(END)
    return before + BEGIN, tables, END + after


def write():
    """Write the tables of the installed NumPy into the page."""
    before, _, after = parts(PAGE.read_text("utf-8"))
    PAGE.write_text(before + coverage().markdown() + after, "utf-8")


@pytest.fixture(scope="module")
def found():
    return coverage()


def test_every_name_of_numpy_is_classed(found):
    names = [f"{row.module}.{row.name}" for row in found.rows if row.status == UNCLASSED]
    assert not names, (
        f"NumPy {np.__version__} dispatches names that nobody has classed: {', '.join(names)}; {WHAT_TO_DO}"
    )


def test_the_page_says_what_the_registry_says(found):
    _, tables, _ = parts(PAGE.read_text("utf-8"))
    if f"NumPy {np.__version__}:" in tables:
        assert tables == found.markdown(), "docs/coverage.md is out of date: python -m tests.docs.test_coverage_page"
        return
    listed = set(
        re.findall(r"^\| `(\w+)` \|", tables, re.MULTILINE)
    )  # another NumPy than the page's: its names are a subset, or new
    new = {row.name for row in found.rows} - listed
    assert all(row.status != UNCLASSED for row in found.rows if row.name in new)


def test_names_are_found_with_and_without_their_module(found):
    assert [row.status for row in found.of("np.sort")] == [DIFFERENTIABLE]
    assert [row.module for row in found.of("numpy.linalg.norm")] == ["numpy.linalg"]
    assert found.of("np.linalg.norm") == found.of("linalg.norm") == found.of("numpy.linalg.norm")
    assert {row.status for row in found.of("argmax")} == {ZERO}
    assert not found.of("no_such_name")


def test_the_counts_add_up(found):
    counts = found.counts()
    assert sum(counts.values()) == len(found.rows)
    assert set(counts) == {*MEANINGS, UNCLASSED}
    assert str(found).startswith(f"The {len(found.rows)} names of NumPy {np.__version__}")


if __name__ == "__main__":
    write()
