"""What NumPy has not in every version that is served: 2.0 is the oldest.

It is asked for here alone, so that a raised minimum shows what may be simplified.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.rules.declaration import Composite, Primitive


def available(*names: str) -> tuple[Callable[..., Any], ...]:
    """The functions of these names in ``numpy``, less those that the installed NumPy is too old for."""
    return tuple(getattr(np, name) for name in names if hasattr(np, name))


def served(*declarations: Primitive | Composite) -> tuple[Primitive | Composite, ...]:
    """The declarations that serve a function of the installed NumPy."""
    return tuple(declared for declared in declarations if declared.serves)
