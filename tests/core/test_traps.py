"""Traps of tracing as such: keywords, fan-out, independence, nesting, what a tracer must answer to, structures."""

import copy
import math
import operator
from typing import Any, NamedTuple

import attrs
import numpy as np
import pytest
from tests.primitives.case import since

import pullback as pb
from pullback.words.errors import PullbackError

X = np.array([0.3, -0.7, 1.1])


@pytest.mark.parametrize(
    ("by_keyword", "by_position"),
    [
        (lambda x: np.clip(x, a_min=x[1] * 0.1, a_max=1.0), lambda x: np.clip(x, x[1] * 0.1, 1.0)),
        (lambda x: np.sum(a=x, axis=0), lambda x: np.sum(x, 0)),
        *since("2.1.0", (lambda x: np.reshape(x, shape=(3, 1)), lambda x: np.reshape(x, (3, 1)))),
        (lambda x: np.concatenate([x, x], axis=0), lambda x: np.concatenate((x, x), 0)),
        (lambda x: np.stack(arrays=[x, x * x], axis=1), lambda x: np.stack([x, x * x], 1)),
        (lambda x: np.cumsum(a=x), np.cumsum),
        (lambda x: np.take(a=x, indices=[0, 0, 2]), lambda x: np.take(x, [0, 0, 2])),
        (lambda x: np.transpose(a=x[None], axes=(1, 0)), lambda x: np.transpose(x[None], (1, 0))),
    ],
)
def test_a_tracer_by_keyword(by_keyword, by_position):
    def loss(f):
        return lambda x: np.sum(np.sin(f(x)) * np.arange(1.0, 1.0 + np.size(pb.value(f(x)))).reshape(np.shape(f(x))))

    expected = pb.grad(loss(by_position))(X)
    assert np.any(expected != 0)
    np.testing.assert_array_equal(pb.grad(loss(by_keyword))(X), expected)


def test_fan_out_and_diamonds():
    assert pb.grad(lambda x: sum([x] * 1000))(2.0) == 1000.0
    assert pb.grad(lambda x, y: x * y, argnums=(0, 1))(3.0, 3.0) == (3.0, 3.0)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x * x + x * x))(X), 4 * X)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(np.subtract(x, x)))(X), np.zeros(3))
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(np.maximum(x, x)))(X), np.ones(3))

    def diamonds(x):
        for _ in range(40):
            x = 0.5 * x + 0.5 * x
        return np.sum(x)

    np.testing.assert_array_equal(pb.grad(diamonds)(X), np.ones(3))


def test_one_value_used_a_hundred_thousand_times():
    def f(x):
        total = 0.0
        for _ in range(100_000):
            total = total + x
        return total

    assert pb.grad(f)(np.float64(1.5)) == 100_000.0


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: np.sum(y),
        lambda x, y: 3.0,
        lambda x, y: np.float64(2.0),
        lambda x, y: np.sum(np.ones(3)),
        lambda x, y: np.sum(np.sign(np.real(x))),
    ],
)
@pytest.mark.parametrize("x", [X, X.astype(np.float32), 2.0, np.array(1.0), X + 1j, np.zeros((0, 2))])
@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(1)], ids=repr)
def test_output_independent_of_the_input(f, x, policy):
    gradient = pb.grad(f, policy=policy)(x, X)
    assert np.shape(gradient) == np.shape(x)
    assert np.asarray(gradient).dtype == np.asarray(x).dtype
    assert not np.any(gradient)


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(1)], ids=repr)
def test_identity(policy):
    assert pb.grad(lambda x: x, policy=policy)(3.0) == 1.0
    out, pull = pb.vjp(lambda x: x, X, policy=policy)
    ct = np.array([1.0, 2.0, 3.0])
    assert out is not X
    assert pull(ct)[0] is not ct
    np.testing.assert_array_equal(pull(ct)[0], ct)


def test_perturbations_are_not_confused():
    assert pb.grad(lambda x: x * pb.grad(lambda y: x + y)(1.0))(1.0) == 1.0
    assert pb.grad(lambda x: pb.grad(lambda y: x * y * y)(3.0))(2.0) == 6.0
    assert pb.grad(lambda x: x * pb.grad(lambda y: y * pb.value(x))(2.0))(5.0) == 5.0
    third = pb.grad(pb.grad(pb.grad(lambda x: np.sin(x) * x**3)))(0.7)
    x = 0.7
    np.testing.assert_allclose(
        third, 6 * np.sin(x) + 18 * x * np.cos(x) - 9 * x**2 * np.sin(x) - x**3 * np.cos(x), rtol=1e-12
    )


def test_a_shared_closure_in_nested_gradients():
    def f(x):
        y = np.sin(x)
        inner = pb.grad(lambda z: np.sum(z * y * x))
        y2 = inner(x)  # d/dz (z y x) = y x, traced by the outer gradient
        return np.sum(y2 * x)

    np.testing.assert_allclose(pb.grad(f)(X), np.cos(X) * X**2 + 2 * np.sin(X) * X, rtol=1e-12)


def test_an_inner_write_in_nested_gradients():
    def inner(y, x):
        z = y * x
        z[1:] += z[:-1] * y[0]
        z[0] = x[2]
        return np.sum(z * z)

    def plain(x):  # d inner / dy at y = x, by hand: z1 = y1 x1 + y0 x0 y0, z2 = y2 x2 + y1 x1 y0
        z1, z2 = x[1] ** 2 + x[0] ** 3, x[2] ** 2 + x[1] ** 2 * x[0]
        return 2 * (z1 * 2 * x[0] ** 2 + z2 * x[1] ** 2) + 2 * (z1 * x[1] + z2 * x[1] * x[0]) + 2 * z2 * x[2]

    np.testing.assert_allclose(np.sum(pb.grad(inner)(X, X)), plain(X), rtol=1e-12)
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(pb.grad(inner)(x, x)))(X), pb.grad(plain)(X), rtol=1e-12)


ANSWERS = {
    "len": len,
    "iter": lambda x: sum(v * k for k, v in enumerate(x)),
    "unpack": lambda x: operator.add(*list(x)[:2]),
    "sum": sum,
    "max": max,
    "min": min,
    "abs": lambda x: np.sum(abs(x)),
    "pow": lambda x: np.sum(pow(x, 2)),
    "divmod": lambda x: np.sum(divmod(x, 0.4)[1]),
    "neg": lambda x: np.sum(-x + (+x) * 2),
    "floordiv": lambda x: np.sum((x // 0.4) * x),
    "mod": lambda x: np.sum(x % 0.4),
    "comparison": lambda x: np.sum(x * (x > 0)) + np.sum(x * (x > 0.2)) + np.sum(x * (x != 5)),
    "bool": lambda x: x[0] * 2 if x[0] > 0 else x[0],
    "copy": lambda x: np.sum(copy.copy(x) * copy.deepcopy(x) * x.copy()),
    "real": lambda x: np.sum(x.real * 2),
    "T": lambda x: np.sum(x[None].T * X),
    "item": lambda x: x.item(1) * x.item(0),
    "sorted index": lambda x: x[np.argsort(pb.value(x))][0],
    "argsort": lambda x: np.sum(x[np.argsort(x)] * np.arange(3)),
    "argmax": lambda x: x[np.argmax(x)] ** 2,
    "shape": lambda x: np.sum(x) * x.shape[0] * x.ndim * x.size * x.itemsize,
    "methods": lambda x: x.sum() + x.mean() + x.max() + x.min() + x.prod() + x.std() + x.var() + x.cumsum()[1],
    "astype": lambda x: np.sum(x.astype(np.float32).astype(float) * 2),
    "clip": lambda x: np.sum(x.clip(-0.5, 0.5) * 2),
    "flatten": lambda x: np.sum(x[None].flatten() * X),
    "take": lambda x: np.sum(x.take([0, 0, 1])),
    "swapaxes": lambda x: np.sum(x[None].swapaxes(0, 1) * X),
    "in": lambda x: x[0] * 2 if pb.value(x)[0] in pb.value(x) else x[1],
    "format": lambda x: x[0] * len(f"{pb.value(x)[0]:.2f}"),
    "round": lambda x: np.sum(np.round(x) * x),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_tracer_answers_as_an_array(name):
    f = ANSWERS[name]
    value, gradient = pb.value_and_grad(lambda x: f(x) * 1.0)(X)
    assert value == f(X)
    for k in range(3):
        e = np.zeros(3)
        e[k] = 1e-6
        np.testing.assert_allclose(
            gradient[k], (f(X + e) - f(X - e)) / 2e-6, rtol=1e-4, atol=1e-1 if name == "astype" else 1e-6
        )


def test_text_of_a_tracer():
    seen = []

    def f(x):
        seen.extend([repr(x), str(x), f"{x}", f"{x[0]:.2f}", f"{x[0] > 0}"])
        return np.sum(x)

    pb.grad(f)(X)
    assert seen[0] == "<tracer of float64[3]>"
    assert seen[3] == "0.30"
    assert seen[4] == "True"


@pytest.mark.parametrize("call", [math.floor, math.exp, range, float, int, complex, lambda t: [1, 2][t], np.float64])
def test_what_a_traced_float_cannot_be(call):
    with pytest.raises(PullbackError, match=r"would drop the derivative \(at .*test_traps\.py:\d+\).*pullback\.value"):
        pb.grad(lambda x: np.sum(call(x[0]) * x))(X)


def test_a_rounded_float_has_derivative_zero():
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(round(x[2]) * x))(X), np.ones(3))


def test_comparisons_give_plain_booleans():
    def f(x):
        mask = x > 0
        assert type(mask) is np.ndarray
        assert type(np.isfinite(x)) is np.ndarray
        assert type(np.argmax(x)) is np.intp or isinstance(np.argmax(x), np.integer)
        return np.sum(x[mask])

    np.testing.assert_array_equal(pb.grad(f)(X), [1, 0, 1])


def test_where_masks_infinities():
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            pb.grad(lambda x: np.sum(np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0)))(X), [1 / 0.3, 0, 1 / 1.1]
        )
        x = np.array([0.0, -1.0, 2.0])
        np.testing.assert_array_equal(pb.grad(lambda x: np.sum(np.where(x > 0, np.log(x), 0.0)))(x), [0, 0, 0.5])
        np.testing.assert_array_equal(
            pb.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)))(x), [0, 0, 0.5 / np.sqrt(2)]
        )


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


def test_argnums_and_keywords():
    def f(x, y, *, scale=1.0):
        return np.sum(x * y) * scale

    np.testing.assert_array_equal(pb.grad(f, argnums=-1)(X, X * 2, scale=3.0), 3 * X)
    gx, gy = pb.grad(f, argnums=(1, 0))(X, X * 2)
    np.testing.assert_array_equal(gx, X)
    np.testing.assert_array_equal(gy, X * 2)
    assert pb.grad(f).__name__ == "f"


def test_a_gradient_of_one_array_given_twice():
    x = X.copy()
    gx, gy = pb.grad(lambda a, b: np.sum(a * b * b), argnums=(0, 1))(x, x)
    np.testing.assert_allclose(gx, x * x)
    np.testing.assert_allclose(gy, 2 * x * x)


@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        lambda a: a[::-1],
        lambda a: np.broadcast_to(a[:1], (3, 4)),
        lambda a: np.repeat(a, 2, 1)[:, ::2],
        lambda a: a.T,
    ],
)
def test_layouts_of_inputs_and_cotangents(layout):
    a = layout(np.linspace(0.1, 1.2, 12).reshape(3, 4))
    dense = np.array(a, order="C")
    for f in (lambda x: np.sin(x) * x, lambda x: x.T.reshape(-1)[::2], lambda x: np.cumsum(x, axis=0)[1:]):
        out, pull = pb.vjp(f, a)
        ct = np.linspace(-1, 1, out.size).reshape(out.shape)
        for seed in (ct, np.asfortranarray(ct), ct[::-1].copy()[::-1]):
            np.testing.assert_allclose(pull(seed)[0], pb.vjp(f, dense)[1](ct)[0], rtol=1e-14)
        frozen = np.broadcast_to(ct.ravel()[:1].reshape((1,) * ct.ndim), out.shape)
        np.testing.assert_allclose(pull(frozen)[0], pb.vjp(f, dense)[1](np.array(frozen))[0], rtol=1e-14)
