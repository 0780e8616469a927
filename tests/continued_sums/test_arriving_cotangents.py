"""Reverse functions that go on with cotangents: the bits of the function as it is, whatever has come from after a
call."""

import numpy as np
import pytest

import pullback as pb
from pullback.continued_sums import arriving_cotangents
from pullback.staging.generated import shelf

X, W = np.array([0.3, -0.7, 1.1, 0.2]), np.array([1.3, 0.7, -0.1, 0.9])


@pytest.fixture(autouse=True)
def nothing_is_known():
    shelf.forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arriving_cotangents, "PAYS", 4)
        yield
    shelf.forget()


def products(x, w):
    return x * x * w + np.sin(x) * w


def by_place(x, w):
    return x[0] * x[1] * w + x[1:].sum() * x[:3] @ w[:3]


def written(x, w):
    out = np.zeros_like(x)
    out[1:] = x[:-1] * w[1:]
    out[0] += x[3] * w[0] * w[1]
    return out * x


def matrices(x, w):
    m = x.reshape(2, 2)
    return (m @ m.T @ w.reshape(2, 2)).ravel() * w


def with_poles(x, w):
    return np.sqrt(x * x * w * w) / (x * w) + np.where(x > 0, np.log(np.abs(x)), 0.0) * w


def two_results(x, w):
    return x * w * w, np.sum(x * x) * w[0] * w[1]


FUNCTIONS = (products, by_place, written, matrices, with_poles, two_results)


def again_and_again(f, n=8):
    """A program in which both arguments are used before, between and after the calls."""

    def loss(x, w):
        total, y = np.sum(x) * w[0], x
        for _ in range(n):
            out = f(y, w)
            out = out[0] + out[1] if type(out) is tuple else out
            total = total + np.sum(y * out) * w[1] + y[2]
            y = y + 0.1 * np.tanh(out)
        return total + np.sum(y * w)

    return pb.value_and_grad(loss, argnums=(0, 1))


def bits(found):
    value, gradients = found
    return [(part.dtype, part.shape, part.strides, part.tobytes()) for part in map(np.asarray, (value, *gradients))]


def onward_of(f):
    [exits] = f.__pullback_staged__.exits.values()
    return [onward for onward in exits.arriving.by_pattern.values() if onward.generated is not None]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_bits_are_those_without_the_decorator(f, dtype):
    staged = pb.staged(f)
    for k in range(3):
        x, w = (X + k).astype(dtype), (W * (k + 1)).astype(dtype)
        with np.errstate(all="ignore"):
            assert bits(again_and_again(staged)(x, w)) == bits(again_and_again(f)(x, w))
    assert any(onward.n_compared == arriving_cotangents.COMPARED for onward in onward_of(staged))


@pytest.mark.parametrize("special", [np.nan, np.inf, -0.0, 0.0, 1e308, 5e-324])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_that_few_have(f, special, monkeypatch):
    monkeypatch.setattr(arriving_cotangents, "COMPARED", 0)
    staged = pb.staged(f)
    again_and_again(staged)(X, W)
    again_and_again(staged)(X, W)
    x, w = X.copy(), W.copy()
    x[1] = w[3] = special
    with np.errstate(all="ignore"):
        assert bits(again_and_again(staged)(x, w)) == bits(again_and_again(f)(x, w))


def test_derivatives_within_derivatives():
    def potential(x, w):
        return np.sum(np.sin(x) * w * w) + x[0] * x[1] * w[0]

    def path(force):
        def last(x, w):
            v = np.zeros(4)
            for _ in range(10):
                v = v - 0.1 * force(x, w)
                x = x + 0.1 * v
            return np.sum(x * x)

        return pb.value_and_grad(last, argnums=(0, 1))

    staged = path(pb.grad(pb.staged(potential)))
    for k in range(3):
        with pb.using(staging="off"):
            wanted = bits(path(pb.grad(potential))(X + k, W))
        assert bits(staged(X + k, W)) == wanted


def test_what_gives_other_bytes_is_not_used(monkeypatch):
    computed = arriving_cotangents.Onward.computed
    monkeypatch.setattr(arriving_cotangents.Onward, "computed", lambda *args: [2.0 * ct for ct in computed(*args)])
    staged = pb.staged(products)
    for _ in range(2):
        assert bits(again_and_again(staged)(X, W)) == bits(again_and_again(products)(X, W))
    [exits] = staged.__pullback_staged__.exits.values()
    assert any(onward.over for onward in exits.arriving.by_pattern.values())
    assert not onward_of(staged)


def test_large_sums_are_left_to_the_sweep():
    def large(x, w):
        return x * x * w

    staged = pb.staged(large)
    x, w = np.linspace(0.0, 1.0, 20_000), np.linspace(1.0, 2.0, 20_000)
    for _ in range(2):
        assert bits(again_and_again(staged)(x, w)) == bits(again_and_again(large)(x, w))
    assert not onward_of(staged)


def test_what_goes_on_is_no_array_of_somebody_else():
    """A cotangent that goes on is added to in place where nobody else has it: here two values share what comes."""
    staged = pb.staged(lambda x, w: (x * x + x) * (w * w + w))

    def loss(f):
        def of(x, w):
            total = 0.0
            for _ in range(8):
                total = total + np.sum(f(x, w)) + np.sum(x + w) + np.sum((x + w) * 3.0)
            return total

        return pb.value_and_grad(of, argnums=(0, 1))

    for _ in range(2):
        assert bits(loss(staged)(X, W)) == bits(loss(staged.__wrapped__)(X, W))
