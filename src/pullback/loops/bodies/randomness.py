"""Random states: saved with each snapshot of a loop and put back with it; a step that runs again draws the same."""

import copy
import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from attrs import define, field

from pullback.words.structures import flatten
from pullback.words.undocumented import legacy_bytes


@define(eq=False)
class Randomness:
    """The states of the generators a loop can reach (NumPy's of both kinds, and Python's), and of NumPy's legacy
    generator, saved with each snapshot and put back with it."""

    generators: list[Any]
    seen: Any = field(default=None, init=False)
    """The legacy state when it was last saved or put back, and ``seen_bits`` its bits then."""
    seen_bits: bytearray | None = field(default=None, init=False)
    bits: Any = field(default=None, init=False)
    """The bit generator of the legacy generator when it was last looked at, and ``memory`` where its state lies."""
    memory: Any = field(default=None, init=False)

    def save(self) -> tuple[Any, ...]:
        """The states now."""
        if not self._untouched():
            # Users of the legacy generator must be replayed too.
            bits, now = self._seen_now(), np.random.get_state(legacy=False)  # noqa: NPY002
            if bits is None or bits != self.seen_bits or _kept_normal(now) != _kept_normal(self.seen):
                self.seen_bits, self.seen = bits, now
        return (self.seen, *map(_state, self.generators)) if self.generators else (self.seen,)

    def restore(self, states: tuple[Any, ...]) -> None:
        """Put the states back."""
        if states[0] is not self.seen or not self._untouched():
            np.random.set_state(states[0])  # noqa: NPY002 - see save
            self.seen_bits, self.seen = self._seen_now(), states[0]
        if not self.generators:
            return
        for generator, state in zip(self.generators, states[1:], strict=True):
            if isinstance(generator, np.random.Generator):
                generator.bit_generator.state = state
            elif isinstance(generator, np.random.RandomState):
                generator.set_state(state)
            else:
                generator.setstate(state)

    @contextmanager
    def put_back(self) -> Iterator[None]:
        """After the block, however it ends, the states are what they were before it."""
        before = self.save()
        try:
            yield
        finally:
            self.restore(before)

    def drawn_beside(self, start: Any) -> str:
        """That NumPy's legacy generator, which all threads have in common, has been drawn from since it was in the
        state ``start``, and that there are other threads, in words; empty where one of both is not so."""
        others, now = threading.active_count() - 1, np.random.get_state(legacy=False)  # noqa: NPY002 - see save
        if not others or all(map(np.array_equal, flatten(now)[0], flatten(start)[0])):
            return ""
        return (
            f"NumPy's legacy generator (np.random.normal and the like) was drawn from, and threads have it in common, "
            f"of which {others} more are running: what one draws, or puts back, another misses. Give each thread a "
            "Generator of its own, np.random.default_rng(seed), and draw from that. Where no two threads draw from it: "
        )

    def _untouched(self) -> bool:
        """Whether the legacy generator is sure to be in the state seen last; asked at every step, where reading it
        takes 50 us.

        Whatever it draws moves its bits, but for one thing: the second of a pair of normal numbers, where it is kept
        for the next call.
        """
        bits, seen = self.seen_bits, self.seen
        if bits is None or seen is None or seen["has_gauss"]:
            return False
        now = np.random.get_bit_generator()  # type: ignore[attr-defined]  # public, and not in NumPy's stubs
        return bool(bits == (self.memory if now is self.bits else self._legacy_bits()))

    def _seen_now(self) -> bytearray | None:
        memory = self._legacy_bits()
        return None if memory is None else bytearray(memory)

    def _legacy_bits(self) -> Any:
        """The memory of the legacy generator's state; None where the user has put another kind of generator in its
        place, or where it is not found."""
        bits = np.random.get_bit_generator()  # type: ignore[attr-defined]  # public, and not in NumPy's stubs
        if bits is not self.bits:
            known = type(bits) is np.random.MT19937 and legacy_bytes()
            self.memory = _characters(known).from_address(bits.ctypes.state_address) if known else None
            self.bits = bits  # which keeps the memory
        return self.memory


def _kept_normal(state: Any) -> tuple[Any, Any]:
    """The second of a pair of normal numbers, if one is kept for the next call."""
    return state["has_gauss"], state["gauss"]


@cache
def _characters(n: int) -> Any:
    return ctypes.c_char * n


def _state(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return copy.deepcopy(generator.bit_generator.state)
    return generator.get_state() if isinstance(generator, np.random.RandomState) else generator.getstate()
