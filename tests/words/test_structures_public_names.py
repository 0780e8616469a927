"""Structures leaf by leaf, and what is traced: the two public names that look at what a function is given."""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from attrs import field, frozen
from attrs.validators import instance_of

import pullback as pb

Pair = namedtuple("Pair", "a b")  # noqa: PYI024 - untyped as users write it


@dataclass
class Model:
    speed: object
    layers: int


@frozen
class Strict:
    size: float = field(validator=instance_of(float))


def test_every_kind_of_structure_keeps_its_form():
    tree = {"pair": Pair(1.0, (2.0, None)), "list": [Model(3.0, 4), Strict(5.0)]}
    seen = pb.map_leaves(lambda leaf: leaf * 2, tree)
    assert seen == {"pair": Pair(2.0, (4.0, None)), "list": [Model(6.0, 8), Strict(10.0)]}
    assert pb.map_leaves(str, 3) == "3"


def test_several_structures_go_side_by_side_and_none_stands_for_no_gradient():
    model = Model(np.ones(2), 3)
    slope = pb.grad(lambda m: np.sum(m.speed**2) * m.layers)(model)
    assert slope.layers is None
    stepped = pb.map_leaves(lambda p, g: p if g is None else p - g, model, slope)
    np.testing.assert_array_equal(stepped.speed, [-5.0, -5.0])
    assert stepped.layers == 3
    assert pb.map_leaves(lambda *leaves: leaves, [1], [2], [3]) == [(1, 2, 3)]


@pytest.mark.parametrize("other", [{"a": 1.0}, [1.0], 1.0, {"a": 1.0, "b": [1.0]}])
def test_another_form_is_refused(other):
    with pytest.raises(pb.StructureError, match=r"map_leaves got the structures .* give two of one form"):
        pb.map_leaves(lambda p, g: p, {"a": 1.0, "b": 2.0}, other)


def test_leaves_may_be_traced():
    assert pb.grad(lambda x: pb.map_leaves(lambda leaf: leaf**2, {"x": x})["x"])(3.0) == 6.0


def test_a_tracer_of_every_kind_is_told_from_an_array():
    def f(x):
        for traced in (x, x[1:], np.zeros_like(x), np.sum(x), x[0]):
            assert isinstance(traced, pb.Tracer)
            assert not isinstance(pb.value(traced), pb.Tracer)
        return np.sum(x)

    pb.grad(f)(np.ones(3))
    pb.grad(lambda x: x if isinstance(x, pb.Tracer) else 0.0)(1.0)
    assert not isinstance(np.ones(3), pb.Tracer)
