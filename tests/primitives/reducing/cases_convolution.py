"""Conformance cases of convolve and correlate: every relation of lengths, every mode."""

from functools import partial

import numpy as np
from tests.primitives.case import Case

RNG = np.random.default_rng(3)
LINE = RNG.normal(size=7)
PLANE, BOX = RNG.normal(size=(4, 5)), RNG.normal(size=(3, 4, 5))
WAVE = RNG.normal(size=6) + 1j * RNG.normal(size=6)
STEP = np.array(0.3)
BOTH = ("float32", "float64")
ALL = ("float16", "float32", "float64", "longdouble")


def _pairs(line):
    """Lines of every relation of lengths."""
    cuts = ((6, 3), (3, 6), (6, 2), (4, 6), (5, 5), (1, 4), (4, 1), (2, 6))
    return tuple((line[:n], line[len(line) - m :]) for n, m in cuts)


CONVOLUTION: tuple[Case, ...] = (
    *(
        Case(f"{f.__name__} {mode}, {len(a)} and {len(v)}, {kind}", partial(f, mode=mode), (a, v), covers,
            dtypes=dtypes)
        for f,
        covers in ((np.convolve, ("convolve", "convolve_lines")), (np.correlate, ("correlate", "correlate_lines")))
        for mode in ("full", "same", "valid")
        for kind, line, dtypes in (("real", LINE, BOTH), ("complex", WAVE, ("float64",)))
        for a, v in _pairs(line)
    ),
    *(Case(f"convolve, mode {n}", lambda a, v, n=n: np.convolve(a, v, n), (LINE, LINE[:4]),
        ("convolve",)) for n in range(3)),
    *(Case(f"correlate, mode {n}", lambda a, v, n=n: np.correlate(a, v, n), (LINE[:2], LINE),
        ("correlate",)) for n in range(3)),
    Case("convolve with itself", lambda a: np.convolve(a, a), (LINE,), ("convolve",), dtypes=ALL),
    Case("convolve with integers", lambda a: np.convolve([1, 2, 1], a, mode="same"), (LINE,), ("convolve",),
        dtypes=BOTH),
    Case("convolve 0-d", np.convolve, (STEP, LINE), ("convolve",)),
    Case("correlate by default", np.correlate, (LINE, LINE[:3]), ("correlate",), dtypes=BOTH),
    Case("correlate real with complex", np.correlate, (LINE, WAVE[:3]), ("correlate",)),
    Case("convolve strided", lambda a, v: np.convolve(a[:, 1], v[::-2]), (PLANE, LINE), ("convolve",)),
)  # fmt: skip


CASES: tuple[Case, ...] = (*CONVOLUTION,)
