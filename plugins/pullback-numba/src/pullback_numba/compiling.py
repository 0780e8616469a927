"""Nests as kernels: compiled by numba at their first call, once for equal texts, and kept on disk where the user says
so."""

import linecache
import math
import os
import platform
import sys
from collections import deque
from collections.abc import Callable
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Final

import numba
import numpy as np
from attrs import frozen
from numba import types

from pullback.backends import Kernel, Plan, side_by_side
from pullback_numba.loops import NestText
from pullback_numba.nests import Nest

CACHE: Final = "PULLBACK_NUMBA_CACHE"
"""The environment variable that names a folder in which compiled nests are kept."""
_OPTIONS: Final[dict[str, Any]] = {
    # Each of them keeps NumPy's bits: no sums in another order, no product and sum in one, no error for x / 0.
    "fastmath": False, "error_model": "numpy", "boundscheck": False, "nogil": True,
}  # fmt: skip
_ARM, _INTEL = 1 | 2 | 4, 1 | 4 | 8
_FLAGS = {"x86_64": _INTEL, "AMD64": _INTEL, "aarch64": _ARM, "arm64": _ARM}
"""FE_INVALID, FE_DIVBYZERO and FE_OVERFLOW of <fenv.h>, by processor."""
FEWEST: Final = 1 << 15
"""Points of a nest for each thread."""
_KERNELS: dict[str, Callable[..., Any]] = {}
_CHANGING = Lock()


def flags() -> int:
    """The bits of what NumPy warns of by default; 0 where they are not known."""
    return 0 if sys.platform == "win32" else _FLAGS.get(platform.machine(), 0)


def kernel_of(plan: Plan, nest: Nest, places: tuple[int, ...], stored: set[str], untouched: frozenset[int]) -> Kernel:
    """The kernel of a nest."""
    writer = NestText(nest, stored, plan.warns)
    text = writer.text()
    bounds = tuple(value for _, value in writer.bounds)
    names = [name for name, _ in writer.numbers]
    function = Divided(compiled(text), nest.interior[0], math.prod(b - a for a, b in nest.interior))
    return Kernel(places, function, (*writer.arrays, *names, bounds, "threads"), untouched, text)


@frozen
class Divided:
    """A nest, whose rows are divided among threads: each is computed once, by one of them, so the bits are the same
    for any number."""

    nest: Callable[..., Any]
    rows: tuple[int, int]
    points: int
    __name__ = "nest"

    def __call__(self, *given: Any) -> Any:
        """Whether NumPy would warn."""
        first, last = self.rows
        arguments, threads = given[:-1], given[-1]
        n = min(threads, self.points // FEWEST, last - first)
        if n <= 1:
            return self.nest(*arguments, (first, last, 1))
        ends = [first + (last - first) * k // n for k in range(n + 1)]
        todo = deque((a, b, int(b == last)) for a, b in pairwise(ends))
        told: list[Any] = []

        def work() -> None:
            try:
                while True:
                    told.append(self.nest(*arguments, todo.popleft()))
            except IndexError:
                return

        side_by_side(work, n)
        return any(told)


def compiled(text: str) -> Callable[..., Any]:
    """The function ``nest`` of a text. It is compiled when it is called."""
    with _CHANGING:
        found = _KERNELS.get(text)
        if found is None:
            found = _KERNELS[text] = _made(text)
        return found


def _made(text: str) -> Callable[..., Any]:
    name = f"nest_{sha256(text.encode()).hexdigest()[:16]}"
    filename, on_disk = f"<pullback {name}>", False
    folder = os.environ.get(CACHE)
    if folder:
        path = Path(folder, f"{name}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():  # numba asks when it was written
            path.write_text(text, "utf-8")
        filename, on_disk = str(path), True
    else:
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    word = types.int32
    names: dict[str, Any] = {
        "FLAGS": flags(), "clear": types.ExternalFunction("feclearexcept", word(word)),
        "test": types.ExternalFunction("fetestexcept", word(word)), "__name__": name,
        **{dtype: getattr(np, dtype) for dtype in ("float32", "float64", "complex64", "complex128", "int64", "uintp")},
    }  # fmt: skip
    if on_disk:  # numba imports the module of what it finds there
        module = sys.modules[name] = ModuleType(name)
        module.__dict__.update(names)
        names = module.__dict__
    exec(compile(text, filename, "exec"), names)  # noqa: S102 - generated from a plan
    if "edge" in names:
        names["edge"] = numba.njit(names["edge"], **_OPTIONS)
    made: Callable[..., Any] = numba.njit(names["nest"], cache=on_disk, **_OPTIONS)
    return made
