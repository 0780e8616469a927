"""The core's families that most programs never call: imported at the first function that the registry does not find.

Kept apart from :data:`pullback.primitives.CORE` for the sake of ``import pullback``, and for no other reason.
"""

from pullback.primitives.curves.calculus import CALCULUS
from pullback.primitives.curves.fitting import FITTING
from pullback.primitives.curves.interpolation import INTERPOLATION
from pullback.primitives.curves.polynomials import POLYNOMIALS
from pullback.primitives.elementwise.scimath import SCIMATH
from pullback.primitives.elementwise.unwrap import PHASES
from pullback.primitives.reducing.convolution import CONVOLUTION
from pullback.primitives.reducing.histograms import HISTOGRAMS
from pullback.primitives.reducing.nan_reductions import NANS
from pullback.primitives.reducing.quantiles import QUANTILES
from pullback.primitives.reducing.reduceat import SEGMENTS
from pullback.primitives.reducing.statistics import STATISTICS
from pullback.primitives.reducing.ufunc_folds import FOLDS
from pullback.primitives.selecting.put_and_place import FILLING
from pullback.primitives.selecting.sets import SETS
from pullback.primitives.selecting.sorting import SORTING
from pullback.primitives.shaping.insert_delete import EDITING
from pullback.primitives.shaping.padding import PADDING
from pullback.primitives.shaping.ranges import RANGES
from pullback.primitives.shaping.windows import WINDOWS
from pullback.primitives.shared.gather_scatter import PICKING
from pullback.rules.declaration import Composite, Primitive

LATE: tuple[Primitive | Composite, ...] = (
    *EDITING, *FILLING, *PADDING, *SEGMENTS, *CALCULUS, *CONVOLUTION, *INTERPOLATION, *RANGES, *POLYNOMIALS, *FITTING,
    *STATISTICS, *SORTING, *SETS, *QUANTILES, *PICKING, *NANS, *HISTOGRAMS, *FOLDS, *SCIMATH, *WINDOWS, *PHASES,
)  # fmt: skip
