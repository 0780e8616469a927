import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scheduling.optimal.held_steps import held_forward_steps

from pullback.policies.binomial import Binomial
from pullback.schedules import Advance, EndForward, simulate
from pullback.scheduling.machine.simulator import machine_for, play
from pullback.scheduling.optimal.binomial_split import forward_steps, repetitions
from pullback.scheduling.optimal.online import greedy

ORACLE = json.loads((Path(__file__).parents[2] / "policies" / "oracles" / "online.json").read_text("utf-8"))
ROWS = [dict(zip(ORACLE["columns"], row, strict=True)) for row in ORACLE["rows"]]
SLOTS = sorted({row["s"] for row in ROWS})
PER_LENGTH = ORACLE["all_n_2_to_5000"]["data"]


def played(policy, n):
    """(snapshots held when the loop ended, how often each step was advanced)."""
    schedule = policy.schedule(None)
    machine = machine_for(schedule, n)
    held, advanced = None, [0] * n
    for action in play(schedule, n, machine):
        if isinstance(action, EndForward):
            held = sorted(step for _, step in machine.stored.get("memory", ()))
        if isinstance(action, Advance):
            for step in range(action.start, action.stop):
                advanced[step] += 1
    return held, advanced


# The oracle's lookback convention: the tape of the last step comes out of the sweep. Ours says the same in `n_forward`
# and counts in `n_lookback` the one step more that an executor runs which keeps only the state.
@pytest.mark.parametrize("s", SLOTS)
def test_every_greedy_row_of_the_oracle(s):
    for row in (row for row in ROWS if row["s"] == s):
        simulation = simulate(Binomial(s).schedule(None), row["n"])
        assert simulation.n_forward == row["greedy"], row
        assert simulation.n_lookback == 1
        assert simulation.peak_slots <= s


# "wmi": s entries of which the newest may be in WORK; "work placeholder": s + 1 entries of which the newest is.
@pytest.mark.parametrize(("online", "column"), [("wmi", "wmi"), ("wmi-beside", "wmi_work_placeholder")])
@pytest.mark.parametrize("s", SLOTS)
def test_every_wang_moin_iaccarino_row_of_the_oracle(s, online, column):
    for row in (row for row in ROWS if row["s"] == s):
        simulation = simulate(Binomial(s, online=online).schedule(None), row["n"])
        assert simulation.n_forward == row[column], row
        assert simulation.peak_slots <= s


@pytest.mark.parametrize("row", ORACLE["greedy_positions"]["rows"], ids=lambda row: f"{row[0]}-{row[1]}")
def test_greedy_positions(row):
    n, s, positions, total = row
    assert played(Binomial(s), n)[0] == positions
    assert held_forward_steps(positions, n, s, lookback=True) == total


@pytest.mark.parametrize("s", [int(s) for s in PER_LENGTH if int(s) <= 20])
def test_greedy_ratio_at_every_length(s):
    rule, held, ratios = greedy(s), [], {}
    for n in range(2, 5001):
        evicted, kept = rule(n - 2)  # x_(n-2) leaves WORK because step n-1 comes
        if evicted is not None:
            held.remove(evicted)
        if kept:
            held.append(n - 2)
        ratios[n] = held_forward_steps(held, n, s, lookback=True) / forward_steps(n, s)
    worst = max(ratios, key=ratios.get)
    expected = PER_LENGTH[str(s)]["greedy"]
    assert [round(ratios[worst], 4), round(sum(ratios.values()) / len(ratios), 4)] == [expected[0], expected[2]]
    assert s == 1 or worst == expected[1]


@given(n=st.integers(1, 300), s=st.integers(1, 30), online=st.sampled_from(["greedy", "wmi", "wmi-beside"]))
def test_the_reverse_is_optimal_for_the_set_held(n, s, online):
    policy = Binomial(s, online=online)
    held, _ = played(policy, n)
    simulation = simulate(policy.schedule(None), n)
    assert len(held) == min(max(s - 1, 1) if online == "wmi" else s, n - 1)
    assert simulation.n_forward == held_forward_steps(held or [0], n, s, lookback=True)
    assert simulation.n_forward >= forward_steps(n, s)
    assert simulation.peak_slots <= s


@given(n=st.integers(1, 300), s=st.integers(1, 30))
def test_wang_moin_iaccarino_repeats_no_step_more_often_than_a_known_length(n, s):
    _, advanced = played(Binomial(s, online="wmi-beside"), n)
    assert max(advanced) <= max(1, repetitions(n, s))
    _, advanced = played(Binomial(s, online="wmi"), n)
    assert max(advanced) <= max(1, repetitions(n, s)) + 1


@given(s=st.integers(1, 12), x=st.integers(0, 200))
def test_greedy_takes_the_cheapest_of_all_choices(s, x):
    """Against every choice, priced by the closed form: keep, then replace the smallest index; a free slot is always
    taken."""
    rule, held = greedy(s), []
    for step in range(x + 1):
        evicted, kept = rule(step)
        n = step + 2
        candidates = [held] if held else []
        candidates += (
            [[*held[:j], *held[j + 1 :], step] for j in range(1, len(held))] if len(held) == s else [[*held, step]]
        )
        prices = [held_forward_steps(candidate, n, s, lookback=True) for candidate in candidates]
        best = candidates[prices.index(min(prices))]
        held = [p for p in held if p != evicted] + [step] * kept
        assert held == best
