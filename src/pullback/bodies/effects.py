"""Effects: functions that are called once for each time that the program comes to them, however often a policy runs a
step again.

A loop counts the runs of its steps, and an effect finds the loops that it is called in among the frames below it. So
loops without effects pay for a counter alone, and an effect is found wherever it is called.
"""

import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable
from functools import partial, update_wrapper
from types import FrameType
from typing import Any, Final, ParamSpec

import numpy as np
from attrs import define, field

from pullback.recording.handles import value
from pullback.travelling.made_functions import made
from pullback.words.errors import PullbackError
from pullback.words.structures import map_leaves

P = ParamSpec("P")

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
    firsts: "array[int]" = field(factory=lambda: array("q"), init=False)
    """Steps in a row that have called the same number of effects: the first of them, the last, and the number."""
    lasts: "array[int]" = field(factory=lambda: array("q"), init=False)
    counts: "array[int]" = field(factory=lambda: array("q"), init=False)
    results: dict[tuple[int, int], Any] = field(factory=dict, init=False)
    """The results that were not None, by step and place."""

    def asked(self, step: int, call: Callable[[], Any]) -> Any:
        """What an effect gives in ``step``: what ``call`` returns the first time, the same ever after."""
        if self.run != self.runs:
            self.run, self.step, self.place = self.runs, step, 0
        place, self.place = self.place, self.place + 1
        if place < self._count(step):
            return self.results.get((step, place))
        result = call()
        if result is not None:
            self.results[step, place] = result
        self._note(step, place + 1)
        return result

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


def effect(function: Callable[P, Any]) -> Callable[P, Any]:
    """``function``, for its effect: a line that is printed, a file that is written, a counter. It is called once for
    each time that the program comes to it, whatever a policy runs again, with the concrete values of its arguments.

    Parameters
    ----------
    function
        Returns None, or a number or text, which is the same when the step is run again and has no derivative.

    Returns
    -------
    A function of the same arguments.

    Raises
    ------
    PullbackError
        When it is called, where ``function`` returns anything else.

    Example
    -------
    >>> import pullback as pb
    >>> seen = []
    >>> tell = pb.effect(lambda k, u: seen.append((k, float(u))))
    >>> def body(k, u):
    ...     tell(k, u)
    ...     return 2.0 * u
    >>> float(pb.grad(lambda x: pb.fori_loop(0, 3, body, x), policy=pb.Binomial(1))(1.0))
    8.0
    >>> seen
    [(0, 1.0), (1, 2.0), (2, 4.0)]
    """

    def once(*args: P.args, **kwargs: P.kwargs) -> Any:
        def call() -> Any:
            plain_args, plain_kwargs = map_leaves(value, (args, dict(kwargs)))
            return _checked(function, function(*plain_args, **plain_kwargs))

        for effects, step in _loops_around():
            call = partial(effects.asked, step, call)
        return call()

    vars(update_wrapper(once, function))[EFFECT] = True
    return made("effect", function, once)


def _loops_around() -> list[tuple[Effects, int]]:
    """The loops that an effect is called in, each with its step, the outermost first: the innermost is to be asked
    first, and to ask the next one around it."""
    found: list[tuple[Effects, int]] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == STEP and "effects" in frame.f_code.co_freevars:
            names = frame.f_locals
            found.append((names["effects"], names["k"]))
        frame = frame.f_back
    return found[::-1]


def _checked(function: Any, result: Any) -> Any:
    if result is None or isinstance(result, bool | int | float | complex | str | np.generic):
        return result
    raise PullbackError(
        f"the effect {getattr(function, '__name__', function)} returned {type(result).__name__}; it may return None, a "
        "number or text. Compute what the program goes on with outside of it"
    )
