"""``lil_matrix``, ``dok_matrix`` and their like, made while a trace is under way: traced numbers can be written in."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import pullback as pb
from pullback_scipy.mirroring import holds
from pullback_scipy.sparse_arrays.arrays import SparseArray, entries_of, of_scipy
from pullback_scipy.sparse_arrays.entries import Entries
from pullback_scipy.sparse_arrays.makers import Maker, csr_array, csr_matrix
from pullback_scipy.sparse_arrays.products import Made


class Writable(SparseArray):
    """A sparse array of SciPy's, which is ``plain`` until a traced number is written into it."""

    def __init__(self, plain: Any, entries: Entries | None = None) -> None:
        self.plain, self.entries = plain, entries

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self.entries is not None:
            return super().__getattr__(name)
        return getattr(self.plain, name)

    # ------------------------------------------------------------------------------------------------------ what it is
    def now(self, name: str = "csr") -> SparseArray:
        """The array as it stands, compressed; that of a dictionary of keys in the order of the writes, as SciPy's."""
        if self.entries is None:
            return of_scipy(self.plain.asformat(name))
        kind = getattr(sparse, f"{name}_{'matrix' if isinstance(self.plain, sparse.spmatrix) else 'array'}")
        data, *places = self.entries.compressed(by_columns=name == "csc", as_written=self.format == "dok")
        return SparseArray(data, tuple(places), Made(kind, self.plain.shape))

    @property
    def data(self) -> Any:
        return self.now().data

    @data.setter
    def data(self, _: Any) -> None:
        raise pb.NotDifferentiableError(
            "a lil_matrix or dok_matrix of a trace is neither returned from it nor carried by a loop, and its data are "
            "not set; give A.tocsr(), which can be"
        )

    @property
    def places(self) -> Any:  # type: ignore[override]
        return self.now().places

    @property
    def made(self) -> Any:  # type: ignore[override]
        return self.now().made

    @property
    def shape(self) -> tuple[int, ...]:
        return self.plain.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Any:
        return self.plain.dtype

    @property
    def format(self) -> str:
        return str(self.plain.format)

    @property
    def nnz(self) -> int:
        return int(self.plain.nnz if self.entries is None else len(self.entries.at))

    @property
    def stands_for(self) -> Any:
        return type(self.plain)

    # --------------------------------------------------------------------------------------------- written and read
    def __setitem__(self, key: Any, given: Any) -> None:
        if self.entries is None:
            if not (isinstance(given, SparseArray) or holds(given)):
                self.plain[key] = given
                return
            self.entries = entries_of(of_scipy(self.plain))
        self.entries.write(key, given)

    def __getitem__(self, key: Any) -> Any:
        if self.entries is None:
            part = self.plain[key]
            return Writable(part) if sparse.issparse(part) else part
        found = self.entries.read(key)
        if not isinstance(found, tuple):
            return found
        shape, rows, columns, data = found
        kind: Any = sparse.coo_matrix if isinstance(self.plain, sparse.spmatrix) else sparse.coo_array
        return SparseArray(data, (rows, columns), Made(kind, shape))

    def setdiag(self, values: Any, k: int = 0) -> None:
        length = min(self.shape[0] + min(k, 0), self.shape[1] - max(k, 0))
        if np.ndim(values):
            length = min(length, len(values))
            values = values[:length]
        self[np.arange(length) - min(k, 0), np.arange(length) + max(k, 0)] = values

    def copy(self) -> "Writable":
        return Writable(self.plain.copy(), None if self.entries is None else self.entries.copy())

    def _as(self, name: str, copy: bool = False) -> Any:
        if name == self.format:
            return self.copy() if copy else self
        return (
            self.plain.asformat(name)
            if self.entries is None
            else self.now("csc" if name == "csc" else "csr").asformat(name)
        )


def of_array(x: SparseArray, kind: Any) -> Writable:
    """The array of that class of SciPy's which has the entries of ``x``."""
    return Writable(kind(x.shape, dtype=x.dtype), entries_of(x))


@cache
def _adopted() -> Any:
    return pb.adopt(str(Path(__file__).with_name("fresh.py")))


class WritableMaker(Maker):
    """A class of SciPy's that is written by keys: while a trace is under way it gives an array of ours."""

    __slots__ = ()

    def __call__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **options: Any) -> Any:
        if holds(arg1) or isinstance(arg1, SparseArray):
            return super().__call__(arg1, shape, dtype, copy)
        plain = self.kind(arg1, shape=shape, dtype=dtype, copy=copy, **options)
        return Writable(plain) if isinstance(_adopted().fresh(), pb.Tracer) else plain

    def _made(self, given: Any, shape: Any) -> SparseArray:
        found = (csr_matrix if issubclass(self.kind, sparse.spmatrix) else csr_array)(given, shape=shape)
        return of_array(found, self.kind)


lil_array, dok_array = WritableMaker(sparse.lil_array), WritableMaker(sparse.dok_array)
lil_matrix, dok_matrix = WritableMaker(sparse.lil_matrix), WritableMaker(sparse.dok_matrix)
