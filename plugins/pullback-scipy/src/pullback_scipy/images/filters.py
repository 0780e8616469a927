"""Linear filters of scipy.ndimage: correlations with small weights, of an image that is continued beyond its edges.

Continuing an image is a copy of some of its elements, its transpose an addition to them. What is left is a correlation
without edges (``inner``), whose transpose is the correlation of what is padded with zeros with the weights reversed
(``outer``), and the other way round.
"""

from operator import index
from typing import Any

import numpy as np
from scipy import ndimage

import pullback as pb
from pullback_scipy.mirroring import as_array, derived, linear, linear_by, mirror, primitive

MODES = {"grid-mirror": "reflect", "grid-wrap": "wrap", "grid-constant": "constant"}
"""Other names of the ways in which an image is continued."""


def source_places(n: int, before: int, after: int, mode: str) -> tuple[Any, Any]:
    """Where in a line of ``n`` elements those before and behind it come from."""
    left, right = np.arange(-before, 0), np.arange(n, n + after)
    if mode == "nearest":
        return np.zeros(before, int), np.full(after, n - 1)
    if mode == "wrap":
        return left % n, right % n
    period = 2 * n if mode == "reflect" else max(2 * n - 2, 1)
    folded = [np.abs(each) % period if mode == "mirror" else each % period for each in (left, right)]
    top = 2 * n - 1 if mode == "reflect" else 2 * n - 2
    folded = [np.where(each >= n, top - each, each) for each in folded]
    return folded[0], folded[1]


def continued(x: Any, axis: int, before: int, after: int, mode: str, cval: Any) -> Any:
    """``x`` with elements before and behind it along an axis."""
    if not before and not after:
        return x
    if mode == "constant":
        sizes = [list(x.shape), list(x.shape)]
        sizes[0][axis], sizes[1][axis] = before, after
        return np.concatenate((np.full(sizes[0], cval, x.dtype), x, np.full(sizes[1], cval, x.dtype)), axis=axis)
    left, right = source_places(x.shape[axis], before, after, mode)
    return np.concatenate((np.take(x, left, axis), x, np.take(x, right, axis)), axis=axis)


def conjugated(w: Any) -> Any:
    """The weights with their conjugation undone: SciPy's correlations conjugate complex ones, convolutions do not."""
    return np.conj(w) if w.dtype.kind == "c" else w


def _inner(x: Any, w: Any) -> Any:
    """The correlation where no weight reaches beyond the edges, bilinear: without conjugation."""
    wide, w = [axis for axis, m in enumerate(w.shape) if m > 1], conjugated(w)
    if len(wide) == 1:  # several times as fast
        whole = ndimage.correlate1d(x, w.reshape(-1), wide[0], mode="constant")
    else:
        whole = ndimage.correlate(x, w, mode="constant")
    key = tuple(slice(m // 2, m // 2 + n - m + 1) for n, m in zip(x.shape, w.shape, strict=True))
    return whole[key].copy()


def _inner_rule(ct: Any, x: Any, w: Any, needed: frozenset[str]) -> tuple[Any, Any]:
    of_x = None
    if "x" in needed:
        of_x = inner(np.pad(ct, [(m - 1, m - 1) for m in w.shape]), np.flip(w))
    return of_x, weights_cotangent(ct, x, w.shape) if "w" in needed else None


def weights_cotangent(ct: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """The sum of the products that each weight stands in."""
    sums = []
    for place in np.ndindex(shape):
        key = tuple(slice(k, k + n) for k, n in zip(place, ct.shape, strict=True))
        sums.append(np.sum(ct * x[key]))
    return np.reshape(np.stack(sums), shape)


inner = primitive(_inner, name="scipy.correlate_inside", bilinear=("x", "w"))
inner.vjp("x", "w", fn=_inner_rule)


def along(w: Any, axis: int, ndim: int) -> Any:
    """Weights of one axis, for images of ``ndim``."""
    shape = [1] * ndim
    shape[axis] = -1
    return np.reshape(w, shape)


def widened(x: Any, shape: tuple[int, ...], mode: Any, cval: Any, origin: Any) -> Any:
    """The image continued as far as weights of ``shape`` reach."""
    modes = [mode] * x.ndim if isinstance(mode, str) else list(mode)
    origins = [int(origin)] * x.ndim if np.ndim(origin) == 0 else [int(o) for o in origin]
    for axis, (m, name, shift) in enumerate(zip(shape, modes, origins, strict=True)):
        before = m // 2 + shift
        if m > 1:
            x = continued(x, axis, before, m - 1 - before, MODES.get(name, name), cval)
    return x


def correlated(x: Any, w: Any, mode: Any, cval: Any, origin: Any) -> Any:
    """The correlation, by a copy that is continued beyond the edges."""
    return inner(widened(x, w.shape, mode, cval, origin), w)


def spread(ct: Any, w: Any, x_spec: Any, mode: Any, origin: Any) -> Any:
    """The transpose of :func:`correlated` in the image: no correlation but one is computed."""
    g = inner(np.pad(ct, [(m - 1, m - 1) for m in w.shape]), np.flip(w))
    zeros = np.zeros(x_spec.shape, x_spec.dtype)
    g = g.real if g.dtype.kind == "c" and zeros.dtype.kind != "c" else g  # complex weights on a real image
    return pb.vjp(lambda x: widened(x, w.shape, mode, 0.0, origin), zeros)[1](g)[0]


def weighing(function: Any, turned: bool, name: str) -> Any:
    """The primitive of a correlation, or of a convolution, which turns the weights."""

    def origins_of(shape: Any, origin: Any) -> list[int]:
        given = [int(origin)] * len(shape) if np.ndim(origin) == 0 else [int(o) for o in origin]
        return [-o - (1 if m % 2 == 0 else 0) for o, m in zip(given, shape, strict=True)] if turned else given

    def of_image(ct: Any, w: Any, x_spec: Any, mode: Any, origin: Any) -> Any:
        return spread(ct, np.flip(w) if turned else w, x_spec, mode, origins_of(w.shape, origin))

    def of_weights(ct: Any, x: Any, w_spec: Any, mode: Any, cval: Any, origin: Any) -> Any:
        wide = widened(x, w_spec.shape, mode, cval, origins_of(w_spec.shape, origin))
        g = weights_cotangent(ct, wide, w_spec.shape)
        return np.flip(g) if turned else g

    return primitive(
        lambda x, w, *, mode, cval, origin: function(x, w, mode=mode, cval=cval, origin=origin),
        name=name,
        vjps={"x": of_image, "w": of_weights},
    )


# ---------------------------------------------------------------------------------------------------- given the weights
def bilinear(function: Any) -> Any:
    """A correlation of SciPy's as a function that is linear in its weights, which it conjugates."""
    return lambda x, w, *axis, **options: function(x, conjugated(w), *axis, **options)


weighted = weighing(bilinear(ndimage.correlate), turned=False, name="scipy.ndimage_correlate")
turned_weighted = weighing(ndimage.convolve, turned=True, name="scipy.ndimage_convolve")


def _convolved(x: Any, w: Any, mode: Any, cval: Any, origin: Any) -> Any:
    origins = [-int(o) - (1 if m % 2 == 0 else 0) for o, m in zip(origin, w.shape, strict=True)]
    return correlated(x, np.flip(w), mode, cval, origins)


def _of_axis(function: Any, formula: Any, name: str) -> Any:
    def forward(x: Any, w: Any, *, axis: int, mode: str, cval: Any, origin: int) -> Any:
        return function(x, w, axis, mode=mode, cval=cval, origin=origin)

    def by_formula(x: Any, w: Any, axis: int, mode: str, cval: Any, origin: int) -> Any:
        origins = [0] * x.ndim
        origins[axis] = origin
        whole = along(w, axis, x.ndim)
        if formula is _convolved:
            origins = [o if k == axis else 0 for k, o in enumerate(origins)]
        return formula(x, whole, mode, cval, origins)

    return derived(forward, by_formula, "x w", "axis mode cval origin", name=name)


line_weighted = _of_axis(bilinear(ndimage.correlate1d), correlated, "scipy.correlate1d")
turned_line_weighted = _of_axis(ndimage.convolve1d, _convolved, "scipy.convolve1d")


def _given(function: Any, made: Any) -> Any:
    def call(input: Any, weights: Any, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0) -> Any:
        modes = mode if isinstance(mode, str) else tuple(mode)
        origins = origin if np.ndim(origin) == 0 else tuple(origin)
        return made(as_array(input) * 1.0, as_array(weights) * 1.0, mode=modes, cval=cval, origin=origins)

    return mirror(function, "input weights")(call)


def _given_line(function: Any, made: Any) -> Any:
    def call(input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0, origin: int = 0) -> Any:
        x = as_array(input) * 1.0
        place = index(axis) % x.ndim
        return made(x, as_array(weights) * 1.0, axis=place, mode=mode, cval=cval, origin=origin)

    return mirror(function, "input weights")(call)


correlate, convolve = _given(ndimage.correlate, bilinear(weighted)), _given(ndimage.convolve, turned_weighted)
correlate1d = _given_line(ndimage.correlate1d, bilinear(line_weighted))
convolve1d = _given_line(ndimage.convolve1d, turned_line_weighted)


# -------------------------------------------------------------------------------------------- of weights that are known
def impulse(function: Any, size: int) -> Any:
    """The weights of a filter of one axis: what it makes of a single 1, reversed."""
    line = np.zeros(2 * size + 1)
    line[size] = 1.0
    return function(line)[::-1]


def gaussian_weights(sigma: float, order: int, truncate: float, radius: Any) -> Any:
    """Those of gaussian_filter1d."""
    reach = int(truncate * float(sigma) + 0.5) if radius is None else int(radius)
    return impulse(
        lambda x: ndimage.gaussian_filter1d(
            x, sigma, order=order, mode="constant", truncate=truncate, radius=radius
        ),
        max(reach, 0),
    )  # fmt: skip


def smoothed(x: Any, axis: int, w: Any, mode: str, cval: Any) -> Any:
    """A filter of one axis, which is no copy where its weight is one number."""
    return correlated(x, along(w, axis, x.ndim), mode, cval, 0)


def _sequence(value: Any, count: int) -> list[Any]:
    return [value] * count if isinstance(value, str) or np.ndim(value) == 0 else list(value)


def _gaussian_steps(ndim: int, sigma: Any, order: Any, mode: Any, truncate: float, radius: Any, axes: Any) -> Any:
    """The weights, the way to continue and the axis of each filter, in SciPy's order."""
    chosen = list(range(ndim)) if axes is None else [a % ndim for a in _sequence(axes, 1)]
    settings = (_sequence(each, len(chosen)) for each in (sigma, order, mode, radius))
    return [
        (along(gaussian_weights(s, o, truncate, r), axis, ndim), m)
        for axis, s, o, m, r in zip(chosen, *settings, strict=True)
        if s > 1e-15
    ]


def chain(function: Any, steps: Any, params: str, *, name: str) -> Any:
    """The primitive of filters of one axis that follow each other; ``steps(ndim, **params)`` are (weights, mode)."""
    settings = tuple(params.split())

    def rule(ct: Any, x_spec: Any, *static: Any) -> Any:
        given = dict(zip(settings, static, strict=True))
        for w, mode in reversed(steps(len(x_spec.shape), **given)):
            ct = spread(ct, w, x_spec, mode, 0)
        return ct

    return linear_by(function, rule, settings, name=name)


gaussian = chain(
    lambda x, *, sigma, order, mode, cval, truncate, radius, axes: ndimage.gaussian_filter(
        x, sigma, order, None, mode, cval, truncate, radius=radius, axes=axes
    ),
    lambda ndim, cval, **options: _gaussian_steps(ndim, **options),
    "sigma order mode cval truncate radius axes",
    name="scipy.gaussian_filter",
)


def _gaussian(x: Any, sigma: Any, order: Any, mode: Any) -> Any:
    for w, name in _gaussian_steps(x.ndim, sigma, order, mode, 4.0, None, None):
        x = correlated(x, w, name, 0.0, 0)
    return x


def fixed(x: Any) -> Any:
    """A parameter as a number or a tuple."""
    return x if x is None or isinstance(x, str) or np.ndim(x) == 0 else tuple(x)


@mirror(ndimage.gaussian_filter, "input")
def gaussian_filter(
    input: Any, sigma: Any, order: Any = 0, mode: Any = "reflect", cval: Any = 0.0, truncate: float = 4.0,
    *, radius: Any = None, axes: Any = None,
) -> Any:  # fmt: skip
    """The image smoothed by a Gaussian."""
    options = {"sigma": sigma, "order": order, "mode": mode, "radius": radius, "axes": axes}
    return gaussian(
        as_array(input) * 1.0, cval=cval, truncate=truncate, **{name: fixed(x) for name, x in options.items()}
    )


@mirror(ndimage.gaussian_filter1d, "input")
def gaussian_filter1d(
    input: Any, sigma: Any, axis: int = -1, order: int = 0, mode: str = "reflect", cval: Any = 0.0,
    truncate: float = 4.0, *, radius: Any = None,
) -> Any:  # fmt: skip
    """The image smoothed by a Gaussian along one axis."""
    return gaussian_line(
        as_array(input) * 1.0,
        sigma=sigma,
        axis=axis,
        order=order,
        mode=mode,
        cval=cval,
        truncate=truncate,
        radius=radius,
    )


gaussian_line = chain(
    lambda x, *, sigma, axis, order, mode, cval, truncate, radius: ndimage.gaussian_filter1d(
        x, sigma, axis, order, None, mode, cval, truncate, radius=radius
    ),
    lambda ndim, sigma, axis, order, mode, cval, truncate, radius: [
        (along(gaussian_weights(sigma, order, truncate, radius), axis % ndim, ndim), mode)
    ],
    "sigma axis order mode cval truncate radius",
    name="scipy.gaussian_filter1d",
)


# ------------------------------------------------------------------------------------------------ boxes and differences
def _boxed(x: Any, size: Any, mode: Any, cval: Any, origin: Any) -> Any:
    settings = zip(_sequence(size, x.ndim), _sequence(mode, x.ndim), _sequence(origin, x.ndim), strict=True)
    for axis, (s, m, o) in enumerate(settings):
        if s > 1:
            origins = [o if k == axis else 0 for k in range(x.ndim)]
            x = correlated(x, along(np.full(int(s), 1.0 / int(s)), axis, x.ndim), m, 0.0, origins)
    return x


boxes = linear(
    lambda x, *, size, mode, cval, origin: ndimage.uniform_filter(x, size, None, mode, cval, origin),
    _boxed,
    "size mode cval origin",
    name="scipy.uniform_filter",
)


@mirror(ndimage.uniform_filter, "input")
def uniform_filter(input: Any, size: Any = 3, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0) -> Any:
    """The means over boxes."""
    options = {"size": fixed(size), "mode": fixed(mode), "origin": fixed(origin)}
    return boxes(as_array(input) * 1.0, cval=cval, **options)


def _difference(across: Any) -> Any:
    def formula(x: Any, axis: int, mode: Any, cval: Any) -> Any:
        modes, axis = _sequence(mode, x.ndim), axis % x.ndim
        x = smoothed(x, axis, np.array([-1.0, 0.0, 1.0]), modes[axis], 0.0)
        for other in range(x.ndim):
            if other != axis:
                x = smoothed(x, other, np.array(across), modes[other], 0.0)
        return x

    return formula


def _of_differences(function: Any, across: Any) -> Any:
    made = linear(
        lambda x, *, axis, mode, cval: function(x, axis, None, mode, cval),
        _difference(across),
        "axis mode cval",
        name=f"scipy.{function.__name__}",
    )

    def call(input: Any, axis: int = -1, mode: Any = "reflect", cval: Any = 0.0) -> Any:
        return made(as_array(input) * 1.0, axis=axis, mode=fixed(mode), cval=cval)

    return mirror(function, "input")(call)


sobel, prewitt = _of_differences(ndimage.sobel, [1.0, 2.0, 1.0]), _of_differences(ndimage.prewitt, [1.0, 1.0, 1.0])


def _laplace(x: Any, mode: Any, cval: Any) -> Any:
    modes = _sequence(mode, x.ndim)
    total = smoothed(x, 0, np.array([1.0, -2.0, 1.0]), modes[0], 0.0)
    for axis in range(1, x.ndim):
        total = total + smoothed(x, axis, np.array([1.0, -2.0, 1.0]), modes[axis], 0.0)
    return total


second_differences = linear(
    lambda x, *, mode, cval: ndimage.laplace(x, None, mode, cval), _laplace, "mode cval", name="scipy.laplace"
)


@mirror(ndimage.laplace, "input")
def laplace(input: Any, mode: Any = "reflect", cval: Any = 0.0) -> Any:
    """The sum of the second differences."""
    return second_differences(as_array(input) * 1.0, mode=fixed(mode), cval=cval)


def _gaussian_laplace(x: Any, sigma: Any, mode: Any, cval: Any) -> Any:
    n, modes = x.ndim, _sequence(mode, x.ndim)  # SciPy continues the image along all axes as along that of each term
    parts = [_gaussian(x, sigma, [2 if k == axis else 0 for k in range(n)], modes[axis]) for axis in range(n)]
    return sum(parts[1:], parts[0])


smooth_second_differences = linear(
    lambda x, *, sigma, mode, cval: ndimage.gaussian_laplace(x, sigma, None, mode, cval),
    _gaussian_laplace,
    "sigma mode cval",
    name="scipy.gaussian_laplace",
)


@mirror(ndimage.gaussian_laplace, "input")
def gaussian_laplace(input: Any, sigma: Any, mode: Any = "reflect", cval: Any = 0.0) -> Any:
    """The Laplacian of the image smoothed by a Gaussian."""
    return smooth_second_differences(as_array(input) * 1.0, sigma=fixed(sigma), mode=fixed(mode), cval=cval)
