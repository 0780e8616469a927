"""What programs take from ``autograd.tracer``: values behind tracers, and nodes for programs that look at a run."""

from typing import Any

import pullback as pb
from pullback_autograd.extend import Box, notrace_primitive, primitive, register_notrace
from pullback_autograd.nodes import Node, trace
from pullback_autograd.util import subval, subvals, toposort


def getval(x: Any) -> Any:
    """The concrete value behind a tracer of any level, read-only; anything else as it is."""
    return pb.value(x)


def isbox(x: Any) -> bool:
    """True for a tracer."""
    return isinstance(x, pb.Tracer)


__all__ = [
    "Box", "Node", "getval", "isbox", "notrace_primitive", "primitive", "register_notrace", "subval", "subvals",
    "toposort", "trace",
]  # fmt: skip
