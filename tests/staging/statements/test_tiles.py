"""Arrays whose parts are written one after the other need no zeros before, if nobody can tell."""

import numpy as np
import pytest
from tests.staging.generated.both_ways import loop_over, require_same, the_stage

from pullback.staging.statements.symbols import Program
from pullback.staging.statements.tiles import without_zeros
from pullback.staging.statements.writes import ADD_TO, PUT

A = np.linspace(-1.0, 1.0, 128).reshape(8, 16)


pytestmark = pytest.mark.usefixtures("nothing_is_known")


def rewritten(writes, *, kept=0, value=A):
    """Names of the functions that fill an array of zeros by ``writes``: function, key, and the part that is sent."""
    program = Program()
    x = program.value(value)
    made = [program.call(np.zeros, (A.shape, A.dtype), {})]
    for function, key in writes:
        made.append(program.write(made[-1], function, key, x[key]))
    last = np.sin(made[-1])
    keep = frozenset((last.number, *([made[kept].number] if kept else [])))
    found = without_zeros(program, program.statements, keep)
    return [s.function.__name__ for s in found if s.symbol != "[]"]


LEFT, RIGHT, ALL = (slice(None), slice(0, 5)), (slice(None), slice(5, None)), (slice(None), slice(None))


def test_parts_that_tile_an_array_are_written_and_their_zeros_lose_their_sign():
    assert rewritten([(ADD_TO, LEFT), (ADD_TO, RIGHT)]) == ["empty", "PUT", "PUT", "add", "sin"]
    assert rewritten([(PUT, LEFT), (PUT, RIGHT)]) == ["empty", "PUT", "PUT", "sin"]
    more = [(ADD_TO, LEFT), (ADD_TO, RIGHT), (ADD_TO, LEFT)]
    assert rewritten(more) == ["empty", "PUT", "PUT", "add", "ADD_TO", "sin"]
    rows = [(ADD_TO, k) for k in range(8)]
    assert rewritten(rows) == ["empty", *["PUT"] * 8, "add", "sin"]


@pytest.mark.parametrize(
    "writes",
    [
        [(ADD_TO, LEFT)],
        [(ADD_TO, ALL)],
        [(ADD_TO, LEFT), (ADD_TO, (slice(None), slice(6, None)))],
        [(ADD_TO, LEFT), (ADD_TO, (slice(None), slice(4, None)))],
        [(ADD_TO, LEFT), (PUT, RIGHT)],
        [(ADD_TO, LEFT), (ADD_TO, LEFT), (ADD_TO, RIGHT)],
    ],
)
def test_others_are_added_to_zeros(writes):
    names = rewritten(writes)
    assert names == ["zeros", *(function.__name__ for function, _ in writes), "sin"]


def test_zeros_that_somebody_sees_stay():
    assert rewritten([(ADD_TO, LEFT), (ADD_TO, RIGHT)], kept=1)[0] == "zeros"
    assert rewritten([(PUT, LEFT), (PUT, RIGHT)], value=A.astype(np.float32))[0] == "zeros"


def gates(k, u, x):
    """The reverse adds the cotangents of three parts into zeros."""
    z = u * x
    return np.concatenate((np.sin(z[:, :3]), z[:, 3:10] * 0.5, np.exp(-z[:, 10:])), axis=1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_the_bits_are_those_of_recorded_steps_with_zeros_of_both_signs(dtype):
    x = A.astype(dtype)
    x[1], x[2], x[3:5, ::3], x[5, 0], x[5, 5] = 0.0, -0.0, -0.0, np.nan, np.inf
    with np.errstate(all="ignore"):
        require_same(lambda x: np.real(loop_over(gates)(x)), A.astype(dtype), x)
    assert "add(" in the_stage().reverse.text and "zeros" not in the_stage().reverse.text


def test_the_sign_of_a_zero_is_that_of_a_sum():
    def halves(k, u, x):
        return np.concatenate((u[:, :8] * -x[:, :8], u[:, 8:] * x[:, 8:]), axis=1)

    x = np.zeros((8, 16))
    require_same(loop_over(halves), x, -x)
    assert " = v" in the_stage().reverse.text.split("[:, 8:]")[-1]
