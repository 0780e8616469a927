"""Handles without values: what a body is called on where its step is compared with one that is known."""

from typing import Any, ClassVar, Final

import numpy as np

from pullback.recording.handles import Kinds
from pullback.recording.tape import CLOSED, Tape
from pullback.staging.quick_operators import array_ufunc, binary, getitem, increment, setitem, unary
from pullback.tracing.dispatch import function
from pullback.tracing.tracer import KINDS, Buffer, Tracer, View, Weak
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import TracerError

_OF_SHAPE = (np.shape, np.ndim, np.size)


class Valueless:
    """What they answer from the spec alone; asked for more, they have the value computed (``_value``) or become
    ordinary."""

    __slots__ = ()

    @property
    def _value(self: Any) -> Any:
        return self._tape.shadow.value(self)

    @property
    def shape(self: Any) -> tuple[int, ...]:
        """Extents of the axes."""
        shape: tuple[int, ...] = self._spec.shape
        return shape

    @shape.setter
    def shape(self: Any, shape: Any) -> None:
        self._tape.shadow.surrender()
        self.shape = shape

    @property
    def dtype(self: Any) -> Any:
        """The dtype."""
        return self._spec.dtype

    @property
    def strides(self: Any) -> Any:
        """Bytes to step along each axis."""
        return self._flag.strides if self._flag.array else self._value.strides

    @property
    def flags(self: Any) -> Any:
        """How the array lies in memory."""
        return self._flag.flags if self._flag.array else self._value.flags

    @property
    def flat(self: Any) -> Any:
        """The elements in C order."""
        self._tape.shadow.surrender()
        return self.flat

    @flat.setter
    def flat(self: Any, new: Any) -> None:
        self._tape.shadow.surrender()
        self.flat = new

    def __array_function__(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in _OF_SHAPE and args and args[0] is self:
            return func(np.broadcast_to(False, self.shape), *args[1:], **kwargs)
        return function(self, func, args, kwargs)

    def __len__(self: Any) -> int:
        if not self._spec.shape:
            raise TypeError("len() of unsized object")
        return int(self._spec.shape[0])

    __add__, __radd__ = binary("add")
    __sub__, __rsub__ = binary("subtract")
    __mul__, __rmul__ = binary("multiply")
    __truediv__, __rtruediv__ = binary("divide")
    __pow__, __rpow__ = binary("power")
    __neg__ = unary("negative")
    __getitem__ = getitem
    __setitem__ = setitem
    __iadd__ = increment("__iadd__", subtracts=False)
    __isub__ = increment("__isub__", subtracts=True)
    __array_ufunc__ = array_ufunc


class ValuelessTracer(Valueless, Tracer):
    """A traced array."""

    __slots__ = ()


class ValuelessView(Valueless, View):
    """A view of another."""

    __slots__ = ()


class ValuelessBuffer(Valueless, Buffer):
    """An array that depends on nothing yet."""

    __slots__ = ()


class ValuelessWeak(Valueless, Weak):
    """Over a Python number."""

    __slots__ = ()


VALUELESS: Final = Kinds(ValuelessTracer, ValuelessView, ValuelessBuffer, ValuelessWeak)
CLASSES: Final[dict[str, Any]] = {
    "tracer": ValuelessTracer, "view": ValuelessView, "buffer": ValuelessBuffer, "weak": ValuelessWeak,
    "plain": ValuelessTracer,
}  # fmt: skip
KIND_OF: Final = frozenset(CLASSES.values())
_NAMES = {Tracer: "tracer", View: "view", Buffer: "buffer", Weak: "weak"}


def kind_name(handle: Any) -> str:
    """The kind of an ordinary handle."""
    return _NAMES[type(handle)]


class _Ended:
    """The shadow of a step that is over."""

    inlines: ClassVar[bool] = False

    def __getattr__(self, name: str) -> Any:
        raise TracerError(
            f"a value of a step that has ended is used (at {site_text(site_here())}): it leaked out of the body, "
            "through a global, an attribute or a generator. Return it, or keep pullback.value(x)"
        )


ENDED: Final = Tape(0, KINDS)
ENDED.mode = CLOSED
ENDED.shadow = _Ended()
