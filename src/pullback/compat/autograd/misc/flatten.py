"""Structures as vectors and back."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.words.structures import flatten as leaves_of
from pullback.words.structures import unflatten as structure_of


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The leaves of a structure behind each other in one vector, dicts by sorted key, and the function back; both
    may be traced."""
    leaves, definition = leaves_of(value)
    shapes = [np.shape(leaf) for leaf in leaves]
    ends = np.cumsum([0, *(int(np.prod(shape, dtype=np.intp)) for shape in shapes)])
    vector = np.concatenate([np.ravel(leaf) for leaf in leaves]) if leaves else np.zeros(0)

    def unflatten(vector: Any) -> Any:
        parts = zip(shapes, ends, ends[1:], strict=False)
        return structure_of(
            definition,
            [np.reshape(vector[start:stop], shape) if shape else vector[start] for shape, start, stop in parts],
        )

    return vector, unflatten


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """``(function of a vector, unflatten, vector)`` for a function of a structure such as ``example``."""
    vector, unflatten = flatten(example)

    def of_vector(x: Any, *args: Any) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return of_vector, unflatten, vector


__all__ = ["flatten", "flatten_func"]
