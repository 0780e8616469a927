"""Jacobians by rows and by columns, of structures, in chunks, against derivatives known exactly."""

from collections import namedtuple

import attrs
import numpy as np
import pytest

import pullback as pb
from pullback import BudgetError, PolicyError

X = np.array([0.3, -0.7, 1.1, 0.4])
T = np.array([1.0, -2.0, 0.5, 3.0])
A = np.array([[1.0, 2.0, -1.0, 0.5], [0.0, 1.5, 4.0, -2.0], [3.0, -1.0, 0.25, 1.0]])
MODES = ("auto", "forward", "reverse")
Pair = namedtuple("Pair", "x y")  # noqa: PYI024 - the plain kind is what is tested


def mixed(x):
    """A times the sines of x, without a matrix product."""
    return np.sum(A * np.sin(x), axis=1)


JACOBIAN = A * np.cos(X)


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


# ------------------------------------------------------------------------------------------------------------- jacobian


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", [None, pb.Recompute(2), pb.Binomial(2)], ids=str)
def test_jacobian(mode, policy):
    got = pb.jacobian(mixed, mode=mode, policy=policy)(X)
    assert got.shape == (3, 4)
    np.testing.assert_allclose(got, JACOBIAN, rtol=1e-15)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", [None, pb.Binomial(2)], ids=str)
def test_jacobian_of_a_tall_map(mode, policy):
    def tall(x):
        return np.stack([k * x**2 for k in range(1, 5)])

    got = pb.jacobian(tall, mode=mode, policy=policy)(X)
    np.testing.assert_allclose(got, np.stack([np.diag(2 * k * X) for k in range(1, 5)]), rtol=1e-15)
    assert got.shape == (4, 4, 4)


@pytest.mark.parametrize(
    ("mode", "columns", "runs"),
    [("reverse", 4, 1), ("forward", 4, 4), ("auto", 4, 1), ("auto", 1, 2), ("forward", 1, 1)],
)
def test_how_often_the_function_is_run(mode, columns, runs):
    """Rows come from one recorded run, columns from a run each; where there are many columns and still more rows,
    from one run too."""
    count = []

    def f(x):
        count.append(1)
        return np.stack([np.sum(x) * k + x[0] ** 2 for k in range(12)])

    got = pb.jacobian(f, mode=mode)(X[:columns])
    expected = np.arange(12.0)[:, None] + np.append(2 * X[0], np.zeros(columns - 1))
    np.testing.assert_allclose(got, expected, rtol=1e-15)
    assert len(count) == runs


def test_an_infinite_slope_stays_infinite():
    """Through the recorded linear map too: rules that keep a cotangent of 0 at 0 must not be recorded there."""
    x = np.array([0.0, 1.0, 4.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        for mode in MODES:
            got = pb.jacobian(
                lambda x: np.concatenate([np.log(x), np.sqrt(x), np.where(x > 0, x * np.log(x), 0.0)]), mode=mode
            )(x)
            slopes = np.stack([got[k : k + 3].diagonal() for k in (0, 3, 6)])
            np.testing.assert_allclose(slopes, [[np.inf, 1, 0.25], [np.inf, 0.5, 0.25], [0, 1, 1 + np.log(4)]])


@pytest.mark.parametrize("mode", MODES)
def test_the_structure_is_that_of_the_output_of_that_of_the_input(mode):
    def f(p, extra):
        return {"product": p.x * p.y["s"], "count": 3, "pair": (np.sum(p.x**2), extra * p.y["s"])}

    given = Pair(X, {"s": np.float64(2.0), "n": 7, "none": None})
    got = pb.jacobian(f, mode=mode)(given, 5.0)
    assert got["count"] is None
    assert isinstance(got["product"], Pair)
    assert got["product"].y.keys() == {"s", "n", "none"}
    assert got["product"].y["n"] is None
    assert got["product"].y["none"] is None
    np.testing.assert_array_equal(got["product"].x, 2 * np.eye(4))
    np.testing.assert_array_equal(got["product"].y["s"], X)
    np.testing.assert_array_equal(got["pair"][0].x, 2 * X)
    assert got["pair"][0].y["s"] == 0
    assert got["pair"][1].y["s"] == 5
    assert got["pair"][1].x.shape == (4,)


@pytest.mark.parametrize("mode", MODES)
def test_an_attrs_class_and_several_arguments(mode):
    @attrs.frozen
    class Ball:
        at: np.ndarray
        mass: float

    def f(ball, push):
        return ball.at * ball.mass + push

    by_ball, by_push = pb.jacobian(f, argnums=(0, 1), mode=mode)(Ball(X, 2.0), T)
    assert isinstance(by_ball, Ball)
    np.testing.assert_array_equal(by_ball.at, 2 * np.eye(4))
    np.testing.assert_array_equal(by_ball.mass, X)
    np.testing.assert_array_equal(by_push, np.eye(4))


@pytest.mark.parametrize("mode", MODES)
def test_float32_stays_float32_and_mixed_dtypes_are_promoted(mode):
    x = X.astype(np.float32)
    assert pb.jacobian(np.sin, mode=mode)(x).dtype == np.float32
    assert pb.jacobian(lambda x: x * np.float64(2), mode=mode)(x).dtype == np.float64
    wide, narrow = pb.jacobian(lambda x, y: x * y, argnums=(0, 1), mode=mode)(X, x)
    assert wide.dtype == narrow.dtype == np.float64
    assert pb.hessian(rosenbrock)(x).dtype == np.float32
    assert pb.hvp(rosenbrock, (x,), (x,)).dtype == np.float32


@pytest.mark.parametrize("mode", MODES)
def test_empty_and_0d(mode):
    assert pb.jacobian(np.sin, mode=mode)(np.zeros((0, 2))).shape == (0, 2, 0, 2)
    assert pb.jacobian(np.sum, mode=mode)(np.zeros(0)).shape == (0,)
    assert pb.jacobian(lambda x: x[:0], mode=mode)(X).shape == (0, 4)
    slope = pb.jacobian(np.sin, mode=mode)(0.5)
    assert isinstance(slope, np.float64)
    assert slope == np.cos(0.5)
    np.testing.assert_array_equal(pb.jacobian(lambda t: t * X, mode=mode)(2.0), X)
    assert pb.hessian(lambda x: np.sum(x**2))(np.zeros(0)).shape == (0, 0)
    assert pb.hessian(np.sin)(0.5) == -np.sin(0.5)


@pytest.mark.parametrize("mode", MODES)
def test_an_output_without_dependence_has_zeros(mode):
    constant, through = pb.jacobian(lambda x: (np.ones(2), x), mode=mode)(X)
    np.testing.assert_array_equal(constant, np.zeros((2, 4)))
    np.testing.assert_array_equal(through, np.eye(4))


def test_aux_is_plain():
    for mode in MODES:
        got, aux = pb.jacobian(lambda x: (mixed(x), {"twice": 2 * x}), mode=mode, has_aux=True)(X)
        np.testing.assert_allclose(got, JACOBIAN, rtol=1e-15)
        assert type(aux["twice"]) is np.ndarray
    got, aux = pb.hessian(lambda x: (rosenbrock(x), np.sin(x)), has_aux=True)(X)
    np.testing.assert_array_equal(aux, np.sin(X))
    product, aux = pb.hvp(lambda x: (rosenbrock(x), np.sin(x)), (X,), (T,), has_aux=True)
    np.testing.assert_allclose(product, got @ T, rtol=1e-12)
    np.testing.assert_array_equal(aux, np.sin(X))


def test_the_result_shares_no_memory():
    x = X.copy()
    for mode in MODES:
        got = pb.jacobian(lambda x: (x, x[::2]), mode=mode)(x)
        assert all(block.flags.writeable and not np.shares_memory(block, x) for block in got)
        assert not np.shares_memory(*got)


# ---------------------------------------------------------------------------------------------------------------- chunk


@pytest.mark.parametrize("mode", MODES)
def test_a_jacobian_larger_than_chunk_raises_with_the_figures(mode):
    text = (
        r"has 1000 rows and 1000 columns and takes 7.63 MiB \(8000000 bytes\), chunk allows 977 KiB \(1000000 "
        r"bytes\); use products"
    )
    with pytest.raises(BudgetError, match=text) as caught:
        pb.jacobian(lambda x: 2 * x, mode=mode, chunk="1 MB")(np.ones(1000))
    assert caught.value.minimum_bytes == 8_000_000
    assert pb.jacobian(lambda x: 2 * x, mode=mode, chunk=8 * 16)(X).shape == (4, 4)
    with pytest.raises(BudgetError, match=r"dense Hessian of rosenbrock has 4 rows .*\(127 bytes\)"):
        pb.hessian(rosenbrock, chunk=127)(X)


@pytest.mark.parametrize("chunk", ["200 furlongs", "", -1, 1.5, True, "1.2.3 MB"])
def test_a_chunk_that_is_no_number_of_bytes(chunk):
    with pytest.raises(PolicyError, match=r"chunk=.* is no number of bytes; write an integer, or a text"):
        pb.jacobian(mixed, chunk=chunk)


UNITS = [("0.1 KiB", False), ("0.125KiB", True), ("1e2", None), (np.int64(128), True), ("128 b", True)]


@pytest.mark.parametrize(("chunk", "enough"), UNITS)
def test_chunk_in_units(chunk, enough):
    if enough is None:
        with pytest.raises(PolicyError, match="no number of bytes"):
            pb.jacobian(np.sin, chunk=chunk)
    elif enough:
        assert pb.jacobian(np.sin, chunk=chunk)(X).nbytes == 128
    else:
        with pytest.raises(BudgetError, match="chunk allows 102 B"):
            pb.jacobian(np.sin, chunk=chunk)(X)
