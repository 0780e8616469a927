"""However one rank ends, all end, and say why."""

import pytest


def test_a_program_that_ends_well_says_nothing(ranks):
    assert ranks(2, "endings.py", "well") == (0, "")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("error", ["ZeroDivisionError: on rank 1", "RankError: rank 1 has failed, so rank 0 cannot go on"]),
        ("exit", ["MismatchError", "the end of the program"]),
        ("busy elsewhere", ["ZeroDivisionError: on rank 1"]),
        ("replay", ["ReplayError: fori_loop", "RankError: rank 1 has failed, so rank 0 cannot go on: ReplayError"]),
    ],
)
def test_one_rank_ends_all(ranks, how, words):
    code, output = ranks(2, "endings.py", how)
    assert code is not None, f"it did not end by itself:\n{output}"
    assert code != 0
    for word in words:
        assert word in output
