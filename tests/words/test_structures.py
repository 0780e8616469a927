"""Structures of every kind, nested, have gradients of the same structure."""

from typing import Any, NamedTuple

import attrs
import numpy as np

import pullback as pb

X = np.array([0.3, -0.7, 1.1])


class Point(NamedTuple):
    """Two named leaves."""

    x: Any
    y: Any


@attrs.frozen
class Model:
    """A user's parameters, with an alias and a private name."""

    weight: object
    _bias: object = attrs.field(alias="bias")
    name: str = "model"


def test_structures_of_every_kind():
    tree = {
        "a": X,
        "b": [1.5, (2.5, None)],
        "c": Point(X + 1, np.float32(2)),
        "m": Model(X * 2, bias=X * 3),
        "e": (),
        "n": 7,
        "s": "text",
    }

    def f(t):
        m = t["m"]
        return (
            np.sum(t["a"] * m.weight)
            + t["b"][0] * t["b"][1][0]
            + np.sum(t["c"].x) * t["c"].y
            + np.sum(m._bias) * t["n"]
        )

    for policy in (None, pb.Binomial(1)):
        g = pb.grad(f, policy=policy)(tree)
        np.testing.assert_array_equal(g["a"], X * 2)
        assert g["b"] == [2.5, (1.5, None)]
        assert isinstance(g["c"], Point)
        assert type(g["c"].y) is np.float32
        assert isinstance(g["m"], Model)
        np.testing.assert_array_equal(g["m"].weight, X)
        np.testing.assert_array_equal(g["m"]._bias, np.full(3, 7.0))
        assert (g["m"].name, g["e"], g["n"], g["s"]) == (None, (), None, None)
