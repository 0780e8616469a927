"""Conformance cases of bincount and the histograms."""

import numpy as np
from tests.primitives.case import Case

RNG = np.random.default_rng(10)
BOTH = ("float32", "float64")

NUMBERS = np.array([0, 3, 1, 3, 3, 0])
DATA = RNG.uniform(-2, 3, 40)
PAIR = RNG.normal(size=(30, 2))
HEAVY, HEAVIER = RNG.uniform(0.5, 2, 40), RNG.uniform(0.5, 2, 30)
EDGES = np.array([-1.5, -0.25, 0.5, 0.75, 2.0])
COUNTS, EVEN = ("histogram", "weighted_histogram"), ("histogram", "even_edges")
PLANE = ("histogramdd", "weighted_histogram_nd")
HISTOGRAMS: tuple[Case, ...] = (
    Case("bincount", lambda w: np.bincount(NUMBERS, w), (HEAVY[:6],), ("bincount", "count_weights"), dtypes=BOTH),
    Case(
        "bincount minlength",
        lambda w: np.bincount(NUMBERS, weights=w, minlength=7),
        (HEAVY[:6],),
        ("bincount", "count_weights"),
    ),
    Case("histogram weights", lambda w: np.histogram(DATA, weights=w), (HEAVY,), COUNTS, dtypes=BOTH),
    Case("histogram weights range", lambda w: np.histogram(DATA, 6, (-1, 2), weights=w), (HEAVY,), COUNTS),
    Case("histogram weights edges", lambda w: np.histogram(DATA, EDGES, weights=w), (HEAVY,), COUNTS, dtypes=BOTH),
    Case("histogram weights density", lambda w: np.histogram(DATA, EDGES, density=True, weights=w), (HEAVY,), COUNTS),
    Case("histogram complex weights", lambda w: np.histogram(DATA, 4, weights=w), (HEAVY + 1j * DATA,), COUNTS),
    Case(
        "histogram of a table", lambda w: np.histogram(DATA.reshape(5, 8), 4, weights=w), (HEAVY.reshape(5, 8),), COUNTS
    ),
    Case(
        "histogram data and weights",
        lambda x, w: np.histogram(x, 5, weights=w),
        (DATA, HEAVY),
        (*COUNTS, *EVEN),
        dtypes=BOTH,
    ),
    Case(
        "histogram density", lambda x, w: np.histogram(x, 5, density=True, weights=w), (DATA, HEAVY), (*COUNTS, *EVEN)
    ),
    Case("histogram data", np.histogram, (DATA,), EVEN, dtypes=BOTH),
    Case("histogram data density", lambda x: np.histogram(x, 4, density=True), (DATA,), EVEN, dtypes=BOTH),
    Case("histogram estimated bins", lambda x: np.histogram(x, "sturges"), (DATA,), EVEN),
    Case(
        "histogram data range",
        lambda x: np.histogram(x, 5, (-1, 2), density=True)[0] + np.sum(x),
        (DATA,),
        ("histogram",),
    ),
    Case("histogram traced edges", lambda e: np.histogram(DATA, e, density=True), (EDGES,), ("histogram",)),
    Case("histogram of one value", lambda x: np.histogram(x, 3), (np.array([1.5]),), EVEN),
    Case("histogram of nothing", lambda w: np.histogram(np.zeros(0), 3, weights=w), (np.zeros(0),), COUNTS),
    Case(
        "histogram_bin_edges",
        lambda x: np.histogram_bin_edges(x, 7),
        (DATA,),
        ("histogram_bin_edges", "even_edges"),
        dtypes=BOTH,
    ),
    Case("histogram_bin_edges estimated", lambda x: np.histogram_bin_edges(x, "fd"), (DATA,), ("histogram_bin_edges",)),
    Case("histogram_bin_edges given", lambda e: np.histogram_bin_edges(DATA, e), (EDGES,), ("histogram_bin_edges",)),
    Case(
        "histogram_bin_edges traced range",
        lambda x, t: np.histogram_bin_edges(x, 3, (t[0], t[1])),
        (DATA, np.array([-1.0, 1.5])),
        ("histogram_bin_edges",),
    ),
    Case(
        "histogram2d weights",
        lambda w: np.histogram2d(*PAIR.T, 4, weights=w),
        (HEAVIER,),
        ("histogram2d", *PLANE),
        dtypes=BOTH,
    ),
    Case(
        "histogram2d bins range",
        lambda w: np.histogram2d(*PAIR.T, (3, 4), [(-1, 1), (-2, 2)], weights=w),
        (HEAVIER,),
        ("histogram2d",),
    ),
    Case("histogram2d edges", lambda w: np.histogram2d(*PAIR.T, EDGES, weights=w), (HEAVIER,), ("histogram2d",)),
    Case(
        "histogram2d mixed", lambda w: np.histogram2d(*PAIR.T, [EDGES, 3], None, True, w), (HEAVIER,), ("histogram2d",)
    ),
    Case(
        "histogram2d data",
        lambda x, y: np.histogram2d(x, y, 3, density=True),
        tuple(PAIR.T),
        ("histogram2d", "even_edges"),
    ),
    Case("histogramdd", lambda x, w: np.histogramdd(x, 3, weights=w), (PAIR, HEAVIER), PLANE, dtypes=BOTH),
    Case(
        "histogramdd density",
        lambda x, w: np.histogramdd(x, [2, EDGES], density=True, weights=w),
        (PAIR, HEAVIER),
        PLANE,
    ),
    Case("histogramdd of a line", lambda x, w: np.histogramdd(x, (4,), weights=w), (DATA, HEAVY), PLANE),
    Case("histogramdd data", lambda x: np.histogramdd(x, 3), (PAIR,), ("histogramdd", "even_edges")),
    Case(
        "histogramdd of columns",
        lambda x, y: np.histogramdd((x, y), 3, [None, (-2, 2)]),
        tuple(PAIR.T),
        ("histogramdd",),
    ),
)


CASES: tuple[Case, ...] = (*HISTOGRAMS,)
