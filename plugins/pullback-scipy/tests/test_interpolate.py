"""pullback_scipy.interpolate: SciPy's values bit for bit; derivatives by values, nodes and points."""

# ruff: noqa: PLW0108 - the lambdas show what is called with what

import numpy as np
import pytest
from scipy import interpolate

import pullback as pb
from pullback_scipy import interpolate as mirrored

RNG = np.random.default_rng(5)
X, Y = np.sort(RNG.uniform(0, 4, size=7)), RNG.normal(size=7)
YY = RNG.normal(size=(7, 3))
NEW = np.array([[X[0] + 0.01, 1.3, 2.2], [X[-1] - 0.02, 0.9, 3.1]])
GRID = (np.array([0.0, 1.0, 2.5, 3.0]), np.array([-1.0, 0.2, 1.0]))
VALUES = RNG.normal(size=(4, 3))
XI = np.array([[0.3, 0.1], [2.9, -0.6], [1.7, 0.9]])


def programs(m):
    return {
        "CubicSpline": (lambda y, n: m.CubicSpline(X, y)(n), Y, NEW),
        "CubicSpline nodes": (lambda x, y, n: m.CubicSpline(x, y, bc_type="natural")(n), X, Y, NEW),
        "CubicSpline ends": (
            lambda x, y: m.CubicSpline(x, y, bc_type=((1, 0.5), "not-a-knot"))(NEW, 1), X, Y,
        ),
        "CubicSpline columns": (lambda y, n: m.CubicSpline(X, y, axis=1, bc_type="clamped")(n), YY.T, NEW),
        "CubicSpline points": (lambda n: m.CubicSpline(X, YY)(n), NEW),
        "CubicSpline derivative": (lambda y, n: m.CubicSpline(X, y).derivative()(n), Y, NEW),
        "CubicSpline integral": (lambda y, b: m.CubicSpline(X, y).integrate(1.0, b), Y, np.array(2.7)),
        "CubicSpline three": (lambda x, y: m.CubicSpline(x, y)(NEW), X[:3], Y[:3]),
        "CubicSpline beyond": (lambda y: m.CubicSpline(X, y)(np.array([-1.0, 5.0])), Y),
        "Pchip": (lambda x, y, n: m.PchipInterpolator(x, y)(n), X, Y, NEW),
        "Pchip columns": (lambda y: m.PchipInterpolator(X, y)(NEW), YY),
        "make_interp_spline": (lambda y, n: m.make_interp_spline(X, y)(n), Y, NEW),
        "make_interp_spline columns": (lambda y, n: m.make_interp_spline(X, y, k=2)(n), YY, NEW),
        "make_interp_spline derivative": (lambda y, n: m.make_interp_spline(X, y, k=5)(n, 1), Y, NEW),
        "make_interp_spline points": (lambda n: m.make_interp_spline(X, Y)(n), NEW),
        "BSpline": (lambda c, n: m.BSpline(np.arange(11.0), c, 3)(n), Y, NEW + 3),
        "grid": (lambda v, xi: m.RegularGridInterpolator(GRID, v)(xi), VALUES, XI),
        "grid points": (lambda xi: m.RegularGridInterpolator(GRID, VALUES)(xi), XI),
        "grid beyond": (
            lambda v, xi: m.RegularGridInterpolator(GRID, v, bounds_error=False, fill_value=None)(xi), VALUES, XI + 1.3,
        ),
        "grid fill": (
            lambda v, xi: m.RegularGridInterpolator(GRID, v, bounds_error=False, fill_value=2.0)(xi), VALUES, XI + 1.3,
        ),
        "grid nearest": (lambda v: m.RegularGridInterpolator(GRID, v, "nearest")(XI), VALUES),
        "interpn": (lambda v, xi: m.interpn(GRID, v, xi), VALUES, XI),
        "interp1d": (lambda x, y, n: m.interp1d(x, y)(n), X, Y, NEW),
        "interp1d unsorted": (lambda x, y: m.interp1d(x, y, axis=0)(NEW), X[::-1].copy(), YY),
        "interp1d beyond": (
            lambda y: m.interp1d(X, y, fill_value="extrapolate")(np.array([-1.0, 2.0, 5.0])), YY.T,
        ),
        "interp1d fill": (lambda y: m.interp1d(X, y, bounds_error=False, fill_value=(1, 2))(NEW - 1), Y),
        "interp1d nearest": (lambda y: m.interp1d(X, y, "nearest")(NEW), Y),
        "interp1d previous": (lambda y: m.interp1d(X, y, "previous")(NEW), Y),
        "interp1d points": (lambda n: m.interp1d(X, Y)(n), NEW),
        "interp1d nearest-up": (lambda y: m.interp1d(X, y, "nearest-up")(NEW), Y),
        "interp1d cubic": (lambda y, n: m.interp1d(X, y, "cubic", axis=0)(n), YY, NEW),
        "interp1d quadratic": (lambda y, n: m.interp1d(X[::-1], y, 2)(n), Y, NEW),
        "interp1d zero": (lambda y: m.interp1d(X, y, "zero", bounds_error=False, fill_value=(1, 2))(NEW - 1), Y),
        "interp1d slinear": (lambda y: m.interp1d(X, y, "slinear", fill_value="extrapolate")(NEW + 1), Y),
        "BSpline not beyond": (
            lambda c, n: np.nan_to_num(m.BSpline(np.arange(11.0), c, 3, extrapolate=False)(n)), Y, NEW * 3,
        ),
        "CubicSpline integral of both": (
            lambda x, y, a, b: m.CubicSpline(x, y).integrate(a, b), X, YY, np.array(1.0), np.array(2.7),
        ),
        "CubicSpline antiderivative": (lambda y, n: m.CubicSpline(X, y).antiderivative(2)(n), Y, NEW),
        "Pchip integral beyond": (
            lambda b: np.nan_to_num(m.PchipInterpolator(X, Y).integrate(1.0, b, extrapolate=False)), np.array(9.7),
        ),
        "BSpline integral": (lambda a, b: m.make_interp_spline(X, YY).integrate(a, b), np.array(1.0), np.array(2.7)),
        "grid descending": (lambda v, xi: m.RegularGridInterpolator((GRID[0], GRID[1][::-1]), v)(xi), VALUES, XI),
        "grid one point": (lambda v, xi: m.RegularGridInterpolator(GRID, v)(list(xi)), VALUES, XI[0]),
        "CubicSpline not beyond": (lambda n: np.nan_to_num(m.CubicSpline(X, Y, extrapolate=False)(n)), NEW * 2),
    }  # fmt: skip


SECOND = ("CubicSpline", "make_interp_spline", "grid points")
OURS, THEIRS = programs(mirrored), programs(interpolate)


@pytest.mark.parametrize("name", OURS)
def test_values_are_those_of_scipy(name):
    (ours, *operands), (theirs, *_) = OURS[name], THEIRS[name]
    out, _ = pb.vjp(ours, *operands)
    expected = theirs(*operands)
    assert np.shape(out) == np.shape(expected)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(ours(*operands), expected, rtol=0, atol=0)


@pytest.mark.share(4, of=lambda name: 0)
@pytest.mark.parametrize("name", OURS)
def test_derivatives_are_right(name):
    f, *operands = OURS[name]
    pb.testing.check_grads(f, tuple(operands), order=2 if name in SECOND else 1)


def test_what_is_refused():
    with pytest.raises(pb.NotDifferentiableError, match=r"CubicSpline with bc_type='periodic'"):
        pb.grad(lambda y: mirrored.CubicSpline(X, y, bc_type="periodic")(1.0))(Y)
    with pytest.raises(pb.NotDifferentiableError, match=r"RegularGridInterpolator with method='cubic'"):
        pb.grad(lambda v: mirrored.RegularGridInterpolator(GRID, v, "cubic")(XI)[0])(VALUES)
    with pytest.raises(ValueError, match="out of bounds"):
        pb.grad(lambda v: mirrored.RegularGridInterpolator(GRID, v)(XI + 9)[0])(VALUES)
    with pytest.raises(pb.NotDifferentiableError, match=r"'roots'.*pullback\.value"):
        pb.grad(lambda y: mirrored.CubicSpline(X, y).roots()[0])(Y)
    with pytest.raises(pb.NotDifferentiableError, match=r"RegularGridInterpolator with nu=\(1, 0\)"):
        pb.grad(lambda v: mirrored.RegularGridInterpolator(GRID, v)(XI, nu=(1, 0))[0])(VALUES)


@pytest.mark.parametrize("m", [mirrored, interpolate])
def test_a_value_for_points_beyond_the_nodes_is_none_to_be_used_unasked(m):
    """SciPy raises, unless ``bounds_error=False`` is given."""
    with pytest.raises(ValueError, match="interpolation range"):
        pb.vjp(lambda y, m=m: m.interp1d(X, y if m is mirrored else Y, fill_value=3.0)(X[0] - 1), Y)
