"""Where a cotangent arrives: checked against its primal, brought to its spec, and joined to what other consumers
sent."""

from itertools import pairwise
from sys import getrefcount
from typing import Any

import numpy as np

from pullback.rules.forms import Form
from pullback.words.call_sites import site_text
from pullback.words.errors import RuleError
from pullback.words.sniffs import JOINED
from pullback.words.specs import INEXACT, ArraySpec, broadcasts_to, project, unbroadcast


def settle(g: Any, spec: ArraySpec | None, form: Form, position: int, site: int, ct: Any) -> Any:
    """The cotangent ``g`` of the operand at ``position``, of the operand's shape, dtype and realness.

    ``spec`` is None for an operand that is no array: its cotangent is whatever its producer's rule understands. Raises
    :class:`RuleError` for ``None``, for a shape that is not a broadcast of the operand's, and for a dtype that is no
    float.
    """
    if g is None:
        raise RuleError(
            _message(
                form, position, site, spec, "None", "return zeros for no dependence, or list the operand in nondiff="
            )
        )
    if spec is None:
        return g
    dtype = getattr(g, "dtype", None)
    if isinstance(g, tuple | list):
        raise RuleError(
            _message(
                form,
                position,
                site,
                spec,
                f"{len(g)} cotangents",
                "a rule for one operand returns one; joint rules name all of theirs",
            )
        )
    if dtype is None:
        g = np.asarray(g)
        dtype = g.dtype
    shape = g.shape
    if dtype.kind not in INEXACT:
        raise RuleError(_message(form, position, site, spec, f"dtype {dtype}", "return a floating or complex array"))
    if shape != spec.shape:
        wrong = shape != ct.shape if form.primitive.elementwise else not broadcasts_to(spec.shape, shape)
        if wrong:
            raise RuleError(
                _message(
                    form,
                    position,
                    site,
                    spec,
                    f"shape {shape}",
                    "the executor sums over broadcast axes; nothing else may differ",
                )
            )
        return project(g, spec)
    return g if dtype is spec.dtype else project(g, spec)


def summed(ct: Any, spec: ArraySpec) -> Any:
    """The cotangent of a result, summed over the axes along which the operand described by ``spec`` was broadcast; a
    Python number as it is."""
    return unbroadcast(ct, spec.shape) if hasattr(ct, "shape") else ct


def settle_several(gs: Any, count: int, form: Form, site: int) -> Any:
    """The cotangents of a joint rule, one per operand; raises :class:`RuleError` for another count."""
    if not isinstance(gs, tuple | list) or len(gs) != count:
        given = f"{len(gs)} cotangents" if isinstance(gs, tuple | list) else type(gs).__name__
        message = (
            f"the joint rule of {form.name} returned {given}, expected a tuple of {count}, one per operand it "
            f"names (called at {site_text(site)})"
        )
        raise RuleError(message)
    return gs


def without_nan(g: Any, ct: Any) -> Any:
    """The cotangent ``g`` that an elementwise rule made of ``ct``, with 0 in the place of every NaN that it made of a
    0.

    ``where(x > 0, x * log(x), 0)`` sends 0 to the product wherever it masked it, and there 0 * log(0) is NaN though
    nothing depends on it. One pass without a temporary where there is no NaN.
    """
    if isinstance(g, np.ndarray):
        if not g.size:
            return g
        least = g.min() if g.dtype.kind == "f" else g.ravel("K").dot(g.ravel("K"))
        if least == least:  # noqa: PLR0124 - only a NaN differs from itself
            return g
    mask = (concrete(ct) == 0) & np.isnan(concrete(g))
    return np.where(mask, 0, g) if mask.any() else g


def concrete(x: Any) -> Any:
    """The value behind a handle, told by its class; anything else as it is."""
    look = getattr(type(x), "__pullback_value__", None)
    return x if look is None else look(x)


def _in_c_order(g: Any) -> bool:
    """True where a sum of ``g`` and a C-contiguous array is C-contiguous."""
    if g.flags.c_contiguous:
        return True
    strides = g.strides
    return all(s > 0 for s in strides) and all(s >= t for s, t in pairwise(strides))


def alone(p: Any) -> bool:
    """True where nobody but ``cts`` can see the array ``p``, an element of it and a local of the caller: it may be
    written."""
    return type(p) is np.ndarray and getrefcount(p) <= JOINED and p.base is None and p.flags.writeable


def takes(p: Any, g: Any) -> bool:
    """Whether the array ``p`` can become ``p + g`` and have the strides that a new array would have."""
    return p.dtype is g.dtype and p.flags.carray and p.shape == g.shape and _in_c_order(g)


def added(parts: list[Any]) -> Any:
    """The sum of tangents, one after the other, in place where the next is an array that nobody but ``parts`` can see.

    Into the newer of two, since what is freed then lies below it, where the allocator keeps it, and not at the end of
    the heap.
    """
    total = parts[0]
    for k in range(1, len(parts)):
        part = parts[k]
        if type(total) is np.ndarray and alone(part) and takes(part, total):
            total = np.add(total, part, out=part)
        else:
            total = total + part
    return total


def join(p: Any, g: Any, i: int, sweep: Any) -> Any:
    """``p + g`` for value ``i``, where ``p`` is an element of ``cts`` and a local of the caller.

    In place where the sweep owns the buffer, and where nobody but ``cts`` can see it. In that case the sum must have
    the strides that a new array would have: they decide the order in which whoever sums over it adds, and may not
    depend on who holds what.
    """
    if type(p) is np.ndarray and type(g) is np.ndarray:
        if i in sweep.owned:
            np.add(p, g, out=p)
            return p
        if getrefcount(p) <= JOINED and p.base is None and takes(p, g):
            np.add(p, g, out=p)
            sweep.owned.add(i)
            return p
    elif sweep.outer is not None and getrefcount(p) <= JOINED and sweep.outer.tangents is not None:
        return sweep.outer.tangents.joined(p, g)
    total = p + g
    if type(total) is np.ndarray:
        sweep.owned.add(i)
    else:
        sweep.owned.discard(i)  # a scalar, to which nobody can write
    return total


def _message(form: Form, position: int, site: int, spec: ArraySpec | None, given: str, remedy: str) -> str:
    expected = "a cotangent" if spec is None else f"{spec}"
    return (
        f"the VJP rule of {form.name} for operand {form.primitive.name_of(position)!r} returned {given}, expected "
        f"{expected} (called at {site_text(site)}); {remedy}"
    )
