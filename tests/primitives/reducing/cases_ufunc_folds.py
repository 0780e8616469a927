"""Conformance cases of reduce and accumulate of binary ufuncs: axes, starts, masks, dtypes, ties, NaN."""

import numpy as np
from tests.primitives.case import Case

RNG = np.random.default_rng(12)
CUBE = RNG.permutation(np.linspace(0.6, 2.2, 24)).reshape(2, 3, 4)
SIGNED = RNG.permutation(np.linspace(-2.1, 2.2, 24)).reshape(2, 3, 4)
HOLES = SIGNED.copy()
HOLES[1, 1:, 1] = HOLES[0, 0, 2:] = np.nan
MASK = RNG.uniform(size=(2, 3, 4)) < 0.6
MASK[:, :1] = MASK[:, :, 1] = True  # something of every slice
TIES = np.array([1.0, 3.0, 3.0, 2.0, 5.0, 5.0, np.nan, 7.0, np.nan])
BOTH = ("float32", "float64")
ALL = ("float16", "float32", "float64", "longdouble")
WALKED = (np.subtract, np.divide, np.power, np.float_power, np.arctan2, np.hypot, np.logaddexp2)
JUMPING = (np.remainder, np.fmod, np.copysign, np.heaviside)  # smooth between their jumps
NO_FOLD = (
    np.power,
    np.arctan2,
)  # along contiguous elements, where NumPy has loops of AVX-512: see test_folds.py
EXTREMA = (np.maximum, np.minimum, np.fmax, np.fmin)


def _reductions() -> tuple[Case, ...]:
    rows = []
    for f in (*WALKED, *JUMPING):
        name = f"{f.__name__}.reduce"
        covers = (name, f"{f.__name__}_reduce")
        rows += [
            *(
                Case(f"{name} axis={a}", lambda x, f=f, a=a: f.reduce(x, a), (CUBE,), covers, dtypes=BOTH)
                for a in (0, 1, -2)
            ),
            *(
                Case(f"{name} last axis", lambda x, f=f: f.reduce(x, -1), (CUBE,), covers)
                for _ in range(f not in NO_FOLD)
            ),
            Case(f"{name} keepdims", lambda x, f=f: f.reduce(x, 1, keepdims=True), (CUBE,), covers, dtypes=ALL),
            Case(f"{name} dtype", lambda x, f=f: f.reduce(x, 1, np.float64), (CUBE,), covers, dtypes=BOTH),
            Case(f"{name} of one", lambda x, f=f: f.reduce(x, 1), (SIGNED[:, :1],), covers),
            Case(f"{name} of one, no start", lambda x, f=f: f.reduce(x, 1, initial=None), (SIGNED[:, :1],), covers),
        ]
    for f in (np.hypot, np.logaddexp2):
        name = f"{f.__name__}.reduce"
        covers = (name, f"{f.__name__}_reduce")
        rows += [
            *(
                Case(f"{name} axes {a}", lambda x, f=f, a=a: f.reduce(x, a), (SIGNED,), covers)
                for a in (None, (0, 2), (-1, 1))
            ),
            Case(f"{name} initial", lambda x, s, f=f: f.reduce(x, 1, initial=s), (SIGNED, np.array(0.3)), covers),
            Case(f"{name} where", lambda x, f=f: f.reduce(x, 1, where=MASK), (SIGNED,), covers),
            Case(
                f"{name} where initial",
                lambda x, f=f: f.reduce(x, 2, None, None, True, 0.4, MASK),
                (SIGNED,),
                covers,
            ),
        ]
    rows.append(
        Case("subtract.reduce initial", lambda x: np.subtract.reduce(x, 1, initial=2.0), (CUBE,), ("subtract.reduce",))
    )
    rows.append(
        Case(
            "divide.reduce where",
            lambda x: np.divide.reduce(x, 0, initial=2.0, where=MASK),
            (CUBE,),
            ("divide.reduce",),
        )
    )
    rows.append(
        Case("hypot.reduce of nothing", lambda x: np.hypot.reduce(x, 1), (np.zeros((2, 0)),), ("hypot.reduce",))
    )
    rows.append(Case("divide.reduce complex", np.divide.reduce, (CUBE[0] + 1j * CUBE[1],), ("divide.reduce",)))
    for f in (np.fmax, np.fmin):
        name = f"{f.__name__}.reduce"
        covers, general = (name, f"{f.__name__}_reduce"), (name, f"{f.__name__}_reduce_where")
        rows += [
            *(
                Case(f"{name} axis={a}", lambda x, f=f, a=a: f.reduce(x, a), (HOLES,), covers)
                for a in (0, -1, None, (0, 2))
            ),
            Case(f"{name} initial", lambda x, s, f=f: f.reduce(x, 1, initial=s), (HOLES, np.array(0.3)), general),
            Case(
                f"{name} where", lambda x, f=f: f.reduce(x, 1, initial=0.1, where=MASK), (HOLES,), general, dtypes=BOTH
            ),
            Case(f"{name} dtype", lambda x, f=f: f.reduce(x, 1, np.float64), (HOLES,), covers, dtypes=("float32",)),
        ]
    return tuple(rows)


def _accumulations() -> tuple[Case, ...]:
    rows = []
    for f in (*WALKED, *JUMPING, np.logaddexp, *EXTREMA):
        name = f"{f.__name__}.accumulate"
        covers = (name, f"{f.__name__}_accumulate")
        rows += [
            *(
                Case(f"{name} axis={a}", lambda x, f=f, a=a: f.accumulate(x, a), (CUBE,), covers, dtypes=BOTH)
                for a in (0, 1, -1)
            ),
            Case(f"{name} of a line", f.accumulate, (CUBE[0, 0],), covers, dtypes=ALL),
            Case(f"{name} of one", f.accumulate, (CUBE[0, 0, :1],), covers),
            Case(f"{name} of nothing", f.accumulate, (np.zeros((0, 2)),), covers),
            Case(
                f"{name} dtype", lambda x, f=f: f.accumulate(x, dtype=np.float64), (CUBE,), covers, dtypes=("float32",)
            ),
        ]
    rows += [
        Case(f"{f.__name__}.accumulate ties", f.accumulate, (TIES,), (f"{f.__name__}.accumulate",), rough="tie")
        for f in EXTREMA
    ]
    rows += [
        Case(f"{f.__name__}.accumulate NaN", lambda x, f=f: f.accumulate(x, 1), (HOLES,), (), rough="nan")
        for f in EXTREMA
    ]
    return tuple(rows)


def _others() -> tuple[Case, ...]:
    """What has no derivative, and segments: the ufunc methods that are made of reduce."""
    return (
        Case(
            "logical_and.reduce", lambda x: x * np.logical_and.reduce(x, 1, keepdims=True), (SIGNED,), ("logical_and",)
        ),
        Case("logical_or.accumulate", lambda x: x * np.logical_or.accumulate(x, 0), (SIGNED,), ("logical_or",)),
        Case("greater.reduce", lambda x: x * np.floor_divide.reduce(x, 0), (CUBE,), ("floor_divide",)),
        Case("hypot.reduceat", lambda x: np.hypot.reduceat(x, [0, 2, 1], 2), (SIGNED,), ("hypot.reduce",)),
    )


CASES: tuple[Case, ...] = (*_reductions(), *_accumulations(), *_others())
