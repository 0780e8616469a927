"""Masked products and quotients that follow one another, and changes of sign between them."""

import numpy as np
import pytest
from tests.staging.generated.both_ways import loop_over, require_same, the_stage

from pullback.primitives.shared.masked_arithmetic import over, times
from pullback.staging.statements.chains import MOST, in_chains
from pullback.staging.statements.symbols import Program

A = np.linspace(0.5, 1.5, 64)


pytestmark = pytest.mark.usefixtures("nothing_is_known")


def names(function, *, kept=(), like=A):
    program = Program()
    ct, x = program.value(like), program.value(like)
    found = function(ct, x)
    keep = frozenset((found.number, *kept))
    return [s.symbol or s.function.__name__ for s in in_chains(program, program.statements, keep)]


def test_two_changes_of_sign_go_into_the_chain_between_them():
    assert names(lambda ct, x: -times(over(-ct, x), x)) == ["masked_chain"]
    assert names(lambda ct, x: -over(-ct, x)) == ["masked_chain"]
    assert names(lambda ct, x: over(-times(-ct, x), x)) == ["masked_chain"]
    assert names(lambda ct, x: times(-over(ct, x), x)) == ["masked_chain"]


def test_one_change_of_sign_at_an_end_stays_as_it_is():
    assert names(lambda ct, x: -times(over(ct, x), x)) == ["masked_chain", "-"]
    assert names(lambda ct, x: times(over(-ct, x), x)) == ["-", "masked_chain"]
    assert names(lambda ct, x: over(-ct, x)) == ["-", "_quotient"]
    assert names(lambda ct, x: np.negative(-ct)) == ["-", "negative"]


def test_what_is_read_in_between_is_computed():
    def twice(ct, x):
        minus = -ct
        return times(-over(minus, x), minus)

    assert names(twice) == ["-", "masked_chain"]
    assert len(names(lambda ct, x: -over(-ct, x), kept=(2,))) == 3
    assert len(names(lambda ct, x: -over(-ct, x), like=np.ones(1 + MOST // 8))) == 3


def gate(k, u, x):
    return u + 0.1 / (1.0 + np.exp(-(40.0 * u * x)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_bits_are_those_of_recorded_steps(dtype):
    x = np.linspace(-3.0, 3.0, 200, dtype=dtype)
    x[:8] = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-30]
    with np.errstate(all="ignore"):
        require_same(loop_over(gate), x, -x)
    text = the_stage().reverse_own.text
    assert "masked_chain(" in text and "negative(" not in text and "= -" not in text
