"""The reverse sweep over a stretch of tape: cotangents go from the last record to the first, each added one at a time in that order."""

from typing import Any

import numpy as np
from attrs import define, field

from pullback.errors import PullbackError
from pullback.forms import PULLS, release_records
from pullback.handles import FREE, Handle, make
from pullback.recorder import called_at, form_of
from pullback.regions import winners
from pullback.tape import Tape


@define(eq=False)
class Sweep:
    """What one reverse sweep knows: which cotangent buffers are its own to write in place, and the outer trace it is recorded on."""

    owned: set[int] = field(factory=set)
    outer: Tape | None = None
    frees: bool = False
    """Whether each record is dropped when it has been used: nobody will sweep again."""
    gathered: dict[int, Any] = field(factory=dict)
    """Cotangents of captured values, by their id in the enclosing trace."""
    own_gathered: set[int] = field(factory=set)
    winners: Any = field(default=winners, init=False)

    def gather(self, ident: int, ct: Any) -> None:
        """Add a cotangent of a captured value to what earlier steps sent; in place once the sum is our own."""
        before = self.gathered.get(ident)
        if before is None:
            self.gathered[ident] = ct
        elif ident in self.own_gathered and type(ct) is np.ndarray and type(before) is np.ndarray:
            np.add(before, ct, out=before)
        else:
            total = self.gathered[ident] = before + ct
            if type(total) is np.ndarray:
                self.own_gathered.add(ident)


def sweep(tape: Tape, start: int, stop: int, cts: list[Any], run: Sweep) -> None:
    """Pull the cotangents in ``cts`` (by record id) back through the records ``stop - 1`` down to ``start``.

    With ``run.frees`` each record is dropped when it has been used. When a record is reached its cotangent is complete, because
    every reader stands after it. An exception gets a note with the user's forward line.
    """
    records = tape.records
    lift = run.outer
    free = run.frees
    pulls = PULLS
    i = stop
    try:
        for i in range(stop - 1, start - 1, -1):
            ct = cts[i]
            if ct is not None:
                cts[i] = None
                record = records[i]
                if lift is not None and not isinstance(ct, Handle):
                    ct = lifted(ct, lift)
                pulls[record[0]](record, ct, cts, run)  # type: ignore[index]  # a dropped record has no cotangent
            elif free:
                release_records(records[i : i + 1])
            if free:
                records[i] = None
    except PullbackError:
        raise
    except Exception as error:
        record = records[i]
        if record is not None:
            error.add_note(f"pullback: in the reverse pass of {form_of(record).name}, which the forward called at {called_at(record)}")
        raise


def lifted(ct: Any, outer: Tape) -> Any:
    """A plain cotangent as an inactive handle of the outer trace, so that what a rule makes from it can be written to."""
    if isinstance(ct, list):
        return [c if c is None or isinstance(c, Handle) else lifted(c, outer) for c in ct]
    if not isinstance(ct, np.ndarray):
        return ct
    return make(outer.kinds.buffer, ct, None, outer, FREE)
