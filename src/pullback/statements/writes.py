"""Writes to a part of an array, as functions that statements name."""

from typing import Any


def PUT(target: Any, key: Any, value: Any) -> None:  # noqa: N802 - a constant, told by identity
    """A part becomes something else."""
    target[key] = value


def ADD_TO(target: Any, key: Any, value: Any) -> None:  # noqa: N802
    """Something is added to a part."""
    target[key] += value


def TAKE_FROM(target: Any, key: Any, value: Any) -> None:  # noqa: N802
    """Something is taken away from a part."""
    target[key] -= value


BASIC_WRITES = {PUT: "=", ADD_TO: "+=", TAKE_FROM: "-="}
"""Writes by a basic key, as they are written."""
ELEMENTWISE_WRITES = frozenset(BASIC_WRITES)
