"""``scipy.optimize`` with derivatives by the implicit function theorem; a name without one is SciPy's own."""

from scipy import optimize

from pullback_scipy.equations.minima import curve_fit, least_squares, minimize, minimize_scalar
from pullback_scipy.equations.roots import (
    bisect,
    brenth,
    brentq,
    fixed_point,
    fsolve,
    newton,
    ridder,
    root,
    root_scalar,
    toms748,
)
from pullback_scipy.mirroring import fall_through

__getattr__, __dir__ = fall_through(optimize, globals())
__all__ = [
    "bisect", "brenth", "brentq", "curve_fit", "fixed_point", "fsolve", "least_squares", "minimize", "minimize_scalar",
    "newton", "ridder", "root", "root_scalar", "toms748",
]  # fmt: skip
