"""Loop functions where nothing is held, as the plain loops that they are: outside any trace, and in forward mode."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.loops.rerun import Steps, value_for, writable
from pullback.recording.handles import Handle, freeze, make, plain_value, twin_of
from pullback.recording.tape import Tape
from pullback.words.specs import carries_derivative


def run_untraced(steps: Steps, state: list[Any], n: int | None, goes_on: Callable[[list[Any]], bool]) -> list[Any]:
    """The leaves of the last state and the stacked outputs, of ``n`` steps on arrays of our own, or as long as the loop
    goes on."""
    if n or (n is None and goes_on(state)):
        k = 0
        with steps.on_values():
            state = [twin_of(leaf) for leaf in state]
            while True:
                state = steps.plain(k, state)
                k += 1
                if k == n or (n is None and not goes_on(state)):
                    break
    return [*state, *steps.outputs.taken()]


def run_forward_mode(
    steps: Steps,
    leaves: list[Any],
    xs: list[Any] | None,
    n: int | None,
    goes_on: Callable[[list[Any]], bool],
) -> list[Any]:
    """The same on handles of a forward trace: nothing of a step is held once the next has run."""
    tape = steps.enclosing
    assert tape is not None  # the forward trace
    state, ys, k = [_movable(leaf, tape) for leaf in leaves], [], 0
    while k < n if n is not None else goes_on([plain_value(leaf) for leaf in state]):
        before = writable(state)
        state, y = steps.call_body(k + steps.lower, before, None if xs is None else [leaf[k] for leaf in xs])
        steps.require_same_specs([value_for(h, tape) for h in before], [value_for(h, tape) for h in state], k)
        ys.append(y)
        k += 1
    return [*state, *(np.stack(column) for column in zip(*ys, strict=True))]


def _movable(leaf: Any, tape: Tape) -> Any:
    """A leaf of the state that a body may write to: a plain array becomes a buffer of the trace."""
    if isinstance(leaf, np.ndarray) and carries_derivative(leaf):
        return make(tape.kinds.buffer, twin_of(leaf), None, tape)
    return freeze(leaf) if isinstance(leaf, Handle) and leaf._tape is tape else leaf
