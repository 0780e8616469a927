"""Which memory is in use while a program is recorded: by the values of its handles, and by what is held."""

from collections.abc import Iterator
from functools import partial
from typing import Any
from weakref import ref

import numpy as np
from attrs import define, field

from pullback.recording.handles import plain_value, root_of
from pullback.words.specs import buffer_of


@define(eq=False)
class LiveBuffers:
    """Bytes of buffers, each once, however many have it."""

    total: int = 0
    sizes: dict[int, int] = field(factory=dict)
    """Bytes of the values that were made, by their ids; of a view of all that it looks at no more than its own."""
    taken: dict[int, list[int]] = field(factory=dict)
    """How many handles have a buffer, how many values that are held, and its bytes, by its ``id``."""
    watched: dict[int, Any] = field(factory=dict)
    """A reference to each handle, by its ``id``."""
    lies_in: dict[int, int] = field(factory=dict)
    """The buffers of their values, by the same."""
    views: set[int] = field(factory=set)
    """The ids of values that look at others."""

    def watch(self, handle: Any) -> None:
        """A handle was made, or stands for another value now."""
        value, key, ident = plain_value(handle._value), id(handle), handle._id
        own = root_of(handle) is handle
        if ident is not None:
            self.sizes[ident] = getattr(value, "nbytes", 8)
            if not own:
                self.views.add(ident)
        if not isinstance(value, np.ndarray) or not own:
            return
        buffer = buffer_of(value)
        before = self.lies_in.get(key)
        if before == id(buffer):
            return
        self._take(buffer, 0)
        self.lies_in[key] = id(buffer)
        if before is None:
            self.watched[key] = ref(handle, partial(self._gone, key))
        else:
            self._give(before, 0)

    def _gone(self, key: int, _: Any) -> None:
        if key in self.lies_in:
            self._give(self.lies_in.pop(key), 0)
            self.watched.pop(key, None)

    def hold(self, value: Any) -> None:
        """Somebody holds a value."""
        for buffer in _buffers(value):
            self._take(buffer, 1)

    def release(self, value: Any) -> None:
        """The value is held no longer."""
        for buffer in _buffers(value):
            self._give(id(buffer), 1)

    def alive(self, value: Any) -> bool:
        """Whether a handle has the memory of a value."""
        return any(self.taken.get(id(buffer), (0,))[0] for buffer in _buffers(value))

    def _take(self, buffer: Any, who: int) -> None:
        counts = self.taken.get(id(buffer))
        if counts is None:
            counts = self.taken[id(buffer)] = [0, 0, buffer.nbytes]
            self.total += buffer.nbytes
        counts[who] += 1

    def _give(self, key: int, who: int) -> None:
        counts = self.taken[key]
        counts[who] -= 1
        if not counts[0] and not counts[1]:
            del self.taken[key]
            self.total -= counts[2]

    def close(self) -> None:
        """Nobody is watched any more."""
        self.watched.clear()
        self.lies_in.clear()


def _buffers(value: Any) -> Iterator[Any]:
    plain = plain_value(value)
    if isinstance(plain, np.ndarray):
        yield buffer_of(plain)
