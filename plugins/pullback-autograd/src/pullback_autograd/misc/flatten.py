"""Structures as vectors and back."""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb


def leaves_of(tree: Any) -> list[Any]:
    """The leaves of a structure, in order."""
    leaves: list[Any] = []

    def note(leaf: Any) -> Any:
        leaves.append(leaf)
        return leaf

    pb.map_leaves(note, tree)
    return leaves


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The leaves of a structure behind each other in one vector, dicts by sorted key, and the function back; both
    may be traced."""
    leaves = leaves_of(value)
    shapes = [np.shape(leaf) for leaf in leaves]
    ends = np.cumsum([0, *(int(np.prod(shape, dtype=np.intp)) for shape in shapes)])
    vector = np.concatenate([np.ravel(leaf) for leaf in leaves]) if leaves else np.zeros(0)

    def unflatten(vector: Any) -> Any:
        places = zip(shapes, ends, ends[1:], strict=False)
        parts = (np.reshape(vector[start:stop], shape) if shape else vector[start] for shape, start, stop in places)
        return pb.map_leaves(lambda _: next(parts), value)

    return vector, unflatten


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """``(function of a vector, unflatten, vector)`` for a function of a structure such as ``example``."""
    vector, unflatten = flatten(example)

    def of_vector(x: Any, *args: Any) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return of_vector, unflatten, vector


__all__ = ["flatten", "flatten_func"]
