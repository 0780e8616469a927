"""The part of a structure that has derivatives: its floating and complex leaves."""

from collections.abc import Callable
from typing import Any

from pullback.words.specs import carries_derivative
from pullback.words.structures import flatten, unflatten


def inexact_leaves(tree: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """The floating and complex leaves, and the function that puts others in their places and leaves the rest as it
    is."""
    leaves, definition = flatten(tree)
    places = [k for k, leaf in enumerate(leaves) if carries_derivative(leaf)]

    def rebuild(moved: list[Any]) -> Any:
        full = list(leaves)
        for place, leaf in zip(places, moved, strict=True):
            full[place] = leaf
        return unflatten(definition, full)

    return [leaves[k] for k in places], rebuild
