"""What programs take from ``autograd.tracer``: ``getval`` and ``isbox``."""

from typing import Any

import pullback as pb
from pullback_autograd.extend import notrace_primitive, primitive


def getval(x: Any) -> Any:
    """The concrete value behind a tracer of any level, read-only; anything else as it is."""
    return pb.value(x)


def isbox(x: Any) -> bool:
    """True for a tracer."""
    return isinstance(x, pb.Tracer)


__all__ = ["getval", "isbox", "notrace_primitive", "primitive"]
