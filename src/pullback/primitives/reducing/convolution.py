"""Convolution and correlation of two lines: np.convolve, np.correlate. The cotangent of each operand is again one
convolution, which costs no more than the forward.

A full convolution is ``full[j] = sum_i a[i] v[j - i]``; the modes "same" and "valid" give a part of it, and a
correlation is a convolution with the second operand reversed and conjugated. So a rule needs the length of the output
and where in the full one it begins.
"""

from typing import Any

import numpy as np

from pullback.primitives.shaping.as_array import as_array, as_line
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.specs import ArraySpec


def full_length(ct: Any, lead: int, length: int) -> Any:
    """``ct`` with zeros around it: the cotangent of all ``length`` elements of which those from ``lead`` on were
    taken."""
    after = length - lead - ct.shape[0]
    if not lead and not after:
        return ct
    return np.concatenate((np.zeros(lead, ct.dtype), ct, np.zeros(after, ct.dtype)))


def adjoint(ct: Any, other: Any, own: int, lead: int) -> Any:
    """The cotangent of an operand of length ``own`` that was convolved with ``other``; the output began at ``lead``
    of the full one."""
    others, length = other.shape[0], ct.shape[0]
    if length == abs(own - others) + 1 and own > others:  # "valid", for the longer one: every element of ct reaches it
        return np.convolve(ct, other[::-1], "full")
    if length != abs(own - others) + 1:
        ct = full_length(ct, lead, own + others - 1)
    return np.convolve(ct, other[::-1], "valid")


def _lead(one: ArraySpec, two: ArraySpec, out: ArraySpec, *, swaps: bool) -> int:
    """Where in the full output the given one begins; "same" leaves out the lesser half in front, a swapped
    correlation the greater."""
    longer, shorter = (one.size, two.size) if one.size >= two.size else (two.size, one.size)
    if out.size == longer + shorter - 1:
        return 0
    if out.size != longer:
        return shorter - 1
    return shorter // 2 if swaps and one.size < two.size else (shorter - 1) // 2


def _convolve_first(ct: Any, v: Any, a_spec: ArraySpec, v_spec: ArraySpec, out_spec: ArraySpec) -> Any:
    return adjoint(ct, v, a_spec.size, _lead(a_spec, v_spec, out_spec, swaps=False))


def _convolve_second(ct: Any, a: Any, a_spec: ArraySpec, v_spec: ArraySpec, out_spec: ArraySpec) -> Any:
    return adjoint(ct, a, v_spec.size, _lead(a_spec, v_spec, out_spec, swaps=False))


def _correlate_first(ct: Any, v: Any, a_spec: ArraySpec, v_spec: ArraySpec, out_spec: ArraySpec) -> Any:
    return adjoint(ct, np.conj(v)[::-1], a_spec.size, _lead(a_spec, v_spec, out_spec, swaps=True))


def _correlate_second(ct: Any, a: Any, a_spec: ArraySpec, v_spec: ArraySpec, out_spec: ArraySpec) -> Any:
    return np.conj(adjoint(ct, a, v_spec.size, _lead(a_spec, v_spec, out_spec, swaps=True)))[::-1]


convolve_lines = primitive(
    lambda a, v, *, mode: np.convolve(a, v, mode),
    name="convolve_lines",
    bilinear=("a", "v"),
    vjps={"a": _convolve_first, "v": _convolve_second},
)
correlate_lines = primitive(
    lambda a, v, *, mode: np.correlate(a, v, mode),
    name="correlate_lines",
    linear=("a",),
    vjps={"a": _correlate_first, "v": _correlate_second},
)


@composite(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    """numpy.convolve."""
    return convolve_lines(as_line(a), as_line(v), mode=mode)


@composite(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    """numpy.correlate."""
    return correlate_lines(as_array(a), as_array(v), mode=mode)


CONVOLUTION: tuple[Primitive | Composite, ...] = (convolve_lines, correlate_lines, convolve, correlate)
