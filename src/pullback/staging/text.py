"""The text of a generated function, from its plan: straight lines of NumPy calls that a person can read."""

from collections.abc import Callable, Sequence
from keyword import iskeyword
from sys import getrefcount
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from attrs import define, field

from pullback.recording.copies import faithful_copy
from pullback.rules.generated_code import compile_function
from pullback.staging.forward_statements import BASIC_WRITES
from pullback.staging.placing import Line, Plan, ufunc_of
from pullback.staging.symbols import Program, Ref, Statement

_OPERATORS = {"**": np.power, "@": np.matmul}
_PLAIN = (int, str, bytes, bool, type(None), type(Ellipsis))


@define(eq=False)
class Generated:
    """A function with its text. ``sites`` are the user's call sites by the line of the text, each with NumPy's name for
    what is computed there."""

    name: str
    text: str
    function: Callable[..., Any] = field(repr=False)
    plan: Plan = field(repr=False)
    sites: dict[int, tuple[int, str]] = field(repr=False)

    @property
    def works_in_place(self) -> bool:
        """Whether it computes into arrays that it has."""
        return bool(self.plan.buffers or self.plan.fresh)


_FILES: WeakValueDictionary[str, Generated] = WeakValueDictionary()


def of_file(filename: str) -> Generated | None:
    """The function whose text is in a file of that name."""
    return _FILES.get(filename)


class Fresh:
    """Arrays of one kind that leave a function: one that has come back, since nobody has it any more, or a new one."""

    __slots__ = ("_arrays", "_dtype", "_shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self._shape, self._dtype = shape, dtype
        self._arrays: list[Any] = []

    def __call__(self) -> Any:
        arrays = self._arrays
        for k in range(len(arrays)):
            if getrefcount(arrays[k]) <= UNUSED:
                return arrays[k]
        made = np.empty(self._shape, self._dtype)
        if len(arrays) < MOST_FRESH:
            arrays.append(made)
        return made


_RESERVED = ("buffers", "fresh", "inputs", "captured", "constants", "slots", "seeds", "slice", "_")
MOST_FRESH = 4
"""How many arrays of a kind are looked through."""


def _count_unused() -> int:
    """What is counted for an array that only such a list has."""
    arrays = [np.empty(1)]
    return max(getrefcount(arrays[k]) for k in range(1))


UNUSED = _count_unused()


def generate(
    program: Program,
    name: str,
    plan: Plan,
    arguments: Sequence[tuple[str, Sequence[int]]],
    results: Sequence[Sequence[int]],
) -> Generated:
    """The function ``name(*arguments, buffers, fresh)``: each argument is a sequence of the values named, and so is
    each of the results."""
    writer = _Writer()
    lines = []
    used = {n for line in plan.lines for n in line.statement.reads} | {n for part in results for n in part}
    for argument, numbers in arguments:
        names = [f"v{n}" if n in used else "_" for n in numbers]
        if any(n != "_" for n in names):
            lines.append((f"{', '.join(names)}, = {argument}", (0, "")))
    for group, kinds in (("buffers", plan.buffers), ("fresh", plan.fresh)):
        if kinds:
            lines.append((f"{', '.join(f'{group[0]}{k}' for k in range(len(kinds)))}, = {group}", (0, "")))
    for line in plan.lines:
        told = line.statement.site, name_of(program, line.statement)
        lines += [(text, told) for text in writer.lines(line)]
    values = "".join("(" + "".join(f"v{n}, " for n in part) + "), " for part in results)
    lines.append((f"return {values}", (0, "")))
    head = f"def {name}({', '.join(a for a, _ in arguments)}, buffers, fresh):"
    text = "\n    ".join((head, *(line for line, _ in lines))) + "\n"
    sites = {k: site for k, (_, site) in enumerate(lines, 2)}
    function = compile_function(name, text, writer.names)
    del writer.names[name]  # or the function would hold itself
    made = _FILES[function.__code__.co_filename] = Generated(name, text, function, plan, sites)
    return made


def name_of(program: Program, statement: Statement) -> str:
    """What NumPy calls that which a statement computes, in its warnings."""
    function = ufunc_of(statement) or _OPERATORS.get(statement.symbol) or statement.function
    name = str(getattr(function, "__name__", "a function"))
    made = program.samples[statement.makes]
    return f"scalar {name}" if statement.symbol and not isinstance(made, np.ndarray) else name


@define(eq=False)
class _Writer:
    names: dict[str, Any] = field(factory=lambda: {"copy_of": faithful_copy, **dict.fromkeys(_RESERVED)})
    """What the text refers to."""

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
        if statement.writes:
            return self._write(line, made)
        if line.into:
            place = self._place(line.into)
            if statement.function is np.zeros:
                return [f"{made} = {place}", f"{made}.fill(0)"]
            args = ", ".join(map(self.argument, statement.args))
            return [f"{made} = {self.name(ufunc_of(statement))}({args}, {place})"]
        return [f"{made} = {self._expression(statement)}"]

    def _place(self, into: str) -> str:
        kind, number = into.split()
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
