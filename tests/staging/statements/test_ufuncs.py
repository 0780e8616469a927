"""Generated functions warn by the names by which NumPy warns."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

ONE, NONE, LARGE = np.ones(3), np.zeros(3), np.full(3, 1.7e308)


def _written(f: Callable[[Any, Any], None]) -> Callable[[Any], Any]:
    """``f`` writes into a new array, whose sum is given."""

    def program(x: Any) -> Any:
        y = x * 1.0
        f(y, x)
        return np.sum(y * 0.5)

    return program


def _power(y: Any, _: Any) -> None:
    y **= 0.5


def _taken(y: Any, x: Any) -> None:
    y -= -x


def _added_to_part(y: Any, x: Any) -> None:
    y[1:] += x[1:]


def _taken_from_part(y: Any, x: Any) -> None:
    y[:1] -= -x[:1]


def _taken_from_picked(y: Any, x: Any) -> None:
    y[np.array([0, 2])] -= -x[:2]


CASES = {
    "sqrt": (lambda x: np.sum(x**0.5), -ONE),
    "square": (lambda x: np.sum(x**2), LARGE),
    "reciprocal": (lambda x: np.sum(x**-1), NONE),
    "power": (lambda x: np.sum(x**1.5), LARGE),
    "ufunc": (lambda x: np.sum(np.power(x, 2.0)), LARGE),
    "products": (lambda x: np.sum((x * 1) * x), LARGE),
    "matmul": (lambda x: x @ x, LARGE),
    "power in place": (_written(_power), -ONE),
    "difference in place": (_written(_taken), LARGE),
    "sum of a part": (_written(_added_to_part), LARGE),
    "difference of a part": (_written(_taken_from_part), LARGE),
    "difference of picked": (_written(_taken_from_picked), LARGE),
}


@pytest.mark.parametrize("name", CASES)
def test_a_staged_function_warns_as_numpy_does(name: str) -> None:
    f, x = CASES[name]
    told = []
    for program in (f, pb.staged(f)):
        gradient = pb.grad(program)
        for _ in range(4):
            gradient(ONE)
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                gradient(x)
            told.append(sorted(str(each.message) for each in caught))
    assert told[0]
    assert told == [told[0]] * 4
