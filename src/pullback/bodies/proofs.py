"""Steps of a body that is proved to do the same whatever their number: once two of them have been checked, the
generated functions go on by themselves, and the body rests.

The proof is that of ``same_again``: all that the body reads besides its state stays as it is, so the operations and the
plain operands of the next step are those of the last one. Two steps are run with their body before: the second must
have met the operands of the first, and left what is read as it was. Then what is read is compared again every
``CHECKED`` steps, since other threads may change it; where it differs, the steps after it run their body again.
"""

import sys
from typing import Any

from attrs import define, field

from pullback.bodies.same_again import NotTheSameError, Reads, reads_of, uses_argument
from pullback.words.sameness import same_content

FEWEST = 32
"""Steps, or actions of a schedule, from which it pays to prove something: the bytecode is read in each loop."""
CHECKED = 64
"""Steps after which what the body reads is compared again."""


@define(eq=False)
class Proof:
    """Whether the body of one loop does the same in each step, and what it reads. ``counted``: it is told the number of
    the step."""

    body: Any
    counted: bool
    why: str = field(default="", init=False)
    """Why it is not proved; empty where that has not been asked, or it is."""
    reads: Reads | None = field(default=None, init=False)
    before: tuple[list[Any], list[Any]] | None = field(default=None, init=False)
    """The captured values and the plain operands of the step before."""

    def begins(self) -> None:
        """Other steps may have been run since."""
        self.reads = self.before = None

    def repeats(self, values: list[Any], constants: list[Any]) -> bool:
        """Whether the step that has just been run, with these captured values and plain operands, has done what the one
        before did, so that every other step will."""
        if self.why or sys.gettrace() is not None or sys.getprofile() is not None:  # those see each step
            return False
        before, self.before = self.before, (values, constants)
        if self.reads is None:
            self._read()
        elif before is not None and self.reads.hold() and _are_same(values, before[0]):
            return len(constants) == len(before[1]) and all(map(same_content, before[1], constants))
        else:
            self.why = "it changes what it reads"
        return False

    def _read(self) -> None:
        try:
            self.reads = _reads_of(self.body, self.counted)
        except NotTheSameError as error:
            self.why = str(error)


def _reads_of(body: Any, counted: bool) -> Reads:
    code = getattr(body, "__code__", None)
    if code is None or code.co_flags & 0xC:  # any number of arguments
        raise NotTheSameError("its arguments have no names")
    if counted and uses_argument(code, code.co_varnames[0]):
        raise NotTheSameError("it uses the number of the step")
    return reads_of(body, _nothing, steps=True)


def _nothing(_: Any) -> None:
    """No function of the library's stands for one of the user's."""


def _are_same(values: list[Any], others: list[Any]) -> bool:
    return len(values) == len(others) and all(one is other for one, other in zip(values, others, strict=True))
