"""A rule computes in the dtype of the result, whatever narrower, unsigned or coarser type an operand has."""

import numpy as np
import pytest

import pullback as pb

X = np.array([1.5, 2.5])
NARROW = [
    np.uint8(2),
    np.int8(2),
    np.float16(2.5),
    np.float32(2.5),
    np.array([2, 3], "u1"),
    np.array([2.5, 3], "f4"),
    np.True_,
]
BINARY = (
    np.power, np.float_power, np.arctan2, np.hypot, np.logaddexp, np.logaddexp2, np.fmod, np.remainder, np.divide,
    np.copysign,
)  # fmt: skip


@pytest.mark.parametrize("f", BINARY, ids=lambda f: f.__name__)
@pytest.mark.parametrize("c", NARROW, ids=repr)
def test_a_narrow_operand_costs_no_digits(f, c):
    """As if it had been given in float64, where every value of it has one."""
    wide = np.asarray(c, float)
    for order in (lambda x, c: f(c, x), f):
        if order(X, c).dtype != np.float64:
            continue
        narrow, exact = (pb.grad(lambda x, c=c, order=order: np.sum(order(x, c)))(X) for c in (c, wide))
        np.testing.assert_allclose(narrow, exact, rtol=1e-14)


def test_the_operator_power_too():
    for c in NARROW[:6]:
        np.testing.assert_allclose(
            pb.grad(lambda x, c=c: np.sum(c**x))(X),
            np.asarray(c, float) ** X * np.log(np.asarray(c, float)),
            rtol=1e-14,
        )


@pytest.mark.parametrize("kind", ["u1", "u4", "i2", "?"])
def test_unsigned_knots_of_interp(kind):
    fp, xp = np.array([5, 3, 9]).astype(kind), np.array([0.0, 1.0, 2.0])
    at = np.array([0.5, 1.5])
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(np.interp(x, xp, fp)))(at), np.diff(fp.astype(float)))
    got = pb.grad(lambda y: np.sum(np.interp([1.5, 2.5], np.array([1, 2, 3]).astype("u1"), y)))(np.ones(3))
    np.testing.assert_array_equal(got, [0.5, 1.0, 0.5])


@pytest.mark.parametrize("mean", [np.mean, lambda a: np.mean(a, where=np.ones(a.shape, bool)), lambda a: a.mean()])
def test_the_mean_of_more_elements_than_a_float16_counts(mean):
    a = np.ones(70_000, "f2")
    g = pb.grad(mean)(a)
    assert g.dtype == np.float16
    np.testing.assert_array_equal(g, np.float16(1 / 70_000))


@pytest.mark.parametrize("kind", ["u1", "u8", "i4", "?"])
def test_unsigned_counts_of_repeat(kind):
    counts = np.array([1, 2, 3]).astype(kind)
    weights = np.arange(float(counts.astype(int).sum()))
    expected = [w.sum() for w in np.split(weights, np.cumsum(counts.astype(int))[:-1])]
    np.testing.assert_array_equal(pb.grad(lambda a: np.sum(np.repeat(a, counts) * weights))(np.ones(3)), expected)
    with pytest.raises(TypeError, match="Cannot cast"):
        pb.grad(lambda a: np.sum(np.repeat(a, np.array([1.0, 2.0, 3.0]))))(np.ones(3))


@pytest.mark.parametrize("time", [np.array([1, 2], "m8[s]"), np.timedelta64(3, "s")], ids=["array", "scalar"])
def test_a_time_is_made_a_number_first(time):
    with pytest.raises(pb.ConversionError, match=r"would give timedelta64\[s\].*t / np.timedelta64\(1, 's'\)"):
        pb.grad(lambda x: np.sum(time * x / np.timedelta64(1, "s")))(X)
    second = np.timedelta64(1, "s")
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum((time / second) * x))(X), np.ones(2) * (time / second))
