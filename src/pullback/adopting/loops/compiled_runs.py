"""Loops over single numbers that a backend compiles, under ``staging=`` its name: what is computed, and what the
ordinary functions have to compute after all.

A compiled function raises, or says that NumPy would have warned, where the ordinary one does something else than
compute: then that runs, on arrays that nothing was written to. At its first use both run, and are compared.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from attrs import define, field

from pullback.adopting.loops.compiled_text import (
    FLOAT,
    GIVEN,
    HELPERS,
    INT,
    NUMPY,
    flags_of,
    floats_of,
    forward_text,
    read_first,
    reverse_text,
)
from pullback.adopting.loops.kinds import WHOLE, RefusedError
from pullback.adopting.loops.loop_code import UNBOUND
from pullback.words.call_sites import errors_in_force
from pullback.words.errors import PluginError
from pullback.words.plugins import loop_compiler
from pullback.words.sameness import same_content

PLACES: Final = 1 << 10
"""The size of the first array for what is pushed."""
FAILURES: Final = 3
"""Runs in a row that the ordinary functions had to do again, after which the loop is not compiled."""
WARNS: Final = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
QUIET: Final = dict.fromkeys(WARNS, "ignore")
ERRORS: Final = (WARNS, QUIET)
"""What is done where NumPy would warn: by default, and in a sweep."""
TYPES: Final = {NUMPY: np.float64, FLOAT: float, INT: int}


@define(eq=False)
class CompiledLoop:
    """The compiled functions of a loop for values of given kinds."""

    written: Any
    forward: Any
    reverse: Any
    floats: list[str]
    flags: list[str]
    needed: frozenset[str]
    """Names that have to have a value when the loop begins."""
    n_failed: int = field(default=0, init=False)
    proved: set[str] = field(factory=set, init=False)
    """Those of ``forward`` and ``reverse`` that have computed the bits of the ordinary function."""

    def compare(self, which: str, found: Any, expected: Any) -> bool:
        """Whether a compiled function has computed what the ordinary one has; else it is not used any more."""
        if _same(found, expected):
            self.proved.add(which)
        elif not _has_nan(expected):  # any bits do for a NaN
            self.n_failed, self.written.code.not_compiled = FAILURES, f"its {which} gives other bits than Python's"
        return which in self.proved

    def run(self, values: dict[str, Any]) -> tuple[dict[str, Any], Any] | None:
        """What the ordinary forward would give of the names that the loop assigns, with its flags, and what it has
        pushed; None where that has to run, and arrays may have been written to."""
        code = self.written.code
        state = errors_in_force()
        if self.n_failed >= FAILURES or state not in ERRORS or any(values[name] is UNBOUND for name in self.needed):
            return None
        if not all(map(_fits, values.values())):
            return None
        given = [self._given(name, x) for name, x in values.items()]
        types = [_type_of(values.get(name, UNBOUND)) for name in self.floats]
        bound = [values[name] is not UNBOUND for name in code.assigned]
        found = self._computed(self.forward, (np.empty(PLACES), *given, *types, *bound), quiet=state == QUIET)
        if found is None:
            return None
        stack, n, numbers, types, bound, flags = found
        bound_now = zip(code.assigned, numbers, types, bound, strict=True)
        made = {name: TYPES[kind](x) for name, x, kind, there in bound_now if there}
        return made | dict(zip(self.flags, map(bool, flags), strict=True)), stack[:n].copy()

    def _given(self, name: str, x: Any) -> Any:
        if type(x) is np.ndarray:
            return x
        number = 0 if x is UNBOUND else x
        return int(number) if self.written.known[name].level == WHOLE else float(number)

    def pull(self, stack: Any, reads: dict[str, Any], scalars: Sequence[Any], arrays: Sequence[Any]) -> Any:
        """The cotangents that the ordinary reverse would give; None where it has to run. ``arrays`` are pairs of an
        array that may be written to, and whether it is a cotangent: else it is one of zeros."""
        if self.n_failed >= FAILURES:
            return None
        given = [*(0.0 if g is None else float(g) for g in scalars), *(g for g, _ in arrays)]
        there = [*(g is not None for g in scalars), *(there for _, there in arrays)]
        read = [self._given(name, reads[name]) for name in sorted(reads)]
        found = self._computed(self.reverse, (stack, len(stack), *read, *given, *there), quiet=True)
        if found is None:
            return None
        cts, there = found
        return [
            (g if type(g) is np.ndarray else np.float64(g)) if is_there else None
            for g, is_there in zip(cts, there, strict=True)
        ]

    def _computed(self, function: Any, given: Sequence[Any], *, quiet: bool) -> Any:
        """What a function gives; None where it raises, or NumPy would have warned and is not ``quiet``."""
        try:
            result, warned = function(*given)
        except PluginError as error:
            self.n_failed = FAILURES
            self.written.code.not_compiled = str(error)
            return None
        except Exception:  # noqa: BLE001 - the ordinary function raises it, at the user's line
            warned = True
        else:
            warned = warned and not quiet
        self.n_failed = self.n_failed + 1 if warned else 0
        return None if warned else result


def _same(found: Any, expected: Any) -> bool:
    if found is None or expected is None or isinstance(found, bool | type):
        return found is expected
    if type(found) in (list, tuple):
        return len(found) == len(expected) and all(map(_same, found, expected))
    return same_content(np.asarray(found), np.asarray(expected))


def _has_nan(parts: Any) -> bool:
    return any(x is not None and bool(np.isnan(x).any()) for x in parts if not isinstance(x, type))


def _fits(x: Any) -> bool:
    """Whether the compiler computes with a value as Python does."""
    if type(x) is np.ndarray:
        return x.dtype in (np.float64, np.int64)
    return x.bit_length() <= GIVEN if type(x) is int else not isinstance(x, np.integer)


def _type_of(x: Any) -> int:
    return NUMPY if isinstance(x, np.floating) else FLOAT if isinstance(x, float) else INT


def compiled_by(backend: str, written: Any) -> CompiledLoop | None:
    """The functions of a loop as a backend compiles them; None where it does not."""
    if backend not in written.compiled:
        code, made = written.code, None
        try:
            made = _compiled(loop_compiler(backend), written)
        except RefusedError as why:
            code.not_compiled = str(why)
        written.compiled[backend] = made
    found: CompiledLoop | None = written.compiled[backend]
    return found


def _compiled(compiler: Any, written: Any) -> CompiledLoop | None:
    if compiler is None:
        return None
    code, known = written.code, written.known
    unknown = [name for name in code.names if name not in known]
    if unknown:
        raise RefusedError(f"{unknown[0]} is no number and no array")
    arrays = [f"_pb_B_{name}" for name in written.arrays]
    own = [*(f"_pb_b_{name}" for name in written.scalars), *arrays]
    forward = forward_text(written.text, known, code.assigned)
    assert written.reverse  # whose text is written when it is asked for
    back = reverse_text(written.texts[False], own, written.arrays, known)
    needed = read_first(written.text, code.assigned)
    functions = compiler(HELPERS + forward, "forward"), compiler(HELPERS + back, "reverse")
    if None in functions:
        return None
    return CompiledLoop(written, *functions, floats_of(known), flags_of(written.text), needed)
