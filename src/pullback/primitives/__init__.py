"""The core's primitives, one family per file. Importing a file registers nothing.

:data:`CORE` is what the default registry starts with, and :func:`rare` gives what it imports at the first function that
it does not find. May import: rules, and the rooms in it.
"""

from importlib import import_module

from pullback.primitives.elementwise.complex_parts import COMPLEXES
from pullback.primitives.elementwise.operators import IN_PLACE, OPERATORS
from pullback.primitives.elementwise.powers import POWERS
from pullback.primitives.elementwise.sinc_and_bessel import SINC_AND_BESSEL
from pullback.primitives.elementwise.ufunc_rules import ELEMENTWISE
from pullback.primitives.elementwise.zero_derivative import ZERO
from pullback.primitives.reducing.extrema_and_products import EXTREMA_AND_PRODUCTS
from pullback.primitives.reducing.scans import SCANS
from pullback.primitives.reducing.sums import SUMS
from pullback.primitives.reducing.variances import VARIANCES
from pullback.primitives.selecting.indexing import INDEXING
from pullback.primitives.selecting.where_and_clip import SELECTION
from pullback.primitives.shaping.creation import CREATION
from pullback.primitives.shaping.diagonals import DIAGONALS
from pullback.primitives.shaping.joining import JOINING
from pullback.primitives.shaping.reshaping import SHAPING
from pullback.primitives.shaping.roll_repeat_tile import REPEATING
from pullback.primitives.shared.masked_arithmetic import MASKED
from pullback.rules.declaration import Composite, Primitive

CORE: tuple[Primitive | Composite, ...] = (
    *(*ELEMENTWISE, *POWERS, *SINC_AND_BESSEL, *OPERATORS, *IN_PLACE, *MASKED, *COMPLEXES, *ZERO),
    *(*SUMS, *VARIANCES, *EXTREMA_AND_PRODUCTS, *SCANS, *SHAPING, *REPEATING, *DIAGONALS, *JOINING),
    *(*INDEXING, *SELECTION, *CREATION),
)


def late_families() -> tuple[Primitive | Composite, ...]:
    """The families that are imported at first need."""
    declared: tuple[Primitive | Composite, ...] = import_module("pullback.primitives.imported_late").LATE
    return declared
