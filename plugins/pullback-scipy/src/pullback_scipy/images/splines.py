"""Images between their samples: map_coordinates, shift, zoom, affine_transform; spline_filter.

An image is a spline whose coefficients ``spline_filter`` finds, linear in the image; its value at a point is a sum over
the neighbours with weights that are polynomials of the point (Unser, "Splines: a perfect fit for signal and image
processing", IEEE Signal Process. Mag. 16, 1999). The filter is the inverse of a matrix that is symmetric but for the
ends, so its transpose is the filter itself; of a short line SciPy's sums at the ends are none of an exact inverse.
"""

from math import comb, factorial
from typing import Any

import numpy as np
from scipy import ndimage

import pullback as pb
from pullback_scipy.images.filters import fixed, source_places
from pullback_scipy.mirroring import as_array, derived, linear, mirror, only, primitive

# --------------------------------------------------------------------------------------------------------- coefficients
SHORT = 32
"""The most samples with which what SciPy rounds at the ends is seen in the result."""


def _weights_at_ends(n: int, axis: int, ndim: int, mode: str) -> Any:
    weights = np.ones(n)
    if mode in ("mirror", "constant", "wrap", "grid-constant"):  # all of them are filtered as mirrored at the ends
        weights[[0, -1]] = 0.5
    shape = [1] * ndim
    shape[axis] = n
    return weights.reshape(shape)


def _filter_rule(ct: Any, axis: int, order: int, mode: str) -> Any:
    n = ct.shape[axis]
    if n <= SHORT:
        matrix = ndimage.spline_filter1d(np.eye(n), order, 0, mode=mode)
        return np.moveaxis(np.tensordot(matrix, ct, (0, axis)), 0, axis)
    w = _weights_at_ends(n, axis, len(ct.shape), mode)
    return w * coefficients(ct / w, axis=axis, order=order, mode=mode)


coefficients = primitive(
    lambda x, *, axis, order, mode: ndimage.spline_filter1d(x, order, axis, mode=mode),
    name="scipy.spline_filter1d",
    linear=("x",),
    vjps={"x": _filter_rule},
)


@mirror(ndimage.spline_filter1d, "input")
def spline_filter1d(input: Any, order: int = 3, axis: int = -1, mode: str = "mirror") -> Any:
    """The coefficients of a spline through the samples, along one axis."""
    return coefficients(as_array(input) * 1.0, axis=axis, order=order, mode=mode)


def all_coefficients(x: Any, order: int, mode: str) -> Any:
    """Along every axis."""
    for axis in range(x.ndim):
        if order > 1:
            x = coefficients(x, axis=axis, order=order, mode=mode)
    return x


filtered = linear(
    lambda x, *, order, mode: ndimage.spline_filter(x, order, mode=mode),
    all_coefficients,
    "order mode",
    name="scipy.spline_filter",
)


@mirror(ndimage.spline_filter, "input")
def spline_filter(input: Any, order: int = 3, mode: str = "mirror") -> Any:
    """The coefficients of a spline through the samples."""
    return filtered(as_array(input) * 1.0, order=order, mode=mode)


# --------------------------------------------------------------------------------------------------------------- points
def basis(t: Any, order: int) -> list[Any]:
    """The weights of the neighbours from the first to the last, at ``t`` behind the first one's right neighbour for odd
    orders, ``t`` from the middle one for even ones."""
    if order == 0:
        return [np.ones_like(t)]
    if order == 1:
        return [1 - t, t]
    if order == 2:
        return [(0.5 - t) ** 2 / 2, 0.75 - t * t, (0.5 + t) ** 2 / 2]
    if order == 3:
        return [
            (1 - t) ** 3 / 6, 2 / 3 - t * t * (2 - t) / 2, 2 / 3 - (1 - t) ** 2 * (1 + t) / 2, t**3 / 6,
        ]  # fmt: skip
    s = t if order % 2 else t + 0.5
    return [_weight(1 - s, order, order - k) if 2 * k < order else _weight(s, order, k) for k in range(order + 1)]


def _weight(s: Any, order: int, k: int) -> Any:
    """That of neighbour ``k`` as a sum of truncated powers, few for the last neighbours."""
    signed = ((-1) ** j * comb(order + 1, j) for j in range(order - k + 1))
    return sum(c * (s + order - k - j) ** order for j, c in enumerate(signed)) / factorial(order)


def neighbours(x: Any, order: int) -> tuple[Any, Any]:
    """The first of the neighbours of each coordinate, plain, and the place between them."""
    plain = pb.value(x)
    if order % 2:
        start = np.floor(plain)
        return start.astype(np.intp) - order // 2, x - start
    middle = np.floor(plain + 0.5)
    return middle.astype(np.intp) - order // 2, x - middle


def folded(places: Any, n: int, mode: str) -> Any:
    """Places within a line of ``n``, for those beyond it."""
    if n == 1:
        return np.zeros_like(places)
    if mode in ("wrap", "reflect"):
        return folded_by(places, n, mode)
    return folded_by(places, n, "nearest" if mode == "nearest_edge" else "mirror")


def folded_by(places: Any, n: int, mode: str) -> Any:
    """As the continued line of :func:`source_places` has them."""
    reach = max(int(-places.min(initial=0)), int(places.max(initial=0)) - n + 1, 0)
    left, right = source_places(n, reach, reach, mode)
    return np.concatenate((left, np.arange(n), right))[places + reach]


def sampled(x: Any, points: Any, order: int, mode: str, cval: Any, prefilter: bool) -> Any:
    """The image at ``points``, an array of coordinates for each axis; without ``prefilter`` by its coefficients."""
    kind = {"grid-wrap": "wrap", "reflect": "reflect", "grid-mirror": "reflect"}.get(mode, "mirror")
    c = all_coefficients(x, order, "grid-wrap" if kind == "wrap" else kind) if prefilter else x
    outside = np.zeros(np.shape(pb.value(points))[1:], bool)
    lines = []
    for axis, n in enumerate(x.shape):
        at = points[axis]
        if mode == "constant":
            outside |= (pb.value(at) < 0) | (pb.value(at) > n - 1)
        elif mode == "nearest":
            at = np.clip(at, 0, n - 1)
        inside = np.where(outside, 0.0, at) if mode == "constant" else at
        first, t = neighbours(inside, order)
        lines.append([(folded(first + k, n, kind), w) for k, w in enumerate(basis(t, order))])
    total: Any = 0.0
    for place in np.ndindex(tuple(len(line) for line in lines)):
        chosen = [line[k] for line, k in zip(lines, place, strict=True)]
        term = c[tuple(at for at, _ in chosen)]
        for _, w in chosen:
            term = term * w
        total = total + term
    return np.where(outside, cval, total) if mode == "constant" else total


SERVED_MODES = ("constant", "nearest", "mirror", "reflect", "grid-mirror", "grid-wrap")


def require(title: str, order: int, mode: str) -> None:
    """Raise for what is not served."""
    only(title, "mode", mode, *(SERVED_MODES if order < 2 else [m for m in SERVED_MODES if m != "nearest"]))
    only(title, "order", order, 0, 1, 2, 3, 4, 5)


mapped = derived(
    ndimage.map_coordinates,
    sampled,
    "x points",
    "order mode cval prefilter",
    name="scipy.map_coordinates",
)


@mirror(ndimage.map_coordinates, "input coordinates")
def map_coordinates(
    input: Any, coordinates: Any, order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True
) -> Any:
    """The image at coordinates, by a spline."""
    require("scipy.ndimage.map_coordinates", order, mode)
    options = {"order": order, "mode": mode, "cval": cval, "prefilter": bool(prefilter)}
    return mapped(as_array(input) * 1.0, as_array(coordinates) * 1.0, **options)


def _grid(shape: Any) -> Any:
    return np.stack(np.meshgrid(*(np.arange(float(n)) for n in shape), indexing="ij"))


def _shifted(x: Any, shift: Any, order: int, mode: str, cval: Any, prefilter: bool) -> Any:
    far = np.broadcast_to(shift, (x.ndim,)) if np.ndim(shift) == 0 else shift
    return sampled(x, _grid(x.shape) - np.reshape(far, (-1, *(1,) * x.ndim)), order, mode, cval, prefilter)


moved = derived(
    ndimage.shift,
    _shifted,
    "x shift",
    "order mode cval prefilter",
    name="scipy.shift",
)


@mirror(ndimage.shift, "input shift")
def shift(
    input: Any, shift: Any, order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True
) -> Any:
    """The image moved along its axes."""
    require("scipy.ndimage.shift", order, mode)
    options = {"order": order, "mode": mode, "cval": cval, "prefilter": bool(prefilter)}
    return moved(as_array(input) * 1.0, as_array(shift) * 1.0, **options)


def _zoomed(x: Any, zoom: Any, order: int, mode: str, cval: Any, prefilter: bool) -> Any:
    factors = [zoom] * x.ndim if np.ndim(zoom) == 0 else list(zoom)
    if prefilter and all(z == 1 for z in factors):  # SciPy gives the image back then
        return x.copy()
    shape = [round(n * z) for n, z in zip(x.shape, factors, strict=True)]
    steps = [(n - 1) / (m - 1) if m > 1 else 1.0 for n, m in zip(x.shape, shape, strict=True)]
    points = _grid(shape) * np.reshape(steps, (-1, *(1,) * x.ndim))
    last = np.reshape([n - 1.0 for n in x.shape], (-1, *(1,) * x.ndim))
    return sampled(x, np.minimum(points, last), order, mode, 0.0, prefilter)


zoomed = linear(
    ndimage.zoom,
    _zoomed,
    "zoom order mode cval prefilter",
    name="scipy.zoom",
)


@mirror(ndimage.zoom, "input")
def zoom(input: Any, zoom: Any, order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True) -> Any:
    """The image with more samples, or fewer."""
    require("scipy.ndimage.zoom", order, mode)
    options = {"order": order, "mode": mode, "cval": cval, "prefilter": bool(prefilter)}
    return zoomed(as_array(input) * 1.0, zoom=fixed(zoom), **options)


def _affine(
    x: Any, matrix: Any, offset: Any, output_shape: Any, order: int, mode: str, cval: Any, prefilter: bool
) -> Any:
    grid = _grid(x.shape if output_shape is None else output_shape)
    scaled = (
        matrix[:, None] * np.reshape(grid, (x.ndim, -1))
        if matrix.ndim == 1
        else matrix @ np.reshape(grid, (x.ndim, -1))
    )
    far = np.broadcast_to(offset, (x.ndim,)) if np.ndim(offset) == 0 else offset
    return sampled(x, np.reshape(scaled + np.reshape(far, (-1, 1)), grid.shape), order, mode, cval, prefilter)


turned = derived(
    ndimage.affine_transform,
    _affine,
    "x matrix offset",
    "output_shape order mode cval prefilter",
    name="scipy.affine_transform",
)


@mirror(ndimage.affine_transform, "input matrix offset")
def affine_transform(
    input: Any, matrix: Any, offset: Any = 0.0, output_shape: Any = None, order: int = 3, mode: str = "constant",
    cval: Any = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    """The image at ``matrix @ o + offset`` for every place ``o`` of the result."""
    require("scipy.ndimage.affine_transform", order, mode)
    x, matrix, offset = (as_array(each) * 1.0 for each in (input, matrix, offset))
    if matrix.ndim == 2 and matrix.shape[1] == x.ndim + 1:  # homogeneous: the offset stands in it
        matrix, offset = matrix[: x.ndim, :-1], matrix[: x.ndim, -1]
    options = {"order": order, "mode": mode, "cval": cval, "prefilter": bool(prefilter)}
    return turned(x, matrix, offset, output_shape=fixed(output_shape), **options)
