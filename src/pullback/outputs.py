"""``out=``: a result is written to a traced target; a plain array cannot hold a traced value and is refused."""

from typing import Any

import numpy as np

from pullback.errors import ConversionError
from pullback.handles import Handle
from pullback.rewrites import BUFFER
from pullback.tape import site_here, site_text
from pullback.writes import set_item


def require_traced_target(name: str, target: Any) -> None:
    """A plain array cannot hold a traced value: refuse, naming the rewrite."""
    if target is None or isinstance(target, Handle):
        return
    shape, where = getattr(target, "shape", ()), f"at {site_text(site_here(3))}"
    message = (
        f"numpy.{name} would write a traced value into a plain array of shape {shape} ({where}), which would drop the derivative; {BUFFER}"
    )
    raise ConversionError(message)


def write_out(name: str, target: Any, result: Any, casting: str = "same_kind") -> Any:
    """The target, which now holds the result; NumPy's rules for casting and shape."""
    if not np.can_cast(result.dtype, target.dtype, casting):  # type: ignore[arg-type]  # a wrong rule's name is NumPy's to refuse
        message = f"Cannot cast ufunc {name!r} output from {result.dtype!r} to {target.dtype!r} with casting rule {casting!r}"
        raise TypeError(message)
    if np.broadcast_shapes(result.shape, target.shape) != target.shape:
        message = f"non-broadcastable output operand with shape {target.shape} doesn't match the broadcast shape {result.shape}"
        raise ValueError(message)
    set_item(target, Ellipsis, result)
    return target
