"""The reverse sweep over a stretch of tape: cotangents go from the last record to the first, each added one at a time
in that order.

Several seeds are swept side by side, each with a :class:`Sweep` of its own. They share what is costly to have: the
values in the records, and the re-runs of loops.
"""

from collections.abc import Iterable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np
from attrs import define, field

from pullback.recording.crossing import raised
from pullback.recording.handles import Handle
from pullback.recording.recorder import called_at, form_of
from pullback.recording.regions import winners
from pullback.recording.tape import Tape
from pullback.recording.traps import TRAPPED, WatchedPulls
from pullback.rules.forms import FORMS, PULLS, TOGETHER, is_collective
from pullback.rules.nan_masking import MASKED_PULLS
from pullback.words.errors import PullbackError, say_where
from pullback.words.specs import new_zeros
from pullback.words.undocumented import HELD, quiet


@define(eq=False)
class Sweep:
    """What the reverse sweep of one seed knows: its cotangents, which buffers are its own to write in place, the
    outer trace it is on."""

    cts: Any
    """The cotangents by record id, None where there is none yet."""
    owned: set[int] = field(factory=set)
    outer: Tape | None = None
    frees: bool = False
    """Whether each record is dropped when it has been used: nobody will sweep again."""
    consumes: bool = False
    """Whether nobody reads a record any more once its pull has ended: what it alone holds may be written."""
    gathered: dict[int, Any] = field(factory=dict)
    """Cotangents of captured values, by their id in the enclosing trace."""
    own_gathered: set[int] = field(factory=set)
    masks: bool = False
    """Whether the enclosing trace has masked something (see ``Tape.masks``)."""
    place: str = ""
    """The step of a loop function that is reversed, for messages."""
    told: Any = None
    """Who hears the cotangents of values marked by name: ``told(tag, step, place, ct)``."""
    step: Any = None
    """The number of the step of a loop function that is reversed; a tuple of them, the outermost first, in nested
    ones."""
    winners: Any = field(default=winners, init=False)

    def within(self, step: int) -> Any:
        """The number of a step within the one that is reversed."""
        around = self.step
        return step if around is None else (*around, step) if isinstance(around, tuple) else (around, step)

    def gather(self, ident: int, ct: Any) -> None:
        """Add a cotangent of a captured value to what earlier steps sent; in place once the sum is our own."""
        before = self.gathered.get(ident)
        if before is None:
            self.gathered[ident] = ct
        elif ident in self.own_gathered and type(ct) is np.ndarray and type(before) is np.ndarray:
            np.add(before, ct, out=before)
        else:
            total = self.gathered[ident] = before + ct
            if type(total) is np.ndarray and total.size != 1:  # see join, in rules/cotangent_sums.py
                self.own_gathered.add(ident)

    def totals(self, idents: Sequence[int]) -> list[Any] | None:
        """The sums of these, where all are arrays of our own, to be added to in place."""
        found = [self.gathered.get(ident) for ident in idents]
        own = all(ident in self.own_gathered for ident in idents)
        return found if own and all(type(total) is np.ndarray for total in found) else None


def sweep(tape: Tape, start: int, stop: int, sweeps: Sequence[Sweep]) -> None:
    """Pull the cotangents of each sweep, one for each seed, back through the records ``stop - 1`` down to ``start``.

    Where they free, each record is dropped when all have used it. When a record is reached its cotangent is
    complete, because every reader stands after it. Several go through a stretch one after the other, and meet at
    the records that work for all of them at once (:data:`pullback.rules.forms.TOGETHER`), and at those where others
    take part. An error tells the user's forward line.
    """
    if len(sweeps) > 1:
        for i in range(stop - 1, start - 1, -1):
            record = tape.records[i]
            if record is not None and record[0] in TOGETHER:
                _sweep_each(tape, i + 1, stop, sweeps)
                _meet(tape, i, sweeps)
                stop = i
            elif tape.collective and record is not None and is_collective(record):  # others go seed by seed here, too
                _sweep_each(tape, i + 1, stop, sweeps)
                _sweep_each(tape, i, i + 1, sweeps)
                stop = i
    _sweep_each(tape, start, stop, sweeps)


def _sweep_each(tape: Tape, start: int, stop: int, sweeps: Sequence[Sweep]) -> None:
    for one in sweeps:
        _sweep_one(tape, start, stop, one, free=one.frees and one is sweeps[-1])


def _sweep_one(tape: Tape, start: int, stop: int, one: Sweep, *, free: bool) -> None:
    records = tape.records
    lift = one.outer
    cts, collective = one.cts, tape.collective
    pulls: Any = MASKED_PULLS if one.masks or tape.masks else PULLS
    if TRAPPED.get():
        pulls = WatchedPulls(tape, one, pulls)
    one.consumes = free and type(pulls) is not WatchedPulls
    i = stop
    try:
        with quiet():
            for i in range(stop - 1, start - 1, -1):
                ct = cts[i]
                if ct is None and collective:
                    ct = unreached(records[i])
                if ct is not None:
                    cts[i] = None
                    record = records[i]
                    if lift is not None and (not isinstance(ct, Handle) or ct._tape is not lift):
                        ct = raised(ct, lift)
                    pulls[record[0]](record, ct, cts, one)  # type: ignore[index]  # a dropped record has no cotangent
                elif free:
                    release_records(records[i : i + 1])
                if free:
                    records[i] = None
        if type(pulls) is WatchedPulls:
            pulls.ends(start, cts)
    except Exception as error:
        if records[i] is not None:
            _locate(error, records[i], one.place)
        raise


def unreached(record: Any) -> Any:
    """The cotangent of a record to which nothing has sent any: None, unless it is pulled back in any case."""
    give = None if record is None else FORMS[record[0]].unreached
    return None if give is None else give(record)


def _meet(tape: Tape, i: int, sweeps: Sequence[Sweep]) -> None:
    """Pull the cotangents of all sweeps back through record ``i`` at once."""
    records = tape.records
    record: Any = records[i]
    cts = []
    for one in sweeps:
        ct, one.cts[i] = one.cts[i], None
        ct = unreached(record) if ct is None and tape.collective else ct
        cts.append(ct if ct is None or one.outer is None else raised(ct, one.outer))
    try:
        if any(ct is not None for ct in cts):
            with quiet():
                TOGETHER[record[0]](record, cts, sweeps)
        elif sweeps[-1].frees:
            release_records((record,))
    except Exception as error:
        _locate(error, record, sweeps[-1].place)
        raise
    if sweeps[-1].frees:
        records[i] = None


def _locate(error: Exception, record: Any, place: str) -> None:
    """Tell the user's forward line, and the step of a loop function, unless the text does."""
    told = str(error) if isinstance(error, PullbackError) else ""
    line = called_at(record)
    if line not in told:
        say_where(
            error, f"in the reverse pass of {form_of(record).name}, called at {line}{f' in {place}' if place else ''}"
        )
    elif place and place not in told:
        say_where(error, f"in {place}")


def innermost_of(outer: Tape | None, values: Iterable[Any]) -> Tape | None:
    """The tape on which a sweep is recorded: the innermost of those that its values and its seeds are handles of."""
    for value in values:
        if isinstance(value, Handle) and (outer is None or value._tape.level > outer.level):
            outer = value._tape
    return outer


def release_records(records: Iterable[Any]) -> None:
    """Records that are dropped unreversed let go of what they book in the ledger: the loops among them."""
    for record in records:
        if record is not None and FORMS[record[0]].wide:
            record[2].release()


class Releasing:
    """Where the block ends in an error, the records of ``tape`` and its governor let go of what they hold: nobody will
    reverse them, and a loop among them holds the tape. What is stored elsewhere would stay as long as the error."""

    __slots__ = ("_tape",)

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def __enter__(self) -> None:
        pass

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:
            release_records(self._tape.records)
            for governor in filter(None, (getattr(self._tape, "governor", None),)):
                governor.close()


def seeded(tape: Tape, outs: Sequence[Any], seeds: Sequence[Any]) -> Sweep:
    """The sweep that begins with these cotangents of the outputs."""
    for lender in () if tape.ledger is None else reversed(tape.ledger.lenders):
        lender.foresees()
    cts: list[Any] = [None] * len(tape.records)
    for out, seed in zip(outs, seeds, strict=True):
        if seed is not None and isinstance(out, Handle) and out._tape is tape and out._id is not None:
            cts[out._id] = seed if cts[out._id] is None else cts[out._id] + seed
    return Sweep(cts, outer=innermost_of(tape.outer, seeds))


def given_out(cts: list[Any], k: int, given: Any) -> Any:
    """The cotangent of input ``k`` as the user gets it: of the primal's shape and dtype, writable, sharing memory
    with nothing."""
    ct = cts[k]
    cts[k] = None
    if ct is None:
        zero = new_zeros(given.spec.shape, given.spec.dtype)
        return zero if given.spec.shape else zero[()]
    if type(ct) is np.ndarray and not given.spec.shape:
        return ct[()]
    if type(ct) is np.ndarray:
        alone = ct.base is None and ct.flags.writeable and getrefcount(ct) <= HELD
        return ct if alone else ct.copy(order="K")
    return ct
