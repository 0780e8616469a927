"""min over x of max over y of (x_0^2 + x_1^2) - (y_0^2 + y_1^2), each by gradient descent."""

from typing import Any

import numpy as np
from benchmarks.gradbench.programs.descent import MODES, argmin

import pullback as pb


@pb.staged
def height(y: Any, x: Any) -> Any:
    return x[0] ** 2 + x[1] ** 2 - (y[0] ** 2 + y[1] ** 2)


def saddle(start: Any, modes: str) -> Any:
    """(x, y) as (4,); ``modes`` are those of the outer and of the inner derivative, r or f each."""
    outer, inner = MODES[modes[0]], MODES[modes[1]]
    rise = inner(height)

    def highest(x: Any) -> Any:
        return argmin(lambda y: -height(y, x), lambda y: -rise(y, x), start)

    def greatest(x: Any) -> Any:
        return height(highest(x), x)

    x = argmin(greatest, outer(greatest), start)
    return np.concatenate([x, highest(x)])
