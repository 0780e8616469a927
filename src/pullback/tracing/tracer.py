"""The tracer: a mutable handle over single-assignment values that is used as a NumPy array, and records what is done.

It is no ndarray subclass and gives itself away nowhere: every road that would drop the derivative raises. Operators
are written out and go straight to generated callers; everything else dispatches by registry name.
"""

from collections.abc import Callable, Iterator
from sys import _getframe
from typing import Any

import numpy as np

from pullback.primitives.shaping.nested_lists import as_elements
from pullback.primitives.shaping.reshaping import python_number
from pullback.recording.crossing import in_step, leave_followed
from pullback.recording.handles import Handle, Kinds, layout_of, plain_value, resolve, value
from pullback.recording.index_keys import is_basic
from pullback.recording.refusals import shuffled
from pullback.recording.tape import CAPTURED, DEFERRED, RECORDING, REPLAYABLE
from pullback.recording.writes import is_own_region, set_item
from pullback.rules.catalogue import registry
from pullback.tracing.buffers import Resting
from pullback.tracing.conversions import Unconverted
from pullback.tracing.dispatch import CALLERS, ByName, array_function, build_caller, called, method
from pullback.tracing.fast_indexing import assigned, increments, item
from pullback.tracing.flat import Flat, own_key, set_shape
from pullback.tracing.in_place import in_place
from pullback.tracing.results_into_operands import TAKING_OVER
from pullback.tracing.ufuncs import SCALARS, meant, ufunc
from pullback.tracing.unrecorded_operations import quick_operators
from pullback.words.foreign_operands import ORDINARY, plain_operand, takes_the_operator
from pullback.words.undocumented import by_assignment


def caller(key: Any) -> Callable[..., Any]:
    """The fastest way to call a primitive, by name or ufunc; made on first use."""
    return CALLERS.get(key) or build_caller(key, _CALLED_WITH)


def compared(other: Any) -> Any:
    """What an operator without a derivative looks at: a plain value. Raises for what would take the operator itself."""
    if type(other) not in ORDINARY and not isinstance(other, Handle) and takes_the_operator(other, scalar=False):
        plain_operand(other, elementwise=True)
    return value(other) if isinstance(other, Handle) else other


ABSENT, OPERATORS = object(), registry.operators


class Tracer(Unconverted):
    """A traced array. Use it as the NumPy array it stands for; ``pullback.value(x)`` looks behind it."""

    __slots__ = ()
    __hash__ = Unconverted.__hash__  # __eq__ below would make it None
    __array_priority__ = 1000.0
    __pandas_priority__ = 5000  # above a DataFrame's, which would compute with objects

    def __array_ufunc__(self, func: Any, how: str, x: Any, y: Any = ABSENT, *more: Any, **kwargs: Any) -> Any:
        if how == "__call__" and not kwargs and not more:
            func = func if y is ABSENT or type(x) not in SCALARS else meant(func, x, y, _getframe(1))
            if self._tape.mode == CAPTURED and (given := in_step(self._tape, func, x, *(() if y is ABSENT else (y,)))):
                return given[0]
            fast = CALLERS.get(func) or caller(func)
            return fast(x) if y is ABSENT else fast(x, y)
        return ufunc(func, how, (x,) if y is ABSENT else (x, y, *more), kwargs)

    __array_function__ = array_function
    __pullback_record__ = staticmethod(called)

    def __pullback_value__(self) -> Any:
        return plain_value(self)

    # What an array tells about itself.
    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes."""
        shape: tuple[int, ...] = getattr(resolve(self)._value, "shape", ())
        return shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        set_shape(self, shape)

    @property
    def flags(self) -> Any:
        """How the concrete array lies in memory."""
        return getattr(layout_of(self), "flags", np.empty(()).flags)

    @property
    def dtype(self) -> Any:
        """The dtype; float64 for a Python float."""
        value = resolve(self)._value
        return value.dtype if hasattr(value, "dtype") else np.dtype(type(value))

    ndim = property(lambda self: len(self.shape), doc="Number of axes.")
    size = property(lambda self: int(np.prod(self.shape, dtype=np.intp)), doc="Number of elements.")
    itemsize = property(lambda self: self.dtype.itemsize, doc="Bytes of an element.")
    nbytes = property(lambda self: self.size * self.itemsize, doc="Bytes of the elements.")
    strides = property(lambda self: layout_of(self).strides, doc="Bytes to step along each axis.")
    T = property(lambda self: self.transpose(), doc="The transposed view.")
    mT = property(lambda self: method("matrix_transpose", self, (), {}), doc="The last two axes swapped.")  # noqa: N815

    @property
    def real(self) -> Any:
        """The real part: the array itself where it is real."""
        return method("real", self, (), {}) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, new: Any) -> None:
        set_item(self.real if self.dtype.kind == "c" else self, ..., np.asarray(new) if type(new) is complex else new)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return method("imag", self, (), {})

    @imag.setter
    def imag(self, new: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("cannot set the imaginary part of an array that is not complex")
        set_item(self.imag, Ellipsis, np.asarray(new) if type(new) is complex else new)

    @property
    def flat(self) -> Flat:
        """The elements in C order, to iterate over, read and write by flat index."""
        return Flat(self)

    @flat.setter
    def flat(self, new: Any) -> None:
        Flat(self)[:] = new

    def __len__(self) -> int:
        return len(layout_of(self))

    def __bool__(self) -> bool:
        return bool(plain_value(self))

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        kind = "tracer" if self._id is not None else "inactive tracer"
        return f"<{kind} of {self.dtype.name}[{','.join(map(str, self.shape))}]>"

    def __format__(self, spec: str) -> str:
        return format(plain_value(self), spec) if spec else repr(self)

    # Arithmetic.
    def __add__(self, other: Any) -> Any:
        return (OPERATORS.add or caller("operator_add"))(self, other)

    def __radd__(self, other: Any) -> Any:
        return (OPERATORS.add or caller("operator_add"))(other, self)

    def __sub__(self, other: Any) -> Any:
        return (OPERATORS.subtract or caller("operator_subtract"))(self, other)

    def __rsub__(self, other: Any) -> Any:
        return (OPERATORS.subtract or caller("operator_subtract"))(other, self)

    def __mul__(self, other: Any) -> Any:
        return (OPERATORS.multiply or caller("operator_multiply"))(self, other)

    def __rmul__(self, other: Any) -> Any:
        return (OPERATORS.multiply or caller("operator_multiply"))(other, self)

    def __truediv__(self, other: Any) -> Any:
        return (OPERATORS.divide or caller("operator_divide"))(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return (OPERATORS.divide or caller("operator_divide"))(other, self)

    def __pow__(self, other: Any) -> Any:
        return (OPERATORS.power or caller("operator_power"))(self, other)

    def __rpow__(self, other: Any) -> Any:
        return (OPERATORS.power or caller("operator_power"))(other, self)

    def __mod__(self, other: Any) -> Any:
        return caller("operator_remainder")(self, other)

    def __rmod__(self, other: Any) -> Any:
        return caller("operator_remainder")(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return plain_value(self) // compared(other)

    def __rfloordiv__(self, other: Any) -> Any:
        return compared(other) // plain_value(self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __matmul__(self, other: Any) -> Any:
        if type(other) not in ORDINARY and not isinstance(other, Handle) and takes_the_operator(other, scalar=False):
            return NotImplemented
        return (CALLERS.get("matmul") or caller("matmul"))(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return caller("matmul")(other, self)

    def __neg__(self) -> Any:
        return (OPERATORS.negative or caller("operator_negative"))(self)

    def __pos__(self) -> Any:
        return caller("operator_positive")(self)

    def __abs__(self) -> Any:
        return caller("operator_absolute")(self)

    def __round__(self, digits: int | None = None) -> Any:
        return round(plain_value(self), digits)

    # In place: written through every view, or rebound where NumPy rebinds.
    __iadd__, __isub__ = increments("add", subtracts=False), increments("subtract", subtracts=True)

    def __imul__(self, other: Any) -> Any:
        return in_place("multiply", resolve(self), other)

    def __itruediv__(self, other: Any) -> Any:
        return in_place("divide", resolve(self), other)

    def __ipow__(self, other: Any) -> Any:
        return in_place("power", resolve(self), other)

    def __imod__(self, other: Any) -> Any:
        return in_place("remainder", resolve(self), other)

    def __ifloordiv__(self, other: Any) -> Any:
        return in_place("floor_divide", resolve(self), other)

    def __imatmul__(self, other: Any) -> Any:
        return in_place("matmul", resolve(self), other)

    # Comparisons have no derivative: plain arrays.
    def __lt__(self, other: Any) -> Any:
        return plain_value(self) < compared(other)

    def __le__(self, other: Any) -> Any:
        return plain_value(self) <= compared(other)

    def __gt__(self, other: Any) -> Any:
        return plain_value(self) > compared(other)

    def __ge__(self, other: Any) -> Any:
        return plain_value(self) >= compared(other)

    def __eq__(self, other: object) -> Any:
        return plain_value(self) == compared(other)

    def __ne__(self, other: object) -> Any:
        return plain_value(self) != compared(other)

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(plain_value(self) == value(item)))

    # Indexing.
    __getitem__ = item

    def __setitem__(self, key: Any, new: Any) -> None:
        if type(new) is View and new._parent is self:
            # Before the handle is derived again: that is recorded, and its place in the tape decides bits.
            mode, written, same = self._tape.mode, new._written_in, new._params.get("key") is key
            if not mode and same and written == (self._id, id(self._value)):
                return  # as is_own_region says, sooner
            if written is not None and mode in (RECORDING, REPLAYABLE, DEFERRED) and is_own_region(self, key, new):
                return
            if not by_assignment(_getframe(1)):
                raise shuffled()
        if not is_basic(key):
            set_item(self, own_key(key, self), new)
        elif not assigned(self, key, new):
            set_item(resolve(self), key, new)

    def fill(self, new: Any) -> None:
        """Every element becomes ``new``."""
        set_item(self, Ellipsis, new)

    def sort(self, axis: int = -1, **options: Any) -> None:
        """Sorted along ``axis``, in place."""
        set_item(self, Ellipsis, np.sort(self, axis, **options))

    def partition(self, kth: Any, axis: int = -1, **options: Any) -> None:
        """Put the element at ``kth``, in place, that a sort would put there, smaller ones before it, others after."""
        set_item(self, Ellipsis, np.partition(self, kth, axis, **options))

    def item(self, *index: int) -> Any:
        """The element at ``index``, as a traced Python number."""
        if len(index) <= 1:
            element = self.ravel()[index[0] if index else 0] if self.shape else self
        else:
            element = self[index]
        return python_number(element)

    # Methods, by the function of the same name.
    def copy(self, order: str = "C") -> Any:
        """A copy that owns its memory."""
        return method("copy", self, (), {"order": order})

    __copy__ = copy

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """The values in another dtype; plain for an integer or boolean one, which carries no derivative."""
        return method("astype", self, (dtype, *args), kwargs)

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """The elements in another shape: a view where NumPy gives one."""
        return method("reshape", self, (shape[0] if len(shape) == 1 else shape,), kwargs)

    def transpose(self, *axes: Any) -> Any:
        """The view with permuted axes."""
        return method("transpose", self, axes and (axes[0] if len(axes) == 1 else axes,), {})

    (
        all, any, argmax, argmin, argpartition, argsort, choose, clip, compress, cumprod, cumsum, diagonal, dot, max,
        mean, min, nonzero, prod, put, ravel, repeat, round, searchsorted, squeeze, std, sum,
        swapaxes, take, trace, var,
    ) = (ByName() for _ in range(30))  # fmt: skip

    def conj(self) -> Any:
        """The complex conjugate; a real array itself."""
        return method("conj", self, (), {}) if self.dtype.kind == "c" else self

    conjugate = conj

    def flatten(self, order: str = "C") -> Any:
        """A copy with one axis."""
        return self.ravel(order).copy()


class View(Tracer):
    """A tracer that looks at part of another; stale after a write to it, it derives itself again when next read."""

    __slots__ = ("_known", "_params", "_parent", "_parent_id", "_parent_value", "_primitive", "_written_in")

    _parent: Any
    _parent_value: Any
    _primitive: Any
    _params: dict[str, Any]
    _written_in: Any
    _known: Any
    """What ``Tape.reads`` has of the key that led here, the very tuple; None where it has none."""

    def _refresh(self) -> None:
        if self._tape.mode == CAPTURED:
            leave_followed(self)
        parent, prim, seen = self._parent, self._primitive, self._parent_value.shape
        if parent.shape != seen:  # somebody set its shape since
            parent = self._parent = parent.reshape(seen)
        fresh = called(prim, (parent,), self._params)
        if not isinstance(fresh, Handle):  # the trace is paused: derived for its value alone, and again when it records
            self._value = fresh
            return
        self._value, self._id, self._parent_id, self._parent_value = fresh._value, fresh._id, parent._id, parent._value


class Buffer(Resting, Tracer):
    """A traced array that depends on no input yet: what ``zeros_like`` gives, ready to be filled."""

    __slots__ = ()
    (
        __add__, __radd__, __sub__, __rsub__, __mul__, __rmul__, __truediv__, __rtruediv__,
    ) = quick_operators(Tracer)  # fmt: skip


class Weak(Tracer):
    """A tracer over a Python float: NumPy lets it take the dtype of what it meets."""

    __slots__ = ()

    def is_integer(self) -> bool:
        """Whether the number is whole, which is no derivative's business."""
        return bool(float(plain_value(self)).is_integer())


KINDS = Kinds(Tracer, View, Buffer, Weak, as_elements)
_CALLED_WITH = {"Tracer": Tracer, "served": frozenset((Tracer, View)), "called": called, **TAKING_OVER}
