"""Expressions of a loop, written down forward and backward.

The forward computes what the user has written, and pushes on a stack what the reverse will read and cannot find where
it lies: values of names and elements that are bound or written anew. Numbers that follow from the numbers of the loops
are computed again. The reverse of a statement is its operations from the last to the first: each sends to its operands
from left to right, then those to the right go before those to the left, as records of a tape do.
"""

import ast
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import numpy as np
from attrs import define, field

from pullback.adopting.loops.kinds import ACTIVE, FLAG, NOTHING, PLAIN, WHOLE, LoopKind, RefusedError
from pullback.adopting.loops.values import ALWAYS, Val, constant, flag_of, rule_lines
from pullback.rules.catalogue import registry
from pullback.rules.declaration import Composite, Primitive
from pullback.words.errors import PullbackError

BINARY: Final = {
    ast.Add: ("+", "operator_add"), ast.Sub: ("-", "operator_subtract"), ast.Mult: ("*", "operator_multiply"),
    ast.Div: ("/", "operator_divide"), ast.Pow: ("**", "operator_power"), ast.FloorDiv: ("//", ""), ast.Mod: ("%", ""),
}  # fmt: skip
UNARY: Final = {ast.USub: ("-", "operator_negative"), ast.UAdd: ("+", "operator_positive")}
FLOATING: Final = ("operator_divide", "operator_power")
"""Operators that make no integer of integers, or not always."""
OF_INTEGERS: Final = (len, int, abs, min, max)
"""Python's functions that give integers of integers."""


class DeclinedError(Exception):
    """What a loop meets while it runs forward is not of the kind for which it was written backwards."""


def declined() -> None:
    """Leave the loop to the ordinary way."""
    raise DeclinedError("arrays of different shapes meet")


@define(eq=False)
class Expressions:
    """Writes the expressions of one loop. ``known`` are the kinds of names, ``constant`` those names that are bound
    nowhere in the loop."""

    known: dict[str, LoopKind]
    constant: frozenset[str]
    stored: frozenset[str]
    callees: Callable[[ast.expr], Any]
    """What a function stands for that is called."""
    entering: dict[str, LoopKind]
    """The kinds of names before the loop."""
    masked: bool = False
    lines: list[tuple[str, int]] = field(factory=list)
    """The forward, with the lines of the user's file."""
    pad: str = ""
    at: int = 0
    scopes: list[set[str]] = field(factory=list)
    """Names that have the same value in the reverse: numbers of loops, and what follows from them alone."""
    namespace: dict[str, Any] = field(factory=dict)
    n: int = 0

    # Writing.
    def say(self, text: str) -> None:
        """A line of the forward."""
        self.lines.append((self.pad + text, self.at))

    def new(self, stem: str) -> str:
        """A name of our own."""
        self.n += 1
        return f"_pb_{stem}{self.n}"

    def bound(self, thing: Any) -> str:
        """The name by which the generated functions know a thing."""
        known = next((name for name, other in self.namespace.items() if other is thing), None)
        if known is not None:
            return known
        stem = getattr(thing, "__name__", "")
        name = f"_pb_{stem if stem.isidentifier() else 'rule'}_{len(self.namespace)}"
        self.namespace[name] = thing
        return name

    def held(self, val: Val) -> Val:
        """The value, computed once."""
        if not (val.steady or val.text.isidentifier()):
            name = self.new("t")
            self.say(f"{name} = {val.text}")
            val.text = name
        return val

    def pushed(self, val: Val, pops: list[str]) -> str:
        """The text by which the reverse reads a value."""
        if val.steady:
            return val.operand
        self.held(val)
        name, text = self.new("v"), val.text
        if val.kind.rank:
            self.say(f"_pb_put({text if val.fresh else f'{text}.copy()'})")
        else:
            self.say(f"_pb_push({text})")
        pops.append(f"{name} = _pb_{'take' if val.kind.rank else 'pop'}()")
        return name

    def same_shape(self, one: str, other: str) -> None:
        """Only arrays of one shape are followed; what is broadcast goes the ordinary way."""
        self.say(f"if {one}.shape != {other}.shape: {self.bound(declined)}()")

    # Reading.
    def expr(self, node: ast.expr) -> Val:
        """What an expression gives."""
        match node:
            case ast.Constant(value=int() | float() as number) if type(number) in (int, float):
                return constant(number)
            case ast.Name(id=name):
                return self._name(name)
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return self._contracted(np.matmul, "{} @ {}", [self.expr(left), self.expr(right)])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                symbol, name = BINARY[type(op)]
                return self.operation(name, f"{{}} {symbol} {{}}", [self.expr(left), self.expr(right)])
            case ast.UnaryOp(op=op, operand=operand) if type(op) in UNARY:
                symbol, name = UNARY[type(op)]
                return self.operation(name, f"{symbol}{{}}", [self.expr(operand)])
            case ast.Subscript(value=ast.Name()):
                return self.part(node)
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=place):
                self._array(name)
                if self.index(place):
                    return Val(ast.unparse(node), LoopKind(WHOLE, 0), steady=True)
            case ast.Attribute() if type(number := self.callees(node)) is float:
                return constant(number)
            case ast.Call(func=function, args=args):
                return self._call(function, args)
        raise RefusedError(f"{ast.unparse(node)} is not followed")

    def _name(self, name: str) -> Val:
        kind = self.known.get(name)
        if kind is None:
            raise RefusedError(f"{name} is no number and no array")
        local = kind.rank and name not in self.constant  # a new array, to which nothing is written
        if kind.rank and not local:
            if kind.level != ACTIVE:
                return Val(name, kind, steady=name not in self.stored, fresh=False)
            ct = self.new("g")
            lines = [f"if _pb_B_{name} is None: _pb_B_{name} = {ct}.copy()", f"else: _pb_B_{name} += {ct}"]
            flag = self.flag(name)
            return Val(name, kind, name not in self.stored, fresh=False, ct=ct, back=lines, flag=flag)
        if kind.level != ACTIVE:
            return Val(name, kind, self._steady(name))
        return Val(name, kind, self._steady(name), name=name, flag=self.flag(name))

    def _steady(self, name: str) -> bool:
        return name in self.constant or any(name in scope for scope in self.scopes)

    def flag(self, name: str) -> str:
        """What tells, as the loop runs, whether a name stands for what depends on the inputs."""
        array = name in self.constant and self.known[name].rank
        steady = name not in self.stored if array else name in self.constant
        return ALWAYS if steady or (array and self.entered_active(name)) else f"{FLAG}{name}"

    def entered_active(self, name: str) -> bool:
        """Whether it has depended on the inputs before the loop."""
        return self.entering.get(name, NOTHING).level == ACTIVE

    def _array(self, name: str) -> LoopKind:
        kind = self.known.get(name)
        if kind is None or not kind.rank or name not in self.constant:
            raise RefusedError(f"{name} is no array that was there before the loop")
        return kind

    def index(self, node: ast.expr) -> bool:
        """Whether an expression is an integer that follows from the numbers of the loops."""
        found = self.expr(node)
        return found.kind == LoopKind(WHOLE, 0) and found.steady

    def part(self, node: ast.Subscript) -> Val:
        """A part of an array, by integers and slices."""
        name = node.value.id  # type: ignore[attr-defined]  # asked by whoever calls
        whole = self._array(name)
        rank = whole.rank
        places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for place in places:
            if isinstance(place, ast.Slice):
                bounds = [bound for bound in (place.lower, place.upper, place.step) if bound is not None]
            else:
                bounds, rank = [place], rank - 1
            if not all(map(self.index, bounds)):
                raise RefusedError(f"an index of {name} does not follow from the numbers of the loops")
        if len(places) > whole.rank:
            raise RefusedError(f"{name} has too many indices")
        text = ast.unparse(node)
        found = Val(text, LoopKind(whole.level, rank), name not in self.stored, fresh=not rank)
        if found.active:
            found.ct, found.flag, own = self.new("g"), self.flag(name), f"_pb_B_{name}"
            found.back = [f"if {own} is None: {own} = _pb_new_{name}()", f"{part_of(own, node)} += {found.ct}"]
        return found

    # Computing.
    def operation(self, name: str, text: str, operands: list[Val]) -> Val:
        """An operator or function, element by element, of one or two operands."""
        if not any(val.active for val in operands):
            whole = all(val.kind.level == WHOLE for val in operands) and name not in FLOATING
            rank = max(val.kind.rank for val in operands)
            steady = all(val.steady for val in operands)
            kind = LoopKind(WHOLE if whole else PLAIN, rank)
            return Val(text.format(*(val.operand for val in operands)), kind, steady)
        if not name:
            raise RefusedError("// and % have no derivative to be followed")
        return self.recorded(registry.named(name), text, operands)

    def recorded(self, prim: Any, text: str, operands: list[Val]) -> Val:
        """A call of a primitive of which some operand is active."""
        if not isinstance(prim, Primitive) or prim.guarded or prim.outputs or prim.family or prim.masks:
            raise RefusedError(f"{getattr(prim, 'name', prim)} is not followed")
        rank = max(val.kind.rank for val in operands) if prim.elementwise else 0
        arrays = [self.held(val) for val in operands if val.kind.rank]
        for one, other in pairwise(arrays):
            if one.kind.rank != other.kind.rank:
                raise RefusedError("arrays of different numbers of axes meet")
            self.same_shape(one.operand, other.operand)
        reads = {k: self._reads(prim, k) for k, val in enumerate(operands) if val.active}
        wanted = dict.fromkeys(name for names in reads.values() for name in names)
        for name in wanted:
            if name != "out":
                self.held(operands[prim.operands.index(name)])
        out = self.held(Val(text.format(*(val.operand for val in operands)), LoopKind(ACTIVE, rank)))
        pops: list[str] = []
        texts = {
            name: self.pushed(out if name == "out" else operands[prim.operands.index(name)], pops) for name in wanted
        }
        made = Val(out.text, out.kind, ct=self.new("g"), back=pops[::-1], flag=flag_of(operands))
        for k, names in reads.items():
            ranks = (operands[k].kind.rank, rank if prim.elementwise else operands[k].kind.rank)
            read = [texts[name] for name in names]
            made.back += rule_lines(prim, k, made.ct, read, self.bound, ranks=ranks, masked=self.masked)
            made.back += operands[k].sent("_pb_g")
        for val in reversed(operands):
            made.back += val.back
        return made

    @staticmethod
    def _reads(prim: Primitive, k: int) -> list[str]:
        alternatives = prim.rules.get(prim.operands[k])
        rule = alternatives[0] if alternatives else None
        if rule is None or rule.joint:
            raise RefusedError(f"{prim.name} is not followed")
        names = [name for name in rule.reads if not name.endswith("_spec")]
        if set(names) - {*prim.operands, "out"} or (prim.elementwise and len(names) < len(rule.reads)):
            raise RefusedError(f"the rule of {prim.name} reads more than its operands")
        return names

    def _contracted(self, function: Any, text: str, operands: list[Val]) -> Val:
        """The inner product of two vectors."""
        if [val.kind.rank for val in operands] != [1, 1]:
            raise RefusedError("products of matrices are not followed")
        if not any(val.active for val in operands):
            steady = all(val.steady for val in operands)
            return Val(text.format(*(val.operand for val in operands)), LoopKind(PLAIN, 0), steady)
        prim = declared(function)
        prim = prim.direct if isinstance(prim, Composite) and prim.direct is not None else prim
        held = [self.held(val) for val in operands]
        self.same_shape(held[0].operand, held[1].operand)
        if not (isinstance(prim, Primitive) and prim.bilinear == prim.operands and not prim.guarded):
            raise RefusedError("no plugin has this product")
        return self._inner(text, held)

    def _inner(self, text: str, operands: list[Val]) -> Val:
        out = self.held(Val(text.format(*(val.operand for val in operands)), LoopKind(ACTIVE, 0)))
        pops: list[str] = []
        texts = [self.pushed(operands[1 - k], pops) if operands[k].active else "" for k in (0, 1)]
        made = Val(out.text, out.kind, ct=self.new("g"), back=pops[::-1], flag=flag_of(operands))
        for val, other in zip(operands, texts, strict=True):
            made.back += val.sent(f"{made.ct} * {other}")  # as matmul_left and matmul_right of pullback-linalg
        for val in reversed(operands):
            made.back += val.back
        return made

    def _call(self, function: ast.expr, args: list[ast.expr]) -> Val:
        meant = self.callees(function)
        if meant in OF_INTEGERS:
            return self._of_integers(meant.__name__, args)
        operands = [self.expr(arg) for arg in args]
        if meant in (np.dot, np.matmul) and len(operands) == 2:
            return self._contracted(meant, f"{self.bound(meant)}({{}}, {{}})", operands)
        if meant is np.flip and [val.kind.rank for val in operands] == [1]:
            return self._flipped(operands[0])
        plain = meant if isinstance(meant, np.ufunc) else None
        if getattr(meant, "__module__", "") == "math" and all(not val.kind.rank for val in operands):
            plain = getattr(np, ARC.get(meant.__name__, meant.__name__), None)
            if any(val.active for val in operands):
                operands = [self.held(val) for val in operands]
                self.say(f"{self.bound(meant)}({', '.join(val.text for val in operands)})")  # raises what it raises
            elif isinstance(plain, np.ufunc):
                return self.operation("operator_divide", _called(self.bound(meant), operands), operands)
        if not isinstance(plain, np.ufunc) or plain.nin != len(operands) or plain.nout != 1:
            raise RefusedError(f"{ast.unparse(function)} is not followed")
        text = _called(self.bound(plain), operands)
        if plain is not meant:  # a number of Python's, as math gives it
            text = f"{self.bound(float)}({text})"
        if any(val.active for val in operands):
            prim = declared(plain)
            if not isinstance(prim, Primitive) or not prim.elementwise:
                raise RefusedError(f"{plain.__name__} is not followed")
            return self.recorded(prim, text, operands)
        return self.operation("operator_divide", text, operands)

    def _of_integers(self, name: str, args: list[ast.expr]) -> Val:
        if name == "len" and isinstance(args[0], ast.Name):
            self._array(args[0].id)
            return Val(f"len({args[0].id})", LoopKind(WHOLE, 0), steady=True)
        operands = [self.expr(arg) for arg in args]
        if name == "abs" and operands[0].kind.level:
            return self.operation("operator_absolute", "abs({})", operands)
        if any(val.kind != LoopKind(WHOLE, 0) for val in operands):
            raise RefusedError(f"{name} of what is no integer is not followed")
        return self.operation("operator_add", _called(name, operands), operands)

    def _flipped(self, val: Val) -> Val:
        text = f"{val.text}[::-1]" if val.text.isidentifier() else f"({val.text})[::-1]"
        made = Val(text, val.kind, val.steady, fresh=False)
        if val.active:
            made.ct, made.flag = self.new("g"), val.flag
            made.back = [*val.sent(f"{made.ct}[::-1]"), *val.back]
        return made


_ARC = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")
ARC: Final = {f"a{name}": f"arc{name}" for name in _ARC} | {"pow": "power"}
"""Functions of ``math`` that NumPy names otherwise."""


def _called(function: str, operands: list[Val]) -> str:
    return f"{function}({', '.join('{}' for _ in operands)})"


def declared(function: Any) -> Any:
    """The declaration of the registry for a function of NumPy's; None where there is none."""
    try:
        return registry.find(function)
    except PullbackError:
        return None


def part_of(name: str, node: ast.Subscript) -> str:
    """The text of the same part of another array."""
    return ast.unparse(ast.Subscript(ast.Name(name), node.slice, ast.Load()))
