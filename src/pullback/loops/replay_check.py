"""Where ``ReplayError`` is raised: what a re-run of a loop gives is compared, by digests, with what its first run
gave."""

from typing import Any, TypeAlias

import numpy as np
from attrs import define, field

from pullback.recording.handles import plain_value
from pullback.words.digests import digest
from pullback.words.errors import ReplayError

Digests: TypeAlias = tuple[bytes, ...]


@define(eq=False)
class Verifier:
    """What the first run of a loop gave. ``name`` is that of the loop, for messages."""

    name: str
    keeps_outputs: bool = True
    """Whether a step may be run again: else nobody will ask for the digests of per-step outputs."""
    states: dict[int, Digests] = field(factory=dict, init=False)
    """Of the states that a re-run must reach again, by step."""
    outputs: list[Digests] = field(factory=list, init=False)
    """Of the per-step outputs."""

    def expect(self, step: int, state: list[Any]) -> None:
        """A re-run that comes to ``step`` must reach the bytes of ``state``."""
        if step not in self.states:
            self.states[step] = digests(state)

    def reached(self, step: int, state: list[Any]) -> None:
        """Compare the state that a re-run has reached."""
        wanted = self.states.pop(step, None)
        if wanted is not None:
            happened = f"re-running the loop reached step {step} with other bytes than the first run"
            self.require(wanted, state, happened, "the carry")

    def gave(self, step: int, ys: list[Any]) -> None:
        """Compare the outputs of a step that was run again."""
        if step < len(self.outputs):
            happened = f"re-running the loop, step {step} gave other bytes than in the first run"
            self.require(self.outputs[step], ys, happened, "its output")

    def require(self, wanted: Digests, leaves: list[Any], happened: str, where: str) -> None:
        """Raise :class:`ReplayError` where leaves have not the digests ``wanted``; it says what ``happened``, and
        ``where``."""
        wrong = [str(k) for k, (a, b) in enumerate(zip(wanted, digests(leaves), strict=True)) if a != b]
        if wrong:
            raise ReplayError(
                f"{self.name}: {happened}, in leaf {', '.join(wrong)} of {where}. The body reads something that "
                "changed in between: an array or object changed from outside, a global counter, a random generator "
                "that the loop cannot reach. Make it part of the state, or pass the array as an argument"
            )


def digests(leaves: list[Any]) -> Digests:
    """Of the values of leaves, under whatever traces. A number is told by its value, be it Python's or NumPy's."""
    values = [plain_value(leaf) for leaf in leaves]
    return tuple(
        np.asarray(v).tobytes() if isinstance(v, int | float | complex | np.generic) else digest(v) for v in values
    )
