"""Numbers that a loop reads from its module, and those that have no digits."""

import numpy as np
from tests.adjoints.loop_gradients import require_same

A = np.random.default_rng(3).uniform(0.2, 1, 6)


def test_numbers_of_the_module_are_those_of_the_forward(adopted, ran):
    """The reverse is written when it is asked for: the module may mean another number by then."""
    text = """
class P:
    dt = 0.1

def f(c, a):
    s = 0.0
    for k in range(3):
        for i in range(6):
            s += a[i] * P.dt * c
        P.dt = P.dt * 1.5
    P.dt = 0.1
    return s
"""
    f = adopted(text).f
    for _ in range(3):
        value, by_c, by_a = require_same(f, 0.5, A.copy())
        np.testing.assert_allclose([value, by_c], [0.475 * 0.5 * A.sum(), 0.475 * A.sum()])
        np.testing.assert_allclose(by_a, 0.475 * 0.5)
    assert (8, True) in ran


def test_an_infinity_is_no_name(adopted, ran):
    text = """
import numpy as np

def f(c, a):
    inf, s, least = 0.25, 0.0, 1.0
    for i in range(6):
        least = np.inf
        s += c / (least + 1.0) + inf * a[i]
        least = 1e999
        s += c / (least + 1.0)
    return s * c
"""
    value, *_ = require_same(adopted(text).f, 0.5, A.copy())
    assert ran[0][1]
    np.testing.assert_allclose(value, 0.25 * A.sum() * 0.5)
