import json
import sys
from pathlib import Path

import pytest

from pullback import BudgetError, PullbackError
from pullback.schedules import optimal_graph

ORACLE = json.loads((Path(__file__).parents[2] / "policies" / "oracles" / "dag.json").read_text("utf-8"))
SCIPY = "the program is solved by scipy.optimize, an optional extra"
NAMES = ("isz", "sz", "fc", "bc", "pi", "po", "si", "so")


def graph_of(instance):
    return {name: instance[name] for name in NAMES}


def rows_of(instance):
    for budget, _, expected, *_ in instance["rows"]:
        if expected < 0:
            with pytest.raises(BudgetError):
                optimal_graph(**graph_of(instance), max_bytes=budget, method="milp")
            continue
        found = optimal_graph(**graph_of(instance), max_bytes=budget, method="milp")
        assert found.cost == expected
        assert found.peak_bytes <= budget


@pytest.mark.parametrize("instance", [g for g in ORACLE["graphs"] if g["n"] < 6], ids=lambda g: f"{g['shape']}{g['n']}")
def test_every_row_of_the_oracle_in_order(instance):
    pytest.importorskip("scipy", reason=SCIPY)
    rows_of(instance)


@pytest.mark.slow
@pytest.mark.parametrize(
    "instance", [g for g in ORACLE["graphs"] if g["n"] >= 6], ids=lambda g: f"{g['shape']}{g['n']}"
)
def test_every_long_row_of_the_oracle_in_order(instance):
    pytest.importorskip("scipy", reason=SCIPY)
    rows_of(instance)


def test_without_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    instance = ORACLE["graphs"][-1]
    with pytest.raises(PullbackError, match="scipy is missing: install pullback"):
        optimal_graph(**graph_of(instance), max_bytes=instance["rows"][1][0], method="milp")
