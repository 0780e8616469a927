"""pullback_scipy.ndimage: SciPy's values bit for bit, right derivatives, at the edges too."""

import numpy as np
import pytest
from scipy import ndimage

import pullback as pb
from pullback_scipy import ndimage as mirrored

RNG = np.random.default_rng(5)
IMAGE, LINE = RNG.normal(size=(6, 7)), RNG.normal(size=9)
KERNEL = RNG.normal(size=(3, 2))
POINTS = np.stack([RNG.uniform(-1.3, 6.3, size=8), RNG.uniform(-1.2, 7.3, size=8)])
WEIGHTS = np.array([0.2, 0.5, -0.3, 0.1])


def programs(m):
    table = {
        "convolve1d": (lambda x, w: m.convolve1d(x, w, axis=0, origin=1), IMAGE, WEIGHTS[:3]),
        "gaussian order": (lambda x: m.gaussian_filter(x, 0.8, order=(1, 2)), IMAGE),
        "gaussian sigmas": (lambda x: m.gaussian_filter(x, (0.7, 0.0), cval=2.0, mode="constant"), IMAGE),
        "gaussian axes": (lambda x: m.gaussian_filter(x, 0.9, mode="wrap", axes=(1,)), IMAGE),
        "gaussian wide": (lambda x: m.gaussian_filter(x, 4.0), LINE),
        "gaussian line": (lambda x: m.gaussian_filter1d(x, 1.1, 0, 1, mode="nearest", truncate=2.0), IMAGE),
        "uniform": (lambda x: m.uniform_filter(x, (3, 4), mode="mirror"), IMAGE),
        "sobel": (lambda x: m.sobel(x, 0), IMAGE),
        "prewitt": (lambda x: m.prewitt(x, mode="constant"), IMAGE),
        "laplace": (m.laplace, IMAGE),
        "gaussian_laplace": (lambda x: m.gaussian_laplace(x, 0.8), IMAGE),
        "spline_filter": (m.spline_filter, IMAGE),
        "spline_filter1d": (lambda x: m.spline_filter1d(x, 2, 0, mode="reflect"), IMAGE),
        "shift": (lambda x, s: m.shift(x, s, order=3, mode="mirror"), IMAGE, np.array([0.3, -1.2])),
        "shift one": (lambda x, s: m.shift(x, s, order=1, cval=1.5), LINE, np.array(0.7)),
        "zoom": (lambda x: m.zoom(x, 1.7), IMAGE),
        "zoom less": (lambda x: m.zoom(x, (0.6, 2), order=1), IMAGE),
        "affine": (
            lambda x, a, o: m.affine_transform(x, a, o, (4, 5), order=3, mode="reflect"),
            IMAGE, np.array([[0.9, 0.2], [-0.1, 1.1]]), np.array([0.3, 0.6]),
        ),
        "affine diagonal": (
            lambda x, a: m.affine_transform(x, a, order=1, mode="nearest"), IMAGE, np.array([0.83, 1.31]),
        ),
    }  # fmt: skip
    for mode in ("reflect", "nearest", "mirror", "wrap", "constant"):
        table[f"correlate {mode}"] = (
            lambda x, w, mode=mode: m.correlate(x, w, mode=mode, origin=(1, 0)),
            IMAGE,
            KERNEL,
        )
        table[f"convolve {mode}"] = (lambda x, w, mode=mode: m.convolve(x, w, mode=mode), IMAGE, KERNEL)
        table[f"correlate1d {mode}"] = (
            lambda x, w, mode=mode: m.correlate1d(x, w, 1, mode=mode, cval=0.7, origin=-1), IMAGE, WEIGHTS,
        )  # fmt: skip
    for mode in ("constant", "nearest", "mirror", "reflect", "grid-wrap"):
        for order in (0, 1, 2, 3):
            if mode != "nearest" or order < 2:
                table[f"map_coordinates {order} {mode}"] = (
                    lambda x, p, order=order, mode=mode: m.map_coordinates(x, p, order=order, mode=mode), IMAGE, POINTS,
                )  # fmt: skip
    for mode in ("reflect", "nearest", "mirror", "wrap", "constant", "grid-wrap", "grid-constant", "grid-mirror"):
        for size in (5, 40):  # of a short line SciPy's sums at the ends are seen in the result
            table[f"spline_filter1d {mode} {size}"] = (
                lambda x, mode=mode: m.spline_filter1d(x, 5, 0, mode=mode), RNG.normal(size=(size, 2)),
            )  # fmt: skip
    given = {"mode": "constant", "cval": 0.7}
    table |= {
        "cval gaussian": (lambda x: m.gaussian_filter(x, 0.8, order=(1, 0), **given), IMAGE),
        "cval gaussian line": (lambda x: m.gaussian_filter1d(x, 1.1, 0, 1, **given), IMAGE),
        "cval gaussian_laplace": (lambda x: m.gaussian_laplace(x, 0.8, **given), IMAGE),
        "cval uniform": (lambda x: m.uniform_filter(x, 3, **given), IMAGE),
        "gaussian_laplace modes": (lambda x: m.gaussian_laplace(x, 0.8, mode=("wrap", "mirror")), IMAGE),
        "zoom by one": (lambda x: m.zoom(x, 1.0, order=5, mode="reflect"), IMAGE),
        "cval sobel": (lambda x: m.sobel(x, 0, **given), IMAGE),
        "cval laplace": (lambda x: m.laplace(x, **given), IMAGE),
        "order 5": (lambda x, p: m.map_coordinates(x, p, order=5, mode="mirror"), IMAGE, POINTS),
        "no prefilter": (lambda x, p: m.map_coordinates(x, p, mode="mirror", prefilter=False), IMAGE, POINTS),
        "affine homogeneous": (
            lambda x, a: m.affine_transform(x, a, order=2, mode="reflect"),
            IMAGE, np.array([[0.9, 0.2, 0.31], [-0.1, 1.1, 0.63]]),
        ),
    }  # fmt: skip
    return table


OURS, THEIRS = programs(mirrored), programs(ndimage)


@pytest.mark.parametrize("name", OURS)
def test_values_are_those_of_scipy(name):
    (ours, *operands), (theirs, *_) = OURS[name], THEIRS[name]
    out, _ = pb.vjp(ours, *operands)
    np.testing.assert_array_equal(out, theirs(*operands))


@pytest.mark.parametrize("name", OURS)
def test_derivatives_are_right(name):
    f, *operands = OURS[name]
    out, pull = pb.vjp(f, *operands)
    seed = np.cos(np.arange(np.size(out))).reshape(np.shape(out))
    directions = [np.sin(1 + np.arange(np.size(x))).reshape(np.shape(x)) for x in operands]
    step = 1e-6

    def moved(s):
        return np.sum(seed * f(*(x + s * v for x, v in zip(operands, directions, strict=True))))

    differences = (moved(step) - moved(-step)) / (2 * step)
    given = sum(np.sum(ct * v) for ct, v in zip(pull(seed), directions, strict=True))
    np.testing.assert_allclose(given, differences, rtol=1e-6, atol=1e-8)
    tangent = pb.jvp(f, tuple(operands), tuple(directions))[1]
    np.testing.assert_allclose(np.sum(seed * tangent), given, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["correlate", "convolve", "correlate1d", "convolve1d"])
@pytest.mark.parametrize("image", [IMAGE, IMAGE + 1j * IMAGE[::-1]])
def test_complex_weights(name, image):
    """SciPy conjugates those of a correlation."""
    w = np.array([[0.2, 0.5 + 1j, -0.3j]]) if name in ("correlate", "convolve") else np.array([0.2, 0.5 + 1j, -0.3j])

    def parts(x, w):
        out = getattr(mirrored, name)(x, w, mode="wrap")
        return np.stack([out.real, out.imag])

    out = getattr(ndimage, name)(image, w, mode="wrap")
    assert np.asarray(pb.vjp(parts, image, w)[0]).tobytes() == np.stack([out.real, out.imag]).tobytes()
    pb.testing.check_grads(lambda x, w: np.sin(parts(x, w)), (image, w), order=2)


@pytest.mark.parametrize("name", ["gaussian wide", "correlate reflect", "map_coordinates 3 mirror"])
def test_second_order(name):
    f, *operands = OURS[name]
    pb.testing.check_grads(lambda *x: f(*x) ** 2, tuple(operands), order=2)


def test_options_without_a_rule_are_named():
    with pytest.raises(pb.NotDifferentiableError, match=r"map_coordinates with mode='wrap'.*'grid-wrap'"):
        pb.grad(lambda x: mirrored.map_coordinates(x, POINTS, mode="wrap")[0])(IMAGE)
    with pytest.raises(pb.MissingRuleError, match=r"gaussian_filter has no rule for its argument 'sigma'"):
        pb.grad(lambda s: mirrored.gaussian_filter(IMAGE, s)[0, 0])(1.0)
