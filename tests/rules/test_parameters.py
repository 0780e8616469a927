"""Keyword parameters of every kind: the rule reads what the forward read, whatever is changed later."""

import copy
import random
from collections import OrderedDict, deque
from dataclasses import dataclass
from functools import partial
from threading import Lock
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import pullback as pb

X = np.array([0.5, 1.0, -2.0])
POLICIES = (pb.SaveAll(), pb.Recompute(2), pb.Binomial(2))


class Pair(NamedTuple):
    first: object
    second: object


@dataclass
class Grid:
    cells: object
    more: object


class Model:
    """A user's object, whose ``==`` gives arrays, with parts that cannot be pickled."""

    def __init__(self, part):
        self.part, self.kernel, self.lock = part, lambda u: u, Lock()

    def __eq__(self, other):
        return np.ones(2) == 1

    __hash__ = None


class Table(dict):
    pass


# ------------------------------------------------------------------------------------------------- drawn, then changed
LEAVES = st.one_of(
    st.floats(-2, 2), st.integers(-3, 3), st.none(), st.just("text"), st.booleans(),
    st.lists(st.floats(-2, 2), min_size=1, max_size=4).map(np.array),
    st.lists(st.floats(-2, 2), min_size=1, max_size=3).map(lambda v: np.array(v, np.float32)[::-1]),
    st.lists(st.floats(-2, 2), min_size=1, max_size=3).map(lambda v: csr_array(np.diag(v))),
    st.lists(st.floats(-2, 2), min_size=1, max_size=2).map(lambda v: np.array([*v, None], object)),
    st.sets(st.integers(0, 5), max_size=3), st.binary(max_size=3).map(bytearray),
    st.lists(st.floats(-2, 2), min_size=1, max_size=3).map(lambda v: memoryview(np.array(v))),
    st.lists(st.floats(-2, 2), min_size=1, max_size=3).map(lambda v: np.array(v).view(np.recarray)),
)  # fmt: skip


def containers(inner):
    return st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner, inner),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.lists(inner, max_size=2).map(deque), st.tuples(inner, inner).map(lambda v: Pair(*v)),
        st.tuples(inner, inner).map(lambda v: Grid(*v)), inner.map(Model), inner.map(lambda v: SimpleNamespace(part=v)),
        inner.map(lambda v: Table(a=v)), st.lists(inner, max_size=1).map(lambda v: MappingProxyType({"a": v})),
        inner.map(lambda v: OrderedDict(b=v)), inner.map(lambda v: partial(max, v)),
    )  # fmt: skip


TREES = st.recursive(LEAVES, containers, max_leaves=6)


def total(tree):
    """A number that depends on all that a tree holds."""
    if isinstance(tree, memoryview):
        return float(np.sum(tree))
    if isinstance(tree, np.ndarray):
        return sum(total(v) for v in tree.ravel().tolist()) if tree.dtype.hasobject else float(np.sum(tree))
    if isinstance(tree, csr_array):
        return float(tree.sum())
    if isinstance(tree, dict | MappingProxyType):
        return sum(total(v) for v in tree.values())
    if isinstance(tree, list | tuple | deque | set | bytearray):
        return sum(map(total, tree))
    if isinstance(tree, partial):
        return total(tree.args)
    if isinstance(tree, Grid):
        return total(tree.cells) + total(tree.more)
    if isinstance(tree, Model | SimpleNamespace):
        return total(tree.part)
    return float(tree) if isinstance(tree, int | float) else 0.25


def spoil(tree):
    """Change in place whatever in a tree can be changed."""
    if isinstance(tree, np.ndarray):
        tree[...] = 17.0
    elif isinstance(tree, memoryview):
        tree[0] = 17.0
    elif isinstance(tree, MappingProxyType):
        spoil(tree.get("a", []))
    elif isinstance(tree, csr_array):
        tree.data[:] = 17.0
    elif isinstance(tree, partial):
        spoil(tree.args)
    elif isinstance(tree, set):
        tree.add(99)
    elif isinstance(tree, bytearray):
        tree.extend(b"zzz")
    elif isinstance(tree, tuple):
        for v in tree:
            spoil(v)
    elif isinstance(tree, Grid | Model | SimpleNamespace):
        names = ["cells", "more"] if isinstance(tree, Grid) else ["part"]
        for name in names:
            spoil(getattr(tree, name))
            setattr(tree, name, 17.0)
    elif isinstance(tree, dict):
        for v in tree.values():
            spoil(v)
        tree["z"] = 17.0
    elif isinstance(tree, list | deque):
        for v in tree:
            spoil(v)
        tree.append(17.0)


@pb.primitive
def scaled(x, *, by):
    return x * (1 + total(by))


@scaled.vjp("x")
def _(ct, by):
    return ct * (1 + total(by))


@settings(max_examples=200, deadline=None)
@given(TREES, st.sampled_from(POLICIES), st.sampled_from(["straight", "marked", "checkpoint", "loop"]))
def test_a_parameter_that_is_changed_after_the_call(tree, policy, kind):
    factor = 1 + total(tree)

    def f(x):
        if kind == "checkpoint":
            y = pb.checkpoint(lambda u: scaled(u, by=tree))(x)
        elif kind == "marked":
            y = x
            for _ in pb.steps(3):
                y = y + 0.1 * scaled(x, by=tree)
        elif kind == "loop":
            y = pb.fori_loop(0, 3, lambda k, u: u + 0.1 * scaled(x, by=tree), x)
        else:
            y = scaled(x, by=tree)
        spoil(tree)
        return np.sum(y)

    expected = 1 + 0.3 * factor if kind in ("marked", "loop") else factor
    try:
        gradient = pb.grad(f, policy=policy)(X)
    except pb.ReplayError:  # the body was called again, and read what was changed
        assert kind == "loop"
        assert not isinstance(policy, pb.SaveAll)
    else:
        np.testing.assert_allclose(gradient, np.full(3, expected), rtol=1e-12, atol=1e-12)


def test_an_object_that_steps_of_a_loop_share_is_copied_once_for_all():
    seen = []
    p = pb.primitive(lambda x, *, by: (seen.append(by), x * by.part)[1], name="seeing")
    p.vjp("x", fn=lambda ct, by: (seen.append(by), ct * by.part)[1])
    grid = Model(np.full(3, 2.0))
    _, pull = pb.vjp(lambda x: pb.fori_loop(0, 4, lambda k, u: p(u, by=grid), x), X)
    grid.part[:] = 17.0
    np.testing.assert_array_equal(pull(np.ones(3))[0], np.full(3, 16.0))
    assert len({id(by) for by in seen}) == 1
    assert seen[0] is not grid


def test_a_default_that_is_changed_after_the_call():
    weights = np.ones(3)
    p = pb.primitive(lambda x, *, needed_one, w=weights: x * w * needed_one, name="weighted")
    p.vjp("x", fn=lambda ct, w, needed_one: ct * w * needed_one)

    def f(x):
        y = p(x, needed_one=2.0)
        weights[:] = 7.0
        return np.sum(y)

    np.testing.assert_array_equal(pb.grad(f)(X), np.full(3, 2.0))


def test_an_equal_parameter_is_held_once():
    seen = []
    p = pb.primitive(lambda x, *, by: seen.append(by) or x * 1.0, name="seen")
    p.vjp("x", fn=lambda ct: ct)
    big, matrix = np.ones(1000), Model(np.ones(3))

    def f(x):
        for _ in range(3):
            x = p(p(x, by=big), by=matrix)
        return np.sum(x)

    pb.grad(f)(X)
    assert np.shares_memory(seen[0], seen[2]) and not np.shares_memory(seen[0], big)
    assert seen[1] is seen[3] is not matrix and seen[1].lock is matrix.lock
    assert not seen[0].flags.writeable


def test_what_stands_for_itself():
    kinds = (np.sin, total, np, Grid, np.float64, np.dtype("f4"), ..., Lock(), slice(0, 2), range(3), 1 + 2j)
    seen = []
    p = pb.primitive(lambda x, *, by: seen.append(by) or x * 1.0, name="itself")
    p.vjp("x", fn=lambda ct: ct)
    pb.grad(lambda x: np.sum([p(x[0], by=by) for by in kinds][-1]))(X)
    assert seen == list(kinds)
    assert all(a is b or isinstance(b, slice | range | complex) for a, b in zip(seen, kinds, strict=True))


def test_a_method_of_an_object_that_is_changed():
    model = SimpleNamespace(k=2.0)

    class Law:
        def __init__(self):
            self.k = 2.0

        def apply(self, u):
            return self.k * u

    law = Law()
    p = pb.primitive(lambda x, *, law: law(x), name="law")
    p.vjp("x", fn=lambda ct, law: law(ct))

    def f(x):
        y = p(x, law=law.apply)
        law.k = 9.0
        return np.sum(y)

    np.testing.assert_array_equal(pb.grad(f)(X), np.full(3, model.k))


# -------------------------------------------------------------------------------------------------------------- refused
WITHIN = {
    "itself": lambda v: v,
    "list": lambda v: [1.0, v],
    "tuple": lambda v: (v,),
    "dict": lambda v: {"a": {"b": v}},
    "dataclass": lambda v: Grid(v, 0),
    "object": Model,
    "dict of its own class": lambda v: Table(a=v),
    "partial": lambda v: partial(max, v),
    "method": lambda v: Model(v).__eq__,
    "array of objects": lambda v: np.array([None, SimpleNamespace(v=v)], object),
}
ONCE = {
    "tracer": lambda x: x,
    "Generator": lambda _: np.random.default_rng(0),
    "RandomState": lambda _: np.random.RandomState(0),
    "Random": lambda _: random.Random(0),  # noqa: S311
    "generator": lambda _: (i for i in range(3)),
    "list_iterator": lambda _: iter([1.0]),
}


@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("what", ONCE)
def test_what_no_parameter_can_be(what, within):
    by = lambda x: WITHIN[within](ONCE[what](x))  # noqa: E731
    match = rf"the parameter 'by' of scaled holds a .*{what}.*called at .*(operand|tuple\(\.\.\.\))"
    looped = lambda x: pb.fori_loop(0, 2, lambda _, u: scaled(u, by=by(u)), x)  # noqa: E731
    for f in (lambda x: scaled(x, by=by(x)), looped):
        with pytest.raises(pb.ConversionError, match=match):
            pb.grad(lambda x, f=f: np.sum(f(x)))(X)


@pytest.mark.parametrize("within", ["itself", "list", "tuple", "dict", "dataclass"])
def test_a_tracer_beside_plain_operands(within):
    with pytest.raises(pb.ConversionError, match=r"'by' of scaled holds a tracer.*operand"):
        pb.grad(lambda x: np.sum(scaled(X, by=WITHIN[within](x))))(X)


def test_a_tracer_of_a_trace_around():
    with pytest.raises(pb.ConversionError, match=r"'by' of scaled holds a tracer"):
        pb.grad(lambda y: np.sum(pb.grad(lambda x: np.sum(scaled(x, by=[y])))(X)))(X)


def test_the_remedies_work():
    draws = np.random.default_rng(0).normal(size=3)
    times = pb.primitive(lambda x, by: x * by, name="times")
    times.vjp("x", fn=lambda ct, by: ct * by)
    times.vjp("by", fn=lambda ct, x: ct * x)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(times(x, draws)))(X), draws)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(times(x, x)))(X), 2 * X)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(scaled(x, by=tuple(i for i in [2.0]))))(X), np.full(3, 3.0))
    value = pb.grad(lambda x: np.sum(scaled(x, by=pb.value(x))))(X)
    np.testing.assert_allclose(value, np.full(3, 1 + np.sum(X)))


def test_a_parameter_that_the_forward_writes_into():
    p = pb.primitive(lambda x, *, work: np.multiply(x, 2, out=work), name="double")
    p.vjp("x", fn=lambda ct: 2 * ct)
    with pytest.raises(pb.RuleError, match=r"the forward of double wrote into its parameter 'work' \(called at"):
        pb.grad(lambda x: np.sum(p(x, work=np.empty(3))))(X)
    with pytest.raises(pb.CheckError, match=r"mutated parameter: the forward of double wrote into .*'work'"):
        pb.testing.check_primitive(p, X, work=np.empty(3))


def test_defaults_where_operands_are_named():
    p = pb.primitive(lambda x, *, k=2.0: x * k, name="times", operands=("x",), params=("k",))
    p.vjp("x", fn=lambda ct, k: ct * k)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(p(x)))(X), np.full(3, 2.0))
    q = pb.primitive(partial(lambda x, **given: x * given.get("k", 2.0)), name="any", operands=("x",), params=("k",))
    q.vjp("x", fn=lambda ct, k: ct * k)
    with pytest.raises(pb.RuleError, match=r"any got no 'k' \(called at .*pass it"):
        pb.grad(lambda x: np.sum(q(x)))(X)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(q(x, k=3.0)))(X), np.full(3, 3.0))


def test_a_copy_is_what_the_original_is():
    tree = {"b": [np.arange(3.0), Grid(1, (2, "x"))], "a": Pair(np.float32(1), {1, 2})}
    seen = []
    p = pb.primitive(lambda x, *, by: seen.append(by) or x * 1.0, name="seen")
    p.vjp("x", fn=lambda ct: ct)
    pb.grad(lambda x: np.sum(p(x, by=tree)))(X)
    assert str(seen[0]) == str(tree) and list(seen[0]) == list(tree) and seen[0] is not tree
    assert copy.deepcopy(seen[0])["a"] == tree["a"]
