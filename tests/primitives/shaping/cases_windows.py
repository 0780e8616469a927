"""Conformance cases of sliding windows."""

import numpy as np
from tests.primitives.case import Case

from pullback.primitives.shaping.windows import strided

BOTH = ("float32", "float64")
windows = np.lib.stride_tricks.sliding_window_view
LINE, PAGE, CUBE = (
    np.cos(np.arange(7.0)),
    np.sin(np.arange(20.0)).reshape(4, 5),
    np.sin(np.arange(24.0)).reshape(2, 3, 4),
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


STRIDED = ("view_strided", "add_strided")
VIEWS: tuple[Case, ...] = (
    Case("strided frames", lambda x: strided(x, shape=(3, 3), steps=(2, 1)) ** 2, (LINE,), STRIDED, dtypes=BOTH),
    Case("strided, one place often", lambda x: strided(x, shape=(2, 3, 2), steps=(0, 5, 1)), (PAGE,), STRIDED),
    Case("strided, complex", lambda x: strided(x, shape=(4,), steps=(1,))[1:], (LINE + 1j * LINE[::-1],), STRIDED),
)

CASES: tuple[Case, ...] = (*WINDOWS, *VIEWS)
