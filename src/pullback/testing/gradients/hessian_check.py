"""Second derivatives, by each mode over each mode, against numeric derivatives and against each other.

Beside cotangents c of its outputs, f(x) is the scalar <c, f(x)> of x and c. Its gradient is (J'c, f), and its Hessian
times (v, w) is (Hv + J'w, Jv): one symmetric matrix in which the second derivative, the pull's own linear map and the
transpose of that stand side by side. So values and cotangent are traced together, as in a program around f.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from pullback.testing.comparing.differences import derivatives, flatten, inner, random_like, rounding_of, widened
from pullback.testing.comparing.faults import Fault
from pullback.testing.gradients.jacobian_check import Arrays, DerivativeLevel, largest, path_along, trusted, unlike
from pullback.transforms.derivatives.forward import jvp
from pullback.transforms.derivatives.reverse import vjp

CLOSER, DIGITS, FLOOR = 1e-3, 100.0, 1e-3
"""The ways agree to 1e-3 of what is allowed beside a numeric derivative (1e-10 in float64), or to 100 units of the last
digit if that is more, of their size or of 1e-3 if that is more."""


def hessian_faults(level: DerivativeLevel, rng: np.random.Generator, *, numeric: bool = True) -> Iterator[Fault]:
    """Faults of the next order: each mode over each mode, along one random direction, with numeric derivatives and with
    each other.

    Without ``numeric``, as at a kink, they are compared with each other alone.
    """
    xs, cts = level.xs, level.cts
    along = tuple(random_like(rng, z) for z in (*xs, *cts))
    above = evolve(level, order=level.order + 1, tol=10 * level.tol)
    products: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        for way, of in WAYS.items():
            try:
                products[way] = of(level, along[: len(xs)], along[len(xs) :])
            except Exception as error:  # noqa: BLE001 - whatever tracing raises is what is reported
                yield Fault(f"{above.word} {way} raised", f"{level.subject}: {type(error).__name__}: {error}")
        if len(products) == len(WAYS):
            yield from _unlike_each_other(above, products, along, kink=not numeric)
            if numeric:
                yield from _unlike_numeric(above, products, along)


def _gradient(level: DerivativeLevel) -> Callable[..., Arrays]:
    """(J'c, f) of (x, c)."""

    def gradient(*zs: Any) -> Arrays:
        outs, pull = vjp(level.fn, *zs[: len(level.xs)], policy=level.policy)
        return (*pull(zs[len(level.xs) :]), *outs)

    return gradient


def _reverse_over_reverse(level: DerivativeLevel, v: Arrays, w: Arrays) -> NDArray[Any]:
    _, pull = vjp(_gradient(level), *level.xs, *level.cts, policy=level.policy)
    return flatten(pull((*v, *w)))


def _forward_over_reverse(level: DerivativeLevel, v: Arrays, w: Arrays) -> NDArray[Any]:
    return flatten(jvp(_gradient(level), (*level.xs, *level.cts), (*v, *w))[1])


def _reverse_over_forward(level: DerivativeLevel, v: Arrays, w: Arrays) -> NDArray[Any]:
    (_, pushed), pull = vjp(lambda *xs: jvp(level.fn, xs, v), *level.xs, policy=level.policy)
    return flatten((*pull((w, level.cts)), *pushed))


def _forward_over_forward(level: DerivativeLevel, v: Arrays, w: Arrays) -> NDArray[Any]:
    """<c, f'' v v> + 2 <w, Jv>, which is the Hessian between (v, w) and itself."""
    (_, pushed), (_, twice) = jvp(lambda *xs: jvp(level.fn, xs, v), level.xs, v)
    return np.array([inner(flatten(level.cts), flatten(twice)) + 2 * inner(flatten(w), flatten(pushed))])


WAYS: dict[str, Callable[[DerivativeLevel, Arrays, Arrays], NDArray[Any]]] = {
    "reverse over reverse": _reverse_over_reverse,
    "forward over reverse": _forward_over_reverse,
    "reverse over forward": _reverse_over_forward,
    "forward over forward": _forward_over_forward,
}


def _unlike_each_other(
    level: DerivativeLevel, products: dict[str, Any], along: Arrays, *, kink: bool
) -> Iterator[Fault]:
    """The gradient of the gradient is the reference: of a symmetric matrix every other way has the same product, up to
    rounding.

    At a ``kink`` a NaN is compared with nothing: beside a pole it depends on the order of operations.
    """
    reference, *others = products.items()
    rounding = max(CLOSER * level.tol, DIGITS * rounding_of(along))
    for way, product in others:
        name, expected = reference
        scale = largest(expected)
        if product.size != expected.size:
            terms = expected * flatten(along)
            expected, scale = np.array([inner(expected, flatten(along))]), float(np.sum(np.abs(terms)))
        close = (product == expected) | (np.abs(product - expected) <= rounding * max(scale, FLOOR))
        unknown = np.isnan(product) | np.isnan(expected) if kink else np.isnan(product) & np.isnan(expected)
        wrong = np.flatnonzero(~(close | unknown))
        if wrong.size:
            k = int(wrong[0])
            yield Fault(
                f"{level.word} modes differ",
                f"the Hessian of <c, f(x)> of {level.subject} times a random direction is {product[k]:.10g} at element "
                f"{k} by {way}, {expected[k]:.10g} by {name}; a JVP rule, linear= or bilinear= of a primitive on the "
                "way says something else than its VJP rule",
            )


def _unlike_numeric(level: DerivativeLevel, products: dict[str, Any], along: Arrays) -> Iterator[Fault]:
    zs = (*level.xs, *level.cts)
    gradient = _gradient(level)
    moved = widened(zs, lambda values: flatten(gradient(*values)))
    whole = evolve(level, fn=gradient, xs=zs, moved=moved)
    rounding = rounding_of((*moved, *gradient(*moved)))  # a result may be in a lower precision than all that is moved
    (column,) = derivatives([path_along(whole, along)], rounding)
    size = sum(map(np.size, level.xs))
    if size and not np.any(trusted(column)[:size]):
        yield Fault(
            f"no {level.word} numeric derivative",
            f"{level.subject} has none at these arguments along a random direction; choose arguments inside the domain "
            "and away from kinks",
        )
    for way, product in products.items():
        if product.size == column.value.size:
            yield from unlike(
                whole,
                product,
                along,
                column,
                f"{way}, the rules on the way treat a traced value or cotangent as a constant",
            )
