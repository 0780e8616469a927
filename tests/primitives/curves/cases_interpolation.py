"""Conformance cases of np.interp: each operand traced, ends, periods, one knot, knots that coincide."""

import numpy as np
from tests.primitives.case import Case

RNG = np.random.default_rng(3)
GRID = np.array([0.0, 0.4, 1.1, 1.5, 2.7, 3.1, 4.0])
STEP = np.array(0.3)
BOTH = ("float32", "float64")

POINTS = np.array([[-0.7, 0.2, 0.9], [2.2, 3.7, 4.6]])
CURVE, OUTER = RNG.normal(size=7), RNG.normal(size=7) + 1j * RNG.normal(size=7)
INTERP: tuple[Case, ...] = (
    Case("interp", np.interp, (POINTS, GRID, CURVE), ("interp", "interp_to_ends", "sum_at_places"), dtypes=BOTH),
    Case("interp at x", lambda x: np.interp(x, GRID, CURVE), (POINTS,), ("interp",), dtypes=BOTH),
    Case("interp of fp", lambda fp: np.interp(POINTS, GRID, fp), (CURVE,), ("interp",), dtypes=BOTH),
    Case("interp of xp", lambda xp: np.interp(POINTS, xp, CURVE), (GRID,), ("interp",), dtypes=BOTH),
    Case("interp of lists", lambda x: np.interp(x, [0, 1, 2, 4], [3, 1, 5, 2]), (POINTS,), ("interp",)),
    Case("interp at a list", lambda fp: np.interp([0.3, 1.7, 9.0], GRID, fp), (CURVE,), ("interp",)),
    Case(
        "interp, left and right",
        np.interp,
        (POINTS, GRID, CURVE, STEP, np.array(-2.0)),
        ("interp", "interp_between"),
        dtypes=BOTH,
    ),
    Case(
        "interp, left a number", lambda x, fp: np.interp(x, GRID, fp, left=-1, right=7.5), (POINTS, CURVE), ("interp",)
    ),
    Case("interp by keyword", lambda x, r: np.interp(x=x, fp=CURVE, xp=GRID, right=r), (POINTS, STEP), ("interp",)),
    Case("interp 0-d", np.interp, (STEP, GRID, CURVE), ("interp",)),
    Case("interp complex", np.interp, (POINTS, GRID, OUTER), ("interp",), dtypes=BOTH),
    Case(
        "interp complex, ends",
        np.interp,
        (POINTS, GRID, OUTER, np.complex128(1 - 2j), np.complex128(0.5j)),
        ("interp",),
    ),
    Case(
        "interp periodic",
        lambda x, xp, fp: np.interp(x, xp, fp, period=5.0),
        (POINTS * 3, GRID[[4, 2, 6, 0]] + 3, CURVE[:4]),
        ("interp",),
        dtypes=BOTH,
    ),
    Case(
        "interp, period traced",
        lambda x, xp, fp, p: np.interp(x, xp, fp, 1.0, 2.0, p),
        (POINTS * 3, GRID + 0.23, OUTER, np.array(-5.3)),
        ("interp",),
    ),
    Case("interp, one knot", np.interp, (POINTS, GRID[1:2], CURVE[:1]), ("interp",), dtypes=BOTH),
    Case("interp, one knot, ends", np.interp, (POINTS, GRID[1:2], CURVE[:1], STEP, STEP + 1), ("interp",), dtypes=BOTH),
    Case("interp, two knots", np.interp, (POINTS, GRID[1:3], CURVE[:2]), ("interp",)),
    Case("interp at nothing", np.interp, (POINTS[:, :0], GRID, CURVE), ("interp",)),
    Case("interp at knots", np.interp, (GRID, GRID, CURVE), ("interp",), rough="kink"),
    Case(
        "interp, knots that coincide",
        np.interp,
        (GRID, np.array([0.0, 0.4, 0.4, 1.5, 4.0, 4.0, 4.0]), CURVE),
        ("interp",),
        rough="kink",
    ),
    Case("interp at NaN", np.interp, (np.array([np.nan, 0.3]), GRID, CURVE), ("interp",), rough="nan"),
)


CASES: tuple[Case, ...] = (*INTERP,)
