"""``numpy.linalg``, each name NumPy's own."""

from typing import Any

from numpy import linalg


def __getattr__(name: str) -> Any:
    return getattr(linalg, name)


def __dir__() -> list[str]:
    return dir(linalg)
