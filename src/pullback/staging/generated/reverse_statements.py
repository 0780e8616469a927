"""The reverse of a step as statements: the pulls of its records run on symbols, from the last record to the first.

They are the pulls that the sweep runs on arrays, so cotangents are added in the same order.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from attrs import define, field

from pullback.primitives.selecting.indexing import READ, add_at_places, places_on_line
from pullback.recording.copies import faithful_copy
from pullback.recording.crossing import CAPTURE
from pullback.recording.index_keys import is_basic
from pullback.recording.recorder import CONSTANT, INPUT
from pullback.recording.regions import Region, has_repeats, is_fancy
from pullback.recording.results import COMPONENT
from pullback.recording.writes import CREATE, WRITE_OPCODES, empty_with_strides
from pullback.rules.cotangent_sums import send
from pullback.rules.forms import FORMS, Form
from pullback.rules.generated_pulls import make_pull
from pullback.rules.nan_masking import without_nan
from pullback.rules.rule_names import read
from pullback.rules.unbroadcast import settle
from pullback.staging.generated.forward_statements import Forward, NotStageableError, written
from pullback.staging.shadow.collective_pulls import CollectivePull, ComparedPull, is_taken_part_in
from pullback.staging.shadow.operations import Operation
from pullback.staging.statements.symbols import Program, Symbol
from pullback.staging.statements.writes import ADD_TO, PUT
from pullback.words.ordered_calls import fed
from pullback.words.specs import buffer_of


@define(eq=False)
class SymbolSweep:
    """What pulls ask of a sweep."""

    program: Program
    cts: list[Any]
    owned: set[int] = field(factory=set)
    outer: None = None
    gathered: dict[int, Any] = field(factory=dict)

    def gather(self, ident: int, ct: Any) -> None:
        """The cotangent of a captured value."""
        self.gathered[ident] = ct


def skeleton(
    records: list[Any], ranges: list[tuple[int, int]], operations: list[Operation], forward: Forward
) -> list[Any]:
    """The records of a step with symbols in the place of the values that they hold; raises
    :class:`NotStageableError`."""
    found = list(records)
    for op, (start, stop), (operands, out, residuals) in zip(operations, ranges, forward.calls, strict=True):
        for k in range(start, stop):
            form = FORMS[records[k][0]]
            if form.rules and form.primitive is not op.what:
                raise NotStageableError(f"{form.name} is recorded for another operation")
            found[k] = held_by_symbols(records[k], operands, out, residuals)
    return found


def held_by_symbols(record: Any, operands: tuple[Any, ...], out: Any, residuals: Any) -> Any:
    """A record with symbols in the place of the values that it holds, from those of its call; raises
    :class:`NotStageableError`."""
    form: Form = FORMS[record[0]]
    if form.passes and form.active:
        return form.with_saved(record, operands[1:])
    if not form.rules:
        if form.wide or not (record[0] in WRITE_OPCODES or form in (READ, INPUT, CAPTURE, COMPONENT, CREATE, CONSTANT)):
            raise NotStageableError(f"a step in which {form.name} is recorded")
        return record
    prim, first = form.primitive, 1 + len(form.active)
    if prim.opaque or prim.guarded:
        raise NotStageableError(f"{form.name} is a primitive from outside, whose values are guarded")
    saved = tuple(
        _as_held(read(prim, name, operands.__getitem__, len(operands), out, residuals), value)
        for name, value in zip(form.saved, form.saved_values(record), strict=True)
    )
    return (*record[:first], *saved, *record[first + len(saved) :])


def valued(x: Any, by_number: dict[int, Any]) -> Any:
    """What a record holds, from the values of the slots."""
    if type(x) is tuple:
        return tuple(valued(part, by_number) for part in x)
    return by_number[x.number] if type(x) is Symbol else x


def with_symbols(record: Any, by_number: dict[int, Any]) -> Any:
    """A record of a stage that holds what stands for its slots ``by_number``."""
    form = FORMS[record[0]]
    if not form.saved:
        return record
    return form.with_saved(record, [valued(x, by_number) for x in form.saved_values(record)])


def _as_held(symbol: Any, value: Any) -> Any:
    """The symbol of a value that a record holds: a copy where the record holds one, as of a slice of an array that is
    being written; NumPy's number where it holds that for one of Python's."""
    if type(symbol) is tuple:
        return tuple(map(_as_held, symbol, value))
    if type(symbol) is not Symbol:
        return symbol
    sample = symbol.program.samples[symbol.number]
    if type(sample) in (int, float, complex) and isinstance(value, np.generic):
        return symbol.program.call(type(value), (symbol,), {})
    if not isinstance(sample, np.ndarray) or buffer_of(value).nbytes >= buffer_of(sample).nbytes:
        return symbol
    return symbol.program.call(faithful_copy, (symbol,), {})


def reverse_statements(
    forward: Forward, records: list[Any], n_inputs: int, seeds: dict[int, Symbol], *, masks: bool
) -> SymbolSweep:
    """Run the pulls of ``records`` on symbols: the cotangents of the inputs in ``cts``, of captured values in
    ``gathered``. ``seeds`` are the cotangents of what left the step, by record."""
    cts: list[Any] = [None] * len(records)
    sweep = SymbolSweep(forward.program, cts)
    for ident, seed in seeds.items():
        cts[ident] = seed
    for i in range(len(records) - 1, n_inputs - 1, -1):
        ct, record = cts[i], records[i]
        if is_taken_part_in(record):
            cts[i], forward.program.site = None, record[-1]
            _pull_together(i, record, ct, sweep, masks=masks)
            continue
        if ct is None:
            continue
        cts[i] = None
        forward.program.site = record[-1]
        with fed(()):  # what has an effect is not tried
            _pull_of(record[0], masks)(record, ct, cts, sweep)
    return sweep


def _pull_together(i: int, record: Any, ct: Any, sweep: SymbolSweep, *, masks: bool) -> None:
    """Others take part in the call of record ``i``, and so in its pull, whether anything has come to it or not."""
    pull = CollectivePull(i, record, masks=masks)
    with ComparedPull().run():
        given = sweep.program.call(pull, (ct, *pull.form.saved_values(record)), {})
    for ident, g in zip(record[1 : pull.first], given, strict=True):
        send(sweep.cts, ident, g, sweep)


@cache
def _pull_of(opcode: int, masks: bool) -> Callable[..., None]:
    form = FORMS[opcode]
    if opcode in WRITE_OPCODES:
        return _pull_increment if form.name.startswith("increment") else _pull_set
    special = {
        READ.opcode: _pull_read, INPUT.opcode: _nothing, CREATE.opcode: _nothing, CONSTANT.opcode: _nothing,
        CAPTURE.opcode: _pull_capture,
        COMPONENT.opcode: _pull_component,
    }.get(opcode)  # fmt: skip
    if special is not None:
        return special
    if form.passes:
        return _pass_on
    cleans = masks and form.primitive.elementwise and bool(form.rules) and not form.primitive.outputs
    return make_pull(form, _cleaned if cleans else None, partial(_whole, form.primitive.elementwise))


def _whole(elementwise: bool, rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule on symbols: its statements, or one that calls it."""

    def pulled(*args: Any) -> Any:
        program = next(arg.program for arg in _flat(args) if type(arg) is Symbol)
        made = program.whole(rule, args, {})
        for last in program.statements[-1:]:
            last.elementwise = last.elementwise or (elementwise and last.function is rule)
        return made

    return pulled


def _flat(args: Any) -> Any:
    for arg in args:
        if isinstance(arg, tuple | list):
            yield from _flat(arg)
        else:
            yield arg


def _cleaned(g: Any, ct: Any) -> Any:
    program = (g if type(g) is Symbol else ct).program
    return program.call(without_nan, (g, ct), {})


def _nothing(record: Any, ct: Any, cts: Any, sweep: Any) -> None:
    """An input has nobody to pass its cotangent to."""


def _pull_capture(record: Any, ct: Any, cts: Any, sweep: Any) -> None:
    sweep.gather(record[1], ct)


def _pass_on(record: Any, ct: Any, cts: Any, sweep: Any) -> None:
    """Of a mark: these functions are for where nobody hears."""
    send(cts, record[1], ct, sweep)


def _pull_component(record: Any, ct: Any, cts: Any, sweep: Any) -> None:
    _, parent, place, count, _ = record
    if cts[parent] is None:
        cts[parent] = [None] * count
    cts[parent][place] = ct


def _pull_read(record: Any, ct: Any, cts: Any, sweep: SymbolSweep) -> None:
    _, ident, spec, (key,), _ = record
    program, buffer = sweep.program, cts[ident]
    fresh = buffer is None
    if fresh:
        buffer = program.call(np.zeros, (spec.shape, spec.dtype), {})
    elif not isinstance(program.samples[buffer.number], np.ndarray):
        buffer = program.call(np.array, (buffer,), {})
    if is_basic(key):
        cts[ident] = written(program, buffer, Region((), key, False), ct, add=True)
    elif writes_alike(program.samples[buffer.number], key, fresh):
        cts[ident] = program.write(buffer, PUT if fresh else ADD_TO, key, ct)
    else:
        cts[ident] = program.write(buffer, add_by_key, key, ct, fresh)
    sweep.owned.add(ident)


def writes_alike(buffer: Any, key: Any, fresh: bool) -> bool:
    """Whether a write by the key gives what :func:`add_by_key` gives, in less time: each element is named once, and
    there is no shorter way along an axis; nor is a zero lost to which -0.0 is added."""
    if any(type(item) is Symbol for item in (key if type(key) is tuple else (key,))):
        return False
    if adds_by_key(buffer, key):
        return True
    line = places_on_line(key, buffer.shape)
    if fresh or line is None or line[:2] != (1, buffer.size) or line[2].size > FEW:
        return False
    return not (is_fancy(key) and has_repeats(key, buffer.shape))


def add_by_key(buffer: Any, key: Any, ct: Any, fresh: bool) -> None:
    """``buffer[key] += ct``, as often as an element is named; ``fresh`` says that the buffer holds zeros."""
    add_at_places(buffer, key, ct, fresh)


FEW = 4096
"""Places up to which a key takes less time than ``np.add.at``."""


def adds_by_key(buffer: Any, key: Any) -> bool:
    """Whether :func:`add_by_key` reads and writes the buffer by the key itself."""
    along = buffer.flags.c_contiguous and places_on_line(key, buffer.shape) is not None
    return not along and not (is_fancy(key) and has_repeats(key, buffer.shape))


def _pull_set(record: Any, ct: Any, cts: Any, sweep: SymbolSweep) -> None:
    form, program = FORMS[record[0]], sweep.program
    region, _, strides, value_spec, _, site = record[1 + form.n_ids :]
    buffer = _laid_out(program, ct, strides)
    if form.name in ("set_both", "set_value"):
        g = region.sent(buffer, region.read(buffer))
        if region.repeats:
            raise NotStageableError("an assignment by a key that names an element twice")
        _send(g, record[form.n_ids], value_spec, form, site, cts, sweep)
    if form.name != "set_value":
        send(cts, record[1], written(program, buffer, region, 0, add=False), sweep)


def _pull_increment(record: Any, ct: Any, cts: Any, sweep: SymbolSweep) -> None:
    form, program = FORMS[record[0]], sweep.program
    region, _, strides, value_spec, _, site = record[1 + form.n_ids :]
    buffer = _laid_out(program, ct, strides) if region.steps else ct
    if form.name in ("increment_both", "increment_value"):
        part = region.view(buffer)[region.key]
        sample, whole = program.samples[part.number], program.samples[buffer.number]
        small = isinstance(sample, np.ndarray) and 2 * sample.nbytes < whole.nbytes
        if not region.fancy and (region.steps or small):
            part = part.copy()
        _send(region.sent(buffer, part), record[form.n_ids], value_spec, form, site, cts, sweep)
    if form.name != "increment_value":
        send(cts, record[1], buffer, sweep)


def _laid_out(program: Program, ct: Symbol, strides: Any) -> Symbol:
    """A cotangent with the strides of its primal."""
    sample = program.samples[ct.number]
    if isinstance(sample, np.ndarray) and (strides is None or sample.strides == strides):
        return ct
    made: Symbol = program.call(laid_as, (ct, strides), {})
    return made


def laid_as(ct: Any, strides: Any) -> Any:
    """A copy whose axes lie in memory as those of an array with these strides."""
    buffer = empty_with_strides(np.shape(ct), ct.dtype, strides)
    buffer[...] = ct
    return buffer


def _send(g: Any, ident: int, spec: Any, form: Form, site: int, cts: Any, sweep: Any) -> None:
    if len(spec.shape) > len(g.shape):
        g = g.reshape((1,) * (len(spec.shape) - len(g.shape)) + g.shape)
    send(cts, ident, settle(g, spec, form, 0, site, g), sweep)
