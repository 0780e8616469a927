"""Hashing a traced value raises: by value a cache would answer from another trace, by identity a set from nowhere."""

from functools import lru_cache

import numpy as np
import pytest

import pullback as pb


@lru_cache
def square(x):
    return x * x


def branch(x):
    return x * 3.0 if x in {1.0, 2.0} else x


ROADS = {
    "membership": branch,
    "a set": lambda x: x * len({x}),
    "a key": lambda x: {x: x}[x],
    "a memoised function": lambda x: square(x) * 1.0,
    "frozenset": lambda x: x * len(frozenset([x])),
}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("x", [1.0, np.float64(2.0), np.array(1.0)], ids=["float", "scalar", "0-d"])
def test_the_hash_of_a_traced_scalar_raises(road, x):
    with pytest.raises(pb.ConversionError, match=r"float\(pullback.value\(x\)\) in .*f\.__wrapped__\(x\)"):
        pb.grad(ROADS[road])(x)


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(2)])
def test_it_raises_in_steps_of_a_loop_under_every_policy(policy):
    loss = lambda x: np.sum(pb.fori_loop(0, 5, lambda k, u: branch(u[0]) + u, x, policy=policy))  # noqa: E731
    with pytest.raises(pb.ConversionError, match="hash of a tracer"):
        pb.grad(loss)(np.ones(2))


def test_arrays_cannot_be_hashed_either():
    with pytest.raises(TypeError, match=r"hash of a tracer of float64\[2\]"):
        pb.grad(lambda x: np.sum(x) * len({x}))(np.ones(2))


def test_the_remedies_work():
    def f(x):
        return x * 3.0 if float(pb.value(x)) in {1.0, 2.0} else x

    assert pb.grad(f)(1.0) == 3.0
    assert pb.grad(square.__wrapped__)(3.0) == 6.0
    two = pb.grad(lambda a, b: square.__wrapped__(a) + 3 * square.__wrapped__(b), argnums=(0, 1))(2.0, 2.0)
    assert two == (4.0, 12.0)
