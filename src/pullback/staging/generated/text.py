"""The text of a generated function, from its plan: straight lines of NumPy calls that a person can read."""

from collections.abc import Sequence
from keyword import iskeyword
from typing import Any

import numpy as np
from attrs import define, evolve, field

from pullback.backends.plans import Kernel, Ref
from pullback.recording.copies import faithful_copy
from pullback.rules.generated_code import compile_function
from pullback.staging.generated.block_runs import all_of, block_form_of, run_in_blocks, without_nan_in_place
from pullback.staging.generated.blocks import Beside, Block, Item, in_blocks
from pullback.staging.generated.forward_statements import read_out
from pullback.staging.generated.generated import Generated, in_file
from pullback.staging.generated.placing import Line, Placement
from pullback.staging.statements.symbols import Program, Statement
from pullback.staging.statements.ufuncs import into_of, name_in_warnings
from pullback.staging.statements.writes import BASIC_WRITES

_PLAIN = (int, str, bytes, bool, type(None), type(Ellipsis))


_RESERVED = ("buffers", "fresh", "inputs", "captured", "constants", "slots", "seeds", "sums", "threads", "_")


@define(eq=False)
class Draft:
    """What a function is generated from: ``name(*arguments, buffers, fresh)``. Each argument is a sequence of the
    values named, and so is each of the results."""

    program: Program
    name: str
    plan: Placement
    arguments: Sequence[tuple[str, Sequence[int]]]
    results: Sequence[Sequence[int]]
    swept: frozenset[int] = frozenset()
    """What is computed for a sweep, which tells nothing of what NumPy warns of."""

    def generated(self, order: Sequence[int | Kernel] | None = None, *, divided: bool = False) -> Generated:
        """The function, whose lines come in their own order, or in that of a backend, with its kernels; in blocks where
        that helps. If ``divided`` it takes a number of threads, whether it needs one or not."""
        leaving = [n for part in self.results for n in part]
        items = in_blocks(self.program, self.plan, leaving, order)
        divided = divided or any(isinstance(x, Block | Beside) or (isinstance(x, Kernel) and x.divides) for x in items)
        plan = evolve(self.plan, divided=divided)
        writer = Writer(self.program, plan, self.swept)
        told: list[tuple[str, tuple[int, str]]] = []
        used = {n for line in plan.lines for n in line.statement.reads} | {n for part in self.results for n in part}
        stops = [line.statement for line in plan.lines if line.statement.function is read_out]
        come = iter(self._coming(used, [stop.args[1:] for stop in stops]))
        told += next(come)
        body: list[tuple[str, tuple[int, str]]] = []
        for item in items:
            body += writer.item(item)
            if isinstance(item, int) and plan.lines[item].statement in stops:
                body += next(come)
        for group, kinds in (("buffers", plan.buffers), ("fresh", plan.fresh)):
            names = [f"{group[0]}{k}" for k in range(len(kinds))]
            names += ["threads"] if group == "buffers" and plan.divided else []
            if names:
                told.append((f"{', '.join(names)}, = {group}", (0, "")))
        told += body
        values = "".join("(" + "".join(f"v{n}, " for n in part) + "), " for part in self.results)
        told.append((f"{'yield' if stops else 'return'} {values}", (0, "")))
        head = f"def {self.name}({', '.join(a for a, _ in self.arguments)}, buffers, fresh):"
        text = "\n    ".join((head, *(line for line, _ in told))) + "\n"
        sites = {k: site for k, (_, site) in enumerate(told, 2)}
        function = compile_function(self.name, text, writer.names)
        del writer.names[self.name]  # or the function would hold itself
        kernels = tuple(item for item in items if isinstance(item, Kernel))
        if order is None:  # the kernels of a backend are given all of them
            plan = plan.with_buffers(writer.buffers)
        return in_file(Generated(self.name, text, function, plan, sites, kernels, reads=bool(stops)))

    def _coming(self, used: set[int], stops: Sequence[tuple[int, ...]]) -> list[list[tuple[str, tuple[int, str]]]]:
        """The lines that name what is given: at first, then after each of the ``stops``, up to which so many captured
        values and constants have come."""
        ends = [dict(zip(("captured", "constants"), stop, strict=True)) for stop in stops]
        found: list[list[tuple[str, tuple[int, str]]]] = [[] for _ in range(len(stops) + 1)]
        for argument, numbers in self.arguments:
            cuts = [0, *(end.get(argument, len(numbers)) for end in ends), len(numbers)]
            for lines, start, stop in zip(found, cuts, cuts[1:], strict=False):
                names = [f"v{n}" if n in used else "_" for n in numbers[start:stop]]
                part = f"[{start}:{stop}]" if stops and argument != "inputs" else ""
                if any(n != "_" for n in names):
                    lines.append((f"{', '.join(names)}, = {argument}{part}", (0, "")))
        return found


@define(eq=False)
class Writer:
    """Writes the lines of a function, and gathers what they refer to."""

    program: Program
    plan: Placement
    swept: frozenset[int] = frozenset()
    names: dict[str, Any] = field(
        factory=lambda: {"copy_of": faithful_copy, "slice": slice, **dict.fromkeys(_RESERVED)}
    )
    """What the text refers to."""
    n_blocks: int = 0

    buffers: set[int] = field(factory=set)
    """The numbers of the buffers that the text computes into."""

    def item(self, item: Item) -> list[tuple[str, tuple[int, str]]]:
        """The text of a statement, of the call of a kernel, of statements in blocks or side by side."""
        if isinstance(item, Block):
            return self.block(item)
        if isinstance(item, Beside):
            return self.beside(item)
        return self.kernel(item) if isinstance(item, Kernel) else self.told(item)

    def block(self, block: Block) -> list[tuple[str, tuple[int, str]]]:
        """A function of the statements, and the call that makes it do one block after the other."""
        lines = [self.plan.lines[place] for place in block.places]
        self.n_blocks += 1
        name = f"block_{self.n_blocks}"
        bound = [
            (f"v{number}" if first == number else f"v{number} = v{first}", self._place(into), memory)
            for memory, (first, number, into) in block.stored.items()
        ]
        given = [(made, place, memory) for made, place, memory in bound if place not in block.reads]
        parameters = ", ".join((*block.reads, *(memory for *_, memory in given), *block.scratch))
        names = {memory: place for _, place, memory in bound if place in block.reads}
        first = lines[0].statement.site, "a function"
        told = [(f"def {name}({parameters}):", first)]
        for line in lines:
            text = f"    {self._in_block(line.statement, block.intos[line.statement.makes], names)}"
            told.append((text, (line.statement.site, name_in_warnings(self.program, line.statement))))
        told += [(f"{made} = {place}", first) for made, place, _ in bound]
        stored = [made.partition(" ")[0] for made, *_ in given]
        arrays = [f"({''.join(f'{x}, ' for x in part)})" for part in (block.reads, stored)]
        call = f"{self.name(run_in_blocks)}({name}, {block.shape}, {', '.join(arrays)}, "
        dtypes = "".join(f"{self.argument(dtype)}, " for dtype in block.scratch.values())
        return [*told, (f"{call}({dtypes}), threads)", first)]

    def beside(self, beside: Beside) -> list[tuple[str, tuple[int, str]]]:
        """One call that has all statements computed, each in a line of its own."""
        lines = [self.plan.lines[place] for place in beside.places]
        first = lines[0].statement.site, "a function"
        told = [(f"{''.join(f'v{line.statement.makes}, ' for line in lines)}= {self.name(all_of)}((", first)]
        for line in lines:
            statement, given = line.statement, ""
            if line.into:
                place = self._place(line.into)
                given, place = (f" f={place}", "f") if line.into.startswith("fresh") else ("", place)
                computed = self._into(into_of(statement), statement, place)
            else:
                computed = self._expression(statement)
            told.append((f"    lambda{given}: {computed},", self._site(statement)))
        return [*told, ("), threads)", first)]

    def _in_block(self, statement: Statement, into: str, names: dict[str, str]) -> str:
        """The text of a statement in a block, where memory has the ``names`` of what is read that lies there."""
        kind, number = into.split() if into != "own" else ("value", str(statement.makes))
        if kind == "in":
            args = ", ".join(map(self.argument, statement.args))
            return f"v{statement.makes} = {self.name(without_nan_in_place)}({args})"
        function = into_of(statement) or block_form_of(statement, self.program.samples)
        memory = f"{kind[0]}{number}"
        return f"v{statement.makes} = {self._into(function, statement, names.get(memory, memory))}"

    def told(self, place: int) -> list[tuple[str, tuple[int, str]]]:
        """The text of a statement, with what is told of it."""
        line = self.plan.lines[place]
        return [(text, self._site(line.statement)) for text in self.lines(line)]

    def _site(self, statement: Statement) -> tuple[int, str]:
        return statement.site, "" if statement.makes in self.swept else name_in_warnings(self.program, statement)

    def kernel(self, kernel: Kernel) -> list[tuple[str, tuple[int, str]]]:
        """The call of a kernel: the arrays that it computes into, the call, and the statements that it stands for where
        NumPy has to warn."""
        lines = [self.plan.lines[place] for place in kernel.calls]
        made = [self._bound(line) for line in lines if line.statement.makes not in kernel.untouched]
        call = f"{self.name(kernel.function)}({', '.join(map(self._given, kernel.arguments))})"
        site = lines[0].statement.site, "a kernel"
        if not self.plan.warns:
            return [(text, site) for text in (*filter(None, made), call)]
        slow = [(f"    {text}", told) for place in kernel.calls for text, told in self.told(place)]
        return [*((text, site) for text in (*filter(None, made), f"if {call}:")), *slow]

    def _bound(self, line: Line) -> str:
        """The line that gives the array a name that a kernel computes into."""
        statement = line.statement
        if statement.aliases and not statement.writes:
            return ""
        if line.in_place:
            return f"v{statement.makes} = v{statement.reads[0]}"
        if line.into:
            return f"v{statement.makes} = {self._place(line.into)}"
        sample = self.program.samples[statement.makes]
        kind = f"{self.argument(sample.shape)}, {self.argument(sample.dtype)}"
        return f"v{statement.makes} = {self.name(np.empty)}({kind})"

    def _given(self, argument: Any) -> str:
        return argument if type(argument) is str else self.argument(argument)

    def name(self, thing: Any) -> str:
        """The name of an object in the text."""
        stem = getattr(thing, "__name__", type(thing).__name__)
        stem = "".join(c if c.isalnum() else "_" for c in stem).strip("_") or "it"
        if iskeyword(stem) or stem[0].isdigit() or stem.startswith("v"):
            stem = f"the_{stem}"
        name, k = stem, 1
        while name in self.names and self.names[name] is not thing:
            k += 1
            name = f"{stem}_{k}"
        self.names[name] = thing
        return name

    def argument(self, leaf: Any) -> str:
        """An argument, or a structure of them."""
        kind = type(leaf)
        if kind is Ref:
            return f"v{leaf.number}"
        if kind is tuple:
            return "(" + "".join(f"{self.argument(part)}, " for part in leaf) + ")"
        if kind is list:
            return "[" + ", ".join(map(self.argument, leaf)) + "]"
        if kind is dict:
            return "{" + ", ".join(f"{name!r}: {self.argument(part)}" for name, part in leaf.items()) + "}"
        if kind is slice:
            return f"slice({self.argument(leaf.start)}, {self.argument(leaf.stop)}, {self.argument(leaf.step)})"
        if kind in _PLAIN or (kind is float and leaf == leaf and abs(leaf) != float("inf")):  # noqa: PLR0124
            return "..." if leaf is Ellipsis else repr(leaf)
        if kind is np.dtype or isinstance(leaf, np.dtype):
            return self.name(leaf) if not leaf.isbuiltin else self._of_dtype(leaf)
        return self.name(leaf)

    def _of_dtype(self, dtype: Any) -> str:
        self.names[dtype.name] = dtype
        return str(dtype.name)

    def key(self, key: Any) -> str:
        """What stands between brackets."""
        if type(key) is tuple and key:
            return ", ".join(map(self._item, key)) + ("," if len(key) == 1 else "")
        return self._item(key)

    def _item(self, item: Any) -> str:
        if type(item) is not slice:
            return self.argument(item)
        start, stop = ("" if end is None else self.argument(end) for end in (item.start, item.stop))
        return f"{start}:{stop}" + ("" if item.step is None else f":{self.argument(item.step)}")

    def lines(self, line: Line) -> list[str]:
        """The text of a statement."""
        statement = line.statement
        made = f"v{statement.makes}"
        if statement.function is read_out:
            return [f"yield {self.argument(statement.args[0])}"]
        if statement.writes:
            return self._write(line, made)
        if line.into:
            place = self._place(line.into)
            if statement.function in (np.zeros, np.empty):
                return [f"{made} = {place}", *([f"{made}.fill(0)"] if statement.function is np.zeros else [])]
            return [f"{made} = {self._into(into_of(statement), statement, place)}"]
        return [f"{made} = {self._expression(statement)}"]

    def _into(self, function: Any, statement: Statement, place: str) -> str:
        """The call that computes a statement into an array. Two of NumPy's functions take it by name alone."""
        out = "out=" if function in (np.maximum, np.minimum) else ""
        return f"{self.name(function)}({', '.join(map(self.argument, statement.args))}, {out}{place})"

    def _place(self, into: str) -> str:
        kind, number = into.split()
        if kind == "buffer":
            self.buffers.add(int(number))
        return {"buffer": f"b{number}", "fresh": f"f{number}()", "value": f"v{number}"}[kind]

    def _write(self, line: Line, made: str) -> list[str]:
        statement = line.statement
        target, *args = statement.args
        found = [f"v{n} = copy_of(v{n})" for n in line.detached]
        if line.in_place:
            found.append(f"{made} = v{target.number}")
        elif line.into:
            copyto = self.name(np.copyto)
            found += [f"{made} = {self._place(line.into)}", f"{copyto}({made}, v{target.number})"]
        else:
            found.append(f"{made} = copy_of(v{target.number})")
        sign = BASIC_WRITES.get(statement.function)
        if sign is not None:
            found.append(f"{made}[{self.key(args[0])}] {sign} {self.argument(args[1])}")
        else:
            found.append(f"{self.name(statement.function)}({', '.join((made, *map(self.argument, args)))})")
        return found

    def _expression(self, statement: Statement) -> str:
        symbol, args = statement.symbol, statement.args
        if symbol == "[]":
            return f"{self.argument(args[0])}[{self.key(args[1])}]"
        if symbol.endswith("()"):
            return f"{self.argument(args[0])}{symbol[:-1]}{self._arguments(args[1:], statement.kwargs)})"
        if symbol.startswith("."):
            return f"{self.argument(args[0])}{symbol}"
        if symbol and len(args) == 1:
            return f"{symbol}{self.argument(args[0])}"
        if symbol:
            return f"{self.argument(args[0])} {symbol} {self.argument(args[1])}"
        return f"{self.name(statement.function)}({self._arguments(args, statement.kwargs)})"

    def _arguments(self, args: Any, kwargs: dict[str, Any]) -> str:
        return ", ".join((*map(self.argument, args), *(f"{name}={self.argument(x)}" for name, x in kwargs.items())))
