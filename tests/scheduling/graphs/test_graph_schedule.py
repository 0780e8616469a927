import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback import BudgetError, PolicyError
from pullback.schedules import optimal_graph
from pullback.scheduling.graphs.graph_machine import GraphMachine, Operations
from pullback.scheduling.graphs.graph_schedule import save_all_of

ORACLE = json.loads((Path(__file__).parents[2] / "policies" / "oracles" / "dag.json").read_text("utf-8"))
NAMES = ("isz", "sz", "fc", "bc", "pi", "po", "si", "so")


def graph_of(instance):
    return {name: instance[name] for name in NAMES}


@pytest.mark.parametrize("instance", ORACLE["graphs"], ids=lambda g: f"{g['shape']}{g['n']}")
def test_every_row_of_the_oracle(instance):
    for budget, expected, *_ in instance["rows"]:
        if expected < 0:
            with pytest.raises(BudgetError) as caught:
                optimal_graph(**graph_of(instance), max_bytes=budget)
            assert caught.value.minimum_bytes == instance["min_budget"]
            continue
        for method in ("auto", "exact"):
            found = optimal_graph(**graph_of(instance), max_bytes=budget, method=method)
            assert found.exact
            assert found.cost == expected
            assert found.peak_bytes <= budget
    assert optimal_graph(**graph_of(instance), max_bytes=instance["free_budget"]).cost == instance["free_cost"]


def test_blocks_stay_near_the_optimum():
    ratios, missed, feasible, against_chain = [], 0, 0, []
    for instance in ORACLE["graphs"]:
        for budget, expected, _, chain, _ in instance["rows"]:
            if expected < 0:
                continue
            feasible += 1
            found, least = by_blocks(graph_of(instance), budget)
            if found is None:
                missed += 1
                assert least > budget
                continue
            assert found.peak_bytes <= budget
            ratios.append(found.cost / expected)
            against_chain += [found.cost / chain] * (chain > 0)
    assert sum(ratios) / len(ratios) <= 1.005
    assert max(ratios) <= 1.11
    assert missed <= 0.2 * feasible
    assert sum(against_chain) / len(against_chain) <= 0.97  # the chain column of the oracle


def drawn(n, seed):
    """A graph whose operations read the one before and now and then another."""
    rng = np.random.default_rng(seed)
    po = [[], *(sorted({v - 1, int(rng.integers(v))} if rng.random() < 0.3 else {v - 1}) for v in range(1, n))]
    so = [sorted({*po[v][:1], *([v] if rng.random() < 0.3 else [])}) for v in range(n)]
    sz, fc, bc = rng.integers(1, 10, (3, n)).tolist()
    return {"isz": [4], "sz": sz, "fc": fc, "bc": bc, "pi": [[0]] * n, "po": po, "si": [[]] * n, "so": so}


def by_blocks(graph, budget):
    """The schedule, or the bytes that would do."""
    try:
        return optimal_graph(**graph, max_bytes=budget, method="blocks"), 0
    except BudgetError as error:
        return None, error.minimum_bytes


@given(n=st.integers(1, 24), seed=st.integers(0, 10**6), share=st.floats(0.2, 1.1))
@settings(max_examples=16, deadline=None)
def test_blocks_fit_and_are_whole(n, seed, share):
    graph = drawn(n, seed)
    whole = GraphMachine(Operations(**graph)).carry_out(save_all_of(Operations(**graph)))
    budget = int(whole.peak_bytes * share)
    found, least = by_blocks(graph, budget)
    if found is None:
        budget = least
        found, _ = by_blocks(graph, budget)
    assert found.peak_bytes <= budget
    assert whole.cost <= found.cost
    assert GraphMachine(Operations(**graph), budget).carry_out(found.steps).cost == found.cost


def test_a_hundred_operations():
    found = optimal_graph(**drawn(100, 3), max_bytes=400)
    assert found.cost < 1.2 * found.graph.least_cost
    assert not found.exact
    assert "schedule of a graph of 100 operations within 400 bytes" in str(found)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"fc": [1]}, "fc has 1 numbers and sz has 3"),
        ({"po": [[], [0], [2]]}, "operation 2 reads"),
        ({"po": [[], [], [1]]}, "nothing reads operation 0, and it is not the result"),
        ({"pi": [[5], [], []]}, "operation 0 reads inputs"),
        ({"bc": [1, -1, 1]}, "a size or a cost is negative"),
        ({"method": "best"}, "method must be one of 'auto', 'exact', 'blocks', 'milp', got 'best'"),
    ],
)
def test_refused(changed, message):
    with pytest.raises(PolicyError, match=message):
        optimal_graph(**graph_of(ORACLE["graphs"][0]) | {"max_bytes": 18} | changed)


def test_a_large_graph_is_not_searched(monkeypatch):
    monkeypatch.setattr("pullback.scheduling.graphs.graph_schedule.MOST_STATES", 10)
    with pytest.raises(PolicyError, match=r'too many to look at all: more than 10 states. Pass method="blocks"'):
        optimal_graph(**drawn(20, 1), max_bytes=45, method="exact")
