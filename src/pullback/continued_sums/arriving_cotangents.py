"""Reverses the call of a stage when cotangents of its inputs have already come from later records.

The ordinary reverse function of a stage starts from nothing and returns sums. Where a value is used after the call too,
and more than once within it, the bits need each cotangent added to those that are there. After some such calls a
function is made that is given these; it is used if it gives the bytes of the sweep over the records.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from pullback.continued_sums.onward_reverses import onward_reverse
from pullback.recording.copies import packed_copy
from pullback.staging.generated.forward_statements import NotStageableError
from pullback.staging.generated.generated import Generated
from pullback.staging.generated.recorded_steps import require_equal
from pullback.staging.generated.stages import Stage
from pullback.staging.generated.workspaces import Workspace
from pullback.words.undocumented import quiet

PAYS = 32
"""How many sweeps over the records come before a function is made, which takes as long as some thirty."""
COMPARED = 2
"""How many of its calls are compared with the sweep."""
MOST_PATTERNS = 4
"""The most choices of the values that have cotangents, of results among them, for which there are functions."""
SMALL = 1 << 16
"""Bytes of a cotangent up to which a sum in new memory costs no more than one in place."""

Swept = Callable[[], None]
"""The sweep over the records, which changes the list of cotangents."""


@define(eq=False)
class Onward:
    """The function for one choice of values that have cotangents, and what is known of it."""

    count: int = 0
    n_compared: int = 0
    over: bool = False
    """Whether there is none."""
    generated: Generated | None = None
    kinds: list[Any] = field(factory=list)
    """Type, shape and dtype of each cotangent that has come; None where there is none."""
    goes: list[int] = field(factory=list)
    """Which of the cotangents the function gives, the others stay as they have come."""
    work: list[Workspace] = field(factory=list)

    def takes(self, cts: Sequence[Any], ids: Sequence[int]) -> bool:
        """Whether cotangents are of the kinds that it was made for."""
        for ident, kind in zip(ids, self.kinds):  # noqa: B905 - there are as many
            if kind is not None:
                ct, (what, shape, dtype) = cts[ident], kind
                if type(ct) is not what or ct.dtype is not dtype:
                    return False
                if what is np.ndarray and (ct.shape != shape or not ct.flags.c_contiguous):
                    return False
        return True

    def is_right(self, wanted: list[Any], found: list[Any]) -> None:
        """The function has to give what the sweep has given: else there is none."""
        alike = [type(a) for a in found] == [type(b) for b in wanted]
        try:
            for a, b in zip(found, wanted, strict=True):
                require_equal([] if a is None else [a], [] if b is None else [b], "the cotangents")
        except NotStageableError:
            alike = False
        if alike:
            self.n_compared += 1
        else:
            self.over, self.generated = True, None

    def computed(self, slots: Sequence[Any], seeds: Sequence[Any], came: Sequence[Any]) -> list[Any]:
        """The cotangents that go on, from those that have ``come``."""
        generated: Any = self.generated
        try:
            work = self.work.pop()
        except IndexError:
            work = Workspace(threads=1, hands_over=True)
        with quiet():
            given = [ct for ct in seeds if ct is not None], [ct for ct in came if ct is not None]
            (found,) = generated.function(slots, *given, *work.of(generated))
        self.work[:] = [work]
        going = list(came)
        for k, ct in zip(self.goes, found):  # noqa: B905 - as many as the function was made for
            going[k] = ct
        return going


@define(eq=False)
class Arriving:
    """What is known of the calls of one stage to which cotangents have come."""

    stage: Stage
    by_pattern: dict[tuple[bool, ...], Onward] = field(factory=dict)

    def go_on(
        self, slots: Sequence[Any], seeds: Sequence[Any], ids: Sequence[int], cts: list[Any], swept: Swept
    ) -> None:
        """Put the cotangents after the call into ``cts``, in the place of those before it: of the arguments and of the
        captured values, whose ``ids`` these are."""
        onward = self._onward(slots, seeds, ids, cts)
        if onward is None:
            swept()
            return
        came = [cts[ident] for ident in ids]
        if onward.n_compared < COMPARED:
            found = onward.computed(slots, seeds, list(map(packed_copy, came)))
            del came
            swept()
            onward.is_right([cts[ident] for ident in ids], found)
            return
        for ident, ct in zip(ids, onward.computed(slots, seeds, came), strict=True):
            cts[ident] = ct

    def _onward(self, slots: Sequence[Any], seeds: Sequence[Any], ids: Sequence[int], cts: list[Any]) -> Any:
        """The function for such a call; None where the records are to be swept."""
        pattern = tuple([ct is not None for ct in seeds] + [cts[ident] is not None for ident in ids])
        onward = self.by_pattern.get(pattern)
        if onward is None:
            if len(self.by_pattern) >= MOST_PATTERNS:
                return None
            onward = self.by_pattern[pattern] = Onward()
        if onward.generated is None and not onward.over:
            onward.count += 1
            came = [cts[ident] for ident in ids]
            if onward.count > PAYS and all(ct is None or _is_small(ct) for ct in came):
                try:
                    copies = list(map(packed_copy, came))
                    onward.generated, onward.goes = onward_reverse(self.stage, slots, seeds, copies)
                except Exception:  # noqa: BLE001 - whatever a rule does with what is no array: the records are swept
                    onward.over = True
                else:
                    onward.kinds = [None if ct is None else (type(ct), ct.shape, ct.dtype) for ct in came]
        return onward if onward.generated is not None and onward.takes(cts, ids) else None


def _is_small(ct: Any) -> bool:
    if type(ct) is np.ndarray:
        return bool(ct.nbytes <= SMALL and ct.flags.c_contiguous)
    return isinstance(ct, np.generic)
