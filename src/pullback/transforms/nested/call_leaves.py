"""What enters a call of a derivative, as one list of leaves: its arguments, and what the function has from around it.

A function that is made anew in each call, ``lambda x: f(x, *others)``, counts as the same while its code is: the
content of its cells, and its defaults, enter like an argument. A leaf is *active* where it is a value of the trace
around, *still* where it is plain and may be another number in the next call, else *fixed*: compared with what it was.
"""

from collections.abc import Sequence
from types import CellType, FunctionType
from typing import Any

import numpy as np
from attrs import frozen

from pullback.recording.handles import Handle
from pullback.recording.tape import FORWARD, Tape
from pullback.staging.calls.inlined_run import is_stale
from pullback.words.sameness import same_content

MOST_BYTES = 4096
"""The most bytes of an array that enters: where it is larger, what is saved is little."""
MOST_LEAVES = 64
"""The most leaves of a call: all are compared in each."""
_NUMBERS = frozenset((np.float64, np.float32))
_FIXED = frozenset((int, float, bool, str, type(None), np.int64, np.int32))
ACTIVE, STILL, FIXED = "active", "still", "fixed"


def leaves_of(f: FunctionType, args: Sequence[Any]) -> tuple[list[Any], tuple[int, ...]] | None:
    """The arguments, the defaults and what is in the cells, tuples by their parts; and how many defaults there are, and
    how many parts each cell has, -1 for one that is no tuple. None where a cell is empty, and where there are many."""
    defaults = f.__defaults__ or ()
    leaves, parts = [*args, *defaults], [len(defaults)]
    for cell in f.__closure__ or ():
        try:
            held = cell.cell_contents
        except ValueError:
            return None
        if type(held) is tuple:
            leaves += held
            parts.append(len(held))
        else:
            leaves.append(held)
            parts.append(-1)
    return (leaves, tuple(parts)) if len(leaves) <= MOST_LEAVES else None


def filled(f: FunctionType, n_args: int, parts: Sequence[int], leaves: Sequence[Any]) -> tuple[FunctionType, list[Any]]:
    """The function with other leaves, and its arguments."""
    left = iter(leaves[n_args:])
    defaults, *cells = [next(left) if n < 0 else tuple(next(left) for _ in range(n)) for n in parts]
    made = FunctionType(f.__code__, f.__globals__, f.__name__, defaults, tuple(map(CellType, cells)))
    return made, list(leaves[:n_args])


@frozen
class LeafKind:
    """What a leaf of a later call is compared with."""

    what: str
    type: Any
    value: Any = None
    """The value of a fixed leaf."""
    shape: tuple[int, ...] = ()
    dtype: Any = None
    strides: tuple[int, ...] = ()
    tangent: "LeafKind | None" = None
    """The kind of the tangent of an active leaf of a forward trace."""

    def admits(self, value: Any) -> bool:
        """Whether a plain value is of the type, shape, dtype and strides."""
        if type(value) is not self.type:
            return False
        return self.type is not np.ndarray or (
            value.shape == self.shape and value.dtype == self.dtype and value.strides == self.strides
        )


def kind_of_leaf(leaf: Any, around: Tape | None, *, argument: bool) -> LeafKind | None:
    """The kind of a leaf; None where such a call is left to the ordinary way."""
    if isinstance(leaf, Handle):
        if not _is_active(leaf, around):
            return None
        value, kind = leaf._value, _plain_kind(leaf._value, ACTIVE)
        if kind is None or around is None or around.mode != FORWARD:
            return kind
        tangent: Any = leaf._id
        of_tangent = _plain_kind(tangent.value, STILL)
        alike = of_tangent is not None and of_tangent.shape == kind.shape and of_tangent.type is type(value)
        return LeafKind(ACTIVE, kind.type, None, kind.shape, kind.dtype, kind.strides, of_tangent) if alike else None
    kind = _plain_kind(leaf, STILL)
    if kind is not None or argument:
        return kind
    fixed = type(leaf) in _FIXED or callable(leaf)
    return LeafKind(FIXED, type(leaf), leaf) if fixed else None


def _is_active(leaf: Any, around: Tape | None) -> bool:
    if around is None or leaf._tape is not around or leaf._id is None or type(leaf) is around.kinds.weak:
        return False
    return not (type(leaf) is around.kinds.view and is_stale(leaf))


def _plain_kind(value: Any, what: str) -> LeafKind | None:
    if type(value) in _NUMBERS:
        return LeafKind(what, type(value))
    if type(value) is np.ndarray and value.dtype.char in "fd" and value.dtype.isnative and value.nbytes <= MOST_BYTES:
        return LeafKind(what, np.ndarray, None, value.shape, value.dtype, value.strides)
    return None


def fits(kinds: Sequence[LeafKind], leaves: Sequence[Any], around: Tape | None) -> bool:
    """Whether the leaves of a call are of these kinds; the active ones are different values."""
    if len(kinds) != len(leaves):
        return False
    met = []
    for kind, leaf in zip(kinds, leaves):  # noqa: B905 - there are as many
        what = kind.what
        if what is ACTIVE:
            if not (isinstance(leaf, Handle) and _is_active(leaf, around) and kind.admits(leaf._value)):
                return False
            ident: Any = leaf._id
            if ident in met or (kind.tangent is not None and not kind.tangent.admits(ident.value)):
                return False
            met.append(ident)
        elif what is STILL:
            if not kind.admits(leaf):
                return False
        elif leaf is not kind.value and (callable(leaf) or not same_content(kind.value, leaf)):
            return False
    return True


def kinds_of_call(leaves: Sequence[Any], n_args: int, around: Tape | None) -> list[LeafKind] | None:
    """The kinds of all leaves; None where such a call is left to the ordinary way."""
    kinds = []
    for k, leaf in enumerate(leaves):
        kind = kind_of_leaf(leaf, around, argument=k < n_args)
        if kind is None:
            return None
        kinds.append(kind)
    return kinds if fits(kinds, leaves, around) else None
