"""Which elements of the result of a linear operation depend on which elements of its operand.

Found by products with random vectors: no entry of the matrix is ever asked for.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pullback.recording.handles import plain_value
from pullback.rules.declaration import Primitive
from pullback.transforms.derivatives.reverse import vjp
from pullback.transforms.sparsity.pattern_groups import groups_of_columns, sparse_library

LinearMap = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Entries = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Rows and columns of the entries of a matrix that may be other than 0."""

LARGEST_LABEL = 2**20
"""Labels are integers that even float32 holds exactly."""
TRIALS = 2
PROBES = 4096
"""The most calls of a primitive that finding its structure may take. A primitive that needs more is taken to let every
result depend on every operand."""


def selected(apply: LinearMap, n: int, units: Any = 1.0) -> NDArray[np.int64] | None:
    """The place from which each element of the result comes, for a linear map that only moves elements, -1 for a 0;
    None for any other map.

    The test: random integers, times ``units``, come back unchanged. Any other map passes with a chance below 1e-11.
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
    """The entries of the ``k`` by ``n`` matrix of a linear map, from products with random vectors alone; None where
    that takes more than ``limit`` products.

    Bisection: ranges of columns are halved until each is one column, and halves that reach no row are dropped. Ranges
    without a row in common share a product: a band matrix takes its width times log ``n`` products, a full one ``2 n``.
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
                ranges = np.flatnonzero((colours == colour) & (stop > start))
                if not len(ranges):
                    continue
                probes += 1
                if probes > limit:
                    return None
                vector, where = np.zeros(n), _ranges(start[ranges], stop[ranges])
                vector[where] = _probe(random, len(where))
                rows = np.flatnonzero(apply(vector))
                parts.append((rows, 2 * owner[rows] + side))
        rows, groups = (np.concatenate(several) for several in zip(*parts, strict=True))
        low, high = np.stack([low, middle], axis=1).reshape(-1), np.stack([middle, high], axis=1).reshape(-1)
        reached = sparse.csr_matrix((np.ones(len(rows), bool), (rows, groups)), shape=(k, len(low)))
        alive = np.flatnonzero(np.bincount(groups, minlength=len(low)))
        low, high, reached = low[alive], high[alive], reached[:, alive]
    entries = reached.tocoo()
    return entries.row.astype(np.int64), low[entries.col]


def structure_by_places(apply: Callable[[Any], Any], units: Any, n: int, k: int) -> Any:
    """``(None, places)`` of a map that only moves elements (see :func:`selected`), else rows and columns of its
    entries; None where they would take too many products.

    ``units`` are 1 for real elements and 1 + i for complex ones: a map that drops the real or the imaginary part shows.
    """

    def plain(vector: NDArray[Any]) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(plain_value(apply(vector))).reshape(-1)

    if not n or not k:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    places = selected(plain, n, units)
    if places is not None:
        return None, places
    turned = units * np.exp(1j * np.arange(n)) if np.iscomplexobj(units) else units
    if k >= n:
        return structure_of(lambda vector: plain(vector * turned), n, k)
    out, pull = vjp(lambda vector: np.reshape(apply(vector), -1), np.ones(n) * units)
    phases = np.exp(1j * np.arange(k)) if np.iscomplexobj(out) else 1.0
    transposed: LinearMap = lambda ct: pull(ct * phases)[0]  # noqa: E731 - a name for its type
    entries = structure_of(transposed, k, n)
    pull.close()
    return None if entries is None else (entries[1], entries[0])


def units_of(values: tuple[Any, ...], places: tuple[int, ...]) -> Any:
    """1 for each real element of the operands at these places, 1 + i for each complex one."""
    parts = [np.full(np.size(values[k]), 1 + 1j if np.iscomplexobj(plain_value(values[k])) else 1.0) for k in places]
    return np.concatenate(parts)


def linear_map(
    prim: Primitive, values: tuple[Any, ...], params: Mapping[str, Any], places: tuple[int, ...], active: set[int]
) -> Callable[[Any], Any]:
    """A primitive as a function of one vector, which holds the operands at ``places``. Other active operands are
    random numbers; constants keep their values."""
    random = np.random.default_rng(3)
    linear = {k for k in range(len(values)) if prim.rule_name(k) in prim.linear or prim.reach == "moved"}
    fixed = [
        _fixed(plain_value(v), k in linear and places[0] in linear, k in active, random) for k, v in enumerate(values)
    ]
    shapes = [np.shape(values[k]) for k in places]
    real = {k for k in places if not np.iscomplexobj(plain_value(values[k]))}
    ends = np.cumsum([int(np.prod(shape, dtype=int)) for shape in shapes])

    def apply(vector: Any) -> Any:
        filled = list(fixed)
        for k, shape, end in zip(places, shapes, ends, strict=True):
            part = np.reshape(vector[end - int(np.prod(shape, dtype=int)) : end], shape)
            filled[k] = np.real(part) if k in real else part
        return prim(*filled, **params)

    return apply


def _fixed(value: Any, is_zero: bool, is_active: bool, random: Any) -> Any:
    """What stands for an operand that is held fixed: 0 where the map is linear in it too, random numbers where it
    depends on inputs, else its value."""
    if is_zero:
        return np.zeros(np.shape(value))
    return random.uniform(0.5, 1.5, np.shape(value)) if is_active else value


def key_of(x: Any) -> Any:
    """A hashable key for a constant or a parameter: equal values have equal keys, unknown objects their ``id``."""
    if isinstance(x, np.ndarray):
        return x.shape, x.dtype, x.tobytes()
    if isinstance(x, Mapping):
        return tuple((name, key_of(value)) for name, value in x.items())
    if isinstance(x, tuple | list):
        return type(x), tuple(map(key_of, x))
    if isinstance(x, slice):
        return "slice", x.start, x.stop, x.step
    return (type(x), x) if isinstance(x, int | float | complex | str | np.generic | type(None)) else id(x)


def _probe(random: Any, n: int) -> NDArray[np.float64]:
    values: NDArray[np.float64] = random.uniform(0.5, 1.5, n) * random.choice([-1.0, 1.0], n)
    return values


def _owners(reached: Any, columns: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The one of these columns that reaches each row, -1 where none does."""
    owner = np.full(reached.shape[0], -1)
    entries = reached.tocoo()
    mine = columns[entries.col]
    owner[entries.row[mine]] = entries.col[mine]
    return owner


def _ranges(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """All integers of these ranges."""
    sizes = stops - starts
    every: NDArray[np.int64] = np.arange(int(sizes.sum())) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
    return every
