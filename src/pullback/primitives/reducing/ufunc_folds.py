"""``reduce`` and ``accumulate`` of the binary ufuncs: a fold, ``s = f(s, x[k])`` along an axis.

For any f with rules the derivative is the chain rule along the axis. With the partial derivatives a = df/ds and
b = df/dx at every step, the cotangent of x[k] is b[k] times the sum over j >= k of ct[j] times a[k + 1] ... a[j].
Add, multiply, maximum, minimum and logaddexp have shorter rules (see ``sums``, ``extrema_and_products``, ``scans``). So
have the extrema here, which depend on one element alone.

NumPy gives the values. Where f is associative, NumPy folds several axes, or a mask, in an order of its own. The partial
derivatives are taken in C order all the same, which differs in the last bits.
"""

from collections.abc import Callable
from math import prod
from operator import eq
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from pullback.primitives.elementwise import powers, ufunc_rules
from pullback.primitives.reducing.extrema_and_products import shares, softmax
from pullback.primitives.reducing.scans import from_the_end
from pullback.primitives.shared.axes import BACKWARDS, Axis, as_loop_reads, cut, keep
from pullback.primitives.shared.gather_scatter import put
from pullback.primitives.shared.masked_arithmetic import over, times
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.errors import NotDifferentiableError
from pullback.words.specs import ArraySpec
from pullback.words.undocumented import ABSENT


# -------------------------------------------------------------------------------------------------- partial derivatives
def _partial(step: Primitive, operand: int, before: Any, x: Any, after: Any) -> Any:
    """The derivative of ``after = step(before, x)`` by one of its operands, element by element: its rule on ones."""
    rule = step.rules[step.operands[operand]][0]
    values = {step.operands[0]: before, step.operands[1]: x, "out": after}
    return rule.fn(np.ones_like(after), *(values[name] for name in rule.reads))


def _steps(step: Primitive, x: Any, states: Any, axis: int) -> tuple[Any, Any]:
    """The partial derivatives of every step but the first element, which is the first state: by the state, by the
    element."""
    first, rest = cut(len(x.shape), axis, slice(-1)), cut(len(x.shape), axis, slice(1, None))
    steps = states[first], x[rest], states[rest]
    return _partial(step, 0, *steps), _partial(step, 1, *steps)


def _to_line(ct: Any, b: Any, axis: int) -> Any:
    """The cotangents of the elements, of those of the states: the first element is the first state."""
    first = cut(len(ct.shape), axis, slice(1))
    rest = cut(len(ct.shape), axis, slice(1, None))
    return np.concatenate((ct[first], times(ct[rest], b)), axis)


# ----------------------------------------------------------------------------------------------------------- accumulate
def _accumulation(step: Primitive, ufunc: Any) -> Primitive:
    """``ufunc.accumulate`` as a primitive; ``step`` has the rules of the ufunc."""

    def to_elements(ct: Any, x: Any, out: Any, x_spec: ArraySpec, axis: int) -> Any:
        if x_spec.shape[axis] < 2:
            return ct
        if ufunc is np.subtract:
            backwards = cut(x_spec.ndim, axis, BACKWARDS)
            return _to_line(np.add.accumulate(ct[backwards], axis)[backwards], np.array(-1, ct.dtype), axis)
        a, b = _steps(step, x, out, axis)
        return _to_line(from_the_end(ct, a, axis), b, axis)

    return _accumulate_by(ufunc, to_elements)


def _accumulate_by(ufunc: Any, rule: Callable[..., Any], *, masks: bool = False) -> Primitive:
    fold: Primitive = primitive(
        lambda x, *, axis, dtype: ufunc.accumulate(x, axis, dtype),
        name=f"{ufunc.__name__}_accumulate",
        reach="before",
        masks=masks,
        vjps={"x": rule},
    )
    return fold


def _to_leaders(ct: Any, out: Any, x_spec: ArraySpec, axis: int) -> Any:
    """The cotangent of each running maximum to the element that it is: where it last changed, hence the first of
    equals. A NaN follows a NaN unchanged."""
    value = np.moveaxis(np.asarray(plain_value(out)), axis, -1)
    if not value.size:
        return ct
    after, before = value[..., 1:], value[..., :-1]
    leads = np.ones(value.shape, bool)
    np.not_equal(after, before, out=leads[..., 1:])
    leads[..., 1:] &= (after == after) | (before == before)  # noqa: PLR0124 - only a NaN differs from itself
    places = np.flatnonzero(leads)
    sums = np.add.reduceat(np.reshape(np.moveaxis(ct, axis, -1), -1), places)
    return np.moveaxis(put(sums, places, shape=value.shape, distinct=True), -1, axis)


# --------------------------------------------------------------------------------------------------------------- reduce
def _lined(x: Any, axis: Axis) -> tuple[Any, tuple[int, ...], tuple[int, ...]]:
    """``x`` with the reduced axes as one, the first; its shape before they were one; and the order of its axes. A
    number is one element, along whichever axis."""
    ndim = len(x.shape)
    if not ndim:
        return np.reshape(x, (1,)), (), ()
    reduced = tuple(range(ndim)) if axis is None else normalize_axis_tuple(axis, ndim)
    order = (*reduced, *(k for k in range(ndim) if k not in reduced))
    turned = np.transpose(x, order)
    return np.reshape(turned, (prod(turned.shape[: len(reduced)]), *turned.shape[len(reduced) :])), turned.shape, order


def _to_terms(ct: Any, line: Any, out: Any) -> Any:
    """The cotangents of the terms of x[0] - x[1] - x[2] ..."""
    return np.concatenate((ct, np.broadcast_to(-ct, (line.shape[0] - 1, *line.shape[1:]))), 0)


def _to_factors(ct: Any, line: Any, out: Any) -> Any:
    """The cotangents of the factors of x[0] / x[1] / x[2] ..."""
    by_first = np.divide.reduce(np.concatenate((np.ones_like(line[:1]), line[1:]), 0), 0, keepdims=True)
    return np.concatenate((times(ct, by_first), over(times(-ct, out), line[1:])), 0)


def _to_legs(ct: Any, line: Any, out: Any) -> Any:
    """The cotangents of the legs of sqrt(x[0]**2 + x[1]**2 ...): x / out, 0 at the origin."""
    return ct * (line / np.where(out == 0, 1, out))


def _to_exponents(ct: Any, line: Any, out: Any) -> Any:
    """The cotangents of the exponents of log2(2**x[0] + 2**x[1] ...)."""
    return softmax(ct, line, out, ArraySpec(line.shape, line.dtype), 0, np.exp2)


CLOSED: dict[Any, Callable[..., Any]] = {
    np.subtract: _to_terms,
    np.divide: _to_factors,
    np.hypot: _to_legs,
    np.logaddexp2: _to_exponents,
}
"""Rules shorter than the chain along the axis, for at least two elements: of the cotangent, the line of elements and
the result."""
LOSES_STATES = (np.power, np.arctan2)
"""Functions whose ``reduce`` along contiguous elements gives f(x[0], x[-1]) where NumPy has a loop of AVX-512 for them
(seen in 2.4)."""


def _reduction(step: Primitive, ufunc: Any) -> Primitive:
    """``ufunc.reduce`` as a primitive; only the last state is a result, so its cotangent meets products of a's
    alone."""

    def rule(ct: Any, x: Any, out: Any, axis: Axis, dtype: Any, started: bool) -> Any:
        line, shape, order = _lined(x, axis)
        if not line.shape[0]:
            return np.zeros_like(x)
        ct = np.reshape(ct, (1, *line.shape[1:]))
        if started and line.shape[0] == 1:  # hypot(0, x) = |x|
            start = np.full(line.shape, ufunc.identity, line.dtype)
            ct = times(ct, _partial(step, 1, start, line, ufunc(start, line)))
        if line.shape[0] > 1 and ufunc in CLOSED:
            ct = CLOSED[ufunc](ct, line, np.reshape(out, ct.shape))
        elif line.shape[0] > 1:
            a, b = _steps(step, line, ufunc.accumulate(line, 0, dtype), 0)
            after = np.multiply.accumulate(np.concatenate((ct, a[BACKWARDS]), 0), 0)[BACKWARDS]
            ct = _to_line(after, b, 0)
        return np.transpose(np.reshape(ct, shape), np.argsort(order))

    def forward(x: Any, *, axis: Axis, dtype: Any, keepdims: bool, started: bool) -> Any:
        out = ufunc.reduce(
            x, axis, dtype, None, keepdims, **({"initial": None} if ufunc.identity is not None and not started else {})
        )
        if ufunc in LOSES_STATES and np.size(x):
            _require_fold(ufunc, x, axis, dtype, out)
        return out

    fold: Primitive = primitive(forward, name=f"{ufunc.__name__}_reduce", reach="reduced", vjps={"x": rule})
    return fold


def _require_fold(ufunc: Any, x: Any, axis: Axis, dtype: Any, out: Any) -> None:
    """Refuse a result of NumPy that is no fold."""
    last = plain_value(ufunc.accumulate(_lined(x, axis)[0], 0, dtype))[-1]
    if not np.allclose(np.reshape(plain_value(out), last.shape), last, 1e-2, 0, equal_nan=True):
        raise NotDifferentiableError(
            f"numpy.{ufunc.__name__}.reduce of this array along axis {axis} gives numbers that are no fold of its "
            "elements: NumPy's vectorised loop loses the intermediate ones, so there is no derivative; take the last "
            f"of numpy.{ufunc.__name__}.accumulate"
        )


def _walk(ufunc: Any, x: Any, axis: Axis, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    """The fold written out, slice by slice: for a start or a mask."""
    ufunc.reduce(*map(plain_value, (x, axis, dtype, None, keepdims, initial, where)))  # refuses what NumPy does
    line, _, _ = _lined(x, axis)
    mask = None if where is True else _lined(np.broadcast_to(plain_value(where), x.shape), axis)[0]
    initial = ufunc.identity if initial is ABSENT else initial
    state = np.broadcast_to(np.asarray(initial, x.dtype) if not hasattr(initial, "dtype") else initial, line.shape[1:])
    for k in range(line.shape[0]):
        new = ufunc(state, line[k])
        state = new if mask is None else np.where(mask[k], new, state)
    return keep(state, x.shape, axis) if keepdims else state


# -------------------------------------------------------------------------------------------------------- fmax and fmin
def _to_few(ct: Any, x: Any, out: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    """The cotangent to the few elements that are the extremum of all at once: their places are sooner found than a
    mask."""
    if axis is not None:
        return _to_extremes(ct, x, np.nan, True, out, x_spec, axis)
    places = np.flatnonzero(x == out)
    return put(
        np.broadcast_to(np.reshape(ct, ()) / max(places.size, 1), places.shape),
        places,
        shape=x_spec.shape,
        distinct=True,
    )


def _to_extremes(ct: Any, x: Any, initial: Any, where: Any, out: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    elements, _, share = shares(ct, x, initial, where, out, x_spec, axis, eq)  # no NaN equals the extremum
    return np.where(elements, share, 0)


def _to_initial(ct: Any, x: Any, initial: Any, where: Any, out: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    _, start, share = shares(ct, x, initial, where, out, x_spec, axis, eq)
    return np.where(start, share, 0)


def _past_nan(ufunc: Any) -> tuple[Primitive, Primitive]:
    """The reductions of fmax or fmin, without and with a start and a mask: ties share, a NaN has no part."""
    plain = primitive(
        lambda x, *, axis, dtype, keepdims: ufunc.reduce(x, axis, dtype, None, keepdims),
        name=f"{ufunc.__name__}_reduce",
        reach="reduced",
        masks=True,
        vjps={"x": _to_few},
    )
    general = primitive(
        lambda x, initial, where, *, axis, dtype, keepdims: ufunc.reduce(
            x, axis, dtype, None, keepdims, initial, where
        ),
        name=f"{ufunc.__name__}_reduce_where",
        reach="reduced",
        nondiff=("where",),
        masks=True,
        vjps={"x": _to_extremes, "initial": _to_initial},
    )
    return plain, general


# ------------------------------------------------------------------------------------------------ NumPy's ufunc methods
def _accumulate(ufunc: Any, fold: Primitive) -> Composite:
    def accumulate(array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        x = as_loop_reads(array, dtype)
        return fold(x, axis=normalize_axis_index(axis, x.ndim), dtype=dtype)

    return composite(ufunc.accumulate, name=f"{ufunc.__name__}.accumulate")(accumulate)


def _reduce(ufunc: Any, fold: Primitive, general: Primitive | None = None) -> Composite:
    has_start = ufunc.identity is not None

    def reduce(
        array: Any,
        axis: Axis = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = ABSENT,
        where: Any = True,
    ) -> Any:
        x = as_loop_reads(array, dtype)
        if (initial is ABSENT or initial is None) and where is True:
            options = {"started": has_start and initial is ABSENT} if general is None else {}
            return fold(x, axis=axis, dtype=dtype, keepdims=keepdims, **options)
        if general is not None and initial is not ABSENT:
            return general(x, initial, plain_value(where), axis=axis, dtype=dtype, keepdims=keepdims)
        return _walk(ufunc, x, axis, dtype, keepdims, initial, where)

    return composite(ufunc.reduce, name=f"{ufunc.__name__}.reduce")(reduce)


STEPS: tuple[tuple[Any, Primitive], ...] = (
    (np.subtract, ufunc_rules.subtract), (np.divide, ufunc_rules.divide), (np.power, powers.power),
    (np.float_power, powers.float_power), (np.remainder, ufunc_rules.remainder), (np.fmod, ufunc_rules.fmod),
    (np.arctan2, ufunc_rules.arctan2), (np.hypot, ufunc_rules.hypot), (np.logaddexp2, ufunc_rules.logaddexp2),
    (np.copysign, ufunc_rules.copysign), (np.heaviside, ufunc_rules.heaviside),
)  # fmt: skip
REDUCED: tuple[tuple[Any, Primitive], ...] = tuple((ufunc, _reduction(step, ufunc)) for ufunc, step in STEPS)
ACCUMULATED: tuple[tuple[Any, Primitive], ...] = (
    *((ufunc, _accumulation(step, ufunc)) for ufunc, step in (*STEPS, (np.logaddexp, ufunc_rules.logaddexp))),
    *((ufunc, _accumulate_by(ufunc, _to_leaders, masks=True)) for ufunc in (np.maximum, np.minimum, np.fmax, np.fmin)),
)
EXTREMA: tuple[tuple[Any, Primitive, Primitive], ...] = tuple(
    (ufunc, *_past_nan(ufunc)) for ufunc in (np.fmax, np.fmin)
)

FOLDS: tuple[Primitive | Composite, ...] = (
    *(fold for _, fold in (*REDUCED, *ACCUMULATED)),
    *(fold for _, *folds in EXTREMA for fold in folds),
    *(_reduce(ufunc, fold) for ufunc, fold in REDUCED),
    *(_reduce(ufunc, plain, general) for ufunc, plain, general in EXTREMA),
    *(_accumulate(ufunc, fold) for ufunc, fold in ACCUMULATED),
)
