"""What a traced sparse *matrix* gives where SciPy gives a numpy.matrix: ``todense()``, sums and means along an axis.

It has two axes always, and ``*`` is the matrix product. ``np.asarray``, ``.A`` and ``.A1`` give the array behind it.
"""

from typing import Any

import numpy as np
from attrs import define

import pullback as pb

ARRAYS = (np.linalg.solve, np.linalg.norm, np.linalg.det, np.linalg.slogdet, np.trace, np.allclose, np.shape, np.ndim)
"""Functions whose results are arrays or numbers."""
MATRICES = (np.linalg.inv, np.linalg.pinv, np.linalg.matrix_power, np.dot, np.transpose, np.copy)
"""Functions whose results are matrices."""

METHODS = (np.sum, np.mean)
"""Functions that ask the matrix, whose results keep two axes."""


def behind(x: Any) -> Any:
    """The array of a matrix, and anything else as it is; in lists, too."""
    if isinstance(x, DenseMatrix):
        return x.A
    return type(x)(map(behind, x)) if type(x) in (list, tuple) else x


@define(eq=False, repr=False)
class DenseMatrix:
    """A traced array of two axes with the arithmetic of numpy.matrix."""

    A: Any
    holds_tracer = True
    __array_ufunc__ = None  # so that ``x * M`` comes here
    __array_priority__ = 30.0

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.A, dtype)  # refused, if it is traced

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in ARRAYS:
            return func(*map(behind, args), **{name: behind(x) for name, x in kwargs.items()})
        if func in MATRICES:
            return of_array(func(*map(behind, args), **{name: behind(x) for name, x in kwargs.items()}))
        if func in METHODS and args[0] is self:
            return getattr(self, func.__name__)(*args[1:], **kwargs)
        raise self._refusal(f"numpy.{func.__name__}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._refusal(f"the attribute {name!r}")

    @staticmethod
    def _refusal(what: str) -> pb.NotDifferentiableError:
        return pb.NotDifferentiableError(
            f"a sparse matrix gives a numpy.matrix here, and {what} of a traced one has no derivative; write "
            "S.toarray() for S.todense(), np.asarray(M) for a matrix M, and @ for its products"
        )

    # --------------------------------------------------------------------------------------------------- what it is
    @property
    def shape(self) -> tuple[int, int]:
        return self.A.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Any:
        return self.A.dtype

    @property
    def size(self) -> int:
        return int(self.A.size)

    @property
    def ndim(self) -> int:
        return 2

    @property
    def A1(self) -> Any:  # noqa: N802 - as NumPy
        return np.ravel(self.A)

    @property
    def T(self) -> "DenseMatrix":  # noqa: N802 - as NumPy
        return DenseMatrix(np.transpose(self.A))

    @property
    def I(self) -> "DenseMatrix":  # noqa: N802, E743 - as NumPy
        return DenseMatrix(np.linalg.inv(self.A))

    def transpose(self) -> "DenseMatrix":
        return self.T

    def __len__(self) -> int:
        return len(self.A)

    def copy(self) -> "DenseMatrix":
        return DenseMatrix(np.copy(self.A))

    def ravel(self) -> "DenseMatrix":
        return DenseMatrix(np.reshape(self.A, (1, -1)))

    flatten = ravel

    def __getitem__(self, key: Any) -> Any:
        found = self.A[behind(key)]
        if np.ndim(found) != 1:
            return of_array(found)
        second: Any = key[1] if isinstance(key, tuple) and len(key) == 2 else slice(None)
        of_a_column = not isinstance(second, slice) and np.ndim(second) == 0
        return DenseMatrix(found[:, None] if of_a_column else found[None])

    def __setitem__(self, key: Any, given: Any) -> None:
        self.A[behind(key)] = behind(given)

    # ---------------------------------------------------------------------------------------------------- arithmetic
    def sum(self, axis: Any = None) -> Any:
        return of_array(np.sum(self.A, axis=axis, keepdims=axis is not None))

    def mean(self, axis: Any = None) -> Any:
        return of_array(np.mean(self.A, axis=axis, keepdims=axis is not None))

    def dot(self, other: Any) -> Any:
        return of_array(np.dot(self.A, behind(other)))

    def __matmul__(self, other: Any) -> Any:
        return of_array(self.A @ behind(other))

    def __rmatmul__(self, other: Any) -> Any:
        return of_array(behind(other) @ self.A)

    def __mul__(self, other: Any) -> Any:
        return of_array(self.A * other if np.ndim(other) == 0 else self.A @ np.atleast_2d(behind(other)))

    def __rmul__(self, other: Any) -> Any:
        return of_array(other * self.A if np.ndim(other) == 0 else np.atleast_2d(behind(other)) @ self.A)

    def __pow__(self, n: Any) -> Any:
        return of_array(np.linalg.matrix_power(self.A, n))

    def __truediv__(self, other: Any) -> Any:
        return of_array(self.A / behind(other))

    def __add__(self, other: Any) -> Any:
        return of_array(self.A + behind(other))

    def __radd__(self, other: Any) -> Any:
        return of_array(behind(other) + self.A)

    def __sub__(self, other: Any) -> Any:
        return of_array(self.A - behind(other))

    def __rsub__(self, other: Any) -> Any:
        return of_array(behind(other) - self.A)

    def __neg__(self) -> Any:
        return of_array(-self.A)


def of_array(x: Any) -> Any:
    """The matrix of an array, a row where it has one axis; a number is itself."""
    return x if np.ndim(x) == 0 else DenseMatrix(np.atleast_2d(x))
