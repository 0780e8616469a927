"""``scipy.ndimage`` with derivatives; a name without one is SciPy's own."""

from scipy import ndimage

from pullback_scipy.images.filters import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    gaussian_laplace,
    laplace,
    prewitt,
    sobel,
    uniform_filter,
)
from pullback_scipy.images.splines import (
    affine_transform,
    map_coordinates,
    shift,
    spline_filter,
    spline_filter1d,
    zoom,
)
from pullback_scipy.mirroring import fall_through

__getattr__, __dir__ = fall_through(ndimage, globals())
__all__ = [
    "affine_transform", "convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "gaussian_filter1d",
    "gaussian_laplace", "laplace", "map_coordinates", "prewitt", "shift", "sobel", "spline_filter", "spline_filter1d",
    "uniform_filter", "zoom",
]  # fmt: skip
