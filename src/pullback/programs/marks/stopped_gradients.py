"""``stop_gradient``: a value without its dependence on the inputs."""

from typing import Any

import numpy as np

from pullback.recording.handles import SHARED, Handle, make, tape_of, twin_of, value_now
from pullback.recording.tape import PAUSED
from pullback.words.structures import map_leaves


def stop_gradient(x: Any) -> Any:
    """``x`` with no dependence on the inputs: the same values, zero derivative.

    Parameters
    ----------
    x
        A tracer, or a structure, leaf by leaf. What is no tracer stays as it is.

    Returns
    -------
    The same structure.

    Example
    -------
    >>> import pullback as pb
    >>> float(pb.grad(lambda x: x * pb.stop_gradient(x))(3.0))
    3.0
    """
    return map_leaves(_stopped, x)


def _stopped(x: Any) -> Any:
    """A traced array without dependence on the inputs; scalars are given plain, and of a plain array a copy: a later
    write to ``x`` shows in neither."""
    if not isinstance(x, Handle):
        return twin_of(x) if type(x) is np.ndarray else x
    plain = value_now(x)
    tape = tape_of((x,), "stop_gradient")
    if tape.mode == PAUSED or not isinstance(plain, np.ndarray):
        return plain
    return make(tape.kinds.buffer, plain, None, tape, SHARED)
