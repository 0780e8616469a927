"""Buffers: arrays of the trace, such as ``np.zeros_like(x)``, that do not depend on the inputs yet. NumPy functions of
buffers alone are computed immediately on their values, and give buffers; everything else goes the tracer's way."""

from functools import partial
from threading import get_ident
from typing import Any, Final

import numpy as np

from pullback.primitives.shaping.reshaping import reshape, transpose
from pullback.recording.results import view_of
from pullback.rules.catalogue import registry
from pullback.rules.declaration import Primitive
from pullback.tracing.dispatch import ByName, method
from pullback.tracing.unrecorded_operations import GOES_ON, rested
from pullback.words.call_sites import MISSED

FUNCTIONS: Final = {
    **dict.fromkeys((np.sum, np.prod, np.mean, np.std, np.var, np.max, np.min, np.amax, np.amin, np.any, np.all), 1),
    **dict.fromkeys((np.argmax, np.argmin, np.cumsum, np.cumprod, np.trace, np.round, np.roll, np.diff, np.copy), 1),
    **dict.fromkeys((np.zeros_like, np.ones_like, np.count_nonzero), 1),
    **dict.fromkeys((np.dot, np.vdot, np.inner, np.outer, np.full_like, np.repeat, np.array_equal, np.allclose), 2),
    np.where: 3, np.clip: 3,
}  # fmt: skip
"""NumPy functions that give new arrays and numbers alone: of buffers they can be asked as they are. With how many of
their arguments may be arrays."""
METHODS: Final = {"dot": 2, "repeat": 2, "clip": 3}
"""Array methods of this kind that take more than one array, with how many."""


class AtOnce(ByName):
    """An array method that gives new arrays and numbers alone."""

    def __get__(self, handle: Any, owner: type[Any] | None = None) -> Any:
        return self if handle is None else partial(_at_once, self.name, handle)


def _at_once(name: str, handle: Any, *args: Any, **kwargs: Any) -> Any:
    found = rested(getattr(np.ndarray, name), METHODS.get(name, 1), handle._tape, (handle, *args), kwargs)
    return method(name, handle, args, kwargs) if found is MISSED else found


def rests(ufunc: Any) -> bool:
    """Whether a ufunc is one of the core's, with one output."""
    declared = registry.functions.get(ufunc)
    return type(declared) is Primitive and declared.trusted and declared.elementwise and not declared.outputs


def seen(handle: Any, prim: Primitive, params: dict[str, Any]) -> Any:
    """The view of a buffer that a primitive gives, where it depends on nothing and that is a view; else ``MISSED``."""
    tape, value = handle._tape, handle._value
    if tape.mode not in GOES_ON or tape.trap is not None or tape.thread != get_ident():
        return MISSED
    if handle._id is not None or type(value) is not np.ndarray:
        return MISSED
    out = prim.forward(value, **params)
    shared = out.base is not None and (out.base is value or out.base is value.base)
    return view_of(handle, prim, params, out, None) if shared and out.size else MISSED


class Resting:
    """What a buffer does immediately, over the class of tracers."""

    __slots__ = ()

    def __array_ufunc__(self: Any, func: Any, how: str, *operands: Any, **kwargs: Any) -> Any:
        if how == "__call__" and not kwargs and len(operands) == func.nin and rests(func):
            found = rested(func, func.nin, self._tape, operands, kwargs)
            if found is not MISSED:
                return found
        return super().__array_ufunc__(func, how, *operands, **kwargs)  # type: ignore[misc]  # a tracer's

    def __array_function__(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        n_arrays = FUNCTIONS.get(func)
        found = rested(func, n_arrays, self._tape, args, kwargs) if n_arrays else MISSED
        return super().__array_function__(func, types, args, kwargs) if found is MISSED else found  # type: ignore[misc]

    (
        sum, prod, mean, std, var, max, min, argmax, argmin, any, all, cumsum, cumprod, dot, trace, clip, round, repeat,
    ) = (AtOnce() for _ in range(18))  # fmt: skip

    def __matmul__(self: Any, other: Any) -> Any:
        found = rested(np.matmul, 2, self._tape, (self, other), {})
        return super().__matmul__(other) if found is MISSED else found  # type: ignore[misc]  # as above

    def copy(self: Any, order: str = "C") -> Any:
        """A copy that owns its memory."""
        found = rested(np.ndarray.copy, 1, self._tape, (self, order), {})
        return method("copy", self, (), {"order": order}) if found is MISSED else found

    __copy__ = copy

    def astype(self: Any, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """The values in another dtype."""
        found = rested(np.ndarray.astype, 1, self._tape, (self, dtype, *args), kwargs)
        return method("astype", self, (dtype, *args), kwargs) if found is MISSED else found

    def reshape(self: Any, *shape: Any, **kwargs: Any) -> Any:
        """The elements in another shape."""
        sizes = shape[0] if len(shape) == 1 and type(shape[0]) is tuple else shape
        plainly = sizes and not kwargs and set(map(type, sizes)) == {int}
        found = seen(self, reshape, {"shape": sizes, "order": "C"}) if plainly else MISSED
        return super().reshape(*shape, **kwargs) if found is MISSED else found  # type: ignore[misc]  # as above

    def transpose(self: Any, *axes: Any) -> Any:
        """The view with permuted axes."""
        found = MISSED if axes else seen(self, transpose, {"axes": tuple(range(len(self.shape)))[::-1]})
        return super().transpose(*axes) if found is MISSED else found  # type: ignore[misc]  # as above

    T = property(transpose, doc="The transposed view.")
