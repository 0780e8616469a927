"""Three gradient methods for parameters of any structure. ``grad(x, i)`` is the gradient at step i;
``callback(x, i, g)`` looks on."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_autograd.misc.flatten import flatten

Gradient = Callable[[Any, int], Any]
Update = Callable[[Any, Any, int], Any]


def _descend(grad: Gradient, x0: Any, callback: Any, num_iters: int, update: Update) -> Any:
    """The parameters after ``num_iters`` steps ``x <- update(x, g, i)`` on the flattened structure."""
    x, unflatten = flatten(x0)
    for i in range(num_iters):
        given = unflatten(x)
        g = grad(given, i)
        if callback is not None:
            callback(given, i, g)
        x = update(x, flatten(g)[0], i)
    return unflatten(x)


def sgd(
    grad: Gradient, x0: Any, callback: Any = None, num_iters: int = 200, step_size: float = 0.1, mass: float = 0.9
) -> Any:  # fmt: skip
    """Gradient descent with momentum: v <- mass v - (1 - mass) g, x <- x + step v."""
    velocity: Any = 0.0

    def update(x: Any, g: Any, i: int) -> Any:
        nonlocal velocity
        velocity = mass * velocity - (1.0 - mass) * g
        return x + step_size * velocity

    return _descend(grad, x0, callback, num_iters, update)


def rmsprop(
    grad: Gradient,
    x0: Any,
    callback: Any = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Root mean square propagation: each element's step is divided by the running root mean square of its gradient,
    begun at 1."""
    mean_square: Any = 1.0

    def update(x: Any, g: Any, i: int) -> Any:
        nonlocal mean_square
        mean_square = gamma * mean_square + (1 - gamma) * g**2
        return x - step_size * g / (np.sqrt(mean_square) + eps)

    return _descend(grad, x0, callback, num_iters, update)


def adam(
    grad: Gradient,
    x0: Any,
    callback: Any = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Adam (Kingma and Ba 2015, algorithm 1): running means of the gradient and its square, corrected for their
    beginning at 0."""
    mean: Any = 0.0
    mean_square: Any = 0.0

    def update(x: Any, g: Any, i: int) -> Any:
        nonlocal mean, mean_square
        mean, mean_square = b1 * mean + (1 - b1) * g, b2 * mean_square + (1 - b2) * g**2
        return x - step_size * (mean / (1 - b1 ** (i + 1))) / (np.sqrt(mean_square / (1 - b2 ** (i + 1))) + eps)

    return _descend(grad, x0, callback, num_iters, update)


__all__ = ["adam", "rmsprop", "sgd"]
