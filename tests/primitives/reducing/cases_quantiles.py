"""Conformance cases of median, quantile, percentile and their nan- twins: methods, axes, weights, traced q, NaN."""

import warnings

import numpy as np
from tests.primitives.case import Case

RNG = np.random.default_rng(8)
LINE = RNG.permutation(np.linspace(-2.3, 1.9, 9))
EVEN = RNG.permutation(np.linspace(-1.2, 2.9, 10))
CUBE = RNG.permutation(np.linspace(-3.1, 4.2, 24)).reshape(2, 3, 4)
HOLES = CUBE.copy()
HOLES[0, 1, :3] = HOLES[1, 2, 0] = HOLES[1, 0, 3] = np.nan
WEIGHTS = RNG.uniform(0.2, 2.0, (2, 3, 4))
SOME = np.array([0.13, 0.53, 0.77])
MANY = np.linspace(0.015, 0.977, 40)
Q = np.array(0.37)
BOTH = ("float32", "float64")
ALL = ("float16", "float32", "float64", "longdouble")
METHODS = (
    "linear", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased",
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "lower", "higher", "nearest", "midpoint",
)  # fmt: skip
FAMILY = (
    (np.quantile, 1, CUBE), (np.percentile, 100, CUBE), (np.nanquantile, 1, HOLES), (np.nanpercentile, 100, HOLES),
)  # fmt: skip


def quiet(function):
    """The function without NumPy's warning of slices without numbers."""

    def run(*args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return function(*args, **kwargs)

    return run


def _medians() -> tuple[Case, ...]:
    rows = []
    for function, cube in ((np.median, CUBE), (np.nanmedian, HOLES)):
        name = function.__name__
        covers = (name, "middle")
        rows += [
            Case(f"{name} odd", function, (LINE,), covers, dtypes=ALL),
            Case(f"{name} even", function, (EVEN,), covers, dtypes=ALL),
            *(
                Case(f"{name} axis={axis}", lambda x, f=function, axis=axis: f(x, axis), (cube,), covers, dtypes=BOTH)
                for axis in (None, 0, 1, -1, (0, 2), (-1, 1), (0, 1, 2))
            ),
            Case(f"{name} keepdims", lambda x, f=function: f(x, (0, 2), keepdims=True), (cube,), covers),
            Case(f"{name} keepdims of all", lambda x, f=function: f(x, keepdims=True), (cube,), covers),
            Case(f"{name} overwrite_input", lambda x, f=function: f(x * x, 1, overwrite_input=True), (cube,), covers),
            Case(f"{name} 0-d", function, (np.array(1.7),), covers),
            Case(f"{name} of nothing", quiet(lambda x, f=function: f(x)), (np.zeros(0),), covers, rough="nan"),
            Case(f"{name} ties", function, (np.array([2.0, 1.0, 2.0, 2.0]),), covers, rough="tie"),
        ]
    rows += [
        Case("median complex", lambda x: np.median(x, 1), (CUBE[0] + 1j * CUBE[1],), ("median",), dtypes=BOTH),
        Case("median with NaN", lambda x: np.median(x, 1), (HOLES,), ("median",), rough="nan"),
        Case(
            "nanmedian of NaN",
            quiet(lambda x: np.nanmedian(x, 2)),
            (np.where(CUBE < 0, np.nan, CUBE),),
            ("nanmedian",),
            rough="nan",
        ),
    ]
    return tuple(rows)


def _quantiles() -> tuple[Case, ...]:
    rows = []
    for function, scale, cube in FAMILY:
        name = function.__name__
        covers, heavy = (name, "order_statistic"), (name, "weighted_order_statistic")
        q, some = Q * scale, SOME * scale
        for method in METHODS:
            rows += [
                Case(f"{name} {method}", lambda x, f=function, m=method, q=some: f(x, q, 1, method=m), (cube,), covers),
                Case(
                    f"{name} {method} traced q",
                    lambda x, q, f=function, m=method: f(x, q, method=m),
                    (cube, some),
                    covers,
                ),
            ]
        rows += [
            *(
                Case(f"{name} axis={axis}", lambda x, f=function, axis=axis, q=some: f(x, q, axis), (cube,), covers,
                    dtypes=BOTH)
                for axis in (None, 0, -1, (0, 2), (-1, 1))
            ),
            Case(f"{name} float q", lambda x, f=function, s=scale: f(x, 0.37 * s), (cube,), covers, dtypes=ALL),
            Case(f"{name} matrix q", lambda x, q, f=function: f(x, q, 0), (cube, np.stack([some, some[::-1] * 0.9])),
                covers),
            Case(f"{name} many q", lambda x, q, f=function: f(x, q), (cube, MANY * scale), covers),
            Case(f"{name} traced q alone", lambda q, f=function, c=cube: f(c, q, (0, 1)), (q,), covers, dtypes=BOTH),
            Case(f"{name} keepdims", lambda x, q, f=function: f(x, q, (0, 2), keepdims=True), (cube, some), covers),
            Case(f"{name} keepdims of all", lambda x, q, f=function: f(x, q, keepdims=True), (cube, q), covers),
            Case(f"{name} overwrite_input", lambda x, f=function, q=q: f(2 * x, q, overwrite_input=True), (cube,),
                covers),
            Case(f"{name} list of q", lambda x, f=function, s=scale: f(x, [0.1 * s, 0.6 * s], 2), (cube,), covers),
            Case(f"{name} ends", lambda x, f=function, s=scale: f(x, [0.0, 1.0 * s]), (cube,), covers),
            Case(f"{name} of integers", lambda q, f=function: f(np.arange(7), q), (q,), covers),
            Case(f"{name} of nothing", quiet(lambda x, f=function: f(x, 0.5, 0)), (np.zeros((3, 0)),), (name,),
                rough="nan"),
            Case(
                f"{name} weights", lambda x, w, f=function, q=some: f(x, q, 1, method="inverted_cdf", weights=w),
                (cube, WEIGHTS), heavy,
            ),
            Case(
                f"{name} weights of all",
                lambda x, q, f=function: f(x, q, method="inverted_cdf", weights=WEIGHTS),
                (cube, some),
                heavy,
            ),
        ]  # fmt: skip
    for function, scale in (
        (np.quantile, 1),
        (np.percentile, 100),
    ):  # of the others NumPy 2.4 refuses these weights with an IndexError
        name = function.__name__
        rows += [
            Case(
                f"{name} weights along an axis",
                lambda x, f=function, q=Q * scale: f(
                    x, q, axis=2, method="inverted_cdf", weights=WEIGHTS[0, 0], keepdims=True
                ),
                (CUBE,),
                (name, "weighted_order_statistic"),
                dtypes=BOTH,
            )
        ]
    rows += [
        Case("quantile with NaN", lambda x: np.quantile(x, SOME, 2), (HOLES,), ("quantile",), rough="nan"),
        Case(
            "nanquantile of NaN",
            quiet(lambda x: np.nanquantile(x, SOME, 2)),
            (np.where(CUBE < 0, np.nan, CUBE),),
            ("nanquantile",),
            rough="nan",
        ),
    ]
    return tuple(rows)


CASES: tuple[Case, ...] = (*_medians(), *_quantiles())
