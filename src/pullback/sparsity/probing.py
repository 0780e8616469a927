"""The structure of a linear operation, element by element, found by products with random vectors."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pullback.recording.handles import plain_value
from pullback.rules.declaration import Primitive
from pullback.sparsity.name_sets import LinearMap, selected, structure_of
from pullback.transforms.reverse import vjp


def _structure(apply: Callable[[Any], Any], units: Any, n: int, k: int) -> Any:
    """``(None, place of each)`` of a map that hands on elements, else rows and columns of its entries; None where that
    would take too long.

    ``units`` are 1 for real elements and 1 + i for complex ones, so that a map that looks at one part only is found
    out.
    """

    def plain(vector: NDArray[Any]) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(plain_value(apply(vector))).reshape(-1)

    if not n or not k:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    places = selected(plain, n, units)
    if places is not None:
        return None, places
    turned = units * np.exp(1j * np.arange(n)) if np.iscomplexobj(units) else units
    if k >= n:
        return structure_of(lambda vector: plain(vector * turned), n, k)
    out, pull = vjp(lambda vector: np.reshape(apply(vector), -1), np.ones(n) * units)
    phases = np.exp(1j * np.arange(k)) if np.iscomplexobj(out) else 1.0
    transposed: LinearMap = lambda ct: pull(ct * phases)[0]  # noqa: E731 - a name for its type
    found = structure_of(transposed, k, n)
    pull.close()
    return None if found is None else (found[1], found[0])


def _units(values: tuple[Any, ...], places: tuple[int, ...]) -> Any:
    """1 for each real element of the operands at these places, 1 + i for each complex one."""
    parts = [np.full(np.size(values[k]), 1 + 1j if np.iscomplexobj(plain_value(values[k])) else 1.0) for k in places]
    return np.concatenate(parts)


def _linear_map(
    prim: Primitive, values: tuple[Any, ...], params: Mapping[str, Any], places: tuple[int, ...], active: set[int]
) -> Callable[[Any], Any]:
    """A primitive as a function of some of its operands, joined to a vector; other active operands are random,
    constants as they are."""
    random = np.random.default_rng(3)
    linear = {k for k in range(len(values)) if prim.rule_name(k) in prim.linear or prim.reach == "moved"}
    fixed = [
        _fixed(plain_value(v), k in linear and places[0] in linear, k in active, random) for k, v in enumerate(values)
    ]
    shapes, real = (
        [np.shape(values[k]) for k in places],
        {k for k in places if not np.iscomplexobj(plain_value(values[k]))},
    )
    ends = np.cumsum([int(np.prod(shape, dtype=int)) for shape in shapes])

    def apply(vector: Any) -> Any:
        filled = list(fixed)
        for k, shape, end in zip(places, shapes, ends, strict=True):
            part = np.reshape(vector[end - int(np.prod(shape, dtype=int)) : end], shape)
            filled[k] = np.real(part) if k in real else part
        return prim(*filled, **params)

    return apply


def _fixed(value: Any, is_zero: bool, is_active: bool, random: Any) -> Any:
    """What stands for an operand that is not looked at: 0 where the map is linear in it, too, random numbers where
    it depends on inputs."""
    if is_zero:
        return np.zeros(np.shape(value))
    return random.uniform(0.5, 1.5, np.shape(value)) if is_active else value


def _key(x: Any) -> Any:
    """A constant or parameter as something to look it up by; an unknown object by what it is."""
    if isinstance(x, np.ndarray):
        return x.shape, x.dtype, x.tobytes()
    if isinstance(x, Mapping):
        return tuple((name, _key(value)) for name, value in x.items())
    if isinstance(x, tuple | list):
        return type(x), tuple(map(_key, x))
    if isinstance(x, slice):
        return "slice", x.start, x.stop, x.step
    return (type(x), x) if isinstance(x, int | float | complex | str | np.generic | type(None)) else id(x)
