"""A backend of pullback: what a staged step does on large arrays, in loop nests that numba compiles.

There is nothing to import: ``staging="numba"`` finds it through the entry-point group ``pullback.backends``.
"""

from pullback_numba.arranging import arrange as arrange
