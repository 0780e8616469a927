"""Steps of a body that is proved to do the same whatever their number: once two of them have been checked, the
generated functions go on by themselves, and the body rests.

The proof is that of ``deterministic_functions``: all that the body reads besides its state stays as it is, so the
operations and the plain operands of the next step are those of the last one. Two steps are run with their body before:
the second must have met the operands of the first, and left what is read as it was. Then what is read is compared again
every ``CHECKED`` steps, since other threads may change it; where it differs, the steps after it run their body again.
"""

import sys
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
from attrs import define, field, frozen

from pullback.loops.bodies.deterministic_functions import NotTheSameError, Reads, reads_of, uses_argument
from pullback.loops.bodies.told_operands import ITSELF, FollowedBody, Told
from pullback.loops.bodies.told_parts import tags_of
from pullback.recording.copies import faithful_copy
from pullback.words.sameness import same_content

FEWEST = 32
"""Steps, or actions of a schedule, from which it pays to prove something: the bytecode is read in each loop."""
CHECKED = 64
"""Steps after which what the body reads is compared again."""
MOST = 2**53
"""The size from which a whole number may fail as an operand."""


@frozen
class Rows:
    """What the steps of a ``scan`` get of ``xs``; nothing where there is none."""

    array: Any = None
    """The one plain array whose rows they get."""
    enter: bool = False
    """Whether all rows enter, as the state does."""
    several: bool = False
    """Whether they get other rows than those of one array."""


NO_ROWS = Rows()


def rows_of(xs: Sequence[Any], active: Sequence[bool], *, alone: bool) -> Rows:
    """The rows of ``xs``, of which those that are ``active`` enter; ``alone`` says that there is one leaf, without a
    structure."""
    if all(active):
        return Rows(enter=True, several=not alone)
    plain = alone and type(xs[0]) is np.ndarray
    return Rows(xs[0] if plain else None, several=not plain)


@define(eq=False)
class Proof:
    """Whether the body of one loop does the same in each step, and what it reads. ``loop`` is the name of the loop
    function."""

    body: Any
    loop: str
    rows: Rows = NO_ROWS
    why: str = field(default="", init=False)
    """Why it is not proved; empty where that has not been asked, or it is."""
    counts: bool = field(default=False, init=False)
    """Whether leaves of the state are no floats, but numbers that count, say: they are ``leaves``, in each step."""
    leaves: list[Any] = field(factory=list, init=False)
    """Those before the step that is asked of."""
    reads: Reads | None = field(default=None, init=False)
    values: list[Any] | None = field(default=None, init=False)
    """The captured values of the step before."""
    met: list[Any] = field(factory=list, init=False)
    """Its plain operands."""
    told: list[tuple[int, Told]] | None = field(default=None, init=False)
    """The places of those that differ from step to step, with what they are by its number; None while the body is to be
    followed to tell."""

    own: list[int] = field(factory=list, init=False)
    """The places of arrays of which each step that runs its body keeps a copy of its own, small as they are."""

    looked_up: list[Any] = field(factory=list, init=False)
    """The arrays, with their kinds, of which the body reads what is told by the number of the step, and nothing else:
    so each step has what they hold then."""

    def begins(self) -> None:
        """Other steps may have been run since."""
        self.reads, self.values, self.looked_up = None, None, []

    @property
    def follows(self) -> bool:
        """Whether the next step is to be followed."""
        return self.reads is not None and self.told is None and not self.why

    @property
    def may_rest(self) -> bool:
        """Whether nothing speaks against it: who traces or profiles the program sees each step."""
        return not self.why and sys.gettrace() is None and sys.getprofile() is None

    def follow(self, number: int, carry: Any, row: Any, constants: Sequence[Any]) -> tuple[Any, Any] | None:
        """What the body returns from a step, with its output, carried out instruction by instruction; ``constants`` are
        the plain operands that are met. None where that cannot be done: then nothing has been changed."""
        followed = FollowedBody(constants)
        try:
            args: list[Any] = [carry]
            tags = [tags_of(carry, map(self._leaf, count())) if self.counts else None]
            if self.loop == "fori_loop":
                args, tags = [number, carry], [ITSELF, *tags]
            elif self.loop == "scan":
                told = None if self.rows.array is None else self.rows.array.__getitem__
                args, tags = [carry, row[0] if row else None], [*tags, told]
            result = followed.call(self.body, args, tags, ends=True)
            returned = result if self.loop == "scan" else (result, None)
            carry, y = returned
        except Exception as error:  # noqa: BLE001 - an error of its own comes again, at its own place
            self.why = str(error)
            return None
        self.told = followed.told
        if followed.read is not None:
            arrays = [array for array, _ in (*self.reads.arrays, *self.reads.hashed)]  # type: ignore[union-attr]
            self.looked_up = [(x, x.shape, x.strides, x.dtype) for x in arrays if id(x) not in followed.read]
        return carry, y

    def _leaf(self, place: int) -> Told:
        return lambda _: self.leaves[place]

    def repeats(self, number: int, values: list[Any], constants: list[Any]) -> bool:
        """Whether the step that has just been run, with these captured values and plain operands, has done what the one
        before did, so that every other step will."""
        if not self.may_rest:
            return False
        before, self.values = self.values, values
        if self.reads is None or before is None:
            self.met = constants
            self._read()
        elif self.told is not None:
            holds = self.reads.hold(self.looked_up) and _are_same(values, before)
            wanted = self.constants(number) if holds else None
            if wanted is not None and len(constants) == len(wanted) and all(map(same_content, wanted, constants)):
                told = [place for place, _ in self.told]
                pairs = enumerate(zip(wanted, constants, strict=True))
                self.own = [k for k, (x, y) in pairs if type(x) is np.ndarray and x is not y and k not in told]
                return True
            self.why = "it changes what it reads"
        return False

    def constants(self, number: int, *, kept: bool = False, own: bool = False) -> list[Any] | None:
        """The plain operands of a step, for who ``kept`` them copied from the user's arrays; None where the step has to
        be run to tell. With ``own`` those that each step has are its own."""
        if not self.told and not own:
            return self.met
        made, copies = list(self.met), dict[int, Any]()
        for place in self.own if own else ():
            array = made[place]
            if id(array) not in copies:
                copies[id(array)] = faithful_copy(array)
            made[place] = copies[id(array)]
        for place, told in self.told or ():
            try:
                value = told(number)
            except Exception:  # noqa: BLE001 - the body will say it at its own place
                return None
            kind = type(value)
            if kind is not type(before := made[place]) or (kind is int and not -MOST < value < MOST):
                return None
            if kind is np.ndarray and (value.shape != before.shape or value.dtype != before.dtype):
                return None
            made[place] = faithful_copy(value) if kept and kind is np.ndarray else value
        return made

    @property
    def fixed(self) -> list[Any] | None:
        """The plain operands of every step; None where they differ."""
        return None if self.told else self.met

    def _read(self) -> None:
        code = getattr(self.body, "__code__", None)
        try:
            self.reads = reads_of(self.body, _nothing, steps=True)
        except NotTheSameError as error:
            self.why = str(error)
            return
        place = 0 if self.loop == "fori_loop" else 1 if self.loop == "scan" and not self.rows.enter else None
        assert code is not None  # it is a function
        uses = place is not None and uses_argument(code, code.co_varnames[place])
        self.told = None if uses or self.counts else []
        if self.told is None and self.rows.several:
            self.why = "the rows that it gets are those of several arrays"


def _nothing(_: Any) -> None:
    """No function of the library's stands for one of the user's."""


def _are_same(values: list[Any], others: list[Any]) -> bool:
    return len(values) == len(others) and all(one is other for one, other in zip(values, others, strict=True))
