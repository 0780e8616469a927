"""SaveAll: the schedule without recomputation."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attrs import frozen

from pullback.policies.base import MemoryPolicy

if TYPE_CHECKING:
    from pullback.scheduling.machine.actions import Action
    from pullback.scheduling.machine.schedule import Schedule
    from pullback.scheduling.machine.tapes_first import Tapes


@frozen(repr=False)
class SaveAll(MemoryPolicy):
    """n forward steps and n tapes: every step is recorded in the sweep and its tape kept. The length may be unknown.

    Example
    -------
    >>> from pullback.schedules import simulate
    >>> simulate(SaveAll().schedule(100), 100).n_forward
    100
    """

    needs_sizes = False

    # Sizes change nothing here.
    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> "Schedule":  # noqa: ARG002
        """Actions for ``n`` steps; :meth:`~pullback.policies.base.MemoryPolicy.schedule` checks ``n``."""
        from pullback.scheduling.machine.schedule import Schedule  # noqa: PLC0415 - as in base.py
        from pullback.scheduling.machine.tapes_first import Tapes  # noqa: PLC0415 - as in base.py

        saved = Tapes()
        return Schedule(_all_actions(n, saved), n, policy=self, finish=saved.finish)


def _all_actions(n: int | None, saved: "Tapes") -> "Iterator[Action]":
    yield from saved.record(0, n)
    if n is not None:  # otherwise the line above never ends by itself
        yield from saved.finish(n)
