"""Decides whether the steps of a loop over marked steps are followed."""

from types import FrameType
from typing import Any, Final

from pullback.recording.tape import Tape
from pullback.words.undocumented import LISTED

FEWEST: Final = 8
"""Loops of fewer steps are recorded."""
ENOUGH: Final = 96
"""Steps of one loop, in this run and in those before, from which it pays to make functions, unless these are asked
for."""

FEWEST_RECORDS: Final = 16
"""Records of a step, likewise: a record costs some 2 us, its comparison 0.7, a mark about as much as ten records."""


class Recorded:
    """Steps that are not followed."""

    def begins(self, number: int) -> None:
        """A step begins."""

    def ends(self) -> None:
        """A mark has come."""

    def finish(self) -> None:
        """The loop is over."""


RECORDED: Final = Recorded()


def followed(tape: Tape, chain: Any, n: int | None, staging: str, frame: FrameType) -> Any:
    """What is told of the ``n`` steps of the loop in that frame, which may follow them."""
    if staging == "off" or n is None or n < FEWEST or not LISTED or tape.outer is not None:
        return RECORDED
    if chain is not None and chain.collects:
        return RECORDED
    # As with all that generates functions: few programs have such loops.
    from pullback.staging.marks.following import FEW_MISSES, FollowedMarks  # noqa: PLC0415
    from pullback.staging.marks.known_marks import known_marks  # noqa: PLC0415

    known = known_marks((frame.f_code, frame.f_lasti, chain is None))
    known.n_seen += n
    if known.n_failed >= FEW_MISSES or (staging == "auto" and known.n_seen < ENOUGH):
        return RECORDED
    return FollowedMarks(tape, known, chain, FEWEST_RECORDS if staging == "auto" else 0)
