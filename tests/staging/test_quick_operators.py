"""Operators compare themselves at once with what is expected: each is told from its neighbours."""

import operator

import numpy as np
import pytest
from tests.staging.both_ways import loop_over, measured, require_same, stages

import pullback as pb
from pullback.staging import shadow

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
    asked, matching = [], shadow.ShadowRun._matching
    monkeypatch.setattr(shadow.ShadowRun, "_matching", lambda run, *call: asked.append(call) or matching(run, *call))
    measured(loop_over(body), X, pb.SaveAll(), "numpy")
    assert not asked
    measured(loop_over(lambda k, u, x: np.roll(body(k, u, x), 1)), X, pb.SaveAll(), "numpy")
    assert asked
