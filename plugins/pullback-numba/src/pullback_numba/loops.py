"""The text of a nest: loops over the points at which all operations work, and over the edges, where some do."""

from attrs import define, field

from pullback_numba.nests import Nest, Shift, plus
from pullback_numba.operations import Access, Number, Operation, Spread

_FORMS = {
    "+": "{} + {}", "-": "{} - {}", "*": "{} * {}", "/": "{} / {}", "neg": "-{}", "copy": "{}", "square": "{0} * {0}",
}  # fmt: skip


@define(eq=False)
class NestText:
    """A nest as a function ``nest(arrays..., numbers..., bounds, rows)``; equal nests have equal texts.

    ``rows`` are the first and the last of the points at which all work, along the first axis, and whether the edges are
    to be done.
    """

    nest: Nest
    stored: set[str]
    warns: bool
    arrays: dict[str, str] = field(factory=dict)
    """Memory to the name of a parameter."""
    numbers: dict[tuple[str, str], str] = field(factory=dict)
    """Name of a value and dtype to the name of a parameter."""
    bounds: dict[tuple[int, int], str] = field(factory=dict)
    """Axis and upper bound to a name."""
    units: set[int] = field(factory=set)
    """The integers in the text. All are unsigned: numba looks whether a signed index is negative, and then no loop
    becomes one of vectors."""

    @property
    def n_axes(self) -> int:
        """Axes of the points."""
        return len(self.nest.shifts[0])

    def text(self) -> str:
        """The functions ``edge``, where there are edges, and ``nest``."""
        nest = self.nest
        inner, outer = nest.interior, nest.union
        body = self._inner()
        edge = self._edge() if inner != outer else []
        ranges = [(self._unit(a), self._bound(k, b)) for k, (a, b) in enumerate(inner)]
        loops = _loops([("uintp(rows[0])", "uintp(rows[1])"), *ranges[1:]], body)
        arguments = [*self.arrays.values(), *(f"c{n[1:]}" for n in self.numbers.values())]
        calls = [f"edge({', '.join((*arguments, 'bounds'))})"] if edge else []
        notes = ["nans = int64(0)"] if self.warns else []
        around = self._around(edge)
        bounds = [f"u{unit} = uintp({unit})" for unit in sorted(self.units)]
        bounds += [f"{name} = uintp(bounds[{k}])" for k, name in enumerate(self.bounds.values())]
        numbers = [f"c{name[1:]} = {dtype}({name})" for (_, dtype), name in self.numbers.items()]
        lines = [
            *bounds, *(["clear(FLAGS)"] if self.warns else []), *numbers, *notes, *loops,
            *(["if rows[2]:"] if calls else []), *(f"    nans |= {x}" if self.warns else f"    {x}" for x in calls),
            *(["return test(FLAGS) | nans"] if self.warns else []),
        ]  # fmt: skip
        parts = []
        if edge:
            head = f"def edge({', '.join((*arguments, 'bounds'))}):"
            parts.append("\n    ".join((head, *bounds, *notes, *around, *(["return nans"] if self.warns else []))))
        head = f"def nest({', '.join((*self.arrays.values(), *self.numbers.values(), 'bounds', 'rows'))}):"
        parts.append("\n    ".join((head, *lines)))
        return "\n\n\n".join(parts) + "\n"

    def _around(self, body: list[str]) -> list[str]:
        """Loops over the points at which some operations do not work; the last passes over those at which all do."""
        inner, outer, last = self.nest.interior, self.nest.union, self.n_axes - 1
        lines = _loops([(self._unit(a), self._bound(k, b)) for k, (a, b) in enumerate(outer[:last])], [])
        within = [f"{self._unit(a)} <= p{k} < {self._bound(k, b)}" for k, (a, b) in enumerate(inner[:last])]
        (a, b), (c, d) = inner[last], outer[last]
        jump = " and ".join((*within, f"p{last} == {self._unit(a)}"))
        text = [
            f"p{last} = {self._unit(c)}", f"while p{last} < {self._bound(last, d)}:",
            f"    if {jump}:", f"        p{last} = {self._bound(last, b)}",
            *([f"        if p{last} == {self._bound(last, d)}:", "            break"] if b == d else []),
            *(f"    {line}" for line in body), f"    p{last} += {self._unit(1)}",
        ]  # fmt: skip
        return [*lines, *("    " * last + line for line in text)]

    def _unit(self, value: int) -> str:
        self.units.add(value)
        return f"u{value}"

    def _index(self, axis: int, offset: int) -> str:
        return f"p{axis}" + (f" {'+' if offset > 0 else '-'} {self._unit(abs(offset))}" if offset else "")

    def _bound(self, axis: int, value: int) -> str:
        return self.bounds.setdefault((axis, value), f"n{len(self.bounds)}")

    def _array(self, memory: str) -> str:
        return self.arrays.setdefault(memory, f"a{len(self.arrays)}")

    def _element(self, memory: str, at: Shift) -> str:
        return f"{self._array(memory)}[{', '.join(self._index(k, x) for k, x in enumerate(at))}]"

    def _operand(self, op: Operation, shift: Shift, operand: Access | Spread | Number, now: dict[str, str]) -> str:
        if isinstance(operand, Number):
            if operand.literal:
                return f"{op.dtype}({operand.text})"
            return "c" + self.numbers.setdefault((operand.text, op.dtype), f"s{len(self.numbers)}")[1:]
        if isinstance(operand, Spread):
            at = [
                self._unit(start) if axis is None else self._index(axis, shift[axis] + start)
                for axis, start in zip(operand.axes, operand.starts, strict=True)
            ]
            return f"{self._array(operand.memory)}[{', '.join(at)}]"
        if operand.memory in now:
            return now[operand.memory]
        return self._element(operand.memory, plus(shift, operand.starts))

    def _inner(self) -> list[str]:
        """One point at which all operations work; each value has a name of its own."""
        now: dict[str, str] = {}
        lines = []
        for k, (op, shift) in enumerate(zip(self.nest.operations, self.nest.shifts, strict=True)):
            operands = [self._operand(op, shift, operand, now) for operand in op.operands]
            lines.append(f"x{k} = {_FORMS[op.symbol].format(*operands)}")
            now[op.target.memory] = f"x{k}"
        ends = [memory for memory in now if memory in self.stored]
        lines += [f"{self._at(memory)} = {now[memory]}" for memory in ends]
        return [*lines, *(_noted(now[memory]) for memory in ends if self.warns)]

    def _edge(self) -> list[str]:
        """One point at which some do; each array that is written has a name."""
        nest, names = self.nest, dict[str, str]()
        told: list[tuple[str, str]] = []
        for op in nest.operations:
            memory = op.target.memory
            if memory not in names:
                names[memory] = f"m{len(names)}"
                told.append(("", f"{names[memory]} = {op.dtype}(0.0)"))
        for memory, name in names.items():
            if memory in nest.loaded:
                told.append((self._within(nest.extents(memory)), f"{name} = {self._at(memory)}"))
        for k, (op, shift) in enumerate(zip(nest.operations, nest.shifts, strict=True)):
            operands = [self._operand(op, shift, operand, names) for operand in op.operands]
            what = f"{names[op.target.memory]} = {_FORMS[op.symbol].format(*operands)}"
            told.append((self._within(nest.box(k)), what))
        for memory, name in names.items():
            if memory in self.stored:
                where = self._within(nest.extents(memory))
                told.append((where, f"{self._at(memory)} = {name}"))
                if self.warns:
                    told.append((where, _noted(name)))
        lines, before = list[str](), ""
        for where, what in told:
            if where and where != before:
                lines.append(f"if {where}:")
            lines.append(f"    {what}" if where else what)
            before = where
        return lines

    def _at(self, memory: str) -> str:
        return self._element(memory, self.nest.place(memory))

    def _within(self, box: tuple[tuple[int, int], ...]) -> str:
        told = [
            f"{self._unit(max(a, 0))} <= p{k} < {self._bound(k, b)}"
            for k, ((a, b), whole) in enumerate(zip(box, self.nest.union, strict=True))
            if (a, b) != whole
        ]
        return " and ".join(told)


def _noted(value: str) -> str:
    """NumPy's bits of a NaN that is made of two depend on their order, which a compiler may change."""
    return f"nans |= int64({value} != {value})"


def _loops(ranges: list[tuple[str, str]], body: list[str]) -> list[str]:
    lines = [f"{'    ' * k}for p{k} in range({a}, {b}):" for k, (a, b) in enumerate(ranges)]
    return [*lines, *(f"{'    ' * len(ranges)}{line}" for line in body)]
