"""``numpy.linalg``, each name NumPy's own, but for the rules that the program has declared for one of them."""

from typing import Any

import numpy as np

from pullback_autograd.extend import replaced
from pullback_autograd.numpy.lists import OF_ONE_ARRAY, taking_lists


def __getattr__(name: str) -> Any:
    found = getattr(np.linalg, name)
    return taking_lists(found) if name in OF_ONE_ARRAY else replaced(found)


def __dir__() -> list[str]:
    return dir(np.linalg)
