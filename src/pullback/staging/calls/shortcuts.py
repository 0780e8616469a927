"""Shortcuts: the shortest way from a warm call of a derivative to its generated functions, without a trace and without
the body.

There is one where the function is proved to do the same again (``loops.bodies.deterministic_functions``). The arguments
are compared in kind, plain ones in content, and so is all that the function reads from outside. Where anything differs
the call goes the ordinary way. The first calls of a shortcut go both ways and are compared.
"""

import sys
from _thread import _count  # of the threads besides the first
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from pullback.loops.bodies.deterministic_functions import Reads
from pullback.memory.in_force import nothing_in_force, staging_in_force
from pullback.recording.copies import packed_copy
from pullback.recording.traps import TRAPPED
from pullback.staging.calls.hot_runs import Ready, handed_out
from pullback.staging.calls.known_functions import Kept
from pullback.staging.generated.generated import errors_are_ordinary
from pullback.words.sameness import bits_held, same_content
from pullback.words.structures import flatten, unflatten
from pullback.words.undocumented import quiet

COMPARED = 2
"""How many calls of a shortcut are computed in the ordinary way as well."""
BEFORE = 3
"""Calls in the ordinary way before a shortcut is made, and again when one no longer fits."""
PAYS = 20
"""Calls of a shortcut after which it has a generated caller."""
MOST_COMPARED = 1 << 20
"""Bytes of a plain argument, which is compared in each call."""


@define(eq=False)
class Shortcut:
    """The generated functions of one derivative, with all that has to be as it was."""

    what: Any
    """Which derivative."""
    definition: Any
    """The structure of the arguments; None where each is a leaf."""
    kinds: list[Any]
    """The type of each leaf that is differentiated, or told, and for an array shape, dtype and strides; a copy of any
    other leaf, in a list."""
    places: list[int]
    """The places of the differentiated leaves."""
    reads: Reads
    ready: Ready
    constants: list[Any]
    """Plain operands; None for those that are told."""
    told: list[tuple[int, int]] = field(factory=list)
    """Places of plain operands that are leaves as they are, each with the place of the leaf, of which nothing else is
    asked."""
    inputs: list[Any] = field(factory=list)
    """The specs of what a gradient hands out cotangents for."""
    parts: list[tuple[Any, list[int | None]]] | None = None
    """The structure of each argument that is differentiated, with the places of its leaves among the cotangents; None
    where each is one leaf."""
    seeds: tuple[Any, ...] = ()
    n_compared: int = 0
    n_served: int = 0
    pays: int = field(factory=lambda: PAYS)
    """The calls after which a caller is made; and again, later and later, where that one misses."""
    callers: dict[str, Any] = field(factory=dict)
    """The callers by the form of the results."""

    def entering(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
        """The values that are differentiated, and the constants; None unless all is as it was."""
        leaves: Sequence[Any] = args
        if self.definition is not None:
            leaves, definition = flatten(args)
            if definition != self.definition:
                return None
        if len(leaves) != len(self.kinds):
            return None
        for leaf, kind in zip(leaves, self.kinds):  # noqa: B905 - there are as many
            if type(kind) is list:
                if not same_content(kind[0], leaf):
                    return None
                continue
            if type(leaf) is not kind[0]:
                return None
            if len(kind) > 1 and (leaf.shape != kind[1] or leaf.strides != kind[3] or leaf.dtype != kind[2]):
                return None
        if not self.reads.hold():
            return None
        constants = list(self.constants)
        for place, k in self.told:
            constants[place] = leaves[k]
        return [leaves[k] for k in self.places], constants

    def gradient(self, entering: list[Any], constants: list[Any]) -> Any:
        """The value, and the cotangents of the arguments; None where another thread has changed one."""
        shared = [*entering, *(constants[place] for place, _ in self.told)]
        before = bits_where_shared(shared)
        values, slots = self._forward(entering, constants)
        with quiet():
            found = list(self.ready.reverse(slots, self.seeds)[0])
        if bits_where_shared(shared) != before:
            return None
        if len(found) < len(entering):
            found.reverse()
            found = [found.pop() if wanted else None for wanted in self.ready.exits.stage.entered]
        lent = self.ready.back.lent
        cts = [handed_out(found, k, spec, lent) for k, spec in enumerate(self.inputs)]
        if self.parts is None:
            return values[0], cts
        return values[0], [
            unflatten(definition, [None if place is None else cts[place] for place in places])
            for definition, places in self.parts
        ]

    def tangent(self, entering: list[Any], constants: list[Any]) -> Any:
        """The values and tangents of what is returned."""
        before = bits_where_shared(entering)
        values = self._forward(entering, constants)[0]
        if bits_where_shared(entering) != before:
            return None
        return list(map(packed_copy, values))

    def _forward(self, entering: list[Any], constants: list[Any]) -> Any:
        if self.n_compared >= COMPARED:
            return self.ready.forward(entering, (), constants)
        record = self.ready.exits.stage.record
        with quiet():  # the ordinary way warns
            return record.function(entering, (), constants, *self.ready.work.of(record))


def bits_where_shared(entering: Sequence[Any]) -> list[Any]:
    """What arguments hold, where there is a thread that could change them meanwhile: no body runs."""
    if not _count():
        return []
    arrays = [leaf for leaf in entering if type(leaf) is np.ndarray]
    return list(map(bits_held, arrays))


def may_enter(staging: str | None) -> bool:
    """Whether nothing is in force that a call would have to tell of, or to ask."""
    return (
        nothing_in_force()
        and not TRAPPED.get()
        and errors_are_ordinary()
        and staging_in_force(staging) != "off"
        and sys.gettrace() is None
        and sys.getprofile() is None
    )


@define(eq=False)
class Shortcuts(Kept[Shortcut]):
    """The shortcuts of the derivatives of one function."""

    staging: str | None
    """What the function was told."""

    def found(self, what: Any, args: Sequence[Any]) -> Any:
        """A shortcut for such a call, and what enters; whoever has taken it puts it back."""
        for shortcut in self.kept:
            if shortcut.what == what:
                entering = shortcut.entering(args)
                if entering is not None:
                    return (shortcut, entering) if self.take_out(shortcut) else None
        return None

    def called(
        self, what: Any, args: tuple[Any, ...], make: Callable[[], Shortcut], form: Callable[[Any], Any],
        ordinary: Callable[[], Any],
    ) -> Any:  # fmt: skip
        """What such a call gives, in the ``form`` that the ``ordinary`` way gives, in a tuple; None where that way is
        to be taken."""
        if self.busy or not may_enter(self.staging):
            return None
        taken = self.found(what, args)
        if taken is None:
            if self.wants(BEFORE):
                self.makes(make)
            return None
        shortcut, entering = taken
        try:
            given = shortcut.gradient(*entering) if what[0] == "gradient" else shortcut.tangent(*entering)
        except Exception:  # noqa: BLE001 - the ordinary way raises it again, at the user's line
            return None
        if given is None:
            return None
        given = form(given)
        if shortcut.n_compared < COMPARED:
            right = self.ordinarily(ordinary)
            if not same_content(plain(right), plain(given)):
                self.refused("a shortcut gives other bits than the ordinary way")
                return (right,)
            shortcut.n_compared += 1
        self.put_back(shortcut)
        return (given,)


def plain(given: Any) -> Any:
    """What is compared of a result."""
    return flatten(given)[0]
