"""``numpy.random``, each name NumPy's own."""

from typing import Any

from numpy import random


def __getattr__(name: str) -> Any:
    return getattr(random, name)


def __dir__() -> list[str]:
    return dir(random)
