"""The operations of a step as statements: the forwards of its primitives, run on symbols."""

from collections import Counter
from typing import Any

import numpy as np
from attrs import define, field

from pullback.backends.plans import Ref
from pullback.recording.regions import Region
from pullback.recording.results import split_residuals
from pullback.rules.declaration import Primitive
from pullback.staging.shadow.operations import ADD, CAPTURE, CREATE, FROZEN, MARK, READ, RESULT, TAKE, WRITE, Operation
from pullback.staging.statements.symbols import Program, Statement, Symbol
from pullback.staging.statements.writes import ADD_TO, PUT, TAKE_FROM


class NotStageableError(Exception):
    """A step that cannot be written as statements; says why."""


@define(eq=False)
class Forward:
    """The statements of a step's forward. Values enter in this order: the leaves, the captured ones, the constants."""

    program: Program = field(factory=Program)
    inputs: list[Symbol] = field(factory=list)
    captured: list[Symbol] = field(factory=list)
    constants: list[Symbol] = field(factory=list)
    by_number: dict[int, Any] = field(factory=dict)
    """The symbol of each value of the step's operations."""
    calls: list[tuple[tuple[Any, ...], Any, Any]] = field(factory=list)
    """The symbols of the operands of each operation, of what came out, and of its residuals by name."""
    returned: list[Symbol] = field(factory=list)
    """The symbols of the leaves and outputs."""


def forward_statements(
    operations: list[Operation],
    inputs: list[Any],
    captured: list[Any],
    constants: list[Any],
    sites: list[int],
    *,
    program: Program | None = None,
) -> Forward:
    """Write down the forward of a step from the values that entered it once, in a ``program`` that has begun. Raises
    :class:`NotStageableError`."""
    program = program or Program()
    made = Forward(program)
    made.inputs = [program.value(x) for x in inputs]
    made.captured = [program.value(x) for x in captured]
    made.constants = [program.value(x) for x in constants]
    made.by_number = dict(enumerate(made.inputs))
    left, outer = iter(made.constants), iter(made.captured)
    met = Counter[str]()
    for op, site in zip(operations, sites, strict=True):
        program.site = site
        if op.what is CAPTURE:
            made.calls.append(((), next(outer), {}))
            met["captured"] += 1
        else:
            operands = tuple(made.by_number[o] if type(o) is int else next(left) for o in op.operands)
            met["constants"] += sum(type(o) is not int for o in op.operands)
            if op.what is READ:
                _handed_out(program, operands[0], met)
            made.calls.append((operands, *_statements_of(program, op, operands)))
        out = made.calls[-1][1]
        if type(op.what) is Primitive and op.what.ordered:
            _handed_out(program, out, met)
        for number, part in zip(op.makes, out if op.several else (out,), strict=bool(op.makes)):
            made.by_number[number] = part
            _require_alike(program, op, part, number)
    made.returned = list(made.calls[-1][0])
    return made


def _statements_of(program: Program, op: Operation, operands: tuple[Symbol, ...]) -> tuple[Any, Any]:
    """What an operation gives, and its residuals."""
    what = op.what
    if what is RESULT or what is READ:
        return None, {}
    if what is FROZEN or what is MARK:
        return operands[0], {}
    if what is TAKE:
        return operands[1], {}
    if what is CREATE:
        function, args, kwargs = op.params
        return _created(program, function, operands[0], args, kwargs), {}
    if what is WRITE or what is ADD:
        return written(program, operands[0], Region(*op.params), operands[1], add=what is ADD), {}
    return called(program, what, operands, op.params)


def called(program: Program, prim: Any, operands: tuple[Any, ...], params: Any) -> tuple[Any, Any]:
    """What a primitive gives, and its residuals."""
    if prim.ordered:
        return program.call(prim.forward, operands, params), {}
    out = program.whole(prim.forward, operands, params)
    for last in program.statements[-1:]:
        last.elementwise = last.elementwise or (
            last.function is prim.forward and (prim.elementwise or prim.name == "copy_array")
        )
    if prim.residuals:
        return split_residuals(prim, out)
    if type(out) is Symbol and not prim.view:
        out = _owned(program, operands, out)
    return out, {}


def read_out(value: Any, captured: int, constants: int) -> None:
    """A value is handed out in the middle of a step, so many captured values and constants having come."""


def _handed_out(program: Program, symbol: Symbol, met: Counter[str]) -> None:
    args = Ref(symbol.number), met["captured"], met["constants"]
    program.statements.append(Statement(read_out, args, {}, program.value(None).number, site=program.site))


def _created(program: Program, function: Any, like: Symbol, args: Any, kwargs: Any) -> Symbol:
    sample = function(program.samples[like.number], *args, **kwargs)
    if sample.flags.c_contiguous:
        plain = np.ones if function is np.ones_like else np.zeros
        made: Symbol = program.call(plain, (sample.shape, sample.dtype), {})
        return made
    other: Symbol = program.call(function, (like, *args), kwargs)
    return other


def written(program: Program, root: Symbol, region: Region, value: Any, *, add: bool) -> Symbol:
    """The value of an array after a write."""
    if region.fancy and type(value) is Symbol:
        given = program.samples[value.number]
        if isinstance(given, np.ndarray) and np.may_share_memory(given, program.samples[root.number]):
            value = program.call(np.array, (value,), {})
    if not region.steps and not region.fancy:
        return program.write(root, TAKE_FROM if add and region.subtracts else ADD_TO if add else PUT, region.key, value)
    return program.write(root, region.add if add else region.write, value)


def _owned(program: Program, operands: tuple[Symbol, ...], out: Symbol) -> Symbol:
    """The output of a primitive that declares no view, copied where it shares memory with an operand."""
    sample = program.samples[out.number]
    for operand in operands:
        given = program.samples[operand.number]
        if type(sample) is type(given) is np.ndarray and (
            out.number == operand.number or (sample.base is not None and np.may_share_memory(sample, given))
        ):
            copied: Symbol = out.copy(order="K")
            return copied
    return out


def _require_alike(program: Program, op: Operation, part: Any, number: int) -> None:
    """A statement must give what the operation gave: the same spec and strides, of which an array without elements has
    any."""
    result = op.results[op.makes.index(number)]
    if type(part) is not Symbol:
        raise NotStageableError(f"{getattr(op.what, 'name', op.what)} gives a value that is no array")
    sample = program.samples[part.number]
    strides = sample.strides if isinstance(sample, np.ndarray) else None
    if type(sample) is not result.type or (strides != result.strides and sample.size):
        raise NotStageableError(f"{getattr(op.what, 'name', op.what)} gives another kind of value when it is run again")
