"""Conformance cases of reading by condition, along an axis, and by repeated places."""

from typing import Any

import numpy as np
from tests.primitives.case import Case

_rng = np.random.default_rng(23)
LINE = _rng.normal(size=5)
PLANE = _rng.normal(size=(3, 4))
CUBE = _rng.normal(size=(2, 3, 4))
BACK = np.asfortranarray(CUBE)[::-1, :, ::2]
WAVE = PLANE + 1j * _rng.normal(size=PLANE.shape)
BOTH = ("float32", "float64")


def _one(name: str, function: Any, *arrays: Any, covers: tuple[str, ...], **kwargs: Any) -> Case:
    return Case(name, function, arrays, covers, **kwargs)


def _reads() -> tuple[Case, ...]:
    along = ("take_along_axis",)
    rows = [
        _one(
            f"compress axis={a}",
            lambda x, a=a, c=c: np.compress(c, x, a),
            PLANE,
            covers=("numpy.compress",),
            dtypes=BOTH,
        )
        for a, c in ((None, [True, False, True]), (0, [0, 1, 1]), (-1, [True, True, False]))
    ]
    rows += [
        _one(
            f"take_along_axis axis={a}",
            lambda x, a=a: np.take_along_axis(x, np.argsort(x, a), a),
            CUBE,
            covers=along,
            dtypes=BOTH,
        )
        for a in (0, 1, -1)
    ]
    return (
        *rows,
        _one("x.compress", lambda x: x.compress([True, False, True], axis=0), PLANE, covers=("compress",)),
        _one("compress by the value", lambda x: np.compress(x > 0, x), LINE, covers=("numpy.compress",)),
        _one("extract", lambda x: np.extract(x > 0, x * x), PLANE, covers=("extract",), dtypes=BOTH),
        _one("extract by numbers", lambda x: np.extract([1, 0, 2], x), PLANE, covers=("extract",)),
        _one(
            "take_along_axis flat", lambda x: np.take_along_axis(x, np.array([0, 7, 7, -1]), None), PLANE, covers=along
        ),
        _one(
            "take_along_axis repeats",
            lambda x: np.take_along_axis(x, np.array([[0, 0], [1, -1], [3, 3]]), 1),
            PLANE,
            covers=along,
        ),
        _one(
            "take_along_axis broadcast",
            lambda x: np.take_along_axis(x, np.array([[0], [2], [2]]), axis=1),
            PLANE,
            covers=along,
        ),
        _one(
            "take_along_axis broadcast rows",
            lambda x: np.take_along_axis(x, np.array([[1, 0, 0, 1]]), axis=0),
            PLANE,
            covers=along,
        ),
        _one(
            "take_along_axis strides",
            lambda x: np.take_along_axis(x, np.argsort(x, axis=2)[:, :1], axis=2),
            BACK,
            covers=along,
        ),
        _one("take_along_axis complex", lambda z: np.take_along_axis(z, np.argsort(z.real, 0), 0), WAVE, covers=along),
        _one("take repeated rows", lambda x: np.take(x, [0, 2, 0, 0], axis=0), PLANE, covers=("take",), dtypes=BOTH),
        _one("take repeated columns", lambda x: np.take(x, [[2, 2], [0, -1]], axis=1), CUBE, covers=("take",)),
        _one("take by booleans", lambda x: np.take(x, [True, False, False]), LINE, covers=("take",)),
        _one("read repeated pairs", lambda x: x[[0, 1, 1, -1], [2, 3, 3, 2]], PLANE, covers=("getitem",), dtypes=BOTH),
        _one("read a mask of the first axes", lambda x: x[CUBE[..., 0] > 0], CUBE, covers=("getitem",)),
        _one("read a mask after a slice", lambda x: x[:, CUBE[0] > 0], CUBE, covers=("getitem",)),
        _one("read repeats about a slice", lambda x: x[[0, 1, 1], :, [2, 2, 2]], CUBE, covers=("getitem",)),
        _one(
            "read repeats and a new axis", lambda x: x[None, [0, 1, 0], None, 1:, [3, 3, 3]], CUBE, covers=("getitem",)
        ),
        _one(
            "read a mask beside a list",
            lambda x: x[CUBE[..., 0] > 0, [1] * int((CUBE[..., 0] > 0).sum())],
            CUBE,
            covers=("getitem",),
        ),
    )


CASES: tuple[Case, ...] = (*_reads(),)
