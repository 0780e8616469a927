"""Arguments that a function is proved to leave as they are: nobody need ask afterwards whether they hold what they
held."""

from _thread import _count  # of the threads besides the first
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from pullback.loops.bodies.deterministic_functions import NotTheSameError, Reads, Within, reads_of
from pullback.words.structures import LEAVES

BEFORE = 2
"""Calls before a function is looked at."""
MOST_MADE = 8
"""How many proofs are made for one function: one that depends on what changes is asked no more."""


@define(eq=False)
class UnwrittenArguments:
    """What is known of one function.

    A function that is proved to do the same again (``loops.bodies.deterministic_functions``) writes at most to arrays
    that it gets hold of: those it reads from outside, and plain arguments. Traced ones are handles to it.
    """

    f: Callable[..., Any]
    within: Within
    n_waiting: int = field(default=BEFORE, init=False)
    n_made: int = field(default=0, init=False)
    reads: Reads | None = field(default=None, init=False)

    def are(self, args: tuple[Any, ...], where: Sequence[int]) -> bool:
        """Whether a call with these arguments, which is differentiated by those at ``where``, writes to none of
        them."""
        if self.n_waiting:
            self.n_waiting -= 1
            return False
        if _count() or not all(map(_is_plain, args)) or not self._holds():
            return False
        others = [arg for k, arg in enumerate(args) if k not in where] + [array for array, _ in self._known.arrays]
        arrays = [other for other in others if type(other) is np.ndarray]
        return not any(
            np.may_share_memory(args[k], array) for k in where if type(args[k]) is np.ndarray for array in arrays
        )

    @property
    def _known(self) -> Reads:
        assert self.reads is not None
        return self.reads

    def _holds(self) -> bool:
        if self.reads is not None and self.reads.hold():
            return True
        if self.n_made >= MOST_MADE:
            return False
        self.n_made += 1
        try:
            self.reads = reads_of(self.f, self.within)
        except NotTheSameError:
            self.reads, self.n_made = None, MOST_MADE
            return False
        return self.reads.hold()


def _is_plain(arg: Any) -> bool:
    """Whether nobody's code runs where an operation meets an argument."""
    return type(arg) in LEAVES and not (type(arg) is np.ndarray and arg.dtype.hasobject)
