"""Statements of a loop, written down forward and backward."""

import ast
from typing import Any

from attrs import define, field

from pullback.adopting.loops.expressions import BINARY, OF_INTEGERS, Expressions, part_of
from pullback.adopting.loops.kinds import ACTIVE, FLAG, PLAIN, WHOLE, LoopKind, RefusedError, joined
from pullback.adopting.loops.values import ALWAYS, SUMMED, Val, rule_lines
from pullback.rules.catalogue import registry

STEP = "    "
COMPARED = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Not, ast.boolop, ast.cmpop, ast.expr_context, ast.operator)
IN_PLACE = {ast.Mult: ("*=", "in_place_multiply"), ast.Div: ("/=", "operator_divide")}


@define(eq=False)
class Statements(Expressions):
    """Writes one loop. What is found of names goes into ``found``; where that is more than is ``known``, the loop has
    to be written again."""

    counts: dict[str, int] = field(factory=dict)
    """How many times each name is bound in the text."""
    found: dict[str, LoopKind] = field(factory=dict)

    def bind(self, name: str, kind: LoopKind) -> None:
        """A name stands for a value of this kind, too."""
        self.found[name] = joined(self.found.get(name), kind)
        self.known.setdefault(name, kind)

    # Each statement says its forward, and returns its reverse.
    def block(self, body: list[ast.stmt]) -> list[str]:
        """Statements one after the other."""
        first: list[str] = []  # what follows from the numbers of the loops is there from the beginning
        parts: list[list[str]] = []
        self.scopes.append(set())
        for node in body:
            self.at = node.lineno
            match node:
                case ast.For():
                    parts.append(self.loop(node))
                case ast.If():
                    parts.append(self.branch(node))
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    parts.append(self.bound_to(name, self.expr(value), first))
                case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if type(op) in BINARY:
                    symbol, operator = BINARY[type(op)]
                    left = self.expr(ast.Name(name, ast.Load()))
                    if left.kind.rank:
                        raise RefusedError(f"{name}, a whole array, is changed in place")
                    made = self.operation(operator, f"{{}} {symbol} {{}}", [left, self.expr(value)])
                    parts.append(self.bound_to(name, made, first))
                case ast.Assign(targets=[ast.Subscript() as target], value=value):
                    if ast.unparse(target) == ast.unparse(value):
                        raise RefusedError(f"{ast.unparse(target)} is assigned to itself")
                    parts.append(self.stored_in(target, self.expr(value)))
                case ast.AugAssign(target=ast.Subscript() as target, op=op, value=value) if type(op) in BINARY:
                    parts.append(self.changed(target, op, value))
                case ast.Pass() | ast.Expr():
                    pass
                case _:
                    raise RefusedError(f"{ast.unparse(node)} is not followed")
        self.scopes.pop()
        return first + [line for part in reversed(parts) for line in part]

    def loop(self, node: ast.For) -> list[str]:
        """A loop over a range."""
        name = node.target.id  # type: ignore[attr-defined]  # as every candidate
        bounds = node.iter.args  # type: ignore[attr-defined]
        if self.callees(ast.Name("range", ast.Load())) is not range or not all(map(self.index, bounds)):
            raise RefusedError("the ends of a loop do not follow from the numbers of the loops around")
        if self.counts[name] > self.loops_over(name) or any(name in scope for scope in self.scopes):
            raise RefusedError(f"{name}, the number of a loop, is bound again")
        over = ast.unparse(node.iter)
        self.bind(name, LoopKind(WHOLE, 0))
        self.say(f"for {name} in {over}:")
        self.scopes.append({name})
        back = self.within(node.body)
        self.scopes.pop()
        return [f"for {name} in reversed({over}):", *(STEP + line for line in back or ["pass"])]

    def loops_over(self, name: str) -> int:
        """How many loops bind a name."""
        return self.counts.get(f"for {name}", 0)

    def within(self, body: list[ast.stmt]) -> list[str]:
        """The block of a loop or a branch."""
        self.pad += STEP
        self.say("pass")
        back = self.block(body)
        self.pad = self.pad[: -len(STEP)]
        return back

    def branch(self, node: ast.If) -> list[str]:
        """An ``if``: the reverse goes the same way."""
        steady = self.asked(node.test)
        test = self.new("c")
        self.say(f"{test} = bool({ast.unparse(node.test)})")
        self.say(f"if {test}:")
        then = self.within(node.body)
        self.say("else:")
        other = self.within(node.orelse)
        if not then and not other:
            return []
        if not steady:
            self.say(f"_pb_push({test})")
        lines = [f"if {f'bool({ast.unparse(node.test)})' if steady else '_pb_pop()'}:"]
        lines += [STEP + line for line in then or ["pass"]]
        return [*lines, "else:", *(STEP + line for line in other)] if other else lines

    def asked(self, node: ast.expr) -> bool:
        """Whether a condition, of comparisons, is the same in the reverse."""
        match node:
            case ast.BoolOp(values=parts):
                steady = [self.asked(part) for part in parts]
                return all(steady)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return self.asked(part)
            case ast.Compare(left=left, comparators=others):
                steady = [self.compared(part) for part in (left, *others)]
                return all(steady)
        return self.compared(node)

    def compared(self, node: ast.expr) -> bool:
        """Whether a number that is compared is the same in the reverse. Its text is the user's own."""
        calls = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
        if any(self.callees(function) not in OF_INTEGERS for function in calls):
            raise RefusedError("a condition with a call is not followed")
        lines, self.lines = self.lines, []
        found = self.expr(node)
        self.lines = lines
        if found.kind.rank:
            raise RefusedError("a condition on an array is not followed")
        return found.steady

    def bound_to(self, name: str, val: Val, first: list[str]) -> list[str]:
        """``name = value``."""
        if name in self.stored or self.loops_over(name):
            raise RefusedError(f"{name} is bound again")
        if (val.kind.rank and not val.fresh) or (val.active and val.name):
            raise RefusedError(f"{name} is another name for a value that has one")
        self.bind(name, val.kind)
        self.say(f"{name} = {val.text}")
        kind = self.known.get(name, val.kind)
        if kind.level == ACTIVE and val.flag != FLAG + name:
            self.say(f"{FLAG}{name} = {val.flag or False}")
        if not val.active and val.steady and kind.level < ACTIVE and self.counts[name] == 1:
            self.scopes[-1].add(name)
            first.append(f"{name} = {val.text}")
            return []
        own = f"_pb_b_{name}"
        if not val.active:
            return [f"{own} = None"] if kind.level == ACTIVE else []
        return [f"_pb_g = {own}", f"{own} = None", *_where_there("_pb_g", [*val.sent("_pb_g"), *val.back])]

    def stored_in(self, target: ast.Subscript, val: Val) -> list[str]:
        """``a[key] = value``."""
        part = self.target(target, val)
        self.say(f"{part.text} = {val.text}")
        self.written(target.value.id, val)  # type: ignore[attr-defined]
        return self.set_back(target, part, val)

    def target(self, target: ast.Subscript, val: Val) -> Val:
        """The part of an array that is written, which has room for the value."""
        name = target.value.id  # type: ignore[attr-defined]  # as every candidate
        part = self.part(target)
        if part.kind.level == WHOLE:
            raise RefusedError(f"{name}, an array of integers, is written")
        self.bind(name, LoopKind(max(part.kind.level, val.kind.level, PLAIN), self.known[name].rank))
        if val.kind.rank:
            self.shapes(part, val)
        elif val.active and part.kind.rank > 1:
            raise RefusedError("a number is written into a part of several axes")
        return part

    def written(self, name: str, val: Val) -> None:
        """An array has been written."""
        if self.entered_active(name) or val.flag == ALWAYS:
            self.say(f"{FLAG}{name} = True")
        elif val.flag and val.flag != FLAG + name:
            self.say(f"{FLAG}{name} = {FLAG}{name} or {val.flag}")

    def shapes(self, part: Val, val: Val) -> None:
        """An array that is written has the shape of its place."""
        if part.kind.rank != val.kind.rank:
            raise RefusedError("an array is written into one of another number of axes")
        self.same_shape(part.text, self.held(val).operand)

    def set_back(self, target: ast.Subscript, part: Val, val: Val) -> list[str]:
        """The cotangent of the part goes to what was written, and is zero before."""
        if not part.active:
            return []
        own = f"_pb_B_{target.value.id}"  # type: ignore[attr-defined]
        there = part_of(own, target)
        if not val.active:
            return [f"if {own} is not None: {there} = 0"]
        lines = [f"_pb_g = {there}{'.copy()' if part.kind.rank else ''}"]
        if part.kind.rank > val.kind.rank:
            lines.append(SUMMED.format("_pb_g"))
        lines += [*val.sent("_pb_g"), f"{there} = 0", *val.back]
        return _where_there(own, lines)

    def changed(self, target: ast.Subscript, op: ast.operator, value: ast.expr) -> list[str]:
        """``a[key] op= value``."""
        symbol, operator = BINARY[type(op)]
        read = self.part(target)
        if not read.kind.rank:
            made = self.operation(operator, f"{{}} {symbol} {{}}", [read, self.expr(value)])
            return self.stored_in(target, made)
        val = self.expr(value)
        part = self.target(target, val)
        if isinstance(op, ast.Add | ast.Sub):
            self.say(f"{part.text} {symbol}= {val.text}")
            self.written(target.value.id, val)  # type: ignore[attr-defined]
            return self.added_back(target, part, val, negated=isinstance(op, ast.Sub))
        if type(op) not in IN_PLACE:
            raise RefusedError(f"{ast.unparse(op)} in place is not followed")
        return self.scaled(target, part, val, *IN_PLACE[type(op)])

    def added_back(self, target: ast.Subscript, part: Val, val: Val, *, negated: bool) -> list[str]:
        """The cotangent of the part goes to what was added, and stays."""
        if not part.active or not val.active:
            return []
        own = f"_pb_B_{target.value.id}"  # type: ignore[attr-defined]
        lines = [f"_pb_g = {part_of(own, target)}.copy()"]
        lines += ["_pb_g = -_pb_g"] if negated else []
        lines += [SUMMED.format("_pb_g")] if part.kind.rank > val.kind.rank else []
        return _where_there(own, [*lines, *val.sent("_pb_g"), *val.back])

    def scaled(self, target: ast.Subscript, part: Val, val: Val, symbol: str, name: str) -> list[str]:
        """``a[key] *= value`` and ``/=`` of several elements: a product that is written where it was read."""
        if not part.active:
            self.say(f"{part.text} {symbol} {val.text}")
            return []
        self.written(target.value.id, val)  # type: ignore[attr-defined]
        prim: Any = registry.named(name)
        pops: list[str] = []
        self.held(val)
        y = self.pushed(val, pops)
        old = self.pushed(Val(part.text, part.kind, fresh=False), pops) if val.active and symbol == "*=" else ""
        self.say(f"{part.text} {symbol} {val.text}")
        out = self.pushed(Val(part.text, part.kind, fresh=False), pops) if val.active and symbol == "/=" else ""
        own, ct = f"_pb_B_{target.value.id}", self.new("g")  # type: ignore[attr-defined]
        there = part_of(own, target)
        lines = [*pops[::-1], f"{ct} = {there}.copy()", f"{there} = 0"]
        rank, kept = part.kind.rank, self.new("g")
        lines += rule_lines(prim, 0, ct, [y], self.bound, ranks=(rank, rank), masked=self.masked)
        lines.append(f"{kept} = _pb_g")
        if val.active:
            read = [old] if old else [y, out]
            lines += rule_lines(prim, 1, ct, read, self.bound, ranks=(val.kind.rank, rank), masked=self.masked)
            lines += [*val.sent("_pb_g"), *val.back]
        return _where_there(own, [*lines, f"{there} += {kept}"])


def _where_there(name: str, lines: list[str]) -> list[str]:
    """The lines, where there is a cotangent; else what they would pop is popped."""
    pops = [STEP + call for call in ("_pb_pop()", "_pb_take()") for line in lines if call in line]
    return [f"if {name} is not None:", *(STEP + line for line in lines), *(["else:", *pops] if pops else [])]
