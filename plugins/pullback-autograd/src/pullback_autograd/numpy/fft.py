"""``numpy.fft``, each name NumPy's own."""

from typing import Any

from numpy import fft


def __getattr__(name: str) -> Any:
    return getattr(fft, name)


def __dir__() -> list[str]:
    return dir(fft)
