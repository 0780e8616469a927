"""Conformance cases of sort, partition and sort_complex: axes, kinds, ties, NaN, complex numbers, in place."""

import numpy as np
from tests.primitives.case import Case

RNG = np.random.default_rng(5)
LINE = RNG.permutation(np.linspace(-2.3, 1.9, 9))
CUBE = RNG.permutation(np.linspace(-3.1, 4.2, 24)).reshape(2, 3, 4)
WAVE = LINE[:8].reshape(2, 4) + 1j * CUBE[:, 0, :]
BOTH = ("float32", "float64")
ALL = ("float16", "float32", "float64", "longdouble")
TIES = np.array([[1.0, 3.0, 1.0, -0.0, 0.0], [2.0, 2.0, 2.0, 2.0, 2.0]])
GAPS = np.array([np.nan, 1.0, np.nan, -np.inf, 0.5, np.inf])
SORTED, PARTED = ("sort", "sorted"), ("partition", "partitioned")


def _in_place(method, *args):
    """The array after ``y.sort(...)`` on a value that is computed."""

    def run(x):
        y = x * 1.5
        getattr(y, method)(*args)
        return y * x

    return run


SORT: tuple[Case, ...] = (
    Case("sort", np.sort, (LINE,), SORTED, dtypes=ALL),
    *(
        Case(f"sort axis={axis}", lambda x, axis=axis: np.sort(x, axis), (CUBE,), SORTED, dtypes=BOTH)
        for axis in (0, 1, -2, None)
    ),
    *(
        Case(f"sort {kind}", lambda x, kind=kind: np.sort(x, kind=kind), (CUBE,), SORTED)
        for kind in ("quicksort", "heapsort", "stable")
    ),
    Case("sort stable=True", lambda x: np.sort(x, 0, stable=True), (CUBE,), SORTED),
    Case("sort complex", np.sort, (WAVE,), SORTED, dtypes=BOTH),
    Case("sort strided", lambda x: np.sort(x.T[::-1], 1), (CUBE,), SORTED),
    Case("sort of nothing", lambda x: np.sort(x, 0), (np.zeros((0, 2)),), SORTED),
    Case("sort of one", lambda x: np.sort(x, None), (np.array(0.7),), SORTED),
    Case("sort twice a nonlinear value", lambda x: np.sort(np.sin(3 * x)) ** 2, (LINE,), SORTED),
    Case("sort in place", _in_place("sort"), (LINE,), SORTED),
    Case("sort in place along an axis", _in_place("sort", 0), (CUBE,), SORTED),
    Case("sort ties", lambda x: np.sort(x, 1), (TIES,), SORTED, rough="tie", dtypes=BOTH),
    Case("sort ties heapsort", lambda x: np.sort(x, 0, "heapsort"), (TIES,), SORTED, rough="tie"),
    Case("sort NaN", np.sort, (GAPS,), SORTED, rough="nan", dtypes=ALL),
)
PARTITION: tuple[Case, ...] = (
    Case("partition", lambda x: np.partition(x, 3), (LINE,), PARTED, dtypes=ALL),
    Case("partition, several", lambda x: np.partition(x, (1, -2)), (LINE,), PARTED, dtypes=BOTH),
    *(
        Case(f"partition axis={axis}", lambda x, axis=axis: np.partition(x, 1, axis), (CUBE,), PARTED)
        for axis in (0, 1, -1, None)
    ),
    Case("partition introselect", lambda x: np.partition(x, [2], kind="introselect"), (CUBE,), PARTED),
    Case("partition of many", lambda x: np.partition(x, 20), (RNG.permutation(np.linspace(0, 1, 60)),), PARTED),
    Case("partition complex", lambda x: np.partition(x, 2), (WAVE,), PARTED, dtypes=BOTH),
    Case("partition in place", _in_place("partition", 4), (LINE,), PARTED),
    Case("partition ties", lambda x: np.partition(x, 2, 1), (TIES,), PARTED, rough="tie"),
    Case("partition NaN", lambda x: np.partition(x, 2), (GAPS,), PARTED, rough="nan", dtypes=BOTH),
)
COMPLEX: tuple[Case, ...] = (
    Case("sort_complex of real numbers", np.sort_complex, (CUBE,), ("sort_complex",), dtypes=ALL),
    Case("sort_complex", np.sort_complex, (WAVE,), ("sort_complex",), dtypes=BOTH),
)
PLACES: tuple[Case, ...] = (
    Case("places put twice", lambda x: np.quantile(x, [0.3, 0.3, 0.35]), (LINE,), ("put_at_places",), dtypes=ALL),
    Case("places picked by a quantile", np.quantile, (LINE, np.array(0.41)), ("pick_places",)),
    Case("places of complex numbers", lambda x: np.median(x, 0), (WAVE,), ("put_at_places",), dtypes=BOTH),
)

CASES: tuple[Case, ...] = (*SORT, *PARTITION, *COMPLEX, *PLACES)
