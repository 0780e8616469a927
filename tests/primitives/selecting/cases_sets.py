"""Conformance cases of unique and its kin, and of the set operations."""

import numpy as np
from tests.primitives.case import Case, since

RNG = np.random.default_rng(10)
LINE = RNG.permutation(np.linspace(-2.3, 1.9, 9))
TABLE = RNG.permutation(np.linspace(-3.1, 4.2, 12)).reshape(3, 4)
TIES = np.array([1.5, -0.5, 1.5, 0.25, -0.5])
GAPS = np.array([np.nan, 1.0, np.nan, 1.0, 0.5])
ROWS = np.array([[1.0, 2.0], [0.5, 3.0], [1.0, 2.0]])
LEFT, RIGHT = np.array([0.3, 1.2, -0.7, 2.1, 1.2]), np.array([2.1, 0.4, -0.7, 5.0])
FIRST = np.array([0.3, 1.2, -0.7])
BOTH = ("float32", "float64")

UNIQUE: tuple[Case, ...] = (
    Case(
        "unique", np.unique, (LINE,), ("unique", "drawn_values"), dtypes=("float16", "float32", "float64", "longdouble")
    ),
    Case("unique of a table", np.unique, (TABLE,), ("unique",), dtypes=BOTH),
    Case("unique with all", lambda x: np.unique(x, True, True, True), (TABLE,), ("unique",)),
    Case("unique inverse", lambda x: np.unique(x, return_inverse=True), (TABLE,), ("unique",)),
    Case("unique complex", np.unique, (TABLE + 1j * TABLE[::-1],), ("unique",), dtypes=BOTH),
    Case("unique axis=0 of a line", lambda x: np.unique(x, axis=0), (LINE,), ("unique",)),
    Case("unique axis=0", lambda x: np.unique(x, axis=0), (TABLE,), ("unique", "unique_rows"), dtypes=BOTH),
    Case("unique axis=-1", lambda x: np.unique(x, return_counts=True, axis=-1), (TABLE,), ("unique", "unique_rows")),
    Case("unique of nothing", np.unique, (np.zeros((0, 2)),), ("unique",)),
    Case("unique of ties", lambda x: np.unique(x, True, True, True), (TIES,), ("unique",), rough="tie", dtypes=BOTH),
    Case("unique of equal rows", lambda x: np.unique(x, True, True, True, axis=0), (ROWS,), ("unique",), rough="tie"),
    Case("unique of NaN", np.unique, (GAPS,), ("unique",), rough="nan", dtypes=BOTH),
    Case("unique of NaN, each", lambda x: np.unique(x, equal_nan=False), (GAPS,), ("unique",), rough="nan"),
    *since("2.3.0", Case("unique sorted=False", lambda x: np.unique(x, sorted=False), (LINE,), ("unique",))),
    Case("unique_all", np.unique_all, (TABLE,), ("unique_all",), dtypes=BOTH),
    Case("unique_counts", np.unique_counts, (TABLE,), ("unique_counts",)),
    Case("unique_inverse", np.unique_inverse, (TABLE,), ("unique_inverse",)),
    Case("unique_values", np.unique_values, (TABLE,), ("unique_values",)),
    Case(
        "unique_values of ties and NaN",
        np.unique_values,
        (np.concatenate((TIES, GAPS)),),
        ("unique_values",),
        rough="nan",
    ),
)
# Values that two operands share stay equal only if both move: no differences there.
OPERATIONS: tuple[Case, ...] = (
    Case("union1d", np.union1d, (FIRST, TABLE), ("union1d",), dtypes=BOTH),
    Case("union1d of shared values", np.union1d, (LEFT, RIGHT), ("union1d",), rough="tie"),
    Case("union1d with a list", lambda x: np.union1d(x, [9.0, 8.0]), (LINE,), ("union1d",)),
    Case("union1d, mixed precision", lambda x: np.union1d(x, FIRST.astype("f4")), (LINE,), ("union1d",)),
    Case("intersect1d", np.intersect1d, (LEFT, RIGHT), ("intersect1d",), rough="tie", dtypes=BOTH),
    Case(
        "intersect1d indices",
        lambda x, y: np.intersect1d(x, y, return_indices=True),
        (LEFT, RIGHT),
        ("intersect1d",),
        rough="tie",
    ),
    Case(
        "intersect1d unique", lambda x, y: np.intersect1d(x, y, True), (LEFT[:4], RIGHT), ("intersect1d",), rough="tie"
    ),
    Case("intersect1d with itself", lambda x: np.intersect1d(x, x), (LINE,), ("intersect1d",)),
    Case("setdiff1d", lambda x: np.setdiff1d(x, RIGHT), (FIRST[:2],), ("setdiff1d",), dtypes=BOTH),
    Case("setdiff1d, both traced", np.setdiff1d, (LEFT, RIGHT), ("setdiff1d",), rough="tie"),
    Case("setdiff1d unique", lambda x: np.setdiff1d(x, [5.0], assume_unique=True), (LINE[:5],), ("setdiff1d",)),
    Case("setxor1d", np.setxor1d, (FIRST[:2], TABLE[0]), ("setxor1d",), dtypes=BOTH),
    Case("setxor1d of shared values", np.setxor1d, (LEFT, RIGHT), ("setxor1d",), rough="tie"),
    Case("setxor1d unique", lambda x, y: np.setxor1d(x, y, assume_unique=True), (FIRST, TABLE[0]), ("setxor1d",)),
)


CASES: tuple[Case, ...] = (
    *UNIQUE,
    *OPERATIONS,
)
