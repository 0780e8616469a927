"""``numpy.random``, each name NumPy's own, but for the rules that the program has declared for one of them."""

from typing import Any

import numpy as np

from pullback_autograd.extend import replaced


def __getattr__(name: str) -> Any:
    return replaced(getattr(np.random, name))


def __dir__() -> list[str]:
    return dir(np.random)
