"""The random states that a loop's body can reach, saved with each snapshot and put back, so that a re-run draws the
same numbers."""

import copy
import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import isroutine
from types import FunctionType, MethodType
from typing import Any

import numpy as np
from attrs import define, field

from pullback.loops.closures import MAX_DEPTH, filled
from pullback.words.sniffs import global_names, legacy_bytes
from pullback.words.structures import flatten


def generators_of(f: Any, state: Any) -> "list[np.random.Generator]":
    """The random generators that a body can reach, or that are in its state."""
    found: dict[int, np.random.Generator] = {}
    for reached in _reachable(f):
        value = getattr(reached, "__self__", None) if isroutine(reached) else reached  # draw = rng.normal
        if isinstance(value, np.random.Generator):
            found[id(value)] = value
    for leaf in flatten(state)[0]:
        if isinstance(leaf, np.random.Generator):
            found[id(leaf)] = leaf
    return list(found.values())


def _reachable(f: Any, depth: int = 0) -> Iterator[Any]:
    """What a function can reach: in cells, defaults, globals it names, its object's attributes, and in the functions
    among them."""
    if depth > MAX_DEPTH:
        return
    if isinstance(f, MethodType):
        yield from vars(f.__self__).values() if hasattr(f.__self__, "__dict__") else ()
        f = f.__func__
    if not isinstance(f, FunctionType):
        yield from vars(f).values() if hasattr(f, "__dict__") and callable(f) else ()
        return
    cells = [cell.cell_contents for cell in f.__closure__ or () if filled(cell)]
    named = [f.__globals__[name] for name in global_names(f.__code__) if name in f.__globals__]
    for value in (*cells, *named, *(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
        yield value
        if (
            isinstance(value, FunctionType | MethodType)
            and value is not f
            and not value.__module__.startswith(("numpy", "pullback."))
        ):
            yield from _reachable(value, depth + 1)
        elif isinstance(value, dict | list | tuple) and len(value) < 1000:
            yield from flatten(value)[0]


@define(eq=False)
class Randomness:
    """The states of the generators a loop can reach, and of NumPy's legacy generator, saved with each snapshot and
    put back with it."""

    generators: "list[np.random.Generator]"
    seen: Any = field(default=None, init=False)
    """The legacy state when it was last saved or put back, and ``seen_bits`` its bits then."""
    seen_bits: bytes | None = field(default=None, init=False)

    def save(self) -> tuple[Any, ...]:
        """The states now."""
        if not self._untouched():
            # Users of the legacy generator must be replayed too.
            self.seen_bits, self.seen = _legacy_bits(), np.random.get_state(legacy=False)  # noqa: NPY002
        return (self.seen, *(copy.deepcopy(g.bit_generator.state) for g in self.generators))

    def restore(self, states: tuple[Any, ...]) -> None:
        """Put the states back."""
        if states[0] is not self.seen or not self._untouched():
            np.random.set_state(states[0])  # noqa: NPY002 - see save
            self.seen_bits, self.seen = _legacy_bits(), states[0]
        for generator, state in zip(self.generators, states[1:], strict=True):
            generator.bit_generator.state = state

    @contextmanager
    def put_back(self) -> Iterator[None]:
        """After the block, however it ends, the states are what they were before it."""
        before = self.save()
        try:
            yield
        finally:
            self.restore(before)

    def _untouched(self) -> bool:
        """Whether the legacy generator is sure to be in the state seen last; asked at every step, where reading it
        takes 50 us.

        Whatever it draws moves its bits, but for one thing: the second of a pair of normal numbers, where it is kept
        for the next call.
        """
        return (
            self.seen is not None
            and self.seen_bits is not None
            and not self.seen["has_gauss"]
            and self.seen_bits == _legacy_bits()
        )


def _legacy_bits() -> bytes | None:
    """The bits of the legacy generator's state; None where the user has put another kind of generator in its place, or
    where they are not found."""
    bits = np.random.get_bit_generator()  # type: ignore[attr-defined]  # public, and not in NumPy's stubs
    known = type(bits) is np.random.MT19937 and legacy_bytes()
    return ctypes.string_at(bits.ctypes.state_address, known) if known else None
