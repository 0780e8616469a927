"""Writes to a part of an array, as functions that statements name, and what each does to the part."""

from typing import Any

from pullback.recording.regions import Region


def PUT(target: Any, key: Any, value: Any) -> None:  # noqa: N802 - a constant, told by identity
    """A part becomes something else."""
    target[key] = value


def ADD_TO(target: Any, key: Any, value: Any) -> None:  # noqa: N802
    """Something is added to a part."""
    target[key] += value


def TAKE_FROM(target: Any, key: Any, value: Any) -> None:  # noqa: N802
    """Something is taken away from a part."""
    target[key] -= value


WRITES = {"=": PUT, "+=": ADD_TO, "-=": TAKE_FROM}
BASIC_WRITES = {write: sign for sign, write in WRITES.items()}
"""Writes by a basic key, as they are written."""


def sign_of(function: Any) -> str:
    """How a write is written, by one of these functions or by a method of a region: ``=``, ``+=``, ``-=``; else
    nothing."""
    region = getattr(function, "__self__", None)
    if type(region) is not Region:
        return BASIC_WRITES.get(function, "")
    return "=" if function.__name__ == "write" else "-=" if region.subtracts else "+="
