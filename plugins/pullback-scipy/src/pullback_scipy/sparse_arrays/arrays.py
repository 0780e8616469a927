"""The sparse array with traced nonzeros: their values are an array like others, where they stand is plain.

A product is SciPy's, in the format of the array, so its bits are those of the plain product. What only moves nonzeros
(a transpose, a slice, another format) is found by SciPy on an array that holds their numbers.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from attrs import define
from scipy import sparse

import pullback as pb
from pullback_scipy.mirroring import holds
from pullback_scipy.sparse_arrays.dense_matrices import array_of, of_array
from pullback_scipy.sparse_arrays.entries import Entries
from pullback_scipy.sparse_arrays.products import Made, added, product, rows_and_columns, transposed_product

COMPRESSED = ("csr", "csc")


# ---------------------------------------------------------------------------------------------------------- the array
EACH: Any = {np.conjugate: "conjugate", np.absolute: "__abs__", np.negative: "__neg__"}
"""Functions of NumPy's that SciPy's arrays answer for."""
OPERATORS: Any = {np.matmul: "__rmatmul__", np.multiply: "__rmul__", np.add: "__radd__", np.subtract: "__rsub__"}
"""Operators of NumPy's arrays whose second operand is a sparse one."""


@define(eq=False, repr=False)
class SparseArray:
    """A sparse array or matrix of SciPy's kind whose nonzeros ``data`` are traced; ``places`` are the two arrays that
    say where they stand, as in SciPy's format."""

    data: Any
    places: tuple[Any, Any]
    made: Made
    holds_tracer = True
    __array_priority__ = 20.0

    def __repr__(self) -> str:
        return f"<traced sparse array of format {self.format!r}, {self.nnz} nonzeros, shape {self.shape}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"a traced sparse array has no {name!r} here; write it by its nonzeros, A.with_data(f(A.data)), or by "
            "A.toarray()"
        )

    def __array_ufunc__(self, ufunc: Any, how: str, *operands: Any, **options: Any) -> Any:
        """What NumPy hands over: operators after an array, and functions of each nonzero that leave zeros zero."""
        if how == "__call__" and not options:
            if ufunc in EACH:
                return getattr(self, EACH[ufunc])()
            if ufunc in OPERATORS and operands[0] is not self:
                return getattr(self, OPERATORS[ufunc])(operands[0])
        raise pb.NotDifferentiableError(
            f"numpy.{ufunc.__name__} of a traced sparse array has no derivative here; write it by its nonzeros, "
            "A.with_data(f(A.data)), or by A.toarray()"
        )

    # ------------------------------------------------------------------------------------------------------ what it is
    @property
    def shape(self) -> tuple[int, ...]:
        return self.made.shape

    @property
    def stands_for(self) -> Any:
        """The class of SciPy's."""
        return self.made.kind

    @property
    def ndim(self) -> int:
        return 2

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def format(self) -> str:
        return str(self.made.kind.__name__[:3])

    @property
    def nnz(self) -> int:
        return int(self.data.shape[0])

    @property
    def indices(self) -> Any:
        return self.places[0]

    @property
    def indptr(self) -> Any:
        return self.places[1]

    @property
    def row(self) -> Any:
        return rows_and_columns(self.made, *self.places)[0]

    @property
    def col(self) -> Any:
        return rows_and_columns(self.made, *self.places)[1]

    @property
    def coords(self) -> tuple[Any, Any]:
        return rows_and_columns(self.made, *self.places)

    @property
    def value(self) -> Any:
        """SciPy's array of the plain values."""
        return self.made.apart(np.asarray(pb.value(self.data)), self.places)

    @property
    def is_matrix(self) -> bool:
        """Whether ``*`` is the matrix product."""
        return issubclass(self.made.kind, sparse.spmatrix)

    # -------------------------------------------------------------------------------------------------- moved nonzeros
    def moved(self, change: Callable[[Any], Any]) -> "SparseArray":
        """What ``change`` makes of the array, if it only moves nonzeros and leaves some out."""
        numbered = change(self.made.apart(np.arange(1.0, self.nnz + 1), self.places))
        picks = numbered.data.astype(np.intp) - 1
        return of_scipy(numbered, self.data[picks])

    def without_duplicates(self) -> "SparseArray":
        """The same array in csr, with the nonzeros of one place added up."""
        rows, columns = self.coords
        flat, place = np.unique(np.asarray(rows, np.int64) * self.shape[1] + columns, return_inverse=True)
        kind = sparse.coo_matrix if self.is_matrix else sparse.coo_array
        at = (flat // max(self.shape[1], 1), flat % max(self.shape[1], 1))
        data = self.data[np.argsort(place)] if len(flat) == self.nnz else added(self.data, place, n=len(flat))
        return SparseArray(data, at, Made(kind, self.shape))

    @property
    def T(self) -> "SparseArray":  # noqa: N802 - as NumPy
        return self.transpose()

    def transpose(self) -> "SparseArray":
        return self.moved(lambda a: a.T)

    def _as(self, name: str, copy: bool = False) -> "SparseArray":
        if self.format == name:
            return self.copy() if copy else self
        if name in ("lil", "dok"):
            from pullback_scipy.sparse_arrays.writable import of_array  # noqa: PLC0415 - it is made of this class

            return of_array(self, getattr(sparse, f"{name}_{'matrix' if self.is_matrix else 'array'}"))
        start = self.without_duplicates() if self.format == "coo" else self
        return start.moved(lambda a: getattr(a, f"to{name}")())

    def tocsr(self, copy: bool = False) -> "SparseArray":
        return self._as("csr", copy)

    def tocsc(self, copy: bool = False) -> "SparseArray":
        return self._as("csc", copy)

    def tocoo(self, copy: bool = False) -> "SparseArray":
        return self._as("coo", copy)

    def tolil(self, copy: bool = False) -> "SparseArray":
        return self._as("lil", copy)

    def asformat(self, format: Any, copy: bool = False) -> "SparseArray":
        return self._as(self.format if format is None else format, copy)

    def copy(self) -> "SparseArray":
        """The array with nonzeros of its own: ``A.data[k] = v`` writes into the one of them."""
        return self.with_data(np.copy(self.data))

    def eliminate_zeros(self) -> None:
        """Nothing: a nonzero that is zero here may have a derivative."""

    def setdiag(self, values: Any, k: int = 0) -> None:
        """``values``, one or as many as fit, become the diagonal ``k``."""
        rows, columns = self.coords
        length = min(self.shape[0] + min(k, 0), self.shape[1] - max(k, 0))
        if np.ndim(values):
            length = min(length, len(values))
            values = values[:length]
        here = (columns - rows == k) & (np.minimum(rows, columns) < length)
        at = np.arange(length) - min(k, 0), np.arange(length) + max(k, 0)
        there = np.concatenate((rows[~here], at[0])), np.concatenate((columns[~here], at[1]))
        data = np.concatenate((self.data[~here], np.broadcast_to(values, length).astype(self.dtype)))
        kind = sparse.coo_matrix if self.is_matrix else sparse.coo_array
        self._become(SparseArray(data, there, Made(kind, self.shape)))

    def __setitem__(self, key: Any, given: Any) -> None:
        entries = entries_of(self)
        entries.write(key, given)
        data, *places = entries.compressed()
        kind = sparse.csr_matrix if self.is_matrix else sparse.csr_array
        self._become(SparseArray(data, tuple(places), Made(kind, self.shape)))

    def _become(self, other: "SparseArray") -> None:
        whole = other._as(self.format)  # noqa: SLF001 - of this class
        self.data, self.places, self.made = whole.data, whole.places, whole.made

    def __getitem__(self, key: Any) -> Any:
        start = self if self.format == "csr" else self.tocsr()
        numbered = start.made(np.arange(1.0, start.nnz + 1), start.places)[key]
        if sparse.issparse(numbered) and numbered.ndim == 2:
            return start.moved(lambda a: a[key])
        if np.ndim(numbered) == 0:
            return start.data[int(numbered) - 1] if numbered else np.zeros((), self.dtype)[()]
        raise pb.NotDifferentiableError(
            "a traced sparse array is indexed by pairs of slices, or by two integers; take A.toarray() for other keys"
        )

    def diagonal(self, k: int = 0) -> Any:
        rows, columns = self.coords
        here = np.flatnonzero(columns - rows == k)
        length = max(0, min(self.shape[0] + min(k, 0), self.shape[1] - max(k, 0)))
        return added(self.data[here], np.asarray(np.minimum(rows, columns)[here]), n=length)

    def toarray(self) -> Any:
        rows, columns = self.coords
        flat = np.asarray(rows, np.int64) * self.shape[1] + columns
        return np.reshape(added(self.data, flat, n=self.shape[0] * self.shape[1]), self.shape)

    def todense(self) -> Any:
        return of_array(self.toarray()) if self.is_matrix else self.toarray()

    def sum(self, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        if out is not None:
            raise pb.NotDifferentiableError("a traced sparse array has no sum with out=; write out[...] = A.sum(axis)")
        if axis is None:
            found = np.sum(self.data)
        else:
            other = 1 - axis % 2
            found = added(self.data, np.asarray(self.coords[other]), n=self.shape[other])
            if self.is_matrix:
                found = of_array(np.expand_dims(found, axis))
        return found if dtype is None else found.astype(dtype)

    def mean(self, axis: Any = None) -> Any:
        return (self * (1.0 / (self.shape[0] * self.shape[1] if axis is None else self.shape[axis]))).sum(axis)

    # ------------------------------------------------------------------------------------------------------ arithmetic
    def dot(self, other: Any) -> Any:
        return self @ other

    def __matmul__(self, other: Any) -> Any:
        if sparse.issparse(other) or isinstance(other, SparseArray):
            return sparse_product(self, other)
        whole = product(self.data, array_of(other), *self.places, made=self.made)
        return whole if array_of(other) is other else of_array(whole)

    def __rmatmul__(self, other: Any) -> Any:
        if sparse.issparse(other):
            return sparse_product(other, self)
        return np.transpose(transposed_product(self.data, np.transpose(other), *self.places, made=self.made))

    matvec = dot

    def rmatvec(self, other: Any) -> Any:
        return transposed_product(np.conjugate(self.data), other, *self.places, made=self.made)

    def with_data(self, data: Any) -> "SparseArray":
        """The array with other nonzeros at the same places."""
        return SparseArray(data, self.places, self.made)

    def multiply(self, other: Any) -> "SparseArray":
        if np.ndim(other) == 0 and not hasattr(other, "tocsr"):
            return self.with_data(self.data * other)
        rows, columns = self.coords
        if hasattr(other, "tocsr"):
            other = other.toarray()
        return self.with_data(self.data * np.broadcast_to(other, self.shape)[rows, columns])

    def __mul__(self, other: Any) -> Any:
        return self @ other if self.is_matrix and np.ndim(other) else self.multiply(other)

    def __rmul__(self, other: Any) -> Any:
        return other @ self if self.is_matrix and np.ndim(other) else self.multiply(other)

    def __truediv__(self, other: Any) -> Any:
        if np.ndim(other):
            raise pb.NotDifferentiableError("a traced sparse array is divided by numbers; write A.multiply(1 / x)")
        narrow = self.dtype != float and np.can_cast(self.dtype, float)  # SciPy takes the reciprocal, and floats
        return self.with_data((self.data.astype(float) if narrow else self.data) * (1 / other))

    def _of_each(self, f: Callable[[Any], Any]) -> "SparseArray":
        each = self.without_duplicates()._as(self.format)  # noqa: SLF001 - of this class
        return each.with_data(f(each.data))

    def __abs__(self) -> "SparseArray":
        return self._of_each(np.abs)

    def conjugate(self) -> "SparseArray":
        return self.with_data(np.conjugate(self.data))

    conj = conjugate

    @property
    def real(self) -> "SparseArray":
        return self.with_data(np.real(self.data))

    @property
    def imag(self) -> "SparseArray":
        return self.with_data(np.imag(self.data))

    def power(self, n: Any) -> "SparseArray":
        """Each nonzero to the power of ``n``, which is above zero."""
        return self._of_each(lambda data: data**n)

    def __pow__(self, n: Any) -> "SparseArray":
        if not self.is_matrix:
            return self.power(n)
        if not isinstance(n, int) or n < 1:
            raise pb.NotDifferentiableError(f"a traced sparse matrix has no power {n!r} here; write products, A @ A")
        return reduce(sparse_product, [self] * n)

    def astype(self, dtype: Any) -> "SparseArray":
        return self.with_data(self.data.astype(dtype))

    def trace(self, offset: int = 0) -> Any:
        return np.sum(self.diagonal(offset))

    def getrow(self, i: int) -> "SparseArray":
        return self[[i], :]  # type: ignore[no-any-return]

    def getcol(self, j: int) -> "SparseArray":
        return self[:, [j]]  # type: ignore[no-any-return]

    def nonzero(self) -> Any:
        return self.value.nonzero()

    def count_nonzero(self) -> int:
        return int(self.value.count_nonzero())

    def __neg__(self) -> Any:
        return self.with_data(-self.data)

    def __add__(self, other: Any) -> Any:
        return sparse_sum(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return sparse_sum(self, -other)

    def __rsub__(self, other: Any) -> Any:
        return sparse_sum(-self, other)


# ------------------------------------------------------------------------------------------- sums and sparse products
def of_scipy(x: Any, data: Any = None) -> SparseArray:
    """A sparse array of SciPy's as one of ours, with other nonzeros where ``data`` is given."""
    known = x if x.format in ("csr", "csc", "coo") else x.tocsr()
    places = (known.row, known.col) if known.format == "coo" else (known.indices, known.indptr)
    return SparseArray(known.data if data is None else data, places, Made(type(known), known.shape))


def ours(x: Any) -> SparseArray:
    """A sparse array, traced or not, as one of ours."""
    return x if isinstance(x, SparseArray) else of_scipy(x)


def entries_of(x: SparseArray) -> Entries:
    """The entries of an array that is to be written into."""
    each = x.without_duplicates()
    return Entries(x.shape, x.dtype, *each.places, each.data)


def sparse_sum(left: SparseArray, right: Any) -> Any:
    """The sum of two sparse arrays; of a sparse and a dense one, a dense one."""
    if not (sparse.issparse(right) or isinstance(right, SparseArray)):
        if not holds(right) and np.ndim(right) == 0 and right == 0:
            return left
        if np.ndim(right) == 0:
            raise NotImplementedError("adding a nonzero scalar to a sparse array is not supported")
        whole = left.toarray() + np.broadcast_to(array_of(right), left.shape)
        return of_array(whole) if left.is_matrix else whole
    right = ours(right)
    rows, columns = (np.concatenate(pair) for pair in zip(left.coords, right.coords, strict=True))
    kind = sparse.coo_matrix if left.is_matrix else sparse.coo_array
    both = SparseArray(np.concatenate((left.data, right.data)), (rows, columns), Made(kind, left.shape))
    return both._as("csc" if left.format == right.format == "csc" else "csr")  # noqa: SLF001 - of this file


def sparse_product(left: Any, right: Any) -> Any:
    """The product of two sparse arrays: a sum over all pairs of nonzeros that meet."""
    left, right = ours(left), ours(right).tocsr()
    rows, columns = left.coords
    counts = np.diff(right.indptr)[columns]
    first = np.repeat(np.arange(left.nnz), counts)
    starts = np.repeat(right.indptr[columns] - np.cumsum(counts) + counts, counts)
    second = starts + np.arange(len(first))
    kind = sparse.coo_matrix if left.is_matrix else sparse.coo_array
    places = (rows[first], right.indices[second])
    pairs = SparseArray(left.data[first] * right.data[second], places, Made(kind, (left.shape[0], right.shape[1])))
    return pairs.tocsr()
