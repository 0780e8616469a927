"""``odeint``: ordinary differential equations by explicit Runge-Kutta steps, and their adjoint under a memory policy.

Discretise, then differentiate: the steps are a loop function, and the adjoint is the reverse of that loop. It has the
same bits under every policy. An adaptive method first chooses its steps in a run on plain values, which holds nothing.
Those steps, as fractions of the interval between two output times, are constants of the derivative. Formulas: Hairer,
Nørsett, Wanner, Solving Ordinary Differential Equations I, sections II.1 and II.4.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import frozen

from pullback.loops.functions.loop_functions import fori_loop, scan
from pullback.memory.in_force import innermost
from pullback.policies.base import PolicyOrAuto
from pullback.recording.handles import Handle, plain_value, twin_of
from pullback.solving.implicit_derivative import paused
from pullback.words.call_sites import public
from pullback.words.errors import ConvergenceError, StructureError
from pullback.words.specs import carries_derivative, spec_of
from pullback.words.structures import flatten, map_leaves, unflatten


@frozen
class Tableau:
    """A Butcher tableau: nodes ``c``, rows of ``a`` below the diagonal, weights ``b``; ``e`` are the weights of the
    error estimate."""

    c: tuple[float, ...]
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    e: tuple[float, ...] = ()
    order: int = 4


RK4 = Tableau(c=(0.0, 0.5, 0.5, 1.0), a=((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), b=(1 / 6, 1 / 3, 1 / 3, 1 / 6))
"""The classical method of Kutta, Z. Math. Phys. 46 (1901)."""

DOPRI5 = Tableau(
    c=(0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    a=(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    b=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
    e=(71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
    order=5,
)
"""Dormand and Prince, A family of embedded Runge-Kutta formulae, J. Comput. Appl. Math. 6 (1980), RK5(4)7M."""

METHODS = {"rk4": RK4, "dopri5": DOPRI5}
SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0
"""Factors of the step size control of Hairer, Nørsett, Wanner, section II.4."""


@public
def odeint(
    f: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    method: str = "dopri5",
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    steps_per_interval: int | None = None,
    max_steps: int = 10_000,
    policy: PolicyOrAuto = None,
) -> Any:
    """The solution of dy/dt = ``f(y, t, *args)`` with y(t[0]) = ``y0``, at the times ``t``.

    Differentiable by ``y0``, ``t``, ``args`` and what ``f`` closes over, in both modes and to any order.

    Parameters
    ----------
    f
        Returns the like of ``y0``.
    y0
        Any structure of floating or complex leaves; their dtypes are kept.
    t
        A vector of at least one time, in either direction.
    *args
        Further arguments of ``f``, of any structure.
    method
        ``"dopri5"`` (order 5) or, with ``steps_per_interval``, ``"rk4"``.
    rtol, atol
        Without ``steps_per_interval`` the steps are chosen so that the error estimate stays below ``atol + rtol |y|``
        in the root mean square. The derivative takes them as they are.
    steps_per_interval
        That many equal steps between two times.
    max_steps
        The most steps between two times where they are chosen.
    policy
        Governs the steps (default: the policy in force).

    Returns
    -------
    The structure of ``y0``, each leaf with a first axis of ``len(t)``.

    Raises
    ------
    ConvergenceError
        Where ``max_steps`` do not suffice.
    StructureError
        For an ``f`` that returns another structure or shape.

    Source: Dormand and Prince, A family of embedded Runge-Kutta formulae, J. Comput. Appl. Math. 6 (1980), 19-26.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> def last(rate):
    ...     return pb.odeint(lambda y, t: -rate * y, 1.0, np.array([0.0, 1.0]))[-1]
    >>> float(round(pb.grad(last)(0.5), 6))
    -0.606531
    """
    times = _times(t)
    start = map_leaves(lambda leaf: leaf if carries_derivative(leaf) else np.asarray(leaf, float)[()], y0)
    if method not in METHODS or (steps_per_interval is None and not METHODS[method].e):
        raise StructureError(f"odeint: method={method!r}; take 'dopri5', or 'rk4' with steps_per_interval=")
    tableau = METHODS[method]

    def slope(y: Any, now: Any) -> Any:
        return _like(y, f(y, now, *args))

    n = times.shape[0] - 1
    if steps_per_interval is not None:
        intervals = [IntervalSteps.equal(steps_per_interval)] * n
    else:
        if not (
            np.all(np.isfinite(rtol + atol)) and np.min(rtol) >= 0 and np.min(atol) >= 0 and np.all(rtol + atol > 0)
        ):
            raise StructureError(
                f"odeint: rtol={rtol} and atol={atol}; give tolerances of 0 or more, and not 0 for both"
            )
        with everything_paused():
            intervals = StepSizeControl(tableau, rtol, atol, max_steps).steps(
                slope, map_leaves(_plain, start), np.array(_plain(times), float)
            )
    rest = _integrated(tableau, slope, start, times, intervals, policy) if n else None
    return _joined(start, rest)


def _integrated(
    tableau: Tableau, slope: Any, start: Any, times: Any, intervals: "list[IntervalSteps]", policy: Any
) -> Any:
    """The solution at ``times[1:]``: a loop over the intervals, in each of which a loop goes over its steps."""

    def interval(y: Any, x: Any) -> tuple[Any, Any]:
        k, begin, end = x
        steps, span = intervals[k], end - begin

        def step(j: int, y: Any) -> Any:
            return advance(tableau, slope, y, begin + steps.starts[j] * span, steps.widths[j] * span)[0]

        y = step(0, y) if len(steps.widths) == 1 else fori_loop(0, len(steps.widths), step, y, policy=policy)
        return y, y

    return scan(interval, start, (np.arange(len(intervals)), times[:-1], times[1:]), policy=policy)[1]


@frozen(eq=False)
class IntervalSteps:
    """The steps within one interval between two output times: where each starts and how wide it is, as fractions of
    the interval."""

    starts: Any
    widths: Any

    @classmethod
    def equal(cls, n: int) -> "IntervalSteps":
        """``n`` equal steps."""
        if not hasattr(n, "__index__") or n < 1:
            raise StructureError(f"odeint: steps_per_interval={n}; take 1 or more, an integer")
        return cls(np.arange(n) / n, np.full(n, 1.0 / n))


def advance(tableau: Tableau, slope: Any, y: Any, t: Any, h: Any) -> tuple[Any, list[Any]]:
    """One Runge-Kutta step: y(t + h), and the leaves of the slope at each stage."""
    leaves, definition = flatten(y)
    slopes: list[Any] = []
    for node, row in zip(tableau.c, tableau.a, strict=True):
        inner = _moved(leaves, h, row, slopes) if row else leaves
        if (
            node == 1.0
            and row == tableau.b[: len(row)]
            and len(tableau.b) == len(row) + 1
            and not any(tableau.b[len(row) :])
        ):
            return unflatten(definition, inner), slopes  # only the error estimate needs the last slope
        slopes.append(flatten(slope(unflatten(definition, inner), t + node * h))[0])
    return unflatten(definition, _moved(leaves, h, tableau.b, slopes)), slopes


def _moved(leaves: list[Any], h: Any, weights: tuple[float, ...], slopes: list[Any]) -> list[Any]:
    """The state moved by h times a sum of weighted slopes, leaf by leaf, in its own dtypes."""
    used = [(w, s) for w, s in zip(weights, slopes, strict=False) if w]
    new = []
    for k, leaf in enumerate(leaves):
        total = used[0][0] * used[0][1][k]
        for weight, s in used[1:]:
            total = total + weight * s[k]
        new.append(_cast(leaf + h * total, leaf))
    return new


def _cast(new: Any, old: Any) -> Any:
    dtype = getattr(old, "dtype", None)
    return new if dtype is None or getattr(new, "dtype", dtype) == dtype else new.astype(dtype)


@frozen
class StepSizeControl:
    """The choice of the steps of an adaptive method, on plain values: Hairer, Nørsett, Wanner, section II.4."""

    tableau: Tableau
    rtol: float
    atol: float
    max_steps: int

    def steps(self, slope: Any, y: Any, times: Any) -> list[IntervalSteps]:
        """The steps of each interval."""
        intervals, h = [], np.inf
        with np.errstate(over="ignore", invalid="ignore"):  # a trial step may overflow; it is then refused
            for begin, end in pairwise(times):
                if h == np.inf and end != begin:
                    h = self._first(slope, y, begin, end - begin)
                y, steps, h = self._interval(slope, y, begin, end - begin, h)
                intervals.append(steps)
        return intervals

    def _interval(self, slope: Any, y: Any, begin: float, span: float, h: float) -> tuple[Any, IntervalSteps, float]:
        """The state at the end of an interval, its steps, and the step size with which the next interval begins."""
        starts, widths, at, tried = [], [], 0.0, 0
        while tried < self.max_steps and (at + abs(h / span) > at if span else True):
            tried += 1
            rest = 1.0 - at
            last = span == 0 or abs(h / span) >= rest * (1 - 1e-9)
            width = rest if last else abs(h / span)
            new, slopes = advance(self.tableau, slope, y, begin + at * span, width * span)
            error = self._error(slope, y, new, slopes, begin + (at + width) * span, width * span)
            factor = GROW if error == 0 else min(GROW, max(SHRINK, SAFETY * error ** (-1 / self.tableau.order)))
            proposed = abs(width * span) * factor
            if error > 1:
                h = proposed
                continue
            starts.append(at)
            widths.append(width)
            y, at = new, at + width
            if last:
                return y, IntervalSteps(np.array(starts), np.array(widths)), max(h, proposed)
            h = proposed
        raise ConvergenceError(
            f"odeint: {tried} steps, of which {len(widths)} were taken, lead from t = {begin:.6g} to "
            f"{begin + at * span:.6g} and not to {begin + span:.6g}; the next would be {h:.3g}. Give a larger "
            "max_steps=, rtol= or atol=; if the equation is stiff, many equal steps (steps_per_interval=) or an "
            "implicit method; if the solution ends there, an earlier time",
            (1.0 - at) * abs(span),
            tried,
        )

    def _error(self, slope: Any, y: Any, new: Any, slopes: list[Any], t: float, h: float) -> float:
        """The estimate of the local error in units of the tolerance; infinite where something is not finite."""
        slopes = [*slopes, flatten(slope(new, t))[0]]
        total, count = 0.0, 0
        for k, (a, b) in enumerate(zip(flatten(y)[0], flatten(new)[0], strict=True)):
            estimate = h * sum(w * np.asarray(s[k]) for w, s in zip(self.tableau.e, slopes, strict=True))
            total += float(np.sum(np.abs(estimate / (self.atol + self.rtol * np.maximum(np.abs(a), np.abs(b)))) ** 2))
            count += np.size(a)
        return float(np.sqrt(total / max(count, 1))) if np.isfinite(total) else np.inf

    def _first(self, slope: Any, y: Any, t: float, span: float) -> float:
        """A first step size: Hairer, Nørsett, Wanner, section II.4, algorithm 4.14 without its second slope."""
        size, rate, count = 0.0, 0.0, 0
        for leaf, s in zip(flatten(y)[0], flatten(slope(y, t))[0], strict=True):
            scale = self.atol + self.rtol * np.abs(leaf)
            size += float(np.sum(np.abs(leaf / scale) ** 2))
            rate += float(np.sum(np.abs(s / scale) ** 2))
            count += np.size(leaf)
        guess = 0.01 * np.sqrt(size / rate) if size > 1e-10 * max(count, 1) and rate > 1e-10 * max(count, 1) else 1e-6
        return float(min(abs(span), guess))


@contextmanager
def everything_paused() -> Iterator[None]:
    """Within the block every trace under way is paused: operations on handles run on their values."""
    with ExitStack() as stack:
        while (tape := innermost()) is not None:
            stack.enter_context(paused(tape))
        yield


def _plain(leaf: Any) -> Any:
    """The value of a leaf, as a copy that a function may write to."""
    return twin_of(plain_value(leaf))


def _times(t: Any) -> Any:
    times: Any = t if isinstance(t, Handle) else np.asarray(t)
    if len(times.shape) != 1 or times.shape[0] < 1:
        raise StructureError(f"odeint: t has shape {times.shape}; give a vector of times, the first being that of y0")
    if times.dtype.kind not in "fiu":
        raise StructureError(f"odeint: t has dtype {times.dtype}; give real times")
    wrong = np.flatnonzero(~np.isfinite(_plain(times)))
    if len(wrong):
        raise StructureError(f"odeint: t[{wrong[0]}] is {_plain(times)[wrong[0]]}; give finite times")
    return times if isinstance(t, Handle) else times.astype(float)


def _like(y: Any, dy: Any) -> Any:
    """The slope, where it has the structure and shapes of the state; raises :class:`StructureError` otherwise."""
    (leaves, definition), (slopes, other) = flatten(y), flatten(dy)
    if definition != other:
        raise StructureError(f"odeint: f returned the structure {other}, the state has {definition}; return its like")
    for a, b in zip(leaves, slopes, strict=True):
        if spec_of(a).shape != spec_of(b).shape:
            raise StructureError(
                f"odeint: f returned {spec_of(b)} for a leaf {spec_of(a)} of the state; return the like of the state"
            )
        if spec_of(b).dtype.kind == "c" and spec_of(a).dtype.kind != "c":
            raise StructureError(
                f"odeint: f returned {spec_of(b)} for a leaf {spec_of(a)} of the state; start from a complex y0 "
                "(y0 + 0j)"
            )
    return map_leaves(twin_of, dy)  # a copy: f may fill the same buffer at each call


def _joined(start: Any, rest: Any) -> Any:
    """The initial state in front of the others."""
    leaves, definition = flatten(start)
    if rest is None:
        return unflatten(definition, [np.stack([leaf]) for leaf in leaves])
    return unflatten(
        definition, [np.concatenate([np.stack([a]), b]) for a, b in zip(leaves, flatten(rest)[0], strict=True)]
    )
