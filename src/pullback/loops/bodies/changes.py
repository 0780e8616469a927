"""What has changed around a loop's body: whether it matters to the body, and what the error says. Entered only where
something has changed."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from pullback.loops.bodies.reachable import Place
from pullback.recording.handles import Handle, plain_value
from pullback.words.digests import same_bits, short_digest
from pullback.words.specs import spec_of


@frozen(eq=False)
class WatchedPlaces:
    """Places and arrays by number, the arrays after the places, and what they were when the loop began."""

    places: list[Place]
    arrays: list[tuple[str, Any]]
    bound: list[tuple[Any, ...]]
    copies: dict[int, Any]
    """Copies of small arrays."""

    def read_by(self, trials: Iterable[Callable[[], Any]], now: dict[int, Any]) -> set[int]:
        """Which of what is ``now`` something else a trial reads: it runs one step and tells all that it did, which is
        not the same where what it reads is put back to what it was in the beginning."""
        read: set[int] = set()
        for trial in trials:
            told, other = self._told(trial, (), now), self._told(trial, now, now)
            if told != other:
                if KeyboardInterrupt in (told, other):  # the user's, not the body's
                    raise KeyboardInterrupt
                read |= {key for key in now if self._told(trial, (key,), now) != told} or now.keys()
        return read

    def all_scratch(
        self, trials: Iterable[Callable[[], Any]], places: dict[int, Any], arrays: dict[int, Any], moving: set[Any]
    ) -> bool:
        """Whether all ``places`` and ``arrays`` that have changed since the first run are the body's own: that run left
        there what it found, as where a gradient is computed again. They are ``moving`` then."""
        now: dict[int, Any] = {**places, **{key: np.array(x) for key, (_, x) in arrays.items()}}
        scratch = self.filled_by(trials, now)
        moving.update(k for k in scratch if k not in places or self.leave_out(k, places[k]))
        return scratch.issuperset(now)

    def filled_by(self, trials: Iterable[Callable[[], Any]], now: dict[int, Any]) -> set[int]:
        """Which of what is ``now`` something else a trial fills or binds itself, and none reads."""
        trials, filled = list(trials), set[int]()
        for trial in trials:
            self._told(trial, (), now, filled)
            self._told(trial, now, now, filled)
        return filled - self.read_by(trials, {key: now[key] for key in filled})

    def _told(
        self, trial: Callable[[], Any], put_back: Iterable[int], now: dict[int, Any], filled: set[int] | None = None
    ) -> Any:
        """What a trial tells with some of what has changed put back; all is as it is ``now`` afterwards. What it has
        ``filled`` is added to that."""
        before = {key: self.bound[key] if key < len(self.places) else self._before(key, now[key]) for key in put_back}
        for key, content in before.items():
            self._fill(key, content)
        told = trial()
        for key, content in now.items():
            if filled is not None and not self._holds(key, before.get(key, content)):
                filled.add(key)
            self._fill(key, content)
        return told

    def _holds(self, key: int, content: Any) -> bool:
        """Whether a place, or an array, is still what it was bound to or filled with."""
        if key < len(self.places):
            return are_same(self.places[key].read(), content)
        return same_bits(np.asarray(self.arrays[key - len(self.places)][1]), content)

    def _before(self, key: int, now: Any) -> Any:
        """What an array held in the beginning; of a large one, of which there is no copy, something else than now."""
        return self.copies.get(key, np.roll(now.reshape(-1), 1).reshape(now.shape))

    def _fill(self, key: int, content: Any) -> None:
        """Bind a place, or fill an array."""
        if key < len(self.places):
            self.places[key].put(content)
        else:
            array = np.asarray(self.arrays[key - len(self.places)][1])
            if array.flags.writeable:
                array[...] = content

    def leave_out(self, k: int, now: tuple[Any, ...]) -> bool:
        """Whether a place that the body changes is to be watched no more; of keys, those that it leaves alone are."""
        place = self.places[k]
        if place.but is None:
            return True
        keys = _changed_keys(now, self.bound[k])
        self.places[k] = place.but(frozenset(keys))
        self.bound[k] = tuple(pair for pair in self.bound[k] if pair[0] not in keys)
        return False

    def named(self, k: int, now: tuple[Any, ...]) -> list[str]:
        """What of a place is bound to something else now."""
        place = self.places[k]
        keys = () if place.but is None or place.holds_items else _changed_keys(now, self.bound[k])
        return [place.show(key) for key in keys] or [place.name]

    def by_how_much(self, key: int) -> str:
        """An array, and by how much it has changed if it is small, in words."""
        name, x = self.arrays[key - len(self.places)]
        now, before = np.asarray(x), self.copies.get(key)
        if before is None or now.shape != before.shape or now.dtype.kind not in "fcui":
            return f"{name} ({spec_of(now)})|"
        with np.errstate(all="ignore"):
            change = np.subtract(now, before, dtype=complex if now.dtype.kind == "c" else float)
            return f"{name} ({spec_of(now)})| by up to {np.max(np.abs(change), initial=0.0):.3g}"

    def is_put_back(self, k: int, now: tuple[Any, ...]) -> bool:
        """Whether a place is put back that is bound to something else now: names, and wherever a tracer was; but a
        switch is meant for the body."""
        if self.places[k].holds_items:
            return any(isinstance(x, Handle) for x in leaves_of(self.bound[k]))
        before = list(map(id, leaves_of(self.bound[k])))
        return not any(isinstance(x, bool) and id(x) not in before for x in leaves_of(now))


def leaves_of(content: tuple[Any, ...]) -> list[Any]:
    """What is bound, dicts' items by both parts."""
    return [part for x in content for part in (x if type(x) is tuple else (x,))]


def _changed_keys(now: tuple[Any, ...], before: tuple[Any, ...]) -> list[Any]:
    """The keys of pairs that have another value, or are on one side alone."""
    new, old = dict(now), dict(before)
    missing = object()
    return [key for key in {**new, **old} if not is_same(new.get(key, missing), old.get(key, missing))]


def are_same(now: tuple[Any, ...], before: tuple[Any, ...]) -> bool:
    """Whether what is bound somewhere is what it was."""
    return len(now) == len(before) and all(map(is_same, now, before))


def is_same(now: Any, before: Any) -> bool:
    """Whether a name is bound to what it was: numbers and texts by value, tracers by what they stand for, dicts' items
    by both parts; an array of adopted code and the handle that stands for it in the trace around are one."""
    if now is before:
        return True
    if isinstance(before, Handle) and type(now) is np.ndarray and before._tape.adopted is not None:
        _, stands, _ = before._tape.adopted.get(id(now), (None, None, None))
        return (
            stands is not None
            and stands._id == before._id
            and (before._id is not None or stands._value is before._value)
        )
    if type(now) is not type(before):
        return False
    if isinstance(now, Handle):
        return now._tape is before._tape and now._id is not None and now._id == before._id
    if isinstance(now, int | float | complex | str | bytes | np.generic):
        return repr(now) == repr(before)
    return type(now) is tuple and are_same(now, before)


def in_another_order(leaves: Sequence[Any], wanted: Sequence[int], wrong: Iterable[int]) -> str:
    """Why leaves have not the digests that are ``wanted``, in words, where those at the places ``wrong`` hold the same
    numbers in another order of memory; empty for any other reason."""
    return _ORDER if all(_has_when_laid_out(plain_value(leaves[k]), wanted[k]) for k in wrong) else ""


_ORDER = (
    "It holds the same numbers in another order of memory: on plain arrays of 256 KiB and more NumPy computes "
    "a * b + c in the array of a * b and so in its order, which it cannot on tracers. Let operands lie alike: "
    "u.T.copy() for u.T"
)


def _has_when_laid_out(value: Any, wanted: int) -> bool:
    is_matrix = type(value) is np.ndarray and value.ndim > 1
    return is_matrix and any(short_digest(np.array(value, order=order)) == wanted for order in ("C", "F"))
