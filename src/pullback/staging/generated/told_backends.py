"""What a backend is told of a function before it is generated: its calls, and in whose memory each value lies
(``backends.plans``)."""

from typing import Any

import numpy as np
from attrs import define, evolve, field

from pullback.backends.geometry import starts_in
from pullback.backends.plans import Call, Value, Write
from pullback.backends.plans import Plan as BackendPlan
from pullback.recording.copies import faithful_copy
from pullback.recording.index_keys import is_basic
from pullback.recording.regions import Region
from pullback.staging.generated.forward_statements import read_out
from pullback.staging.generated.placing import Line
from pullback.staging.generated.text import Draft, Writer
from pullback.staging.statements.symbols import Statement
from pullback.staging.statements.ufuncs import ufunc_of
from pullback.staging.statements.writes import BASIC_WRITES, sign_of
from pullback.words.ordered_calls import has_effect

_VIEWING = frozenset(("[]", ".T", ".real", ".imag", ".mT", ".reshape()", ".transpose()", ".swapaxes()", ".ravel()"))
_VIEWS = frozenset((np.broadcast_to, np.reshape, np.transpose, np.swapaxes, np.expand_dims, np.squeeze, np.moveaxis))


def _is_view(statement: Statement) -> bool:
    """Whether a statement is a view whatever its operand holds. Others hand on an operand, or make a new array, as its
    values are."""
    return statement.symbol in _VIEWING or statement.function in _VIEWS


@define(eq=False)
class Description:
    """What a backend is told of a function that is to be generated."""

    draft: Draft
    values: dict[int, Value] = field(factory=dict)

    def told(self) -> BackendPlan:
        """The plan."""
        draft, calls = self.draft, []
        for _, numbers in draft.arguments:
            for n in numbers:
                self.values[n] = self._own(n, f"v{n}")
        writer = Writer(draft.program, draft.plan)
        for line in draft.plan.lines:
            call = self._call(line, tuple(writer.lines(line)))
            self.values[call.makes] = self._made(line, call)
            for n in line.detached:
                self.values[n] = evolve(self.values[n], starts=None)
            calls.append(call)
        leaves = tuple(n for part in draft.results for n in part)
        return BackendPlan(draft.name, tuple(calls), self.values, leaves, draft.plan.warns)

    def _own(self, number: int, memory: str) -> Value:
        sample = self.draft.program.samples[number]
        dtype = getattr(sample, "dtype", None)
        if not isinstance(sample, np.ndarray):
            return Value((), dtype, type(sample), None, None, (), True)
        dense = sample.flags.c_contiguous
        return Value(sample.shape, dtype, type(sample), memory, (0,) * sample.ndim, sample.shape, dense)

    def _made(self, line: Line, call: Call) -> Value:
        """The value that a call makes: in memory of its own, or in that of another."""
        statement = line.statement
        if statement.writes and line.in_place:
            return self.values[statement.reads[0]]
        if line.into:
            kind, number = line.into.split()
            taken = f"b{number}" if kind == "buffer" else f"v{call.makes}"
            return self._own(call.makes, str(self.values[int(number)].memory) if kind == "value" else taken)
        own = self._own(call.makes, f"v{call.makes}")
        if not own.is_array or statement.writes or not statement.aliases:
            return own
        sources = [self.values[n] for n in statement.aliases]
        source, samples = sources[0], self.draft.program.samples
        if len(sources) > 1 or source.memory is None or call.kind != "view":
            return evolve(own, memory=None, starts=None)
        starts = starts_in(samples[call.makes], samples[statement.aliases[0]])
        if starts is not None and source.starts is not None:
            starts = tuple(a + b for a, b in zip(starts, source.starts, strict=True))
        else:
            starts = None
        return evolve(own, memory=source.memory, starts=starts, whole=source.whole)

    def _call(self, line: Line, text: tuple[str, ...]) -> Call:
        statement = line.statement
        function, args, write = statement.function, statement.args, None
        ufunc = ufunc_of(statement)
        kind: Any = "other"
        if statement.writes:
            write = self._write(line)
            kind = "write" if write else "other"
        elif statement.aliases:
            kind = "view" if _is_view(statement) else "other"
        elif ufunc is not None:
            kind, function = "ufunc", ufunc
        elif function is np.zeros:
            kind = "zeros"
        elif statement.symbol == ".copy()" or function is faithful_copy:
            kind = "copy"
        ordered = statement.function is read_out or has_effect(statement.function)
        return Call(
            kind, function, args, statement.kwargs, statement.makes, statement.reads, write, line.detached, text,
            ordered,
        )  # fmt: skip

    def _write(self, line: Line) -> Write | None:
        """Where a write goes; None for one that is no assignment and no sum."""
        function, (target, *args) = line.statement.function, line.statement.args
        whole = self.draft.program.samples[target.number]
        if function in BASIC_WRITES:
            if not is_basic(args[0]):
                return None
            part, value = whole[args[0]], args[1]
        else:
            region = getattr(function, "__self__", None)
            if type(region) is not Region or region.fancy or region.repeats:
                return None
            part, value = region.view(whole)[region.key], args[0]
        starts, around = starts_in(part, whole), self.values[target.number]
        if starts is not None and line.in_place and around.starts is not None:
            starts = tuple(a + b for a, b in zip(starts, around.starts, strict=True))
        elif line.in_place and around.starts is None:
            starts = None
        sign: Any = sign_of(function)
        return Write(target.number, sign, starts, np.shape(part), value, line.in_place)
