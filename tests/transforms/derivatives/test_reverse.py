"""``grad`` as such: fan-out, independence, nesting, arguments, layouts."""

import numpy as np
import pytest

import pullback as pb

X = np.array([0.3, -0.7, 1.1])


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
