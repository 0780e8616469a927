"""Every row of every table in every floating and complex precision: NumPy's dtype forward, the operand's own
backward, no digits lost."""

import warnings
from math import pi

import numpy as np
import pytest
from tests.primitives.elementwise.cases_ufunc_rules import ABOVE, ANGLES, ANY, HOLOMORPHIC, PLANE, POSITIVE, UNIT
from tests.primitives.rows import rows

import pullback as pb
from pullback.testing.comparing.differences import random_like

ROWS = tuple(row for row in rows() if row.arrays)
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
REAL, COMPLEX = "efdg", "FDG"
HUGE = np.longdouble(2) ** 2000  # of no number that a float64 holds

# Rows that are not run, with the reason.
NUMPY_IS_WRONG = {"curves: interp complex, ends": "of complex64 numbers as ends NumPy takes the real part"}
REFUSED_COMPLEX = {
    "reducing: histogram data and weights": "complex data have no order",
    "linalg: svd full, tall": "the last column of U has a sign in the real case and any phase in the complex one",
}
NUMPY_NARROWS = {
    "elementwise: emath.logn, both": "of a negative longdouble NumPy makes a complex128",
    "reducing: histogram density": "widths of bins are float64",
    "shaping: concatenate mixed": "the row itself casts to complex128",
    "reducing: cov aweights": "weights become float64",
    "reducing: cov both weights": "weights become float64",
    "reducing: cov both weights, bias": "weights become float64",
    "reducing: cov complex weights": "weights become float64",
}
HALF_OVERFLOWS = {
    "reducing: nanprod axis=None": "the product of the others is beyond 65504, or the products before and after an "
    "element are",
    "reducing: nanprod no NaN": "as above",
}
INSENSITIVE = {
    "shaping: geomspace, negative": "the gradient moves by less than the operands do",
    "reducing: logaddexp.reduce of 1000s": "beside 1000 the step is below the digits of a longdouble",
    "linalg: norm -inf complex128(3,) axis None": "the gradient is a direction, which a scaled operand keeps",
}
LEFT_OUT = (NUMPY_IS_WRONG, REFUSED_COMPLEX, NUMPY_NARROWS, HALF_OVERFLOWS, INSENSITIVE)


def test_the_rows_left_out_exist():
    assert {name for reasons in LEFT_OUT for name in reasons} <= {row.name for row in ROWS}


def cast(x, dtype):
    """A number or array in the precision of ``dtype``; complex stays complex, real becomes complex where ``dtype``
    is."""
    wanted = np.dtype(dtype)
    if x.dtype.kind == "c" and wanted.kind == "f":
        wanted = np.result_type(wanted, np.complex64)
    return x.astype(wanted) if isinstance(x, np.ndarray) else wanted.type(x)


def operands(row, dtype):
    """The row's arrays in a precision; None where NumPy's function itself drops their imaginary parts, with a
    warning."""
    xs = tuple(cast(x, dtype) for x in row.arrays)
    if np.dtype(dtype).kind == "c":
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always", np.exceptions.ComplexWarning)
            row.called(*xs)
        if any(issubclass(warning.category, np.exceptions.ComplexWarning) for warning in seen):
            return None
    return xs


def spec(values):
    return [(np.shape(value), np.asarray(value).dtype) for value in values]


def seeds(outs):
    rng = np.random.default_rng(5)
    return tuple(random_like(rng, out) for out in outs)


def runs(row):
    """Each precision that NumPy serves the row in: the arrays, NumPy's results, and ours."""
    for dtype in REAL + COMPLEX:
        if (
            row.name in NUMPY_IS_WRONG
            or (row.name in REFUSED_COMPLEX and dtype in COMPLEX)
            or (row.name in HALF_OVERFLOWS and dtype == "e")
        ):
            continue
        try:
            xs = operands(row, dtype)
            expected = row.outputs(*xs) if xs else None
        except Exception as error:  # noqa: BLE001 - whatever NumPy raises, the traced call must raise too
            xs = tuple(cast(x, dtype) for x in row.arrays)
            with pytest.raises((type(error), pb.PullbackError)):
                pb.vjp(row.outputs, *xs)
            continue
        if expected is not None:
            yield dtype, xs, expected, pb.vjp(row.outputs, *xs)


@pytest.mark.share(7, of=lambda row: row.covers)
@each_row
def test_dtypes_are_those_of_numpy_and_of_the_operands(row):
    for dtype, xs, expected, (outs, pull) in runs(row):
        assert spec(outs) == spec(expected), dtype
        assert all(np.array_equal(out, value, equal_nan=True) for out, value in zip(outs, expected, strict=True)), dtype
        assert spec(pull(seeds(outs))) == spec(xs), dtype


# --------------------------------------------------------------------------------------------------- extended precision
def in_extended(row):
    """The row's arrays as longdouble, none of them a float64 number, with what a pull of them gives; None where
    NumPy has no such loop."""
    third = np.longdouble(1) / 3
    xs = tuple(cast(x, "g") for x in row.arrays)
    xs = tuple(x * x.dtype.type(1 + third * np.longdouble(2) ** -45) for x in xs)
    try:
        outs = row.outputs(*xs)
    except (TypeError, ValueError):
        return None
    return xs if outs and all(np.asarray(out).dtype.char in "gG" for out in outs) else None


@pytest.mark.share(7, of=lambda row: row.covers, turn=1)
@each_row
def test_a_cotangent_never_passes_through_a_narrower_number(row):
    """A pull is linear: a cotangent that float64 cannot hold gives the gradient of a common one, times a power of 2,
    bit for bit."""
    xs = in_extended(row)
    if xs is None or row.name in NUMPY_NARROWS:
        return
    outs, pull = pb.vjp(row.outputs, *xs)
    cts = seeds(outs)
    with np.errstate(all="ignore"):
        plain, huge = pull(cts), pull(tuple(ct * HUGE for ct in cts))
    for small, large in zip(plain, huge, strict=True):
        np.testing.assert_array_equal(large, small * HUGE)


@pytest.mark.share(7, of=lambda row: row.covers)
@each_row
def test_what_is_saved_keeps_its_digits(row):
    """Where a gradient moves when the operands move by 2**-40, it moves when they move by 2**-58, which float64 does
    not see."""
    xs = in_extended(row)
    if xs is None or row.rough or row.name in NUMPY_NARROWS | INSENSITIVE:
        return

    def gradient(step):
        outs, pull = pb.vjp(row.outputs, *(x * x.dtype.type(1 + np.longdouble(2) ** step) for x in xs))
        with np.errstate(all="ignore"):
            return pull(seeds(outs))

    still, small, large = gradient(-np.inf), gradient(-58), gradient(-40)
    for at, near, far in zip(still, small, large, strict=True):
        if not np.array_equal(at, far, equal_nan=True):
            assert not np.array_equal(at, near, equal_nan=True)


def complex_step(f, x):
    step = np.longdouble(10) ** -1000
    return f(x + 1j * step).imag / step


# sinc and i0 are left out: NumPy's own constants in them have the digits of a Python number.
ANALYTIC = [f for f in HOLOMORPHIC if f is not np.sinc]
DOMAINS = {np.arcsin: UNIT, np.arccos: UNIT, np.arctanh: UNIT, np.arccosh: ABOVE, np.tan: ANGLES}


@pytest.mark.parametrize("f", ANALYTIC, ids=lambda f: f.__name__)
def test_closed_forms_have_all_digits_of_a_longdouble(f):
    x = DOMAINS.get(f, POSITIVE).astype("g") * (1 + np.longdouble(1) / 3 * np.longdouble(2) ** -45)
    with np.errstate(all="ignore"):
        right = complex_step(f, x)
    np.testing.assert_allclose(pb.vjp(f, x)[1](np.ones_like(x))[0], right, rtol=1e-17)
    z = PLANE.astype("G") * (1 + np.longdouble(1) / 3 * np.longdouble(2) ** -45)
    out, pull = pb.vjp(f, z)
    near = pb.vjp(f, PLANE)[1](np.ones_like(PLANE))[0]
    np.testing.assert_allclose(pull(np.ones_like(out))[0], near, rtol=1e-12)


PI = 4 * np.arctan(np.longdouble(1))
CONSTANTS = [
    (np.deg2rad, PI / 180, pi / 180),
    (np.radians, PI / 180, pi / 180),
    (np.rad2deg, 180 / PI, 180 / pi),
    (np.degrees, 180 / PI, 180 / pi),
    (np.exp2, np.exp2(ANY.astype("g")) * np.log(np.longdouble(2)), np.exp2(ANY) * np.log(2)),
]


@pytest.mark.parametrize(("f", "exact", "usual"), CONSTANTS, ids=lambda value: getattr(value, "__name__", ""))
def test_constants_have_the_precision_of_the_cotangent(f, exact, usual):
    wide, narrow = (pb.vjp(f, ANY.astype(d))[1](np.ones(ANY.shape, d))[0] for d in "gd")
    np.testing.assert_allclose(wide, np.broadcast_to(exact, ANY.shape), rtol=2e-19)
    np.testing.assert_allclose(narrow, np.broadcast_to(usual, ANY.shape), rtol=5e-16)


def test_an_exponent_in_few_digits_does_not_cost_those_of_the_base():
    x = np.array([0.3, 2.0, 7.0])
    for y in (np.float16(1e-3) * np.ones(3, np.float16), np.full(3, 1e-5, np.float32)):
        np.testing.assert_allclose(
            pb.grad(lambda x, y=y: np.sum(np.power(x, y)))(x), y * x ** (y.astype(float) - 1), rtol=1e-14
        )


# ------------------------------------------------------------------------------------------------------- half precision
@pytest.mark.share(7, of=lambda row: row.covers, turn=1)
@each_row
def test_half_precision_is_finite_where_double_is(row):
    """At the same numbers: nothing overflows on the way to a gradient that a float16 can hold."""
    try:
        xs = tuple(cast(x, "e") for x in row.arrays)
        outs, pull = pb.vjp(row.outputs, *xs)
        wide, pull_wide = pb.vjp(row.outputs, *(cast(x, "d") for x in xs))
    except (TypeError, ValueError, pb.PullbackError):
        return  # numpy.linalg has no half precision
    if spec(outs) == spec(wide) or [np.shape(out) for out in outs] != [np.shape(out) for out in wide]:
        return
    cts = seeds(outs)
    with np.errstate(all="ignore"):
        given = pull(cts)
        exact = pull_wide(
            tuple(np.asarray(ct).astype(np.asarray(out).dtype) for ct, out in zip(cts, wide, strict=True))
        )
    for half, double in zip(given, exact, strict=True):
        assert np.isfinite(half)[np.abs(double) < 6e4].all()


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(), pb.Binomial(1)], ids=repr)
@pytest.mark.parametrize("dtype", [">f8", ">f4", ">c16"])
def test_arrays_in_another_machines_byte_order_have_native_derivatives(dtype, policy):
    x = np.arange(1, 5).astype(dtype)
    native = x.astype(x.dtype.newbyteorder("="))

    def stepped(x):
        for _ in pb.steps(4):
            x = x * np.cos(x)
        return np.sum(np.abs(x))

    def looped(x):
        return np.sum(np.abs(pb.fori_loop(0, 4, lambda _, u: u * np.cos(u), x)))

    for f in (stepped, looped):
        gradient = pb.grad(f, policy=policy)(x)
        assert gradient.dtype == native.dtype and gradient.dtype.isnative
        assert gradient.tobytes() == pb.grad(f)(native).tobytes()
        assert pb.jvp(f, (x,), (x,))[1] == pb.jvp(f, (native,), (native,))[1]
    assert pb.fori_loop(0, 2, lambda _, u: u * 2.0, x).tolist() == (4 * native).tolist()
    assert x.dtype == np.dtype(dtype)
