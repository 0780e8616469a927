"""A handle is of the class that its value is of, for who asks in C: whole programs are in tests/adopting."""

from numbers import Real

import numpy as np
import pytest

import pullback as pb
from pullback.adopting.kinds.dispatching import matching, singledispatch, singledispatchmethod


@pytest.mark.parametrize(
    ("cls", "of_number", "of_array"),
    [(float, True, False), (int, False, False), (Real, True, False), (np.ndarray, False, True), (str, False, False)],
)
def test_a_class_of_patterns_takes_what_a_handle_stands_for(cls, of_number, of_array):
    kind, seen = matching(cls), []

    def f(x, v):
        seen.append((isinstance(x, kind), isinstance(v, kind)))
        return x * np.sum(v)

    pb.grad(f)(0.5, np.ones(2))
    pb.jvp(f, (0.5, np.ones(2)), (1.0, np.ones(2)))
    assert seen == [(of_number, of_array)] * 2
    assert isinstance(0.5, kind) == of_number
    assert not isinstance(None, kind)


def test_what_is_no_class_stays_as_it_is():
    assert matching(bool) is bool
    assert matching(3) == 3


def test_dispatchers_call_what_is_registered_for_the_value():
    @singledispatch
    def twice(x):
        raise TypeError(type(x))

    twice.register(float, lambda x: 2 * x)
    twice.register(np.ndarray, lambda x: np.sum(2 * x))

    class Box:
        @singledispatchmethod
        def thrice(self, x):
            raise TypeError(type(x))

        thrice.register(np.ndarray, lambda self, x: np.sum(3 * x))

    assert pb.grad(twice)(0.5) == 2
    assert pb.grad(twice)(np.ones(2)).tolist() == [2, 2]
    assert twice(0.5) == 1.0
    assert pb.grad(lambda x: Box().thrice(x))(np.ones(2)).tolist() == [3, 3]
    assert Box().thrice(np.ones(2)) == 6.0
    with pytest.raises(TypeError):
        twice("text")
