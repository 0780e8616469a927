"""Arrays without values stand for views, and for what the graph and the table of saved values show."""

import numpy as np
import pytest
from tests.primitives.tables import CASES

import pullback as pb
from pullback.shapes_only.hollow_arrays import hollow
from pullback.words.specs import buffer_of
from pullback.words.structures import flatten, unflatten


def is_float(leaf):
    return isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc"


def standing_for(leaf):
    """A view of a hollow array where the leaf is a view of a larger one."""
    root = buffer_of(leaf)
    whole = hollow(root.shape, root.dtype, like=root)
    if root is leaf:
        return whole
    offset = leaf.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return np.ndarray.__new__(type(whole), leaf.shape, leaf.dtype, whole, offset, leaf.strides)


VIEWS = [case for case in CASES if any(is_float(leaf) and leaf.base is not None for leaf in flatten(case.args)[0])]
SHARE = 3


def test_what_is_a_view_is_planned_to_the_byte_as_a_view():
    told, n = [], 0
    for case in VIEWS[::SHARE]:
        leaves, definition = flatten(list(case.args))
        shapes = unflatten(definition, [standing_for(leaf) if is_float(leaf) else leaf for leaf in leaves])
        try:
            plan = pb.plan(case.fn, *shapes)
        except pb.ShapesOnlyError:
            continue
        n += 1
        if plan.bytes_by_reason != pb.plan(case.fn, *case.args).bytes_by_reason:
            told.append(case.name)
    assert told == []
    assert n > 30 // SHARE
    x = np.linspace(0.1, 1.0, 24)
    assert pb.plan(np.sin, pb.spec((24,))[::2]).peak_bytes == pb.plan(np.sin, x[::2]).peak_bytes == x.nbytes


def marked(c):
    u = np.zeros_like(c)
    for k in pb.steps(12):
        u = u + 0.1 * np.sin(c * u + k)
    return np.sum(u * u)


def looped(c):
    return np.sum(pb.scan(lambda u, k: (u + 0.1 * np.sin(c * u + k), np.sum(u)), c, np.arange(12.0))[0])


@pytest.mark.parametrize("f", [marked, looped, lambda x: np.sum(np.sin(x[1:]) * x[:-1])])
@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(3), pb.Recompute()], ids=str)
def test_the_table_and_the_graph_are_those_of_data(f, policy):
    x = np.full((50, 4), 0.5)
    assert pb.saved(f, pb.spec(x.shape), policy=policy).to_dict() == pb.saved(f, x, policy=policy).to_dict()
    assert pb.record(f, pb.spec(x.shape)).to_dict() == pb.record(f, x).to_dict()


def test_cotangents_of_nothing_are_refused():
    with pytest.raises(pb.ShapesOnlyError, match="a value is needed"):
        pb.record(lambda x: np.sum(np.sin(x)), pb.spec((3,)), cotangents=True)


def test_a_number_has_no_elements():
    with pytest.raises(pb.ShapesOnlyError, match="a value is needed"):
        pb.plan(lambda x: np.piecewise(x, x > 0, [np.sin, np.cos]), pb.spec(()))
