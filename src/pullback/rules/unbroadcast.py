"""Where a broadcast is undone: the cotangent that a rule returns is checked against its operand and brought to the
operand's shape and dtype."""

from collections.abc import Callable, Sequence
from functools import cache
from math import isfinite
from typing import Any

import numpy as np

from pullback.rules.forms import Form
from pullback.words.call_sites import site_text
from pullback.words.errors import RuleError
from pullback.words.specs import INEXACT, ArraySpec, new_zeros
from pullback.words.undocumented import quiet

_ADD: Any = np.add.reduce
MANY, SHORT = 2048, range(2, 8)
"""Elements from which on lines of so few of them are added column by column."""


def settle(g: Any, spec: ArraySpec | None, form: Form, position: int, site: int, ct: Any) -> Any:
    """The cotangent ``g`` of the operand at ``position``, of the operand's shape, dtype and realness.

    ``spec`` is None for an operand that is no array: its cotangent is whatever its producer's rule understands. Raises
    :class:`RuleError` for ``None``, for a shape that is not a broadcast of the operand's, and for a dtype that is no
    float.
    """
    if g is None:
        remedy = "return zeros for no dependence, or list the operand in nondiff="
        raise _refused(form, position, site, spec, "None", remedy)
    if spec is None:
        return g
    if isinstance(g, tuple | list):
        remedy = "a rule for one operand returns one; joint rules name all of theirs"
        raise _refused(form, position, site, spec, f"{len(g)} cotangents", remedy)
    if not hasattr(g, "dtype"):
        g = np.asarray(g)
    if g.dtype.kind not in INEXACT:
        raise _refused(form, position, site, spec, f"dtype {g.dtype}", "return a floating or complex array")
    shape = g.shape
    if shape != spec.shape and (
        shape != ct.shape if form.primitive.elementwise else not broadcasts_to(spec.shape, shape)
    ):
        remedy = "the executor sums over broadcast axes; nothing else may differ"
        raise _refused(form, position, site, spec, f"shape {shape}", remedy)
    return g if shape == spec.shape and g.dtype is spec.dtype else project(g, spec)


def summed(ct: Any, spec: ArraySpec) -> Any:
    """The cotangent of a result, summed over the axes along which the operand described by ``spec`` was broadcast; a
    Python number as it is."""
    return unbroadcast(ct, spec.shape) if hasattr(ct, "shape") else ct


def settle_several(gs: Any, count: int, form: Form, site: int) -> Any:
    """The cotangents of a joint rule, one per operand; raises :class:`RuleError` for another count."""
    if not isinstance(gs, tuple | list) or len(gs) != count:
        given = f"{len(gs)} cotangents" if isinstance(gs, tuple | list) else type(gs).__name__
        raise RuleError(
            f"the joint rule of {form.name} returned {given}, expected a tuple of {count}, one per operand it "
            f"names (called at {site_text(site)})"
        )
    return gs


def unbroadcast(ct: Any, shape: tuple[int, ...]) -> Any:
    """``ct`` summed over the axes along which NumPy broadcast an operand of ``shape``; its own shape must be a
    broadcast of ``shape``."""
    if ct.shape == shape:
        return ct
    extra = len(ct.shape) - len(shape)
    axes = tuple(range(extra)) + tuple(extra + k for k, n in enumerate(shape) if n == 1 and ct.shape[extra + k] != 1)
    if not axes:
        return ct.reshape(shape)
    short = line_sums(ct) if axes == (len(ct.shape) - 1,) else None
    return (ct.sum(axis=axes) if short is None else short).reshape(shape)


def sum_along(x: Any, axis: int, keepdims: bool) -> Any:
    """What ``np.add.reduce`` gives along one axis of an array of ``MANY`` elements."""
    sums = line_sums(x, keepdims=keepdims) if axis in (-1, x.ndim - 1) else None
    return _ADD(x, axis, None, None, keepdims) if sums is None else sums


def line_sums(x: Any, *, keepdims: bool = False) -> Any:
    """The sums along the last axis where lines are short and many: NumPy takes ten times as long for them as for adding
    one column after the other, in the same order. None where it is to be asked itself."""
    if type(x) is not np.ndarray or x.size < MANY or x.shape[-1] not in SHORT or x.dtype.char not in "fd":
        return None
    if not x.flags.c_contiguous or not x.dtype.isnative or not adds_in_order(x.dtype.char):
        return None
    with quiet():
        total = _by_columns(x, keepdims=keepdims)
        line = total.reshape(-1)
        # Of what is infinite or undefined it is NumPy that warns.
        return total if isfinite(line.dot(line)) else None


def _by_columns(x: Any, *, keepdims: bool = False) -> Any:
    total = x[..., slice(0, 1) if keepdims else 0] + 0.0  # as NumPy begins: -0.0 becomes 0.0
    for k in range(1, x.shape[-1]):
        total += x[..., slice(k, k + 1) if keepdims else k]
    return total


@cache
def adds_in_order(char: str) -> bool:
    """Whether NumPy adds short lines of such numbers as we do. Nobody promises it; where it does not, it is asked."""
    for k in SHORT:
        lines = np.tan(np.arange(257 * k, dtype=char)).reshape(257, k)
        lines[::5] = -0.0
        if _by_columns(lines).tobytes() != _ADD(lines, axis=-1).tobytes():
            return False
    return True


def project(ct: Any, spec: ArraySpec) -> Any:
    """``ct`` with the shape, dtype and realness of the primal described by ``spec``.

    Sum over broadcast axes, then drop the imaginary part where the primal is real (C as R^2: a real operand sees the
    real part of its cotangent), then cast to the primal's dtype.
    """
    if ct.shape != spec.shape:
        ct = unbroadcast(ct, spec.shape)
    if ct.dtype != spec.dtype:
        if ct.dtype.kind == "c" and spec.dtype.kind != "c":
            ct = ct.real
        if ct.dtype != spec.dtype:
            ct = ct.astype(spec.dtype)
    return ct


def laid_out(g: Any) -> Any:
    """A cotangent in C order, in an array that is no part of another; a single number as NumPy's number."""
    if type(g) is not np.ndarray:
        return g
    if not g.shape:
        return g[()]
    return g if g.base is None and g.flags.c_contiguous else g.copy()


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """True when an operand of ``shape`` may have been broadcast to ``target``."""
    if len(shape) > len(target):
        return False
    return all(n in (1, m) for n, m in zip(reversed(shape), reversed(target), strict=False))


def _refused(form: Form, position: int, site: int, spec: ArraySpec | None, given: str, remedy: str) -> RuleError:
    expected = "a cotangent" if spec is None else f"{spec}"
    return RuleError(
        f"the VJP rule of {form.name} for operand {form.primitive.name_of(position)!r} returned {given}, expected "
        f"{expected} (called at {site_text(site)}); {remedy}"
    )


def zeros_for(form: Form) -> Callable[[tuple[Any, ...]], Any]:
    """What gives, for a record of this form, the cotangent that stands where nothing depends on what was computed."""
    places = spec_places(form)
    if form.primitive.outputs:
        return lambda record: [_zeros(record[place]) for place in places]
    return lambda record: _zeros(record[places[0]])


def filled(form: Form) -> Callable[[Sequence[Any], tuple[Any, ...]], tuple[Any, ...]]:
    """What gives the cotangents of several outputs, of which some may be missing, with zeros in the place of these."""
    places = spec_places(form)
    return lambda cts, record: tuple(
        _zeros(record[place]) if ct is None else ct for ct, place in zip(cts, places, strict=True)
    )


def spec_places(form: Form) -> list[int]:
    """Where in a record of a collective primitive the specs of its outputs are."""
    return [form.first_spec + form.specs.index(name) for name in form.primitive.outputs or ("out",)]


def _zeros(spec: ArraySpec) -> Any:
    dtype = spec.dtype if spec.dtype.kind in INEXACT else np.dtype(np.float64)
    zeros = new_zeros(spec.shape, dtype)
    return zeros if spec.shape else zeros[()]
