"""Conformance cases of what writes into its first argument, and of sums over segments. Their traps stand in
tests/core/test_filling.py."""

import numpy as np
from tests.primitives.case import Case

X = np.array([[1.3, 2.2, 3.1], [4.7, 5.9, 6.4]])
BOTH = ("float32", "float64")


def written(write):
    """The function that writes into a copy of x, and reads the copy and x."""

    def function(x):
        y = np.empty_like(x)
        y[...] = x
        write(y, x)
        return y * x

    return function


FILLING: tuple[Case, ...] = (
    Case("put", written(lambda y, x: np.put(y, [0, -1, 0], x[0] * 2)), (X,), ("put",), dtypes=BOTH),
    Case("put cycled", written(lambda y, x: np.put(y, [0, 3, 4, 1], x[0, :2])), (X,), ("put",)),
    Case(
        "put wrap and clip",
        written(lambda y, x: (np.put(y, [7], x[0], "wrap"), np.put(y, [9], x[1], "clip"))),
        (X,),
        ("put",),
    ),
    Case("place", written(lambda y, x: np.place(y, X > 2.5, x[0, :2] * 3)), (X,), ("place",), dtypes=BOTH),
    Case("putmask", written(lambda y, x: np.putmask(y, X > 2.5, x[1, :2] ** 2)), (X,), ("putmask",), dtypes=BOTH),
    Case(
        "put_along_axis",
        written(lambda y, x: np.put_along_axis(y, np.array([[2], [0]]), x[:, :1] * 5, 1)),
        (X,),
        ("put_along_axis",),
    ),
    Case(
        "put_along_axis flat",
        written(lambda y, x: np.put_along_axis(y, np.array([-1, 2]), x[0, :2], None)),
        (X,),
        ("put_along_axis",),
    ),
    Case(
        "fill_diagonal", written(lambda y, x: np.fill_diagonal(y, x[0, :2] ** 2)), (X,), ("fill_diagonal",), dtypes=BOTH
    ),
    Case(
        "fill_diagonal wrap",
        written(lambda y, x: np.fill_diagonal(y.reshape(6, 1), x[0, 0], wrap=True)),
        (X,),
        ("fill_diagonal",),
    ),
)

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

# What takes traced contents, told by like=.
BY_LIKE: tuple[Case, ...] = (
    *(
        Case(
            f"{f.__name__} of elements",
            lambda x, f=f: x * f([[x[0, 0], 2.0, x[1, 2]], [x[0, 1] ** 2, 1.0, x[1, 1]]], like=x),
            (X,),
            (),
        )
        for f in (np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require)
    ),
    Case("full of an element", lambda x: x * np.full((2, 3), x[0, 0] ** 2, like=x), (X,), ()),
)

CASES: tuple[Case, ...] = (*FILLING, *SEGMENTS, *BY_LIKE)
