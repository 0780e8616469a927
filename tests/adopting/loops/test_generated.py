"""Numbers that a loop reads from its module, and those that have no digits."""

import numpy as np
from tests.adopting.loops.loop_gradients import require_same

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


def test_a_property_is_asked_as_often_as_the_program_asks(adopted):
    text = """
class Clock:
    n = 0

    @property
    def now(self):
        Clock.n += 1
        return 0.1 * (1 + Clock.n // 7)

class Other(Clock):
    def __getattribute__(self, name):
        return object.__getattribute__(self, "now") * 2.0 if name == "late" else object.__getattribute__(self, name)

clock, other = Clock(), Other()
other.__dict__["late"] = 5.0

def f(c, a):
    Clock.n, s = 0, 0.0
    for k in range(3):
        for i in range(6):
            s += a[i] * clock.now * c
        for i in range(6):
            s += a[i] * other.late * c
    return s
"""
    plain = {}
    exec(text, plain)  # noqa: S102 - written above
    f = adopted(text).f
    for _ in range(3):
        assert require_same(f, 0.5, A.copy())[0] == plain["f"](0.5, A.copy())
