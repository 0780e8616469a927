"""What ``numpy.matrix`` gives where it is traced: a traced array of two axes with the arithmetic of a matrix.

``*`` is the matrix product, and two axes stay two. ``np.asarray``, ``.A`` and ``.A1`` give the array behind it.
"""

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from attrs import define, frozen
from numpy.matrixlib import defmatrix  # as a program may write into numpy.matrix

from pullback.primitives.shaping.nested_lists import converted, holds_tracer
from pullback.recording.handles import Handle
from pullback.words.errors import ConversionError, NotDifferentiableError

PLAIN: Final[Any] = defmatrix.matrix
ARRAYS: Final = (
    np.linalg.norm, np.linalg.det, np.linalg.slogdet, np.linalg.eigvals, np.linalg.eigvalsh, np.trace, np.copy,
    np.allclose, np.shape, np.ndim, np.size,
)  # fmt: skip
"""Functions whose results are arrays or numbers."""
MATRICES: Final = (
    np.linalg.inv, np.linalg.pinv, np.linalg.matrix_power, np.linalg.cholesky, np.dot, np.transpose, np.kron,
    np.concatenate, np.hstack, np.vstack,
)  # fmt: skip
"""Functions whose results are matrices."""
REDUCING: Final = frozenset("sum mean std var prod max min any all argmax argmin".split())
"""Methods, and functions, that keep the axis along which they go."""
WRAPPED: Final = frozenset("reshape astype conj conjugate round clip diagonal cumsum repeat swapaxes".split())
"""Methods that give a matrix."""
HANDED_ON: Final = frozenset("tolist item fill nonzero strides flat".split())
"""What is the array's own."""


def array_of(x: Any) -> Any:
    """The array of a matrix, and anything else as it is; in lists, too."""
    if isinstance(x, Matrix | PLAIN):
        return x.A
    return type(x)(map(array_of, x)) if type(x) in (list, tuple) else x


def _named(options: dict[str, Any]) -> dict[str, Any]:
    return {name: array_of(x) for name, x in options.items()}


def _in_place(by: Callable[[Any, Any], Any]) -> Any:
    """The method that writes into the array what an operator gives."""

    def method(self: Any, other: Any) -> Any:
        self.A[...] = array_of(by(self, other))
        return self

    return method


def _comparing(by: Callable[[Any, Any], Any]) -> Any:
    """The method that gives a plain matrix of what a comparison gives."""
    return lambda self, other: np.atleast_2d(by(self.A, array_of(other))).view(PLAIN)


@define(eq=False, repr=False)
class Matrix:
    """A traced array of two axes with the arithmetic of numpy.matrix."""

    A: Any
    holds_tracer = True
    stands_for = PLAIN
    behaves_as_matrix = True
    __array_ufunc__ = None  # so that ``x * M`` comes here
    __array_priority__ = 30.0
    __hash__ = None  # type: ignore[assignment] # as NumPy's

    def __repr__(self) -> str:
        return f"<traced matrix of shape {self.shape}>"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.A, dtype)  # refused, if it is traced

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func.__name__ in REDUCING and args[0] is self:
            return getattr(self, func.__name__)(*args[1:], **kwargs)
        is_matrix = func in MATRICES
        if func is np.linalg.solve:  # of the kind of the right side
            is_matrix = isinstance(args[1] if len(args) > 1 else kwargs["b"], Matrix | PLAIN)
        elif not is_matrix and func not in ARRAYS:
            raise _refusal(f"numpy.{func.__name__}")
        found = func(*map(array_of, args), **_named(kwargs))
        return of_array(found) if is_matrix else found

    def __getattr__(self, name: str) -> Any:
        if name in REDUCING:
            return lambda axis=None, **options: of_array(
                getattr(np, name)(self.A, axis=axis, keepdims=axis is not None, **options)
            )
        if name in WRAPPED:
            return lambda *args, **options: of_array(getattr(self.A, name)(*map(array_of, args), **_named(options)))
        if name in HANDED_ON:
            return getattr(self.A, name)
        if name.startswith("_") or not hasattr(PLAIN, name):
            raise AttributeError(f"'matrix' object has no attribute {name!r}")
        raise _refusal(f"the attribute {name!r}")

    # --------------------------------------------------------------------------------------------------- what it is
    shape = property(lambda self: self.A.shape)
    dtype = property(lambda self: self.A.dtype)
    size = property(lambda self: int(self.A.size))
    ndim = property(lambda self: 2)
    A1 = property(lambda self: np.ravel(self.A))
    T = property(lambda self: Matrix(np.transpose(self.A)))
    H = property(lambda self: Matrix(np.conjugate(np.transpose(self.A))))
    I = property(lambda self: Matrix(_inverse(self.A)))  # noqa: E741 - as NumPy
    real = property(lambda self: Matrix(np.real(self.A)))
    imag = property(lambda self: Matrix(np.imag(self.A)))

    def transpose(self) -> "Matrix":
        return Matrix(np.transpose(self.A))

    def __len__(self) -> int:
        return len(self.A)

    def copy(self) -> "Matrix":
        return Matrix(np.copy(self.A))

    def ravel(self) -> "Matrix":
        return Matrix(np.reshape(self.A, (1, -1)))

    flatten = ravel

    def squeeze(self) -> "Matrix":
        return self.T if self.shape[1] == 1 else self

    def __float__(self) -> float:
        raise ConversionError("float() of a traced matrix would drop the derivative; write M[0, 0] for its one number")

    def __bool__(self) -> bool:
        return bool(self.A)

    def __getitem__(self, key: Any) -> Any:
        found = self.A[array_of(key)]
        if np.ndim(found) != 1:
            return of_array(found)
        second: Any = key[1] if isinstance(key, tuple) and len(key) == 2 else slice(None)
        of_a_column = not isinstance(second, slice) and np.ndim(second) == 0
        return Matrix(found[:, None] if of_a_column else found[None])

    def __setitem__(self, key: Any, given: Any) -> None:
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(part, slice) for part in parts) and all(type(part) in (int, slice) for part in parts):
            self[key].A[...] = array_of(given)  # a row or a column has two axes here, too
        else:
            self.A[array_of(key)] = array_of(given)

    # ---------------------------------------------------------------------------------------------------- arithmetic
    def dot(self, other: Any) -> Any:
        return of_array(np.dot(self.A, array_of(other)))

    def __matmul__(self, other: Any) -> Any:
        return of_array(self.A @ array_of(other))

    def __rmatmul__(self, other: Any) -> Any:
        return of_array(array_of(other) @ self.A)

    def __mul__(self, other: Any) -> Any:
        return of_array(self.A * other if _is_number(other) else self.A @ _two_axes(other))

    def __rmul__(self, other: Any) -> Any:
        return of_array(other * self.A if _is_number(other) else _two_axes(other) @ self.A)

    def __pow__(self, n: Any) -> Any:
        return of_array(np.linalg.matrix_power(self.A, n))

    def __neg__(self) -> Any:
        return of_array(-self.A)

    def __abs__(self) -> Any:
        return of_array(np.abs(self.A))

    def __truediv__(self, other: Any) -> Any:
        return of_array(self.A / array_of(other))

    def __rtruediv__(self, other: Any) -> Any:
        return of_array(array_of(other) / self.A)

    def __add__(self, other: Any) -> Any:
        return of_array(self.A + array_of(other))

    def __radd__(self, other: Any) -> Any:
        return of_array(array_of(other) + self.A)

    def __sub__(self, other: Any) -> Any:
        return of_array(self.A - array_of(other))

    def __rsub__(self, other: Any) -> Any:
        return of_array(array_of(other) - self.A)

    __iadd__, __isub__ = _in_place(operator.add), _in_place(operator.sub)
    __imul__, __itruediv__ = _in_place(operator.mul), _in_place(operator.truediv)
    __eq__, __ne__ = _comparing(operator.eq), _comparing(operator.ne)
    __lt__, __le__ = _comparing(operator.lt), _comparing(operator.le)
    __gt__, __ge__ = _comparing(operator.gt), _comparing(operator.ge)


def _refusal(what: str) -> NotDifferentiableError:
    return NotDifferentiableError(
        f"{what} of a traced numpy.matrix has no derivative; write S.toarray() for S.todense(), np.asarray(M) for a "
        "matrix M, and @ for its products"
    )


def _inverse(x: Any) -> Any:
    return np.linalg.inv(x) if len(set(x.shape)) == 1 else np.linalg.pinv(x)


def _is_number(x: Any) -> bool:
    return type(x) not in (list, tuple) and np.ndim(x) == 0


def _two_axes(x: Any) -> Any:
    """The array of what a matrix is multiplied by: a row, where it has one axis."""
    given = array_of(x)
    return np.atleast_2d(converted(np.asarray, given, (), {}) if type(given) is list and holds_tracer(given) else given)


def of_array(x: Any) -> Any:
    """The matrix of an array, a row where it has one axis; a number is itself."""
    return x if np.ndim(x) == 0 else Matrix(np.atleast_2d(x))


# ------------------------------------------------------------------------------------------------- how they are made
def named_matrix(x: Any, standing: Callable[[Any], Any]) -> Matrix:
    """What a plain matrix of an adopted module is while a trace is under way: one of the handle that stands for the
    array it was made of; of one that has no other array, or a part of it, one that is not written into."""
    whole = x.base
    if type(whole) is np.ndarray and whole.shape == x.shape and x.flags.c_contiguous and whole.flags.c_contiguous:
        return Matrix(standing(whole))
    array = np.asarray(x).view()
    array.flags.writeable = False
    return Matrix(array)


@frozen(eq=False)
class MatrixMaker:
    """``numpy.matrix`` or ``asmatrix``: a class as one uses it, whose instances may be traced."""

    name: str
    own: Callable[[Any], Any]
    """What becomes of the array of a plain matrix: in adopted code one that can hold traced values."""

    def __call__(self, data: Any, dtype: Any = None, copy: bool = True) -> Any:
        shared = self.name == "asmatrix" or not copy
        if shared and isinstance(data, Matrix) and dtype is None:
            return data
        given = array_of(data)
        if not holds_tracer(given):
            made = (defmatrix.asmatrix if shared else PLAIN)(given, dtype)
            return made if shared and isinstance(given, np.ndarray) else self.own(made)
        options = {} if dtype is None else {"dtype": dtype}
        whole = (
            given if shared and not options and isinstance(given, Handle) else converted(np.array, given, (), options)
        )
        return Matrix(_two_axes(whole))

    @property
    def stands_for(self) -> Any:
        """The class of NumPy's."""
        return PLAIN

    def __instancecheck__(self, x: object) -> bool:
        return isinstance(x, PLAIN | Matrix)

    def __mro_entries__(self, bases: Any) -> tuple[Any, ...]:
        return (PLAIN,)

    def __getattr__(self, name: str) -> Any:
        return getattr(PLAIN, name)


def _itself(made: Any) -> Any:
    return made


matrix, asmatrix = MatrixMaker("matrix", _itself), MatrixMaker("asmatrix", _itself)


def bmat(obj: Any, *, own: Callable[[Any], Any] = _itself) -> Any:
    """numpy.bmat, whose blocks may be traced."""
    blocks = array_of(obj)
    if not holds_tracer(blocks):
        return own(defmatrix.bmat(blocks))
    rows = blocks if any(type(row) in (list, tuple) for row in blocks) else [blocks]
    joined = [np.concatenate([np.atleast_2d(block) for block in row], axis=-1) for row in rows]
    return Matrix(np.concatenate(joined, axis=0))
