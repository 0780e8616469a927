"""Numbers at the ends of the range, infinities, NaN: the gradient of extended precision or the true limit, without a
warning."""

import warnings

import numpy as np
import pytest
from tests.primitives.elementwise.cases_ufunc_rules import UNARY, name_of
from tests.primitives.rows import rows

import pullback as pb
from pullback.testing.comparing.differences import random_like

INF, NAN = np.inf, np.nan
LARGE, SMALL = (1e200, 1.7e308, 1e160, 750.0, 1e5), (1e-200, 1e-310, 5e-324, 1e-160)
POINTS = np.array([0.0, -0.0, 1.0, 2.0, *LARGE, *SMALL, INF, NAN])
POINTS = np.concatenate((POINTS, -POINTS[2:]))
FUNCTIONS = {name_of(f): f for f, _ in UNARY}
DIGITS_OF_FLOAT64 = {"sinc": "beyond 1e15 its argument, pi x rounded to float64, has no digits behind the point"}
OSCILLATES = {"sin", "cos", "tan", "sinc"}


def gradient(f, *xs):
    """The value, and the gradients for a cotangent of ones. The forward is silent; the reverse pass warns wherever
    the value is finite."""
    with np.errstate(all="ignore"):
        out, pull = pb.vjp(f, *xs)
    with np.errstate(all="warn" if np.isfinite(out).all() else "ignore", under="ignore"):
        return out, pull(np.ones_like(out))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_one_argument(name):
    f = FUNCTIONS[name]
    for point in POINTS:
        x = np.array([point])
        out, (given,) = gradient(f, x)
        wide_out, (wide,) = gradient(f, x.astype("g"))
        if np.isnan(out).any() or (name in DIGITS_OF_FLOAT64 and abs(point) > 1e15):
            continue
        with np.errstate(all="ignore"):
            right = wide.astype(float)
        if np.isfinite(out) == np.isfinite(wide_out):  # where float64 overflows, NumPy has gone another way
            np.testing.assert_allclose(given, right, rtol=1e-13, atol=1e-307, err_msg=f"{name} at {point}")
        elif np.isfinite(right):
            assert not np.isnan(given), (name, point)


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - OSCILLATES - {"i0", "i1"}))
def test_the_reference_agrees_with_differences_in_extended_precision(name):
    f, step = FUNCTIONS[name], np.longdouble(1e-6)
    for point in POINTS[np.isfinite(POINTS) & (POINTS != 0)].astype("g"):
        out, (wide,) = gradient(f, np.array([point]))
        if not np.isfinite(out).all() or not np.isfinite(wide).all():
            continue
        with np.errstate(all="ignore"):
            ahead, behind = f(np.array([point * (1 + step)])), f(np.array([point * (1 - step)]))
            right = (ahead - behind) / (2 * point * step)
            rounding = 1e-18 * (np.abs(out) + np.abs(point) * (out.dtype.kind == "f")) / np.abs(point * step)
        if np.isfinite(right).all():
            np.testing.assert_array_less(
                np.abs(wide - right), 1e-5 * np.abs(wide) + rounding, err_msg=f"{name} at {point}", strict=False
            )


PAIRS = [
    np.add, np.subtract, np.multiply, np.divide, np.logaddexp, np.logaddexp2, np.arctan2, np.hypot, np.maximum,
    np.minimum,
]  # fmt: skip
PAIRS += [np.fmax, np.fmin, np.copysign, np.remainder, np.fmod, np.heaviside, np.power, np.float_power]
ENDS = [0.0, -0.0, 1.0, -2.0, 1e200, -1e200, 1e-200, 1e-310, INF, -INF]


@pytest.mark.parametrize("f", PAIRS, ids=lambda f: f.__name__)
def test_functions_of_two_arguments(f):
    for a in ENDS:
        for b in ENDS:
            x, y = np.array([a]), np.array([b])
            out, given = gradient(f, x, y)
            wide_out, wide = gradient(f, x.astype("g"), y.astype("g"))
            if (
                np.isnan(out).any()
                or np.isfinite(out) != np.isfinite(wide_out)
                or (np.isfinite(out) and out == 0 != wide_out)
            ):
                continue
            for one, (ct, exact) in enumerate(zip(given, wide, strict=True)):
                if "power" in f.__name__ and ((one == 1 and a < 0) or (abs(a) == 1e-310 and 0 < b < 1e-100)):
                    continue  # of a negative base no function of a real exponent; x**(y - 1) overflows at subnormal x
                with np.errstate(all="ignore"):
                    np.testing.assert_allclose(
                        ct, exact.astype(float), rtol=1e-12, atol=5e-324, err_msg=f"{f.__name__}({a}, {b}) by {one}"
                    )
                assert not np.isnan(ct).any(), (f.__name__, a, b, one)


def test_limits_at_infinity():
    for x, y, right in [(INF, 1.0, (1, 0)), (2.0, -INF, (0, -1))]:
        assert tuple(ct[0] for ct in gradient(np.hypot, np.array([x]), np.array([y]))[1]) == right
    for y, x in [(1.0, INF), (INF, 2.0), (-INF, INF)]:
        assert tuple(ct[0] for ct in gradient(np.arctan2, np.array([y]), np.array([x]))[1]) == (0, 0)
    for f in (np.tanh, np.arctan, np.arcsinh, np.reciprocal, np.log, np.exp):
        x = -INF if f is np.exp else INF
        assert gradient(f, np.array([x]))[1][0] == 0


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e160, 1e200])
def test_absolute_values_and_roots_of_complex_numbers(scale):
    near = np.array([3 + 4j, -1 + 0.5j, 2 - 7j])
    z, size = near * scale, np.abs(near)
    np.testing.assert_allclose(gradient(np.absolute, z)[1][0], np.conj(near) / size, rtol=1e-11)
    if scale > 1:
        for f, right in [(np.arcsin, 1 / size), (np.arccos, 1 / size), (np.arcsinh, 1 / size)]:
            np.testing.assert_allclose(np.abs(gradient(f, z)[1][0]) * scale, right, rtol=1e-12)
        for f in (np.arctan, np.arctanh):
            assert np.all(np.abs(gradient(f, z)[1][0]) < 1e-300)


# ---------------------------------------------------------------------------------------------------------- every table
SLOW_OR_SEARCHING = (
    "curves: polyfit",
    "curves: roots",
    "linalg: ",
    "fft: ",
)  # LAPACK searches where numbers overflow
FAMILIES = tuple(row for row in rows() if row.arrays and not row.name.startswith(SLOW_OR_SEARCHING))
CONSTANT = ("divide of itself", "arctan2 of itself", "operator_divide of itself", "masked_divide of itself")
LEFT_OUT = {
    f"elementwise: {name}" for name in CONSTANT
}  # f(x, 1.5 x) does not move: its gradient is what rounding leaves of 1 - 1


def scaled(row, scale):
    return tuple(x * x.dtype.type(scale) for x in row.arrays)


def wider(x):
    return x.astype("G" if x.dtype.kind == "c" else "g")


@pytest.mark.share(5, of=lambda row: row.covers, turn=1)
@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: row.name)
def test_where_the_value_is_right_so_is_the_gradient(row):
    """Scaled to the ends of the range: if the value is that of extended precision, nothing on the way having
    overflowed or vanished."""
    if row.name in LEFT_OUT:
        return
    for scale in (1e200, 1e-200, 1e-300):
        with np.errstate(all="ignore"):
            xs = scaled(row, scale)
            try:
                outs, pull = pb.vjp(row.outputs, *xs)
                wide, pull_wide = pb.vjp(row.outputs, *map(wider, xs))
            except (TypeError, ValueError, pb.PullbackError):
                continue
            if [np.shape(out) for out in outs] != [np.shape(out) for out in wide]:
                continue
            if not all(
                np.isfinite(out).all() and np.allclose(out, big, rtol=1e-8, atol=0)
                for out, big in zip(outs, wide, strict=True)
            ):
                continue
        cts = tuple(random_like(np.random.default_rng(5), out) for out in outs)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exact = pull_wide(tuple(wider(np.asarray(ct)) for ct in cts))
            fits = all(np.abs(np.asarray(ct), dtype=None).max(initial=0) < 1e307 for ct in exact)
        if not fits:
            continue
        for ct, big in zip(pull(cts), exact, strict=True):
            size = np.max(np.abs(np.nan_to_num(big)), initial=0)
            np.testing.assert_allclose(ct, big, rtol=1e-6, atol=max(1e-9 * size, 1e-320), err_msg=f"scale {scale}")
