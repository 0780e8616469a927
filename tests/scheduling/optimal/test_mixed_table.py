"""The table of the mixed optimum: its window against every m, and the published numbers for any sizes."""

import json
from pathlib import Path

import numpy as np
import pytest

from pullback.scheduling.optimal.mixed_table import (
    INFINITE,
    MOST_CELLS,
    NO_ROOM,
    TAPE,
    fewest_and_moves,
    first_moves,
    longest,
    reach,
)

UNIFIED = json.loads((Path(__file__).parents[2] / "policies" / "oracles" / "unified.json").read_text("utf-8"))


@pytest.mark.parametrize("row", UNIFIED["rows"], ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}")
def test_every_row_of_the_oracle_for_states_and_tapes_of_any_size(row):
    state, tape, units, expected = row
    most = max(UNIFIED["n"])
    fewest = fewest_and_moves(most, units, state, tape, reach(units))[0]
    found = [int(fewest[n, units]) for n in UNIFIED["n"]]
    assert [-1 if cost >= INFINITE else cost for cost in found] == expected


@pytest.mark.parametrize(
    ("n", "units", "state", "tape"),
    [(600, 12, 1, 1), (200, 60, 1, 1), (300, 12, 3, 1), (300, 12, 1, 3), (200, 40, 5, 1), (200, 40, 1, 5)],
)
def test_the_window_finds_what_looking_at_every_m_finds(n, units, state, tape):
    windowed = fewest_and_moves(n, units, state, tape, reach(units))[0]
    assert np.array_equal(windowed, fewest_and_moves(n, units, state, tape, n)[0])


def test_moves():
    moves = first_moves(4, 2)
    assert moves.dtype == np.int32
    assert moves[2, 1] == moves[3, 2] == TAPE
    assert moves[4, 1] == 3
    assert moves[2, 0] == NO_ROOM


@pytest.mark.parametrize("units", [1, 20, 312, 10**6])
def test_a_table_has_a_limit(units):
    n = longest(units)
    assert n >= 1
    assert n == 1 or n * (units + 1) <= MOST_CELLS
