"""Conformance cases of the reductions and scans that pass over NaN."""

import numpy as np
from tests.primitives.case import Case
from tests.primitives.reducing.cases_quantiles import quiet

RNG = np.random.default_rng(9)
CUBE = RNG.permutation(np.linspace(-3.1, 4.2, 24)).reshape(2, 3, 4)
HOLES = CUBE.copy()
HOLES[0, 1, :3] = HOLES[1, 2, 0] = HOLES[1, 0, 3] = np.nan
VOID = np.where(np.arange(3)[:, None] == 1, np.nan, CUBE[0])
ROW = np.array([True, False, True, True])
MASK = RNG.uniform(size=(2, 3, 4)) < 0.75
BOTH = ("float32", "float64")
ALL = ("float16", "float32", "float64", "longdouble")
AXES = (None, 0, -1, (0, 2))


def _nans() -> tuple[Case, ...]:
    rows = []
    for f, start in ((np.nansum, 0.3), (np.nanprod, 1.5), (np.nanmax, 2.5), (np.nanmin, -1.0)):
        name = f.__name__
        covers = {"nansum": ("replace_nan",), "nanprod": ("replace_nan",)}.get(
            name, (f"f{name[3:]}_reduce", f"f{name[3:]}.reduce")
        )
        general = () if name in {"nansum", "nanprod"} else (f"f{name[3:]}_reduce_where",)
        rows += [
            *(
                Case(f"{name} axis={a}", lambda x, f=f, a=a: f(x, a), (HOLES,), (name, *covers), dtypes=BOTH)
                for a in (*AXES, 1)
            ),
            Case(f"{name} keepdims", lambda x, f=f: f(x, (0, 1), keepdims=True), (HOLES,), (name,), dtypes=ALL),
            Case(f"{name} initial", lambda x, s, f=f: f(x, 1, initial=s), (HOLES, np.array(start)), (name, *general)),
            Case(f"{name} where", lambda x, f=f, s=start: f(x, 1, initial=s, where=MASK), (HOLES,), (name, *general)),
            Case(f"{name} no NaN", f, (CUBE,), (name,)),
            Case(f"{name} of NaN", quiet(lambda x, f=f: f(x, 1)), (VOID,), (name,), rough="nan"),
        ]
    for f in (np.nanmean, np.nanvar, np.nanstd):
        name = f.__name__
        covers = (name, f"nan_{name[3:]}")
        rows += [
            *(
                Case(f"{name} axis={a}", lambda x, f=f, a=a: f(x, a), (HOLES,), covers, dtypes=BOTH)
                for a in (None, -1, (0, 2), 1)
            ),
            Case(f"{name} axis=0", lambda x, f=f: f(x, 0), (HOLES[:, :, 1:3] if name == "nanmean" else CUBE,), covers),
            Case(f"{name} keepdims", lambda x, f=f: f(x, (0, 1), keepdims=True), (HOLES,), covers, dtypes=ALL),
            Case(f"{name} where", lambda x, f=f: f(x, (0, 2), where=ROW), (HOLES,), covers),
            Case(f"{name} dtype", lambda x, f=f: f(x, 1, dtype=np.longdouble), (HOLES,), covers, dtypes=BOTH),
            Case(f"{name} of NaN", quiet(lambda x, f=f: f(x, 1)), (VOID,), covers, rough="nan"),
            Case(
                f"{name} complex",
                lambda x, f=f: f(x, 1),
                (np.where(np.isnan(HOLES[0]), np.nan, CUBE[0] + 1j * CUBE[1]),),
                covers,
            ),
        ]
    for f in (np.nanvar, np.nanstd):
        name = f.__name__
        covers = (name, f"nan_{name[3:]}_about")
        rows += [
            Case(f"{name} ddof", lambda x, f=f: f(x, (0, 2), ddof=1, keepdims=True), (HOLES,), (name,)),
            Case(f"{name} correction", lambda x, f=f: f(x, (0, 2), correction=1), (HOLES,), (name,)),
            Case(f"{name} mean=", lambda x, m, f=f: f(x, 0, mean=m), (HOLES[:, [0]], CUBE[:1, [0]] + 0.3), covers),
            Case(
                f"{name} mean= where",
                lambda x, m, f=f: f(x, (0, 2), mean=m, where=ROW),
                (HOLES, CUBE[:1, :, :1] * 0.3),
                covers,
            ),
        ]
    for f in (np.nancumsum, np.nancumprod):
        name = f.__name__
        rows += [
            *(
                Case(f"{name} axis={a}", lambda x, f=f, a=a: f(x, a), (HOLES,), (name, "replace_nan"), dtypes=BOTH)
                for a in (None, 0, -1)
            ),
            Case(f"{name} dtype", lambda x, f=f: f(x, 1, dtype=np.float64), (HOLES,), (name,), dtypes=("float32",)),
        ]
    return tuple(rows)


CASES: tuple[Case, ...] = (*_nans(),)
