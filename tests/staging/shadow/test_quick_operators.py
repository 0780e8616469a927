"""Operators compare themselves at once with what is expected: each is told from its neighbours."""

import operator

import numpy as np
import pytest
from tests.staging.generated.both_ways import loop_over, measured, require_same, stages

import pullback as pb
from pullback.staging.shadow.shadow_run import ShadowRun

X = np.array([0.3, -0.7, 1.1, 0.2])
C = np.array([1.5, 0.5, 0.25, 2.0])
OPERATORS = (operator.add, operator.sub, operator.mul, operator.truediv)
OTHERS = {
    "another number": 0.75,
    "an integer": 2,
    "a scalar": np.float64(1.5),
    "a narrow scalar": np.float32(1.5),
    "an array": C,
    "an array with gaps": np.repeat(C, 2)[::2],
    "a narrow array": C.astype("f4"),
    "one element": C[:1],
    "True": True,
}


@pytest.mark.parametrize("reflected", [False, True], ids=["", "reflected"])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
def test_an_operand_of_another_kind(op, other, reflected):
    def body(k, u, x):
        v = np.tanh(u) + 1.5
        w = OTHERS[other] if k in (7, 8, 9) else 1.25
        v = op(w, v) if reflected else op(v, w)
        return np.tanh(v) * x

    require_same(loop_over(body), X, policies=(pb.SaveAll(), pb.Binomial(2)))
    assert stages()


@pytest.mark.parametrize("other", ["captured", "itself", "an earlier one", "a view"])
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
def test_another_handle(op, other):
    def body(k, u, x):
        v, w = np.tanh(u) + 1.5, np.cos(u) + 1.5
        given = {"captured": x, "itself": v, "an earlier one": u, "a view": w[::-1]}[other] if k in (7, 8) else w
        return np.tanh(op(v, given)) + x

    require_same(loop_over(body), X, policies=(pb.SaveAll(), pb.Binomial(2)))


@pytest.mark.parametrize(
    ("usual", "other"),
    [
        (operator.add, np.add),
        (lambda v, w: v + w, lambda v, w: w + v),
        (lambda v, w: v * 2.0, lambda v, w: 2.0 * v),
        (lambda v, w: -v, lambda v, w: +v),
        (lambda v, w: v**2, lambda v, w: v**3),
        (lambda v, w: v**2, lambda v, w: v**2.0),
        (lambda v, w: v[1:3], lambda v, w: v[0:2]),
        (lambda v, w: v[1], lambda v, w: v[True][0, 1]),
        (lambda v, w: v[1:2], lambda v, w: v[[1]]),
        (lambda v, w: v[..., 1], lambda v, w: v[1]),
        (lambda v, w: np.sin(v), lambda v, w: np.cos(v)),
        (np.maximum, lambda v, w: np.maximum(w, v)),
        (lambda v, w: np.sin(v), lambda v, w: np.sin(v, where=C > 1, out=np.zeros_like(v))),
        (operator.iadd, operator.isub),
        (lambda v, w: operator.iadd(v, 1.0), lambda v, w: operator.iadd(v, 1)),
        (lambda v, w: operator.iadd(v[1:], 1.0), lambda v, w: operator.iadd(v[:-1], 1.0)),
    ],
)
def test_an_operation_is_told_from_its_neighbour(usual, other):
    def body(k, u, x):
        v, w = np.sin(u), np.cos(u)
        found = (other if k in (7, 8) else usual)(v, w)
        return np.tanh(v + w * 0.3 + np.sum(found)) * x

    require_same(loop_over(body), X, policies=(pb.SaveAll(), pb.Recompute(3)))
    assert stages()


@pytest.mark.parametrize("place", [0, -1, slice(1, 3), (slice(None),), Ellipsis, [1, 1], C > 1, np.int64(2)])
def test_a_write_at_another_place(place):
    def body(k, u, x):
        v = np.sin(u) * x
        v[place if k in (7, 8) else 1] = u[0] * 0.5
        v[place if k in (7, 9) else 2] += 0.25
        return v

    require_same(loop_over(body), X, policies=(pb.SaveAll(), pb.Recompute(3)))
    assert stages()


def test_a_stale_view_is_derived_again():
    def body(k, u, x):
        v = np.sin(u) * x
        part = v[1:]
        inner = part[:2]
        v[2] = 0.5
        part += 1.0
        if k % 5 == 4:
            v[1] = u[0]
        return v + np.sum(inner * part[1:])

    require_same(loop_over(body), X)
    assert stages()


def test_common_operators_do_not_ask_the_shadow(monkeypatch):
    def body(k, u, x):
        v = np.sin(u) * C + 0.5 * u[::-1] - C
        v[1:] += u[:-1]
        v[0] = 0.25
        return -v / 3.0

    measured(loop_over(body), X, pb.SaveAll(), "numpy")
    asked, matching = [], ShadowRun._matching
    monkeypatch.setattr(ShadowRun, "_matching", lambda run, *call: asked.append(call) or matching(run, *call))
    measured(loop_over(body), X, pb.SaveAll(), "numpy")
    assert not asked
    measured(loop_over(lambda k, u, x: np.roll(body(k, u, x), 1)), X, pb.SaveAll(), "numpy")
    assert asked


CALLS = {
    "another type": (lambda v: np.sum(v, axis=0), lambda v: np.sum(v, axis=np.int64(0))),
    "True is no 1": (lambda v: np.sum(v, axis=1), lambda v: np.sum(v, axis=1, keepdims=True)[:, 0]),
    "a number as a truth": (lambda v: np.sum(v, keepdims=True), lambda v: np.sum(v, keepdims=1)),
    "another axis": (lambda v: np.sum(v, axis=0), lambda v: np.sum(v, axis=1)),
    "a tuple of axes": (lambda v: np.sum(v, axis=(0, 1)), lambda v: np.sum(v, axis=(1, 0))),
    "a method": (lambda v: v.sum(axis=0), lambda v: v.sum(axis=1)),
    "another function": (lambda v: np.sum(v, axis=0), lambda v: np.mean(v, axis=0)),
    "the order of a list": (lambda v: np.concatenate([v, v * 2.0]), lambda v: np.concatenate([v * 2.0, v])),
    "a longer list": (lambda v: np.concatenate([v, v]), lambda v: np.concatenate([v, v, v])),
    "a list, a tuple": (lambda v: np.concatenate([v, v]), lambda v: np.concatenate((v, v), axis=1)),
    "a dtype": (lambda v: np.sum(v, axis=0), lambda v: np.sum(v, axis=0, dtype=np.float32)),
    "an array among them": (lambda v: np.where(MASK, v, 0.0), lambda v: np.where(~MASK, v, 0.0)),
    "a number among them": (lambda v: np.where(MASK, v, 0.0), lambda v: np.where(MASK, v, -0.0) + 1.0),
    "a product": (lambda v: v @ v, lambda v: v @ v.T),
    "a product with an array": (lambda v: v @ MASK, lambda v: v @ MASK.T),
    "a product by an array": (lambda v: MASK @ v, lambda v: MASK * v),
    "a key": (lambda v: v[np.array([0, 1])], lambda v: v[np.array([1, 0])]),
    "a key of another width": (lambda v: v[np.array([0, 1])], lambda v: v[np.array([0, 1], "i1")]),
    "a mask as a key": (lambda v: v[np.array([0, 1])], lambda v: v[np.array([False, True])]),
    "a key as a list": (lambda v: v[np.array([0, 1]), :1], lambda v: v[[0, 1], :1]),
    "a place": (lambda v: v[np.array([1, 0]), 1], lambda v: v[np.array([1, 0]), True]),
    "powers": (lambda v: np.clip(v, -0.5, 0.5), lambda v: np.clip(v, -0.5, 0.25)),
    "out": (lambda v: np.add(v, 1.0), lambda v: np.add(v, 1.0, out=v)),
}
MASK = np.array([[True, False], [False, True]])


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_told_from_its_neighbour(name):
    usual, other = CALLS[name]

    def body(k, u, x):
        v = np.sin(u).reshape(2, 2)
        found = (other if k in (7, 8, 10) else usual)(v)
        return np.tanh(np.sum(found * 0.5) + u) * x + v.reshape(4)

    require_same(loop_over(body), X, policies=(pb.SaveAll(), pb.Recompute(3)))


@pytest.mark.parametrize(
    "other",
    [
        lambda v, w: v.__imul__(2),
        lambda v, w: v.__imul__(np.float64(2.0)),
        lambda v, w: v.__imul__(w),
        lambda v, w: v.__itruediv__(2.0),
        lambda v, w: v[1:].__imul__(2.0),
        lambda v, w: v * 2.0,
        lambda v, w: v[:1].__imul__(2.0),
        lambda v, w: operator.imul(v[0], 2.0),
        lambda v, w: v.__imul__(np.float32(2.0)),
    ],
)
@pytest.mark.parametrize("usual", [operator.imul, operator.itruediv])
def test_a_product_in_place_is_told_from_its_neighbour(usual, other):
    def body(k, u, x):
        v, w = np.sin(u), np.cos(u) + 1.5
        seen = v[1:3]
        found = other(v, w) if k in (7, 8) else usual(v, 2.0)
        return np.tanh(v + w * 0.3 + np.sum(found) + np.sum(seen)) * x

    require_same(loop_over(body), X, policies=(pb.SaveAll(), pb.Recompute(3)))


@pytest.mark.parametrize("size", [4, 1, 300])
def test_products_in_place_of_all_sizes(size):
    def body(k, u, x):
        v = u * x
        v *= 0.5
        w = v[::-1]
        w *= x
        v /= 1.5
        return v + np.sin(w)

    require_same(loop_over(body), np.linspace(0.1, 0.9, size), policies=(pb.SaveAll(), pb.Recompute(3)))


@pytest.mark.parametrize("size", [4, 300])
def test_an_array_that_changes_between_two_operations_of_a_step(size):
    table, scratch = np.linspace(-1, 1, 12 * size).reshape(12, size), np.empty(size)

    def body(k, u, x):
        scratch[:] = table[k]
        v = u * scratch
        v *= scratch
        scratch[::2] = 0.5
        w = scratch * v + np.where(scratch > 0.4, v, scratch)
        scratch[0] = -0.0
        return np.sin(w) + np.maximum(scratch, x) * 0.1

    require_same(loop_over(body), np.linspace(0.1, 0.9, size), policies=(pb.SaveAll(),))
    assert stages()


def test_a_key_that_changes_between_two_reads_of_a_step():
    places = np.array([0, 1])

    def body(k, u, x):
        places[:] = 0, 1
        v = u[places]
        places[:] = (2, 3) if k != 8 else (1, 3)
        w = u[places]
        return np.sin(u) * x + np.sum(v * w)

    require_same(loop_over(body), X)


@pytest.mark.parametrize("bound", [3.0, np.float64(3.0)], ids=["float", "scalar"])
@pytest.mark.parametrize("kind", ["read", "write", "increment"])
def test_a_bound_that_equals_an_integer_and_is_none_raises(kind, bound):
    def body(k, u):
        stop = bound if k == 9 else 3
        if kind == "write":
            u[:stop] = 0.5
        elif kind == "increment":
            u[:stop] += 0.5
        return np.sin(u) * np.sum(u[:stop])

    with pytest.raises(TypeError, match=r"integer|__index__"):
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 12, body, x, staging="numpy")))(X)


def test_bounds_of_other_integers():
    def body(k, u, x):
        stop = {7: True, 8: np.int64(1), 9: np.array(1)}.get(k, 1)
        v = np.tanh(u) + x
        v[:stop] += 0.5
        v[stop:] = np.cos(u)[stop:]
        return v * np.sum(u[:stop])

    require_same(loop_over(body), X)
