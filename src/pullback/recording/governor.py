"""What governs the records that a trace makes while it is ``REPLAYABLE``: the recorder tells it what happens, and it
decides what may be dropped and executed again."""

from typing import Any, Protocol


class Governor(Protocol):
    """What a trace asks of its ``Tape.governor``, in the mode ``REPLAYABLE`` only."""

    def open(self, tape: Any) -> None:
        """The trace begins."""

    def finish(self) -> None:
        """The user's function has returned."""

    def before_record(
        self, record: tuple[Any, ...], operands: Any, values: Any, params: Any, rerun: Any = None
    ) -> None:
        """``record`` is about to be appended, made from operands with these values (an operand without a handle is an
        :class:`Ident`). A loop brings ``rerun``, the function that runs it again on other values."""

    def before_write(self, root: Any) -> None:
        """The array of a handle is about to be written."""

    def watch(self, handle: Any) -> None:
        """A handle was made."""

    def meet(self) -> None:
        """A value of a trace around this one has come in."""

    def mark(self) -> None:
        """A mark has come that says where steps begin: a loop, marked steps, a checkpoint."""

    @property
    def replays(self) -> bool:
        """Whether what is recorded now may be executed again."""


class Ident:
    """An operand of a record of which only the id is known."""

    __slots__ = ("ident",)

    def __init__(self, ident: int) -> None:
        self.ident = ident
