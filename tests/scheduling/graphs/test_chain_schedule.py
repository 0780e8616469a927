import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback import BudgetError, PolicyError
from pullback.schedules import optimal_chain
from pullback.scheduling.graphs.chain_machine import Chain, ChainMachine
from pullback.scheduling.graphs.chain_schedule import save_all_of

ORACLE = json.loads((Path(__file__).parents[2] / "policies" / "oracles" / "hetero.json").read_text("utf-8"))
NAMES = ("a", "abar", "uf", "ub", "of", "ob")


def chain_of(instance):
    return {name: instance[name] for name in NAMES}


@pytest.mark.parametrize("instance", ORACLE["instances"], ids=lambda instance: f"L{instance['L']}")
def test_every_row_of_the_oracle_that_is_persistent(instance):
    chain = chain_of(instance)
    for budget, _, expected, _ in instance["rows"]:
        if expected < 0:
            with pytest.raises(BudgetError) as caught:
                optimal_chain(**chain, max_bytes=budget)
            least = caught.value.minimum_bytes
            assert optimal_chain(**chain, max_bytes=least).peak_bytes <= least
            with pytest.raises(BudgetError):
                optimal_chain(**chain, max_bytes=least - 1)
            continue
        found = optimal_chain(**chain, max_bytes=budget)
        assert found.exact
        assert found.cost == expected
        assert found.peak_bytes <= budget
        assert ChainMachine(found.chain, budget).carry_out(found.steps).cost == expected


def rows_of_all(instance):
    for budget, expected, _, _ in instance["rows"]:
        if expected < 0:
            with pytest.raises(BudgetError):
                optimal_chain(**chain_of(instance), max_bytes=budget, persistent=False)
        else:
            assert optimal_chain(**chain_of(instance), max_bytes=budget, persistent=False).cost == expected


@pytest.mark.parametrize("instance", [i for i in ORACLE["instances"] if i["L"] < 7], ids=lambda i: f"L{i['L']}")
def test_every_row_of_the_oracle_of_all_schedules(instance):
    rows_of_all(instance)


@pytest.mark.slow
@pytest.mark.parametrize("instance", [i for i in ORACLE["instances"] if i["L"] >= 7], ids=lambda i: f"L{i['L']}")
def test_every_long_row_of_the_oracle_of_all_schedules(instance):
    rows_of_all(instance)


@pytest.mark.parametrize("instance", ORACLE["instances"][::4], ids=lambda instance: f"L{instance['L']}")
def test_save_all_is_save_all(instance):
    chain = Chain(**chain_of(instance))
    machine = ChainMachine(chain).carry_out(save_all_of(chain))
    assert machine.cost == instance["saveall_cost"] == chain.least_cost
    assert machine.peak_bytes == instance["saveall_peak"]
    assert optimal_chain(**chain_of(instance), max_bytes=machine.peak_bytes).cost == machine.cost


def within(chain, budget):
    """The schedule, or the bytes that would do."""
    try:
        return optimal_chain(**chain, max_bytes=budget), 0
    except BudgetError as error:
        return None, error.minimum_bytes


@given(scale=st.integers(1, 10**9), odd=st.integers(0, 1000), share=st.floats(0.3, 1.2), data=st.data())
@settings(max_examples=30, deadline=None)
def test_rounded_sizes_still_fit(scale, odd, share, data):
    n = data.draw(st.integers(1, 8))
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=n + 1, max_size=n + 1))
    a = [size * scale + odd for size in sizes]
    chain = {"a": a, "abar": [x + scale for x in a[1:]], "uf": [1] * n, "ub": [2] * n}
    whole = optimal_chain(**chain, max_bytes=10**15)
    budget = int(whole.peak_bytes * share)
    found, least = within(chain, budget)
    if found is None:
        assert budget < least <= whole.peak_bytes
        budget = least
        found, _ = within(chain, budget)
    assert found.peak_bytes <= budget
    assert found.cost >= whole.cost


def test_a_hundred_stages():
    found = optimal_chain(a=[8] * 101, abar=[16] * 100, uf=[1] * 100, ub=[2] * 100, max_bytes=200)
    assert found.peak_bytes <= 200
    assert found.n_forward < 400


def test_prints():
    found = optimal_chain(a=[5, 4, 5], abar=[8, 10], uf=[5, 5], ub=[9, 8], max_bytes="24 B")
    assert "cost        32  (1.19 of save-all)" in str(found)
    assert [repr(step) for step in found.steps][:3] == ["Fwd(1)", "Tape(2)", "Loss(2)"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"abar": [8]}, "abar has 1 numbers for 2 stages"),
        ({"abar": [8, 4]}, r"abar of stage 2 is 4 and a\[2\] is 5: the tape contains the result"),
        ({"uf": [5, -5]}, "a size or a cost is negative"),
        ({"a": [5], "abar": [], "uf": [], "ub": []}, "Give the bytes of x_0, and of each stage's result"),
        ({"max_bytes": "some"}, "max_bytes='some' is no number of bytes"),
    ],
)
def test_refused(changed, message):
    with pytest.raises(PolicyError, match=message):
        optimal_chain(**{"a": [5, 4, 5], "abar": [8, 10], "uf": [5, 5], "ub": [9, 8], "max_bytes": 24} | changed)


def test_a_long_chain_is_not_searched(monkeypatch):
    monkeypatch.setattr("pullback.scheduling.graphs.chain_schedule.MOST_STATES", 100)
    chain = chain_of(ORACLE["instances"][-1])
    with pytest.raises(PolicyError, match=r"too many to look at all: more than 100 states. Leave persistent=False out"):
        optimal_chain(**chain, max_bytes=15, persistent=False)
