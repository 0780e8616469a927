"""Conformance cases of putting in, taking out, cycling and trimming."""

from typing import Any

import numpy as np
from tests.primitives.case import Case

_rng = np.random.default_rng(23)
LINE = _rng.normal(size=5)
PLANE = _rng.normal(size=(3, 4))
CUBE = _rng.normal(size=(2, 3, 4))
BACK = np.asfortranarray(CUBE)[::-1, :, ::2]
WAVE = PLANE + 1j * _rng.normal(size=PLANE.shape)
NUMBER = np.array(0.7)
EMPTY = np.zeros((0, 3))
GAPS = np.array([0.0, 0.0, 1.5, 0.0, -2.0, 0.0])
BOTH = ("float32", "float64")

PLACES: dict[str, Any] = {
    "a number": 1, "a negative number": -1, "the end": 5, "a list of one": [2], "a list": [1, 3],
    "unordered repeats": [3, 1, 1, 0],
    "negative places": np.array([-1, 0]), "a slice": slice(1, 4), "backwards": slice(4, 0, -2),
    "a NumPy number": np.int64(2),
    "0-d": np.array(2), "nothing": [],
}  # fmt: skip
MASK = np.array([True, False, True, False, False])


def _one(name: str, function: Any, *arrays: Any, covers: tuple[str, ...], **kwargs: Any) -> Case:
    return Case(name, function, arrays, covers, **kwargs)


def _insert() -> tuple[Case, ...]:
    covers = ("insert", "insert_along")
    values = {
        "a number": LINE[:2],
        "a list of one": LINE[:2],
        "a list": LINE[:2],
        "unordered repeats": LINE[:4],
        "a slice": LINE[:3],
    }
    rows = [
        _one(f"insert at {name}", lambda x, v, o=obj: np.insert(x, o, v), LINE, values.get(name, NUMBER), covers=covers)
        for name, obj in PLACES.items()
    ]
    rows += [
        _one(
            f"insert {name} axis={axis}",
            lambda x, v, o=obj, a=axis: np.insert(x, o, v, a),
            PLANE,
            NUMBER,
            covers=covers,
            dtypes=BOTH,
        )
        for name, obj in (("one", 1), ("two", [0, 2]))
        for axis in (None, 0, -1)
    ]
    return (
        *rows,
        _one("insert a row", lambda x, v: np.insert(x, 1, v, axis=0), PLANE, LINE[:4], covers=covers),
        _one("insert a column", lambda x, v: np.insert(x, -1, v, axis=1), PLANE, LINE[:3], covers=covers),
        _one(
            "insert columns at one place", lambda x, v: np.insert(x, [1], v, axis=1), PLANE, PLANE[:, :2], covers=covers
        ),
        _one("insert columns at two", lambda x, v: np.insert(x, [3, 0], v, axis=1), PLANE, PLANE[:, :2], covers=covers),
        _one("insert planes", lambda x, v: np.insert(x, 1, v, axis=1), CUBE, CUBE[:, 0], covers=covers),
        _one("insert into strides", lambda x, v: np.insert(x, [0, 1], v, axis=2), BACK, NUMBER, covers=covers),
        _one(
            "insert a value of more axes",
            lambda x, v: np.insert(x, [0, 1], v),
            LINE,
            LINE[:2].reshape(1, 2),
            covers=covers,
        ),
        _one("insert into a constant", lambda v: np.insert(np.ones(3), 1, v), LINE, covers=covers),
        _one("insert a constant", lambda x: np.insert(x, [0, 5], 3), LINE, covers=covers),
        _one("insert a list", lambda x, v: np.insert(x, 1, [v, v * v]), LINE, NUMBER, covers=covers),
        _one("insert into 0-d", lambda x, v: np.insert(x, 0, v), NUMBER, NUMBER, covers=covers),
        _one("insert into nothing", lambda x, v: np.insert(x, 0, v, axis=0), EMPTY, LINE[:3], covers=covers),
        _one("insert complex", lambda z, v: np.insert(z, 1, v, axis=0), WAVE, WAVE[0], covers=covers),
        _one("insert real into complex", lambda z, v: np.insert(z, [1, 2], v, axis=0), WAVE, LINE[:4], covers=covers),
        _one("insert where true", lambda x: np.insert(x, np.flatnonzero(MASK), x[:2]), LINE, covers=covers),
    )


def _delete() -> tuple[Case, ...]:
    inside = {name: obj for name, obj in PLACES.items() if name != "the end"}
    rows = [
        _one(f"delete {name}", lambda x, o=obj: np.delete(x, o), LINE, covers=("delete",))
        for name, obj in inside.items()
    ]
    rows += [
        _one(
            f"delete {name} axis={axis}",
            lambda x, o=obj, a=axis: np.delete(x, o, a),
            x,
            covers=("delete",),
            dtypes=BOTH,
        )
        for name, obj in (("one", 1), ("two", [0, 2]), ("every other", slice(None, None, 2)))
        for axis, x in ((None, CUBE), (1, CUBE), (-2, BACK))
    ]
    return (
        *rows,
        _one("delete where true", lambda x: np.delete(x, MASK), LINE, covers=("delete",)),
        _one("delete complex", lambda z: np.delete(z, [0, 2], 1), WAVE, covers=("delete",)),
        _one("delete all", lambda x: np.delete(x, slice(None)), LINE, covers=("delete",)),
    )


def _resize() -> tuple[Case, ...]:
    covers = ("resize", "cycle")
    shapes = (3, (2, 3), (4, 5), (2, 2, 7), (0, 3), (), [5], 12)
    rows = [
        _one(f"resize to {shape}", lambda x, s=shape: np.resize(x, s), PLANE, covers=covers, dtypes=BOTH)
        for shape in shapes
    ]
    return (
        *rows,
        _one("resize strides", lambda x: np.resize(x, 29), BACK, covers=covers),
        _one("resize complex", lambda z: np.resize(z, 30), WAVE, covers=covers),
        _one("resize nothing", lambda x: np.resize(x, (2, 2)), EMPTY, covers=covers),
        _one("resize a number", lambda x: np.resize(x, 3), NUMBER, covers=covers),
    )


def _trim() -> tuple[Case, ...]:
    covers = ("trim_zeros",)
    return (
        *(
            _one(f"trim_zeros {t}", lambda x, t=t: np.trim_zeros(x, t) * 2.0, GAPS, covers=covers, rough="jump")
            for t in ("fb", "f", "B")
        ),
        _one("trim_zeros of a product", lambda x: np.trim_zeros(x * GAPS), GAPS + 1, covers=covers),
        _one("trim_zeros of zeros", lambda x: np.trim_zeros(x * 0.0), LINE, covers=covers),
    )


CASES: tuple[Case, ...] = (
    *_insert(),
    *_delete(),
    *_resize(),
    *_trim(),
)
