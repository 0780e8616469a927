"""What a message says of itself: the number of the communication, its kind, and what it is of. The one who gets it
compares that with what itself is at, so no message is taken for another."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_EDGES = ("axis", "before", "after", "periodic", "dtype", "number of axes")
_STARTED = (*_EDGES, "which of those under way")
_ARRAY = ("dtype", "number of axes", *(f"length {k}" for k in range(6)))
TERMS_OF: dict[str, tuple[str, ...]] = {
    "the end of the program": (), "an agreed point": (), "agreeing on numbers": ("how many", "from"),
    "halo": _EDGES, "the adjoint of halo": _EDGES,
    "start": _STARTED, "the adjoint of finish": _STARTED,
    "total": _ARRAY, "shared": (), "gather": ("root", "dtype", "number of axes"),
    "scatter": ("root", "of its own"), "bcast": ("root",),
}  # fmt: skip
"""The kinds of communications, with what their terms are called. Those that are each other's adjoint, as ``total`` and
``shared``, bear one name wherever they are called."""
KINDS = tuple(TERMS_OF)

SERIAL, KIND, TERMS, LOCAL, CARRIED, WORDS = 0, 1, 2, 10, 20, 28
WHICH = TERMS + len(_EDGES)
"""The places of a head: the number, the kind, eight terms that are the same on every rank, ten of this rank's own, and
64 bytes in which a small array is carried along."""

Head = NDArray[np.int64]


def new_head(kind: str, terms: Sequence[int] = (), local: Sequence[int] = ()) -> Head:
    """A head without a number."""
    head: Head = np.zeros(WORDS, np.int64)
    head[KIND] = KINDS.index(kind)
    head[TERMS : TERMS + len(terms)] = terms
    head[LOCAL : LOCAL + len(local)] = local
    return head


def of_array(array: NDArray[np.generic]) -> tuple[int, ...]:
    """What a head says of an array: dtype, number of axes, shape."""
    return array.dtype.num, array.ndim, *array.shape


def shape_of(head: Head) -> tuple[int, ...]:
    """The shape that the own terms of a head tell, as :func:`of_array` has put it there."""
    ndim = int(head[LOCAL + 1])
    return tuple(int(n) for n in head[LOCAL + 2 : LOCAL + 2 + ndim])


def dtype_of(number: int) -> np.dtype[Any]:
    """The dtype that NumPy gives a number."""
    return next(dtype for c in np.typecodes["All"] if (dtype := np.dtype(c)).num == number)


def said(head: Sequence[int] | Head) -> str:
    """A head as a part of a sentence."""
    kind = KINDS[int(head[KIND])]
    terms = [
        f"{name} {dtype_of(int(term)) if name == 'dtype' else int(term)}"
        for name, term in zip(TERMS_OF[kind], head[TERMS:LOCAL], strict=False)
        if term or not name.startswith("length")
    ]
    return f"communication {int(head[SERIAL])}, {kind}" + (f" ({', '.join(terms)})" if terms else "")
