"""One row of the conformance table: a NumPy function of arrays, and what it covers."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen


@frozen
class Case:
    """``fn(*args)`` is checked with every inexact array among ``args`` as an input.

    ``covers`` are the primitives and composites it exercises. ``smooth`` is False at a kink, where differences say nothing;
    ``second_order`` is False where the second derivative does not exist. ``dtypes`` are those in which the case is run.
    """

    name: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    covers: tuple[str, ...]
    smooth: bool = True
    second_order: bool = True
    dtypes: tuple[str, ...] = ("float64",)


def since(version: str, *rows: Any) -> tuple[Any, ...]:
    """The rows, or none of them where the installed NumPy is older than ``version``."""
    return rows if np.lib.NumpyVersion(np.__version__) >= version else ()
