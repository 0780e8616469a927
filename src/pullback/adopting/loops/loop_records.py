"""The record of a loop: what it holds, how it runs again on other values, and its reverse."""

from array import array
from collections.abc import Iterator, Sequence
from sys import getsizeof
from typing import Any, Final

import numpy as np
from attrs import define, frozen

from pullback.adopting.loops.compiled_runs import compiled_by
from pullback.adopting.loops.generated import Written
from pullback.adopting.loops.kinds import ACTIVE
from pullback.adopting.loops.loop_code import UNBOUND
from pullback.recording.handles import Handle, is_array, over
from pullback.recording.writes import copied, empty_with_strides
from pullback.rules.cotangent_sums import alone, send
from pullback.rules.forms import special_form
from pullback.rules.nan_masking import MASKED_PULLS
from pullback.words.specs import ArraySpec, buffer_of

PUSHED: Final = "what the loop leaves"
"""The name by which a record holds what its forward has pushed."""
SCALAR_BYTES: Final = 32
"""Bytes of a number that was pushed on a list."""


@frozen
class LoopAgain:
    """What runs a loop again on the values of what entered. Loops that do the same have equal ones."""

    written: Written
    operands: tuple[str, ...]
    """The names of the values that enter, in the order of the operands of its recipe."""
    entering: tuple[str, ...]
    """The names of the active operands, in the order of the ids of its record."""
    leaving: tuple[str, ...]
    """The names of its outputs."""
    staging: str

    @property
    def bound(self) -> frozenset[str]:
        """The names that stand for something else since the loop."""
        return frozenset({*self.written.code.assigned, *self.leaving})

    def __call__(self, values: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...]]:
        """The outputs of the loop, and what its record holds."""
        written = self.written
        given: dict[str, Any] = dict.fromkeys(written.code.names, UNBOUND)
        given.update(zip(self.operands, values, strict=True))
        own, made, pushed, compiled = computed(written, given, self.staging, packs=True)
        outputs = [own[name] if name in written.code.stored else made[name] for name in self.leaving]
        return outputs, self.held(pushed, [given[name] for name in written.read], given, compiled)

    def held(self, pushed: Any, read: Sequence[Any], given: dict[str, Any], compiled: Any) -> tuple[Any, ...]:
        """What a record of it holds: a :class:`LoopRun`, the numbers and the arrays that were pushed, and what the
        reverse reads where it lies."""
        return LoopRun(self, self.written.specs(given), compiled), *pushed, tuple(read)


@define(eq=False, repr=False)
class LoopRun:
    """How a loop ran. ``collective`` and ``release`` are what is asked of every wide record."""

    again: LoopAgain
    specs: dict[str, ArraySpec]
    """The specs of the active arrays."""
    compiled: Any = None
    """What its backend has made of the functions, where that ran forward."""
    collective: bool = False

    def release(self) -> None:
        """Nothing of it is in a ledger by its own doing."""


def _holdings(record: tuple[Any, ...]) -> Iterator[tuple[Any, int, str, str]]:
    """Each buffer that the record of a loop holds with its bytes, why it is held, and a name."""
    run, numbers, arrays, read = record[2:6]
    if type(numbers) is list:
        yield numbers, getsizeof(numbers) + SCALAR_BYTES * len(numbers), "residual", PUSHED
    elif type(numbers) is np.ndarray and len(numbers):  # else it is stored elsewhere, or nothing
        grown = getattr(numbers.base, "obj", None)  # an ``array``, which has a little to spare
        yield numbers, numbers.nbytes if grown is None else getsizeof(grown), "residual", PUSHED
    written = run.again.written
    named = [(PUSHED, value) for value in arrays] + list(zip(written.read, read, strict=True))
    for name, value in named:
        if type(value) is np.ndarray:
            buffer, kind = buffer_of(value), written.entering.get(name)
            reason = "residual" if kind is None else "saved" if kind.level == ACTIVE else "constant"
            yield buffer, buffer.nbytes, reason, name


def computed(
    written: Written, values: dict[str, Any], staging: str, *, packs: bool
) -> tuple[dict[str, Any], Any, tuple[Any, tuple[Any, ...]], Any]:
    """The forward, on copies of the arrays that it writes to: these, what it gives, the numbers and arrays that it has
    pushed, and what a backend has made of the loop, where that has computed it. With ``packs`` numbers go into an
    array, which takes a fifth of the bytes of a list and is a little slower."""
    compiled = compiled_by(staging, written) if staging != "auto" else None
    first, found = _copied(written, values), None
    if compiled is not None:
        found = compiled.run(first)
        if found is not None and "forward" in compiled.proved:
            return first, found[0], (found[1], ()), compiled
    own = first if compiled is None else _copied(written, values)
    pushed, put = array("d") if packs else list[Any](), list[Any]()
    made = written.forward(pushed.append, put.append, *own.values())
    if compiled is not None and found is not None:
        stack, stored = np.array(pushed, float), written.code.stored
        numbers = [[said[name] for name in found[0]] for said in (found[0], made)]
        arrays = [[copies[name] for name in stored] for copies in (first, own)]
        left = [[*map(type, one), *one, *other] for one, other in zip(numbers, arrays, strict=True)]
        if compiled.compare("forward", [*left[0], found[1]], [*left[1], stack]):
            return own, made, (stack, ()), compiled
    return own, made, (np.asarray(pushed) if packs else pushed, tuple(put)), None


def _copied(written: Written, values: dict[str, Any]) -> dict[str, Any]:
    stored = written.code.stored
    return {name: x.copy() if name in stored and type(x) is np.ndarray else x for name, x in values.items()}


# ------------------------------------------------------------------------------------------------------------- reverse
def _pull_loop(record: Any, ct: Any, cts: Any, sweep: Any, *, masked: bool = False) -> None:
    """The cotangents of what came out go through the reverse of the loop to what went in."""
    run, numbers, put, read = record[2:6]
    again, written = run.again, run.again.written
    entering, bound = dict(zip(again.entering, record[1], strict=True)), again.bound
    begun: dict[str, Any] = dict(zip(again.leaving, ct, strict=True))
    ct.clear()  # so that an array that nobody else has may be written
    owned = set()
    for name, ident in entering.items():
        if name not in bound:  # its sum so far goes in, and comes back with what the loop adds
            begun[name], cts[ident] = cts[ident], None
            if ident in sweep.owned:
                owned.add(name)
    on = next((g for g in begun.values() if isinstance(g, Handle)), None)
    scalars = [_number(begun.pop(name, None), on) for name in written.scalars]
    compiled = run.compiled if on is None and not masked else None
    tried = found = None
    if compiled is not None:
        filled = [_filled(begun.get(name), run.specs[name]) for name in written.arrays]
        tried = compiled.pull(numbers, dict(zip(written.read, read, strict=True)), scalars, filled)
        found = tried if "reverse" in compiled.proved else None
    if found is None:
        arrays = [_buffer(begun.get(name), on, owns=name in owned) for name in written.arrays]
        new = [_new_of(run.specs[name], on) for name in written.arrays]
        del begun
        back = written.masked_reverse if masked else written.reverse
        found = back(reversed(numbers).__next__, reversed(put).__next__, *new, *read, *scalars, *arrays)
        del arrays
        if compiled is not None and tried is not None:
            compiled.compare("reverse", tried, found)
    del scalars
    for name, g in zip((*written.scalars, *written.arrays), found, strict=True):
        if name not in entering or g is None:
            continue
        ident = entering[name]
        if name in written.arrays and cts[ident] is None:
            sweep.owned.add(ident)
        send(cts, ident, g, sweep)


def _number(g: Any, on: Any) -> Any:
    """The cotangent of a number as NumPy's."""
    if type(g) is float:
        return np.float64(g)
    return g[()] if type(g) is np.ndarray and not g.ndim else g


def _new_of(spec: ArraySpec, on: Any) -> Any:
    """What gives zeros for the cotangent of an array."""

    def new() -> Any:
        buffer = empty_with_strides(spec.shape, spec.dtype, None)
        buffer[...] = 0
        return buffer if on is None else over(buffer, on._tape)

    return new


def _filled(g: Any, spec: ArraySpec) -> tuple[Any, bool]:
    """An array that may be written to, with a cotangent or zeros, and whether it is one."""
    buffer = empty_with_strides(spec.shape, spec.dtype, None)
    buffer[...] = 0 if g is None else g
    return buffer, g is not None


def _buffer(g: Any, on: Any, *, owns: bool) -> Any:
    """The cotangent of an array as one that may be written to."""
    if g is None:
        return None
    if isinstance(g, Handle) or on is not None:
        return copied(g) if isinstance(g, Handle) and is_array(g) else over(np.array(g), on._tape)
    if type(g) is np.ndarray and (owns or alone(g)) and g.flags.writeable:
        return g
    return np.array(g)


LOOP = special_form("loop", _pull_loop, wide=True, holds=_holdings)
NO_RUN: Final = LoopRun(None, {})  # type: ignore[arg-type]  # it is asked for nothing but ``collective``
"""What stands in the place of what a record holds, in the recipe that runs it again."""
MASKED_PULLS[LOOP.opcode] = lambda record, ct, cts, sweep: _pull_loop(record, ct, cts, sweep, masked=True)
