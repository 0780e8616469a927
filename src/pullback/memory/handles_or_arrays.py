"""Switches a loop between steps that run on handles and steps that run on arrays, without leaving its block in
between."""

from contextlib import AbstractContextManager
from typing import Any

from pullback.memory.in_force import Enclosed
from pullback.recording.tape import CAPTURED, PAUSED, Tape


class HandlesOrArrays(Enclosed):
    """The block ``Enclosed(enclosing, CAPTURED, inner)``, in which steps run on handles, turned into
    ``Enclosed(enclosing, PAUSED)`` with the block ``values`` in it, in which they run on arrays, and back, as often as
    wanted. It is entered by the first turn, and left by :meth:`leave`."""

    __slots__ = ("_turned", "_values")

    def __init__(self, enclosing: Tape, inner: Tape, values: AbstractContextManager[Any]) -> None:
        super().__init__(enclosing, CAPTURED, inner)
        self._values = values
        self._turned: int | None = None

    def on_handles(self) -> None:
        """Steps run on handles of the inner trace."""
        if self._turned is None:
            self.__enter__()
        elif self._turned == PAUSED:
            self._values.__exit__(None, None, None)
            self._turn(CAPTURED, self._inner, self._all)
        self._turned = CAPTURED

    def on_arrays(self) -> None:
        """Steps run on arrays."""
        if self._turned == PAUSED:
            return
        if self._turned is None:
            self.__enter__()
            self._turned = CAPTURED
        self._turn(PAUSED, None, self._all[:-1])
        self._values.__enter__()
        self._turned = PAUSED

    def leave(self) -> None:
        """All is as it was before the first turn."""
        turned, self._turned = self._turned, None
        if turned == PAUSED:
            self._values.__exit__(None, None, None)
        if turned is not None:
            self.__exit__()

    def _turn(self, mode: int, inner: Tape | None, tapes: tuple[Tape, ...]) -> None:
        enclosing: Any = self._enclosing
        enclosing.mode, enclosing.inner = mode, inner
        self._now(tapes)
