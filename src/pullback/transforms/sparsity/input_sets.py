"""Sets of inputs, each under an integer name: which inputs reach an element of a value.

An array of names has the shape of the value and says for each element which inputs reach it. Equal sets have one name,
so a program whose sets no longer grow costs nothing more. The work grows with the members of new sets alone.
"""

from typing import Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

Names = NDArray[np.int64]


@define(eq=False)
class Sets:
    """A table of sets of inputs. Name 0 is the empty set; a set keeps its name.

    Each input has a random number. Two sets are taken to be equal if their sizes are and the sums, modulo 2**64, of the
    numbers of their members.
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
        """The names of these sets, whose members stand in order; new sets are added to the table."""
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
