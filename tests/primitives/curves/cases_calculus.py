"""Conformance cases of sampled functions: gradient, trapezoid, differences, and functions by pieces."""

from functools import partial
from typing import Any

import numpy as np
from tests.primitives.case import Case

RNG = np.random.default_rng(3)
LINE = RNG.normal(size=7)
PLANE, BOX = RNG.normal(size=(4, 5)), RNG.normal(size=(3, 4, 5))
WAVE = RNG.normal(size=6) + 1j * RNG.normal(size=6)
GRID = np.array([0.0, 0.4, 1.1, 1.5, 2.7, 3.1, 4.0])
EVEN = np.linspace(0.5, 2.0, 7)
STEP = np.array(0.3)
BOTH = ("float32", "float64")
ALL = ("float16", "float32", "float64", "longdouble")

SLOPES: tuple[tuple[Any, ...], ...] = (
    ("line", np.gradient, (LINE,), BOTH),
    ("of three", np.gradient, (LINE[:3],), BOTH),
    ("of four", np.gradient, (LINE[:4], GRID[:4]), BOTH),
    ("of three by coordinates", np.gradient, (LINE[:3], GRID[:3]), BOTH),
    ("spacing", np.gradient, (LINE, STEP), BOTH),
    ("number", lambda f, **k: np.gradient(f, 0.25, **k), (LINE,), BOTH),
    ("integer spacing", lambda f, **k: np.gradient(f, 2, **k), (LINE,), BOTH),
    ("coordinates", np.gradient, (LINE, GRID), BOTH),
    ("even coordinates", np.gradient, (LINE, EVEN), ("float64",)),
    ("a list of coordinates", lambda f, **k: np.gradient(f, [0.0, 1.0, 3.0, 4.5, 5.0, 7.0, 8.0], **k), (LINE,), BOTH),
    (
        "integer coordinates",
        lambda f, **k: np.gradient(f, np.array([0, 1, 3, 4, 6, 7, 9], np.uint8), **k),
        (LINE,),
        BOTH,
    ),
    ("of a constant", lambda x, **k: np.gradient(LINE, x, **k), (GRID,), BOTH),
    ("of integers", lambda x, **k: np.gradient([1, 4, 2, 8, 5, 7, 1], x, **k), (GRID,), BOTH),
    ("plane", np.gradient, (PLANE,), BOTH),
    ("plane, one spacing", np.gradient, (PLANE, STEP), ("float64",)),
    ("plane, a spacing each", np.gradient, (PLANE, STEP, GRID[:5]), ("float64",)),
    ("plane along 0", lambda f, x, **k: np.gradient(f, x, axis=0, **k), (PLANE, GRID[1:5]), BOTH),
    ("plane along -1", lambda f, x, **k: np.gradient(f, x, axis=-1, **k), (PLANE, GRID[:5]), ("float64",)),
    (
        "box along (2, 0)",
        lambda f, x, h, **k: np.gradient(f, x, h, axis=(2, 0), **k),
        (BOX, GRID[:5], STEP),
        ("float64",),
    ),
    ("box, two outputs used", lambda f, **k: np.gradient(f, axis=(0, 2), **k)[1], (BOX,), ("float64",)),
    ("complex", np.gradient, (WAVE, GRID[:6]), BOTH),
    ("strided", lambda f, **k: np.gradient(f[::-1, ::2].T, **k), (BOX[0, :3],), ("float64",)),
)
GRADIENT: tuple[Case, ...] = (
    *(
        Case(
            f"gradient {name}, edge_order={order}",
            partial(f, edge_order=order),
            args,
            ("gradient", "slope_along"),
            dtypes=dtypes,
        )
        for order in (1, 2)
        for name, f, args, dtypes in SLOPES
    ),
    Case("gradient of two", np.gradient, (LINE[:2],), ("gradient",), dtypes=ALL),
    Case("gradient of two by coordinates", np.gradient, (LINE[:2], GRID[:2]), ("gradient",), dtypes=BOTH),
    Case("gradient of two by a spacing", np.gradient, (LINE[:2], STEP), ("gradient",), dtypes=BOTH),
    Case("gradient along no axis", lambda f: (f * 1, *np.gradient(f, axis=())), (LINE,), ("gradient",)),
    Case("gradient in longdouble", np.gradient, (LINE, GRID), ("gradient",), dtypes=("longdouble",)),
)

TRAPEZOID: tuple[Case, ...] = (
    Case("trapezoid", np.trapezoid, (LINE,), ("trapezoid",), dtypes=ALL),
    Case("trapezoid by x", np.trapezoid, (LINE, GRID), ("trapezoid",), dtypes=BOTH),
    Case("trapezoid by dx", lambda y, dx: np.trapezoid(y, dx=dx), (PLANE, STEP), ("trapezoid",), dtypes=BOTH),
    Case("trapezoid along 0", lambda y, x: np.trapezoid(y, x, axis=0), (PLANE, GRID[:4]), ("trapezoid",)),
    Case("trapezoid along -2", lambda y, x: np.trapezoid(y, x=x, axis=-2), (BOX, GRID[:4]), ("trapezoid",)),
    Case("trapezoid by a plane", np.trapezoid, (PLANE, PLANE * PLANE), ("trapezoid",)),
    Case(
        "trapezoid of a constant",
        lambda x: np.trapezoid([1.0, 3.0, 2.0, 5.0, 1.0, 0.5, 2.0], x),
        (GRID,),
        ("trapezoid",),
        dtypes=BOTH,
    ),
    Case("trapezoid of a line by a plane", lambda x: np.trapezoid(LINE[:5], x, axis=-1), (PLANE,), ("trapezoid",)),
    Case("trapezoid of one", np.trapezoid, (LINE[:1],), ("trapezoid",)),
    Case("trapezoid of nothing", lambda y: np.trapezoid(y, axis=0), (np.zeros((0, 3)),), ("trapezoid",)),
    Case("trapezoid complex", np.trapezoid, (WAVE, GRID[:6]), ("trapezoid",), dtypes=BOTH),
)

DIFFERENCES: tuple[Case, ...] = (
    Case("ediff1d", np.ediff1d, (PLANE,), ("ediff1d",), dtypes=ALL),
    Case("ediff1d with ends", np.ediff1d, (LINE, PLANE[:2], STEP), ("ediff1d",), dtypes=BOTH),
    Case("ediff1d to_begin", lambda x: np.ediff1d(x, to_begin=[1, 2]), (LINE,), ("ediff1d",), dtypes=BOTH),
    Case("ediff1d to_end", lambda x, e: np.ediff1d(x, to_end=e), (LINE, PLANE), ("ediff1d",)),
    Case("ediff1d of a constant", lambda e: np.ediff1d([1.0, 4.0], to_end=e), (LINE,), ("ediff1d",)),
    Case("ediff1d of one", lambda x: np.ediff1d(x, to_end=[2.0]), (LINE[:1],), ("ediff1d",)),
    Case("ediff1d of nothing", lambda x: np.ediff1d(x, to_begin=7.0), (LINE[:0],), ("ediff1d",)),
    Case(
        "diff, prepend and append",
        lambda x, p, a: np.diff(x, 2, 0, p, a),
        (PLANE, PLANE[:2], STEP),
        ("diff", "difference_of_neighbours", "undone_differences"),
        dtypes=BOTH,
    ),
    Case(
        "diff, prepend an array",
        lambda x, p: np.diff(x, prepend=p, append=[[9.0]] * 4),
        (PLANE, PLANE[:, :1]),
        ("diff",),
    ),
    Case("diff of a constant", lambda p: np.diff(PLANE, n=3, axis=-1, prepend=p), (STEP,), ("diff",)),
    Case("diff, n beyond the length", lambda x: np.diff(x, n=9), (LINE[:3],), ("diff",)),
    Case("diff of an empty line", lambda x: np.diff(x, n=2), (LINE[:0],), ("diff",)),
    Case("diff, n of the length", lambda x: np.diff(x, n=3, axis=1), (PLANE[:, :3],), ("diff",)),
    Case("diff, n=0", lambda x: np.diff(x, n=0) * x, (LINE,), ("diff",)),
)


def _scaled(line, factor=2.0):
    return np.stack([line * line, factor * line])


PIECES: tuple[Case, ...] = (
    Case(
        "piecewise",
        lambda x: np.piecewise(x, [x < 0, x > 0.5], [lambda v: v * v, np.exp, np.sin]),
        (PLANE,),
        ("piecewise",),
        dtypes=BOTH,
    ),
    Case(
        "piecewise, values",
        lambda x, c: np.piecewise(x, [x < 0, x >= 0], [c * c, lambda v: v * c]),
        (PLANE, STEP),
        ("piecewise",),
    ),
    Case(
        "piecewise, arguments",
        lambda x, c: np.piecewise(x, [x < 0], [lambda v, a, b: v * a * b, 1], c, b=c),
        (LINE, STEP),
        ("piecewise",),
    ),
    Case(
        "piecewise, later wins",
        lambda x: np.piecewise(x, [x < 0.7, x > -0.7], [np.sin, np.cos]),
        (LINE,),
        ("piecewise",),
    ),
    Case("piecewise, a condition alone", lambda x: np.piecewise(x, x < 0, [np.sin, np.cos]), (LINE,), ("piecewise",)),
    Case("piecewise, none holds", lambda x: np.piecewise(x, [x > 99], [np.log]), (LINE,), ("piecewise",)),
    Case("piecewise 0-d", lambda x: np.piecewise(x, x > 0, [np.sin, np.cos]), (STEP,), ("piecewise",)),
    Case("piecewise 0-d, a list", lambda x: np.piecewise(x, [x < 0, x > 0], [np.sin, np.exp]), (STEP,), ("piecewise",)),
    Case("apply_along_axis", lambda x: np.apply_along_axis(_scaled, 1, x), (BOX,), ("apply_along_axis",), dtypes=BOTH),
    Case("apply_along_axis, number", lambda x: np.apply_along_axis(np.sum, -1, x), (PLANE,), ("apply_along_axis",)),
    Case(
        "apply_along_axis, arguments",
        lambda x, c: np.apply_along_axis(_scaled, 0, x, factor=c),
        (PLANE, STEP),
        ("apply_along_axis",),
    ),
    Case("apply_along_axis, line", lambda x: np.apply_along_axis(np.cumsum, 0, x), (LINE,), ("apply_along_axis",)),
    Case(
        "apply_along_axis, list",
        lambda x: np.apply_along_axis(lambda v: [v[0] * v[1], 1.0], 0, x),
        (PLANE,),
        ("apply_along_axis",),
    ),
    Case(
        "apply_over_axes",
        lambda x: np.apply_over_axes(np.sum, x * x, [0, -1]),
        (BOX,),
        ("apply_over_axes",),
        dtypes=BOTH,
    ),
    Case("apply_over_axes, one", lambda x: np.apply_over_axes(np.cumsum, x, 1), (BOX,), ("apply_over_axes",)),
)


CASES: tuple[Case, ...] = (
    *GRADIENT,
    *TRAPEZOID,
    *DIFFERENCES,
    *PIECES,
)
