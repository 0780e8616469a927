"""Checks of seeds: a cotangent must fit the output that it belongs to, and ``holomorphic=True`` must be true."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.recording.crossing import present
from pullback.recording.handles import Handle, value
from pullback.tracing.running import Traced
from pullback.transforms.derivatives.argnums import name_of
from pullback.words.errors import NotDifferentiableError, StructureError
from pullback.words.foreign_operands import plain_array
from pullback.words.specs import ArraySpec, spec_of


def conjugate(ct: Any) -> Any:
    """A complex cotangent in the other convention; a real one, and None, as it is."""
    return np.conj(ct) if hasattr(ct, "dtype") and ct.dtype.kind == "c" else ct


def require_complex_linear(f: Any, specs: Sequence[ArraySpec], along_1: Sequence[Any], along_i: Sequence[Any]) -> None:
    """Raise :class:`NotDifferentiableError` unless what a linear map makes of i t is i times what it makes of t
    (Cauchy-Riemann).

    ``specs`` are those of the values that the map returns. Only a complex value can show the difference.
    """
    name = name_of(f)
    complex_places = [k for k, spec in enumerate(specs) if spec.dtype.kind == "c"]
    if not complex_places:
        raise NotDifferentiableError(
            f"holomorphic=True is a claim about complex arguments, those of {name} are {', '.join(map(str, specs))}; "
            "pass complex ones, or differentiate the real and the imaginary part"
        )
    for k in complex_places:
        first, turned = np.asarray(value(along_1[k])) * 1j, np.asarray(value(along_i[k]))
        with np.errstate(invalid="ignore"):
            gap, size = np.abs(turned - first), np.abs(first) + np.abs(turned)
        finite = np.isfinite(gap)
        far, scale = gap[finite].max(initial=0.0), size[finite].max(initial=0.0)
        if far > 2 * np.sqrt(np.finfo(specs[k].dtype).eps) * scale:
            raise NotDifferentiableError(
                f"{name} is not holomorphic: its derivative along i differs from i times that along 1 by {far:.3g}, "
                f"the derivative is of size {scale / 2:.3g} (Cauchy-Riemann); leave out holomorphic=True and "
                "differentiate the real and the imaginary part, or use vjp, which takes complex values as pairs of "
                "real ones"
            )


def checked_seed(leaf: Any, out: Any, traced: Traced, which: str) -> Any:
    """A cotangent leaf as an array of the output leaf's shape and dtype, or None; raises :class:`StructureError` for
    what does not fit.

    ``which`` is the cotangent's number among several, for the text.
    """
    if leaf is None or not isinstance(out, Handle):
        return leaf
    shape, dtype = spec_of(out).shape, spec_of(out).dtype
    seed: Any = present(leaf, None)
    seed = seed if isinstance(seed, Handle) or hasattr(seed, "__pullback_hollow__") else plain_array(seed)
    if seed.shape != shape:
        raise StructureError(
            f"the cotangent{which} has shape {seed.shape}, the output of the function differentiated at "
            f"{traced.called_at} has {shape}; give one of its shape, or None where it is not used"
        )
    if seed.dtype.kind not in "fciub" or (seed.dtype.kind == "c" and dtype.kind != "c"):
        raise StructureError(
            f"the cotangent{which} has dtype {seed.dtype}, the output of the function differentiated at "
            f"{traced.called_at} has {dtype}; give a real one, or pull its real and its imaginary part one after the "
            "other"
        )
    if isinstance(seed, Handle):
        return seed
    seed = seed.astype(dtype) if hasattr(seed, "__pullback_hollow__") else np.array(seed, dtype=dtype)
    return seed if seed.shape else seed[()]


def scalar_seed(out: Any, f: Any, *, holomorphic: bool) -> Any:
    """1 in the dtype of a scalar output; raises :class:`NotDifferentiableError` for anything else."""
    name = getattr(f, "__name__", str(f))
    shape = getattr(out, "shape", None if isinstance(out, list | dict | tuple) else ())
    if shape != () or not isinstance(out, Handle | int | float | complex | np.generic | np.ndarray):
        given = (
            f"shape {shape}" if shape else f"{'a ' if isinstance(out, list | dict | tuple) else ''}{type(out).__name__}"
        )
        aux = (
            "pass has_aux=True if the second is no output to differentiate, "
            if isinstance(out, tuple) and len(out) == 2
            else ""
        )
        raise NotDifferentiableError(
            f"a gradient needs a scalar output, {name} returned {given}; {aux}sum it, or use vjp, which takes a "
            "cotangent of the output"
        )
    dtype = np.dtype(out.dtype if hasattr(out, "dtype") else type(value(out)))
    if dtype.kind == "c" and not holomorphic:
        raise NotDifferentiableError(
            f"{name} returned a complex scalar; take its real part, or pass holomorphic=True if it is holomorphic"
        )
    if dtype.kind not in "fc" and (
        isinstance(out, Handle) or hasattr(out, "dtype")
    ):  # a Python 0 is where a loop of no step began
        raise NotDifferentiableError(
            f"{name} returned dtype {dtype}, which carries no derivative; leave out what makes it so (astype, argmax, "
            "a comparison), or take it from has_aux=True"
        )
    if dtype.kind != "c" and holomorphic:
        raise NotDifferentiableError(
            f"holomorphic=True is a claim about complex values, {name} returned {dtype}; leave it out for df/dx "
            "- i df/dy"
        )
    return dtype.type(1) if dtype.kind in "fc" else None
