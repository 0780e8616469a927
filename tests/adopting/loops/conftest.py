"""What the tests of loops of adopted code share."""

from itertools import count

import pytest

import pullback as pb
from pullback.adopting.loops import loop_runs
from pullback.adopting.modules import python_builtins

FILES = count()


@pytest.fixture
def ran(monkeypatch):
    """The lines of the loops that were asked, each with whether it ran as a whole."""
    seen = []

    def run(code, *given):
        out = loop_runs.run_loop(code, *given)
        seen.append((code.node.lineno, out is not None))
        return out

    monkeypatch.setattr(python_builtins, "run_loop", run)
    return seen


@pytest.fixture(autouse=True)
def short_loops_too(monkeypatch):
    """Drawn loops are short; in steps that can be staged these would run as they stand."""
    monkeypatch.setattr(loop_runs, "FEW", 1)


@pytest.fixture
def adopted(tmp_path):
    """What adopts a text as a module of its own."""

    def adopt(text):
        path = tmp_path / f"loops_{next(FILES)}.py"
        path.write_text(text)
        return pb.adopt(path)

    return adopt
