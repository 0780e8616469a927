"""Functions of which something is known: staged ones, and gradients that the library has made."""

from contextlib import suppress
from contextvars import ContextVar
from typing import Any

CARRIED: ContextVar[Any] = ContextVar("pullback_carried", default=None)
"""How gradients are computed while a program of derivatives is made a stage; None at any other time."""


def staged_of(f: Any) -> Any:
    """What is known of a staged function; None for any other, one among them that was made to look like it, as by
    ``functools.wraps``."""
    known = getattr(f, "__pullback_staged__", None)
    return None if known is None or known.itself is None or known.itself() is not f else known


def gradient_of(f: Any) -> Any:
    """What is known of a gradient that the library has made; None for any other function, and where more is asked than
    which arguments."""
    hot = getattr(f, "__pullback_hot__", None)
    return None if hot is None or hot.itself is None or hot.itself() is not f or not hot.usual else hot


def calls_staged(f: Any) -> bool:
    """Whether a function names a staged one, or a gradient, among what it reads from outside."""
    code, names = getattr(f, "__code__", None), getattr(f, "__globals__", None)
    if code is None or names is None:
        return False
    found = [names[name] for name in code.co_names if name in names]
    for cell in f.__closure__ or ():
        with suppress(ValueError):  # of a name that has no value yet
            found.append(cell.cell_contents)
    return any(staged_of(one) is not None or gradient_of(one) is not None for one in found)


def behind(f: Any) -> Any:
    """The function that a staged one, or a gradient, is made of; None for any other."""
    known = staged_of(f) or gradient_of(f)
    return None if known is None else known.f
