"""The calls that NablaFuzz recorded of jax.numpy and jax.scipy, as calls of NumPy's functions.

NablaFuzz (https://github.com/ise-uiuc/NablaFuzz, read at commit b65693b) ran the tests and documents of JAX and kept,
for each function, the arguments that it met: shapes and dtypes of arrays, values of scalars and options, in dumps of
MongoDB. Neither those files nor anything of their code is part of this repository: they are read from a checkout.
"""

import json
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

DUMPS = Path("NablaFuzz-PyTorch-Jax", "dump", "jax-test-unique")
# Functions under another name in NumPy 2, and those of SciPy that NumPy has as well.
RENAMED = {
    "jax.numpy.trapz": "trapezoid",
    "jax.numpy.in1d": "isin",
    **{f"jax.scipy.linalg.{name}": f"linalg.{name}" for name in ("det", "eigh", "qr", "solve", "svd")},
    **{f"jax.scipy.signal.{name}": name for name in ("convolve", "correlate")},
}
ARRAYS = {"jaxarray", "nparray", "tracer"}
# NumPy has no bfloat16; what it would show, float32 shows.
DTYPES = {"bfloat16": "float32"}
JAX_ONLY = {"precision"}
LARGE = 100_000


class UnwrittenError(Exception):
    """A recorded argument whose value was not written down: a function, a slice, an object of a test."""


@frozen
class Draw:
    """Where the elements of arrays lie, of which the record has only the shape."""

    low: float
    high: float
    integers: tuple[int, int]
    symmetric: bool = False

    def array(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        if dtype.kind == "b":
            return np.asarray(rng.integers(0, 2, shape)).astype(dtype)
        if dtype.kind in "iu":
            return np.asarray(rng.integers(*self.integers, shape)).astype(dtype)
        drawn = np.asarray(rng.uniform(self.low, self.high, shape))
        if dtype.kind == "c":
            drawn = drawn + 1j * rng.uniform(self.low, self.high, shape)
        if self.symmetric and drawn.ndim >= 2 and shape[-1] == shape[-2]:
            drawn = drawn @ np.conj(np.swapaxes(drawn, -1, -2)) + np.eye(shape[-1])
        return drawn.astype(dtype)


# In this order: the first that NumPy accepts with a finite result is the one judged.
DRAWS = (
    Draw(-2.0, 2.0, (-3, 4)),
    Draw(0.1, 0.9, (0, 2)),
    Draw(1.1, 3.0, (1, 4)),
    Draw(-1.0, 1.0, (0, 1), symmetric=True),
)


def numpys(name: str) -> Callable[..., Any] | None:
    """NumPy's function of a recorded name, or None."""
    path = RENAMED.get(name) or name.removeprefix("jax.numpy.")
    try:
        found = reduce(getattr, path.split("."), np)
    except AttributeError:
        return None
    return found if callable(found) and not isinstance(found, type) else None


def recorded(checkout: Path) -> dict[str, list[dict[str, Any]]]:
    """Recorded argument sets by name, for the functions of jax.numpy and jax.scipy; needs pymongo's ``bson``."""
    import bson  # noqa: PLC0415 - pymongo is no dependency; without it only this fails

    sets = {}
    for path in sorted((checkout / DUMPS).glob("jax.*.bson")):
        if path.stem.startswith(("jax.numpy.", "jax.scipy.")):
            sets[path.stem] = bson.decode_all(path.read_bytes())
    return sets


def distinct(sets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sets that differ once every kind of array is an array, a bfloat16 a float32, and JAX's own options are
    gone."""
    kept = {}
    for record in sets:
        plain = {key: _plain(part) for key, part in record.items() if key not in JAX_ONLY and key != "_id"}
        kept.setdefault(json.dumps(plain, sort_keys=True), plain)
    return list(kept.values())


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    part = dict(part)
    if part["Label"] == "list":
        return part | {"value": [_plain(item) for item in part["value"]]}
    if "dtype" in part:
        part["dtype"] = DTYPES.get(part["dtype"], part["dtype"])
    return part | {"Label": "array"} if part["Label"] in ARRAYS else part


def elements(part: Any) -> int:
    """How many numbers the arrays of a recorded argument have."""
    if part["Label"] == "list":
        return sum(map(elements, part["value"]))
    return int(np.prod(part.get("shape", [0]), dtype=float))


def calls(record: dict[str, Any], seed: int) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments and options of the call, once for each draw and for sequences as tuples and as lists: the record does
    not tell one from the other."""
    for draw in DRAWS:
        for sequence in (tuple, list):
            rng = np.random.default_rng(seed)
            made = {key: _made(part, draw, rng, sequence) for key, part in record.items()}
            places = sorted((key for key in made if key.startswith("parameter:")), key=lambda key: int(key[10:]))
            yield tuple(made.pop(key) for key in places), made


def _made(part: dict[str, Any], draw: Draw, rng: np.random.Generator, sequence: Callable[[Any], Any]) -> Any:
    match part["Label"]:
        case "array":
            if part["dtype"] == "object":
                raise UnwrittenError("objects")
            return draw.array(rng, tuple(part["shape"]), np.dtype(part["dtype"]))
        case "scalar":
            return np.array(_number(part["value"]), part["dtype"])
        case "npraw":
            value = part["value"] == "True" if part["dtype"] == "bool" else _number(part["value"])
            return np.dtype(part["dtype"]).type(value)
        case "nptype":
            return getattr(np, DTYPES.get(part["value"], part["value"]), None) or np.dtype(part["value"]).type
        case "raw":
            return _number(part["value"])
        case "list":
            return sequence([_made(item, draw, rng, sequence) for item in part["value"]])
        case "other" if part["type"] == "<class 'NoneType'>":
            return None
    raise UnwrittenError(part.get("type", part["Label"]))


def _number(text: Any) -> Any:
    """What a text says: JSON, a number of Python, or itself."""
    for reading in (json.loads, float, complex):
        try:
            return reading(text)
        except (ValueError, TypeError):
            continue
    return text
