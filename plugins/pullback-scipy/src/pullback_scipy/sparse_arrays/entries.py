"""The entries of a sparse array that is written by keys, A[i, j] = t: where each stands, and its value.

A write of a plain 0 removes what stood there, as SciPy's does; a traced one stays, since it may have a derivative.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

import pullback as pb
from pullback_scipy.mirroring import as_array, holds
from pullback_scipy.sparse_arrays.dense_matrices import array_of

SINGLES = -1
"""The number of the block that consists of what was written one by one."""


class Entries:
    """The entries of an array of that shape and dtype, which at the outset has those given."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, rows: Any, columns: Any, data: Any) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.at: dict[int, tuple[int, int]] = {}
        self.blocks: list[Any] = []
        self.singles: list[Any] = []
        self._put(np.asarray(rows, np.int64) * shape[1] + columns, data)

    def copy(self) -> "Entries":
        other = Entries(self.shape, self.dtype, [], [], np.zeros(0, self.dtype))
        other.at, other.blocks, other.singles = dict(self.at), list(self.blocks), list(self.singles)
        return other

    # ------------------------------------------------------------------------------------------------------- by keys
    def _located(self, key: Any) -> tuple[Any, Any]:
        """The rows and columns of a key, which broadcast; two axes where one of the parts is a slice."""
        if isinstance(key, tuple) and len(key) == 2:
            row, column = key
        elif np.ndim(key) == 2:
            row, column = np.nonzero(np.asarray(key))
        else:
            row, column = key, slice(None)
        rows, columns = np.arange(self.shape[0])[row], np.arange(self.shape[1])[column]
        if isinstance(row, slice) or isinstance(column, slice):
            return np.atleast_1d(rows)[:, None], np.atleast_1d(columns)[None, :]
        return rows, columns

    def _present(self, rows: Any, columns: Any) -> list[tuple[Any, int]]:
        """Places within a key at which an entry stands, and their flat numbers."""
        if np.ndim(rows) == 2 and rows.size * columns.size > 4 * len(self.at):
            row_at = {int(row): k for k, row in enumerate(rows[:, 0])}
            column_at = {int(column): k for k, column in enumerate(columns[0])}
            width = self.shape[1]
            return [
                (row_at[flat // width] * columns.size + column_at[flat % width], flat)
                for flat in self.at
                if flat // width in row_at and flat % width in column_at
            ]
        return [(k, flat) for k, flat in enumerate(np.ravel(self._flat(rows, columns)).tolist()) if flat in self.at]

    def _flat(self, rows: Any, columns: Any) -> Any:
        return np.asarray(rows, np.int64) * self.shape[1] + columns

    def write(self, key: Any, given: Any) -> None:
        """``given``, a number, an array or a sparse one, stands at ``key`` from now on."""
        (rows, columns), given = self._located(key), array_of(given)
        if hasattr(given, "tocsr"):
            block = given.tocsr().tocoo()
            if np.ndim(rows) == 2 and rows.shape[1] == columns.shape[0] == 1 and block.shape == (
                rows.size, columns.size
            ):  # fmt: skip
                self._remove(flat for _, flat in self._present(rows, columns))
                self._put(self._flat(rows[block.row, 0], columns[0, block.col]), self._fitting(block.data))
                return
            given = given.toarray()
        if not holds(given) and np.ndim(given) == 0 and given == 0:
            self._remove(flat for _, flat in self._present(rows, columns))
            return
        flat, given = self._flat(rows, columns), self._fitting(as_array(given))
        if flat.ndim == 0 and given.ndim == 0:
            self.at[int(flat)] = (SINGLES, len(self.singles))
            self.singles.append(given)
            return
        if np.ndim(given) and _squeezed(given.shape) == _squeezed(flat.shape):
            given = np.reshape(given, (-1,))
        else:
            given = np.reshape(np.broadcast_to(given, flat.shape), (-1,))
        self._put(np.ravel(flat), given)

    def read(self, key: Any) -> Any:
        """A number, or the shape, rows, columns and values of the entries in a part."""
        rows, columns = self._located(key)
        if np.ndim(rows) == np.ndim(columns) == 0:
            found = self.at.get(int(self._flat(rows, columns)))
            return np.zeros((), self.dtype)[()] if found is None else self._values([found])[0]
        shape = np.broadcast_shapes(np.shape(rows), np.shape(columns))
        shape = (1, *shape) if len(shape) == 1 else shape
        present = self._present(rows, columns)
        place = np.array([k for k, _ in present], np.int64)
        return shape, place // shape[1], place % shape[1], self._values([self.at[flat] for _, flat in present])

    # ----------------------------------------------------------------------------------------------------- the store
    def _fitting(self, given: Any) -> Any:
        """``given`` in the dtype of the array."""
        if isinstance(given, pb.Tracer) and not np.can_cast(given.dtype, self.dtype, "same_kind"):
            raise pb.NotDifferentiableError(
                f"a sparse array of {self.dtype} cannot hold a traced {given.dtype}; make it with dtype={given.dtype}"
            )
        return given if given.dtype == self.dtype else given.astype(self.dtype)

    def _remove(self, flats: Iterable[int]) -> None:
        for flat in list(flats):
            self.at.pop(flat, None)

    def _put(self, flats: Any, data: Any) -> None:
        """The values ``data`` at flat places, of which the last of equal ones counts."""
        numbers = flats.tolist()
        if not isinstance(data, pb.Tracer):
            self._remove(flat for flat, x in zip(numbers, data, strict=True) if x == 0)
            keep = np.flatnonzero(data)
            numbers = [numbers[k] for k in keep]
            data = data[keep]
        self.at.update((flat, (len(self.blocks), k)) for k, flat in enumerate(numbers))
        self.blocks.append(data)

    def _values(self, where: list[tuple[int, int]]) -> Any:
        """The values that stand in those blocks at those places."""
        of_block: dict[int, list[int]] = {}
        for k, (block, _) in enumerate(where):
            of_block.setdefault(block, []).append(k)
        parts = []
        for block, places in of_block.items():
            inner = [where[k][1] for k in places]
            parts.append(
                as_array([self.singles[k] for k in inner]) if block == SINGLES else self.blocks[block][np.array(inner)]
            )
        if not parts:
            return np.zeros(0, self.dtype)
        order = np.concatenate([np.array(places) for places in of_block.values()])
        data = np.concatenate(parts) if len(parts) > 1 else parts[0]
        return data if (np.diff(order) == 1).all() else data[np.argsort(order)]

    def compressed(self, *, by_columns: bool = False, as_written: bool = False) -> tuple[Any, Any, Any]:
        """The values, columns and starts of rows, as in csr; or the other way round. In a row in the order of the
        columns, or of the first writes."""
        flats = np.fromiter(self.at, np.int64, len(self.at))
        if not as_written:
            flats = np.sort(flats)
        rows, columns = np.divmod(flats, max(self.shape[1], 1))
        if by_columns:
            rows, columns = columns, rows
        order = np.argsort(rows, kind="stable")
        starts = np.searchsorted(rows[order], np.arange(self.shape[by_columns] + 1))
        data = self._values([self.at[flat] for flat in flats[order].tolist()])
        return data, columns[order].astype(np.int32), starts.astype(np.int32)


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)
