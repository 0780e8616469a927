"""``out=``: a result is written to a traced target; a plain array cannot hold a traced value and is refused."""

from typing import Any

import numpy as np

from pullback.recording.handles import Handle
from pullback.recording.refusals import buffer
from pullback.recording.writes import set_item
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import ConversionError


def require_traced_target(name: str, target: Any) -> None:
    """A plain array cannot hold a traced value: refuse, naming the rewrite."""
    if target is None or isinstance(target, Handle):
        return
    shape, where = getattr(target, "shape", ()), f"at {site_text(site_here())}"
    raise ConversionError(
        f"numpy.{name} would write a traced value into a plain array of shape {shape} ({where}), which would "
        f"drop the derivative; {buffer()}"
    )


def write_out(name: str, target: Any, result: Any, casting: str = "same_kind") -> Any:
    """The target, which now holds the result; NumPy's rules for casting and shape."""
    # A wrong rule's name is NumPy's to refuse.
    if not np.can_cast(result.dtype, target.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(
            f"Cannot cast ufunc {name!r} output from {result.dtype!r} to {target.dtype!r} with casting rule {casting!r}"
        )
    if np.broadcast_shapes(result.shape, target.shape) != target.shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {target.shape} doesn't match the broadcast shape "
            f"{result.shape}"
        )
    set_item(target, Ellipsis, result)
    return target


def set_flat(handle: Any, places: Any, values: Any) -> None:
    """The elements at ``places`` in C order become ``values``, from the first of these again after the last, as many
    as are needed."""
    line = np.ravel(values)
    if not places.size or not line.size:
        return
    if line.size != places.size:
        line = line[np.arange(places.size) % line.size]
    if not handle.shape:  # the last write wins
        set_item(handle, Ellipsis, line[-1])
    else:
        set_item(handle, np.unravel_index(places, handle.shape), line)
