"""Conformance cases of where, select, choose, clip and nan_to_num: every option, broadcasting, ties, and what masks
hide."""

import numpy as np
from tests.primitives.case import Case, since

X = np.array([[-1.3, -0.4, 0.35], [0.6, 1.7, -2.2]])
Y = np.array([[0.7, -1.1, 2.3], [-0.9, 0.8, 1.4]])
MASK = np.array([[True, False, True], [False, False, True]])
COLUMN, LINE = np.array([[0.7], [-1.6], [2.3]]), np.array([1.2, -0.45, 0.9, 2.6])
PLANE = X + 1j * Y
EDGES = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
BOTH = ("float32", "float64")
SPOILT = np.array([[np.nan, np.inf, 0.5], [-np.inf, -1.5, 2.0]])

WHERE: tuple[Case, ...] = (
    Case("where", lambda x, y: np.where(MASK, x, y), (X, Y), ("where", "numpy.where"), dtypes=BOTH),
    Case("where broadcast", lambda x, y: np.where(MASK[:, None, :1], x, y), (COLUMN, LINE), ("where",)),
    Case("where with numbers", lambda x: np.where(x > 0, x, 0.0) + np.where(MASK, 1, x), (X,), ("where",), dtypes=BOTH),
    Case("where 0-d", lambda x, y: np.where(x > y, x * x, y), (np.array(0.3), np.array(-0.4)), ("where",)),
    Case("where of nothing", lambda x: np.where(x > 0, x, 2 * x), (np.zeros((0, 3)),), ("where",)),
    Case("where with a traced condition", lambda x: np.where(x, x * x, 1.0), (X,), ("where", "numpy.where")),
    Case("where, condition alone", lambda x: x[np.where(x > 0)] * len(np.where(x)), (X,), ("numpy.where", "nonzero")),
    Case("where complex", lambda x, z: np.where(MASK, x, z), (X, PLANE), ("where",)),
    Case("where strided", lambda x: np.where(MASK.T[::-1], x.T[::-1], 1.0), (X,), ("where",)),
)


# At 0 and -1 the masked branch has an infinite or undefined slope; the gradient there is exactly 0.
MASKED: tuple[Case, ...] = tuple(
    Case(
        f"masked {name}", lambda x, f=f: np.where(x > 0, f(x), 0.0), (np.array([-1.0, 0.0, 0.5, 2.0]),), ("where", name)
    )
    for name, f in (
        ("log", np.log),
        ("log2", np.log2),
        ("log10", np.log10),
        ("sqrt", np.sqrt),
        ("reciprocal", np.reciprocal),
        ("divide", lambda x: 1 / x),
        ("power", lambda x: x**-0.5),
        ("float_power", lambda x: np.float_power(x, 0.3)),
        ("arccosh", lambda x: np.arccosh(1 + x)),
    )
)

SELECT: tuple[Case, ...] = (
    Case("select", lambda x, y: np.select([x < -1, x < 1], [x * x, y], 0.5 * x), (X, Y), ("select",), dtypes=BOTH),
    Case("select, first wins", lambda x: np.select([x > 0, x > 0.5], [x, 3 * x]), (X,), ("select",), dtypes=BOTH),
    Case("select broadcast", lambda x, y: np.select([y > 1, x > 0], [x, y], 7), (COLUMN, LINE), ("select",)),
    Case("select numbers", lambda x: np.select([x > 1, x > 0], [2.0, x], -1.0), (X,), ("select",), dtypes=BOTH),
    Case("select, traced default", lambda x: np.select([MASK], [x * x], x), (X,), ("select",)),
    Case("choose", lambda x, y: np.choose(MASK.astype(int), [x, y]), (X, Y), ("choose",), dtypes=BOTH),
    Case("choose rows", lambda x: np.choose(np.array([1, 0, 1]), x), (X,), ("choose",)),
    Case("choose wrap", lambda x: np.choose(np.array([5, -1, 3]), [x, 2 * x, x * x], mode="wrap"), (X,), ("choose",)),
    Case("choose clip", lambda x: np.choose(np.array([5, -1, 1]), [x, 2 * x, x * x], mode="clip"), (X,), ("choose",)),
    Case("choose, one choice", lambda x: np.choose(np.zeros((2, 1), int), [x]), (X[0],), ("choose",)),
)

CLIP: tuple[Case, ...] = (
    Case("clip", lambda x: np.clip(x, -1.0, 1.0), (X,), ("clip", "clamp"), dtypes=BOTH),
    Case("clip, traced bounds", lambda x, y: np.clip(x, y - 1, y + 0.5), (X, Y), ("clip", "clamp"), dtypes=BOTH),
    Case("clip broadcast", np.clip, (X, X[:, :1] - 0.3, np.array(1.1)), ("clamp",)),
    Case("clip of a constant", lambda y: np.clip(X, y, 9.0) + np.clip(X, None, y), (Y,), ("clamp", "at_most")),
    Case(
        "clip below",
        lambda x: np.clip(x, -0.5, None) + np.clip(x, a_min=0.4, a_max=None),
        (X,),
        ("clip", "at_least"),
        dtypes=BOTH,
    ),
    Case(
        "clip above",
        lambda x: np.clip(x, None, 0.5) + np.clip(x, None, a_max=1.5),
        (X,),
        ("clip", "at_most"),
        dtypes=BOTH,
    ),
    Case("clip, traced lower bound alone", lambda x, y: np.clip(x, y, None), (X, Y), ("at_least",)),
    Case("clip, traced upper bound alone", lambda x, y: np.clip(x, None, y), (X, Y), ("at_most",)),
    *since(
        "2.1.0",
        Case("clip min, max", lambda x, y: np.clip(x, min=y) + np.clip(x, max=y), (X, Y), ("at_least", "at_most")),
        Case("clip without bounds", lambda x: x * np.clip(x, None, None), (X,), ("clip",)),
    ),
    Case("clip method", lambda x: x.clip(-1.0, 1.0) + x.clip(min=0.2) + x.clip(max=0.9), (X,), ("clip",)),
    Case("clip of an array by a tracer", lambda y: X.clip(y, 3.0), (Y,), ("clamp",)),
    Case("clip, crossed bounds", np.clip, (X, Y + 5, Y), ("clamp",)),
    Case("clip 0-d", lambda x: np.clip(x, -1.0, 1.0), (np.array(0.3),), ("clamp",)),
    Case("clip of nothing", lambda x: np.clip(x, -1.0, 1.0), (np.zeros((0, 3)),), ("clamp",)),
    Case("clip at its bounds", lambda x: np.clip(x, 0.0, 1.0), (EDGES,), ("clamp",), rough="kink"),
    Case(
        "clip at one bound",
        lambda x: np.clip(x, 0.0, None) + np.clip(x, None, 1.0),
        (EDGES,),
        ("at_least", "at_most"),
        rough="kink",
    ),
)

NAN_TO_NUM: tuple[Case, ...] = (
    Case("nan_to_num", np.nan_to_num, (X,), ("nan_to_num", "numpy.nan_to_num"), dtypes=BOTH),
    Case("nan_to_num of NaN", lambda x: np.nan_to_num(x, nan=0.5, posinf=9.0, neginf=-9.0), (SPOILT,), ("nan_to_num",)),
    Case("nan_to_num complex", np.nan_to_num, (PLANE,), ("nan_to_num",)),
    Case("nan_to_num in place", lambda x: np.nan_to_num(x * 2.0, copy=False), (X,), ("nan_to_num", "numpy.nan_to_num")),
)

CASES: tuple[Case, ...] = (*WHERE, *MASKED, *SELECT, *CLIP, *NAN_TO_NUM)
