"""Structures are taken apart and rebuilt as they are: no constructor of the user's runs in between."""

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as pb
from pullback.words.structures import flatten, flattened, is_flat, unflatten


@dataclass
class Derived:
    a: np.ndarray
    b: np.ndarray = field(init=False)

    def __post_init__(self):
        self.b = self.a * 2.0


@dataclass(frozen=True, slots=True)
class Frozen:
    a: np.ndarray
    n: int = 3


@attrs.frozen
class Converted:
    a: np.ndarray = attrs.field(converter=lambda x: np.asarray(x, float))
    _b: np.ndarray = attrs.field(validator=attrs.validators.instance_of(np.ndarray))


@dataclass
class Refusing:
    a: np.ndarray

    def __init__(self, *args):
        if not args:
            raise RuntimeError("this constructor wants something else")
        self.a, self.extra = args


@dataclass
class Cached:
    r: np.ndarray

    @cached_property
    def area(self):
        return self.r * self.r


X = np.array([1.0, 2.0])


def test_a_derived_field_is_a_leaf_of_its_own():
    g = pb.grad(lambda p: np.sum(p.a * p.a) + 3 * np.sum(p.b))(Derived(X))
    assert type(g) is Derived
    np.testing.assert_array_equal(g.a, 2 * X)
    np.testing.assert_array_equal(g.b, [3.0, 3.0])


def test_converters_and_validators_are_not_run():
    g = pb.grad(lambda p: np.sum(p.a * p._b))(Converted(X, 3 * X))
    np.testing.assert_array_equal(g.a, 3 * X)
    np.testing.assert_array_equal(g._b, X)


def test_what_is_set_beside_the_fields_is_a_leaf_too():
    g = pb.grad(lambda p: np.sum(p.a) + 5 * np.sum(p.extra))(Refusing(X, X))
    np.testing.assert_array_equal(g.extra, [5.0, 5.0])


def test_a_cached_property_is_computed_again():
    p = Cached(X)
    np.testing.assert_array_equal(p.area, X * X)  # in the instance's dict from here on
    g = pb.grad(lambda p: np.sum(p.area))(p)
    np.testing.assert_array_equal(g.r, 2 * X)


def test_a_carry_of_a_loop_may_be_such_an_instance():
    def f(x, policy):
        out = pb.fori_loop(0, 4, lambda k, p: Derived(p.a * 0.5 + 0.1 * p.b), Derived(x), policy=policy)
        return np.sum(out.a * out.b)

    first = pb.grad(f)(X, pb.SaveAll())
    np.testing.assert_allclose(first, 4 * X * 0.7**8, rtol=1e-14)
    np.testing.assert_array_equal(pb.grad(f)(X, pb.Binomial(2)), first)


def test_a_class_that_extends_a_built_in_is_refused_by_name():
    @dataclass
    class Odd(dict):
        a: np.ndarray

    with pytest.raises(pb.StructureError, match=r"Odd cannot be taken apart .*use a plain dataclass, or a dict"):
        pb.grad(lambda p: np.sum(p.a))(Odd(X))


class Doubling(NamedTuple("Doubling", [("x", object), ("k", object)])):
    """Its constructor changes what it is given."""

    __slots__ = ()

    def __new__(cls, x, k=3.0):
        return super().__new__(cls, x * 2, k)


class Noted(NamedTuple("Noted", [("x", object), ("k", object)])):  # noqa: SLOT002 - it has a __dict__ on purpose
    """Something is set on it beside its items."""

    scale = 1.0


leaves = st.floats(-1, 1)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.builds(Frozen, inner),
        st.builds(Derived, leaves),
        st.builds(Refusing, inner, inner),
        st.builds(Doubling, leaves),
        st.builds(Noted, inner, inner),
        st.tuples(inner, inner),
        st.none(),
    ),
    max_leaves=8,
)


def shown(tree):
    """The structure by another way: Python's own look at attributes."""
    if dataclasses.is_dataclass(tree):
        names = [f.name for f in dataclasses.fields(tree)] + (["extra"] if hasattr(tree, "extra") else [])
        return (type(tree).__name__, [shown(getattr(tree, n)) for n in names])
    if isinstance(tree, dict):
        return {k: shown(v) for k, v in tree.items()}
    return [shown(v) for v in tree] if isinstance(tree, list | tuple) else tree


@given(trees)
def test_what_is_taken_apart_is_rebuilt(tree):
    parts, definition = flatten(tree)
    assert shown(unflatten(definition, parts)) == shown(tree)


@pytest.mark.parametrize(
    ("nest", "get"), [(lambda v: v, lambda t: t), (lambda v: {"a": [v, 1.0]}, lambda t: t["a"][0])]
)
@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(2), pb.Binomial(1)])
def test_what_extends_a_named_tuple_keeps_its_items_and_attributes(nest, get, policy):
    noted = Noted(X, 2.0)
    noted.scale = 5.0
    for made, slope in ((Doubling(X, 2.0), 24 * X), (noted, 60 * X)):

        def body(k, carry):
            v = get(carry[0])
            return carry[0], carry[1] + np.sum(v.x**2) * v.k * getattr(v, "scale", 1.0)

        gradient = pb.grad(lambda t: pb.fori_loop(0, 3, body, (t, 0.0))[1], policy=policy)(nest(made))
        assert type(get(gradient)) is type(made)
        np.testing.assert_allclose(get(gradient).x, slope)
    np.testing.assert_allclose(get(gradient).scale, 6 * np.sum(X**2))


class Pair(NamedTuple):
    a: Any
    b: Any


@pytest.mark.parametrize(
    "tree",
    [
        (1.0, X),
        (np.float32(1), 2),
        (X, None),
        (X, (X, X)),
        (X, [X]),
        [X, X],
        (X,),
        (X, X, X),
        Pair(X, X),
        X,
        None,
        (X, Pair(X, X)),
        {"a": X, "b": X},
        (X, np.ma.masked_array(X)),
    ],
    ids=repr,
)
def test_a_flat_structure_is_taken_apart_as_any(tree):
    definition = flatten((0.0, 0.0))[1]
    assert is_flat(definition)
    found, wanted = flattened(tree, definition), flatten(tree)
    assert found[1] == wanted[1]
    assert len(found[0]) == len(wanted[0])
    assert all(a is b for a, b in zip(found[0], wanted[0], strict=True))


@pytest.mark.parametrize("tree", [X, None, [X, X], {"a": X}, (X, None), ((X,), X), Pair(X, X), (X, [X])])
def test_what_is_no_tuple_of_leaves_is_not_flat(tree):
    assert not is_flat(flatten(tree)[1])
