"""The gradient of a staged function in one go: a known stage records and reverses it, without a trace around.

A trace is made all the same, for the case that the function does something else: then the call is recorded and reversed
there.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.memory.in_force import nothing_in_force, staging_in_force
from pullback.memory.ledger import Ledger
from pullback.recording.handles import SHARED, make
from pullback.recording.recorder import INPUT
from pullback.recording.tape import Tape
from pullback.recording.traps import TRAPPED
from pullback.staging.calls.call_record import Exits
from pullback.staging.calls.derivative_calls import gradient_within
from pullback.staging.calls.hot_runs import HotRun, handed_out
from pullback.staging.calls.staged_functions import StagedFunction, traced_among
from pullback.staging.generated.generated import errors_are_ordinary
from pullback.tracing.running import Input, Traced, overlapping, released_governor, something
from pullback.tracing.tracer import KINDS
from pullback.words.call_sites import site_here
from pullback.words.digests import digest
from pullback.words.sameness import bits_held
from pullback.words.specs import spec_of
from pullback.words.structures import LEAF
from pullback.words.undocumented import quiet

ONE, FLOATS = np.float64(1), frozenset((np.float64, float))
"""The seed of most scalar outputs, and the types of these."""
ONES = (ONE,)
_NUMBERS = frozenset((float, np.float64))


def gradient_at_once(known: StagedFunction, args: tuple[Any, ...], where: Sequence[int], *, with_value: bool) -> Any:
    """Value and cotangents of the arguments at ``where``; the finished trace where the call could not be followed; None
    where nothing was done, and the ordinary way is to be taken."""
    if not nothing_in_force():
        return gradient_within(known, args, where, with_value=with_value)
    if staging_in_force(known.staging) == "off":
        return None
    return gradient_alone(known, args, where)


def gradient_alone(known: StagedFunction, args: tuple[Any, ...], where: Sequence[int]) -> Any:
    """Value and gradient, where nothing is in force; None where that cannot be."""
    if TRAPPED.get() or not errors_are_ordinary():
        return None
    hot = known.open_runs.taken(where, args)
    if hot is None:
        hot = _opened(known, args, where)
        if hot is None:
            return None
    plain = [args[number] for number in where]
    before = [_held(arg) for arg in plain]
    tape, exits = hot.tape, None
    if len(args) > 1 or (type(plain[0]) is np.ndarray and not plain[0].flags.forc):
        labelled = [(f"argument {k}", arg) for k, arg in enumerate(args)]
        tape.overlapping = overlapping(
            [labelled[k] for k in where], [x for k, x in enumerate(labelled) if k not in where]
        )
    try:
        exits, values, slots = known.followed(hot, args, plain, hot.source)
    except BaseException as error:
        hot.failed(known.f, error)
        raise
    finally:
        if exits is None:
            tape.close()
            governor = released_governor(tape)
    if exits is None:
        out = something(known.f, values)
    elif _at_once(exits, values) and all(map(_unchanged, plain, before)):
        found, lent = _pulled(hot, exits, slots)
        parts = list(reversed(found))
        del found
        cts = [parts.pop() if wanted else None for wanted in exits.stage.entered]
        if hot.stays:
            known.open_runs.put_back(where, hot)
        return values[0], [handed_out(cts, k, arg, lent) for k, arg in enumerate(plain)]
    else:
        if hot.stays:
            known.closed(hot, hot.source)
        tape.close()
        governor = released_governor(tape)
        out = exits.recorded(tape, range(len(hot.given)), values, slots, hot.given)[0]
    return _as_traced(tape, plain, where, before, out, governor)


def _opened(known: StagedFunction, args: tuple[Any, ...], where: Sequence[int]) -> HotRun | None:
    """A run for arguments that are differentiated at ``where``, in a trace; None where one is of no common kind, or no
    stage is known."""
    tape = Tape(1, KINDS)
    taken: list[Any] = list(args)
    given: list[Any] = []
    for number in where:
        arg = args[number]
        if type(arg) is np.ndarray:
            if arg.dtype.char not in "fdFD" or not arg.dtype.isnative:
                return None
        elif type(arg) not in _NUMBERS:
            return None
        kind = KINDS.weak if type(arg) is float else KINDS.tracer
        taken[number] = handle = make(kind, arg, len(given), tape, SHARED)
        tape.records.append((INPUT.opcode, 0))
        given.append(handle)
    tape.n_inputs = len(given)
    found = traced_among(taken, tape)
    if found is None:
        return None
    variants = known.variants(found[1])
    return None if variants.over or not variants.stages else known.opened(tape, args, where, given, variants)


def _pulled(hot: HotRun, exits: Exits, slots: Any) -> tuple[Any, Any]:
    """The cotangents of the arguments that have one, and what is lent of them; no warning comes, as in a sweep."""
    with quiet():
        if hot.ready is not None and hot.ready.exits is exits:
            return hot.ready.reverse(slots, ONES)[0], hot.ready.back.lent
        return exits.pulled(slots, ONES)[0], ()


def _held(arg: Any) -> bytes | None:
    """The bits that an argument holds; of a larger one a digest."""
    if type(arg) is not np.ndarray:
        return None
    return bits_held(arg)


def _at_once(exits: Exits, values: Sequence[Any]) -> bool:
    """Whether a number is returned, of which the reverse function can be asked."""
    return exits.n_outputs == len(values) == 1 and type(values[0]) in FLOATS


def _unchanged(value: Any, before: bytes | None) -> bool:
    """Whether an argument still holds the bits that it held."""
    return before is None or before == bits_held(value)


def _as_traced(
    tape: Tape, plain: list[Any], where: Sequence[int], before: list[Any], out: Any, governor: Any
) -> tuple[Traced, Ledger]:
    """The trace as the ordinary way would have left it."""
    site, ledger = site_here(), Ledger() if governor is None else governor.ledger
    inputs = []
    for k, (number, arg) in enumerate(zip(where, plain, strict=True)):
        tape.records[k] = (INPUT.opcode, site)
        same = None if before[k] is None else digest(arg) if _unchanged(arg, before[k]) else b""
        inputs.append(Input(f"argument {number}", spec_of(arg), arg, same))
    return Traced(tape, inputs, [[k] for k in range(len(where))], [LEAF] * len(where), out, governor), ledger
