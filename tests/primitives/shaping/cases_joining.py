"""Conformance cases of joining and splitting. Results that are lists are joined, so that a case gives one array."""

from typing import Any

import numpy as np
from tests.primitives.case import Case, since

_rng = np.random.default_rng(8)
LINE = _rng.normal(size=4)
PLANE = _rng.normal(size=(3, 4))
CUBE = _rng.normal(size=(2, 3, 4))
WAVE = PLANE + 1j * _rng.normal(size=PLANE.shape)
SCALAR = np.array(1.25)
EMPTY = np.zeros((0, 3))


def _weigh(parts: Any) -> Any:
    """One array that depends on every part, differently on each."""
    return sum(((k + 1) * np.sum(part * part) for k, part in enumerate(parts)), 0.0)


def _one(name: str, function: Any, *arrays: Any, covers: tuple[str, ...] = (), **kwargs: Any) -> Case:
    return Case(name, function, arrays, covers or (name.split(maxsplit=1)[0],), **kwargs)


def _joins() -> tuple[Case, ...]:
    joined, stacked = ("concatenate", "join_concatenate"), ("stack", "join_stack")
    return (
        _one("concatenate axis=1", lambda x, y: np.concatenate((x, y), axis=1), CUBE, CUBE[:, :1], covers=joined),
        _one("concatenate axis=-1", lambda x, y: np.concatenate([x, y, x], -1), CUBE, CUBE[:, :, ::2], covers=joined),
        _one("concatenate axis=None", lambda x, y: np.concatenate((x, y), axis=None), PLANE, SCALAR, covers=joined),
        _one(
            "concatenate plain and list", lambda x: np.concatenate((x, [1.0, 2.0], np.arange(3))), LINE, covers=joined
        ),
        _one("concatenate dtype", lambda x: np.concatenate((x, x), dtype=np.complex128), LINE, covers=joined),
        _one("concatenate mixed", lambda x, y: np.concatenate((x, y.astype(np.complex128))), LINE, LINE, covers=joined),
        _one("concatenate nothing", lambda x, y: np.concatenate((x, y)), EMPTY, PLANE[:, :3], covers=joined),
        _one("concat", lambda x: np.concat((x, x)), WAVE, covers=joined),
        *(
            _one(f"stack axis={a}", lambda x, y, a=a: np.stack((x, y, x), a), PLANE, PLANE[::-1], covers=stacked)
            for a in (0, 1, -1)
        ),
        _one("stack 0-d", lambda x: np.stack([x, 2.0, x * x]), SCALAR, covers=stacked),
        _one("stack dtype", lambda x: np.stack([x, x], dtype=np.complex128), LINE, covers=stacked),
        _one("vstack", lambda x, y: np.vstack((x, y)), PLANE, LINE),
        _one("hstack lines", lambda x, y: np.hstack((x, y)), LINE, SCALAR),
        _one("hstack planes", lambda x, y: np.hstack((x, y)), PLANE, PLANE[:, :1]),
        _one("dstack", lambda x, y: np.dstack((x, y)), PLANE, PLANE[::-1]),
        _one("column_stack", lambda x, y: np.column_stack((x, y, x)), LINE, PLANE.T),
        _one("append flat", np.append, PLANE, SCALAR),
        _one("append axis", lambda x, y: np.append(x, y, axis=0), PLANE, PLANE[:1]),
        _one("block nested", lambda x, y: np.block([[x, x[:, :1]], [y, 2.0]]), PLANE, LINE),
        _one("block line", lambda x, y: np.block([x, y, 1.0]), LINE, SCALAR),
        _one("block alone", np.block, LINE),
    )


def _splits() -> tuple[Case, ...]:
    return (
        _one("split sections", lambda x: _weigh(np.split(x, 2, axis=-1)), CUBE),
        _one("split places", lambda x: _weigh(np.split(x, [1, 3], 2)), CUBE),
        _one("split places out of order", lambda x: _weigh(np.split(x, [3, 1, 9])), LINE),
        _one("array_split uneven", lambda x: _weigh(np.array_split(x, 3, -1)), CUBE),
        _one("hsplit", lambda x: _weigh(np.hsplit(x, 3)), CUBE),
        _one("hsplit line", lambda x: _weigh(np.hsplit(x, 2)), LINE),
        _one("vsplit", lambda x: _weigh(np.vsplit(x, 2)), CUBE),
        _one("dsplit", lambda x: _weigh(np.dsplit(x, [1])), CUBE),
        *since("2.1.0", _one("unstack", lambda x: _weigh(np.unstack(x, axis=-2)), CUBE)),
    )


CASES: tuple[Case, ...] = (
    *_joins(),
    *_splits(),
)
