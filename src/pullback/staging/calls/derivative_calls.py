"""Derivatives of a staged function within another derivative: its tangent in forward mode, its gradient in a trace that
is differentiated again.

The function runs on handles without values. Where its operations are known, the stage of the derivative
(``derivative_stages``) computes it; where they are not, they have been carried out in an ordinary trace, and the
ordinary way goes on.
"""

from collections.abc import Sequence
from functools import partial
from threading import get_ident
from typing import Any

import numpy as np

from pullback.memory.in_force import (
    innermost_alone,
    next_level,
    nothing_in_force,
    planned,
    saves_all,
    staging_in_force,
    watchers,
)
from pullback.memory.ledger import Ledger
from pullback.recording.copies import owned, packed_copy
from pullback.recording.crossing import entered
from pullback.recording.handles import SHARED, Handle, kind_of, make, plain_value, resolve
from pullback.recording.recorder import INPUT, hold
from pullback.recording.tape import FORWARD, Tape
from pullback.recording.traps import TRAPPED
from pullback.staging.calls.derivative_stages import Derivatives, Derived, Program, gradient, pushed
from pullback.staging.calls.hot_runs import HotRun, Ready, kinds_of
from pullback.staging.calls.inlined_run import is_stale, unstageable
from pullback.staging.generated.generated import errors_are_ordinary
from pullback.tracing.running import Input, Traced, released_governor, something, tell
from pullback.tracing.tracer import KINDS
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import ConstantChangedError
from pullback.words.sameness import bits_held
from pullback.words.specs import spec_of
from pullback.words.structures import LEAF, LEAVES, unflatten

MOST_KINDS = 64
"""The most kinds of arguments of which anything is remembered."""
_NUMBERS = frozenset((np.float64, np.float32))


def pushed_call(known: Any, tape: Tape, args: tuple[Any, ...]) -> Any:
    """What a staged function gives in a forward trace, in a tuple: a handle with its tangent. None where it is to be
    called as it is."""
    places = _traced(args, tape)
    if not places or not _may_be_staged(known):
        return None
    given = [args[k] for k in places]
    kind, tangents = type(given[0]._id), type(tape.tangents)
    found = _known_of(known, "tangent", given, lambda: pushed(tangents, kind))
    if found.over:
        return None
    entering = [*(resolve(x)._value for x in given), *(x._id.value for x in given)]
    before = _contents(given)
    kinds = kinds_of([arg._value if k in places else arg for k, arg in enumerate(args)], places)
    hot = _opened(known, tape, given, places, kinds, found)
    result = _run(known, hot, args, [x._value for x in given], found, entering, stays=False)
    if type(result) is not _Followed:
        return (result,)
    _require_unchanged(given, before)
    tape.masks = tape.masks or result.exits.stage.masks
    value, tangent = result.computed(entering)[0]
    return (make(kind_of(tape, value), value, kind(owned(tangent)), tape, SHARED),)


def pushed_at_once(known: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...], forward: Any) -> Any:
    """Value and tangent of a staged function of one array, with no trace around; what the function has returned, and
    the forward trace that was made, where the call could not be followed; None where nothing was done.

    ``forward`` are the classes of what a trace has as ``Tape.tangents``, and of one tangent.
    """
    if len(primals) != 1 or len(tangents) != 1 or not nothing_in_force() or not _may_be_staged(known):
        return None
    [x], [t] = primals, tangents
    if not (type(x) is type(t) is np.ndarray and x.shape == t.shape and x.dtype == t.dtype and x.dtype.char in "fd"):
        return None
    t = t.copy()
    hot = known.open_runs.taken("tangent", primals)
    if hot is None:
        hot = _opened_forward(known, x, t, forward)
        if hot is None:
            return None
    tape, [given] = hot.tape, hot.given
    given._id.value, tape.tangents = t, forward[0](tape)
    before = _contents(primals)
    try:
        result = _run(known, hot, primals, primals, hot.source, [x, t])
    except BaseException as error:
        if isinstance(error, Exception):
            tell(known.f, error, tape)
        raise
    finally:
        tape.tangents = None  # a cycle with the tape
        if not hot.stays:
            tape.close()
    if type(result) is not _Followed:
        return something(known.f, result), tape
    if _contents(primals) != before:
        raise _changed()
    value, tangent = result.computed([x, t])[0]
    if hot.stays:
        given._id.value = None
        known.open_runs.put_back("tangent", hot)
    return (packed_copy(value), packed_copy(tangent)), None


def _opened_forward(known: Any, x: Any, t: Any, forward: Any) -> HotRun | None:
    """A run in a forward trace of its own; None where nothing is known of such calls."""
    tangents, kind = forward
    tape = Tape(1, KINDS)
    tape.mode = FORWARD
    given = [make(KINDS.tracer, x, kind(t), tape, SHARED)]
    found = _known_of(known, "tangent", given, lambda: pushed(tangents, kind))
    return _opened(known, tape, given, (0,), kinds_of((x,), (0,)), found) if found.known and not found.over else None


def gradient_within(known: Any, args: tuple[Any, ...], where: Sequence[int], *, with_value: bool) -> Any:
    """As ``gradient_at_once``, within a trace around; None in the place of the value where that is not asked for."""
    around = innermost_alone()
    if around is None or around.thread != get_ident() or not _may_be_staged(known) or watchers() or not saves_all():
        return None
    places = _traced(args, around)
    if not places or not set(where) <= set(places):
        return None
    entered_at = (*where, *(k for k in places if k not in where))
    given = [resolve(args[k]) for k in entered_at]
    forward = around.mode == FORWARD
    what, site = ("gradient", forward, with_value, next_level(), len(where), *entered_at), site_here()
    plain = list(args)
    for k, x in zip(entered_at, given, strict=True):
        plain[k] = x._value
    hot = known.open_runs.taken(what, plain)
    if hot is None:
        hot = _opened_within(known, what, plain, given, around, site)
        if hot is None:
            return None
    tape, found = hot.tape, hot.source
    entering = [x._value for x in given] + ([x._id.value for x in given] if forward else [])
    before = _contents(given) if forward else []
    try:
        result = _run(known, hot, args, [entered(x, tape) for x in given], found, entering)
    except BaseException as error:
        hot.failed(known.f, error)
        raise
    finally:
        if not hot.stays:
            tape.close()
            governor = released_governor(tape)
    if type(result) is not _Followed:
        out = something(known.f, result)
        inputs = [Input(f"argument {number}", spec_of(x), x, None) for number, x in zip(entered_at, given, strict=True)]
        traced = Traced(tape, inputs, [[k] for k in range(len(where))], [LEAF] * len(where), out, governor)
        return traced, Ledger() if governor is None else governor.ledger
    _require_unchanged(given, before)
    handed = _handed_out(result, around, given, site, with_value)
    if hot.stays:
        hot.forgets()
        known.open_runs.put_back(what, hot)
    return handed


def _opened_within(known: Any, what: Any, plain: list[Any], given: list[Any], around: Tape, site: int) -> Any:
    """A run in a trace of its own within ``around``; None where the function has to be differentiated as it is."""
    _, forward, with_value, level, n_wanted, *where = what
    kind, tangents = type(given[0]._id), type(around.tangents)
    program = partial(gradient, with_value=with_value, n_wanted=n_wanted)
    found = _known_of(
        known, ("gradient", forward, with_value, n_wanted, *where), given,
        lambda: pushed(tangents, kind, program) if forward else program,
    )  # fmt: skip
    if found.over:
        return None
    tape = Tape(level, KINDS)
    own = []
    for k, x in enumerate(given):
        value = entered(x, tape)
        own.append(make(kind_of(tape, value), value, k, tape, SHARED))
        tape.records.append((INPUT.opcode, site))
    tape.n_inputs = len(own)
    return _opened(known, tape, own, where, kinds_of(plain, where), found)


def _opened(known: Any, tape: Tape, given: list[Any], places: Sequence[int], kinds: Any, found: Derivatives) -> HotRun:
    return HotRun(tape, given, places, kinds, found, found.known, list(found.known), *known.taken())


class _Followed:
    """A call that has done what is known: its derivative is to be computed."""

    def __init__(self, hot: HotRun, derived: Derived) -> None:
        self.exits = derived.exits
        self._constants = derived.constants
        if hot.ready is None or hot.ready.exits is not derived.exits:
            hot.ready = Ready(derived.exits)
        self._ready = hot.ready

    def computed(self, inputs: list[Any]) -> Any:
        """The values of the derivative, and the slots."""
        return self._ready.forward(inputs, (), self._constants)


def _handed_out(result: _Followed, around: Tape, given: list[Any], site: int, with_value: bool) -> Any:
    """Value and cotangents, as handles of the trace around."""
    exits = result.exits
    around.masks = around.masks or exits.stage.masks
    if around.mode == FORWARD:
        kind = type(given[0]._id)
        computed = result.computed([x._value for x in given] + [x._id.value for x in given])[0]
        parts = map(owned, computed)
        found = [make(kind_of(around, v), v, kind(t), around, SHARED) for v, t in zip(parts, parts, strict=True)]
    else:
        held = exits.stage.held
        inputs = [hold(x, x._value, around) if kept else x._value for x, kept in zip(given, held, strict=True)]
        values, slots = result.computed(inputs)
        found = exits.recorded(around, [x._id for x in given], values, slots, given, site)
    return (found[0], found[1:]) if with_value else (None, found)


def _contents(given: Sequence[Any]) -> list[bytes]:
    """What arguments hold before the function runs: what is computed when it is over would read them as they are then.
    Of a trace that is swept the sweep asks this."""
    values = [x._value if isinstance(x, Handle) else x for x in given]
    arrays = [value for value in values if type(value) is np.ndarray]
    return list(map(bits_held, arrays))


def _require_unchanged(given: Sequence[Any], before: list[bytes]) -> None:
    if before and _contents(given) != before:
        raise _changed()


def _changed() -> ConstantChangedError:
    return ConstantChangedError(
        f"an array that a staged function is differentiated at was changed while it ran (at "
        f"{site_text(site_here())}); differentiate at a copy, f(x.copy())"
    )


def _may_be_staged(known: Any) -> bool:
    off = staging_in_force(known.staging) == "off"
    return not off and not TRAPPED.get() and planned() is None and errors_are_ordinary()


def _traced(args: Sequence[Any], tape: Tape) -> list[int]:
    """Which arguments are values of the trace, each another one; none where the function has to be called as it is."""
    found: list[int] = []
    for k, arg in enumerate(args):
        if not isinstance(arg, Handle):
            if type(arg) not in LEAVES:
                return []
            continue
        if arg._tape is not tape or arg._id is None or (type(arg) is tape.kinds.view and is_stale(arg)):
            return []
        value = arg._value
        if type(value) is not np.ndarray and type(value) not in _NUMBERS:
            return []
        if any(arg is args[j] or arg._id == args[j]._id for j in found):
            return []
        found.append(k)
    return found


def _known_of(known: Any, kind: Any, given: list[Any], program: Any) -> Derivatives:
    values = [x._value for x in given]
    key = kind, *((type(x), x.shape, x.dtype, x.strides) for x in values)
    found: Derivatives | None = known.derivatives.get(key)
    if found is None:
        if len(known.derivatives) >= MOST_KINDS:
            known.derivatives.clear()
        made: Program = program()
        found = known.derivatives[key] = Derivatives(made)
    return found


def _run(
    known: Any, hot: HotRun, args: Sequence[Any], values: Sequence[Any], found: Derivatives, entering: list[Any],
    *, stays: bool = True,
) -> Any:  # fmt: skip
    """One call, in the trace of the run: what is to be computed, or else what the function has returned there. The run
    ``stays`` open where that trace is its own."""
    run, lesson, followed, definition = hot.run, None, False, None
    hot.stays = False
    try:
        parts = hot.returned_by(known.f, args, values, partial(known.parts_of, run=run))
        if parts is not None:
            returned, definition = parts
        known_list = run.following
        if known_list is not None and definition is None and not run.captured:
            derived = found.of(known_list, run.constants)
            if derived is not None:
                followed = True
                if parts is not None:
                    returned.clear()
                hot.stays = stays and hot.over()
                return _Followed(hot, derived)
            lesson = known_list.operations, entering, list(run.constants)
        if parts is None:
            returned = list(run.pool.ending)  # type: ignore[union-attr]  # of an open run
        if known_list is not None:
            run.carry_out()
        elif (
            definition is None and not run.why and not run.read and not run.captured and isinstance(returned[0], Handle)
        ):
            lesson = run.operations, entering, list(run.constants)
        leaves = [run.twin(leaf) for leaf in returned]
        run.require_unwritten()
    finally:
        if not hot.stays:
            run.leaves(whole=followed)
            known.put_back(run, hot.works)
    if lesson is not None and not found.refuses(unstageable(leaves, hot.given)):
        found.learn(*lesson, plain_value(leaves[0]))
    return leaves[0] if definition is None else unflatten(definition, leaves)
