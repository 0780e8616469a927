"""Conformance cases of reading by index, of writes and views: each function runs the same on arrays and on tracers."""

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.primitives.case import Case

_rng = np.random.default_rng(9)
LINE = _rng.normal(size=5)
PLANE = _rng.normal(size=(4, 5))
CUBE = _rng.normal(size=(2, 3, 4))
BACK = np.asfortranarray(CUBE)[::-1, :, ::2]  # Fortran order, a negative stride and gaps
WAVE = PLANE + 1j * _rng.normal(size=PLANE.shape)
MASK = PLANE > 0
BOTH = ("float32", "float64")

KEYS: dict[str, Any] = {
    "integer": 1,
    "negative integer": -1,
    "NumPy integer": np.int64(1),
    "0-d index": np.array(1),
    "slice": slice(1, None),
    "backwards": slice(None, None, -1),
    "steps": slice(None, None, -2),
    "empty slice": slice(2, 2),
    "two slices": (slice(1, None), slice(None, -1)),
    "integer and slice": (0, slice(None, None, 2)),
    "two integers": (1, -1),
    "ellipsis": (Ellipsis, 0),
    "ellipsis alone": Ellipsis,
    "empty tuple": (),
    "new axis": (slice(None), None),
    "new axis and integer": (None, 0, Ellipsis, None),
    "list": [0, 1],
    "repeated list": [0, 0, 1],
    "negative list": [-1, 0],
    "2-d index": np.array([[0, 1], [1, 1]]),
    "empty list": [],
    "two lists": ([0, 1, 1], [1, 0, 0]),
    "list and slice": ([1, 0], slice(0, 2)),
    "slice and list": (slice(None), [1, 1, 0]),
    "list and integer": ([1, 0], 0),
    "broadcast lists": ([[0], [1]], [0, 1]),
    "ix_": np.ix_([1, 0], [0, 1]),
    "first axis mask": np.array([True, False]),
    "True": True,
    "False": False,
    "unsigned": np.array([0, 1, 1], np.uint8),
}


def _reads() -> tuple[Case, ...]:
    rows = [
        Case(f"read {name}", lambda x, k=key: x[k], (CUBE,), ("getitem",), dtypes=BOTH) for name, key in KEYS.items()
    ]
    rows += [Case(f"read {name}, strided", lambda x, k=key: x[k], (BACK,), ("getitem",)) for name, key in KEYS.items()]
    rows += [
        Case("read mask", lambda x: x[MASK], (PLANE,), ("getitem",), dtypes=BOTH),
        Case("read mask of the value", lambda x: x[x > 0], (PLANE,), ("getitem",)),
        Case("read mask and integer", lambda x: x[MASK[:, 0], 1], (PLANE,), ("getitem",)),
        Case("read lists about a slice", lambda x: x[[0, 1], :, [2, 2]], (CUBE,), ("getitem",)),
        Case("read complex", lambda z: z[[0, 0, 2], ::2], (WAVE,), ("getitem",)),
        Case("read twice", lambda x: x[1:] * x[:-1] + x[[0, 0, 1, 2]], (LINE,), ("getitem",)),
        Case("read a view of a view", lambda x: x[1:][::-1][0, ::2][1:], (PLANE,), ("getitem",)),
        Case("read by iteration", lambda x: sum(row * (k + 1) for k, row in enumerate(x)), (PLANE,), ("getitem",)),
        Case("read flat", lambda x: x.flat[3] * x.flat[-1], (PLANE,), ("getitem",)),
        Case("read 0-d", lambda x: x[()] * 2.0, (np.array(1.5),), ("getitem",)),
    ]
    return tuple(rows)


def written(write: Callable[..., Any], *, empty: bool = False) -> Callable[..., Any]:
    """A function that writes into a fresh array made from ``x``, reads what came of it, and leaves ``x`` alone."""

    def f(x: Any, *values: Any) -> Any:
        target = np.zeros_like(x) if empty else x * 1.0
        write(target, *values)
        return target * x

    return f


def _set(key: Any) -> Callable[..., Any]:
    def write(target: Any, value: Any) -> None:
        target[key] = value

    return write


def _add(key: Any) -> Callable[..., Any]:
    def write(target: Any, value: Any) -> None:
        target[key] += value

    return write


def _multiply_view(target: Any, value: Any) -> None:
    view = target[1:, ::2]
    view *= value


def _square_itself(target: Any) -> None:
    target[...] = target**2


def _neighbours(target: Any) -> None:
    target[1:] += target[:-1] * 0.5


def _through_transpose(target: Any, value: Any) -> None:
    target.T[1] = value
    target.reshape(-1)[0] = 2.0 * value[0]


def _out(target: Any, value: Any) -> None:
    np.multiply(target, value, out=target)
    np.add(target[1:], 1.0, out=target[1:])


def _out_where(target: Any, value: Any) -> None:
    np.multiply(target, value, out=target, where=MASK)


def _writes() -> tuple[Case, ...]:
    number, row = np.array(0.7), LINE
    rows = [Case(f"write a number to {name}", written(_set(key)), (CUBE, number), ()) for name, key in KEYS.items()]
    rows += [Case(f"add to {name}", written(_add(key)), (CUBE, number), ("getitem",)) for name, key in KEYS.items()]
    rows += [
        Case("write a row", written(_set(1)), (PLANE, row), (), dtypes=BOTH),
        Case("write a row to all", written(_set(Ellipsis)), (PLANE, row), ()),
        Case("write one repeatedly, the last wins", written(_set(([0, 0, 1],))), (PLANE, _rng.normal(size=(3, 5))), ()),
        Case("write a mask", written(_set(MASK)), (PLANE, number), ()),
        Case("write many to a mask", written(_set(MASK)), (PLANE, _rng.normal(size=int(MASK.sum()))), ()),
        Case("write into zeros", written(_set((slice(1, None), 0)), empty=True), (PLANE, row[:3]), ("zeros_like",)),
        Case("write a constant", lambda x: written(_set((0, slice(2))))(x, 3.0), (PLANE,), ()),
        Case("write complex", written(_set((slice(None), 1))), (WAVE, WAVE[:, 0] * 1j), ()),
        Case("write real into complex", written(_set((slice(None), 1))), (WAVE, LINE[:4]), ()),
        Case("multiply a view", written(_multiply_view), (PLANE, row[:3]), ("getitem",)),
        Case("square in place", written(_square_itself), (PLANE,), ()),
        Case("overlapping slices", written(_neighbours), (PLANE,), ("getitem",)),
        Case("write through a transpose", written(_through_transpose), (PLANE, row[:4]), ()),
        Case("out=", written(_out), (PLANE, row), ()),
        Case("out= where=", written(_out_where), (PLANE, row), ()),
        Case("fill", written(lambda t, v: t[2].fill(v)), (PLANE, number), ()),
    ]
    return tuple(rows)


def _take() -> tuple[Case, ...]:
    places = np.array([[0, 2], [-1, 0]])  # 0 twice: cotangents add up
    return (
        Case("take flat", lambda x: np.take(x, places), (CUBE,), ("take", "getitem")),
        *(Case(f"take axis={a}", lambda x, a=a: np.take(x, places, axis=a), (CUBE,), ("take",)) for a in (1, -1)),
        Case("take one", lambda x: np.take(x, 1, 0), (PLANE,), ("take",), dtypes=BOTH),
        Case("take wrap", lambda x: np.take(x, [7, -9], 1, mode="wrap"), (PLANE,), ("take",)),
        Case("take clip", lambda x: np.take(x, [7, -9], 1, mode="clip"), (PLANE,), ("take",)),
        Case("take from strides", lambda x: np.take(x, [0, 1], 2), (BACK,), ("take",)),
        Case("x.take", lambda x: x.take([0, 0, 2]), (WAVE,), ("take",)),
    )


CASES: tuple[Case, ...] = (
    *_reads(),
    *_writes(),
    *_take(),
)
