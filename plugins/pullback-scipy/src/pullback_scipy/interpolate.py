"""``scipy.interpolate`` with derivatives; a name without one is SciPy's own."""

from scipy import interpolate

from pullback_scipy.curves.bases import BSpline, make_interp_spline
from pullback_scipy.curves.grids import RegularGridInterpolator, interp1d, interpn
from pullback_scipy.curves.pieces import CubicSpline, PchipInterpolator
from pullback_scipy.mirroring import fall_through

__getattr__, __dir__ = fall_through(interpolate, globals())
__all__ = [
    "BSpline", "CubicSpline", "PchipInterpolator", "RegularGridInterpolator", "interp1d", "interpn",
    "make_interp_spline",
]  # fmt: skip
