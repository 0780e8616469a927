"""Sums of tangents and of cotangents are made in place only where nobody can tell."""

import numpy as np
import pytest

import pullback as pb
from pullback.rules import unbroadcast
from pullback.rules.cotangent_sums import added, takes
from pullback.rules.unbroadcast import SHORT, adds_in_order, line_sums, summed
from pullback.testing import check_grads
from pullback.words.specs import spec_of

RNG = np.random.default_rng(0)
SQUARE = RNG.normal(size=(5, 5))
ALONG = RNG.normal(size=(5, 5))
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "backwards": lambda x: x[::-1],
    "strided": lambda x: np.repeat(x, 2, 1)[:, ::2],
}
POLICIES = (None, pb.Recompute(2), pb.Binomial(2), pb.Binomial(1))
"""None is save-all."""


def read_often(x):
    """Cotangents of several layouts meet in x and in y, and sums over them follow their layout."""
    y = np.sin(x) * x.T + x
    z = (y * np.sum(y, axis=0) + y.T @ y) * x[::-1]
    return np.sum(np.sum(z * y, axis=1) ** 2) + np.sum(z[1:] * x[:-1])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_second_derivatives_have_the_same_bits_under_every_policy(layout):
    x, t = LAYOUTS[layout](SQUARE), LAYOUTS[layout](ALONG)
    gradient = pb.grad(read_often)
    expected = pb.hvp(read_often, (x,), (t,))
    step = 1e-6
    np.testing.assert_allclose(
        expected, (gradient(x + step * t) - gradient(x - step * t)) / (2 * step), rtol=1e-4, atol=1e-3
    )
    for policy in POLICIES:
        np.testing.assert_array_equal(pb.hvp(read_often, (x,), (t,), policy=policy), expected, err_msg=repr(policy))
        np.testing.assert_array_equal(
            pb.jvp(pb.grad(read_often, policy=policy), (x,), (t,))[1], expected, err_msg=repr(policy)
        )


@pytest.mark.parametrize("keeps", ["cotangent", "result"])
def test_what_a_rule_has_kept_is_not_written(keeps):
    kept = []

    @pb.primitive
    def triple(x):
        return 3 * x

    @triple.vjp("x")
    def _(ct):
        result = 3 * ct
        kept.append(ct if keeps == "cotangent" else result)
        before.append(np.array(pb.value(kept[-1])))
        return ct if keeps == "cotangent" else result

    before = []
    pb.hvp(lambda x: np.sum((x**3 + triple(x)) ** 2), (SQUARE,), (ALONG,))
    assert kept
    for handle, value in zip(kept, before, strict=True):
        np.testing.assert_array_equal(pb.value(handle), value)


@pytest.mark.parametrize("first", [True, False])
def test_what_a_rule_for_tangents_holds_is_not_written(first):
    class Held:
        array = np.ones((5, 5))

    @pb.primitive(elementwise=True)
    def pair(x, y):
        return x + y

    pair.vjp("x" if first else "y")(lambda ct: Held.array)
    pair.vjp("y" if first else "x")(lambda ct: 2 * ct)
    pb.jvp(lambda x: pair(x, x), (SQUARE,), (ALONG,))
    np.testing.assert_array_equal(Held.array, 1)


def test_tangents_are_added_in_the_newer_of_two():
    parts = [np.ones(3), np.full(3, 2.0), np.full(3, 4.0)]
    places = [id(part) for part in parts]
    total = added(parts)
    np.testing.assert_array_equal(total, 7)
    assert id(total) == places[-1]
    shared = parts[-1]
    assert added([np.ones(3), shared]) is not shared
    np.testing.assert_array_equal(shared, 7)


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_an_array_takes_a_sum_only_in_the_strides_of_a_new_one(first, second):
    p, g = LAYOUTS[first](SQUARE), LAYOUTS[second](ALONG)
    assert takes(p, g) <= ((p + g).strides == p.strides)
    assert takes(p, g) == (first == "C" and second in ("C", "strided"))
    assert not takes(p, g.astype(np.float32))


def test_tangents_given_and_returned_share_no_memory():
    t = ALONG.copy()
    _, out = pb.jvp(lambda x: x + x, (SQUARE,), (t,))
    _, same = pb.jvp(lambda x: x, (SQUARE,), (t,))
    assert not np.shares_memory(out, t)
    assert not np.shares_memory(same, t)
    np.testing.assert_array_equal(t, ALONG)


@pytest.mark.parametrize("f", [np.add, np.subtract, lambda x, y: x + np.negative(y)])
def test_operands_that_were_broadcast_get_sums(f):
    column, row, number = SQUARE[:, :1], ALONG[0], 0.5
    for x, y in ((column, row), (row, column), (SQUARE, number), (number, SQUARE), (number, number)):
        check_grads(lambda x, y: np.sum(f(x, y) ** 2), (x, y))


def test_a_cotangent_may_be_a_python_number():
    assert summed(2.0, spec_of(1.0)) == 2.0
    assert (
        pb.grad(
            lambda u: pb.custom_root(lambda x: x - u, pb.value(u), lambda g, x: pb.value(u), lambda g, y: y / g(1.0))
        )(0.7)
        == 1.0
    )


SHAPES = [(2000, 2), (700, 3), (40, 50, 4), (1, 1000, 5), (1000, 1, 7), (10, 10, 20, 6), (1000, 8), (2, 1500)]


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("shape", SHAPES)
def test_short_lines_are_summed_as_numpy_does(shape, dtype):
    x = np.tan(np.arange(np.prod(shape), dtype=dtype)).reshape(shape)
    x[::7] = -0.0
    for keepdims in (False, True):
        ours, numpys = line_sums(x, keepdims=keepdims), np.add.reduce(x, axis=-1, keepdims=keepdims)
        assert (ours is not None) == (shape[-1] in SHORT)
        if ours is not None:
            assert (ours.tobytes(), ours.shape, ours.dtype) == (numpys.tobytes(), numpys.shape, numpys.dtype)
            assert ours.strides == numpys.strides
            assert ours.base is None


def test_lines_that_numpy_is_asked_about():
    x = np.ones((1000, 3))
    assert line_sums(x) is not None
    apart = (x[:10], x.T.copy().T, x[::2], x.astype(complex), x.astype(np.float16), x.astype(">f8"), x.astype(int))
    assert all(line_sums(each) is None for each in apart)
    for odd in (np.inf, np.nan, 1e200):
        x[7, 1] = odd
        assert line_sums(x) is None


def test_numpy_warns_of_what_is_infinite(recwarn):
    x = np.ones((1000, 3))
    x[0] = np.inf, -np.inf, 0.0
    pb.vjp(lambda u: np.sum(u, axis=1), x)
    assert [str(each.message) for each in recwarn] == ["invalid value encountered in reduce"]


def test_the_order_is_numpys_to_say(monkeypatch):
    x = np.tan(np.arange(3000.0)).reshape(1000, 3)
    assert adds_in_order("d") == (line_sums(x) is not None)
    monkeypatch.setattr(unbroadcast, "adds_in_order", lambda char: False)
    assert line_sums(x) is None


def test_a_gradient_of_short_lines_has_the_bits_of_numpys_sums(monkeypatch):
    x, y = np.tan(np.arange(3000.0)).reshape(1000, 3), np.cos(np.arange(1000.0))[:, None]

    def program(u, v):
        return np.sum(np.sum(u * v, axis=1) * np.sum(u * u, axis=-1, keepdims=True)[:, 0])

    ours = pb.grad(program, (0, 1))(x, y)
    monkeypatch.setattr(unbroadcast, "adds_in_order", lambda char: False)
    numpys = pb.grad(program, (0, 1))(x, y)
    assert [each.tobytes() for each in ours] == [each.tobytes() for each in numpys]
