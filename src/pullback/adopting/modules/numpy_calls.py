"""NumPy's functions that convert their arguments without asking them, for tracers: what ``pullback.numpy`` hands
on, and what adopted code finds where it imports NumPy."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from itertools import islice
from typing import Any

import numpy as np
from attrs import field, frozen

from pullback.adopting.kinds.matrices import Matrix, array_of, of_array
from pullback.primitives.shaping.nested_lists import (
    as_operand,
    carries,
    converted,
    holds_tracer,
    laid_out,
    stacked,
    values_of,
)
from pullback.recording.handles import Handle, plain_value
from pullback.rules.declaration import primitive
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import ConversionError, NotDifferentiableError

NP: Any = np  # untyped: its stubs know what NumPy takes, not what a tracer may be


def _taking(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy function that converts its first argument, for tracers and nested lists with tracers too."""

    @wraps(function)
    def convert(contents: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(contents, Matrix):
            if function is np.asanyarray and not args and not kwargs:
                return contents
            contents = contents.A
        if holds_tracer(contents):
            kwargs = {name: value for name, value in kwargs.items() if name != "like"}
            return converted(function, contents, args, kwargs)
        return function(contents, *args, **kwargs)

    return convert


array, asarray, asanyarray = _taking(np.array), _taking(np.asarray), _taking(np.asanyarray)
ascontiguousarray, asfortranarray = _taking(np.ascontiguousarray), _taking(np.asfortranarray)
asarray_chkfinite, require = _taking(np.asarray_chkfinite), _taking(np.require)


def _joining(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy function of a sequence of arrays: lists with tracers among them are made arrays."""

    @wraps(function)
    def join(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        if type(arrays) in (list, tuple) and any(isinstance(part, Matrix) for part in arrays):
            return of_array(join(array_of(arrays), *args, **kwargs))
        parts = (
            arrays
            if isinstance(arrays, Handle | np.ndarray) or not holds_tracer(arrays)
            else [as_operand(part) for part in arrays]
        )
        return function(parts, *map(as_operand, args), **kwargs)

    return join


concatenate, stack, vstack, hstack = (
    _joining(np.concatenate),
    _joining(np.stack),
    _joining(np.vstack),
    _joining(np.hstack),
)
concat, dstack, column_stack = concatenate, _joining(np.dstack), _joining(np.column_stack)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """numpy.append; either argument may be a list with tracers."""
    return np.append(as_operand(arr), as_operand(values), axis)


# ------------------------------------------------------------------------------------------------------------- creation
def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **options: Any) -> Any:
    """numpy.full with a traced ``fill_value``, or a list with tracers in it: its derivative is summed over the new
    elements."""
    if not holds_tracer(fill_value):
        return np.full(shape, fill_value, dtype, order, **options)
    fill = asarray(fill_value)
    plain = np.full(shape, plain_value(fill), dtype, order)
    return np.broadcast_to(fill, plain.shape).astype(plain.dtype, order=order) if carries(plain, "full") else plain


def full_like(a: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Any:
    """numpy.full_like with a traced ``fill_value`` for a plain ``a``; raises :class:`ConversionError` where the
    dtype is an integer one."""
    if isinstance(a, Handle) or not holds_tracer(fill_value):
        return np.full_like(a, as_operand(fill_value), *args, **kwargs)
    fill = asarray(fill_value)
    plain = np.full_like(a, plain_value(fill), *args, **kwargs)
    if not carries(plain, "full_like"):
        raise ConversionError(
            f"numpy.full_like would write a traced value into dtype {plain.dtype}, which carries no derivative; "
            "pass dtype=float"
        )
    return laid_out(np.broadcast_to(fill, plain.shape).astype(plain.dtype, order="C"), plain)


_arange = primitive(
    lambda start, step, *, stop, dtype: NP.arange(start, stop, step, dtype),
    name="arange_from_start_and_step",
    vjps={"start": lambda ct: ct.sum(), "step": lambda ct: np.sum(ct * np.arange(ct.shape[0]))},
)


def arange(*args: Any, **kwargs: Any) -> Any:
    """numpy.arange. ``start`` and ``step`` may be traced; ``stop`` decides the length only, so the elements do not
    depend on it."""
    named = dict(zip(("start", "stop", "step", "dtype") if len(args) != 1 else ("stop",), args, strict=False)) | kwargs
    if not any(isinstance(value, Handle) for value in named.values()):
        return NP.arange(*args, **kwargs)
    stop, start, step = named.get("stop"), named.get("start", 0), named.get("step", 1)
    if stop is None:
        start, stop = 0, start
    plain = NP.arange(values_of(start), values_of(stop), values_of(step), named.get("dtype"))
    depends = isinstance(start, Handle) or isinstance(step, Handle)
    return (
        _arange(start, step, stop=values_of(stop), dtype=plain.dtype) if depends and carries(plain, "arange") else plain
    )


def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1, **options: Any) -> Any:
    """numpy.fromiter of traced scalars too: 1-d, of ``dtype``."""
    items = list(iter if count < 0 else islice(iter, count))
    plain = np.fromiter(values_of(items), dtype, count, **options)
    return stacked(items, plain.dtype) if holds_tracer(items) and carries(plain, "fromiter") else plain


# ------------------------------------------------------------------------------------------------------------ r_ and c_
@frozen
class Concatenator:
    """``r_`` and ``c_``: slices, complex steps, directives ('0,2') and tracers."""

    own: Any = field(repr=False)
    name: str

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if any(isinstance(item, Matrix) for item in items):
            return of_array(self[array_of(items)])
        if not any(holds_tracer(bound) for item in items for bound in _bounds(item)):
            return self.own[key]
        words = items[:1] if isinstance(items[0], str) else ()
        if words and words[0].strip() in {"r", "c"}:
            raise NotDifferentiableError(
                f"numpy.{self.name} with the directive {items[0]!r} makes a matrix, which has no derivative; use '0,2' "
                "or c_"
            )
        plain = self.own[tuple(_plain_slice(item) if isinstance(item, slice) else values_of(item) for item in items)]
        if not carries(plain, self.name):
            return plain
        pieces = []
        for item in items[len(words) :]:
            part = asarray(_range(item) if isinstance(item, slice) else item)
            alone = self.own[(*words, np.zeros(part.shape, np.bool))]  # where the axes of length 1 go is NumPy's to say
            pieces.append(np.reshape(part, alone.shape))
        axis = int(words[0].split(",")[0]) if words else self.own.axis
        return laid_out(np.concatenate(pieces, axis, dtype=plain.dtype, casting="unsafe"), plain)


def _bounds(item: Any) -> tuple[Any, ...]:
    return (item.start, item.stop, item.step) if isinstance(item, slice) else (item,)


def _plain_slice(item: slice) -> slice:
    return slice(*map(values_of, _bounds(item)))


def _range(item: slice) -> Any:
    """The numbers that a slice in ``r_`` stands for: a complex step counts them."""
    start, step = 0 if item.start is None else item.start, 1 if item.step is None else item.step
    return (
        np.linspace(start, item.stop, int(abs(step))) if isinstance(step, complex) else arange(start, item.stop, step)
    )


r_, c_ = Concatenator(np.r_, "r_"), Concatenator(np.c_, "c_")


# ------------------------------------------------------------------------------------- writing into a plain destination
def _writing(function: Callable[..., Any], rewrite: str) -> Callable[..., Any]:
    """A NumPy function that writes into its first argument: a plain one cannot take a traced value."""

    @wraps(function)
    def write(destination: Any, *args: Any, **kwargs: Any) -> None:
        traced = holds_tracer(args) or holds_tracer(tuple(kwargs.values()))
        if traced and not isinstance(destination, Handle):
            raise ConversionError(
                f"numpy.{function.__name__} would write a traced value into a plain array of shape "
                f"{np.shape(destination)} (at {site_text(site_here())}), which would drop the derivative; {rewrite}, "
                "or start from a traced copy: a = np.full_like(x, a, shape=a.shape) for a tracer x"
            )
        function(destination, *map(as_operand, args), **{name: as_operand(value) for name, value in kwargs.items()})

    return write


copyto = _writing(np.copyto, "use np.where(mask, value, a)")
fill_diagonal = _writing(np.fill_diagonal, "use np.where(np.eye(len(a), dtype=bool), value, a)")
place = _writing(np.place, "use np.where(mask, value, a)")
put = _writing(np.put, "write into np.zeros_like(x)")
put_along_axis = _writing(np.put_along_axis, "write into np.zeros_like(x)")
putmask = _writing(np.putmask, "use np.where(mask, value, a)")


# ----------------------------------------------------------------------------------------- Python functions per element
class vectorize(np.vectorize):  # noqa: N801 - NumPy's name
    """numpy.vectorize: the function is called with traced scalars (traced arrays, with a ``signature``), and its
    results are stacked."""

    def _vectorize_call(self, func: Callable[..., Any], args: Any) -> Any:
        if self.signature is None:
            return self._each(func, args, ((),) * len(args), None)
        takes, gives = (
            [
                tuple(name.strip() for name in core.strip("() ").split(",") if name.strip())
                for core in side.strip().split("),")
            ]
            for side in str(self.signature).split("->")
        )
        if len(takes) != len(args):
            raise TypeError(f"wrong number of positional arguments: expected {len(takes)}, got {len(args)}")
        return self._each(func, args, takes, len(gives))

    def _each(
        self, func: Callable[..., Any], args: Any, cores: Sequence[tuple[str, ...]], n_results: int | None
    ) -> Any:
        """The results of ``func`` for every place of the loop, as one array each."""
        operands: list[Any] = [a if isinstance(a, Handle) else asarray(a) for a in args]
        splits = [a.ndim - len(core) for a, core in zip(operands, cores, strict=True)]
        loop = np.broadcast_shapes(*(a.shape[:split] for a, split in zip(operands, splits, strict=True)))
        whole = [np.broadcast_to(a, loop + a.shape[split:]) for a, split in zip(operands, splits, strict=True)]
        results = [func(*(a[place] for a in whole)) for place in np.ndindex(*loop)]
        if not any(holds_tracer(result) for result in results):
            # NumPy's own way: it has an answer for no elements at all, and casts to the dtype of the first result.
            return super()._vectorize_call(func, [values_of(a) for a in operands])  # type: ignore[misc]
        many = isinstance(results[0], tuple) if n_results is None else n_results > 1
        columns = list(zip(*results, strict=True)) if many else [results]
        types = self.otypes or [None] * len(columns)
        arrays = tuple(
            self._column(column, kind).reshape(loop + np.shape(column[0]))
            for column, kind in zip(columns, types, strict=True)
        )
        return arrays if many else arrays[0]

    @staticmethod
    def _column(column: Any, kind: str | None) -> Any:
        """Results of one kind, of the dtype asked for or that of the first one, as NumPy has it."""
        dtype = np.dtype(kind) if kind else np.asarray(values_of(column[0])).dtype
        if dtype.kind not in "fc":
            raise ConversionError(
                f"numpy.vectorize makes all results {dtype}, the dtype of the first (at {site_text(site_here())}), "
                "which would drop the derivative; pass otypes=[float]"
            )
        return asarray(list(column), dtype=dtype)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, **options: Any) -> Any:
    """numpy.frompyfunc; raises :class:`ConversionError` where ``func`` returns a tracer, since the result is an
    array of objects."""

    @wraps(func)
    def plainly(*args: Any) -> Any:
        result = func(*args)
        if holds_tracer(result):
            raise ConversionError(
                "numpy.frompyfunc would put tracers into an array of objects, which has no derivative; use "
                "pullback.numpy.vectorize"
            )
        return result

    return np.frompyfunc(plainly, nin, nout, **options)


# --------------------------------------------------------------------------------------------------------- scalar types
@frozen(eq=False)
class ScalarType:
    """``float64`` and the others as one uses them: to convert (a tracer by ``astype``), as a dtype, and in
    ``isinstance``."""

    type: Any

    @property
    def dtype(self) -> Any:
        """What NumPy asks for where a dtype is given."""
        return np.dtype(self.type)

    def __call__(self, x: Any = 0, *args: Any) -> Any:
        return array(x, dtype=self.type)[()] if holds_tracer(x) else self.type(x, *args)

    def __instancecheck__(self, x: object) -> bool:
        return isinstance(x, self.type)

    def __subclasscheck__(self, cls: Any) -> bool:
        return issubclass(cls, self.type)

    def __eq__(self, other: object) -> bool:
        return other is self.type or (isinstance(other, ScalarType) and other.type is self.type)

    def __hash__(self) -> int:
        return hash(self.type)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__array"):  # NumPy would take the type for an array
            raise AttributeError(name)
        return getattr(self.type, name)


SCALAR_TYPES = tuple(
    name for name, kind in vars(np).items() if isinstance(kind, type) and issubclass(kind, np.number | np.bool)
)
"""Names of NumPy's types of numbers."""


def as_scalar_type(kind: Any, x: Any, *args: Any) -> Any:
    """``kind(x)`` for one of NumPy's types of numbers: traced where ``kind`` has derivatives; an integer or a boolean
    is constant between jumps, as ``int(x)`` is."""
    return ScalarType(kind)(x, *args) if issubclass(kind, np.inexact) else kind(values_of(x), *args)


half, single, double = ScalarType(np.float16), ScalarType(np.float32), ScalarType(np.float64)
csingle, cdouble = ScalarType(np.complex64), ScalarType(np.complex128)
longdouble, clongdouble = ScalarType(np.longdouble), ScalarType(np.clongdouble)
float16, float32, float64, complex64, complex128 = half, single, double, csingle, cdouble


def isscalar(element: Any) -> bool:
    """numpy.isscalar of the value."""
    return np.isscalar(values_of(element) if isinstance(element, Handle) else element)
