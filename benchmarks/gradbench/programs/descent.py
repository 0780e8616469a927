"""Gradient descent as GradBench prescribes it, and the two derivatives that it is given."""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb

Function = Callable[[Any], Any]


def argmin(f: Function, gradient: Function, x: Any) -> Any:
    """Where ``f`` is least, from ``x``: the step doubles after ten successes, and halves where ``f`` does not fall."""
    value, slope = f(x), gradient(x)
    eta, successes = 1e-5, 0
    while np.sqrt(np.sum(slope**2)) > 1e-5:
        if successes == 10:
            eta, successes = 2 * eta, 0
            continue
        moved = x - eta * slope
        if np.sqrt(np.sum((moved - x) ** 2)) <= 1e-5:
            break
        moved_value = f(moved)
        if moved_value < value:
            x, value, slope, successes = moved, moved_value, gradient(moved), successes + 1
        else:
            eta, successes = eta / 2, 0
    return x


def reverse(f: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient by the first argument, in reverse mode."""
    return pb.grad(f)


def forward(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same in forward mode: a derivative for each component."""

    def gradient(x: Any, *others: Any) -> Any:
        return np.stack([pb.jvp(lambda x: f(x, *others), (x,), (unit,))[1] for unit in np.eye(len(x))])

    return gradient


MODES = {"r": reverse, "f": forward}
