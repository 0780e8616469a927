"""What lies behind a tracer: its value, and the same value without its dependence on the inputs."""

from typing import Any

import numpy as np

from pullback.handles import SHARED, Handle, make, plain_value, read_only, tape_of
from pullback.tape import PAUSED


def value(x: Any) -> Any:
    """The concrete value behind a tracer, as a read-only view; anything else as it is."""
    if not isinstance(x, Handle):
        return x
    return read_only(plain_value(x))


def detached(x: Any) -> Any:
    """A traced array without dependence on the inputs; scalars and untraced values are given plain."""
    if not isinstance(x, Handle):
        return x
    plain = plain_value(x)
    tape = tape_of((x,), "stop_gradient")
    if tape.mode == PAUSED or not isinstance(plain, np.ndarray):
        return plain
    return make(tape.kinds.buffer, plain, None, tape, SHARED)
