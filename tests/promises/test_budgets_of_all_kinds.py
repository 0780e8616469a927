"""A ``Budget`` over drawn programs of loops of all kinds (``budgets_of_all_kinds``): what is accepted stays so with
more bytes, and what a refusal tells is enough."""

import pytest
from tests.promises.budgets_of_all_kinds import Program, drawn, fault_of

FOUND = (
    # Code after a loop was held whole, and its records stayed until the loop was reversed: 860 steps for 277.
    Program(10_000, ((2, "fori", 40, 1, 0),), repeats=True, exact=False),
    # Loops in a loop kept the shares that they had when nothing followed: 18 figures were told.
    Program(10_000, ((0, "deep", 21, 2, 0),), repeats=True, exact=False),
    # What a loop with a policy of its own takes was asked of nobody.
    Program(10_000, ((0, "own policy", 6, 2, 3),), repeats=True, exact=False),
    Program(10_000, ((2, "own policy", 6, 6, 0),), repeats=True, exact=False),
    # Marked steps that ``break`` had left gave up nothing: nine figures were told.
    Program(10_000, ((0, "range", 18, 1, 0), (2, "break", 33, 4, 0), (6, "break", 36, 5, 0)), True, exact=False),
    # A snapshot of steps of unknown length that lay after the first tape: a ScheduleError.
    Program(
        10_000,
        ((6, "iterator", 38, 2, 0), (6, "iterator", 40, 1, 4), (0, "fori", 31, 5, 2), (0, "iterator", 36, 2, 2)),
        repeats=True,
        exact=False,
    ),
    # A tape stood in the place of a first snapshot that was small.
    Program(10_000, ((12, "range", 16, 3, 2), (0, "while", 35, 1, 4)), repeats=False, exact=False),
    # Code was cut into steps that begin with more than they hold, and told what these take.
    Program(10_000, ((2, "scan", 12, 1, 2), (0, "fori", 15, 4, 0), (6, "scan", 11, 5, 2)), repeats=True, exact=False),
)


@pytest.mark.parametrize("program", FOUND, ids=str)
def test_what_was_found(program):
    assert fault_of(program) == ""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numbers of drawn programs, which may overflow
@pytest.mark.parametrize("seed", [pytest.param(k, marks=[pytest.mark.slow] * (k > 1)) for k in range(400)])
def test_drawn_programs(seed):
    assert fault_of(drawn(seed)) == ""
