"""taylor_test: rate 2 for a right gradient, 1 for a wrong one, and a table to look at."""

import numpy as np
import pytest

from pullback.policies.binomial import Binomial
from pullback.testing import taylor_test
from pullback.words.errors import CheckError

X = np.array([0.4, -1.2, 2.0])


def objective(x):
    return np.sum(np.sin(x) * x**2)


def slope(x):
    return np.cos(x) * x**2 + 2 * x * np.sin(x)


def test_a_right_gradient_has_rate_two():
    result = taylor_test(objective, X)
    assert result.rate == pytest.approx(2.0, abs=0.05)
    assert result.rates[-1] == result.rate
    assert result.plain_rates[-1] == pytest.approx(1.0, abs=0.05)
    assert len(result.rates) == len(result.steps) - 1 == 4


@pytest.mark.parametrize("error", [1.01, -1.0])
def test_a_wrong_gradient_has_rate_one(error):
    assert taylor_test(objective, X, gradient=error * slope(X), levels=9).rate == pytest.approx(1.0, abs=0.05)


def test_a_gradient_that_is_zero_has_rate_one():
    assert taylor_test(objective, X, gradient=np.zeros(3)).rate == pytest.approx(1.0, abs=0.05)


def test_a_gradient_handed_over_needs_no_tracing():
    result = taylor_test(lambda x: float(objective(x)), X, gradient=slope(X), direction=np.array([1.0, 0.0, 0.0]))
    assert result.rate == pytest.approx(2.0, abs=0.05)


def test_under_a_policy_and_along_a_direction():
    def f(x):
        for _ in range(6):
            x = x + 0.1 * np.sin(x)
        return np.sum(x)

    assert taylor_test(f, X, np.ones(3), policy=Binomial(2)).rate == pytest.approx(2.0, abs=0.05)


def test_structures_scalars_and_complex_numbers():
    tree = {"a": X, "b": [2.0]}
    assert taylor_test(lambda t: np.sum(np.exp(t["a"])) * t["b"][0] ** 2, tree).rate == pytest.approx(2.0, abs=0.05)
    assert taylor_test(lambda x: x**3, 1.5).rate == pytest.approx(2.0, abs=0.05)
    assert taylor_test(lambda z: np.sum(np.abs(z) ** 4), X + 0.5j).rate == pytest.approx(2.0, abs=0.05)


def test_float32():
    result = taylor_test(objective, X.astype(np.float32), step=0.1)
    assert result.rate == pytest.approx(2.0, abs=0.3)


def test_a_linear_function_has_no_residual():
    result = taylor_test(lambda x: np.sum(3 * x), X)
    assert result.rate == np.inf
    assert "rounding" in str(result)


def test_a_wrong_gradient_of_a_linear_function_has_rate_one():
    assert taylor_test(lambda x: np.sum(3 * x), X, gradient=np.ones(3)).rate == pytest.approx(1.0)


def test_it_prints_as_a_table():
    lines = str(taylor_test(objective, X, levels=3)).splitlines()
    assert lines[0] == "Taylor test of objective: last rate 2.01 (right gradient 2, wrong 1)"
    assert lines[1].split() == ["step", "|f(x+hv)-f(x)|", "rate", "|...", "-", "h<g,v>|", "rate"]
    assert [line.split()[0] for line in lines[2:]] == ["1.000e-02", "5.000e-03", "2.500e-03"]
    assert len({len(line) for line in lines[3:]}) == 1


def test_the_argument_is_left_as_it_was():
    x = X.copy()
    taylor_test(objective, x)
    assert x.tobytes() == X.tobytes()


def test_too_few_levels():
    with pytest.raises(ValueError, match="a rate needs two steps, got levels=1"):
        taylor_test(objective, X, levels=1)


def test_a_direction_of_another_shape():
    with pytest.raises(ValueError, match=r"the direction has leaves of shapes \[\(2,\)\], x has \[\(3,\)\]"):
        taylor_test(objective, X, np.ones(2))


def test_values_that_are_not_finite():
    def f(x):
        return np.sum(x) * np.inf

    with pytest.raises(CheckError, match="the Taylor residuals of f are not finite"):
        taylor_test(f, X, gradient=np.ones(3))
