"""Conformance cases of linspace, logspace, geomspace, meshgrid and vander."""

import numpy as np
from tests.primitives.case import Case

RNG = np.random.default_rng(3)
LINE = RNG.normal(size=7)
PLANE, BOX = RNG.normal(size=(4, 5)), RNG.normal(size=(3, 4, 5))
WAVE = RNG.normal(size=6) + 1j * RNG.normal(size=6)
STEP = np.array(0.3)
BOTH = ("float32", "float64")
ALL = ("float16", "float32", "float64", "longdouble")

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


CASES: tuple[Case, ...] = (*RANGES,)
