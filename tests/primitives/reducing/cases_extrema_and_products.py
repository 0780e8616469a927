"""Conformance cases of the reductions and scans: every option, at points where they are smooth unless said
otherwise."""

from typing import Any

import numpy as np
from tests.primitives.case import Case

from pullback.primitives.shared.numpy_names import available

_rng = np.random.default_rng(7)
LINE = _rng.normal(size=5)
CUBE = _rng.normal(size=(2, 3, 4))
LONG = 1 + 0.2 * np.random.default_rng(4).normal(size=(70, 2))
WAVE = CUBE + 1j * _rng.normal(size=CUBE.shape)
BACK = np.asfortranarray(CUBE)[::-1, :, ::2]  # Fortran order, a negative stride and gaps
ZEROS = np.where(np.arange(24).reshape(2, 3, 4) % 7 == 2, 0.0, CUBE)
MASK = (np.arange(24).reshape(2, 3, 4) * 5) % 3 != 0
EMPTY = np.zeros((0, 3))
ROW = np.array([True, False, True, True])
AXES: tuple[Any, ...] = (None, 0, -1, (0, 2), (-1, 1))


def _each_axis(name: str, function: Any, covers: tuple[str, ...], x: Any = CUBE, **kwargs: Any) -> tuple[Case, ...]:
    return tuple(
        Case(
            f"{name} axis={a} keepdims={keep}",
            lambda x, a=a, k=keep: function(x, axis=a, keepdims=k, **kwargs),
            (x,),
            covers,
        )
        for a in AXES
        for keep in (False, True)
    )


def _reductions() -> tuple[Case, ...]:
    rows: list[Case] = []
    for f in (np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std):
        name = f.__name__
        covers = (name, f"reduce_{name}")
        rows += _each_axis(name, f, covers)
        rows += [
            Case(f"{name} line", f, (LINE,), covers, dtypes=("float32", "float64")),
            Case(f"{name} strided", lambda x, f=f: f(x, axis=1), (BACK,), covers),
            Case(f"{name} method", lambda x, n=name: getattr(x, n)(axis=(0, 1)), (CUBE,), covers),
            Case(f"{name} method, positional axis", lambda x, n=name: getattr(x, n)(-1), (CUBE,), covers),
        ]
        if f not in (np.max, np.min):
            rows.append(Case(f"{name} complex", lambda x, f=f: f(x, axis=1), (WAVE,), covers))
    for f in (np.sum, np.prod):
        name = f.__name__
        covers = (name, f"reduce_{name}")
        rows += [
            Case(f"{name} 0-d", f, (np.array(1.5),), covers),
            Case(f"{name} of nothing", f, (EMPTY,), covers),
            Case(f"{name} of nothing along an axis", lambda x, f=f: f(x, axis=0), (EMPTY,), covers),
            Case(
                f"{name} dtype",
                lambda x, f=f: f(x, axis=0, dtype=np.float64),
                (CUBE.astype(np.float32),),
                covers,
                dtypes=("float32",),
            ),
        ]
    return tuple(rows)


def _masked() -> tuple[Case, ...]:
    rows: list[Case] = []
    for f, start in ((np.sum, 0.5), (np.prod, 0.5), (np.max, -0.1), (np.min, 0.1)):
        name = f.__name__
        covers = (name, f"reduce_{name}_where")
        rows += _each_axis(f"{name} where initial", f, covers, where=MASK, initial=start)
        rows += [
            Case(f"{name} initial", lambda x, f=f, s=start: f(x, axis=1, initial=s), (CUBE,), covers),
            Case(f"{name} traced initial", lambda x, s, f=f: f(x, axis=1, initial=s), (CUBE, np.array(start)), covers),
            Case(f"{name} row of where", lambda x, f=f, s=start: f(x, axis=2, initial=s, where=ROW), (CUBE,), covers),
        ]
    rows += _each_axis("sum where", np.sum, ("sum", "reduce_sum_where"), where=MASK)
    rows += _each_axis("prod where, zeros", np.prod, ("prod", "reduce_prod_where"), x=ZEROS, where=MASK)
    rows += _each_axis("prod, zeros", np.prod, ("prod", "reduce_prod"), x=ZEROS)
    return tuple(rows)


def _moments() -> tuple[Case, ...]:
    rows: list[Case] = list(
        _each_axis("mean where", np.mean, ("mean", "reduce_mean_where"), where=MASK | np.array([[[True]], [[False]]]))
    )
    for f in (np.var, np.std):
        name = f.__name__
        plain, about = (name, f"reduce_{name}"), (name, f"reduce_{name}_about")
        rows += [
            Case(f"{name} ddof", lambda x, f=f: f(x, 1, ddof=1), (CUBE,), plain),
            Case(f"{name} fractional ddof", lambda x, f=f: f(x, ddof=0.5, keepdims=True), (CUBE,), plain),
            Case(f"{name} correction", lambda x, f=f: f(x, axis=(0, 1), correction=1), (CUBE,), plain),
            Case(f"{name} where", lambda x, f=f: f(x, axis=(0, 2), where=ROW), (CUBE,), about),
            Case(
                f"{name} where ddof",
                lambda x, f=f: f(x, axis=(0, 2), where=MASK, ddof=1, keepdims=True),
                (CUBE,),
                about,
            ),
            Case(f"{name} complex where", lambda x, f=f: f(x, axis=(0, 2), where=ROW), (WAVE,), about),
            Case(f"{name} mean=", lambda x, m, f=f: f(x, axis=1, mean=m), (CUBE, CUBE[:, :1] + 0.3), about),
            Case(
                f"{name} its own mean",
                lambda x, f=f: f(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)),
                (CUBE,),
                about,
            ),
            Case(
                f"{name} mean= where",
                lambda x, m, f=f: f(x, axis=2, mean=m, where=ROW, ddof=1),
                (CUBE, CUBE[:, :, :1] * 0.3),
                about,
            ),
        ]
    return tuple(rows)


def _ufunc_methods() -> tuple[Case, ...]:
    return (
        Case("add.reduce", np.add.reduce, (CUBE,), ("add.reduce", "reduce_sum")),
        Case(
            "add.reduce axis=None where",
            lambda x: np.add.reduce(x, axis=None, where=MASK),
            (CUBE,),
            ("add.reduce", "reduce_sum_where"),
        ),
        Case("multiply.reduce", lambda x: np.multiply.reduce(x, 1), (CUBE,), ("multiply.reduce", "reduce_prod")),
        Case("maximum.reduce", lambda x: np.maximum.reduce(x, -1), (CUBE,), ("maximum.reduce", "reduce_max")),
        Case("minimum.reduce", lambda x: np.minimum.reduce(x, axis=(0, 1)), (CUBE,), ("minimum.reduce", "reduce_min")),
        Case("logaddexp.reduce", np.logaddexp.reduce, (CUBE,), ("logaddexp.reduce", "reduce_logaddexp")),
        Case(
            "logaddexp.reduce of 1000s",
            lambda x: np.logaddexp.reduce(x + 1000.0),
            (LINE,),
            ("logaddexp.reduce", "reduce_logaddexp"),
        ),
        Case(
            "logaddexp.reduce where initial",
            lambda x: np.logaddexp.reduce(x, axis=1, where=MASK, initial=0.2),
            (CUBE,),
            ("logaddexp.reduce", "reduce_logaddexp_where"),
        ),
        Case("add.accumulate", np.add.accumulate, (CUBE,), ("add.accumulate", "scan_sum")),
        Case(
            "multiply.accumulate",
            lambda x: np.multiply.accumulate(x, -1),
            (CUBE,),
            ("multiply.accumulate", "scan_prod"),
        ),
        Case("multiply.accumulate of many", np.multiply.accumulate, (LONG,), ("scan_prod", "scan_recurrence")),
    )


def _kinks() -> tuple[Case, ...]:
    ties = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    return (
        Case("amax and amin", lambda x: np.amax(x, axis=1) * np.amin(x), (CUBE,), ("max", "min")),
        Case("max ties", lambda x: np.max(x, axis=1), (ties,), ("max", "reduce_max"), rough="tie"),
        Case("min ties", np.min, (ties,), ("min", "reduce_min"), rough="tie"),
        Case(
            "amax with NaN",
            lambda x: np.amax(x, axis=0),
            (np.array([[1.0, np.nan], [2.0, 0.0]]),),
            ("max", "reduce_max"),
            rough="nan",
        ),
        Case("std of equal numbers", np.std, (np.ones(3),), ("std", "reduce_std"), rough="kink"),
        Case("std of one number", np.std, (np.ones(1),), ("std", "reduce_std")),
    )


def _scans() -> tuple[Case, ...]:
    rows: list[Case] = []
    for f, scan in ((np.cumsum, "scan_sum"), (np.cumprod, "scan_prod")):
        covers = (f.__name__, scan)
        rows += [
            Case(f"{f.__name__} axis={axis}", lambda x, f=f, a=axis: f(x, axis=a), (CUBE,), covers)
            for axis in (None, 0, 1, -1)
        ]
        rows += [
            Case(f"{f.__name__} zeros", lambda x, f=f: f(x, axis=1), (ZEROS,), covers),
            Case(f"{f.__name__} complex", f, (WAVE,), covers),
            Case(f"{f.__name__} float32", f, (LINE,), covers, dtypes=("float32",)),
            Case(f"{f.__name__} dtype", lambda x, f=f: f(x, dtype=np.complex128), (LINE,), covers),
            Case(f"{f.__name__} 0-d", f, (np.array(2.0),), covers),
            Case(f"{f.__name__} of nothing", f, (EMPTY,), covers),
            Case(f"{f.__name__} of one", f, (np.array([3.0]),), covers),
            Case(f"{f.__name__} strided", lambda x, f=f: f(x, axis=0), (BACK,), covers),
            Case(f"{f.__name__} method", lambda x, n=f.__name__: getattr(x, n)(1), (CUBE,), covers),
        ]
    for f in available("cumulative_sum", "cumulative_prod"):
        covers = (f.__name__, f.__name__.replace("cumulative", "scan"))
        rows += [
            Case(f.__name__, f, (LINE,), covers),
            Case(f"{f.__name__} axis", lambda x, f=f: f(x, axis=-2), (CUBE,), covers),
            Case(f"{f.__name__} axis in a tuple", lambda x, f=f: f(x, axis=(1,)), (CUBE,), covers),
            Case(f"{f.__name__} initial", lambda x, f=f: f(x, axis=1, include_initial=True), (CUBE,), covers),
        ]
    rows += [
        Case(f"diff n={n} axis={a}", lambda x, n=n, a=a: np.diff(x, n, a), (CUBE,), ("diff",))
        for n in (0, 1, 2, 9)
        for a in (0, -1)
    ]
    rows += [
        Case(
            "diff prepend append",
            lambda x, p, a: np.diff(x, prepend=p, append=a),
            (CUBE, CUBE[:, :, :2], LINE[0]),
            ("diff",),
        ),
        Case("diff of nothing", lambda x: np.diff(x, axis=0), (EMPTY,), ("diff",)),
    ]
    return tuple(rows)


CASES = (*_reductions(), *_masked(), *_moments(), *_ufunc_methods(), *_kinks(), *_scans())
