"""The least cost where first computations and pullbacks keep their order, against the column opt_fixed of dag.json."""

import json
from pathlib import Path

import pytest

from pullback.programs.exact_budget.on_demand import on_demand
from pullback.schedules import optimal_graph
from pullback.scheduling.graphs.fixed_order import COMPUTE, EVENT, KINDS, Event, FixedOrder, best_of_order
from pullback.scheduling.graphs.graph_machine import Operations
from pullback.scheduling.optimal.unified import forward_steps, plan

ORACLE = json.loads((Path(__file__).parents[2] / "policies" / "oracles" / "dag.json").read_text("utf-8"))
LISTS = ("isz", "sz", "fc", "bc", "pi", "po", "si", "so")
ROWS = [(g, dict(zip(ORACLE["row_columns"], row, strict=True))) for g in ORACLE["graphs"] for row in g["rows"]]


def mask(values):
    return sum(1 << v for v in values)


def problem(given, budget):
    """First computations, the seed, pullbacks; what is computed at least once is paid, too."""
    graph = Operations(**{name: given[name] for name in LISTS})
    inputs, pulled = sum(graph.isz), 0
    events = [Event(mask(reads), 1 << v, 0, inputs, inputs) for v, reads in enumerate(graph.po)]
    events.append(Event(1 << graph.n - 1, 0, 0, inputs, inputs + graph.cotangent_bytes(0, seeded=True)))
    for v in reversed(range(graph.n)):
        before, pulled = inputs + graph.cotangent_bytes(pulled, seeded=True), pulled | 1 << v
        during = inputs + graph.cotangent_bytes(pulled, seeded=True) + graph.sz[v]
        events.append(Event(mask(graph.so[v]), 0, 0, before, during))
    reads = [mask(row) for row in graph.po]
    return FixedOrder(list(graph.sz), list(graph.fc), reads, [0] * graph.n, events, budget), graph.least_cost


def test_every_row_has_the_least_cost():
    for graph, row in ROWS:
        order, once = problem(graph, row["budget"])
        found = best_of_order(order, 0, float("inf"))
        assert (-1 if found.done is None else found.cost + once) == row["opt_fixed"], (graph, row)
        if found.done is not None:
            way = [step for move in found.done for step in move]
            assert order.cost_of(way) == found.cost
            assert [step // KINDS for step in way if step % KINDS == EVENT] == list(range(len(order.events)))


def test_on_demand_is_near_it():
    ratios, missed = [], 0
    for graph, row in ROWS:
        if row["opt_fixed"] > 0:
            order, once = problem(graph, row["budget"])
            costs = [cost for cost, _ in on_demand(order, 0)]
            missed += not costs
            ratios += [(min(costs) + once) / row["opt_fixed"]] if costs else []
    assert missed <= 1
    assert min(ratios) >= 1
    assert sum(ratios) / len(ratios) < 1.003
    assert max(ratios) < 1.1


def chain(n):
    """Operations of which each reads the one before, and so does its pullback."""
    before = [[v - 1] if v else [] for v in range(n)]
    inputs = [[0], *([[]] * (n - 1))]
    return {
        "isz": [1],
        "sz": [1] * n,
        "fc": [1] * n,
        "bc": [0] * n,
        "pi": inputs,
        "po": before,
        "si": inputs,
        "so": before,
    }


def layered(n):
    """Layers x + sin(x) * cos(c x)."""
    pi, po, si, so = [], [], [], []
    for k in range(0, 5 * n, 5):
        x, given = ([k - 1], []) if k else ([], [0])
        po += [x, x, [k + 1], [k, k + 2], [*x, k + 3]]
        pi += [given, given, [], [], given]
        so += [x, [], [k + 1], [k, k + 2], []]
        si += [given, [], [], [], []]
    return {
        "isz": [1],
        "sz": [1] * 5 * n,
        "fc": [6, 1, 6, 1, 1] * n,
        "bc": [0] * 5 * n,
        "pi": pi,
        "po": po,
        "si": si,
        "so": so,
    }


def on_demand_cost(given, budget):
    """All that is computed."""
    order, _ = problem(given, budget)
    return sum(given["fc"]) + min(cost for cost, _ in on_demand(order, 0))


@pytest.mark.parametrize(("budget", "most"), [(8, 1.07), (10, 1.02), (15, 1.0), (25, 1.0), (40, 1.03)])
def test_long_chains_are_near_the_optimum_of_equal_steps(budget, most):
    given = chain(60)
    least = forward_steps(plan(59, 1, 1, budget - 2)) + 1  # beside two cotangents
    assert on_demand_cost(given, budget) <= most * least


@pytest.mark.parametrize(
    ("given", "budget"), [(chain(40), 8), (chain(40), 12), (layered(8), 9), (layered(8), 12), (layered(8), 20)]
)
def test_on_demand_is_no_dearer_than_the_chain_of_blocks(given, budget):
    assert on_demand_cost(given, budget) <= 1.05 * optimal_graph(**given, max_bytes=budget, method="blocks").cost


def test_nothing_below_what_is_known():
    order, _ = problem(*next((g, r["budget"]) for g, r in ROWS if r["opt_fixed"] > 0))
    best = best_of_order(order, 0, float("inf"))
    none = best_of_order(order, 0, float("inf"), best.cost)
    assert (none.done, none.complete) == (None, True)
    assert COMPUTE == 0


@pytest.mark.parametrize("most_met", [0, 1])
def test_a_search_that_ends_early_says_so(most_met):
    order, _ = problem(*next((g, r["budget"]) for g, r in ROWS if r["opt_fixed"] > 0))
    assert not best_of_order(order, 0, most_met).complete
