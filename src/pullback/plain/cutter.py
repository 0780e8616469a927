"""Where a program without marks is cut into steps by itself."""

from collections import deque
from typing import Any
from weakref import ref

from attrs import define, field

from pullback.memory.ledger import nbytes_of


@define(eq=False)
class Cutter:
    """Where a program without marks is cut: where few bytes are live and enough was produced since the last cut to
    be worth a snapshot."""

    live_bytes: int = 0
    produced: int = 0
    recent: deque[int] = field(factory=lambda: deque(maxlen=8))
    watched: dict[int, Any] = field(factory=dict)

    def watch(self, handle: Any) -> None:
        """Count a handle's bytes while it lives."""
        nbytes = nbytes_of(handle._value) or 8
        self.live_bytes += nbytes
        self.produced += nbytes
        key = id(handle)

        def gone(_: Any) -> None:
            self.live_bytes -= nbytes
            self.watched.pop(key, None)

        self.watched[key] = ref(handle, gone)

    def wants_cut(self, records: int) -> bool:
        """Whether to cut now, ``records`` after the last cut."""
        self.recent.append(self.live_bytes)
        if records < 2:
            self.recent.clear()
        if records < 4 or self.produced < 2 * self.live_bytes or self.live_bytes > 1.1 * min(self.recent):
            return False
        self.produced = 0
        return True
