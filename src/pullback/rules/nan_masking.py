"""Where NaN is masked: a rule that turns a cotangent of 0 into NaN gives 0, in traces in which something was left out.

``where(x > 0, x * log(x), 0)`` sends the cotangent 0 to the product where it left it out, and there 0 * log(0) is NaN
though nothing depends on it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.rules.declaration import primitive
from pullback.rules.forms import FORMS, PULLS
from pullback.rules.generated_pulls import make_pull


class MaskedPulls(dict[int, Callable[..., None]]):
    """Opcode to pull, as :data:`pullback.rules.forms.PULLS`, for traces in which something was masked (``Tape.masks``):
    elementwise rules make no NaN of a cotangent of 0. Kept apart because that costs a pass over every cotangent."""

    def __missing__(self, opcode: int) -> Callable[..., None]:
        form = FORMS[opcode]
        plain = not form.primitive.elementwise or not form.rules or bool(form.primitive.outputs)
        self[opcode] = pull = PULLS[opcode] if plain else make_pull(form, without_nan)
        return pull


MASKED_PULLS = MaskedPulls()


def without_nan(g: Any, ct: Any) -> Any:
    """The cotangent ``g`` that an elementwise rule made of ``ct``, with 0 in the place of every NaN that it made of a
    0. One pass without a temporary where there is no NaN."""
    if isinstance(g, np.ndarray):
        if not g.size:
            return g
        least = g.min() if g.dtype.kind == "f" else g.ravel("K").dot(g.ravel("K"))
        if least == least:  # noqa: PLR0124 - only a NaN differs from itself
            return g
    elif type(g) is np.float64 and g == g:  # noqa: PLR0124
        return g
    mask = (concrete(ct) == 0) & np.isnan(concrete(g))
    return np.where(mask, 0, g) if mask.any() else g


def _leaves_out(made: Any, sent: Any) -> Any:
    return _NO if without_nan(made, sent) is made else _YES


_NO, _YES = np.float64(0), np.float64(1)


WITHOUT_NAN = primitive(
    without_nan, name="without_nan", operands=("made", "sent"), params=(), elementwise=True, nondiff=("sent",),
    vjps={"made": lambda ct: ct},
)  # fmt: skip
""":func:`without_nan` as one operation, for handles without values."""

LEAVES_NAN_OUT = primitive(
    _leaves_out, name="leaves_nan_out", operands=("made", "sent"), params=(),
    vjps={"made": lambda ct, made: ct * np.zeros_like(made), "sent": lambda ct, sent: ct * np.zeros_like(sent)},
)  # fmt: skip
"""1 where :func:`without_nan` changes what a rule made of a cotangent that was sent, else 0."""


def concrete(x: Any) -> Any:
    """The value behind a handle, told by its class; anything else as it is."""
    look = getattr(type(x), "__pullback_value__", None)
    return x if look is None else look(x)
