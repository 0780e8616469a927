"""Histograms: every sample counted where NumPy counts it; edges that move with the data."""

import numpy as np
import pytest
from tests.primitives.gradients import same

import pullback as pb

NAN, INF = np.nan, np.inf


# ----------------------------------------------------------------------------------------------------------- histograms
def test_weights_get_the_cotangent_of_their_bin():
    weights = np.ones(4)
    same(pb.grad(lambda w: np.sum(np.bincount([0, 2, 2, 1], w, 5) * np.arange(5)))(weights), [0, 2, 2, 1])
    data = np.array([
        0.0,
        1.0,
        2.0,
        5.0,
    ])  # an edge belongs to the bin on its right, the last to the last bin; 5 is in none
    same(
        pb.grad(lambda w: np.sum(np.histogram(data, [0, 1, 2], weights=w)[0] * np.array([1, 10])))(weights),
        [1, 10, 10, 0],
    )
    same(
        pb.grad(lambda w: np.sum(np.histogram(data, 2, (0, 2), weights=w)[0] * np.array([1, 10])))(weights),
        [1, 10, 10, 0],
    )


@pytest.mark.parametrize("bins", [3, 7, 100])
def test_every_sample_on_an_edge_is_counted_where_numpy_counts_it(bins):
    edges = np.linspace(0.1, 0.7, bins + 1)
    data = np.concatenate((edges, np.nextafter(edges, -1), np.nextafter(edges, 1), [NAN]))
    out, pull = pb.vjp(lambda w: np.histogram(data, bins, (0.1, 0.7), weights=w)[0], np.ones(data.size))
    gradient = pull(np.arange(1.0, bins + 1))[0]
    np.testing.assert_array_equal(np.bincount(gradient.astype(int), minlength=bins + 1)[1:], out)


def test_counts_are_plain_and_edges_move_with_the_data():
    def f(x):
        counts, edges = np.histogram(x, 2)
        assert isinstance(counts, np.ndarray)
        return np.sum(edges * np.array([1, 10, 100]))

    same(pb.grad(f)(np.array([1.0, 4.0, 2.0])), [6.0, 105.0, 0.0])
    same(pb.grad(lambda x: np.sum(np.histogram(x, 2, (0, 5))[1]) + x[0])(np.ones(3)), [1, 0, 0])


def test_a_density_falls_as_its_bins_widen():
    x = np.array([0.0, 1.0, 4.0])
    np.testing.assert_allclose(pb.grad(lambda x: np.histogram(x, 1, density=True)[0][0])(x), [1 / 16, 0, -1 / 16])


def test_bincount_of_floats_is_refused_by_numpy():
    with pytest.raises(TypeError, match="Cannot cast"):
        pb.grad(lambda x: np.sum(np.bincount(x)))(np.array([1.0, 2.0]))
