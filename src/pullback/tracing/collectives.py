"""Collective calls: all ranks make them together, forward and back, and each waits for the others. So none may be left
out, neither where nothing here depends on the inputs nor where nothing depends on the result.

Such a call is therefore recorded in every trace around it, with all operands active that can carry a derivative: a
constant gets a record of its own, whose cotangent nobody reads. So the record has the same form on every rank, and what
is computed from its result is recorded, too.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pullback.choosing.agreement import agreed
from pullback.memory.in_force import policy_in_force
from pullback.recording.crossing import present
from pullback.recording.handles import SHARED, Handle, active_id, freeze, is_foreign, kind_of, make, tape_of
from pullback.recording.recorder import CONSTANT, finish, operand_value
from pullback.recording.tape import CAPTURED, DEFERRED, FORWARD, PAUSED, REPLAYABLE, Tape, recording_of
from pullback.rules.declaration import Primitive
from pullback.rules.parameters import frozen_params
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import TracerError
from pullback.words.ordered_calls import UNDER_WAY
from pullback.words.specs import carries_derivative


def call_collective(prim: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
    """The result of such a call: a handle, or several, of the innermost trace that goes on; plain where there is
    none."""
    if any(isinstance(operand, Handle) for operand in operands):
        tape_of(operands, prim.name, follows=True)  # none whose trace has ended
    return _recorded(prim, operands, params, UNDER_WAY.get())


def _recorded(prim: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any], tapes: tuple[Tape, ...]) -> Any:
    """The result in the innermost of these traces that goes on; those around it record the call, too."""
    tape, around = recording_of(tapes)
    if tape is None:
        return _computed(prim, tuple(present(operand, None) for operand in operands), params, tapes)
    if tape.mode == DEFERRED and not _follows(prim, tape, around):
        tape = tape.shadow.surrender()
        if tape in around:  # a function that is called in this one goes on as if it stood there itself
            around = around[: around.index(tape)]
    operands = tuple(present(operand, tape) if is_foreign(operand, tape) else operand for operand in operands)
    outermost = tapes[0]
    if not outermost.collective:
        if outermost.agreement is not None:
            agreed(outermost.agreement, f"a program under {policy_in_force()!r}")
        outermost.collective = True
    if tape.mode == DEFERRED:
        return tape.shadow.call(prim, operands, params)
    values = tuple(operand_value(operand, tape, prim) for operand in operands)
    if prim.guarded:
        params = frozen_params(prim, params, tape)
    token = UNDER_WAY.set(around)  # what a trace does with a call, a tangent of it, say, is done around it
    try:
        out = _recorded(prim, values, params, around)
        for part in out if prim.outputs else (out,):
            if isinstance(part, Handle):
                tape.meet(part._tape)
        pairs = enumerate(zip(operands, values, strict=True))
        entered = [_entered(prim, k, operand, value, tape) for k, (operand, value) in pairs]
        tape.collective = True
        return finish(prim, tuple(h for h, _ in entered), tuple(value for _, value in entered), out, params, tape)
    finally:
        UNDER_WAY.reset(token)


def _follows(prim: Primitive, tape: Tape, around: tuple[Tape, ...]) -> bool:
    """Whether a shadow run compares the call with those of steps that are known: of a loop's step, with no trace around
    that records the call as well."""
    return not (prim.guarded or tape.shadow.inlines or tape.shadow.nests) and recording_of(around)[0] is None


def is_alone(tape: Tape) -> bool:
    """Whether a trace alone records such a call now, of a program that has made one before: those around it leave to it
    what a step of their loop does."""
    tapes = UNDER_WAY.get()
    if not tapes or tapes[-1] is not tape or not tapes[0].collective:
        return False
    return all(around.mode == CAPTURED and around.shadow is None for around in tapes[:-1])


def alone(forward: Callable[..., Any]) -> Callable[..., Any]:
    """The forward of such a primitive; what it calls in its turn no trace records."""

    def computed(*operands: Any, **params: Any) -> Any:
        token = UNDER_WAY.set(())
        try:
            return forward(*operands, **params)
        finally:
            UNDER_WAY.reset(token)

    return computed


def recorded_on(tape: Tape, prim: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
    """The result of such a call in one trace alone."""
    return _recorded(prim, operands, params, (tape,))


def _computed(prim: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any], tapes: tuple[Tape, ...]) -> Any:
    """What the forward gives for plain operands: no trace goes on here."""
    for tape in tapes:
        if tape.mode == PAUSED and tape.unrecorded:
            raise TracerError(
                f"{prim.name} is collective, and a step of {tape.unrecorded} calls it (at {site_text(site_here())}), "
                "whose step 0 has called no such primitive. Nothing traced enters this loop, so its steps are not "
                "recorded, and nothing would answer in the reverse pass: make the call in step 0, too, or let a traced "
                "value enter the loop"
            )
    token = UNDER_WAY.set(())
    try:
        return prim.computed(operands, params)
    finally:
        UNDER_WAY.reset(token)


def _entered(prim: Primitive, k: int, operand: Any, value: Any, tape: Tape) -> tuple[Any, Any]:
    """An operand as the record has it, with its value: a handle that depends on the inputs, unless it carries no
    derivative."""
    if active_id(operand, tape) is not None or prim.rule_name(k) in prim.nondiff or not carries_derivative(value):
        return operand, value
    if isinstance(operand, Handle) and operand._tape is tape:
        value = freeze(operand)._value
    elif isinstance(value, np.ndarray):
        value = tape.keep(value)
    if tape.mode == FORWARD:
        ident = tape.tangents.still(value)
    else:
        record = (CONSTANT.opcode, site_here())
        if tape.mode == REPLAYABLE:
            tape.governor.before_record(record, (value,), (value,), {})
        ident = len(tape.records)
        tape.records.append(record)
    return make(kind_of(tape, value), value, ident, tape, SHARED), value
