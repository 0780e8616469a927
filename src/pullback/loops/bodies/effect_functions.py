"""Effects: functions that are called once for each time that the program comes to them, however often a policy runs a
step again.

A loop counts the runs of its steps, and an effect finds the loops that it is called in among the frames below it. So
loops without effects pay for a counter alone, and an effect is found wherever it is called.
"""

import sys
from collections.abc import Callable
from functools import partial, update_wrapper
from types import FrameType
from typing import Any, Final, ParamSpec

import numpy as np

from pullback.loops.bodies.effects import EFFECT, STEP, Effects
from pullback.recording.handles import value
from pullback.travelling.made_functions import made
from pullback.words.errors import PullbackError
from pullback.words.structures import map_leaves

P = ParamSpec("P")

CALL: Final = "call_of_effect"
"""The name of the function that calls an effect. What is called in there is called as often as the effect is."""


def effect(function: Callable[P, Any]) -> Callable[P, Any]:
    """``function``, for its effect: a line that is printed, a file that is written, a counter. It is called once for
    each time that the program comes to it, whatever a policy runs again, with the concrete values of its arguments.

    Parameters
    ----------
    function
        Returns None, or a number or text, which is the same when the step is run again and has no derivative. So is an
        error that it raises and the program catches. What it calls is called as often as it is itself, other effects
        too.

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
        def call_of_effect() -> Any:
            plain_args, plain_kwargs = map_leaves(value, (args, dict(kwargs)))
            return _checked(function, function(*plain_args, **plain_kwargs))

        call = call_of_effect
        for effects, step in _loops_around():
            call = partial(effects.asked, step, call)
        return call()

    vars(update_wrapper(once, function))[EFFECT] = True
    return made("effect", function, once)


def _loops_around() -> list[tuple[Effects, int]]:
    """The loops that an effect is called in, each with its step, the outermost first: the innermost is to be asked
    first, and to ask the next one around it. Those around an effect that calls it have been asked for that one."""
    found: list[tuple[Effects, int]] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != CALL:
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
