"""What a tracer refuses because the derivative would be dropped, ``float(x)`` and ``np.asarray(x)`` among it: each
error names the rewrite."""

import operator
from collections.abc import Callable
from copy import copy
from functools import partial
from sys import _getframe
from typing import Any, Final, NoReturn

import numpy as np

from pullback.recording.copies import lent
from pullback.recording.crossing import left_alone, present, standing_for
from pullback.recording.handles import Handle, resolve, spec_of_handle, tape_of, value_now
from pullback.recording.refusals import refusal
from pullback.words.call_sites import calls_here, in_adopted_code, site_here, site_text
from pullback.words.errors import ConversionError
from pullback.words.undocumented import by_operator, by_sparse_product

READING: Final = frozenset(("data", "dump", "dumps", "getfield", "tobytes", "tofile", "view"))
"""Attributes that only read: of an array that depends on nothing, in adopted code, they are those of its values."""
DRAWING: Final = ("matplotlib", "mpl_toolkits")
"""Libraries that draw."""
COUNTING: Final = frozenset(
    "hist hist2d acorr xcorr psd csd cohere specgram magnitude_spectrum angle_spectrum phase_spectrum".split()
)
"""Functions of theirs that hand back what they have computed."""
_HOLD: Final = (
    "Instead of a subclass of ndarray write a class that has the array as an attribute, self.data = d, with methods "
    "that take slices of it"
)


class Unsupported:
    """An attribute of an array that a tracer lacks: told apart from a misspelt one."""

    name = ""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    def __get__(self, handle: Any, owner: type[Any] | None = None) -> Any:
        if handle is None:
            return self
        if self.name == "view":
            return partial(_viewed, handle)
        if self.name in READING and not left_alone(handle) and not depends(handle):
            return getattr(lent(value_now(handle), handle._tape), self.name)
        raise _lacks(self.name)


def _lacks(name: str, more: str = "") -> AttributeError:
    return AttributeError(
        f"a tracer has no attribute {name!r}; use the NumPy function on it, or pullback.value(x).{name} to leave the "
        f"derivative behind{more}"
    )


def _viewed(handle: Any, *args: Any, **kwargs: Any) -> Any:
    """What ``view`` gives: without arguments the array again, else of a buffer that depends on nothing, to be read
    only, in a subclass of ndarray, too."""
    if not args and not kwargs:
        return handle[...]
    if left_alone(handle) or depends(handle):
        raise _lacks("view", f". Without arguments it is x[...]. {_HOLD}")
    return lent(value_now(handle), handle._tape).view(*args, **kwargs)


NO_ARRAY = np.empty((), object)
"""What NumPy makes of an object that it knows nothing of."""


def depends(handle: Any) -> bool:
    """Whether a handle has to be refused. In a trace that runs adopted code every array is a handle: what depends on
    no input is read as it is there."""
    tape = tape_of((handle,), "a conversion")  # a step on handles without values ends here
    if tape.adopted is None:
        return True
    here = present(handle, tape)
    while isinstance(here, Handle):
        if resolve(here)._id is not None:
            return True
        here = here._value
    return False


def is_drawn() -> bool:
    """Whether Matplotlib asks, which adopted code has called to draw: what it hands back are pictures, and a few
    functions numbers."""
    calls = calls_here()
    if not calls or not in_adopted_code():
        return False
    names = {name for _, name in calls}
    return calls[0][0].partition(".")[0] in DRAWING and calls[0][0] != "matplotlib.mlab" and names.isdisjoint(COUNTING)


def made_plain(handle: Any) -> Any:
    """The values of a buffer that depends on nothing, to be read only, and of what is drawn in adopted code; raises
    what :func:`refusal` says otherwise.

    A product by a SciPy sparse array alone is told that this is no array: SciPy then leaves it to the other operand,
    ``x.__rmatmul__(A)``. While a loop's body runs plainly, a value that it has captured is converted.
    """
    if left_alone(handle):
        return np.asarray(standing_for(handle))
    if not depends(handle):
        return lent(value_now(handle), handle._tape)
    if by_sparse_product(_getframe(2)):
        return NO_ARRAY
    if is_drawn():
        return np.array(value_now(handle))
    raise refusal(handle, "a plain array made")


def as_number(handle: Any, kind: Callable[[Any], Any], wanted: str, *, noted: bool = True) -> Any:
    """``kind`` of the value, while a loop's body runs plainly, and where it depends on nothing; raises what
    :func:`refusal` says otherwise."""
    if left_alone(handle):
        return kind(standing_for(handle))
    if not depends(handle) or is_drawn():
        return kind(value_now(handle))
    raise refusal(handle, wanted, noted=noted)


class Unconverted(Handle):
    """What every tracer refuses: to become a plain number, array, list or pickle, and attributes that it lacks."""

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        plain = made_plain(self)
        wanted = plain.dtype if dtype is None else np.dtype(dtype)
        if copy is False and wanted != plain.dtype:
            raise ValueError(f"an array of {plain.dtype} cannot be given as {wanted} without a copy")
        return plain.astype(wanted) if copy or wanted != plain.dtype else plain

    def __float__(self) -> Any:
        return as_number(self, float, "float()")

    def __int__(self) -> Any:
        return as_number(self, int, "int()")

    def __index__(self) -> Any:
        # before NumPy 2.3 an array asks its exponent for one, and goes on without
        return as_number(self, operator.index, "an index made", noted=not by_operator(_getframe(1)))

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

    def tolist(self) -> Any:
        """Raises, unless nothing depends on it: a list of plain numbers would drop the derivative. In adopted code it
        has traced numbers."""
        if in_adopted_code() and not left_alone(self) and depends(self):
            array: Any = self
            return [row.tolist() for row in array] if array.shape else array
        return as_number(self, np.ndarray.tolist, "tolist()")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise refusal(self, "a pickle")

    def __deepcopy__(self, memo: Any) -> Any:
        """Raises, as to pickle it does; a copy in adopted code, which others wrote to copy arrays."""
        if in_adopted_code():
            return copy(self)
        raise ConversionError(
            f"copy.deepcopy of a tracer of {spec_of_handle(self)} (at {site_text(site_here())}): a deep copy is made "
            "to outlive what it is of, and a tracer ends with its trace; write x.copy() or copy.copy(x), also for each "
            "array of a structure, which are recorded, or take pullback.value(x) to leave the derivative behind"
        )

    # No __getattr__: it would make every look into a slot slow. What arrays have besides is named here.
    (
        base, byteswap, ctypes, data, dump, dumps, getfield, itemset, newbyteorder, ptp, resize, setfield, setflags,
        to_device, tobytes, tofile, tostring, view,
    ) = (Unsupported() for _ in range(18))  # fmt: skip
