"""Conformance cases of diagonals and triangles."""


import numpy as np
from tests.primitives.case import Case, one

_rng = np.random.default_rng(8)
LINE = _rng.normal(size=4)
PLANE = _rng.normal(size=(3, 4))
CUBE = _rng.normal(size=(2, 3, 4))
WAVE = PLANE + 1j * _rng.normal(size=PLANE.shape)


def _diagonals() -> tuple[Case, ...]:
    views = ("diagonal", "view_diagonal", "place_diagonal")
    rows = [
        one(f"diagonal {o} {a}, {b}", lambda x, o=o, a=a, b=b: np.diagonal(x, o, a, b), CUBE, covers=views)
        for o, a, b in ((0, 0, 1), (1, -1, 0), (-2, 2, 1), (2, 1, 2), (9, 0, 1))
    ]
    rows += [
        one(f"diag of a line k={k}", lambda x, k=k: np.diag(x, k), LINE, covers=("diag", "place_diagonal"))
        for k in (0, 2, -1)
    ]
    rows += [
        one(f"diag of a plane k={k}", lambda x, k=k: np.diag(x, k), PLANE, covers=("diag", "view_diagonal"))
        for k in (0, 2, -1)
    ]
    for f, name in ((np.tril, "lower_triangle"), (np.triu, "upper_triangle")):
        rows += [
            one(f"{f.__name__} k={k}", lambda x, f=f, k=k: f(x, k), CUBE, covers=(f.__name__, name))
            for k in (0, 1, -2)
        ]
        rows += [
            one(f"{f.__name__} of a {what}", f, x, covers=(f.__name__, name))
            for what, x in (("line", LINE), ("wave", WAVE))
        ]
    rows += [
        one("diagflat", lambda x: np.diagflat(x, 1), PLANE),
        one("linalg.diagonal", lambda x: np.linalg.diagonal(x, offset=1), CUBE),
    ]
    return tuple(rows)


CASES: tuple[Case, ...] = (*_diagonals(),)
