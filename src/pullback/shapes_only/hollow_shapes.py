"""What is known of an array without values, and what cannot be known."""

from typing import Any, Final, NoReturn

import numpy as np
from attrs import frozen

from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import ShapesOnlyError

Shape = tuple[int, ...]
NOTHING: Final = np.dtype("V0")
"""Elements of no bytes: NumPy finds the shape of a result on them, and takes no memory."""


@frozen
class HollowResult:
    """What a function of NumPy would give: a new array. ``like`` is one whose axes lie in memory in the same order;
    ``scalar`` says that it is a number, which is no buffer; ``blank`` that it is zeros."""

    shape: Shape
    dtype: Any
    scalar: bool = False
    like: Any = None
    blank: bool = False


def is_hollow(x: Any) -> bool:
    """Whether it is an array without values."""
    return hasattr(x, "__pullback_hollow__")


def nothing_of(x: Any) -> Any:
    """An array of that shape, of elements without bytes."""
    return np.broadcast_to(np.empty((), NOTHING), np.shape(x))


def holds_hollow(x: Any) -> bool:
    """Whether it is a hollow array, or a tuple or a list with one in it."""
    return is_hollow(x) or (isinstance(x, tuple | list) and any(map(holds_hollow, x)))


def refuse(what: str, where: str = "at") -> NoReturn:
    """Raise :class:`ShapesOnlyError`: a value is asked for."""
    raise ShapesOnlyError(
        f"planning from shapes alone, {what} is needed ({where} {site_text(site_here())}): what is done or held there "
        "depends on numbers. Give plan the data of the arguments that it depends on instead of pullback.spec(...)"
    )
