"""Products with zeros, and maxima and minima of ties, NaN, infinities and nothing."""

import numpy as np
import pytest
from tests.primitives.gradients import same

import pullback as pb
from pullback.primitives.reducing import extrema_and_products


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([2.0, 0.0, 3.0], [0.0, 6.0, 0.0]),
        ([0.0, 5.0, 0.0], [0.0, 0.0, 0.0]),
        ([1e-200, 1e-200, 1e200], [1.0, 1.0, 0.0]),  # the product of all underflows, those of the others do not
        ([4.0], [1.0]),
        ([], []),
    ],
)
def test_prod_multiplies_the_others_and_never_divides(x, expected):
    same(pb.grad(np.prod)(np.array(x)), expected)


def test_the_second_derivative_of_prod_at_zeros_is_right():
    def slope(x):
        return pb.grad(np.prod)(x)[0]

    same(pb.grad(slope)(np.array([2.0, 0.0, 3.0])), [0.0, 3.0, 0.0])
    same(pb.grad(slope)(np.array([0.0, 0.0, 3.0])), [0.0, 3.0, 0.0])


@pytest.mark.parametrize("function", [np.max, np.amax, np.maximum.reduce])
def test_ties_of_max_share_equally(function):
    same(pb.grad(function)(np.array([1.0, 3.0, 3.0, 2.0])), [0.0, 0.5, 0.5, 0.0])


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), -1])
@pytest.mark.parametrize("few", [0, 10**9])
def test_both_ways_to_the_elements_have_the_same_bits(monkeypatch, axis, few):
    """A pass over a mask, and writing to places: with ties, NaN and one place a slice."""
    drawn = np.random.default_rng(0)
    given = [drawn.normal(size=(5, 4, 30)), drawn.integers(3, size=(5, 4, 30)).astype(float)]
    given += [np.where(drawn.random((5, 4, 30)) < 0.1, np.nan, given[0])]

    def gradients():
        return [pb.vjp(lambda x: np.max(x, axis=axis), x)[1](seed)[0] for x, seed in zip(given, seeds, strict=True)]

    seeds = [drawn.normal(size=np.shape(np.max(x, axis=axis)))[()] for x in given]
    wanted = gradients()
    monkeypatch.setattr(extrema_and_products, "FEW", few)
    monkeypatch.setattr(extrema_and_products, "MANY_PLACES", 2.0 if few == 0 else 0.1)
    for found, other in zip(gradients(), wanted, strict=True):
        assert found.tobytes() == other.tobytes() and found.strides == other.strides


def test_ties_of_min_share_equally_in_every_slice():
    x = np.array([[1.0, 1.0, 2.0], [4.0, 4.0, 4.0]])
    same(pb.grad(lambda x: np.sum(np.min(x, axis=1)))(x), [[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]])


def test_the_cotangent_of_max_goes_to_the_nan_that_wins():
    x = np.array([[1.0, np.nan, 5.0], [1.0, 7.0, 5.0]])
    same(pb.grad(lambda x: np.sum(np.max(x, axis=1)))(x), [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])


@pytest.mark.parametrize(
    ("initial", "expected"), [(5.0, [0.0, 0.0, 0.0]), (2.0, [0.0, 1 / 3, 1 / 3]), (0.0, [0.0, 0.5, 0.5])]
)
def test_initial_of_max_is_one_more_element(initial, expected):
    x = np.array([1.0, 2.0, 2.0])
    same(pb.grad(lambda x: np.max(x, initial=initial))(x), expected)
    own = pb.grad(lambda start: np.max(x + 0 * start, initial=start))(np.array(initial))
    assert own == pytest.approx(1 - sum(expected))


def test_max_of_nothing_raises_as_numpy_does():
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum"):
        pb.grad(np.max)(np.zeros(0))


def test_max_where_needs_an_initial_value():
    with pytest.raises(ValueError, match="no identity, so where= needs initial="):
        pb.grad(lambda x: np.max(x, where=x > 0))(np.ones(3))


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([-np.inf, -np.inf], [0.5, 0.5]),
        ([np.inf, 0.0], [1.0, 0.0]),
        ([-np.inf, 0.0], [0.0, 1.0]),
        ([1e4, -1e4], [1.0, 0.0]),
    ],
)
def test_logaddexp_at_the_ends_of_the_line(x, expected):
    same(pb.grad(np.logaddexp.reduce)(np.array(x)), expected)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("function", [np.max, np.min, np.ptp])
def test_extrema_share_among_many_and_among_few_and_give_nan_what_is_its(function, axis):
    rng = np.random.default_rng(0)
    for x in (
        rng.normal(size=(30, 40)),
        rng.integers(0, 3, (30, 40)).astype(float),
        np.where(rng.random((30, 40)) < 0.01, np.nan, 1.0),
    ):
        out, pull = pb.vjp(lambda x: function(x, axis=axis), x)
        expected = np.zeros_like(x)
        for extreme, sign in {np.max: ((np.max, 1),), np.min: ((np.min, 1),), np.ptp: ((np.max, 1), (np.min, -1))}[
            function
        ]:
            top = extreme(x, axis=axis, keepdims=True)
            hit = (x == top) | np.isnan(x)
            expected += sign * hit / hit.sum(axis=axis, keepdims=True)
        np.testing.assert_allclose(pull(np.ones_like(out))[0], expected, rtol=1e-15)


def test_a_long_product_and_its_scan_divide_where_that_is_safe_only():
    x = 1 + np.random.default_rng(0).normal(size=500) * 0.1
    np.testing.assert_allclose(pb.grad(np.prod)(x), [np.prod(np.delete(x, k)) for k in range(500)], rtol=1e-12)
    weights = np.random.default_rng(1).normal(size=500)
    expected = [np.sum(weights[k:] * np.cumprod(x)[k:]) / x[k] for k in range(500)]
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(weights * np.cumprod(x)))(x), expected, rtol=1e-10)
    tiny = np.array([1e-200, 1e-120, 1e100])
    np.testing.assert_allclose(pb.grad(np.prod)(tiny), [1e-20, 1e-100, 0], rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(pb.grad(lambda x: np.cumprod(x)[2])(tiny), [1e-20, 1e-100, 0], rtol=1e-12, atol=1e-300)


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("axis", [0, -1, (0, 1), None])
@pytest.mark.parametrize("keepdims", [False, True])
def test_ties_of_max_share_for_every_axis(axis, keepdims):
    gradient = pb.grad(lambda x: np.sum(np.max(x, axis, keepdims=keepdims)))(np.full((2, 3), 7.0))
    count = {0: 2, -1: 3}.get(axis, 6)
    np.testing.assert_allclose(gradient, np.full((2, 3), 1 / count), rtol=1e-15)


def test_max_of_all_elements_gives_all_to_nan_and_shares_infinities():
    same(pb.grad(np.max)(np.array([1.0, NAN, 5.0])), [0, 1, 0])
    same(pb.grad(np.max)(np.array([INF, 1.0, INF])), [0.5, 0, 0.5])


# ----------------------------------------------------------------------------------- products, running sums, deviations
def test_prod_over_several_axes_with_zeros():
    x = np.array([[[2.0, 0.0], [3.0, 1.0]], [[0.0, 0.0], [5.0, 6.0]]])
    same(pb.grad(lambda x: np.sum(np.prod(x, (1, 2))))(x), [[[0, 6], [0, 0]], [[0, 0], [0, 0]]])
