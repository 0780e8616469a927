"""Conformance cases of np.polyfit."""

import numpy as np
from tests.primitives.case import Case

RNG = np.random.default_rng(5)
COMPLEX = RNG.normal(size=4) + 1j * RNG.normal(size=4)
BOTH = ("float32", "float64")

T = np.array([0.1, 0.5, 0.9, 1.4, 2.2, 2.5, 3.1])
Y, W = np.sin(T) + 0.1 * RNG.normal(size=7), np.array([1.0, 0.5, 2.0, 1.5, 0.8, 1.2, 0.7])
YS = np.stack([Y, np.cos(T) - Y], axis=1)
FIT = ("polyfit", "polynomial_fit")
FITS: tuple[Case, ...] = (
    Case("polyfit", lambda x, y: np.polyfit(x, y, 2), (T, Y), FIT, dtypes=BOTH),
    Case("polyfit of y", lambda y: np.polyfit(T, y, 3), (Y,), FIT, dtypes=BOTH),
    Case("polyfit of integers", lambda y: np.polyfit([0, 1, 2, 3, 4, 5, 6], y, 2), (Y,), FIT),
    Case("polyfit at x", lambda x: np.polyfit(x, [1, 2, 2, 4, 3, 5, 7], deg=1), (T,), FIT),
    Case(
        "polyfit, weights",
        lambda x, y, w: np.polyfit(x, y, 2, w=w),
        (T, Y, W),
        (*FIT, "weighted_polynomial_fit"),
        dtypes=BOTH,
    ),
    Case("polyfit, weights alone", lambda w: np.polyfit(T, Y, 2, None, False, w), (W,), FIT),
    Case("polyfit of columns", lambda x, y, w: np.polyfit(x, y, 2, w=w), (T, YS, W), FIT),
    Case("polyfit, a constant", lambda x, y: np.polyfit(x, y, 0), (T, Y), FIT),
    Case("polyfit through all", lambda x, y: np.polyfit(x, y, 3), (T[:4], Y[:4]), FIT),
    Case(
        "polyfit full",
        lambda x, y, w: tuple(v for v in np.polyfit(x, y, 2, full=True, w=w) if np.ndim(v)),
        (T, Y, W),
        FIT,
        dtypes=BOTH,
    ),
    Case("polyfit full of columns", lambda x, y: np.polyfit(x, y, 1, full=True, rcond=1e-9)[:2], (T, YS), FIT),
    Case(
        "polyfit cov",
        lambda x, y, w: np.polyfit(x, y, 2, w=w, cov=True),
        (T, Y, W),
        (*FIT, "polynomial_fit_covariance"),
        dtypes=BOTH,
    ),
    Case("polyfit cov of columns", lambda x, y: np.polyfit(x, y, 1, cov=True), (T, YS), FIT),
    Case("polyfit cov unscaled", lambda x, y: np.polyfit(x, y, 1, cov="unscaled"), (T, YS), FIT),
    Case("polyfit complex", lambda x, y: np.polyfit(x, y, 1), (T[:4], COMPLEX), FIT),
    Case("polyfit at complex", lambda x, y: np.polyfit(x, y, 1), (COMPLEX, COMPLEX**2), FIT),
)


CASES: tuple[Case, ...] = (*FITS,)
