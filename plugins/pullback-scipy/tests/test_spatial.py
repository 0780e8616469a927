"""pullback_scipy.spatial.distance: SciPy's values bit for bit, right derivatives, 0 at equal points."""

import numpy as np
import pytest
from scipy.spatial import distance

import pullback as pb
from pullback_scipy.spatial import distance as mirrored
from pullback_scipy.spatial.pairs import FORMULAS

RNG = np.random.default_rng(2)
A, B = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))


@pytest.mark.parametrize("metric", FORMULAS)
def test_metrics(metric):
    options = {"p": 3.0} if metric == "minkowski" else {}
    for ours, theirs, operands in (
        (mirrored.cdist, distance.cdist, (A, B)),
        (mirrored.pdist, distance.pdist, (A,)),
    ):
        out, _ = pb.vjp(lambda *x, f=ours: f(*x, metric, **options), *operands)
        assert np.asarray(out).tobytes() == theirs(*operands, metric, **options).tobytes()
        pb.testing.check_grads(lambda *x, f=ours: f(*x, metric, **options), operands, order=1)
    of_two = getattr(mirrored, metric)
    given = options.get("p")
    pb.testing.check_grads(lambda u, v: of_two(u, v, *([given] if given else [])), (A[0], B[0]), order=1)
    plain = getattr(distance, metric)(A[0], B[0], *([given] if given else []))
    assert pb.vjp(lambda u: of_two(u, B[0], *([given] if given else [])), A[0])[0] == plain


def test_second_order_and_the_square_form():
    pb.testing.check_grads(mirrored.cdist, (A, B), order=2)
    pb.testing.check_grads(lambda a: mirrored.squareform(mirrored.pdist(a, "sqeuclidean")), (A,), order=2)
    matrix = distance.squareform(distance.pdist(A))
    out, pull = pb.vjp(mirrored.squareform, matrix)
    assert np.asarray(out).tobytes() == distance.pdist(A).tobytes()
    assert np.count_nonzero(pull(np.ones(6))[0]) == 6


def test_an_infinite_exponent_takes_the_largest_difference():
    pb.testing.check_grads(lambda u, v: mirrored.minkowski(u, v, np.inf), (A[0], B[0]), order=1)
    pb.testing.check_grads(lambda a, b: mirrored.cdist(a, b, "minkowski", p=np.inf), (A, B), order=1)


def test_results_have_the_dtype_of_the_points_where_those_of_scipy_have():
    u, v = A[0].astype(np.float32), B[0].astype(np.float32)
    for name in FORMULAS:
        of_two = getattr(distance, name)
        assert pb.vjp(getattr(mirrored, name), u, v)[0].dtype == np.asarray(of_two(u, v)).dtype
        for given in (of_two, getattr(mirrored, name)):  # as functions
            expected = distance.cdist(A, B, of_two)
            assert pb.vjp(lambda a, g=given: mirrored.cdist(a, B, g), A)[0].tobytes() == expected.tobytes()


def test_equal_points_have_the_derivative_zero():
    both = np.stack([A[0], A[0], B[0]])
    assert np.isfinite(pb.grad(lambda a: np.sum(mirrored.cdist(a, a)))(both)).all()
    assert np.isfinite(pb.grad(lambda a: np.sum(mirrored.pdist(a)))(both)).all()


def test_what_is_refused():
    with pytest.raises(pb.NotDifferentiableError, match=r"cdist with metric='mahalanobis'"):
        pb.grad(lambda a: np.sum(mirrored.cdist(a, B, "mahalanobis")))(A)
    with pytest.raises(pb.NotDifferentiableError, match=r"pdist with options=\('p',\)"):
        pb.grad(lambda a: np.sum(mirrored.pdist(a, "cosine", p=3)))(A)
    with pytest.raises(ValueError, match="symmetric"):
        pb.grad(lambda a: mirrored.squareform(a)[0])(A[:3])


def test_a_function_of_ones_own_is_no_metric_of_scipy_that_has_its_name():
    def euclidean(u, v):
        return 2 * np.sum(np.abs(u - v) ** 3)

    for f in (lambda a: mirrored.cdist(a, B, euclidean), lambda a: mirrored.pdist(a, euclidean)):
        with pytest.raises(pb.NotDifferentiableError, match="a function euclidean of your own"):
            pb.vjp(f, A)
