"""Conformance cases of sums over segments."""

import numpy as np
from tests.primitives.case import Case

X = np.array([[1.3, 2.2, 3.1], [4.7, 5.9, 6.4]])
BOTH = ("float32", "float64")

SEGMENTS: tuple[Case, ...] = (
    Case(
        "add.reduceat",
        lambda x: np.add.reduceat(x, [0, 2], axis=1),
        (X,),
        ("add.reduceat", "sum_segments"),
        dtypes=BOTH,
    ),
    Case("add.reduceat from the second", lambda x: np.add.reduceat(x, [1, 2], axis=-1), (X,), ("sum_segments",)),
    Case("add.reduceat of rows", lambda x: np.add.reduceat(x, [1]), (X,), ("add.reduceat",)),
    Case("add.reduceat overlapping", lambda x: np.add.reduceat(x, [1, 0, 2], axis=1), (X,), ("add.reduceat",)),
    Case("add.reduceat dtype", lambda x: np.add.reduceat(x, [0, 1], 1, np.complex128), (X,), ("sum_segments",)),
    Case("add.reduceat strided", lambda x: np.add.reduceat(x.T[::-1], [0, 2]), (X,), ("sum_segments",)),
    Case("add.reduceat complex", lambda x: np.add.reduceat(x, [0, 2], axis=1), (X + 1j * X[::-1],), ("sum_segments",)),
)


CASES: tuple[Case, ...] = (*SEGMENTS,)
