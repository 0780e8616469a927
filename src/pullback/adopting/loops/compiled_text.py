"""The two functions of a loop over single numbers as a compiler takes them: without lists, None and calls of Python's.

What the forward pushes goes on an array, with the number of what is there. What may be None has a name that says
whether it is there (``_pb_h_``). The numbers that the forward binds say of which type Python would have them
(``_pb_y_``: 0 NumPy's, 1 a float, 2 an int), and whether they are bound. Where Python would call a function of ours, as
for a NaN, or raise, the function raises: then the ordinary one runs instead.
"""

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Final, cast

from attrs import define, field

from pullback.adopting.loops.kinds import FLAG, WHOLE, LoopKind, RefusedError

NUMPY, FLOAT, INT = 0, 1, 2
"""Types of numbers: where they meet, the least remains."""
HELPERS: Final = """
def grown(stack):
    more = np.empty(2 * stack.size)
    more[: stack.size] = stack
    return more

"""
"""The beginning of every text; ``np`` is NumPy."""
GIVEN, LONG, EXACT = 31, 62, 53
"""Bits: of integers that a loop is given, of the longest that it may make, of those that a float holds."""
CALLS: Final = frozenset(("range", "len", "bool", "min", "max", "abs", "int"))
EXPRESSIONS: Final = (
    ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Subscript, ast.Tuple, ast.Call,
    ast.Attribute, ast.IfExp, ast.expr_context, ast.unaryop, ast.cmpop, ast.boolop, ast.Add, ast.Sub, ast.Mult, ast.Div,
    ast.FloorDiv, ast.Mod,
)  # fmt: skip
"""Expressions of which Python and the compiler compute the same bits. A power is another function, and a slice no
number."""


@define(eq=False)
class Numbers:
    """What is known of the names of a loop. ``own`` are the variables that have cotangents."""

    known: dict[str, LoopKind]
    assigned: frozenset[str]
    own: frozenset[str] = frozenset()
    there: set[str] = field(factory=set)
    """Variables that may be None, but for ``own``."""
    typed: set[str] = field(factory=set)
    """Variables of which it is known of what type they are."""
    bits: dict[str, int] = field(factory=dict)
    """How long integers may be that the loop binds."""
    n: int = 0

    def new(self, stem: str) -> str:
        """A name of our own."""
        self.n += 1
        return f"_pb_{stem}_{self.n}"


def forward_text(text: str, known: dict[str, LoopKind], assigned: Sequence[str]) -> str:
    """The text of ``forward(stack, *values, *types, *bound)``, which gives ``(stack, n, values, types, bound, flags)``:
    the types are asked of the numbers of ``floats_of``, and whether they are bound of those that are ``assigned``; the
    flags are those of ``flags_of``.

    Raises :class:`RefusedError` for what is not of single numbers.
    """
    function = _function(text)
    floats = floats_of(known)
    numbers = Numbers(known, frozenset(assigned), typed=set(floats))
    if any(known[name].rank for name in assigned if name in known):
        raise RefusedError("an array is bound to a name")
    body = _block(function.body[:-1], numbers, _forward)
    given = [arg.arg for arg in function.args.args if arg.arg not in ("_pb_push", "_pb_put")]
    types, bound = [f"_pb_y_{name}" for name in floats], [f"_pb_is_{name}" for name in assigned]
    lines = [f"def forward({', '.join(['_pb_stack', *given, *types, *bound])}):", "    _pb_n = 0", *_lines(body)]
    types = [f"_pb_y_{name}" if name in floats else str(INT) for name in assigned]
    parts = (assigned, types, bound, flags_of(text))
    lines.append(f"    return _pb_stack, _pb_n, {', '.join(f'({_listed(part)})' for part in parts)}")
    return "\n".join(lines) + "\n"


def flags_of(text: str) -> list[str]:
    """The variables of a forward that tell what depends on the inputs."""
    bound = [part.id for part in ast.walk(_function(text)) if isinstance(part, ast.Name)]
    return [name for name in dict.fromkeys(bound) if name.startswith(FLAG)]


def floats_of(known: dict[str, LoopKind]) -> list[str]:
    """The names of single numbers that are no integers."""
    return [name for name, kind in known.items() if not kind.rank and kind.level != WHOLE]


def reverse_text(text: str, own: Sequence[str], arrays: Sequence[str], known: dict[str, LoopKind]) -> str:
    """The text of ``reverse(stack, n, *reads, *cotangents, *there)``, which gives ``(cotangents, there)``. Cotangents
    of ``arrays`` are arrays of zeros where they are not there.

    Raises :class:`RefusedError` for what is not of single numbers.
    """
    function = _function(text)
    numbers = Numbers(known, frozenset(), frozenset(own))
    body = _block(function.body[:-1], numbers, _reverse)
    left_out = {"_pb_pop", "_pb_take", *(f"_pb_new_{name}" for name in arrays)}
    given = [arg.arg for arg in function.args.args if arg.arg not in left_out]
    there = [_there(name) for name in own]
    lines = [f"def reverse({', '.join(['_pb_stack', '_pb_n', *given, *there])}):", *_lines(body)]
    lines.append(f"    return ({_listed(own)}), ({_listed(there)})")
    return "\n".join(lines) + "\n"


def _listed(names: Iterable[str]) -> str:
    return "".join(f"{name}, " for name in names)


def _lines(body: list[ast.stmt]) -> list[str]:
    return [f"    {line}" for node in body for line in ast.unparse(ast.fix_missing_locations(node)).splitlines()]


Rule = Callable[[ast.stmt, Numbers], list[ast.stmt] | None]


def _block(body: list[ast.stmt], numbers: Numbers, rule: Rule) -> list[ast.stmt]:
    """Statements as the compiler takes them. ``rule`` knows those of one of the two functions."""
    made: list[ast.stmt] = []
    for node in body:
        found = _shared(node, numbers, rule)
        if found is None:
            found = rule(node, numbers)
        if found is None:
            raise RefusedError(f"{ast.unparse(node).splitlines()[0]} is not of single numbers")
        made += found
    return made or [ast.Pass()]


def _shared(node: ast.stmt, numbers: Numbers, rule: Rule) -> list[ast.stmt] | None:
    match node:
        case ast.Pass():
            return []
        case ast.For(target=ast.Name() as target, iter=ast.Call(func=ast.Name(id="range")) as over):
            numbers.bits[target.id] = _require(over, numbers)
            bound = [_says(f"_pb_is_{target.id} = True")] if target.id in numbers.assigned else []
            return [ast.For(target, over, [*bound, *_block(node.body, numbers, rule)], [])]
        case ast.For(target=ast.Name() as target, iter=ast.Call(func=ast.Name(id="reversed"), args=[over])):
            numbers.bits[target.id] = _require(over, numbers)
            return _backwards(target.id, cast("ast.Call", over), _block(node.body, numbers, rule), numbers)
        case ast.If(test=ast.Compare(left=left, ops=[ast.NotEq()], comparators=[right]), orelse=[]):
            if ast.unparse(left) == ast.unparse(right) or ".shape" in ast.unparse(left):  # a NaN, or another shape
                return [ast.If(node.test, [_says("raise ValueError")], [])]
    return None


def _backwards(name: str, over: ast.Call, body: list[ast.stmt], numbers: Numbers) -> list[ast.stmt]:
    """A loop over a range from its end."""
    k, ends = numbers.new("k"), ", ".join(map(ast.unparse, over.args))
    start = ast.unparse(over.args[0]) if len(over.args) > 1 else "0"
    step = ast.unparse(over.args[2]) if len(over.args) > 2 else "1"
    loop = cast("ast.For", _says(f"for {k} in range(len(range({ends})) - 1, -1, -1): pass"))
    loop.body = [_says(f"{name} = ({start}) + {k} * ({step})"), *body]
    return [loop]


def _function(text: str) -> ast.FunctionDef:
    return cast("ast.FunctionDef", ast.parse(text).body[0])


def _says(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def _require(node: ast.expr, numbers: Numbers) -> int:
    """How long the integer that an expression gives may be, in bits, 0 for what is none; :class:`RefusedError` where
    the expression is not of single numbers."""
    for part in ast.walk(node):
        fits = isinstance(part, EXPRESSIONS)
        if isinstance(part, ast.Call):
            fits = isinstance(part.func, ast.Name) and part.func.id in CALLS
        elif isinstance(part, ast.Attribute):
            fits = part.attr == "shape"
        if not fits:
            raise RefusedError(f"{ast.unparse(part) or type(part).__name__} is not compiled")
    return _bits(node, numbers)


def _bits(node: ast.AST, numbers: Numbers) -> int:
    """How long an integer may be; :class:`RefusedError` where Python's would not fit into 64 bits, or where it divides
    two that are no numbers of NumPy's."""
    match node:
        case ast.Constant(value=int() as value):
            return value.bit_length() or 1
        case ast.Name(id=name):
            kind = numbers.known.get(name)
            unknown = LONG if name in numbers.assigned else GIVEN
            return numbers.bits.get(name, unknown if kind is not None and kind.level == WHOLE else 0)
        case ast.Call(func=ast.Name(id="len")):
            return GIVEN
        case ast.Subscript():
            parts = [_bits(part, numbers) for part in ast.iter_child_nodes(node)]
            return GIVEN if ".shape" in ast.unparse(node) else LONG if parts[0] else 0
        case ast.BinOp(left=left, op=op, right=right):
            one, other = _bits(left, numbers), _bits(right, numbers)
            if not one or not other:
                if isinstance(op, ast.FloorDiv | ast.Mod):
                    raise RefusedError(f"{ast.unparse(node)} is not of integers")
                return 0
            if isinstance(op, ast.Div):
                if max(one, other) > EXACT:
                    raise RefusedError(f"{ast.unparse(node)} may divide long integers")
                return 0
            length = one + other if isinstance(op, ast.Mult) else max(one, other) + isinstance(op, ast.Add | ast.Sub)
            if length > LONG + 1 or (isinstance(op, ast.Mult) and length > LONG):
                raise RefusedError(f"{ast.unparse(node)} may be a long integer")
            return min(length, LONG)
    return max((_bits(part, numbers) for part in ast.iter_child_nodes(node)), default=0)


# ----------------------------------------------------------------------------------------------------------- forward
def _forward(node: ast.stmt, numbers: Numbers) -> list[ast.stmt] | None:
    match node:
        case ast.If(body=[ast.Delete()]):  # a name that has no value, of which it is told that it has none
            return []
        case ast.If(test=test):
            _require(test, numbers)
            then, other = _block(node.body, numbers, _forward), _block(node.orelse, numbers, _forward)
            return [ast.If(test, then, other)]
        case ast.Expr(value=ast.Call(func=ast.Name(id="_pb_push"), args=[pushed])):
            _require(pushed, numbers)
            return [
                _says("if _pb_n == _pb_stack.size: _pb_stack = grown(_pb_stack)"),
                _says(f"_pb_stack[_pb_n] = {ast.unparse(pushed)}"),
                _says("_pb_n += 1"),
            ]
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            length = _require(value, numbers)
            if length and name not in numbers.assigned:
                numbers.bits[name] = length
            kind = numbers.known.get(name)
            if kind is not None and kind.level == WHOLE and _holds_element(value):
                raise RefusedError(f"{name} is an integer of an array")
            made = [node, *([_says(f"_pb_is_{name} = True")] if name in numbers.assigned else [])]
            if name.startswith(("_pb_c", FLAG)) or (kind is not None and kind.level == WHOLE):
                return made
            numbers.typed.add(name)
            return [_says(f"_pb_y_{name} = {_type_of(value, numbers)}"), *made]
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            _require(target, numbers)
            _require(value, numbers)
            return [node]
    return None


def _holds_element(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Subscript) and ".shape" not in ast.unparse(part) for part in ast.walk(node))


def _type_of(node: ast.expr, numbers: Numbers) -> str:
    """What says the type of a number: an expression of those of the names in it."""
    match node:
        case ast.Constant(value=value):
            return str(FLOAT if type(value) is float else INT)
        case ast.Name(id=name):
            return f"_pb_y_{name}" if name in numbers.typed else str(INT)
        case ast.BinOp(left=left, op=op, right=right):
            divided = [str(FLOAT)] if isinstance(op, ast.Div) else []
            return f"min({', '.join([_type_of(left, numbers), _type_of(right, numbers), *divided])})"
        case ast.UnaryOp(operand=operand):
            return _type_of(operand, numbers)
        case ast.Subscript() if _holds_element(node):
            return str(NUMPY)
        case ast.Subscript() | ast.Call():  # an extent, or a function of integers
            return str(INT)
    raise RefusedError(f"{ast.unparse(node)} is not compiled")


def read_first(text: str, assigned: Iterable[str]) -> frozenset[str]:
    """The names among those ``assigned`` that may be read before the loop has bound them."""
    needed = set[str]()
    _bound_after(_function(text).body[:-1], set(), needed)
    return frozenset(needed & {*assigned})


def _bound_after(body: list[ast.stmt], bound: set[str], needed: set[str]) -> set[str]:
    """The names that are bound after the statements, if so many are before; what may be read unbound is ``needed``."""
    bound = set(bound)
    for node in body:
        match node:
            case ast.For(target=ast.Name(id=name), iter=over):
                needed |= _read(over) - bound
                _bound_after(node.body, bound | {name}, needed)
            case ast.If(body=[ast.Delete()]):
                pass
            case ast.If(test=test):
                needed |= _read(test) - bound
                bound |= _bound_after(node.body, bound, needed) & _bound_after(node.orelse, bound, needed)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                needed |= _read(value) - bound
                bound.add(name)
            case ast.Assign(targets=[target], value=value):
                needed |= (_read(value) | _read(target)) - bound
            case ast.Expr(value=value):
                needed |= _read(value) - bound
    return bound


def _read(node: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


# ----------------------------------------------------------------------------------------------------------- reverse
def _there(name: str) -> str:
    return f"_pb_h_{name}"


def _reverse(node: ast.stmt, numbers: Numbers) -> list[ast.stmt] | None:
    match node:
        case ast.If(test=test):
            popped, test = _condition(test, numbers)
            then, other = _block(node.body, numbers, _reverse), _block(node.orelse, numbers, _reverse)
            return [*popped, ast.If(test, then, other)]
        case ast.Expr(value=ast.Call(func=ast.Name(id="_pb_pop"))):
            return [_says("_pb_n -= 1")]
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="_pb_pop"))):
            return [_says("_pb_n -= 1"), _says(f"{name} = _pb_stack[_pb_n]")]
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=None)):
            return [_says(f"{_there(name)} = False")]
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=f))) if f.startswith("_pb_new_"):
            return [_says(f"{_there(name)} = True")]  # it is there, of zeros
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)) if other in numbers.own:
            numbers.there.add(name)
            return [node, _says(f"{_there(name)} = {_there(other)}")]
        case ast.Assign(targets=[ast.Name(id=name) as target], value=ast.IfExp(test=test, body=body, orelse=orelse)):
            for part in (body, orelse):
                _require(part, numbers)
            chosen = ast.Assign([target], ast.IfExp(_condition(test, numbers)[1], body, orelse))
            return [chosen, _says(f"{_there(name)} = True")]
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            _require(value, numbers)
            numbers.there.discard(name)
            return [node, *([_says(f"{_there(name)} = True")] if name in numbers.own else [])]
        case (
            ast.Assign(targets=[ast.Subscript() as target], value=value)
            | ast.AugAssign(target=ast.Subscript() as target, value=value)
        ):
            _require(target, numbers)
            _require(value, numbers)
            return [node]
    return None


def _condition(test: ast.expr, numbers: Numbers) -> tuple[list[ast.stmt], ast.expr]:
    """What is popped for a condition, and the condition."""
    match test:
        case ast.Call(func=ast.Name(id="_pb_pop")):
            return [_says("_pb_n -= 1")], cast("ast.Expr", _says("_pb_stack[_pb_n] != 0.0")).value
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant()]):
            if name not in numbers.own and name not in numbers.there:
                raise RefusedError(f"nobody says whether {name} is there")
            there = ast.Name(_there(name), ast.Load())
            return [], there if isinstance(op, ast.IsNot) else ast.UnaryOp(ast.Not(), there)
    _require(test, numbers)
    return [], test
