"""``np.pad`` where it goes wrong: long pads, ties, NaN, corners, modes of the user's own."""

import numpy as np
import pytest
from tests.primitives.gradients import columns, weighted

import pullback as pb

LINEAR = [
    ("constant", {}), ("edge", {}), ("wrap", {}), ("mean", {}), ("mean", {"stat_length": (1, 2)}), ("linear_ramp", {}),
    ("reflect", {}), ("reflect", {"reflect_type": "odd"}), ("symmetric", {}), ("symmetric", {"reflect_type": "odd"}),
]  # fmt: skip


# ------------------------------------------------------------------------------------------------------------------ pad
@pytest.mark.parametrize(("mode", "options"), LINEAR)
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_pads_of_any_length_give_back_what_they_took(mode, options, n):
    for widths in ((0, 0), (1, 0), (n, n), (n + 1, 2 * n), (3 * n, 4), (40, 63)):
        pad = lambda x, w=widths: np.pad(x, (w,), mode, **options)  # noqa: E731 - used twice, on the next line
        np.testing.assert_allclose(pb.grad(weighted(pad))(np.ones(n)), columns(pad, np.ones(n)), rtol=1e-12)


@pytest.mark.parametrize(("mode", "options"), LINEAR)
@pytest.mark.parametrize("shape", [(2, 3), (1, 4), (3, 1, 2)])
def test_corners_are_made_of_the_pads_before_them(mode, options, shape):
    pad = lambda x: np.pad(x, (3, 2), mode, **options)  # noqa: E731 - used twice, on the next line
    np.testing.assert_allclose(pb.grad(weighted(pad))(np.ones(shape)), columns(pad, np.ones(shape)), rtol=1e-12)


def test_a_constant_is_counted_where_it_stands_at_last():
    # As the others.
    padded = lambda v: np.pad(v[0] * np.zeros((2, 3)), (1, 2), constant_values=(v[1], v[2]))  # noqa: E731
    gradient = pb.grad(lambda v: np.sum(padded(v)))(np.array([1.0, 3.0, 5.0]))
    np.testing.assert_array_equal(gradient, [0, 3 + 5, 2 * 3 + 2 * 5])  # axis 1 comes last, and overwrites the corners


def test_ties_of_a_padded_maximum_share():
    np.testing.assert_array_equal(
        pb.grad(lambda x: np.sum(np.pad(x, (2, 0), "maximum")))(np.array([4.0, 1.0, 4.0])), [2, 1, 2]
    )
    np.testing.assert_array_equal(
        pb.grad(lambda x: np.sum(np.pad(x, (0, 4), "minimum")))(np.array([1.0, 1.0, 2.0])), [3, 3, 1]
    )


def test_a_padded_median_splits_between_the_two_in_the_middle():
    np.testing.assert_array_equal(
        pb.grad(lambda x: np.sum(np.pad(x, (2, 0), "median")))(np.array([4.0, 1.0, 3.0, 9.0])), [2, 1, 2, 1]
    )
    np.testing.assert_array_equal(
        pb.grad(lambda x: np.sum(np.pad(x, (1, 0), "median")))(np.array([2.0, 2.0, 9.0])), [1.5, 1.5, 1]
    )


@pytest.mark.parametrize("mode", ["maximum", "minimum", "median"])
def test_nan_gets_the_cotangent_of_the_pad_that_it_made(mode):
    gradient = pb.grad(lambda x: np.sum(np.pad(x, (2, 0), mode)))(np.array([1.0, np.nan, 3.0]))
    np.testing.assert_array_equal(gradient, [1, 3, 1])


def test_a_mean_of_no_elements_owes_nothing():
    with pytest.warns(RuntimeWarning, match="Mean of empty slice|invalid value"):
        gradient = pb.grad(lambda x: np.sum(np.pad(x, 1, "mean", stat_length=(0, 2))))(np.ones(3))
    np.testing.assert_array_equal(gradient, [1, 1.5, 1.5])


def test_what_empty_leaves_is_zero():
    value, gradient = pb.value_and_grad(lambda x: np.sum(np.pad(x, 2, "empty")))(np.ones((2, 2)))
    assert value == 4
    np.testing.assert_array_equal(gradient, np.ones((2, 2)))


def test_a_mode_of_the_users_own_writes_into_traced_lines():
    def fade(vector, widths, axis, options):
        vector[: widths[0]] = vector[widths[0]] * options["by"]

    value, gradient = pb.value_and_grad(lambda x: np.sum(np.pad(x, ((1, 0), (2, 0)), fade, by=0.5)))(np.ones((2, 2)))
    assert value == np.pad(np.ones((2, 2)), ((1, 0), (2, 0)), fade, by=0.5).sum()
    np.testing.assert_array_equal(gradient, [[3, 1.5], [2, 1]])


def test_a_pad_is_a_copy():
    def f(x):
        y = x * 1.0
        padded = np.pad(y, 0)
        padded *= 3.0
        return np.sum(y * y)

    np.testing.assert_array_equal(pb.grad(f)(np.ones(2)), [2, 2])
