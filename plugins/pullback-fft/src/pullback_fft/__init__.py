"""The Fourier transforms of numpy.fft for pullback.

:data:`PRIMITIVES` is what the entry point hands over; importing registers nothing.
"""

from typing import Any

from pullback_fft.axes import AXES
from pullback_fft.lines import LINES

PRIMITIVES: tuple[Any, ...] = (*LINES, *AXES)

__all__ = ["PRIMITIVES"]
