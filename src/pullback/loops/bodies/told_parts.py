"""Parts of a state that no derivative reaches, such as a counter: what each is after a step, told by what they are
before it, in the tuples in which a body gets them and gives them back."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from attrs import frozen

from pullback.loops.bodies.deterministic_functions import NotTheSameError
from pullback.recording.handles import Handle


@frozen
class Parts:
    """Stands for a tuple of which some parts are told by the number of the step: what each is, None for the others."""

    each: tuple[Any, ...]


def parts_of(tags: Sequence[Any]) -> Parts | None:
    """What stands for a tuple of parts with these tags; None where none has one."""
    return Parts(tuple(tags)) if any(tag is not None for tag in tags) else None


def part(tag: Parts, key: Any) -> Any:
    """The tag of a part of a tuple, or of several of its parts."""
    found = tag.each[key]
    return parts_of(found) if isinstance(key, slice) else found


def tags_of(state: Any, told: Iterator[Callable[[int], Any]]) -> Any:
    """The tag of a state, whose leaves that no derivative reaches are ``told`` in turn."""
    if isinstance(state, Handle):
        return None
    if type(state) is tuple:
        return parts_of([tags_of(each, told) for each in state])
    if isinstance(state, NUMBERS):
        return next(told)
    raise NotTheSameError("a number or an array of whole numbers is in a state that is no tuple")


def told_ends(value: Any, tag: Any, first: int) -> list[tuple[int, Any]]:
    """The places, from ``first`` on, of what a step returns besides handles, each with what it is told by."""
    told: list[tuple[int, Any]] = []
    if tag is not None:
        _ends(value, tag, first, told)
    return told


def _ends(value: Any, tag: Any, at: int, told: list[tuple[int, Any]]) -> int:
    if isinstance(value, Handle) or value is None:
        return at
    if type(value) is tuple:
        tags = tag.each if isinstance(tag, Parts) else (None,) * len(value)
        for each, of_each in zip(value, tags, strict=True):
            at = _ends(each, of_each, at, told)
        return at
    if not isinstance(value, NUMBERS) or isinstance(tag, Parts):
        raise NotTheSameError("the number of the step goes into a state that is no tuple")
    if tag is not None:
        told.append((at, tag))
    return at + 1


NUMBERS: Final = (int, float, complex, np.generic, np.ndarray)
"""Leaves of a state."""
