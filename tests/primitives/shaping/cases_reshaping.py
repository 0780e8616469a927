"""Conformance cases of shaping: views, axes, flips, copies, repeats."""

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.primitives.case import Case, one, since, weigh

_rng = np.random.default_rng(8)
LINE = _rng.normal(size=4)
PLANE = _rng.normal(size=(3, 4))
CUBE = _rng.normal(size=(2, 3, 4))
WAVE = PLANE + 1j * _rng.normal(size=PLANE.shape)
SCALAR = np.array(1.25)
EMPTY = np.zeros((0, 3))
W2 = np.array([1.0, -2.0])
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": lambda x: x,
    "F": lambda x: np.copy(x, "F"),
    "reversed": lambda x: x[::-1, :, ::-1],
    "transposed": lambda x: x.transpose(1, 2, 0),
    "gaps": lambda x: x[:, ::2, 1:],
    "stride 0": lambda x: np.broadcast_to(x[:1], x.shape),
}


def _views() -> tuple[Case, ...]:
    rows = [
        one(
            f"{f.__name__} order={o} of {layout}",
            lambda x, g=g, o=o, lay=lay: g(lay(x), o),
            CUBE,
            covers=(f.__name__, "view_reshape"),
        )
        for layout, lay in LAYOUTS.items()
        for f, g, orders in (
            (np.reshape, lambda x, order: np.reshape(x, (-1, 2), order=order), "CFA"),
            (np.ravel, lambda x, order: np.ravel(x, order=order), "CFAK"),
        )
        for o in orders
    ]
    rows += [
        one(
            f"transpose {axes} of {layout}",
            lambda x, a=axes: np.transpose(x, a) * W2,
            x,
            covers=("transpose", "view_transpose"),
        )
        for layout, x in (("F", CUBE[:, :2, :2].copy("F")), ("C", CUBE[:, :2, :2].copy()))
        for axes in (None, (2, 0, 1), (-1, 0, 1), [1, 2, 0])
    ]
    return tuple(rows)


def _axes() -> tuple[Case, ...]:
    covers = "view_transpose"
    return (
        one("reshape method", lambda x: x.reshape(4, -1), CUBE, covers=("reshape", "view_reshape")),
        *since(
            "2.1.0",
            one("reshape copy", lambda x: np.reshape(x, 24, copy=True), CUBE, covers=("reshape", "copy_array")),
        ),
        one("reshape of nothing", lambda x: np.reshape(x, (3, 0, 2)), EMPTY),
        one("reshape 0-d", lambda x: np.reshape(x, (1, 1)), SCALAR),
        one("ravel method", lambda x: x.ravel("F"), CUBE),
        one("transpose method", lambda x: x.transpose(1, 2, 0), CUBE),
        one("transpose T", lambda x: x.T, WAVE),
        one("permute_dims", lambda x: np.permute_dims(x, (1, 0)), PLANE, covers=("transpose", covers)),
        one("matrix_transpose", np.matrix_transpose, CUBE),
        one("linalg.matrix_transpose", np.linalg.matrix_transpose, CUBE, covers=("matrix_transpose",)),
        one("moveaxis int", lambda x: np.moveaxis(x, -1, 0), CUBE),
        one("moveaxis pair", lambda x: np.moveaxis(x, (0, -1), (-2, 0)), CUBE),
        one("rollaxis", lambda x: np.rollaxis(x, 2), CUBE),
        one("rollaxis start", lambda x: np.rollaxis(x, -3, 3), CUBE),
        one("rollaxis same", lambda x: np.rollaxis(x, 1, 1), CUBE),
        one("swapaxes", lambda x: np.swapaxes(x, 0, -1), CUBE),
        one("expand_dims", lambda x: np.expand_dims(x, -1), PLANE),
        one("expand_dims tuple", lambda x: np.expand_dims(x, (0, -2)), PLANE),
        one("squeeze", np.squeeze, PLANE.reshape(1, 3, 1, 4), covers=("squeeze", "view_squeeze")),
        one("squeeze axis", lambda x: np.squeeze(x, (0, -2)), PLANE.reshape(1, 3, 1, 4)),
        one(
            "broadcast_to",
            lambda x: np.broadcast_to(x, (2, 3, 4)),
            PLANE[:, :1],
            covers=("broadcast_to", "view_broadcast"),
        ),
        one("broadcast_to 0-d", lambda x: np.broadcast_to(x, 3), SCALAR),
        one("broadcast_arrays", lambda x, y: weigh(np.broadcast_arrays(x, y, 2.0)), PLANE, LINE),
        one("atleast_1d", lambda x, y: weigh(np.atleast_1d(x, y)), SCALAR, LINE),
        one("atleast_2d", lambda x, y, z: weigh(np.atleast_2d(x, y, z)), SCALAR, LINE, PLANE),
        one("atleast_3d", lambda x, y, z, w: weigh(np.atleast_3d(x, y, z, w)), SCALAR, LINE, PLANE, CUBE),
    )


def _flips() -> tuple[Case, ...]:
    rows = [one(f"flip axis={axis}", lambda x, a=axis: np.flip(x, a), CUBE) for axis in (None, 0, -1, (0, 2))]
    rows += [one(f"rot90 k={k}", lambda x, k=k: np.rot90(x, k), PLANE) for k in (-1, 0, 1, 2, 3)]
    rows += [
        one("rot90 axes", lambda x: np.rot90(x, 1, (-1, 0)), CUBE),
        one("fliplr", np.fliplr, WAVE),
        one("flipud", np.flipud, LINE),
    ]
    return tuple(rows)


def _copies() -> tuple[Case, ...]:
    runs = np.array([2, 0, 3, 1])
    rows = [
        one(
            f"roll {shift} axis={axis}", lambda x, s=shift, a=axis: np.roll(x, s, a), CUBE, covers=("roll", "roll_axes")
        )
        for shift, axis in ((1, None), (-5, 1), ((1, -2), (0, -1)), ((1, 2), 0), (2, (0, 1)))
    ]
    rows += [
        one(f"tile {reps}", lambda x, r=reps: np.tile(x, r), CUBE, covers=("tile", "tile_axes"))
        for reps in (2, (1, 1, 1), (2, 1, 3), (2, 1, 1, 2), (0, 2), ())
    ]
    rows += [
        one(
            f"repeat {n} axis={axis}",
            lambda x, n=n, a=axis: np.repeat(x, n, a),
            CUBE,
            covers=("repeat", "repeat_runs", "sum_runs"),
        )
        for n, axis in ((2, None), (3, 1), (0, 0), (runs, -1), ([1, 2], 0), ([2], 1))
    ]
    rows += [
        one("copy", np.copy, CUBE, covers=("copy", "copy_array")),
        one("copy order", lambda x: np.ravel(np.copy(x, "F"), "K"), CUBE, covers=("copy", "copy_array")),
        one("copy method", lambda x: x.copy() * 2.0, CUBE),
        one(
            "astype float32",
            lambda x: x.astype(np.float32) * np.float32(2),
            PLANE,
            covers=("astype", "cast"),
            rough="rounding",
        ),
        one("astype complex", lambda x: np.astype(x, np.complex128) * (1 + 2j), PLANE, covers=("astype", "cast")),
        one("astype same, no copy", lambda x: np.astype(x, np.float64, copy=False) ** 2, PLANE, covers=("astype",)),
        one("astype int", lambda x: x * x.astype(int), PLANE * 3, covers=("astype",)),
    ]
    return tuple(rows)


CASES: tuple[Case, ...] = (
    *_views(),
    *_axes(),
    *_flips(),
    *_copies(),
)
