"""Results in operands that die: smaller arrays are large in the tests of these."""

import pytest
from tests.tracing.dying_operands import LARGE, Watched

from pullback.tracing import results_into_operands
from pullback.words import specs


@pytest.fixture
def sooner(monkeypatch):
    """Smaller arrays are taken over, too."""
    before = dict(specs._SPECS)
    specs._SPECS.clear()
    monkeypatch.setattr(specs, "LARGE", LARGE)
    yield
    specs._SPECS.clear()
    specs._SPECS.update(before)


@pytest.fixture
def computed(monkeypatch):
    """The names of the ufuncs that were computed into their operand."""
    seen = []
    named = results_into_operands._named

    def watched(path, names):
        found = named(path, names)
        seen.append(path)
        return found

    monkeypatch.setattr(results_into_operands, "_named", watched)
    return seen


@pytest.fixture
def taken(monkeypatch):
    """The operators that were computed into an operand, in the order of the program."""
    seen = []
    monkeypatch.setattr(results_into_operands, "_UFUNCS", Watched(results_into_operands._UFUNCS, seen))
    return seen
