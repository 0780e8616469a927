"""The core's families that most programs never call: imported at the first function that the registry does not find.

Kept apart from :data:`pullback.primitives.CORE` for the sake of ``import pullback``, and for no other reason.
"""

from pullback.declare import Composite, Primitive
from pullback.primitives.calculus import CALCULUS
from pullback.primitives.convolution import CONVOLUTION
from pullback.primitives.editing import EDITING
from pullback.primitives.filling import FILLING
from pullback.primitives.fitting import FITTING
from pullback.primitives.folds import FOLDS
from pullback.primitives.histograms import HISTOGRAMS
from pullback.primitives.interpolation import INTERPOLATION
from pullback.primitives.nans import NANS
from pullback.primitives.padding import PADDING
from pullback.primitives.phases import PHASES
from pullback.primitives.picking import PICKING
from pullback.primitives.polynomials import POLYNOMIALS
from pullback.primitives.quantiles import QUANTILES
from pullback.primitives.ranges import RANGES
from pullback.primitives.scimath import SCIMATH
from pullback.primitives.segments import SEGMENTS
from pullback.primitives.sets import SETS
from pullback.primitives.sorting import SORTING
from pullback.primitives.statistics import STATISTICS
from pullback.primitives.windows import WINDOWS

RARE: tuple[Primitive | Composite, ...] = (
    *EDITING,
    *FILLING,
    *PADDING,
    *SEGMENTS,
    *CALCULUS,
    *CONVOLUTION,
    *INTERPOLATION,
    *RANGES,
    *POLYNOMIALS,
    *FITTING,
    *STATISTICS,
    *SORTING,
    *SETS,
    *QUANTILES,
    *PICKING,
    *NANS,
    *HISTOGRAMS,
    *FOLDS,
    *SCIMATH,
    *WINDOWS,
    *PHASES,
)
