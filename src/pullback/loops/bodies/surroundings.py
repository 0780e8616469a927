"""What a loop's body reads besides its arguments, and must find again when it is called again: names and arrays. Random
states are those of ``loops.bodies.randomness``.

Names that somebody binds anew after the loop are put back for the reverse pass. Arrays that somebody writes to, and
containers that somebody fills, are found out. What the body itself changes must not matter to it: a step that has
changed it is run once more, and must do the same.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from operator import is_
from types import CellType
from typing import Any

import numpy as np
from attrs import define, field

from pullback.loops.bodies.changes import WatchedPlaces, are_same, leaves_of
from pullback.loops.bodies.reachable import Place, Reachable
from pullback.recording.crossing import written_among
from pullback.recording.handles import Handle, freeze, is_lost, read_only
from pullback.recording.tape import CAPTURED, PAUSED, SMALL
from pullback.words.digests import digest
from pullback.words.errors import ReplayError, say_where
from pullback.words.ordered_calls import UNDER_WAY


class OnValues:
    """Within the block the cells of a closure hold values in the place of handles of traces that stand still."""

    __slots__ = ("_cells", "_handles", "_seen")

    def __init__(self, cells: list[CellType]) -> None:
        self._cells = cells
        self._seen: dict[int, tuple[Any, Any]] = {}

    def __enter__(self) -> None:
        self._handles: list[tuple[CellType, Any]] = []
        for cell in self._cells:
            handle = cell.cell_contents
            mode = handle._tape.mode
            if mode not in (PAUSED, CAPTURED):
                continue
            self._handles.append((cell, handle))
            value = handle._value
            if isinstance(value, Handle):
                cell.cell_contents = freeze(value)
                continue
            place = id(cell)
            seen = self._seen.get(place)
            if seen is None or seen[0] is not value:
                seen = self._seen[place] = value, read_only(value)
            cell.cell_contents = seen[1]

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for cell, handle in self._handles:
            cell.cell_contents = handle
        if isinstance(error, ValueError) and "read-only" in str(error):
            say_where(error, _READ_ONLY)


_READ_ONLY = (
    "a body writes to an array that is read-only here, as a value is that it captures; make it part of the loop's "
    "state, or write to a copy"
)


@define(eq=False)
class Surroundings:
    """What the body of the loop function ``name`` can reach, and what becomes of it."""

    name: str
    places: list[Place]
    arrays: list[tuple[str, Any]]
    """Names and arrays."""
    bound: list[tuple[Any, ...]]
    """What each place was bound to when the loop began."""
    stood: list[int]
    """The numbers of places with arrays of adopted modules that the trace around has written: for the body they are
    bound to what it has written."""
    digests: list[bytes] = field(factory=list, init=False)
    """The digests of the arrays then."""
    copies: dict[int, Any] = field(factory=dict, init=False)
    """Copies of small arrays, by number."""
    moving: set[Any] = field(factory=set, init=False)
    """The numbers of what the body changes; those of arrays follow those of places."""
    matters: list[str] = field(factory=list, init=False)
    """What makes a re-run another program, in words: what the body changes and reads again; in a reverse pass, what
    others have changed, too."""
    pending: set[int] = field(factory=set, init=False)
    """The numbers of what the first run has changed, while it is not yet known whether that matters."""
    known: bool = field(default=False, init=False)
    """Whether the first run is over."""
    of_user: dict[int, tuple[Any, ...]] = field(factory=dict, init=False)
    """What places that are bound as in the first run, while a reverse pass is under way, are bound to outside of it."""

    def __attrs_post_init__(self) -> None:
        arrays = [np.asarray(x) for _, x in self.arrays]
        self.digests = [digest(array) for array in arrays]
        self.copies = {key: array.copy() for key, array in enumerate(arrays, len(self.places)) if array.nbytes <= SMALL}

    def _changed_places(self) -> dict[int, tuple[Any, ...]]:
        """The places that are bound to something else than in the beginning, with what it is."""
        left_out = self.moving | self.pending
        now = ((k, place.read()) for k, place in enumerate(self.places) if k not in left_out)
        others = {k: content for k, content in now if not _are_identical(content, self.bound[k])}
        return {k: content for k, content in others.items() if not are_same(content, self.bound[k])}

    def _changed_arrays(self) -> dict[int, tuple[str, Any]]:
        """The arrays that hold other bits than in the beginning, by number."""
        left_out = self.moving | self.pending
        numbered = enumerate(zip(self.arrays, self.digests, strict=True), len(self.places))
        return {k: each for k, (each, old) in numbered if k not in left_out and digest(np.asarray(each[1])) != old}

    def _watched(self) -> WatchedPlaces:
        return WatchedPlaces(self.places, self.arrays, self.bound, self.copies)

    def after_first_run(self, trials: Iterable[Callable[[], Any]]) -> None:
        """The loop has ended. Of what has changed here, that matters which a trial reads, a step that is run once more:
        asked now where steps will be run again anyway, and without ``trials`` before they are."""
        places, arrays = self._changed_places(), self._changed_arrays()
        self.known, self.pending = True, {*places, *arrays}
        self.try_out(trials)

    def try_out(self, trials: Iterable[Callable[[], Any]]) -> None:
        """Ask of what is pending whether it matters."""
        trials, pending = list(trials), self.pending
        if pending and trials:
            self.pending = set()
            places = {k: content for k, content in self._changed_places().items() if k in pending}
            arrays = {k: each for k, each in self._changed_arrays().items() if k in pending}
            now: dict[int, Any] = {**places, **{key: np.array(x) for key, (_, x) in arrays.items()}}
            read = self._watched().read_by(trials, now)
            of_places = {k: content for k, content in places.items() if k in read}
            self._say(of_places, [k for k in arrays if k in read], "which the body changes")
            self.moving.update(arrays)
            self.moving.update(k for k, content in places.items() if self._watched().leave_out(k, content))

    def _say(self, places: dict[int, tuple[Any, ...]], arrays: Iterable[int], what: str) -> None:
        if places or arrays:
            watched, said = self._watched(), {each.partition(", ")[0] for each in self.matters}
            names = [name for k, now in places.items() for name in watched.named(k, now)]
            self.matters += [f"{name}, {what}" for name in names if name not in said]
            self.matters += [watched.by_how_much(k).replace("|", f", {what}", 1) for k in arrays]

    def suspects(self) -> str:
        """What is known to have changed, for messages."""
        return "".join(f"{each}; " for each in self.matters)

    # A reverse pass.
    @contextmanager
    def put_back(self, reran: Callable[[], bool], trials: Callable[[], Any] = tuple) -> Iterator[None]:
        """In the block names are bound as they were in the first run. Raises :class:`ReplayError` after the block
        where ``reran()`` says that steps were run again and something has changed that cannot be put back, unless
        ``trials()`` show that the body fills it itself."""
        known = list(self.matters)
        self._say({}, self._changed_arrays(), "changed after the first run")
        self._put("changed after the first run")
        try:
            yield
            self._say({}, () if self.matters else self._changed_arrays(), "changed in the reverse pass")
            if self.matters and reran() and (known or not self._is_scratch(trials())):
                raise ReplayError(
                    f"{self.name}: the body reads something that changed in between: {'; '.join(self.matters)}. Make "
                    "it part of the state, or pass an array as an argument, and leave it as it is up to the gradient"
                )
        finally:
            self.matters[:] = known
            self._put_as_the_user_did()

    def _is_scratch(self, trials: Any) -> bool:
        """Whether all that has changed is what the body fills itself, as trials of its steps show."""
        return self._watched().all_scratch(trials, self._changed_places(), self._changed_arrays(), self.moving)

    def _put(self, when: str) -> None:
        """Bind names as they were in the first run, and say what cannot be."""
        changed = self._changed_places() | {k: self.places[k].read() for k in self.stood}
        self.of_user = {k: now for k, now in changed.items() if self._watched().is_put_back(k, now)}
        self._say({k: now for k, now in changed.items() if k not in self.of_user}, (), when)
        for k in self.of_user:
            self.places[k].put(self.bound[k])

    def _put_as_the_user_did(self) -> None:
        for k, content in self.of_user.items():
            self.places[k].put(content)

    def outside(self, told: Callable[..., Any] | None) -> Callable[..., Any] | None:
        """``told``, a function of the user's that is called in a reverse pass: it finds names bound as the user has
        bound them, and what it binds does not reach the body."""
        if told is None:
            return None

        def tell(*given: Any) -> None:
            self._put_as_the_user_did()
            try:
                told(*given)
            finally:
                self._put("changed in the reverse pass")

        return tell


def surroundings_of(name: str, reachable: Reachable, xs: Iterable[Any], verify: str) -> tuple[Any, list[Any]]:
    """What can be reached, and plain ``xs``, when the loop begins; with the handles that are bound somewhere, frozen to
    what they stand for now. Unless ``verify`` is ``"all"`` nothing is watched: only arrays that traces around have
    written are put in their places, and where there is none, the first result is None."""
    handles: list[Any] = []
    arrays = [*reachable.arrays.values(), *((f"xs[{k}]", x) for k, x in enumerate(xs) if isinstance(x, np.ndarray))]
    written = written_among(arrays) if any(tape.adopted for tape in UNDER_WAY.get()) else {}
    stood = [
        k
        for k, place in enumerate(reachable.places if written else ())
        if any(id(x) in written for x in leaves_of(place.read()))
    ]
    if verify != "all":
        reachable, arrays, stood = Reachable([reachable.places[k] for k in stood]), [], [*range(len(stood))]
    bound = [tuple(_frozen(x, handles, written) for x in place.read()) for place in reachable.places]
    return Surroundings(name, reachable.places, arrays, bound, stood) if stood or verify == "all" else None, handles


def _are_identical(now: tuple[Any, ...], before: tuple[Any, ...]) -> bool:
    """Whether the same objects are bound, in pairs of a key and a value or by themselves: asked first, since it is fast
    and nearly always so."""
    return len(now) == len(before) and all(
        a is b or (type(a) is type(b) is tuple and len(a) == len(b) and all(map(is_, a, b)))
        for a, b in zip(now, before, strict=True)
    )


def _frozen(x: Any, handles: list[Any], written: dict[int, Any]) -> Any:
    if type(x) is tuple and any(isinstance(part, Handle) or id(part) in written for part in x):
        return tuple(_frozen(part, handles, written) for part in x)
    x = written.get(id(x), x)
    if not isinstance(x, Handle) or x._tape.mode == PAUSED or is_lost(x):
        return x
    handles.append(freeze(x))
    return handles[-1]
