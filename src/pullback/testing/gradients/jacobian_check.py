"""The Jacobian of a function, by its pull and by its forward derivative, against numeric derivatives.

A :class:`DerivativeLevel` is one order of differentiation: the function of the second level is the pull of the first.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from pullback.testing.comparing.bits import describe
from pullback.testing.comparing.differences import (
    Derivative,
    Path,
    derivatives,
    flatten,
    inner,
    random_like,
    rounding_of,
    tolerance,
    widened,
)
from pullback.testing.comparing.faults import Fault
from pullback.transforms.derivatives.forward import jvp
from pullback.transforms.derivatives.reverse import vjp

ALL_ELEMENTS = 24
TRUSTED = 1e-3
"""A numeric derivative with a larger relative error estimate judges nothing."""
NOTHING = 1e-6
"""The size below which a derivative is nothing but rounding."""
ORDERS = {1: "first", 2: "second", 3: "third"}

Arrays = tuple[Any, ...]


@frozen(eq=False)
class DerivativeLevel:
    """``fn(*xs)`` gives a tuple of arrays; ``cts`` are cotangents for them; ``order``: which derivative of the
    user's function."""

    subject: str
    fn: Callable[..., Arrays]
    xs: Arrays
    moved: Arrays
    """``xs`` as the numeric derivative moves them: in double precision where ``fn`` takes that."""
    cts: Arrays
    order: int
    tol: float
    policy: Any = None
    each_element: int = ALL_ELEMENTS
    """Elements in all operands up to which each is moved alone, besides three random directions."""

    @property
    def word(self) -> str:
        """``first-order``."""
        return f"{ORDERS.get(self.order, f'{self.order}th')}-order"


def next_level(level: DerivativeLevel, rng: np.random.Generator) -> DerivativeLevel:
    """The level whose function is the pull of this one, at fixed cotangents."""

    def gradient(*xs: Any) -> Arrays:
        _, pull = vjp(level.fn, *xs, policy=level.policy)
        return tuple(pull(level.cts))

    cts = tuple(random_like(rng, x) for x in level.xs)
    return evolve(level, fn=gradient, cts=cts, order=level.order + 1, tol=10 * level.tol)


def level_faults(level: DerivativeLevel, modes: tuple[str, ...], rng: np.random.Generator) -> Iterator[Fault]:
    """Faults of this order: "rev" compares <J'ct, v> with <ct, Jv>, "fwd" the derivative of the pull with Jv."""
    if not any(np.size(x) for x in level.xs):
        return
    vs = _directions(level.xs, rng, level.each_element)
    with np.errstate(all="ignore"):
        rounding = rounding_of((*level.moved, *level.fn(*level.moved)))  # of several outputs one may be rounded more
    columns = derivatives([path_along(level, v) for v in vs], rounding)
    ct = flatten(level.cts)
    if not any(_trusted(ct, c) for c in columns):
        yield Fault(
            f"no {level.word} numeric derivative",
            f"{level.subject} has none at these arguments along any of {len(vs)} directions; choose arguments inside "
            "the domain and away from jumps",
        )
        return
    for mode, check in (("rev", partial(_reverse, ct=ct)), ("fwd", _forward)):
        if mode in modes:
            try:
                yield from check(level, vs, columns)
            except Exception as error:  # noqa: BLE001 - whatever tracing raises is what is reported
                yield Fault(f"{level.word} {mode} raised", f"{level.subject}: {type(error).__name__}: {error}")


def _reverse(level: DerivativeLevel, vs: list[Arrays], columns: list[Derivative], ct: NDArray[Any]) -> Iterator[Fault]:
    _, pull = vjp(level.fn, *level.xs, policy=level.policy)
    gradient = tuple(pull(level.cts))
    for g, x in zip(gradient, level.xs, strict=True):
        if np.shape(g) != np.shape(x) or np.asarray(g).dtype != np.asarray(x).dtype:
            yield Fault(
                f"{level.word} wrong kind",
                f"{level.subject} has a cotangent {describe(g)} for a primal {describe(x)}; they are to be alike",
            )
            return
    rows = []
    for v, column in zip(vs, columns, strict=True):
        if _trusted(ct, column):
            expected, scale = inner(ct, column.value), float(np.sum(np.abs(ct) * np.abs(column.value)))
            rows.append((
                sum(map(inner, gradient, v)),
                expected,
                scale,
                10 * float(np.sum(np.abs(ct) * column.error)),
                v,
                column.method,
            ))
    floor = 0.01 * max(row[2] for row in rows) + 1e-6
    wrong = [r for r in rows if not abs(r[0] - r[1]) <= level.tol * (r[2] + floor) + r[3]]
    if wrong:
        got, expected, _, _, v, method = max(wrong, key=lambda r: abs(r[0] - r[1]) if np.isfinite(r[0]) else np.inf)
        yield Fault(
            f"{level.word} wrong gradient",
            f"<J'ct, v> of {level.subject} is {got:.10g} {_where(v)}, expected <ct, Jv> = {expected:.10g} by {method}; "
            f"{len(wrong)} of {len(rows)} directions differ. Check the rules on the way with check_primitive; at a "
            "kink or tie move the arguments off it",
        )


def _forward(level: DerivativeLevel, vs: list[Arrays], columns: list[Derivative]) -> Iterator[Fault]:
    """J v in two ways: carried forward, and as the pullback of the pull, which is linear in the cotangent: v ->
    d<pull(ct), v>/dct."""
    _, pull = vjp(level.fn, *level.xs, policy=level.policy)
    _, push = vjp(lambda *cts: tuple(pull(cts)), *level.cts)
    ways = (
        ("the pull of the pull", push, "the rules on the way are not linear in ct, or treat a traced ct as a constant"),
        (
            "jvp",
            lambda v: jvp(level.fn, level.xs, v)[1],
            "a JVP rule on the way, or linear= or bilinear= of a primitive, is wrong",
        ),
    )
    for v, column in zip(vs[:3], columns[:3], strict=True):
        for way, derivative, likely in ways:
            faults = list(unlike(level, flatten(derivative(v)), v, column, f"{way}, {likely}"))
            yield from faults
            if faults:
                return


def unlike(level: DerivativeLevel, got: NDArray[Any], v: Arrays, column: Derivative, by: str) -> Iterator[Fault]:
    """A fault where a derivative is not the numeric one; ``by`` says how it was formed, and what is likely wrong."""
    expected = column.value
    with np.errstate(all="ignore"):
        scale = largest(expected)
        known = trusted(column)
        off = np.abs(got - expected)[known] > (level.tol * (scale + NOTHING) + 10 * column.error[known])
    if np.any(off) or not np.all(np.isfinite(got[known])):
        place = int(np.argmax(np.abs(got - expected) * known))
        way, _, likely = by.partition(", ")
        yield Fault(
            f"{level.word} wrong forward derivative",
            f"Jv of {level.subject} by {way} is {got[place]:.10g} at output element {place} {_where(v)}, expected "
            f"{expected[place]:.10g} by {column.method}; {likely}",
        )


def largest(values: NDArray[Any]) -> float:
    """The largest finite magnitude."""
    return float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))


def trusted(column: Derivative) -> NDArray[np.bool_]:
    """Which elements of a numeric derivative may judge."""
    with np.errstate(all="ignore"):
        return np.asarray(column.error <= TRUSTED * (np.abs(column.value) + largest(column.value) + NOTHING))


def _trusted(ct: NDArray[Any], column: Derivative) -> bool:
    with np.errstate(all="ignore"):
        error, size = float(np.sum(np.abs(ct) * column.error)), float(np.sum(np.abs(ct) * np.abs(column.value)))
    return bool(np.isfinite(size) and error <= TRUSTED * (size + 1e-6 * float(np.sum(np.abs(ct)))))


def _directions(xs: Arrays, rng: np.random.Generator, each_element: int) -> list[Arrays]:
    """Three random directions; where there are few elements, each element alone besides."""
    vs = [tuple(random_like(rng, x) for x in xs) for _ in range(3)]
    if sum(map(np.size, xs)) <= each_element:
        for place, x in enumerate(xs):
            for k in range(np.size(x)):
                for unit in (1, 1j) if np.iscomplexobj(x) else (1,):
                    v = tuple(np.zeros_like(np.asarray(y)) for y in xs)
                    v[place].flat[k] = unit
                    vs.append(v)
    return vs


def _where(v: Arrays) -> str:
    moved = [(place, w) for place, w in enumerate(v) if np.any(w)]
    if len(moved) == 1 and np.count_nonzero(moved[0][1]) == 1:
        place, w = moved[0]
        index = tuple(int(k) for k in np.argwhere(w)[0]) if np.ndim(w) else ()
        return f"along element {index} of argument {place}" if index else f"along argument {place}"
    return "along a random direction"


def path_along(level: DerivativeLevel, v: Arrays) -> Path:
    """The function of the level along a direction."""
    wide = tuple(w.astype(np.result_type(w, np.float64)) for w in v)  # a small step times float16 would vanish

    def phi(t: Any) -> NDArray[Any]:
        return flatten(level.fn(*(_along(x, t, w) for x, w in zip(level.moved, wide, strict=True))))

    return phi


def _along(x: Any, t: Any, v: Any) -> Any:
    moved = np.asarray(x + t * v)
    if not isinstance(t, complex):
        moved = moved.astype(np.asarray(x).dtype)
        # A step that the operand's own rounding swallows would show any function as constant.
        lost = (moved == x) & (v != 0) & (np.abs(v) >= 0.5 * largest(v)) & np.isfinite(x)
        moved = np.where(lost, np.nan, moved).astype(moved.dtype) if t and np.any(lost) else moved
    return moved if isinstance(x, np.ndarray) else moved[()]


def start_level(
    subject: str,
    fn: Callable[..., Arrays],
    xs: Arrays,
    rng: np.random.Generator,
    policy: Any = None,
    each_element: int = ALL_ELEMENTS,
) -> DerivativeLevel:
    """The first order: random cotangents for the outputs of ``fn``, which is run once."""
    with np.errstate(all="ignore"):
        outs = fn(*xs)
    moved = widened(xs, lambda values: flatten(fn(*values)))
    return DerivativeLevel(
        subject,
        fn,
        xs,
        moved,
        tuple(random_like(rng, out) for out in outs),
        1,
        tolerance(*xs, *outs),
        policy,
        each_element,
    )
