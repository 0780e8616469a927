"""norm, vector_norm and matrix_norm: every ord, axis and dtype; ties, zeros, NaN and repeated singular values."""

from math import inf

import numpy as np
import pytest

import pullback as pb
from pullback_linalg.norms import (
    NORMS,
    absolute,
    euclidean,
    extreme,
    of_singular_values,
    of_sums,
    power,
    unit_conjugate,
)
from pullback_linalg.polar import polar_part

RNG = np.random.default_rng(12)


def array(*shape, dtype="f8"):
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


V, M, T, Z, ZT = array(5), array(4, 3), array(2, 4, 3), array(4, 3, dtype="c16"), array(2, 4, 3, dtype="c16")
PLACES = [
    (V, None),
    (V, 0),
    (M, 0),
    (M, -1),
    (T, 1),
    (T, -3),
    (Z, 0),
    (Z[0], None),
    (M.astype("f4"), 1),
    (Z.astype("c8"), -1),
]
PAIRS = [
    (M, None), (M, (1, 0)), (T, (0, 2)), (T, (-1, 0)), (T, (1, 2)), (Z, None), (ZT, (2, 0)), (M.astype("f4"), None),
    (Z.astype("c8"), (0, 1)),
]  # fmt: skip
VECTOR_ORDS = (None, 0.5, 1, -1, 2, -2, 3, 2.5, inf, -inf)
MATRIX_ORDS = (None, "fro", "f", "nuc", 1, -1, 2, -2, inf, -inf)


# --------------------------------------------------------------------------------------------------------- declarations
def _cases():
    kinds = {None: euclidean, 2: euclidean, 1: absolute, inf: extreme, -inf: extreme}
    wide = {
        None: euclidean,
        "fro": euclidean,
        "f": euclidean,
        "nuc": of_singular_values,
        2: of_singular_values,
        -2: of_singular_values,
    }
    for place, (x, axis) in enumerate(PLACES):
        for count, ord in enumerate(VECTOR_ORDS):
            params = {"axis": axis, "keepdims": (place + count) % 3 == 0}
            yield (kinds[ord], (x,), {"ord": ord, **params}) if ord in kinds else (power, (x, ord), params)
    for place, (x, axis) in enumerate(PAIRS):
        for count, ord in enumerate(MATRIX_ORDS):
            yield wide.get(ord, of_sums), (x,), {"ord": ord, "axis": axis, "keepdims": (place + count) % 3 == 0}
    for keepdims in (False, True):
        yield euclidean, (T,), {"ord": None, "axis": None, "keepdims": keepdims}
    for which in (2, -2, "nuc"):
        for x in (
            M,
            M.T,
            T,
            ZT,
            Z.T,
            array(3, 3),
            np.zeros((0, 2)),
            np.zeros((0, 2, 2)),
            M.astype("f4"),
            Z.astype("c8"),
        ):
            yield polar_part, (x,), {"which": which}
    for x in (V, Z, ZT, Z[0, 0], Z.astype("c8")):
        if x.dtype.kind == "c":
            yield unit_conjugate, (x,), {}
    yield power, (M, np.array(2.5)), {"axis": 0, "keepdims": False}


CASES = [
    pytest.param(p, xs, params, id=f"{p.name} {xs[0].dtype}{xs[0].shape} {xs[1:]} {params}")
    for p, xs, params in _cases()
]


@pytest.mark.share(20)
@pytest.mark.parametrize(("primitive", "operands", "params"), CASES)
def test_the_declaration_is_right(primitive, operands, params):
    pb.testing.check_primitive(primitive, *operands, **params)


def test_every_primitive_has_a_case():
    assert {entry.name for entry in NORMS if isinstance(entry, pb.Primitive)} == {case.values[0].name for case in CASES}


# ---------------------------------------------------------------------------------------------------- NumPy's functions
def norm(*args, **options):
    return lambda x: np.linalg.norm(x, *args, **options)


def vector_norm(**options):
    return lambda x: np.linalg.vector_norm(x, **options)


FUNCTIONS = {
    **{f"norm {o} {x.dtype}{x.shape} axis {a}": (norm(o, a, k % 2), x) for k, o in enumerate(VECTOR_ORDS) for x,
        a in PLACES[1::3]},
    **{f"matrix {o} {x.dtype}{x.shape} axis {a}": (norm(o, a, k % 2), x) for k, o in enumerate(MATRIX_ORDS) for x,
        a in PAIRS[::3]},
    "norm of all axes": (np.linalg.norm, T),
    "norm of all axes keepdims": (norm(keepdims=True), T),
    "norm of a number": (np.linalg.norm, np.array(-1.5)),
    "norm with a NumPy axis": (norm(axis=np.int64(1)), M),
    "norm with a tuple of one axis": (norm(3, (1,)), M),
    "norm of nothing": (np.linalg.norm, np.zeros(0)),
    **({
        "largest of nothing": (norm(inf, 1), np.zeros((2, 0))),
        "spectral norm of nothing": (norm(2), np.zeros((2, 0))),
    } if np.lib.NumpyVersion(np.__version__) >= "2.3.0" else {}),
    "column sums of nothing": (norm(1, (1, 2)), np.zeros((2, 0, 3))),
    "norm in strides": (lambda x: np.linalg.norm(x.T[::-1, 1:], 3, axis=0), M),
    **{f"vector_norm {o} axis {a}": (vector_norm(ord=o, axis=a), T) for o in (1, 2, 3, inf) for a in (None, 1,
        (0, -1))},
    **{f"vector_norm keepdims axis {a}": (vector_norm(axis=a, keepdims=True), ZT) for a in (None, 1, (2, 0), ())},
    **{f"matrix_norm {o}": (lambda x, o=o: np.linalg.matrix_norm(x, ord=o, keepdims=o == 1), ZT) for o in ("fro",
        "nuc", 1, 2)},
}  # fmt: skip
ROWS = [pytest.param(f, x, id=name) for name, (f, x) in FUNCTIONS.items()]


@pytest.mark.parametrize(("f", "x"), ROWS)
def test_values_are_those_of_numpy(f, x):
    expected, given = np.asarray(f(x)), np.asarray(pb.vjp(f, x)[0])
    assert (given.dtype, given.shape, given.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


@pytest.mark.share(10)
@pytest.mark.parametrize(("f", "x"), ROWS)
def test_derivatives_of_two_orders_are_right(f, x):
    pb.testing.check_grads(f, (x,), order=2)


@pytest.mark.parametrize(("f", "x"), ROWS[::5])
def test_policies_give_the_same_bits(f, x):
    def steps(x):
        for _ in pb.steps(3):
            x = x + 0.01 * np.sum(f(x)) * x
        return np.sum(np.abs(x))

    expected = pb.grad(steps)(x)
    for policy in (pb.Recompute(), pb.Binomial(1)):
        assert pb.grad(steps, policy=policy)(x).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["f2", "f8", "g", "F", "D", "G"])
@pytest.mark.parametrize("ord", VECTOR_ORDS)
def test_every_precision_is_kept(ord, dtype):
    x = array(6, dtype="c16" if np.dtype(dtype).kind == "c" else "f8").astype(dtype)
    out, pull = pb.vjp(norm(ord), x)
    assert out.dtype == x.real.dtype and pull(np.ones_like(out))[0].dtype == x.dtype


# -------------------------------------------------------------------------------------------------------------- corners
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("shape", [(3,), (3, 2)], ids=str)
def test_the_norm_of_zeros_has_slope_0(shape, dtype):
    zeros = np.zeros(shape, dtype)
    with np.errstate(divide="ignore"):  # 0 ** -1, in NumPy's own forward
        for ord in VECTOR_ORDS:
            assert np.array_equal(pb.grad(lambda x, o=ord: np.sum(np.linalg.norm(x, o, axis=0)))(zeros), zeros)
        for ord in MATRIX_ORDS if len(shape) == 2 else ():
            assert np.array_equal(pb.grad(norm(ord))(zeros), zeros)
        assert np.array_equal(pb.grad(norm())(zeros), zeros)


def test_the_root_of_the_norm_of_zeros_has_slope_0():
    with np.errstate(divide="ignore"):
        assert np.array_equal(pb.grad(lambda x: np.sqrt(np.linalg.norm(x)))(np.zeros(3)), np.zeros(3))


def test_a_zero_among_others_has_slope_0():
    x = np.array([3.0, 0.0, -4.0])
    assert np.array_equal(pb.grad(norm(1))(x), [1, 0, -1])
    assert np.array_equal(pb.grad(norm(-inf))(x), [0, 0, 0])
    for ord in (0.5, 1.5, 3):
        given = pb.grad(norm(ord))(x)
        assert given[1] == 0 and np.isfinite(given).all()
    with np.errstate(divide="ignore"):
        assert np.array_equal(pb.grad(norm(-1))(x), [0, 0, 0])


def test_ties_share():
    x = np.array([2.0, -2.0, 1.0, 2.0])
    assert np.array_equal(pb.grad(norm(inf))(x) * 3, [1, -1, 0, 1])
    assert np.array_equal(pb.grad(norm(-inf))(np.array([1.0, -1.0, 5.0])), [0.5, -0.5, 0])
    assert np.allclose(pb.grad(norm(inf))(np.array([3j, -3.0, 1.0])), [-0.5j, -0.5, 0])
    m = np.array([[1.0, -2.0], [2.0, 1.0]])
    assert np.array_equal(pb.grad(norm(1))(m), np.sign(m) / 2)
    assert np.array_equal(pb.grad(norm(-inf))(m), np.sign(m) / 2)
    for ord in (2, -2):
        assert np.allclose(pb.grad(norm(ord))(np.eye(3)), np.eye(3) / 3)
    turned = np.linalg.qr(array(3, 3))[0]  # its singular values are 1 but for rounding
    assert np.allclose(pb.grad(norm(2))(turned), turned / 3)
    assert np.allclose(pb.grad(norm("nuc"))(turned), turned)


def test_the_nuclear_norm_of_a_matrix_of_low_rank_has_its_partial_isometry():
    u, v = np.linalg.qr(array(4, 2))[0], np.linalg.qr(array(3, 2))[0]
    assert np.allclose(pb.grad(norm("nuc"))(u * [3.0, 2.0] @ v.T), u @ v.T)
    assert np.allclose(pb.grad(norm(-2))(u * [3.0, 2.0] @ v.T), 0)


def test_second_derivatives_where_singular_values_repeat():
    a, direction = np.diag([2.0, 1.0, 1.0]), array(3, 3)
    for ord in ("nuc", 2):
        slope, h = pb.grad(norm(ord)), 1e-5
        product = pb.grad(lambda x, slope=slope: np.sum(direction * slope(x)))(a)
        expected = (slope(a + h * direction) - slope(a - h * direction)) / (2 * h)
        assert np.allclose(product, expected, atol=1e-7)


def test_nan_goes_to_where_it_came_from():
    given = pb.grad(norm(inf))(np.array([1.0, np.nan, 2.0]))
    assert np.isnan(given[1]) and np.array_equal(given[[0, 2]], [0, 0])
    given = pb.grad(norm(1))(np.array([[1.0, np.nan], [2.0, 1.0]]))
    assert np.array_equal(given[:, 0], [0, 0]) and np.isnan(given[0, 1])


def test_tiny_and_huge_numbers():
    assert np.array_equal(pb.grad(norm(1))(np.array([5e-324, -1e308, 1e-310])), [1, -1, 1])
    assert np.allclose(np.abs(pb.grad(norm(1))(np.array([5e-324 + 0j, 1e300 + 1e300j, 1e-310j]))), 1)
    assert np.array_equal(pb.grad(norm(inf))(np.array([1e-320, -3e-320])), [0, -1])


def test_ord_0_counts_and_has_no_slope():
    def f(x):
        count = np.linalg.norm(x, 0, axis=0)
        assert type(count) is np.ndarray and np.array_equal(count, [4, 4, 4])
        return np.sum(count * x[0])

    assert np.array_equal(pb.grad(f)(M), 4 * (np.arange(4) == 0)[:, None] * np.ones((4, 3)))


def test_ord_has_a_slope():
    pb.testing.check_grads(lambda x, p: np.linalg.norm(x, p, axis=0), (M, np.array(1.7)), order=2)
    pb.testing.check_grads(np.linalg.norm, (Z[0], np.array(2.0)), order=1)
    assert np.isfinite(pb.grad(lambda p: np.linalg.norm(M[0] * p / p, p))(3.0))


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (norm("fro", 0), ValueError, "Invalid norm order 'fro' for vectors"),
        (norm(3), ValueError, "Invalid norm order for matrices"),
        (norm(0), ValueError, "Invalid norm order for matrices"),
        (norm(2, (0, 0)), ValueError, "Duplicate axes"),
        (norm(None, 5), np.exceptions.AxisError, "out of bounds"),
        (norm(2, [0, 1]), TypeError, "'axis' must be None, an integer or a tuple"),
        (lambda x: np.linalg.norm(x[None], 2), ValueError, "Improper number of dimensions"),
        (lambda x: np.linalg.norm(x, -inf, 0)[:0] + np.linalg.norm(x[:0], -inf, 0), ValueError, "zero-size"),
        (lambda x: np.linalg.norm(x, x[0, 0]), pb.NotDifferentiableError, "no derivative in ord"),
        (lambda x: np.linalg.norm(x.astype(np.float16), 2), TypeError, "float16"),
    ],
)
def test_errors_are_numpys_or_name_the_remedy(f, error, words):
    with pytest.raises(error, match=words):
        pb.vjp(f, M)
