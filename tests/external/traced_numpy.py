"""NumPy's namespace with every function traced: floating and complex arrays go in as tracers, a pullback is run, the
value comes back.

For the test suite of the Array API standard (data-apis/array-api-tests), which takes the name of a module and tests its
functions. From a copy of that suite, with the root of this project on the path::

    PYTHONPATH=/path/to/pullback ARRAY_API_TESTS_MODULE=tests.external.traced_numpy pytest array_api_tests

``PULLBACK_TRACED=0`` hands every call to NumPy as it is: the suite's result for plain NumPy under the same names.
"""

import os
from contextlib import suppress
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np

import pullback as pb
from pullback.words.structures import flatten, unflatten

__name__ = "traced_numpy"  # the name that the suite prints
TRACED = os.environ.get("PULLBACK_TRACED", "1") != "0"
# Constructors of types and questions about them, and what hands out the memory itself.
PLAIN = {
    "from_dlpack", "isdtype", "finfo", "iinfo", "broadcast_shapes", "__array_namespace_info__", "set_printoptions",
    "dtype", "asarray",
}  # fmt: skip


def _carries(leaf: Any) -> bool:
    """Whether the leaf is an array or NumPy scalar that may carry a derivative."""
    return isinstance(leaf, np.ndarray | np.inexact) and leaf.dtype.kind in "fc"


def _traced(function: Any) -> Any:
    """The function, run on tracers and reversed once; without one where no argument carries a derivative."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, definition = flatten((args, kwargs))
        places = [k for k, leaf in enumerate(leaves) if _carries(leaf)]
        if not places:
            return function(*args, **kwargs)

        def on_tracers(*xs: Any) -> Any:
            filled = list(leaves)
            for place, x in zip(places, xs, strict=True):
                filled[place] = x
            inner_args, inner_kwargs = unflatten(definition, filled)
            return function(*inner_args, **inner_kwargs)

        out, pull = pb.vjp(on_tracers, *(leaves[k] for k in places))
        results, shape = flatten(out)
        with (
            np.errstate(all="ignore"),
            suppress(pb.NotDifferentiableError),
        ):  # a point without a derivative, such as qr of a zero matrix
            pull(unflatten(shape, [np.ones_like(leaf) if _carries(leaf) else None for leaf in results]))
        return out

    return call


def _namespace(module: Any) -> dict[str, Any]:
    """The public names of a module of NumPy; its functions traced, its types and constants as they are."""
    names: dict[str, Any] = {}
    for name in dir(module):
        thing = getattr(module, name)
        usable = (
            TRACED
            and callable(thing)
            and not isinstance(thing, type)
            and name not in PLAIN
            and not name.startswith("_")
        )
        names[name] = _traced(thing) if usable else thing
    return names


def _submodule(name: str) -> ModuleType:
    """``linalg`` or ``fft``, traced."""
    made = ModuleType(f"traced_numpy.{name}")
    made.__dict__.update(_namespace(getattr(np, name)))
    return made


globals().update({name: thing for name, thing in _namespace(np).items() if not name.startswith("__")})
__array_namespace_info__ = np.__array_namespace_info__
linalg, fft = _submodule("linalg"), _submodule("fft")
