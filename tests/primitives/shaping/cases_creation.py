"""Conformance cases of creation: buffers that are filled, and contents told by ``like=``."""

from typing import Any

import numpy as np
from tests.primitives.case import Case

_rng = np.random.default_rng(9)
LINE = _rng.normal(size=5)
PLANE = _rng.normal(size=(4, 5))
MASK = PLANE > 0
BOTH = ("float32", "float64")


def _ones(x: Any) -> Any:
    ones = np.ones_like(x)
    ones[1:] *= x[:-1]
    return ones * x


def _unset(x: Any) -> Any:
    made = np.empty_like(x)
    made[...] = x**2
    return made


def _copied(x: Any, y: Any) -> Any:
    made = np.zeros_like(x)
    np.copyto(made, y, where=MASK)
    return made * x


def _creation() -> tuple[Case, ...]:
    return (
        Case("ones_like, filled", _ones, (PLANE,), ("ones_like",), dtypes=BOTH),
        Case("empty_like, filled", _unset, (PLANE,), ("empty_like",), dtypes=BOTH),
        Case("full_like of a number", lambda x: np.full_like(x, 2.5) * x, (PLANE,), ("full_like",)),
        Case("full_like of a value", lambda x, y: np.full_like(x, y) * x, (PLANE, LINE), ("full_like",)),
        Case("full_like in another shape", lambda x: np.full_like(x, x[0, 0], shape=(2, 3)), (PLANE,), ("full_like",)),
        Case(
            "zeros_like of another dtype",
            lambda x: np.zeros_like(x, dtype=np.complex128) + x,
            (PLANE,),
            ("zeros_like",),
        ),
        Case("copyto where", _copied, (PLANE, LINE), ("copyto",), dtypes=BOTH),
    )


X = np.array([[1.3, 2.2, 3.1], [4.7, 5.9, 6.4]])

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


CASES: tuple[Case, ...] = (
    *_creation(),
    *BY_LIKE,
)
