"""What lies behind a tracer: its value, and the same value without its dependence on the inputs."""

from typing import Any

import numpy as np

from pullback.handles import SHARED, Handle, make, plain_value, read_only, resolve, tape_of
from pullback.recorder import captured
from pullback.tape import CAPTURED, PAUSED


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


def stands_for_a_value(handle: Any) -> bool:
    """Whether the trace of a handle is left alone, since a loop's body runs plainly."""
    return handle._tape.mode in (PAUSED, CAPTURED) and captured(handle, None)._tape.mode == PAUSED


def standing_for(x: Any) -> Any:
    """The value that such a handle stands for, to be read only; anything else as it is."""
    found = x
    while isinstance(found, Handle) and stands_for_a_value(found):
        found = resolve(captured(found, None))._value
    return found if found is x else read_only(found)
