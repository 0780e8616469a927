"""SciPy for pullback: the universal functions of scipy.special as they are, and namespaces that mirror the rest.

:data:`PRIMITIVES` is what the entry point hands over; importing registers nothing.
"""

from typing import Any

from pullback_scipy.ufuncs.bessels import BESSELS
from pullback_scipy.ufuncs.folds import FOLDS
from pullback_scipy.ufuncs.gammas import GAMMAS
from pullback_scipy.ufuncs.polynomials import POLYNOMIALS
from pullback_scipy.ufuncs.several import SEVERAL
from pullback_scipy.ufuncs.sigmoids import SIGMOIDS

PRIMITIVES: tuple[Any, ...] = (*GAMMAS, *SIGMOIDS, *BESSELS, *SEVERAL, *POLYNOMIALS, *FOLDS)

__all__ = ["PRIMITIVES"]
