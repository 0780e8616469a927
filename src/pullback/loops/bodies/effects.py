"""What the effects of a loop have given: they are called once for each time that the program comes to them, however
often a policy runs a step again (:mod:`pullback.loops.bodies.effect_functions`)."""

from array import array
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from attrs import define, field

STEP: Final = "step_of_loop"
"""The name of the function that runs a step in a loop function; ``k`` and ``effects`` are names in it."""

EFFECT: Final = "__pullback_effect__"
"""Tells the functions that :func:`effect` returns. What they read and change is no business of a step that is run
again: they are not."""


@define(eq=False)
class Effects:
    """What the effects of one loop have given, in the order of its steps."""

    runs: int = 0
    """How many runs of steps have begun."""
    run: int = field(default=-1, init=False)
    """The run that the last effect was called in, ``step`` its step, and ``place`` how many were called in it."""
    step: int = field(default=0, init=False)
    place: int = field(default=0, init=False)
    firsts: "array[int]" = field(factory=partial(array, "q"), init=False)
    """Steps in a row that have called the same number of effects: the first of them, the last, and the number."""
    lasts: "array[int]" = field(factory=partial(array, "q"), init=False)
    counts: "array[int]" = field(factory=partial(array, "q"), init=False)
    results: dict[tuple[int, int], Any] = field(factory=dict, init=False)
    """The results that were not None, and the errors, by step and place."""

    def asked(self, step: int, call: Callable[[], Any]) -> Any:
        """What an effect gives in ``step``: what ``call`` returns or raises the first time, the same ever after."""
        if self.run != self.runs:
            self.run, self.step, self.place = self.runs, step, 0
        place, self.place = self.place, self.place + 1
        if place < self._count(step):
            result = self.results.get((step, place))
            if isinstance(result, Exception):
                raise _twin(result)
            return result
        try:
            result = call()
        except Exception as error:
            self._given(step, place, _twin(error))
            raise
        self._given(step, place, result)
        return result

    def _given(self, step: int, place: int, result: Any) -> None:
        if result is not None:
            self.results[step, place] = result
        self._note(step, place + 1)

    def _count(self, step: int) -> int:
        """How many effects the step has called in any of its runs."""
        at = bisect_right(self.firsts, step) - 1
        return self.counts[at] if at >= 0 and step <= self.lasts[at] else 0

    def _note(self, step: int, count: int) -> None:
        """A step has called so many; only the newest step calls more than before."""
        if self.lasts and self.lasts[-1] == step:
            if self.firsts[-1] == step:
                self.counts[-1] = count
                self._join()
                return
            self.lasts[-1] = step - 1
        self.firsts.append(step)
        self.lasts.append(step)
        self.counts.append(count)
        self._join()

    def _join(self) -> None:
        """The newest step and those before it, where they have called the same number."""
        if len(self.firsts) > 1 and self.lasts[-2] == self.firsts[-1] - 1 and self.counts[-2] == self.counts[-1]:
            self.lasts[-2] = self.lasts[-1]
            del self.firsts[-1], self.lasts[-1], self.counts[-1]


def _twin(error: Exception) -> Exception:
    """The same error without the frames that it went through, which hold the trace."""
    twin = type(error).__new__(type(error), *error.args)
    vars(twin).update(vars(error))
    return twin
