"""numpy.unwrap: angles without jumps."""

from typing import Any

import numpy as np

from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive


def _turns(ct: Any, p: Any, period: Any, out: Any) -> Any:
    """``out`` is p and a whole number of periods."""
    return ct * np.rint((out - p) / period)


# Between two jumps a constant is added to p: its derivative is 1.
unwrapped = primitive(
    lambda p, period, *, discont, axis: np.unwrap(p, discont, axis, period=period),
    name="unwrapped",
    vjps={"p": lambda ct: ct, "period": _turns},
)


@composite(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 6.283185307179586) -> Any:
    """numpy.unwrap; p and the period may be traced, the discontinuity only decides which steps are taken for jumps."""
    return unwrapped(p, period, discont=plain_value(discont), axis=axis)


PHASES: tuple[Primitive | Composite, ...] = (unwrapped, unwrap)
