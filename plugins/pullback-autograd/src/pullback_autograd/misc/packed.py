"""The floating and complex leaves of a structure as one vector, so that a structure passes through a primitive as one
array."""

from typing import Any

import numpy as np

import pullback as pb
from pullback_autograd.misc.flatten import flatten, leaves_of


class Carried:
    """The place of a leaf that stands in the vector: the class itself, of which every copy is the same."""


def carries_derivative(x: Any) -> bool:
    """True for floating and complex arrays and numbers."""
    return isinstance(x, float | complex) or getattr(getattr(x, "dtype", None), "kind", "") in {"f", "c"}


class Packing:
    """How the leaves of one structure stand in a vector; the others, integers say, are kept as they are."""

    def __init__(self, tree: Any) -> None:
        self.skeleton = pb.map_leaves(lambda leaf: Carried if carries_derivative(leaf) else leaf, tree)
        leaves = [leaf for leaf in leaves_of(tree) if carries_derivative(leaf)]
        self.shapes = [np.shape(leaf) for leaf in leaves]
        self.dtypes = [np.result_type(pb.value(leaf)) for leaf in leaves]

    def pack(self, tree: Any) -> Any:
        """The vector of a structure like the one that was given; None and missing leaves are zeros."""
        found: list[Any] = []

        def note(place: Any, leaf: Any) -> None:
            if place is Carried:
                shape, dtype = self.shapes[len(found)], self.dtypes[len(found)]
                found.append(np.zeros(shape, dtype) if leaf is None else np.broadcast_to(leaf, shape))

        pb.map_leaves(note, self.skeleton, tree)
        return flatten(found)[0]

    def unpack(self, vector: Any) -> Any:
        """The structure of a vector, each leaf in its own dtype."""
        parts = iter(self._parts(vector))
        return pb.map_leaves(lambda place: next(parts) if place is Carried else place, self.skeleton)

    def _parts(self, vector: Any) -> list[Any]:
        parts, start = [], 0
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            stop = start + int(np.prod(shape, dtype=np.intp))
            part = np.reshape(vector[start:stop], shape) if shape else vector[start]
            if dtype.kind == "f" and np.iscomplexobj(pb.value(part)):
                part = np.real(part)
            parts.append(part if np.result_type(pb.value(part)) == dtype else part.astype(dtype))
            start = stop
        return parts


def holds_tracer(tree: Any) -> bool:
    """True for a tracer, and for a list, tuple or dict with one inside."""
    if isinstance(tree, list | tuple):
        return any(map(holds_tracer, tree))
    if isinstance(tree, dict):
        return any(map(holds_tracer, tree.values()))
    return isinstance(tree, pb.Tracer)


__all__ = ["Packing", "carries_derivative", "holds_tracer"]
