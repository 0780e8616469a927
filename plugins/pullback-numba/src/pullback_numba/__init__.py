"""A backend of pullback: what a staged step does on large arrays, in loop nests that numba compiles.

There is nothing to import: ``staging="numba"`` finds it through the entry-point group ``pullback.backends``, and what
compiles loops of adopted code over single numbers through ``pullback.loops``.
"""

from pullback_numba.arranging import arrange as arrange
from pullback_numba.scalar_loops import compiled_loop as compiled_loop
