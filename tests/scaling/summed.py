"""Functions that other processes import by name, and the sum that they are compared with."""

import os
import time

import numpy as np

import pullback as pb
from pullback.memory.in_force import policy_in_force, verify_in_force
from pullback.scaling import plus, tree_sum

X = {"speed": np.linspace(0.1, 1.3, 40), "shift": 0.7}
ITEMS = [0.1 * k + 0.01 * k**2 for k in range(11)]


def misfit(x, item):
    def step(k, u):
        return u + 0.1 * np.sin(u * x["speed"] + item)

    return np.sum(pb.fori_loop(0, 6, step, x["speed"] * item)) * x["shift"]


def late_misfit(x, item):
    """As :func:`misfit`; the first items are done last."""
    time.sleep(max(0.0, 0.005 * (3 - item)))
    return misfit(x, item)


def raises_at_two(x, item):
    if item == 2:
        raise KeyError(f"item {item} is bad")
    return np.sum(x) * item


def returns_an_array(x, item):
    return x * item


def ends_the_process(x, item):
    if item == 2:
        os._exit(3)
    return np.sum(x) * item


class FussyError(Exception):
    """Its ``__init__`` takes what no pickle of it gives back."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")


def raises_what_does_not_come_back(x, item):
    raise FussyError(7, "no such shot")


def what_is_in_force(x, item):
    return np.sum(x) * (policy_in_force() == pb.Binomial(2)) * (verify_in_force() == "state")


def summed(f, x, items, policy=None):
    """The sum in the calling thread, by the same tree."""
    return tree_sum((pb.value_and_grad(f, policy=policy)(x, item) for item in items), plus)


def assert_same_bits(one, other):
    (value, gradient), (value2, gradient2) = one, other
    assert np.float64(value).tobytes() == np.float64(value2).tobytes()
    assert gradient["speed"].tobytes() == gradient2["speed"].tobytes()
    assert np.float64(gradient["shift"]).tobytes() == np.float64(gradient2["shift"]).tobytes()
