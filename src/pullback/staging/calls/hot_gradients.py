"""Gradients that are asked for again and again: those of staged functions immediately, those of small functions once
there were enough calls for it to pay.

A function on numbers and short arrays costs more to record than to compute. It is then staged as if decorated, if it
does the same in each call, and if what its stage works in, which stays between calls, is next to nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any
from weakref import ref

import numpy as np
from attrs import define, field

from pullback.memory.in_force import nothing_in_force, recording_alone, staging_in_force
from pullback.recording.tape import SMALL, Tape
from pullback.recording.writes import WRITE_OPCODES
from pullback.rules.forms import FORMS
from pullback.staging.calls.known_functions import CARRIED, calls_staged, function_within, staged_of
from pullback.tracing.running import Traced

FEW = 32
"""Records up to which a function is staged as soon as anybody asks."""
MANY = 1024
"""Records up to which it is staged after some calls more."""
LATER = 256
"""These calls: making a stage takes as long as some 300 gradients that are recorded, and saves half of each."""
LARGE = 1 << 16
"""Bytes of an argument from which it pays to ask whether the function may write to it."""
MOST_WITHIN = 1 << 16
"""Bytes of an argument up to which a gradient of gradients is a stage where nobody has asked for one."""
MOST_NBYTES = 1 << 18
"""Bytes of all values of a function that is staged by itself: its stage keeps memory for them."""
TRIALS = 6
"""Calls in which a stage has to come about, and that may do something else."""
SELDOM = 40
"""Calls of a gradient, and gradients of functions of one code, after which it pays to ask for a stage."""
MOST_CODES = 256
_MADE: dict[CodeType, int] = {}
"""How many gradients were made of functions of each code."""
_ARGUMENTS = frozenset((float, np.float64, np.ndarray))


@define(eq=False)
class Hot:
    """What is known of the gradient of one function."""

    f: Callable[..., Any]
    which: Any
    """The arguments that are chosen."""
    with_value: bool
    usual: bool
    """Whether nothing is asked but which arguments."""
    anew: Callable[[Any], Any]
    """A function that makes such a gradient of any function, of which nothing is known, and what is known of it."""
    known: Any = field(init=False)
    """What is known of a staged function; None before it pays."""
    by_itself: bool = field(init=False)
    """Whether the function was staged here, and not by the decorator."""
    comes_again: bool = field(init=False)
    """Whether many gradients of functions of its code were made, and the decorator has staged none of them."""
    others: Iterator[int] = field(init=False)
    """Calls still to come that look for what is known of other gradients like it; none where few such gradients were
    made."""
    n_waiting: int = field(default=0, init=False)
    """Calls that are still to come before the function is staged."""
    n_trials: int = field(default=0, init=False)
    over: bool = field(default=False, init=False)
    at_once: Any = field(default=None, init=False)
    itself: Any = field(default=None, init=False)
    """The gradient that users have, held weakly."""
    warm: Any = field(default=None, init=False)
    """The shortcuts of its own derivatives, and for a function that no decorator staged, of the gradient."""
    first: list[Any] = field(factory=list, init=False)
    """The caller that the gradient asks first, once there is one."""
    unwritten: Any = field(default=None, init=False)
    """What is known of the function where its arguments are large (``loops.bodies.unwritten_arguments``)."""
    calls_staged: str | None = field(default=None, init=False)
    """What the function names, as :func:`calls_staged` has it; None before that is asked."""

    def __attrs_post_init__(self) -> None:
        self.known = staged_of(self.f)
        self.by_itself = self.known is None
        if self.known is not None and self.known.warm is not None and self.usual:
            self.first += self.known.warm.callers_of(self)
        code = getattr(self.f, "__code__", None)
        n_made = 0 if type(code) is not CodeType else _MADE.get(code, 0)
        self.comes_again = self.by_itself and n_made >= SELDOM
        self.others = iter(range(SELDOM if n_made >= SELDOM else 0))
        if n_made < SELDOM and type(code) is CodeType:
            if len(_MADE) >= MOST_CODES:
                _MADE.clear()
            _MADE[code] = n_made + 1

    def named(self, made: Any) -> Any:
        """The gradient, as users have it: derivatives of it find what is known."""
        made.__pullback_hot__, self.itself = self, ref(made)
        return made

    def gradient(self, args: tuple[Any, ...], where: tuple[int, ...]) -> tuple[Any, Any, Any]:
        """The result in a tuple; or None, then the finished trace or None, and the function as it is to be called where
        there is none: such that a stage comes about, where that is wanted."""
        carried = CARRIED.get() if self.usual else None
        if carried is not None:
            return (self.told(carried(self.f, args, where)),), None, self.f
        entered = self.entered(args, where)
        if entered is not None:
            return entered, None, self.f
        at_once, called = self.traced(args, where)
        if at_once is None or type(at_once[0]) is Traced:
            return None, at_once, called
        return (self.told(at_once),), None, called

    def writes_nothing(self, args: tuple[Any, ...], where: Sequence[int]) -> bool:
        """Whether a call, where nothing is in force, is proved to leave the arguments at ``where`` as they are."""
        if not nothing_in_force():
            return False
        if self.unwritten is None:
            # Imported here as below.
            from pullback.loops.bodies.unwritten_arguments import UnwrittenArguments  # noqa: PLC0415 - as above

            self.unwritten = UnwrittenArguments(self.f, function_within)
        found: bool = self.unwritten.are(args, where)
        return found

    def told(self, both: tuple[Any, Any]) -> Any:
        """Value and cotangents, in the form that was asked for."""
        value, cts = both
        found = self.which.structured(cts) if self.which.several else cts[0]
        return (value, found) if self.with_value else found

    def traced(self, args: tuple[Any, ...], where: Sequence[int]) -> tuple[Any, Any]:
        """As ``staging.calls.direct_gradients.gradient_at_once``, and the function as it is to be called where that
        gives None."""
        known = self.known
        if self.over:
            return None, self.f
        if self.by_itself:
            for arg in args:
                if not _is_small(arg):
                    return None, self.f
            if not nothing_in_force() or staging_in_force() == "off":
                return None, self.f
            if known is None:
                if self.n_waiting > 1:
                    self.n_waiting -= 1
                    return None, self.f
                return None, named_as(self.f, self.looking)
        if self.at_once is None:
            # Imported here since these files take a third of the import, and few programs stage functions.
            from pullback.staging.calls.direct_gradients import gradient_alone, gradient_at_once  # noqa: PLC0415

            self.at_once = gradient_alone if self.by_itself else gradient_at_once
        if not self.by_itself:
            return self.at_once(known, args, where, with_value=self.with_value), self.f
        found = self.at_once(known, args, where)
        if found is None or not known.open_runs.runs:
            self.n_trials += 1
            self.over = self.n_trials > TRIALS
        return found, named_as(self.f, self.learning) if found is None else self.f

    def entered(self, args: tuple[Any, ...], where: tuple[int, ...]) -> Any:
        """What the shortcut of a warm call gives, in a tuple; None where there is none (``Shortcuts.called``)."""
        if not self.usual:
            return None
        if self.by_itself:
            if self.calls_staged is None:
                self.calls_staged = calls_staged(self.f)
            if not self.calls_staged and (self.over or self.known is None or not all(map(_is_small, args))):
                return None
            if self.calls_staged == "gradients" and any(getattr(arg, "nbytes", 0) > MOST_WITHIN for arg in args):
                return None
            owner: Any = self
        else:
            owner = self.known
        warm = owner.warm
        if warm is None:
            # Imported here as below.
            from pullback.staging.calls.shortcut_making import warm_of  # noqa: PLC0415

            warm = owner.warm = warm_of(owner)
        return warm.gradient(self, owner, args, where)

    def learning(self, *args: Any) -> Any:
        """The function, whose operations are looked at by what is known of it."""
        from pullback.staging.shadow.operations import values_nbytes  # noqa: PLC0415 - as above

        known = self.known
        out = known.call(args, {})
        seen = [operations for each in known.by_kinds.values() for operations in each.seen]
        if any(values_nbytes(operations) > MOST_NBYTES for operations in seen):
            self.over, self.known = True, None
        return out

    def looking(self, *args: Any) -> Any:
        """The function; what it has recorded says whether it is small."""
        out, tape = self.f(*args), recording_alone()
        if tape is not None:
            self.over = not _is_simple(tape)
            if not self.over and len(tape.records) > FEW and not self.n_waiting:
                self.n_waiting = LATER
            elif not self.over:
                from pullback.staging.calls.staged_functions import staged_alone  # noqa: PLC0415 - as above

                self.known = staged_alone(self.f)
        return out


def named_as(f: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """``call``, which errors name as ``f``, in whose place it is called."""

    def called(*args: Any) -> Any:
        return call(*args)

    called.__name__ = str(getattr(f, "__name__", f))
    return called


def _is_small(arg: Any) -> bool:
    return type(arg) in _ARGUMENTS and (type(arg) is not np.ndarray or arg.nbytes <= SMALL)


def _is_simple(tape: Tape) -> bool:
    """Whether a trace has not too many records, none of a loop or a write, and holds little."""
    if not 1 < len(tape.records) <= MANY or tape.marks is not None:
        return False
    nbytes = 0
    for record in tape.records:
        if record is not None:
            form = FORMS[record[0]]
            if record[0] in WRITE_OPCODES or form.wide:
                return False
            nbytes += sum(getattr(value, "nbytes", 0) for value in form.saved_values(record))
    return nbytes <= MOST_NBYTES
