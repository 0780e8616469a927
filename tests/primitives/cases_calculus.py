"""Conformance cases of sampled functions: gradient, trapezoid, differences, interp, convolution, ranges, grids, and
functions by pieces."""

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


def _pairs(line):
    """Lines of every relation of lengths."""
    cuts = ((6, 3), (3, 6), (6, 2), (4, 6), (5, 5), (1, 4), (4, 1), (2, 6))
    return tuple((line[:n], line[len(line) - m :]) for n, m in cuts)


CONVOLUTION: tuple[Case, ...] = (
    *(
        Case(f"{f.__name__} {mode}, {len(a)} and {len(v)}, {kind}", partial(f, mode=mode), (a, v), covers,
            dtypes=dtypes)
        for f,
        covers in ((np.convolve, ("convolve", "convolve_lines")), (np.correlate, ("correlate", "correlate_lines")))
        for mode in ("full", "same", "valid")
        for kind, line, dtypes in (("real", LINE, BOTH), ("complex", WAVE, ("float64",)))
        for a, v in _pairs(line)
    ),
    *(Case(f"convolve, mode {n}", lambda a, v, n=n: np.convolve(a, v, n), (LINE, LINE[:4]),
        ("convolve",)) for n in range(3)),
    *(Case(f"correlate, mode {n}", lambda a, v, n=n: np.correlate(a, v, n), (LINE[:2], LINE),
        ("correlate",)) for n in range(3)),
    Case("convolve with itself", lambda a: np.convolve(a, a), (LINE,), ("convolve",), dtypes=ALL),
    Case("convolve with integers", lambda a: np.convolve([1, 2, 1], a, mode="same"), (LINE,), ("convolve",),
        dtypes=BOTH),
    Case("convolve 0-d", np.convolve, (STEP, LINE), ("convolve",)),
    Case("correlate by default", np.correlate, (LINE, LINE[:3]), ("correlate",), dtypes=BOTH),
    Case("correlate real with complex", np.correlate, (LINE, WAVE[:3]), ("correlate",)),
    Case("convolve strided", lambda a, v: np.convolve(a[:, 1], v[::-2]), (PLANE, LINE), ("convolve",)),
)  # fmt: skip

ENDS = np.array([[0.5], [2.0]]), np.array([3.0, 4.5, -1.0])
RANGES: tuple[Case, ...] = (
    Case("linspace", lambda a, b: np.linspace(a, b, 6), (np.array(0.3), np.array(2.1)), ("linspace", "linear_range"),
        dtypes=ALL),
    Case("linspace of arrays", lambda a, b: np.linspace(a, b, 5), ENDS, ("linspace",), dtypes=BOTH),
    Case("linspace, axis", lambda a, b: np.linspace(a, b, 4, axis=-1), ENDS, ("linspace",)),
    Case("linspace, axis 1, no endpoint", lambda a, b: np.linspace(a, b, 4, False, axis=1), ENDS, ("linspace",)),
    Case("linspace, step", lambda a, b: np.linspace(a, b, 4, retstep=True), ENDS, ("linspace",), dtypes=BOTH),
    Case("linspace, step, no endpoint", lambda a: np.linspace(0, a, 7, False, retstep=True), (np.array(2.5),),
        ("linspace",), dtypes=BOTH),
    Case("linspace, dtype", lambda a, b: np.linspace(a, b, 4, dtype=np.float32), ENDS, ("linspace",)),
    Case("linspace, dtype complex", lambda a, b: np.linspace(a, b, 4, dtype=complex), ENDS, ("linspace",), dtypes=BOTH),
    Case("linspace, dtype int", lambda a: a * np.linspace(a, 9, 4, dtype=int), (np.array(2.2),), ("linspace",)),
    Case("linspace, dtype int, step", lambda a: np.linspace(a, 9, 4, retstep=True, dtype=int), (np.array(2.2),),
        ("linspace",)),
    Case("linspace of one", lambda a, b: np.linspace(a, b, 1), ENDS, ("linspace",)),
    Case("linspace of one, no endpoint", lambda a, b: np.linspace(a, b, 1, endpoint=False, retstep=True), ENDS,
        ("linspace",)),
    Case("linspace of nothing", lambda a, b: np.linspace(a, b, 0), ENDS, ("linspace",)),
    Case("linspace to a list", lambda a: np.linspace(a, [1, 2, 3]), (np.array(0.5),), ("linspace",)),
    Case("linspace, equal ends", lambda a, b: np.linspace(a, b, 5), (LINE[:2], LINE[:2]), ("linspace",)),
    Case("linspace complex", lambda a, b: np.linspace(a, b, 5), (WAVE[0], LINE[1]), ("linspace",), dtypes=BOTH),
    Case("logspace", lambda a, b: np.logspace(a, b, 5), (np.array(0.3), np.array(1.1)), ("logspace",), dtypes=BOTH),
    Case("logspace, base", lambda a, b, c: np.logspace(a, b, 5, base=c), (*ENDS, np.array(2.5)), ("logspace",),
        dtypes=BOTH),
    Case("logspace, bases", lambda a, c: np.logspace(a, 2.0, 4, base=c, axis=-1), (STEP, np.array([2.0, 3.0])),
        ("logspace",)),
    Case("logspace, base alone", lambda c: np.logspace(0, 3, 4, False, c), (np.array([2.0, 3.0]),), ("logspace",),
        dtypes=BOTH),
    Case("logspace, axis, dtype", lambda a, b: np.logspace(a, b, 3, axis=1, dtype=np.float32), ENDS, ("logspace",)),
    Case("logspace, dtype int", lambda a: a * np.logspace(a, 2, 4, dtype=int), (np.array(0.3),), ("logspace",)),
    Case("geomspace", lambda a, b: np.geomspace(a, b, 5), (np.array(0.3), np.array(7.0)),
        ("geomspace", "geometric_range"), dtypes=BOTH),
    Case("geomspace of arrays", lambda a, b: np.geomspace(a, b, 4, False, axis=-1), (ENDS[0], abs(ENDS[1])),
        ("geomspace",), dtypes=BOTH),
    Case("geomspace, negative", lambda a, b: np.geomspace(a, b, 4), (np.array(-2.0), np.array(-5.0)), ("geomspace",)),
    Case("geomspace complex", lambda a, b: np.geomspace(a, b, 5), (np.array(1 + 2j), np.array(-3 + 0.5j)),
        ("geomspace",), dtypes=BOTH),
    Case("geomspace to complex", lambda a: np.geomspace(a, 3j, 4, axis=1), (np.array([1.5, 2.5]),), ("geomspace",)),
    Case("geomspace, dtype", lambda a: np.geomspace(a, 100, 4, dtype=np.float32), (np.array(1.5),), ("geomspace",)),
    Case("geomspace, dtype int", lambda a: a * np.geomspace(a, 100, 4, dtype=int), (np.array(1.5),), ("geomspace",)),
    Case("geomspace of one", lambda a, b: np.geomspace(a, b, 1), (np.array(1.5), np.array(3.0)), ("geomspace",)),
    Case("meshgrid", np.meshgrid, (LINE[:3], LINE[:4]), ("meshgrid",), dtypes=BOTH),
    Case("meshgrid ij", lambda *x: np.meshgrid(*x, indexing="ij"), (LINE[:3], LINE[:4], LINE[:2]), ("meshgrid",)),
    Case("meshgrid of three", np.meshgrid, (LINE[:3], LINE[:4], LINE[:2]), ("meshgrid",)),
    Case("meshgrid sparse", lambda *x: np.meshgrid(*x, sparse=True), (LINE[:3], STEP), ("meshgrid",)),
    Case("meshgrid views", lambda *x: np.meshgrid(*x, copy=False), (PLANE, LINE[:2]), ("meshgrid",)),
    Case("meshgrid sparse views", lambda *x: np.meshgrid(*x, sparse=True, copy=False, indexing="ij"), (LINE[:3], LINE),
        ("meshgrid",)),
    Case("meshgrid with a list", lambda x: np.meshgrid([1, 2], x), (LINE,), ("meshgrid",)),
    Case("meshgrid of one", np.meshgrid, (LINE,), ("meshgrid",)),
    Case("vander", np.vander, (LINE,), ("vander", "powers_of_line"), dtypes=ALL),
    Case("vander, N", lambda x: np.vander(x, 3), (LINE,), ("vander",), dtypes=BOTH),
    Case("vander, increasing", lambda x: np.vander(x, N=9, increasing=True), (LINE,), ("vander",), dtypes=BOTH),
    *(Case(f"vander, N={n}", lambda x, n=n: np.vander(x, n), (LINE,), ("vander",)) for n in (0, 1, 2)),
    Case("vander at 0", lambda x: np.vander(x, 5), (np.array([0.0, -1.0]),), ("vander",)),
    Case("vander complex", np.vander, (WAVE[:4],), ("vander",)),
)  # fmt: skip


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

CASES: tuple[Case, ...] = (*GRADIENT, *TRAPEZOID, *DIFFERENCES, *INTERP, *CONVOLUTION, *RANGES, *PIECES)
