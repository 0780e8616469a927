"""``autograd.numpy``: NumPy itself, with ``pullback.numpy`` for what does not dispatch (``array`` of a list of
tracers, ``full``, ...)."""

from typing import Any

from pullback import numpy as pnp
from pullback_autograd.numpy import fft, linalg, numpy_boxes, random


def __getattr__(name: str) -> Any:
    return getattr(pnp, name)


def __dir__() -> list[str]:
    return sorted({*dir(pnp), "numpy_boxes"})


__all__ = ["fft", "linalg", "numpy_boxes", "random"]
