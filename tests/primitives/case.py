"""One row of the conformance table: a NumPy function of arrays, and what it covers."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

ROUGH = {
    "kink": "the slope jumps",
    "tie": "elements are equal, and which of them counts jumps",
    "jump": "the result, or its shape, jumps",
    "pole": "a slope on the way is infinite",
    "nan": "a value is not finite",
    "rounding": "the result is in a lower precision than the argument, or counts digits: differences see steps",
    "triangle": "one triangle of a Hermitian matrix is read, and the gradient is that of the whole",
}
"""Why the derivatives of a row are not compared with differences."""


@frozen
class Case:
    """``fn(*args)`` is checked with every inexact array among ``args`` as an input.

    ``covers`` are the primitives and composites it exercises. ``rough`` is a word of :data:`ROUGH` where differences
    say nothing about its derivatives. ``dtypes`` are those in which the case is run.
    """

    name: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    covers: tuple[str, ...]
    rough: str = ""
    dtypes: tuple[str, ...] = ("float64",)


def since(version: str, *rows: Any) -> tuple[Any, ...]:
    """The rows, or none of them where the installed NumPy is older than ``version``."""
    return rows if np.lib.NumpyVersion(np.__version__) >= version else ()


def one(name: str, function: Any, *arrays: Any, covers: tuple[str, ...] = (), **kwargs: Any) -> Case:
    """A case that covers what its name begins with."""
    return Case(name, function, arrays, covers or (name.split(maxsplit=1)[0],), **kwargs)


def weigh(parts: Any) -> Any:
    """One array that depends on every part, differently on each."""
    return sum(((k + 1) * np.sum(part * part) for k, part in enumerate(parts)), 0.0)
