"""Derivatives that are asked for again and again within a trace, or of functions made anew: after some calls each is
one record, or plain values, and the body no longer runs.

What is known of a function is kept under its code object. The first calls of a stage are computed in the ordinary way
as well, and where bits differ the stage is not used again. A call of which anything differs from what the stage was
made for is computed in the ordinary way alone.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from threading import get_ident
from types import FunctionType
from typing import Any, cast

import numpy as np
from attrs import define, field

from pullback.memory.in_force import (
    innermost_alone,
    nothing_in_force,
    planned,
    saves_all,
    staging_in_force,
    watchers,
)
from pullback.recording.copies import owned, packed_copy
from pullback.recording.handles import SHARED, Handle, kind_of, make, plain_value
from pullback.recording.recorder import hold
from pullback.recording.tape import FORWARD, RECORDING, Tape
from pullback.recording.traps import TRAPPED
from pullback.staging.calls.known_functions import CARRIED, Kept, staged_of
from pullback.staging.calls.shortcut_callers import caller_of
from pullback.staging.calls.shortcut_making import carried_gradient
from pullback.staging.calls.shortcuts import PAYS, Shortcut, bits_where_shared
from pullback.staging.generated.generated import errors_are_ordinary
from pullback.staging.generated.shelf import Recent
from pullback.transforms.nested.call_leaves import FIXED, fits, kinds_of_call, leaves_of
from pullback.transforms.nested.called_stages import PLAIN, PUSHED, RECORDED, Called, Derivative, made
from pullback.words.call_sites import MISSED, site_here
from pullback.words.sameness import same_content
from pullback.words.undocumented import quiet

BEFORE = {None: 300, FORWARD: 150, RECORDING: 40}
"""Calls in the ordinary way before a stage is made, and again where none fits, by what the trace around does: about as
many as take the time in which one is made."""
COMPARED = 2
"""Calls of a stage that are computed in the ordinary way as well."""
MOST_FUNCTIONS = 64
"""Derivatives of which something is known: those that were asked for last."""


@define(eq=False)
class CalledDerivatives(Kept[Called]):
    """What is known of one derivative of the functions of one code."""

    caller: tuple[Any, tuple[int, ...], Any] | None = field(default=None, init=False)
    """The caller of the stage that has served most calls where no trace is around: the globals of the function and
    ``parts`` for which it is, and the caller (``shortcut_callers``), which gives a list."""

    def found(
        self, f: FunctionType, parts: tuple[int, ...], leaves: Sequence[Any], around: Tape | None
    ) -> Called | None:
        """A stage for such a call, which is taken out until the call is over."""
        for called in self.kept:
            alike = called.names is f.__globals__ and called.parts == parts
            if alike and fits(called.kinds, leaves, around) and called.reads.hold():
                return called if self.take_out(called) else None
        return None


_SHELF = Recent(MOST_FUNCTIONS)


def known_of(what: Any, f: FunctionType, around: Sequence[Any]) -> CalledDerivatives:
    """What is known of a derivative of the functions of one code, with functions of the same code ``around`` them."""
    codes = [x.__code__ if type(x) is FunctionType else id(x) for x in around if callable(x)]
    with _SHELF.changing:
        found: CalledDerivatives = _SHELF.of((what, f.__code__, f.__code__.co_filename, *codes), CalledDerivatives)
        return found


def function_of(f: Any) -> FunctionType | None:
    """The function whose body runs, where nothing but its cells, defaults and globals make it another one than others
    of its code."""
    known = staged_of(f)
    found = f if known is None else known.f
    if type(found) is not FunctionType or found.__kwdefaults__:
        return None
    return found


def called(
    what: Any, f: Any, args: tuple[Any, ...], derivative: Derivative, ordinary: Callable[[], list[Any]],
    few: int = sys.maxsize,
) -> list[Any] | None:  # fmt: skip
    """The values of a ``derivative`` of ``f``, as the ``ordinary`` way gives them; None where that way is to be
    taken. A stage is made after ``few`` calls, where these are fewer than ``BEFORE`` has."""
    around = innermost_alone()
    if not (nothing_in_force() if around is None else _may_be_staged(around)) or not _is_ordinary(f):
        return None
    function = function_of(f)
    told = None if function is None else leaves_of(function, args)
    if function is None or told is None:
        return None
    leaves, parts = told
    mode = None if around is None else around.mode
    known = known_of((what, mode), function, leaves[len(args) :])
    if known.busy or known.over:
        return None
    found = known.found(function, parts, leaves, around)
    if found is None:
        if known.wants(min(few, BEFORE[mode])):
            _make(known, derivative, function, len(args), parts, leaves, around)
        return None
    return _given(known, found, leaves, around, ordinary)


def by_caller(what: Any, f: Any, args: tuple[Any, ...]) -> Any:
    """The values of a derivative by a caller, in a list; MISSED where there is none, or all is not as it was."""
    function = function_of(f) if nothing_in_force() else None
    told = None if function is None else leaves_of(function, args)
    if function is None or told is None:
        return MISSED
    leaves, parts = told
    found = known_of((what, None), function, leaves[len(args) :]).caller
    if found is None or found[0] is not function.__globals__ or found[1] != parts:
        return MISSED
    return MISSED if f is not function and staged_of(f).staging == "off" else found[2](leaves)


def _caller_of(found: Called) -> Any:
    """The caller of a stage of plain values."""
    kinds: list[Any] = []
    for kind in found.kinds:
        is_array = kind.type is np.ndarray
        told = (kind.type, kind.shape, kind.dtype, kind.strides) if is_array else (kind.type,)
        kinds.append([kind.value] if kind.what is FIXED else told)
    shortcut = Shortcut("called", None, kinds, found.active, found.reads, found.ready, found.constants)
    return caller_of(shortcut, f"[{''.join(f'own(values[{k}]), ' for k in range(len(found.moves)))}]")


def gradient_called(hot: Any, args: tuple[Any, ...], where: tuple[int, ...]) -> Any:
    """What the gradient ``hot`` gives by the arguments at ``where``, in a tuple; None where the ordinary way is to be
    taken."""
    n = 1 if hot.with_value else 0

    def derivative(f: Any, args: list[Any]) -> list[Any]:
        value, cts = carried_gradient(f, tuple(args), where)
        return [value, *cts][1 - n :]

    def ordinary() -> list[Any]:
        found = hot.anew(hot.f)[0](*args)
        value, cts = found if n else (None, found)
        return [value, *(cts if hot.which.several else [cts])][1 - n :]

    found = called(("gradient", where, n), hot.f, args, derivative, ordinary)
    return None if found is None else (hot.told((found[0] if n else None, found[n:])),)


def _given(
    known: CalledDerivatives, found: Called, leaves: Sequence[Any], around: Tape | None, ordinary: Any
) -> list[Any] | None:
    """The values by the stage that was ``found``."""
    entering = [leaf for leaf in leaves if not isinstance(leaf, Handle)]
    before = bits_where_shared(entering)
    try:
        values, slots, given = _computed(found, leaves, around)
    except Exception:  # noqa: BLE001 - the ordinary way raises it again, at the user's line
        return None
    if bits_where_shared(entering) != before:
        return None
    if found.n_compared >= COMPARED:
        known.put_back(found)
        found.n_served += 1
        if found.way is PLAIN and found.n_served == PAYS and (caller := _caller_of(found)) is not None:
            known.caller = found.names, found.parts, caller
        return _handed_out(found, values, slots, given, around)
    right: list[Any] = known.ordinarily(ordinary)
    if _is_right(found, values, right, around):
        found.n_compared += 1
        known.put_back(found)
    else:
        known.refused("a stage gives other values than the ordinary way")
    return right


def _is_ordinary(f: Any) -> bool:
    if TRAPPED.get() or CARRIED.get() is not None or sys.gettrace() is not None or sys.getprofile() is not None:
        return False
    staged = staged_of(f)
    return errors_are_ordinary() and staging_in_force(None if staged is None else staged.staging) != "off"


def _may_be_staged(around: Tape) -> bool:
    return around.thread == get_ident() and planned() is None and not watchers() and saves_all()


def _make(
    known: CalledDerivatives, derivative: Derivative, f: FunctionType, n_args: int, parts: tuple[int, ...],
    leaves: list[Any], around: Tape | None,
) -> None:  # fmt: skip
    kinds = kinds_of_call(leaves, n_args, around)
    if kinds is not None:
        known.makes(partial(made, derivative, f, n_args, parts, leaves, kinds, around))


def _computed(found: Called, leaves: Sequence[Any], around: Tape | None) -> tuple[Any, Any, list[Any]]:
    """The values of the stage, its slots, and the leaves that enter."""
    given, still = [leaves[k] for k in found.active], [leaves[k] for k in found.still]
    ready, tape = found.ready, cast("Tape", around)
    if found.way is PLAIN:
        inputs = given
    elif found.way is PUSHED:
        inputs = [x._value for x in given] + still + [x._id.value for x in given]
    else:
        held = ready.exits.stage.held  # still leaves come after those that are active
        inputs = [hold(x, x._value, tape) if kept else x._value for x, kept in zip(given, held, strict=False)]
        inputs += map(packed_copy, still)
    if found.n_compared >= COMPARED:
        return *ready.forward(inputs, (), found.constants), given
    record = ready.exits.stage.record
    with quiet():  # the ordinary way warns
        return *record.function(inputs, (), found.constants, *ready.work.of(record)), given


def _handed_out(found: Called, values: Any, slots: Any, given: list[Any], around: Any) -> list[Any]:
    moves = found.moves
    if not any(moves):
        return [packed_copy(v) for v, _ in zip(values, moves)]  # noqa: B905 - there are no tangents
    around.masks = around.masks or found.masks
    if found.way is RECORDED:
        exits = found.ready.exits
        handles = exits.recorded(around, [x._id for x in given], values, slots, given, site_here())
        return [x if moving else packed_copy(v) for x, v, moving in zip(handles, values, moves, strict=True)]
    kind, tangents = type(given[0]._id), iter(values[len(moves) :])
    return [
        make(kind_of(around, v), owned(v), kind(owned(next(tangents))), around, SHARED) if moving else packed_copy(v)
        for v, moving in zip(values, moves)  # noqa: B905 - the tangents come after them
    ]


def _is_right(found: Called, values: Any, right: list[Any], around: Tape | None) -> bool:
    """Whether the ordinary way has given the same, as values of the same kind."""
    if len(found.moves) != len(right):
        return False
    tangents = iter(values[len(right) :])
    for value, other, moving in zip(values, right, found.moves):  # noqa: B905 - the tangents come after them
        if isinstance(other, Handle) is not moving or (moving and (other._tape is not around or other._id is None)):
            return False
        if not same_content(plain_value(other._value) if moving else other, value):
            return False
        if moving and found.way is PUSHED and not same_content(other._id.value, next(tangents)):
            return False
    return True
