"""A handwritten adjoint of a time step beside the pull of this library, step by step from the last one."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from pullback.testing.comparing.differences import derivatives, flatten, inner, random_like, tolerance
from pullback.testing.comparing.faults import Fault, raise_faults
from pullback.transforms.derivatives.reverse import vjp
from pullback.words.call_sites import public
from pullback.words.specs import carries_derivative
from pullback.words.structures import flatten as leaves_of
from pullback.words.structures import map_leaves, matched, paths, unflatten

EDGE = 2
"""Differences that lie within so many elements of an end of an axis are told to lie there."""


@frozen
class AdjointComparison:
    """What :func:`compare_adjoint` found where all steps agree: for each leaf the greatest relative difference, and the
    step where it is; prints as a table.

    Attributes
    ----------
    name
        That of the step.
    n
        How many steps were compared.
    leaves
        For each leaf its name, the greatest relative difference and the step.

    Example
    -------
    >>> import pullback.testing as pt
    >>> pt.compare_adjoint(lambda k, u: 2.0 * u, lambda k, u, ct: 2.0 * ct, 1.0, 3).n
    3
    """

    name: str
    n: int
    leaves: tuple[tuple[str, float, int], ...]

    def __str__(self) -> str:
        width = max(4, *(len(leaf) for leaf, _, _ in self.leaves))
        rows = (f"{leaf:{width}}  {gap:18.1e}  {k:7d}" for leaf, gap, k in self.leaves)
        head = f"{'leaf':{width}}  {'largest difference':>18}  {'at step':>7}"
        return "\n".join([f"the adjoint of {self.name} by hand agrees in {self.n} steps", head, *rows])


@public
def compare_adjoint(
    step: Callable[..., Any],
    hand: Callable[..., Any],
    init: Any,
    n: int,
    *,
    params: tuple[Any, ...] = (),
    ct: Any = None,
    rtol: float | None = None,
    seed: int = 0,
) -> AdjointComparison:
    """An adjoint written by hand beside the pull of ``step``, step by step, if they agree.

    Steps are compared from the last to the first, and both sides of a step get the same cotangent, so that a step is
    found by its own fault. The error says where in the leaf the two differ, by which factor if it is one, and which of
    them a numeric derivative of ``step`` bears out. Both functions get copies: they may write to what they get.

    Parameters
    ----------
    step
        ``step(k, state, *params)`` returns the next state, as the body of ``fori_loop`` does.
    hand
        ``hand(k, state, ct, *params)`` returns the cotangent of ``state``, given that of the next state; with
        ``params`` a tuple of it and of what this step adds to the cotangent of each.
    init
        The first state, an array or a structure.
    n
        How many steps are taken, all of whose states are kept: a few tell as much as many.
    params
        Arrays or structures that all steps read.
    ct
        The cotangent of the last state; by default random numbers of ``seed``, so that no element is left out.
    rtol
        What a difference may be, relative to the largest element of its leaf: 1e-8 in float64, 3e-4 in float32.
    seed
        Of the cotangent.

    Returns
    -------
    An :class:`AdjointComparison`, which prints as a table.

    Raises
    ------
    CheckError
        Names the first step and leaf that differ; also for a result of ``hand`` whose structure or shape does not fit.
    ValueError
        For ``n`` below 1.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> def step(k, u):
    ...     return u + 0.1 * u * (1 - u)
    >>> def hand(k, u, ct):
    ...     return ct + 0.1 * ct * (1 - u)  # it should read 1 - 2 * u
    >>> pb.testing.compare_adjoint(step, hand, np.linspace(0.1, 0.9, 5), 3)
    Traceback (most recent call last):
    ...
    pullback.CheckError: compare_adjoint(step): 1 fault
      1. step 2 of 0 ... 2, state: float64[5]: hand differs in all 5 elements, most at [4]: ...
    """
    if n < 1:
        raise ValueError(f"compare_adjoint takes n >= 1 steps, got n={n}; pass the number of steps to compare")
    name = str(getattr(step, "__name__", type(step).__name__))
    states = [_copies(init)]
    for k in range(n):
        states.append(_copies(step(k, _copies(states[-1]), *_copies(params))))
    if ct is None:
        rng = np.random.default_rng(seed)
        ct = map_leaves(lambda leaf: random_like(rng, leaf) if carries_derivative(leaf) else None, states[-1])
    worst: dict[str, tuple[float, int]] = {}
    for k in reversed(range(n)):
        case = _Step(step, hand, k, (states.pop(-2), *params), ct)
        ct, faults = case.ours[0], []
        for leaf, gap, text in case.gaps(rtol):
            worst[leaf] = max(worst.get(leaf, (0.0, k)), (gap, k), key=lambda pair: pair[0])
            if text:
                faults.append(Fault(f"step {k} of 0 ... {n - 1}, {leaf}", text))
        if faults and k < n - 1:
            faults[-1] = Fault(faults[-1].kind, f"{faults[-1].text}\n     Steps {k + 1} to {n - 1} agree.")
        raise_faults(f"compare_adjoint({name})", faults)
    return AdjointComparison(name, n, tuple((leaf, gap, k) for leaf, (gap, k) in worst.items()))


class _Step:
    """Step ``k``: what goes in (the state, the parameters), and both cotangents of that."""

    def __init__(self, step: Any, hand: Any, k: int, inputs: tuple[Any, ...], ct: Any) -> None:
        self.step, self.k, self.inputs, self.ct = step, k, inputs, ct
        self.ours: tuple[Any, ...] = vjp(lambda *given: step(k, *given), *_copies(inputs))[1](_copies(ct))
        state, *params = _copies(inputs)
        theirs = hand(k, state, _copies(ct), *params)
        self.theirs = tuple(theirs) if params and isinstance(theirs, tuple | list) else (theirs,)

    def gaps(self, rtol: float | None) -> Iterator[tuple[str, float, str]]:
        """The name of each leaf, how far both are apart relative to its largest element, and the text of the fault."""
        if len(self.theirs) != len(self.inputs):
            expected = "the cotangent of the state" + " and one of each of the params" * (len(self.inputs) > 1)
            yield "state", np.inf, f"hand returned {len(self.theirs)} cotangents; return {expected}: {len(self.inputs)}"
            return
        for part, (given, ours, theirs) in enumerate(zip(self.inputs, self.ours, self.theirs, strict=True)):
            where = "state" if part == 0 else f"params[{part - 1}]"
            leaves, definition = leaves_of(given)
            found = matched(theirs, definition)
            if found is None:
                yield where, np.inf, f"hand returned {leaves_of(theirs)[1]}; return the structure {definition}"
                continue
            pulled = matched(ours, definition) or []
            for place, leaf in enumerate(leaves):
                if carries_derivative(leaf):
                    named = where + paths(given)[place]
                    yield self._gap(named, (part, place), leaf, pulled[place], found[place], rtol)

    def _gap(
        self, named: str, at: tuple[int, int], leaf: Any, ours: Any, theirs: Any, rtol: float | None
    ) -> tuple[str, float, str]:
        mine = np.asarray(ours)
        if theirs is None or np.shape(theirs) != mine.shape:
            given = "None" if theirs is None else f"shape {np.shape(theirs)}"
            return named, np.inf, f"hand returned {given}; return an array of shape {mine.shape}"
        other = np.asarray(theirs)
        allowed = tolerance(leaf) if rtol is None else rtol
        scale = float(np.max(np.abs(mine), initial=0.0))
        with np.errstate(all="ignore"):
            apart = np.where(np.isnan(other) & np.isnan(mine), 0.0, np.abs(other - mine))
        bad = ~(apart <= allowed * scale)
        gap = float(np.max(apart, initial=0.0)) / (scale or 1.0)
        if not bad.any():
            return named, gap, ""
        kind = f"{mine.dtype.name}[{','.join(map(str, mine.shape))}]"
        return named, gap, f"{kind}: {_told(mine, other, bad, apart)}{self._borne_out(at, mine, other)}"

    def _borne_out(self, at: tuple[int, int], mine: NDArray[Any], other: NDArray[Any]) -> str:
        """Which of both has the inner product with their difference that a numeric derivative of the step has."""
        part, place = at
        leaves, definition = leaves_of(self.inputs[part])
        way = np.conj(mine - other)
        size = float(np.max(np.abs(way)))
        if not np.isfinite(size):
            return ""
        way = way / size * (float(np.max(np.abs(leaves[place]))) or 1.0)

        def along(t: Any) -> NDArray[Any]:
            moved = list(leaves)
            moved[place] = leaves[place] + t * way
            inputs = list(_copies(self.inputs))
            inputs[part] = _copies(unflatten(definition, moved))
            return flatten(leaves_of(self.step(self.k, *inputs))[0])

        [numeric] = derivatives([along])
        weights = flatten(leaves_of(self.ct)[0])
        if not np.all(np.isfinite(numeric.value)) or weights.shape != numeric.value.shape:
            return ""
        wanted, ours, theirs = inner(weights, numeric.value), inner(mine, way), inner(other, way)
        side = "pullback" if abs(ours - wanted) <= abs(theirs - wanted) else "hand"
        return (
            f"\n     Along their difference the step has the derivative {wanted:.6g} ({numeric.method}), pullback "
            f"{ours:.6g}, hand {theirs:.6g}: {side} is borne out."
        )


def _told(mine: NDArray[Any], other: NDArray[Any], bad: NDArray[Any], apart: NDArray[Any]) -> str:
    """A sentence: in how many elements they differ, where these lie, the largest, the factor if there is one."""
    count, index = (
        int(bad.sum()),
        np.unravel_index(int(np.argmax(np.where(bad, np.nan_to_num(apart, nan=np.inf), -1.0))), bad.shape),
    )
    which = f"all {bad.size} elements" if count == bad.size else f"{count} of {bad.size} elements"
    place = "" if count == bad.size else _edges(bad)
    element = f" at {[int(i) for i in index]}" if bad.ndim else ""
    text = f"hand differs in {which}{place}, most{element}: hand {other[index]:.8g}, pullback {mine[index]:.8g}"
    with np.errstate(all="ignore"):
        factors = other[bad] / mine[bad]
    if count > 1 and np.all(np.isfinite(factors)) and np.allclose(factors, factors[0], rtol=1e-6, atol=0.0):
        text += f"; hand is {factors[0]:.6g} x pullback in all of them"
    return text + "."


def _edges(bad: NDArray[Any]) -> str:
    """The ends of axes near which all differences lie; nothing where they lie within."""
    places = np.nonzero(bad)
    for axis, (at, length) in enumerate(zip(places, bad.shape, strict=True)):
        low, high = int(at.max()), int(length - 1 - at.min())
        if length > 2 * EDGE + 1 and (low < EDGE or high < EDGE):
            return f", at the {'start' if low < EDGE else 'end'} of axis {axis}"
    return ""


def _copies(tree: Any) -> Any:
    return map_leaves(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, tree)
