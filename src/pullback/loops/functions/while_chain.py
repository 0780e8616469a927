"""The chain of a ``while_loop``: its condition is asked once before each step. Where it draws random numbers it is
asked again before a step that is run again, for the body goes on with the numbers that come after.

So the random states of a snapshot are those before the question.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, ClassVar

import numpy as np
from attrs import define, field

from pullback.loops.functions.loop_chain import LoopChain
from pullback.memory.executor import carry_out_known
from pullback.memory.in_force import Enclosed
from pullback.recording.tape import PAUSED
from pullback.words.errors import ReplayError
from pullback.words.structures import flatten


@define(eq=False)
class WhileChain(LoopChain):
    """Carries out what a schedule says about the steps of a loop of unknown length."""

    asks: ClassVar[bool] = True
    condition: Callable[[int, list[Any]], bool] = field(kw_only=True)
    asked: int = field(default=-1, init=False)
    """The step that the condition was last asked of, and ``found`` what it has said."""
    found: bool = field(default=True, init=False)
    draws: bool = field(default=False, init=False)
    """Whether it has drawn a random number, and ``random`` the random states before it was last asked."""
    random: tuple[Any, ...] = field(default=(), init=False)

    def goes_on(self, k: int, state: list[Any] | None = None) -> bool:
        """Whether the condition holds for the state before step ``k``, the live one unless another is given."""
        if k != self.asked:
            self.random = self.randomness.save()
            with Enclosed(self.steps.enclosing, PAUSED):
                self.asked, self.found = k, self.condition(k, self.state if state is None else state)
            self.draws = self.draws or not _are_same(self.random, self.randomness.save())
        return self.found

    def _forget(self) -> None:
        """Steps will be run again, from a state with the random states before the question."""
        self.asked, self.found = -1, True

    def _ask_again(self, k: int) -> None:
        """Step ``k`` is run again. Raises :class:`ReplayError` where the loop would have ended before it."""
        if self.draws and not self.goes_on(k):
            raise ReplayError(
                f"{self.steps.name}: the condition has said that the loop ends before {self.steps.place(k)}, which was "
                "run before: it reads something that has changed in between. Let it read the carry, constants and "
                "random generators alone, or what pullback.effect gives, which is kept"
            )

    def drop_probe(self) -> None:
        """Step 0 will be run again where the schedule comes to it."""
        if self.probe is not None:
            self._forget()
        super().drop_probe()

    def rewind(self) -> None:
        """Begin again, at the initial state and the random states of that moment."""
        self._forget()
        super().rewind()

    def go_forward_saving(self, n: int | None, most: float = inf) -> int:
        """The forward part of save-all; the length."""
        if n is None or not self.draws:
            return super().go_forward_saving(n, most)
        self.runs()
        for k in range(n):
            self._ask_again(k)
            self.store.put_tapes(k, [self.on_tracers(k)])
        self.rests()
        return n

    def carry_out_known(self, numbers: Sequence[int]) -> None:
        """Actions that have been checked before."""
        if self.draws:
            carry_out_known(self, numbers)
        else:
            super().carry_out_known(numbers)

    def advance(self, start: int, stop: int) -> int:
        """Run steps without recording, one by one where the condition is asked before each."""
        while self.draws and not self.looks_back and start + 1 < stop:
            start = super().advance(start, start + 1)
        return super().advance(start, stop)

    def record(self, step: int) -> None:
        """Run a step on tracers and keep its tape in WORK."""
        self.take_lookback(step)
        self._ask_again(step)
        super().record(step)

    def take_lookback(self, step: int) -> None:
        """Go back to the state before the newest step, if it is this one."""
        if self.lookback is not None and self.lookback[0] == step:
            self._forget()
        super().take_lookback(step)

    def record_and_reverse(self, step: int) -> None:
        """Record and reverse a step, where nobody asks for the tape in between."""
        if self.draws:
            self.record(step)
            self.reverse(step)
        else:
            super().record_and_reverse(step)

    def restore(self, entry: Any, step: int) -> None:
        """The snapshot's arrays become the live state."""
        self._forget()
        super().restore(entry, step)

    def begins_step(self, k: int) -> None:
        """Step ``k`` is about to run on plain arrays."""
        super().begins_step(k)
        if not self.looks_back:
            self._ask_again(k)

    def random_before(self, k: int) -> tuple[Any, ...]:
        """The random states before step ``k``, which runs next, and before the question."""
        return self.random if self.asked == k and self.probe is None else super().random_before(k)


def _are_same(states: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """Whether random states are the same; the legacy generator's is one object until it draws."""
    if len(states) == 1 or states[0] is not others[0]:
        return states[0] is others[0]
    return all(map(np.array_equal, flatten(states[1:])[0], flatten(others[1:])[0]))
