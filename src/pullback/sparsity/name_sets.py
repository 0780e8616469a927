"""Sets of inputs under integer names, and the structure of linear maps: what the propagation of dependencies counts
with.

An array of names, of the shape of a value, says for each element which inputs reach it. Equal sets have one name, so a
program whose sets no longer grow costs nothing more. All work is proportional to the members of the sets that are made.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from pullback.words.errors import PullbackError
from pullback.words.sniffs import column_groups

Names = NDArray[np.int64]
LinearMap = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Entries = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Rows and columns of the entries of a matrix that may be other than 0."""

LARGEST_LABEL = 2**20
"""Labels are integers that even float32 holds exactly."""
TRIALS = 2
PROBES = 4096
"""Calls of a primitive with which its structure may be found out; beyond, every result is taken to depend on every
operand."""


def sparse_library() -> Any:
    """``scipy.sparse``; ``PullbackError`` names the extra where SciPy is missing."""
    try:
        return import_module("scipy.sparse")  # lazily: scipy belongs to an optional extra
    except ImportError as error:
        raise PullbackError(
            "sparse Jacobians and dependencies use scipy.sparse, and scipy is missing: install pullback[demo]"
        ) from error


def groups_of_columns(pattern: Any) -> NDArray[np.int64]:
    """For each column of a sparse pattern its group: no row has entries in two columns of one group.

    Sequential colouring of the column intersection graph (Curtis, Powell and Reid, IMA J. Appl. Math. 13, 1974; Coleman
    and More, SIAM J. Numer. Anal. 20, 1983), by SciPy, in the columns' own order and with the fullest columns first:
    whichever takes fewer groups.
    """
    sparse_library()
    n = pattern.shape[1]
    if not n or not pattern.nnz:
        return np.zeros(n, np.int64)
    counts = np.bincount(pattern.indices, minlength=n) if pattern.format == "csr" else np.diff(pattern.indptr)
    plain = import_module("scipy.sparse").csr_matrix(pattern)
    groups: NDArray[np.int64] = column_groups(import_module, plain, (np.arange(n), np.argsort(-counts, kind="stable")))
    return groups


@define(eq=False)
class Sets:
    """A table of sets of inputs. Name 0 is the empty set; a name, once given, stays.

    Sets are told apart by the sum, modulo 2**64, of random numbers given to the inputs, and by their sizes.
    """

    n_sources: int = 0
    starts: Any = field(factory=lambda: np.zeros(1, np.int64), init=False)
    sizes: Any = field(factory=lambda: np.zeros(1, np.int64), init=False)
    members: Any = field(factory=lambda: np.zeros(64, np.int64), init=False)
    labels: Any = field(factory=lambda: np.zeros(0, np.uint64), init=False)
    known: dict[tuple[int, int], int] = field(factory=lambda: {(0, 0): 0}, init=False)
    count: int = field(default=1, init=False)
    used: int = field(default=0, init=False)
    random: Any = field(factory=lambda: np.random.default_rng(0), init=False)

    def sources(self, count: int) -> Names:
        """Names of that many new inputs, each a set of itself."""
        first = self.n_sources
        self.n_sources += count
        fresh = self.random.integers(1, 2**63, count, dtype=np.uint64)
        self.labels = np.concatenate([self.labels, fresh])
        return self._named(np.arange(count + 1), np.arange(first, first + count))

    def of(self, names: Names) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The members of each of these sets: sizes, and all members one set after the other."""
        sizes = self.sizes[names]
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        offsets = np.arange(total) - np.repeat(ends - sizes, sizes)
        return sizes, self.members[np.repeat(self.starts[names], sizes) + offsets]

    def union(self, *several: Names) -> Names:
        """The unions, element by element, of arrays of names of one shape."""
        joined = several[0]
        for other in several[1:]:
            if other is not joined:
                joined = self._pairs(joined, other)
        return joined

    def _pairs(self, a: Names, b: Names) -> Names:
        result = np.where((a == b) | (b == 0), a, b)
        new = (a != b) & (a != 0) & (b != 0)
        if not new.any():
            return result
        low, high = np.minimum(a[new], b[new]), np.maximum(a[new], b[new])
        pairs, place = np.unique(low * self.count + high, return_inverse=True)
        names = np.stack([pairs // self.count, pairs % self.count], axis=1).reshape(-1)
        result[new] = self.union_of_rows(np.arange(0, len(names) + 1, 2), names)[place]
        return result

    def union_of_rows(self, starts: NDArray[np.int64], names: Names) -> Names:
        """Row ``i``: the union of the sets ``names[starts[i]:starts[i + 1]]``."""
        sizes, members = self.of(names)
        rows = np.repeat(np.repeat(np.arange(len(starts) - 1), np.diff(starts)), sizes)
        places = np.unique(rows * max(self.n_sources, 1) + members)
        rows, members = places // max(self.n_sources, 1), places % max(self.n_sources, 1)
        return self._named(np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(starts) - 1))]), members)

    def _named(self, starts: NDArray[np.int64], members: NDArray[np.int64]) -> Names:
        """The names of sets given by their members, in order; those not met before are added to the table."""
        sizes = np.diff(starts)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(self.labels[members], dtype=np.uint64)])
        keys = list(zip((sums[starts[1:]] - sums[starts[:-1]]).tolist(), sizes.tolist(), strict=True))
        names = np.empty(len(keys), np.int64)
        fresh: list[int] = []
        for k, key in enumerate(keys):
            name = self.known.setdefault(key, self.count + len(fresh))
            if name == self.count + len(fresh):
                fresh.append(k)
            names[k] = name
        self._append(starts, sizes, members, np.asarray(fresh, np.int64))
        return names

    def _append(self, starts: Any, sizes: Any, members: Any, fresh: Any) -> None:
        added = sizes[fresh]
        total = int(added.sum())
        while self.used + total > len(self.members):
            self.members = np.concatenate([self.members, np.empty_like(self.members)])
        offsets = np.arange(total) - np.repeat(np.cumsum(added) - added, added)
        self.members[self.used : self.used + total] = members[np.repeat(starts[fresh], added) + offsets]
        self.starts = np.concatenate([self.starts[: self.count], self.used + np.cumsum(added) - added])
        self.sizes = np.concatenate([self.sizes[: self.count], added])
        self.count += len(fresh)
        self.used += total


def selected(apply: LinearMap, n: int, units: Any = 1.0) -> NDArray[np.int64] | None:
    """For a linear map that hands on elements: which one each element of its result is, -1 for 0; None for any other
    map.

    Random integers, times ``units``, are what a map that does more than hand on cannot give back: the chance is below
    1e-11.
    """
    if not 0 < n < LARGEST_LABEL:
        return None
    first = np.real(apply(np.arange(1.0, n + 1) * units))
    if not np.all(np.isfinite(first)) or np.any(first != np.rint(first)) or np.any(first < 0) or np.any(first > n):
        return None
    places = first.astype(np.int64)
    random = np.random.default_rng(1)
    for _ in range(TRIALS):
        labels = random.integers(1, LARGEST_LABEL, n) * units
        if not np.array_equal(apply(labels), np.concatenate([[0.0], labels])[places]):
            return None
    return places - 1


def structure_of(apply: LinearMap, n: int, k: int, limit: int = PROBES) -> Entries | None:
    """The entries of the ``k`` by ``n`` matrix of a linear map, from products with random vectors alone; None beyond
    ``limit`` products.

    Columns are halved, group by group. Groups that reach no result in common share a product, so a band costs its width
    times the logarithm of ``n``, a full matrix ``2 n`` products.
    """
    sparse, random = sparse_library(), np.random.default_rng(2)
    low, high = np.zeros(1, np.int64), np.full(1, n)
    reached = sparse.csr_matrix(np.asarray(apply(_probe(random, n)) != 0, dtype=bool).reshape(k, 1))
    probes = 1
    while np.any(high - low > 1):
        colours = groups_of_columns(reached)
        owner_of = [_owners(reached, colours == colour) for colour in range(int(colours.max()) + 1)]
        middle = (low + high + 1) // 2
        parts: list[tuple[Any, Any]] = []
        for side, (start, stop) in enumerate(((low, middle), (middle, high))):
            for colour, owner in enumerate(owner_of):
                chosen = np.flatnonzero((colours == colour) & (stop > start))
                if not len(chosen):
                    continue
                probes += 1
                if probes > limit:
                    return None
                vector, where = np.zeros(n), _ranges(start[chosen], stop[chosen])
                vector[where] = _probe(random, len(where))
                rows = np.flatnonzero(apply(vector))
                parts.append((rows, 2 * owner[rows] + side))
        rows, groups = (np.concatenate(several) for several in zip(*parts, strict=True))
        low, high = np.stack([low, middle], axis=1).reshape(-1), np.stack([middle, high], axis=1).reshape(-1)
        reached = sparse.csr_matrix((np.ones(len(rows), bool), (rows, groups)), shape=(k, len(low)))
        alive = np.flatnonzero(np.bincount(groups, minlength=len(low)))
        low, high, reached = low[alive], high[alive], reached[:, alive]
    found = reached.tocoo()
    return found.row.astype(np.int64), low[found.col]


def coupled(structure: Any, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The groups of the equations and of the unknowns of a square system: those of one group are coupled, if by way of
    others.

    ``structure`` are the rows and columns of its entries; in the place of rows None, where each equation has one
    unknown, which it names (-1 for none); None where nothing is known: then all are coupled.
    """
    if structure is None:
        return np.zeros(n, np.int64), np.zeros(n, np.int64)
    rows, columns = structure
    if rows is None:
        rows, columns = np.flatnonzero(columns >= 0), columns[columns >= 0]
    graph = sparse_library().coo_array((np.ones(len(rows), bool), (rows, columns + n)), shape=(2 * n, 2 * n))
    _, groups = import_module("scipy.sparse.csgraph").connected_components(graph, directed=False)
    return groups[:n].astype(np.int64), groups[n:].astype(np.int64)


def _probe(random: Any, n: int) -> NDArray[np.float64]:
    values: NDArray[np.float64] = random.uniform(0.5, 1.5, n) * random.choice([-1.0, 1.0], n)
    return values


def _owners(reached: Any, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each row the one chosen column that reaches it, -1 where none does."""
    owner = np.full(reached.shape[0], -1)
    entries = reached.tocoo()
    mine = chosen[entries.col]
    owner[entries.row[mine]] = entries.col[mine]
    return owner


def _ranges(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """All integers of these ranges."""
    sizes = stops - starts
    every: NDArray[np.int64] = np.arange(int(sizes.sum())) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
    return every
