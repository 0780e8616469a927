"""Conformance cases of numpy.emath, with every element inside, some outside and all on complex ground; of sliding
windows; of unwrap."""

import numpy as np
from tests.primitives.case import Case

INSIDE, MIXED = np.array([[0.3, 0.7], [0.2, 0.9]]), np.array([[-1.7, 0.6], [2.3, -0.4]])
PLANE = MIXED + 1j * INSIDE
CUT = np.array([-1.5 + 0j, 0.5 + 0.5j, 2.0 + 0j])
BOTH = ("float32", "float64")
BASES = np.array([2.0, 10.0])
emath = np.emath
windows = np.lib.stride_tricks.sliding_window_view
LINE, PAGE, CUBE = (
    np.cos(np.arange(7.0)),
    np.sin(np.arange(20.0)).reshape(4, 5),
    np.sin(np.arange(24.0)).reshape(2, 3, 4),
)
ANGLES = np.array([[0.1, 2.9, -2.8, 0.43, -3.0], [1.0, -2.5, 2.6, 2.75, -0.3]])

UNARY: tuple[Case, ...] = tuple(
    Case(f"emath.{name} {which}", getattr(emath, name), (x,), (f"emath.{name}", f"complex_{name}"), rough, dtypes=BOTH)
    for name in "sqrt log log2 log10 arccos arcsin arctanh".split()
    for which, x, rough in (
        *(("inside", INSIDE, ""), ("outside", MIXED, ""), ("complex", PLANE, "")),
        *(("on a cut", CUT, "jump"), ("of one number", MIXED[0, 0], "")),
    )
)
POWER = ("emath.power", "complex_power")
BINARY: tuple[Case, ...] = (
    Case("emath.logn", lambda x: emath.logn(2, x), (INSIDE,), ("emath.logn",), dtypes=BOTH),
    Case("emath.logn, both", emath.logn, (BASES, MIXED), ("emath.logn",), dtypes=BOTH),
    Case("emath.logn, negative base", lambda n: emath.logn(n, [3.0, 0.5]), (MIXED,), ("emath.logn",)),
    Case("emath.logn by keyword", lambda x: emath.logn(x=x, n=10.0), (MIXED,), ("emath.logn",)),
    Case("emath.power", emath.power, (INSIDE, MIXED), POWER, dtypes=BOTH),
    Case("emath.power outside", emath.power, (MIXED, INSIDE), POWER, dtypes=BOTH),
    Case("emath.power, integer exponent", lambda x: emath.power(x, [2, 3]), (MIXED,), POWER, dtypes=BOTH),
    Case("emath.power, negative integers", lambda x: emath.power(x, np.array([-2, 3])), (MIXED,), POWER, dtypes=BOTH),
    Case("emath.power of whole numbers", lambda p: emath.power([[-2, 3], [4, -5]], p), (MIXED,), POWER, dtypes=BOTH),
    Case("emath.power complex", emath.power, (PLANE, MIXED), POWER),
    Case("emath.power, complex exponent", emath.power, (MIXED, PLANE), POWER),
    Case("emath.power broadcast", emath.power, (MIXED, INSIDE[0]), POWER),
    Case("emath.power by keyword", lambda p: emath.power(x=MIXED, p=p), (INSIDE,), POWER),
)
EDGE: tuple[Case, ...] = tuple(
    Case(
        f"emath.{name} at the edge",
        getattr(emath, name),
        (np.array([-1.0, 0.0, 1.0, 2.0]),),
        (f"emath.{name}",),
        rough="pole",
    )
    for name in "sqrt log log2 log10 arccos arcsin arctanh".split()
)

ALL = ("sliding_window_view", "view_windows", "add_windows")
WINDOWS: tuple[Case, ...] = (
    Case("windows", lambda x: windows(x, 3) * np.arange(1.0, 4.0, dtype=x.dtype), (LINE,), ALL, dtypes=BOTH),
    Case("windows in a tuple", lambda x: windows(x, (2,))[::-1], (LINE,), ALL),
    Case("windows of one", lambda x: windows(x, 1), (LINE,), ALL),
    Case("windows as long as the line", lambda x: windows(x, 7) * 2.0, (LINE,), ALL),
    Case("windows longer than their number", lambda x: windows(x, 5) ** 2, (LINE,), ALL),
    Case("windows of none", lambda x: windows(x, 0), (LINE,), ALL),
    Case("windows of nothing", lambda x: windows(x, (1, 2), (0, 1))[:0], (PAGE,), ALL),
    Case("windows of a page", lambda x: windows(x, (2, 3)), (PAGE,), ALL, dtypes=BOTH),
    Case("windows along one axis", lambda x: windows(x, 2, axis=0), (PAGE,), ALL),
    Case("windows along the last axis", lambda x: windows(x, 4, -1), (CUBE,), ALL),
    Case("windows along the middle axis", lambda x: windows(x, 3, 1) ** 2, (CUBE,), ALL),
    Case("windows along two axes", lambda x: windows(x, (3, 2), axis=(-1, 0)), (CUBE,), ALL),
    Case("windows along one axis twice", lambda x: windows(x, (2, 3), axis=(1, 1)), (PAGE,), ALL),
    Case("windows along no axis", lambda x: windows(x, (), axis=()), (PAGE,), ALL),
    Case("windows of a number", lambda x: windows(x, ()) * 2.0, (np.array(1.5),), ALL),
    Case("windows of a strided array", lambda x: windows(x.T[::-1, ::2], (2, 2)), (PAGE,), ALL),
    Case("windows of complex numbers", lambda x: windows(x, 3), (LINE + 1j * LINE[::-1],), ALL),
    Case("windows, writeable", lambda x: np.mean(windows(x, 3, writeable=True, subok=True), -1), (LINE,), ALL),
    Case("windows of windows", lambda x: windows(windows(x, 3) * x[:5, None], 2, axis=0), (LINE,), ALL),
)
PHASES: tuple[Case, ...] = (
    Case("unwrap", np.unwrap, (ANGLES,), ("unwrap", "unwrapped"), dtypes=BOTH),
    Case("unwrap axis", lambda p: np.unwrap(p, axis=0), (ANGLES,), ("unwrap", "unwrapped")),
    Case("unwrap discont", lambda p: np.unwrap(p, 5.5, -1), (ANGLES,), ("unwrap", "unwrapped")),
    Case("unwrap period", lambda p: np.unwrap(p, period=2.0), (ANGLES,), ("unwrap", "unwrapped"), dtypes=BOTH),
    Case("unwrap, integer period", lambda p: np.unwrap(p, period=3), (ANGLES,), ("unwrap", "unwrapped"), dtypes=BOTH),
    Case(
        "unwrap, traced period",
        lambda p, t: np.unwrap(p, period=t),
        (ANGLES, np.array(2.3)),
        ("unwrap", "unwrapped"),
        dtypes=BOTH,
    ),
    Case("unwrap of nothing", np.unwrap, (np.zeros((2, 0)),), ("unwrap", "unwrapped")),
    Case(
        "unwrap half a period", np.unwrap, (np.array([0.0, np.pi, 0.0, -np.pi]),), ("unwrap", "unwrapped"), rough="jump"
    ),
)

CASES: tuple[Case, ...] = (*UNARY, *BINARY, *EDGE, *WINDOWS, *PHASES)
