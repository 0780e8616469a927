"""What programs take from ``autograd.tracer``: ``getval`` and ``isbox``."""

from typing import Any

from pullback.compat.autograd.extend import notrace_primitive, primitive
from pullback.recording.handles import Handle, value


def getval(x: Any) -> Any:
    """The concrete value behind a tracer of any level, read-only; anything else as it is."""
    return value(x)


def isbox(x: Any) -> bool:
    """True for a tracer."""
    return isinstance(x, Handle)


__all__ = ["getval", "isbox", "notrace_primitive", "primitive"]
