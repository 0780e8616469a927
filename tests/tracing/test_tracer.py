"""What a tracer must answer to: keywords, an array's attributes, text, numbers, comparisons."""

import copy
import math
import operator

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
    "copy": lambda x: np.sum(copy.copy(x) * x * x.copy()),
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
    with pytest.raises(PullbackError, match=r"would drop the derivative \(at .*test_tracer\.py:\d+\).*pullback\.value"):
        pb.grad(lambda x: np.sum(call(x[0]) * x))(X)


def test_a_rounded_float_has_derivative_zero():
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(round(x[2]) * x))(X), np.ones(3))
    assert pb.grad(lambda t: [1.0, 2.0, 3.0][round(t)] * t)(1.7) == 3.0
    assert pb.grad(lambda t: round(t, 1) * t)(1.77) == 1.8


def test_comparisons_give_plain_booleans():
    def f(x):
        mask = x > 0
        assert type(mask) is np.ndarray
        assert type(np.isfinite(x)) is np.ndarray
        assert type(np.argmax(x)) is np.intp or isinstance(np.argmax(x), np.integer)
        return np.sum(x[mask])

    np.testing.assert_array_equal(pb.grad(f)(X), [1, 0, 1])
