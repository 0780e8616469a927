"""Tangents along many directions, such as the columns of a Jacobian, by one generated function for many directions: for
functions that are proved to do the same again, which need not run for each.

What does not depend on the direction is computed once, and nothing is kept: each value lives until its last reader.
"""

from collections.abc import Callable, Sequence
from itertools import cycle, groupby, islice
from threading import Lock
from typing import Any

import numpy as np
from attrs import define, field

from pullback.loops.bodies.deterministic_functions import reads_of
from pullback.memory.in_force import Tracing
from pullback.recording.copies import faithful
from pullback.recording.handles import Handle
from pullback.staging.calls.derivative_stages import nesting_of
from pullback.staging.calls.known_functions import function_within
from pullback.staging.calls.shortcut_making import carried, kinds_of_leaves, leaves_of_call, require_unwritten
from pullback.staging.calls.shortcuts import Shortcut, bits_where_shared, may_enter
from pullback.staging.generated.forward_statements import NotStageableError
from pullback.staging.generated.generated import Generated
from pullback.staging.generated.recorded_steps import require_equal
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.pulls.push_functions import handed_out, laid_in_order, written_for_many
from pullback.staging.pulls.repeated_pulls import AT_ONCE, STACKED_BYTES
from pullback.staging.pulls.reverse_functions import is_of, stacked_seeds
from pullback.staging.pulls.stacked_statements import DISTINCT
from pullback.staging.shadow.collective_pulls import draw
from pullback.words.specs import ArraySpec, spec_of
from pullback.words.undocumented import quiet

MOST_MADE = 8
"""How many functions are made of one: one that depends on what changes is better off without."""

Program = Callable[[list[Any], Sequence[Any]], list[Any]]
"""A function of the leaves that are differentiated and their tangents, None for 0, that gives the tangents of the
results, None where one depends on no direction."""


class _NotNowError(Exception):
    """Now columns are computed one by one; another call may be served."""


@define(eq=False)
class Tangential:
    """The function for directions that have a part for one of the leaves."""

    place: int
    shortcut: Shortcut
    """What all that it was made from is compared with."""
    generated: Generated
    constants: tuple[Any, ...]
    reached: tuple[bool, ...]
    """Which results have a tangent."""
    n: int
    """The number of directions."""
    spec: ArraySpec
    """The spec of a part."""
    ordering: Generated | None
    """The function that lays some of what directions share in C order; None where nothing is to be."""
    work: Workspace = field(factory=Workspace)

    def each_of(self, entering: Sequence[Any], parts: Sequence[Any]) -> list[list[Any]]:
        """The tangents of the results for each of many parts."""
        before = bits_where_shared(entering)
        if not all(is_of(part, self.spec) for part in parts):
            raise _NotNowError
        found: list[list[Any]] = []
        ordered = self.in_order(entering)
        for first in range(0, len(parts), self.n):
            found += self.each(entering, ordered, parts[first : first + self.n])
        del ordered
        if bits_where_shared(entering) != before:
            raise _NotNowError
        return found

    def in_order(self, entering: Sequence[Any]) -> Sequence[Any]:
        """What the function is given beside, for all directions."""
        return laid_in_order(self.ordering, (*entering, *self.constants), self.work)

    def each(self, entering: Sequence[Any], ordered: Sequence[Any], parts: Sequence[Any]) -> list[list[Any]]:
        """The tangents in as many directions as the function takes, or fewer."""
        seeds, shared = stacked_seeds([[part] for part in parts], self.n), (*entering, *self.constants, *ordered)
        with quiet():  # whoever asks has run the function once
            found = self.generated.function(shared, seeds, *self.work.of(self.generated))[0]
        if any(np.isnan(t).any() for t in found):
            raise _NotNowError  # see ``Reverse.each``
        answers = []
        for k in range(len(parts)):
            left = iter(found)
            answers.append([next(left)[k] if wanted else None for wanted in self.reached])
        return answers


@define(eq=False)
class RepeatedTangents:
    """What is known of the tangents of one function."""

    made: dict[int, Tangential] = field(factory=dict)
    """What was made, by the leaf that directions have a part for."""
    n_made: int = 0
    why: str = ""
    """Why there is no function any more."""
    lock: Any = field(factory=Lock)
    """The lock held by the call under way; another that comes meanwhile does without."""

    def of(
        self, f: Any, call: tuple[tuple[Any, ...], Sequence[int]], several: Sequence[list[Any]], program: Program,
        ordinary: Callable[[Sequence[Any]], list[Any]], specs: Sequence[ArraySpec],
        of_parts: Sequence[ArraySpec] | None = None,
    ) -> list[list[Any]] | None:  # fmt: skip
        """The tangents of the results, of these ``specs``, in each of several directions; None where they are to be
        computed one by one, as ``ordinary`` does, whose bits a new function has to give. ``call`` is the arguments, and
        which are differentiated. Rows of a Jacobian are such tangents, too: of the map from cotangents of the results,
        ``of_parts``, to those of the leaves."""
        if self.why or not may_enter(None) or not self.lock.acquire(blocking=False):
            return None
        found: list[list[Any]] = []
        try:
            for places, some in groupby(several, lambda one: [k for k, part in enumerate(one) if part is not None]):
                [place] = places
                known, entering = self._known(f, call, place, program, ordinary, of_parts)
                answers = known.each_of(entering, [one[place] for one in some])
                found += [handed_out(tangents, specs) for tangents in answers]
        except _NotNowError:
            return None
        except Exception as error:  # noqa: BLE001 - whatever a function does with what has no value
            self.why = str(error) or type(error).__name__
            self.made.clear()
            return None
        finally:
            self.lock.release()
        return found

    def _known(
        self, f: Any, call: tuple[tuple[Any, ...], Sequence[int]], place: int, program: Program,
        ordinary: Callable[[Sequence[Any]], list[Any]], of_parts: Sequence[ArraySpec] | None,
    ) -> tuple[Tangential, list[Any]]:  # fmt: skip
        """The function for directions with this one part, and what enters it."""
        known = self.made.get(place)
        entered = None if known is None else known.shortcut.entering(call[0])
        if entered is None:
            if self.n_made >= MOST_MADE:
                raise _NotNowError
            self.n_made += 1
            known = self.made[place] = _made(f, *call, place, program, ordinary, of_parts)
            entered = known.shortcut.entering(call[0])
        assert known is not None and entered is not None
        return known, entered[0]


def _made(
    f: Any, args: tuple[Any, ...], where: Sequence[int], place: int, program: Program,
    ordinary: Callable[[Sequence[Any]], list[Any]], of_parts: Sequence[ArraySpec] | None,
) -> Tangential:  # fmt: skip
    leaves, definition, places = leaves_of_call(args, where)
    reads, kinds = reads_of(f, function_within), kinds_of_leaves(leaves, places)
    xs = [leaves[k] for k in places]
    specs = [spec_of(x) for x in xs] if of_parts is None else of_parts
    spec = specs[place]
    if any(type(x) is float for x in xs):
        raise NotStageableError("an argument is a number of Python's")
    random = np.random.default_rng(0)
    try:
        with quiet(), carried(), nesting_of([*xs, draw(random, spec)]) as run:
            with Tracing(run.tape):
                run.sweeps = True  # the function has run, and warned, before; rules may change NumPy's error state
                held = [run.enter(faithful(x)) for x in xs]
                t = run.enter(draw(random, spec))
                found = program(held, [t if k == place else None for k in range(len(specs))])
            leaving = [one for one in found if one is not None]
            if not leaving or any(not isinstance(one, Handle) or one._tape is not run.tape for one in leaving):
                raise NotStageableError("a tangent that depends on nothing")
            run.finish(leaving, [])
            run.sweeps = False
    finally:
        require_unwritten(reads, leaves, kinds)
    if run.why or run.captured:
        raise NotStageableError(run.why or "a captured value")
    if not reads.hold():
        raise NotStageableError("it changes what it reads")
    # Without what runs: it only compares.
    shortcut = Shortcut(("tangents", place), definition, kinds, places, reads, None, [])  # type: ignore[arg-type]
    generated, ordering, [n] = written_for_many(run, len(xs), _width, [leaving], "tangents")
    reached = tuple(t is not None for t in found)
    made = Tangential(place, shortcut, generated, tuple(run.constants), reached, n, spec, ordering)
    _require_same(made, xs, len(specs), ordinary)
    return made


def _width(samples: Sequence[Any]) -> list[int]:
    """How many directions go through a function at once, whose values for one of them are these."""
    n = min(AT_ONCE, STACKED_BYTES // max(8, *(getattr(x, "nbytes", 0) for x in samples)))
    if n < 2:
        raise NotStageableError("the values are large")
    return [n]


def _require_same(
    made: Tangential, xs: list[Any], n_places: int, ordinary: Callable[[Sequence[Any]], list[Any]]
) -> None:
    random = np.random.default_rng(1)
    drawn = [draw(random, made.spec) for _ in range(DISTINCT)]
    answers = made.each(xs, made.in_order(xs), list(islice(cycle(drawn), made.n)))
    wanted = [ordinary([t if k == made.place else None for k in range(n_places)]) for t in drawn]
    for tangents, expected in zip(answers, cycle(wanted), strict=False):
        require_equal(handed_out(tangents, expected), expected, "the tangents")
