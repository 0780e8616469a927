"""How sparse arrays with traced nonzeros are made: the classes of SciPy, ``diags``, blocks."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
from scipy import sparse

import pullback as pb
from pullback_scipy.mirroring import as_array, holds, mirror, settled
from pullback_scipy.sparse_arrays.arrays import SparseArray, ours
from pullback_scipy.sparse_arrays.products import Made


class Maker:
    """A class of sparse arrays of SciPy's: called with traced nonzeros it gives an array of ours."""

    __slots__ = ("kind",)
    kind: Any
    by = ("data",)

    def __init__(self, kind: Any) -> None:
        object.__setattr__(self, "kind", kind)

    @property
    def __wrapped__(self) -> Any:
        return self.kind

    stands_for = __wrapped__

    def __call__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **options: Any) -> Any:
        if not holds(arg1) and not isinstance(arg1, SparseArray):
            return self.kind(arg1, shape=shape, dtype=dtype, copy=copy, **options)
        made = self._made(arg1, shape)
        return made if dtype is None else made.with_data(made.data.astype(dtype))

    def _made(self, given: Any, shape: Any) -> SparseArray:
        name = self.kind.__name__[:3]
        if name == "dia":
            return self._of_diagonals(given, shape)
        if isinstance(given, SparseArray):
            found = given.asformat(name)
            return SparseArray(found.data, found.places, Made(self.kind, found.shape))
        if isinstance(given, tuple) and len(given) in (2, 3):
            data, *rest = given
            data = as_array(data)
            if len(given) == 3 and name != "coo":
                places = (np.asarray(rest[0]), np.asarray(rest[1]))
                plain = self.kind((pb.value(data), *places), shape=shape)
                return SparseArray(data, (plain.indices, plain.indptr), Made(self.kind, plain.shape))
            kind: Any = sparse.coo_matrix if issubclass(self.kind, sparse.spmatrix) else sparse.coo_array
            plain = kind((pb.value(data), tuple(rest[0])), shape=shape)
            made = SparseArray(data, (plain.row, plain.col), Made(kind, plain.shape))
            return made if name == "coo" else self._made(made, None)
        dense = as_array(given)
        rows, columns = np.nonzero(pb.value(dense))
        return self._made((dense[rows, columns], (rows, columns)), dense.shape)

    def _of_diagonals(self, given: Any, shape: Any) -> SparseArray:
        """In csr, where SciPy keeps diagonals."""
        of_csr = csr_matrix if issubclass(self.kind, sparse.spmatrix) else csr_array
        if not (isinstance(given, tuple) and len(given) == 2):
            return of_csr(given, shape=shape)  # type: ignore[no-any-return]
        made = spdiags(np.atleast_2d(as_array(given[0])), given[1], *shape)
        return of_csr(made)  # type: ignore[no-any-return]

    def __instancecheck__(self, x: Any) -> bool:
        return _is_one(x, self.kind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kind, name)

    def __setattr__(self, name: str, given: Any) -> None:
        setattr(self.kind, name, given)  # who writes into SciPy's class finds it there


csr_array, csc_array, coo_array = Maker(sparse.csr_array), Maker(sparse.csc_array), Maker(sparse.coo_array)
csr_matrix, csc_matrix, coo_matrix = Maker(sparse.csr_matrix), Maker(sparse.csc_matrix), Maker(sparse.coo_matrix)
dia_array, dia_matrix = Maker(sparse.dia_array), Maker(sparse.dia_matrix)


# ------------------------------------------------------------------------------------------------------------ diagonals
def _diagonals(diagonals: Any, offsets: Any, shape: Any, format: Any, kind: Any) -> SparseArray:
    if np.ndim(offsets) == 0:
        diagonals, offsets = ([diagonals], [offsets]) if isinstance(diagonals, pb.Tracer) else (diagonals, [offsets])
        if not holds(diagonals[0]) or not np.ndim(diagonals[0]):
            diagonals = [as_array(diagonals)]
    parts = [np.reshape(as_array(d), (-1,)) for d in diagonals]
    if shape is None:
        n = parts[0].shape[0] + abs(int(offsets[0]))
        shape = (n, n)
    rows: list[Any] = []
    columns: list[Any] = []
    data: list[Any] = []
    for part, offset in zip(parts, map(int, offsets), strict=True):
        length = max(0, min(shape[0] + min(offset, 0), shape[1] - max(offset, 0)))
        if part.shape[0] not in (1, length):
            raise ValueError(
                f"Diagonal length (index {len(rows)}: {part.shape[0]} at offset {offset}) does not agree with array "
                f"size ({shape[0]}, {shape[1]})."
            )
        along = np.arange(length)
        rows.append(along + max(-offset, 0))
        columns.append(along + max(offset, 0))
        data.append(np.broadcast_to(part, (length,)) if part.shape[0] != length else part)
    places = (np.concatenate(rows), np.concatenate(columns))
    return SparseArray(np.concatenate(data), places, Made(kind, tuple(shape))).asformat(
        "csr" if format in (None, "dia") else format
    )


@mirror(sparse.diags, "diagonals")
def diags(diagonals: Any, offsets: Any = 0, shape: Any = None, format: Any = None) -> Any:
    """A sparse matrix from its diagonals; in csr, where SciPy gives dia."""
    return _diagonals(diagonals, offsets, shape, format, sparse.coo_matrix)


@mirror(sparse.diags_array, "diagonals")
def diags_array(diagonals: Any, *, offsets: Any = 0, shape: Any = None, format: Any = None) -> Any:
    """A sparse array from its diagonals; in csr, where SciPy gives dia."""
    return _diagonals(diagonals, offsets, shape, format, sparse.coo_array)


@mirror(sparse.spdiags, "data")
def spdiags(data: Any, diags: Any, m: Any = None, n: Any = None, format: Any = None) -> Any:
    """A sparse matrix from its diagonals, which are rows of ``data``, by column."""
    data = np.atleast_2d(as_array(data))
    m, n = (m if n is None else (m, n)) if m is not None else (data.shape[1],) * 2
    rows, columns, parts = [], [], []
    for k, offset in enumerate(np.atleast_1d(diags)):
        along = np.arange(max(0, offset), min(n, m + offset, data.shape[1]))
        rows.append(along - offset)
        columns.append(along)
        parts.append(data[k, along])
    places = (np.concatenate(rows), np.concatenate(columns))
    made = SparseArray(np.concatenate(parts), places, Made(sparse.coo_matrix, (m, n)))
    return made.asformat("csr" if format in (None, "dia") else format)


# --------------------------------------------------------------------------------------------------------------- blocks
def _joined(blocks: Any, format: Any) -> Any:
    """The blocks of a list of lists, None for one of zeros."""
    known: list[list[Any]] = [
        [None if b is None else ours(b if hasattr(b, "tocsr") else csr_array(b)) for b in row] for row in blocks
    ]
    heights = [next(b.shape[0] for b in row if b is not None) for row in known]
    widths = [next(row[k].shape[1] for row in known if row[k] is not None) for k in range(len(known[0]))]
    rows, columns, data, matrix = [], [], [], True
    for i, row in enumerate(known):
        for j, block in enumerate(row):
            if block is not None:
                matrix &= block.is_matrix
                rows.append(block.row + sum(heights[:i]))
                columns.append(block.col + sum(widths[:j]))
                data.append(block.data)
    kind: Any = sparse.coo_matrix if matrix else sparse.coo_array
    places = (np.concatenate(rows), np.concatenate(columns))
    made = SparseArray(np.concatenate(data), places, Made(kind, (sum(heights), sum(widths))))
    return made if format is None else made.asformat(format)


def _joining(function: Any, laid: Callable[[Any], Any]) -> Any:
    def joined(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
        if not holds_blocks(blocks):
            return function(blocks, format=format, dtype=dtype)
        made = _joined(laid(blocks), format)
        return made if dtype is None else made.astype(dtype)

    joined.by = ("blocks",)  # type: ignore[attr-defined] # as of `mirror`
    joined.__doc__ = function.__doc__
    return joined


def holds_blocks(blocks: Any) -> bool:
    """Whether a nested list holds a sparse array of ours, or what is traced."""
    if isinstance(blocks, list | tuple):
        return any(map(holds_blocks, blocks))
    return isinstance(blocks, SparseArray) or holds(blocks)


bmat = _joining(sparse.bmat, lambda blocks: blocks)
block_array = _joining(sparse.block_array, lambda blocks: blocks)
hstack = _joining(sparse.hstack, lambda blocks: [list(blocks)])
vstack = _joining(sparse.vstack, lambda blocks: [[b] for b in blocks])
block_diag = _joining(
    sparse.block_diag,
    lambda blocks: [[b if i == j else None for j in range(len(blocks))] for i, b in enumerate(blocks)],
)


def _kron(A: Any, B: Any) -> Any:
    A, B = ours(A), ours(B)
    rows = np.ravel(np.multiply(A.row, B.shape[0])[:, None] + B.row)
    columns = np.ravel(np.multiply(A.col, B.shape[1])[:, None] + B.col)
    kind: Any = sparse.coo_matrix if A.is_matrix else sparse.coo_array
    data = np.ravel(A.data[:, None] * B.data[None, :])
    return SparseArray(data, (rows, columns), Made(kind, (A.shape[0] * B.shape[0], A.shape[1] * B.shape[1])))


def kron(A: Any, B: Any, format: Any = None) -> Any:
    """The Kronecker product of sparse arrays."""
    if not (isinstance(A, SparseArray) or isinstance(B, SparseArray)):
        return sparse.kron(A, B, format=format)
    made = _kron(*(x if hasattr(x, "tocsr") else sparse.coo_array(x) for x in (A, B)))
    return made if format is None else made.asformat(format)


def kronsum(A: Any, B: Any, format: Any = None) -> Any:
    """The Kronecker sum of square sparse arrays: B for each row of A, and A for each row of B."""
    if not (isinstance(A, SparseArray) or isinstance(B, SparseArray)):
        return sparse.kronsum(A, B, format=format)
    A, B = (x if hasattr(x, "tocsr") else sparse.coo_array(x) for x in (A, B))
    eyes = [sparse.eye_array(each.shape[0], dtype=np.result_type(A.dtype, B.dtype)) for each in (A, B)]
    made = _kron(eyes[1], A) + _kron(B, eyes[0])
    return SparseArray(made.data, made.places, Made(_matrix_or_array(A, B), made.shape)).asformat(format)


def _matrix_or_array(A: Any, B: Any) -> Any:
    both = all(x.is_matrix if isinstance(x, SparseArray) else isinstance(x, sparse.spmatrix) for x in (A, B))
    return sparse.csr_matrix if both else sparse.csr_array


def _part(function: Any) -> Any:
    """``tril`` or ``triu``, of sparse arrays that are traced, too."""

    def part(A: Any, k: int = 0, format: Any = None) -> Any:
        if not isinstance(A, SparseArray):
            return function(A, k=k, format=format)
        return A.without_duplicates().moved(lambda a: function(a, k=k)).asformat(format)

    part.__doc__, part.by = function.__doc__, ("A",)  # type: ignore[attr-defined] # as of `mirror`
    return part


tril, triu = _part(sparse.tril), _part(sparse.triu)


def find(A: Any) -> Any:
    """The rows, columns and values of the nonzeros."""
    if not isinstance(A, SparseArray):
        return sparse.find(A)
    each = A.without_duplicates()
    here = pb.value(each.data) != 0
    return each.row[here], each.col[here], each.data[here]


kron.by = kronsum.by = ("A", "B")  # type: ignore[attr-defined] # as of `mirror`
find.by = ("A",)  # type: ignore[attr-defined] # as of `mirror`


def issparse(x: Any) -> bool:
    """Whether ``x`` is sparse, traced or not."""
    return isinstance(x, SparseArray) or bool(sparse.issparse(x))


def isspmatrix(x: Any) -> bool:
    """Whether ``x`` is a sparse matrix, traced or not."""
    return x.is_matrix if isinstance(x, SparseArray) else bool(sparse.isspmatrix(x))


def _is_one(x: Any, kind: Any) -> bool:
    """Whether ``x`` is of that class of SciPy's, traced or not."""
    return isinstance(x, kind) or (isinstance(x, SparseArray) and issubclass(x.stands_for, kind))


isspmatrix_bsr, isspmatrix_coo, isspmatrix_csc, isspmatrix_csr, isspmatrix_dia, isspmatrix_dok, isspmatrix_lil = (
    partial(_is_one, kind=getattr(sparse, f"{name}_matrix")) for name in "bsr coo csc csr dia dok lil".split()
)


def plain_or_refused(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of SciPy's that knows no traced nonzeros: it gets SciPy's array of those that depend on no input, and
    refuses others by its name."""

    def plain(x: Any) -> Any:
        if not isinstance(x, SparseArray):
            return x
        data = settled(x.data)
        if isinstance(data, pb.Tracer):
            raise pb.MissingRuleError(
                f"{function.__module__.partition('._')[0]}.{function.__name__} has no rule for a traced sparse array; "
                "write it by the nonzeros (A.data, A.indices, A.indptr) or by A.toarray(), or give "
                "A.with_data(pullback.value(A.data)).value to drop the derivative on purpose"
            )
        return x.made(data, x.places)

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        return function(*map(plain, args), **{name: plain(x) for name, x in options.items()})

    return call
