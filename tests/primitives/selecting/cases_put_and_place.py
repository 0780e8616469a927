"""Conformance cases of what writes into its first argument."""

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


CASES: tuple[Case, ...] = (*FILLING,)
