"""Cuts a program without marks into steps: where few bytes of its handles' values are live."""

from collections import deque
from collections.abc import Collection, Hashable
from math import inf
from typing import Any
from weakref import ref

import numpy as np
from attrs import define, field

from pullback.memory.ledger import nbytes_of, record_items, value_items
from pullback.memory.working_bytes import Variables
from pullback.recording.handles import plain_value, root_of
from pullback.words.specs import buffer_of


@define(eq=False)
class Cutter:
    """Where a program without marks is cut: where few bytes are live and enough was produced since the last cut to
    be worth a snapshot."""

    live_bytes: int = 0
    produced: int = 0
    recent: deque[int] = field(factory=lambda: deque(maxlen=8))
    watched: dict[int, Any] = field(factory=dict)
    made: int = 0
    """All bytes of handles."""
    most: float = inf
    """How much may be made before ``later`` is asked, in steps whose schedule is known."""
    later: Any = None

    def watch(self, handle: Any) -> None:
        """Count a handle's bytes while it lives."""
        nbytes = nbytes_of(handle._value) or 8
        self.live_bytes += nbytes
        self.produced += nbytes
        self.made += nbytes
        key = id(handle)

        def gone(_: Any) -> None:
            self.live_bytes -= nbytes
            self.watched.pop(key, None)

        self.watched[key] = ref(handle, gone)
        if self.made > self.most:
            self.later.look()

    def wants_cut(self, records: int) -> bool:
        """Whether to cut now, ``records`` after the last cut."""
        self.recent.append(self.live_bytes)
        if records < 2:
            self.recent.clear()
        if records < 4 or self.produced < 2 * self.live_bytes or self.live_bytes > 1.1 * min(self.recent):
            return False
        self.produced = 0
        return True

    def variables(
        self, governor: Any, held: Collection[Hashable], stays: Collection[Hashable], before: int,
        own: Collection[int] = (),
    ) -> Variables:  # fmt: skip
        """What handles have that were made before record ``before``; of buffers beside those of :meth:`bytes_beside`,
        others can reach ``stays``. The cotangents of the values ``own`` are counted by whom they are told."""
        handles = (reference() for reference in list(self.watched.values()))
        ours = (h for h in handles if h is not None and h._id is not None and h._id < before)
        ours = (h for h in ours if h._id not in own)
        buffers = self._buffers(governor, held, before)
        return Variables(
            {h._id: nbytes_of(plain_value(h._value)) for h in ours},
            [(ref(buffer), buffer.nbytes, key in stays) for key, buffer in buffers.items()],
        )

    def bytes_beside(self, governor: Any, held: Collection[Hashable], before: int) -> int:
        """What handles have that were made before record ``before``, beside the buffers ``held``, those that are booked
        and those of the records: variables of the program that no pullback reads."""
        return sum(buffer.nbytes for buffer in self._buffers(governor, held, before).values())

    def alive(self, first: int = 0, stop: float = inf) -> dict[Hashable, int]:
        """The bytes of the buffers that handles have, of values ``first .. stop-1``, by ``id``."""
        handles = (reference() for reference in list(self.watched.values()))
        known = (handle for handle in handles if handle is not None)
        values = [plain_value(h._value) for h in known if h._id is None or first <= h._id < stop]
        return {key: nbytes for key, nbytes, _ in value_items(values, "state")}

    def _buffers(self, governor: Any, held: Collection[Hashable], before: int) -> dict[Hashable, Any]:
        tape, ledger = governor.tape, governor.ledger
        found: dict[Hashable, Any] = {}
        for reference in list(self.watched.values()):
            handle = reference()
            if handle is None or root_of(handle) is not handle:
                continue
            if handle._id is not None and not tape.n_inputs <= handle._id < before:
                continue
            value = plain_value(handle._value)
            if isinstance(value, np.ndarray):
                buffer = buffer_of(value)
                found[id(buffer)] = buffer
        others = {*held, *ledger.held, *(key for key, _, _ in record_items(tape.records))} if found else ()
        return {key: buffer for key, buffer in found.items() if key not in others}
