"""Conformance cases of joining and splitting. Results that are lists are joined, so that a case gives one array."""


import numpy as np
from tests.primitives.case import Case, one, since, weigh

_rng = np.random.default_rng(8)
LINE = _rng.normal(size=4)
PLANE = _rng.normal(size=(3, 4))
CUBE = _rng.normal(size=(2, 3, 4))
WAVE = PLANE + 1j * _rng.normal(size=PLANE.shape)
SCALAR = np.array(1.25)
EMPTY = np.zeros((0, 3))


def _joins() -> tuple[Case, ...]:
    joined, stacked = ("concatenate", "join_concatenate"), ("stack", "join_stack")
    return (
        one("concatenate axis=1", lambda x, y: np.concatenate((x, y), axis=1), CUBE, CUBE[:, :1], covers=joined),
        one("concatenate axis=-1", lambda x, y: np.concatenate([x, y, x], -1), CUBE, CUBE[:, :, ::2], covers=joined),
        one("concatenate axis=None", lambda x, y: np.concatenate((x, y), axis=None), PLANE, SCALAR, covers=joined),
        one(
            "concatenate plain and list", lambda x: np.concatenate((x, [1.0, 2.0], np.arange(3))), LINE, covers=joined
        ),
        one("concatenate dtype", lambda x: np.concatenate((x, x), dtype=np.complex128), LINE, covers=joined),
        one("concatenate mixed", lambda x, y: np.concatenate((x, y.astype(np.complex128))), LINE, LINE, covers=joined),
        one("concatenate nothing", lambda x, y: np.concatenate((x, y)), EMPTY, PLANE[:, :3], covers=joined),
        one("concat", lambda x: np.concat((x, x)), WAVE, covers=joined),
        *(
            one(f"stack axis={a}", lambda x, y, a=a: np.stack((x, y, x), a), PLANE, PLANE[::-1], covers=stacked)
            for a in (0, 1, -1)
        ),
        one("stack 0-d", lambda x: np.stack([x, 2.0, x * x]), SCALAR, covers=stacked),
        one("stack dtype", lambda x: np.stack([x, x], dtype=np.complex128), LINE, covers=stacked),
        one("vstack", lambda x, y: np.vstack((x, y)), PLANE, LINE),
        one("hstack lines", lambda x, y: np.hstack((x, y)), LINE, SCALAR),
        one("hstack planes", lambda x, y: np.hstack((x, y)), PLANE, PLANE[:, :1]),
        one("dstack", lambda x, y: np.dstack((x, y)), PLANE, PLANE[::-1]),
        one("column_stack", lambda x, y: np.column_stack((x, y, x)), LINE, PLANE.T),
        one("append flat", np.append, PLANE, SCALAR),
        one("append axis", lambda x, y: np.append(x, y, axis=0), PLANE, PLANE[:1]),
        one("block nested", lambda x, y: np.block([[x, x[:, :1]], [y, 2.0]]), PLANE, LINE),
        one("block line", lambda x, y: np.block([x, y, 1.0]), LINE, SCALAR),
        one("block alone", np.block, LINE),
    )


def _splits() -> tuple[Case, ...]:
    return (
        one("split sections", lambda x: weigh(np.split(x, 2, axis=-1)), CUBE),
        one("split places", lambda x: weigh(np.split(x, [1, 3], 2)), CUBE),
        one("split places out of order", lambda x: weigh(np.split(x, [3, 1, 9])), LINE),
        one("array_split uneven", lambda x: weigh(np.array_split(x, 3, -1)), CUBE),
        one("hsplit", lambda x: weigh(np.hsplit(x, 3)), CUBE),
        one("hsplit line", lambda x: weigh(np.hsplit(x, 2)), LINE),
        one("vsplit", lambda x: weigh(np.vsplit(x, 2)), CUBE),
        one("dsplit", lambda x: weigh(np.dsplit(x, [1])), CUBE),
        *since("2.1.0", one("unstack", lambda x: weigh(np.unstack(x, axis=-2)), CUBE)),
    )


CASES: tuple[Case, ...] = (
    *_joins(),
    *_splits(),
)
