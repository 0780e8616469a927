"""A shadow run that serves many calls of one function in a row. What is checked before and after a call is checked once
for all of them, but for what a call could have changed.

It stays *open* while calls do what is known and keep none of its handles: the next call then finds trace, handles and
lists as they were. Otherwise it ends as any other run.
"""

import warnings
from collections.abc import Callable, Sequence
from sys import getrefcount
from threading import get_ident
from typing import Any

import numpy as np
from attrs import define, field

from pullback.memory.in_force import Tracing
from pullback.memory.reverse_sweep import release_records
from pullback.recording.handles import Handle
from pullback.recording.tape import NOTHING_KEPT, Tape
from pullback.staging.calls.call_record import Exits
from pullback.staging.calls.inlined_run import InlinedRun, entered_as
from pullback.staging.generated.generated import say_line, usable, warn
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.shadow.quick_operators import KnownStep
from pullback.staging.shadow.values_asked_for import Parts
from pullback.tracing.running import tell, warn_of_refused
from pullback.words.specs import new_zeros
from pullback.words.structures import LEAVES
from pullback.words.undocumented import HELD, error_state, holders, under_error_state

MOST_OPEN = 4
"""How many runs of one kind stay open."""


@define(eq=False)
class Ready:
    """The functions of a stage, with what they work in: for one call after another."""

    exits: Exits
    work: Workspace = field(init=False)
    back: Workspace = field(init=False)
    """The workspace of the reverse, whose results the user gets."""

    def __attrs_post_init__(self) -> None:
        self.work = Workspace(threads=self.exits.threads)
        self.back = Workspace(threads=self.exits.threads, shared=self.work.shared, hands_over=True, lent={})

    def forward(self, inputs: Sequence[Any], values: Sequence[Any], constants: Sequence[Any]) -> Any:
        """The values that the stage computes, and the slots."""
        record = self.exits.stage.record
        generated = usable(record)
        try:
            with under_error_state(warn):
                return generated.function(inputs, values, constants, *self.work.of(record))
        except Exception as error:
            say_line(error, generated)
            raise

    def reverse(self, slots: Sequence[Any], seeds: Sequence[Any]) -> Any:
        """The cotangents of the arguments, and those of captured values; whoever asks lets NumPy warn of nothing."""
        generated = self.exits.stage.reverse
        return generated.function(slots, seeds, *self.back.of(generated))


def handed_out(cts: list[Any], k: int, like: Any, lent: Any = ()) -> Any:
    """The cotangent of input ``k``: of the shape and dtype of ``like``, writable, sharing memory with nothing but what
    ``lent`` has, by ids: an array that is used again once the user has let go of it."""
    ct, shape = cts[k], getattr(like, "shape", ())
    cts[k] = None
    if ct is None:
        zero = new_zeros(shape, getattr(like, "dtype", np.float64))
        return zero if shape else zero[()]
    if type(ct) is not np.ndarray:
        return ct
    if not shape:
        return ct[()]
    others = 2 if HELD and id(ct) in lent else 0  # who has lent it knows it by its id and by its kind
    alone = ct.base is None and ct.flags.writeable and getrefcount(ct) <= HELD + others
    return ct if alone else ct.copy(order="K")


@define(eq=False)
class HotRun:
    """One run, in a trace of its own that is made for the call."""

    tape: Tape
    """The trace around the function."""
    given: list[Any]
    """The handles there of the arguments that are differentiated."""
    places: Sequence[int]
    """Their places among the arguments."""
    kinds: tuple[Any, ...]
    """The type of each argument; of those that are differentiated, with shape, dtype and strides."""
    source: Any
    """What is known of such calls."""
    grows: list[Any]
    """A list in that which gets one item more for each list of operations that becomes known."""
    lists: Sequence[KnownStep]
    run: InlinedRun
    works: Any
    """What the functions of the stages work in."""
    computes: Callable[[KnownStep], Parts] | None = None
    ready: Ready | None = None
    """The functions for the first of the lists, once it has come again."""
    alone: bool = field(init=False)
    """Whether all arguments are differentiated, in their order."""
    is_open: bool = field(default=False, init=False)
    held: list[int] = field(factory=list, init=False)
    """How many hold each of its handles while it is open, and no call is under way."""
    stays: bool = field(default=False, init=False)
    """Whether it is open when the call is over."""

    def __attrs_post_init__(self) -> None:
        self.alone = list(self.places) == list(range(len(self.kinds)))

    def fits(self, args: Sequence[Any]) -> bool:
        """Whether arguments are of the kinds for which it was made."""
        kinds = self.kinds
        if len(args) != len(kinds) or len(self.grows) != len(self.lists):
            return False
        for arg, kind in zip(args, kinds):  # noqa: B905 - there are as many
            if type(arg) is not kind[0]:
                return False
            if len(kind) > 1 and (arg.shape != kind[1] or arg.dtype != kind[2] or arg.strides != kind[3]):
                return False
        return True

    def returned_by(
        self, f: Callable[..., Any], args: Sequence[Any], values: Sequence[Any], settled: Callable[[Any], Any]
    ) -> Any:
        """None where the run was open, and ``f`` has done what the last call has; else what ``settled`` makes of what
        ``f`` returns, within the trace. Of the arguments, those that are differentiated have these ``values``."""
        own = self._begun(values)
        if self.alone:
            taken: Sequence[Any] = own
        else:
            taken = list(args)
            for place, handle in zip(self.places, own, strict=True):
                taken[place] = handle
        del own
        with Tracing(self.tape, self.run.tape):
            out = f(*taken)
            for tape in (self.tape, self.run.tape):
                if tape.refused:
                    warn_of_refused(tape)
            return None if self._has_followed(out) else settled(out)

    def _has_followed(self, out: Any) -> bool:
        run = self.run
        following = run.following
        if self.is_open and following is self.lists[0] and run.at == len(following.operations) - 1:
            [end] = run.pool.ending  # type: ignore[union-attr]  # of an open run
            if out is end:
                run.at += 1
                return True
        return False

    def over(self) -> bool:
        """The call has done what is known: whether the run is open for the next."""
        run = self.run
        pool = run.pool
        if pool is None or run.captured or run.alone:
            return False
        if not self.is_open:
            if len(pool.ending) != 1 or not isinstance(pool.ending[0], Handle):
                return False
            run.stands = {}
            if run.following.stops or not pool.serves_again(run.written):  # type: ignore[union-attr]  # of a pool
                return False
            first: KnownStep = pool.known
            self.lists = [first, *(known for known in self.lists if known is not first)]
            run.known, self.is_open = self.lists, True
            run.stands = {handle._id: own for handle, own in zip(self.given, pool.starting, strict=True)}
            self.held = holders(pool.handles)  # of which these are some
        elif run.following is not self.lists[0] or not pool.serves_again(run.written, self.held):
            return False
        run.tape.shadow, run.tape.kept = None, NOTHING_KEPT  # type: ignore[assignment]  # or a run would keep itself
        run.inputs, run.constants, run.computes, self.tape.inner = [], [], None, None
        return True

    def forgets(self) -> None:
        """The call is over, and the trace around it is let go of."""
        self.tape.outer = None

    def failed(self, f: Callable[..., Any], error: BaseException) -> None:
        """The call has ended in an error, which says of what function."""
        release_records(self.tape.records)
        if isinstance(error, Exception):
            tell(f, error, self.tape)

    def _begun(self, values: Sequence[Any]) -> tuple[Any, ...]:
        run, tape = self.run, self.tape
        shadow = run.tape
        tape.thread = shadow.thread = get_ident()
        for handle, value in zip(self.given, values):  # noqa: B905 - there are as many
            handle._value = value
        if not self.is_open:
            run.enters(tape, tape.level + 1, self.lists, self.given, self.computes)
            own = tuple([run.enter(handle._value, entered_as(handle)) for handle in self.given])
            run.stands = {handle._id: mine for handle, mine in zip(self.given, own, strict=True)}
            return own
        shadow.shadow, shadow.kept, tape.inner = run, NOTHING_KEPT, shadow
        run.errors, run.filters = error_state(), warnings.filters
        run.at, run.inputs, run.constants, run.computes = 0, list(values), [], self.computes
        return run.pool.starting  # type: ignore[union-attr]  # of an open run


def kinds_of(args: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...] | None:
    """The kinds of arguments; None where one is a structure."""
    kinds: list[Any] = []
    for k, arg in enumerate(args):
        if type(arg) not in LEAVES:
            return None
        traced = k in places and type(arg) is np.ndarray
        kinds.append((np.ndarray, arg.shape, arg.dtype, arg.strides) if traced else (type(arg),))
    return tuple(kinds)


@define(eq=False)
class OpenRuns:
    """The runs of one function that are open and not under way, by what is asked of them."""

    runs: dict[Any, list[HotRun]] = field(factory=dict)

    def taken(self, what: Any, args: Sequence[Any]) -> HotRun | None:
        """One for such arguments."""
        found = self.runs.get(what)
        if not found:
            return None
        others: list[HotRun] = []
        try:
            while True:
                hot = found.pop()
                if hot.fits(args):
                    return hot
                others.append(hot)
        except IndexError:  # another thread may have taken one
            return None
        finally:
            if others:
                found[:0] = others[::-1]

    def put_back(self, what: Any, hot: HotRun) -> None:
        """A call is over, and the run is open."""
        hot.computes = None  # it knows the function, which has this
        for handle in hot.given:
            handle._value = None
        found = self.runs.get(what)
        if found is None:
            if len(self.runs) >= MOST_OPEN:
                self.runs.clear()
            found = self.runs[what] = []
        found.append(hot)
        if len(found) > MOST_OPEN:
            del found[0]
