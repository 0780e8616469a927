"""The core's primitives, one family per file. Importing a file registers nothing; :data:`CORE` is what the default registry starts with,
and :func:`rare` gives what it imports at the first function that it does not find."""

from importlib import import_module

from pullback.declare import Composite, Primitive
from pullback.primitives.complexes import COMPLEXES
from pullback.primitives.creation import CREATION
from pullback.primitives.diagonals import DIAGONALS
from pullback.primitives.elementwise import ELEMENTWISE
from pullback.primitives.indexing import INDEXING
from pullback.primitives.joining import JOINING
from pullback.primitives.masked import MASKED
from pullback.primitives.operators import IN_PLACE, OPERATORS
from pullback.primitives.reductions import REDUCTIONS
from pullback.primitives.scans import SCANS
from pullback.primitives.selection import SELECTION
from pullback.primitives.shaping import SHAPING
from pullback.primitives.zero import ZERO

CORE: tuple[Primitive | Composite, ...] = (
    *(*ELEMENTWISE, *OPERATORS, *IN_PLACE, *MASKED, *COMPLEXES, *ZERO),
    *(*REDUCTIONS, *SCANS, *SHAPING, *DIAGONALS, *JOINING),
    *(*INDEXING, *SELECTION, *CREATION),
)


def rare() -> tuple[Primitive | Composite, ...]:
    """The families that are imported at first need."""
    entries: tuple[Primitive | Composite, ...] = import_module("pullback.primitives.rare").RARE
    return entries
