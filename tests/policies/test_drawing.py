"""Schedules drawn as text."""

import pytest

from pullback.policies.binomial import Binomial
from pullback.policies.recompute import Recompute
from pullback.policies.save_all import SaveAll
from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save, draw
from pullback.words.errors import ScheduleError

LEGEND = "S state saved  L loaded  X loaded for the last time  : held  . advanced  r recorded  < recorded and reversed"


def test_binomial_drawn():
    assert draw(Binomial(2).schedule(6), 6).splitlines() == [
        "0         5",
        "S. . .S. . <",
        ":     L. <",
        ":     X<",
        "L.S. <",
        ": X<",
        "X<",
        LEGEND,
    ]


def test_segments_drawn():
    assert draw(Recompute(3).schedule(10), 10).splitlines() == [
        "0         5",
        "S. . .S. . . < < < <",
        ":     X< < <",
        "X< < <",
        LEGEND,
    ]


def test_tapes_reversed_in_a_later_row_are_drawn_as_recorded():
    actions = [Record(0), Save("tape", 0), Save("state", 1), Advance(1, 2), Record(2), EndForward(), Reverse(2)]
    actions += [
        Load("state", 1),
        Delete("state", 1),
        Record(1),
        Reverse(1),
        Load("tape", 0),
        Delete("tape", 0),
        Reverse(0),
        EndReverse(),
    ]
    assert draw(actions, 3).splitlines() == ["0", " rS. <", " <X<", LEGEND]


def test_no_step_drawn():
    assert draw(SaveAll().schedule(0), 0) == f"no steps\n{LEGEND}"


def test_long_schedules_are_not_drawn():
    with pytest.raises(ScheduleError, match="201 steps do not fit a diagram: 200 are the most"):
        draw(Binomial(2).schedule(201), 201)
