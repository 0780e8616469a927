"""Roads by which a tracer would become a plain number or array: each is refused, and the rewrite named."""

from collections.abc import Callable
from sys import _getframe
from typing import Any, NoReturn

import numpy as np

from pullback.recording.crossing import left_alone, standing_for
from pullback.recording.handles import Handle, spec_of_handle
from pullback.recording.refusals import refusal
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import ConversionError
from pullback.words.sniffs import by_sparse_product


class Unsupported:
    """An attribute of an array that a tracer lacks: told apart from a misspelt one."""

    name = ""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    def __get__(self, handle: Any, owner: type[Any] | None = None) -> Any:
        if handle is None:
            return self
        raise AttributeError(
            f"a tracer has no attribute {self.name!r}; use the NumPy function on it, or "
            f"pullback.value(x).{self.name} to leave the derivative behind"
        )


NO_ARRAY = np.empty((), object)
"""What NumPy makes of an object that it knows nothing of."""


def made_plain(handle: Any) -> Any:
    """Raises what :func:`refusal` says. A product by a SciPy sparse array alone is told that this is no array: SciPy
    then leaves it to the other operand, ``x.__rmatmul__(A)``. While a loop's body runs plainly, a value that it has
    captured is converted."""
    if left_alone(handle):
        return np.asarray(standing_for(handle))
    if by_sparse_product(_getframe(2)):
        return NO_ARRAY
    raise refusal(handle, "a plain array")


def as_number(handle: Any, kind: Callable[[Any], Any], wanted: str) -> Any:
    """``kind`` of the value, while a loop's body runs plainly; raises what :func:`refusal` says otherwise."""
    if left_alone(handle):
        return kind(standing_for(handle))
    raise refusal(handle, wanted)


class Unconverted(Handle):
    """What every tracer refuses: to become a plain number, array, list or pickle, and attributes that it lacks."""

    __slots__ = ()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return made_plain(self)

    def __float__(self) -> Any:
        return as_number(self, float, "float()")

    def __int__(self) -> Any:
        return as_number(self, int, "int()")

    def __index__(self) -> NoReturn:
        raise refusal(self, "an index made")

    def __complex__(self) -> Any:
        return as_number(self, complex, "complex()")

    def __hash__(self) -> int:
        """Raises: NumPy's scalars hash by value. By identity, ``x in {1.0, 2.0}`` would take another branch; by value,
        a memoised function would hand out what it computed in another trace."""
        raise ConversionError(
            f"the hash of a tracer of {spec_of_handle(self)} is asked for (at "
            f"{site_text(site_here())}): by value a cache would hand out a value of another trace, by identity a set "
            "would take another branch; write float(pullback.value(x)) in {...} for membership, and f.__wrapped__(x) "
            "for a memoised function f"
        )

    def tolist(self) -> NoReturn:
        """Raises: a list of plain numbers would drop the derivative."""
        raise refusal(self, "tolist()")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise refusal(self, "a pickle")

    # No __getattr__: it would make every look into a slot slow. What arrays have besides is named here.
    (
        base, byteswap, ctypes, data, dump, dumps, getfield, itemset, newbyteorder, ptp, resize, setfield, setflags,
        to_device, tobytes, tofile, tostring, view,
    ) = (Unsupported() for _ in range(18))  # fmt: skip
