"""inv, det, slogdet, pinv, lstsq, cond, cross and what is made of them: declarations, NumPy's values and errors,
singular matrices."""

import warnings

import numpy as np
import pytest

import pullback as pb
from pullback_linalg.chains import CHAINS, splits
from pullback_linalg.condition import CONDITIONS, product, quotient
from pullback_linalg.cross import CROSS, cross
from pullback_linalg.determinants import DETERMINANTS, cofactors, det, slogdet
from pullback_linalg.inverse import INVERSES, inverse
from pullback_linalg.least_squares import LEAST_SQUARES, hermitian_pseudo_inverse, least_squares, pseudo_inverse

RNG = np.random.default_rng(11)


def takes_two():
    """Whether NumPy still has a product of vectors of two numbers; 2.5 has not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            np.cross(np.ones(2), np.ones(2))
        except ValueError:
            return False
    return True


of_two = pytest.mark.skipif(not takes_two(), reason="this NumPy refuses vectors of two numbers")


def matrix(*shape, dtype="f8"):
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def of_rank(m, n, rank, dtype="f8"):
    return matrix(m, rank, dtype=dtype) @ matrix(rank, n, dtype=dtype)


A, C, S = matrix(3, 3) + 2 * np.eye(3), matrix(3, 3, dtype="c16") + np.eye(3), matrix(2, 2, 3, 3) + np.eye(3)
TALL, WIDE, COMPLEX = matrix(5, 3), matrix(3, 5), matrix(4, 3, dtype="c16")
RANK_2, WIDE_RANK_2, COMPLEX_RANK_1 = of_rank(4, 3, 2), of_rank(3, 5, 2), of_rank(3, 4, 1, "c16")
V, W, U = matrix(4, 3), matrix(4, 3), matrix(4, 2)

# --------------------------------------------------------------------------------------------------------- declarations
SQUARES = {
    "3": A, "1": matrix(1, 1), "0": np.zeros((0, 0)), "stack": S, "empty stack": np.zeros((0, 2, 2)), "complex": C,
    "complex stack": matrix(2, 2, 2, dtype="c16"), "single": A.astype("f4"), "complex single": C.astype("c8"),
}  # fmt: skip
REGULAR = [(f"{p.name} {name}", p, (a,), {}) for p in (inverse, det, slogdet, cofactors) for name, a in SQUARES.items()]
CONDITIONED = [
    (f"{p.name} {name} {order}", p, (a,), {"p": order})
    for p, orders in ((quotient, (None, 2, -2)), (product, (1, -1, np.inf, -np.inf, "fro", "nuc")))
    for order in orders
    for name, a in SQUARES.items()
    if a.size
] + [(f"quotient of a tall matrix {order}", quotient, (TALL,), {"p": order}) for order in (None, -2)]
OBLONGS = {"tall": TALL, "wide": WIDE, "complex tall": COMPLEX, "stack tall": matrix(2, 4, 3), "no rows": matrix(0, 3)}
PSEUDO = [
    (f"pseudo_inverse {name} {cutoff}", pseudo_inverse, (a,), {"rcond": cutoff})
    for name, a in {**SQUARES, **OBLONGS}.items()
    for cutoff in (1e-15, 0.5)
] + [("pseudo_inverse with a cutoff each", pseudo_inverse, (matrix(2, 4, 3),), {"rcond": (0.6, 1e-9)})]
# Of a matrix of full rank that is not higher than wide nothing is left of b, so its value is not needed: see FUNCTIONS.
SOLUTIONS = [
    (f"least_squares {a.shape} {a.dtype} {b.shape} {b.dtype} {rcond}", least_squares, (a, b), {"rcond": rcond})
    for a, b in [
        (TALL, matrix(5)), (TALL, matrix(5, 2)), (WIDE, matrix(3)), (WIDE, matrix(3, 2)), (A, matrix(3, 1)),
        (A, matrix(3)),
        (COMPLEX, matrix(4, 2)), (TALL, matrix(5, dtype="c16")), (COMPLEX, matrix(4, dtype="c16")),
        (TALL.astype("f4"), matrix(5, dtype="f4")), (TALL.astype("f4"), matrix(5)), (COMPLEX.astype("c8"), matrix(4)),
    ]
    for rcond in (None, 0.6)
    if rcond or a.shape[0] > a.shape[1]
]  # fmt: skip
CROSSED = [
    (f"cross {a.shape} {a.dtype} {b.shape} {b.dtype}", cross, (a, b), {})
    for a, b in [
        (V, W), (V, W[0]), (V[0], W), (V[:, None], W), (V[0], W[0]), (np.zeros((0, 3)), np.zeros((0, 3))),
        (V.astype("f4"), W.astype("f4")),
        (V, matrix(4, 3, dtype="c16")), (V, U), (U, V), (U, U + 1), (U[0], U[1]), (V[0], U), (U, V[0]),
        (U, matrix(2, dtype="c16")),
    ]
    if a.shape[-1] == b.shape[-1] == 3 or takes_two()
]  # fmt: skip
CASES = [pytest.param(*rest, id=name) for name, *rest in (*REGULAR, *CONDITIONED, *PSEUDO, *SOLUTIONS, *CROSSED)]


@pytest.mark.share(20)
@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
@pytest.mark.parametrize(("primitive", "operands", "params"), CASES)
def test_the_declaration_is_right(primitive, operands, params):
    pb.testing.check_primitive(primitive, *operands, **params)


def test_every_primitive_has_a_case():
    entries = (*CHAINS, *CONDITIONS, *CROSS, *DETERMINANTS, *INVERSES, *LEAST_SQUARES)
    declared = {entry.name for entry in entries if isinstance(entry, pb.Primitive)}
    assert declared - {hermitian_pseudo_inverse.name} == {
        case.values[0].name for case in CASES
    }  # that one: a test of its own, below


# ---------------------------------------------------------------------------------------------------- NumPy's functions
FUNCTIONS = {
    "inv": (np.linalg.inv, A),
    "inv of a stack": (np.linalg.inv, S),
    "inv by keyword, Fortran order": (lambda a: np.linalg.inv(a=a.T), C),
    "det": (np.linalg.det, S),
    "slogdet": (np.linalg.slogdet, S),
    "slogdet complex": (np.linalg.slogdet, C),
    "sign of a complex matrix": (lambda a: np.linalg.slogdet(a).sign, C),
    "logabsdet of a complex matrix": (lambda a: np.linalg.slogdet(a).logabsdet, C),
    "slogdet of a negative determinant": (np.linalg.slogdet, A * np.array([-1.0, 1, 1])),
    "pinv": (np.linalg.pinv, TALL),
    "pinv wide": (np.linalg.pinv, WIDE),
    "pinv rcond": (lambda a: np.linalg.pinv(a, 0.6), TALL),
    "pinv rtol": (lambda a: np.linalg.pinv(a, rtol=0.5), COMPLEX),
    "pinv rtol None": (lambda a: np.linalg.pinv(a, rtol=None), COMPLEX),
    "pinv hermitian": (lambda a: np.linalg.pinv(a + a.T, hermitian=True), A),
    "pinv hermitian rcond": (lambda a: np.linalg.pinv(a + np.conj(a).T, rcond=0.6, hermitian=True), C),
    "lstsq": (np.linalg.lstsq, TALL, matrix(5, 2)),
    "lstsq of a vector": (np.linalg.lstsq, TALL, matrix(5)),
    "lstsq underdetermined": (np.linalg.lstsq, WIDE, matrix(3)),
    "lstsq square": (np.linalg.lstsq, A, matrix(3)),
    "lstsq rcond": (lambda a, b: np.linalg.lstsq(a, b, rcond=0.5), TALL, matrix(5, 2)),
    "lstsq for a": (lambda a: np.linalg.lstsq(a, [1.0, 2, 3, 4, 5]), TALL),
    "lstsq for b": (lambda b: np.linalg.lstsq(RANK_2, b), matrix(4)),
    "lstsq complex": (np.linalg.lstsq, COMPLEX, matrix(4)),
    "lstsq without columns": (np.linalg.lstsq, TALL, matrix(5, 0)),
    "lstsq without unknowns": (np.linalg.lstsq, matrix(3, 0), matrix(3, 2)),
    "lstsq without equations": (np.linalg.lstsq, matrix(0, 3), matrix(0, 2)),
    "pinv rcond of each": (lambda a: np.linalg.pinv(a, rcond=np.array([[0.6], [1e-9]])), S),
    "cond": (np.linalg.cond, S),
    "cond -2": (lambda a: np.linalg.cond(a, -2), TALL),
    "cond 1": (lambda a: np.linalg.cond(a, p=1), S),
    "cond fro": (lambda a: np.linalg.cond(a, "fro"), C),
    "matrix_power -5": (lambda a: np.linalg.matrix_power(a, -5), A / 2),
    "matrix_power 1": (lambda a: np.linalg.matrix_power(a, 1) * 1.0, A),
    "matrix_power 2": (lambda a: np.linalg.matrix_power(a, np.int64(2)), C),
    "matrix_power 3": (lambda a: np.linalg.matrix_power(a, 3), S),
    "matrix_power 6": (lambda a: np.linalg.matrix_power(a, 6), S),
    "matrix_power 13": (lambda a: np.linalg.matrix_power(a, 13), A / 3),
    "multi_dot of two": (lambda a, b: np.linalg.multi_dot([a, b]), TALL, A),
    "multi_dot of three": (lambda a, b, c: np.linalg.multi_dot([a, b, c]), V, A, WIDE),
    "multi_dot with vectors": (lambda a, b, c, d: np.linalg.multi_dot((a, b, c, d)), matrix(4), V, WIDE, matrix(5)),
    "multi_dot with a last vector": (lambda a, b: np.linalg.multi_dot([a, b, [1.0, 2, 3]]), V, A),
    "multi_dot of five": (lambda *a: np.linalg.multi_dot(a), matrix(2, 7), matrix(7, 3), A, WIDE, matrix(5, 4)),
    "tensorinv": (np.linalg.tensorinv, matrix(2, 3, 6)),
    "tensorinv ind": (lambda a: np.linalg.tensorinv(a, ind=1), matrix(6, 3, 2)),
    "tensorsolve": (np.linalg.tensorsolve, matrix(2, 3, 6), matrix(2, 3)),
    "tensorsolve axes": (lambda a, b: np.linalg.tensorsolve(a, b, axes=(0, 2)), matrix(2, 6, 3), matrix(6)),
    "cross": (np.cross, V, W),
    "cross broadcast": (np.cross, V[:, None], W[0]),
    "cross axes": (lambda a, b: np.cross(a, b, axisa=0, axisb=1, axisc=0), V.T.copy(), W),
    "cross axis": (lambda a, b: np.cross(a, b, axis=0), V.T.copy(), matrix(3, 1)),
    "cross with a list": (lambda a: np.cross([1, 2, 3], a), V),
    "cross of one twice": (lambda a: np.cross(a, a + a[::-1]), V),
    "linalg.cross": (lambda a, b: np.linalg.cross(a, b, axis=-2), V.T.copy(), W.T.copy()),
    "linalg.diagonal": (lambda a: np.linalg.diagonal(a, offset=1), S),
    "linalg.matrix_transpose": (np.linalg.matrix_transpose, S),
}  # fmt: skip
ROWS = [pytest.param(f, xs, id=name) for name, (f, *xs) in FUNCTIONS.items()]


def parts(out):
    return list(out) if isinstance(out, tuple) else [out]


@pytest.mark.parametrize(("f", "xs"), ROWS)
def test_values_are_those_of_numpy(f, xs):
    expected, given = f(*xs), pb.vjp(f, *xs)[0]
    assert type(given) is type(expected)
    for e, g in zip(map(np.asarray, parts(expected)), map(np.asarray, parts(given)), strict=True):
        assert (g.dtype, g.shape, g.tobytes()) == (e.dtype, e.shape, e.tobytes())


@pytest.mark.share(6)
@pytest.mark.parametrize(("f", "xs"), ROWS)
def test_derivatives_of_two_orders_are_right(f, xs):
    # The rank is none.
    inexact = lambda out: tuple(v for v in parts(out) if hasattr(v, "dtype") and v.dtype.kind in "fc")  # noqa: E731
    pb.testing.check_grads(lambda *xs: inexact(f(*xs)), tuple(xs), order=2)


@pytest.mark.parametrize(("f", "xs"), ROWS)
def test_the_precision_is_kept(f, xs):
    xs = [x.astype("c8" if x.dtype.kind == "c" else "f4") for x in xs]
    # Products of small float32 matrices leave the flag "invalid" once in a while: a BLAS reads past their ends.
    with np.errstate(invalid="ignore"):
        out, pull = pb.vjp(lambda *xs: parts(f(*xs))[0], *xs)
        assert [ct.dtype for ct in pull(np.ones_like(out))] == [x.dtype for x in xs]


@pytest.mark.parametrize(("f", "xs"), ROWS)
def test_policies_give_the_same_bits(f, xs):
    def steps(*xs):
        for _ in pb.steps(3):
            out = parts(f(*xs))[0]
            xs = tuple(x + 0.01 * np.sum(np.abs(out)) * x for x in xs)
        return np.sum(np.abs(xs[0]))

    expected = pb.grad(steps, tuple(range(len(xs))))(*xs)
    for policy in (pb.Recompute(), pb.Binomial(1)):
        for ct, ref in zip(pb.grad(steps, tuple(range(len(xs))), policy=policy)(*xs), expected, strict=True):
            assert ct.tobytes() == ref.tobytes()


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_a_hermitian_pinv_gives_a_hermitian_gradient_from_the_lower_triangle(name):
    a = C + C.conj().T
    half = np.where(np.tri(3) if name == "lower" else np.triu(np.ones((3, 3))), a, np.nan)
    given = pb.grad(lambda a: np.sum(np.abs(np.linalg.pinv(a, hermitian=True))))(np.where(np.isnan(half), 99.0, a))
    whole = pb.grad(lambda a: np.sum(np.abs(np.linalg.pinv(a))))(a)
    assert np.allclose(given, given.conj().T)
    assert np.allclose(given, (whole + whole.conj().T) / 2) == (name == "lower")


# -------------------------------------------------------------------------------------------------------- least squares
def along(f, a, direction, h=1e-6):
    """The derivative of f along a direction, by central differences."""
    return (f(a + h * direction) - f(a - h * direction)) / (2 * h)


@pytest.mark.parametrize(("m", "n", "rank"), [(4, 3, 2), (3, 5, 2), (4, 4, 1), (3, 3, 3)])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_a_pinv_of_constant_rank_has_the_slope_of_golub_and_pereyra(m, n, rank, dtype):
    left, right, tangents = (
        matrix(m, rank, dtype=dtype),
        matrix(rank, n, dtype=dtype),
        (matrix(m, rank), matrix(rank, n)),
    )
    weight = matrix(n, m, dtype=dtype)

    def of_factors(left, right):
        return np.sum((weight * np.linalg.pinv(left @ right, rcond=1e-9)).real)

    cts = pb.grad(of_factors, (0, 1))(left, right)
    given = sum(np.sum(ct * t) for ct, t in zip(cts, tangents, strict=True)).real
    assert np.isclose(
        given, along(lambda t: of_factors(left + t * tangents[0], right + t * tangents[1]), 0.0, 1.0), rtol=1e-6
    )


@pytest.mark.parametrize("columns", [None, 2])
def test_lstsq_of_a_matrix_of_constant_rank(columns):
    left, right, tangents = matrix(5, 2), matrix(2, 4), (matrix(5, 2), matrix(2, 4))
    b = matrix(5) if columns is None else matrix(5, columns)
    weight = matrix(*((4,) if columns is None else (4, columns)))

    def of_factors(left, right):
        return np.sum(weight * np.linalg.lstsq(left @ right, b, rcond=1e-9)[0])

    cts = pb.grad(of_factors, (0, 1))(left, right)
    given = sum(np.sum(ct * t) for ct, t in zip(cts, tangents, strict=True))
    assert np.isclose(
        given, along(lambda t: of_factors(left + t * tangents[0], right + t * tangents[1]), 0.0, 1.0), rtol=1e-6
    )


def test_the_rank_that_lstsq_finds_is_a_plain_number():
    def f(a):
        x, residuals, rank, s = np.linalg.lstsq(a, np.ones(4))
        assert rank == 2 and not hasattr(type(rank), "__pullback_record__")
        assert residuals.shape == (0,)
        return np.sum(x) + s[0]

    assert np.isfinite(pb.grad(f)(RANK_2)).all()


def test_matrices_of_zeros_have_finite_gradients():
    zeros = np.zeros((3, 2))
    assert np.array_equal(pb.grad(lambda a: np.sum(np.linalg.pinv(a)))(zeros), zeros)
    assert np.array_equal(pb.grad(lambda a: np.sum(np.linalg.lstsq(a, np.ones(3))[0]))(zeros), zeros)


# --------------------------------------------------------------------------------------------------------------- others
def test_the_condition_of_a_multiple_of_the_identity_is_at_its_minimum():
    for p in (None, -2, 2):
        assert np.allclose(pb.grad(lambda a, p=p: np.linalg.cond(a, p))(3 * np.eye(3)), 0, atol=1e-15)


@pytest.mark.parametrize("p", [None, 1, "fro"])
def test_the_condition_of_a_singular_matrix_is_infinite_without_a_slope(p):
    a = np.stack([np.zeros((2, 2)), A[:2, :2]])
    value, pull = pb.vjp(lambda a: np.linalg.cond(a, p), a)
    assert np.isinf(value[0])
    assert np.isnan(pull(np.ones(2))[0][0]).all()
    alone = pb.grad(lambda a: np.linalg.cond(a, p))(a[1])
    assert np.allclose(pull(np.array([0.0, 1.0]))[0], [np.zeros((2, 2)), alone])


def test_the_zeroth_power_and_the_rank_are_plain():
    def f(a):
        unit, rank = np.linalg.matrix_power(a, 0), np.linalg.matrix_rank(a)
        assert type(unit) is np.ndarray and np.array_equal(unit, np.eye(3)) and rank == 3
        assert np.array_equal(np.linalg.matrix_rank(a * np.ones((2, 1, 1)), tol=1e-3, hermitian=True), [3, 3])
        return np.sum(unit * a)

    assert np.array_equal(pb.grad(f)(A), np.eye(3))


@of_two
@pytest.mark.parametrize("shapes", [((4, 2), (4, 2)), ((4, 2), (3,)), ((3,), (4, 2))])
def test_vectors_of_two_numbers_are_deprecated_as_in_numpy(shapes):
    a, b = (matrix(*shape) for shape in shapes)
    with pytest.warns(DeprecationWarning, match="2-dimensional vectors"):
        expected = np.cross(a, b)
    with pytest.warns(DeprecationWarning, match="2-dimensional vectors"):
        out, pull = pb.vjp(np.cross, a, b)
    assert np.array_equal(out, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [ct.shape for ct in pull(np.ones_like(out))] == [a.shape, b.shape]


@of_two
def test_a_vector_of_two_numbers_is_not_multiplied_with_a_third():
    with pytest.warns(DeprecationWarning, match="2-dimensional vectors"):
        given = pb.grad(lambda b: np.sum(np.cross(np.array([3.0, 4.0]), b)))(np.array([1.0, np.inf]))
    assert np.array_equal(given, [-4.0, 3.0])


def test_a_chain_is_split_where_it_is_cheapest():
    """The chain of section 15.2 of Cormen, Leiserson, Rivest and Stein: ((A1 (A2 A3)) ((A4 A5) A6))."""
    split = splits((30, 35, 15, 5, 10, 20, 25))
    assert (split[0, 5], split[0, 2], split[3, 5]) == (2, 0, 4)


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (lambda a: np.linalg.inv(a - a), np.linalg.LinAlgError, "Singular"),
        (lambda a: np.linalg.inv(a[:2]), np.linalg.LinAlgError, "square"),
        (lambda a: np.linalg.det(a[0]), np.linalg.LinAlgError, "at least two-dimensional"),
        (lambda a: np.linalg.pinv(a, 0.1, rtol=0.1), ValueError, "can't be both set"),
        (lambda a: np.linalg.lstsq(a, a[:2]), np.linalg.LinAlgError, "Incompatible"),
        (lambda a: np.linalg.cond(a[:, :0]), np.linalg.LinAlgError, "empty"),
        (lambda a: np.linalg.cond(a[:2], 1), np.linalg.LinAlgError, "square"),
        (lambda a: np.linalg.matrix_power(a, 0.5), TypeError, "exponent must be an integer"),
        (lambda a: np.linalg.matrix_power(a[:2], 2), np.linalg.LinAlgError, "square"),
        (lambda a: np.linalg.multi_dot([a]), ValueError, "at least two"),
        (lambda a: np.linalg.multi_dot([a, a[0], a]), np.linalg.LinAlgError, "array 1 has 1 axes"),
        (lambda a: np.linalg.multi_dot([a, a[:2], a]), ValueError, "not aligned"),
        (lambda a: np.linalg.tensorinv(a, 0), ValueError, "ind is 0"),
        (lambda a: np.linalg.tensorsolve(a, a), np.linalg.LinAlgError, "9 elements"),
        (lambda a: np.cross(a, a[:, :1]), ValueError, "dimension must be 2 or 3|3-dimensional vectors"),
        (lambda a: np.cross(a, 1.0), ValueError, "zero dimension"),
        (lambda a: np.cross(a, a, axisa=2), np.exceptions.AxisError, "out of bounds"),
        (lambda a: np.linalg.cross(a[:, :2], a), ValueError, "use numpy.cross"),
        (lambda a: np.linalg.inv(a.astype(np.float16)), TypeError, "float16"),
    ],
)
def test_errors_are_numpys_or_name_the_remedy(f, error, words):
    with pytest.raises(error, match=words):
        pb.vjp(f, A)
