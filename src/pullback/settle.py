"""Where a cotangent arrives: checked against its primal, brought to its spec, and joined to what other consumers sent."""

from typing import Any

import numpy as np

from pullback.arrays import INEXACT, ArraySpec, broadcasts_to, project
from pullback.errors import RuleError
from pullback.forms import Form
from pullback.tape import site_text


def settle(g: Any, spec: ArraySpec | None, form: Form, position: int, site: int, ct: Any) -> Any:
    """The cotangent ``g`` of the operand at ``position``, of the operand's shape, dtype and realness.

    ``spec`` is None for an operand that is no array: its cotangent is whatever its producer's rule understands. Raises
    :class:`RuleError` for ``None``, for a shape that is not a broadcast of the operand's, and for a dtype that is no float.
    """
    if g is None:
        raise RuleError(_message(form, position, site, spec, "None", "return zeros for no dependence, or list the operand in nondiff="))
    if spec is None:
        return g
    dtype = getattr(g, "dtype", None)
    if isinstance(g, tuple | list):
        raise RuleError(_message(form, position, site, spec, f"{len(g)} cotangents", "a rule for one operand returns one; joint rules name all of theirs"))
    if dtype is None:
        g = np.asarray(g)
        dtype = g.dtype
    shape = g.shape
    if dtype.kind not in INEXACT:
        raise RuleError(_message(form, position, site, spec, f"dtype {dtype}", "return a floating or complex array"))
    if shape != spec.shape:
        wrong = shape != ct.shape if form.primitive.elementwise else not broadcasts_to(spec.shape, shape)
        if wrong:
            raise RuleError(_message(form, position, site, spec, f"shape {shape}", "the executor sums over broadcast axes; nothing else may differ"))
        return project(g, spec)
    return g if dtype is spec.dtype else project(g, spec)


def settle_several(gs: Any, count: int, form: Form, site: int) -> Any:
    """The cotangents of a joint rule, one per operand; raises :class:`RuleError` for another count."""
    if not isinstance(gs, tuple | list) or len(gs) != count:
        given = f"{len(gs)} cotangents" if isinstance(gs, tuple | list) else type(gs).__name__
        message = f"the joint rule of {form.name} returned {given}, expected a tuple of {count}, one per operand it names (called at {site_text(site)})"
        raise RuleError(message)
    return gs


def join(p: Any, g: Any, i: int, sweep: Any) -> Any:
    """``p + g`` for value ``i``; in place once the sweep owns the buffer, which is from the second sum on."""
    if i in sweep.owned and type(p) is np.ndarray and type(g) is np.ndarray:
        np.add(p, g, out=p)
        return p
    total = p + g
    if type(total) is np.ndarray:
        sweep.owned.add(i)
    return total


def _message(form: Form, position: int, site: int, spec: ArraySpec | None, given: str, remedy: str) -> str:
    expected = "a cotangent" if spec is None else f"{spec}"
    return (
        f"the VJP rule of {form.name} for operand {form.primitive.name_of(position)!r} returned {given}, expected {expected} "
        f"(called at {site_text(site)}); {remedy}"
    )
