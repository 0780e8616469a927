"""Which ``for`` loops of a program can be differentiated from their text, and what is known of each.

Such a loop goes over a ``range``. In it stand other loops of this kind, ``if``, and assignments to names and to parts
of arrays: no call but of NumPy's and Python's functions of numbers, no ``break``, ``continue``, ``return`` or
``while``.
"""

import ast
from collections.abc import Sequence
from types import CodeType
from typing import Any, Final

from attrs import define, field

EXPRESSIONS: Final = (
    ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Subscript, ast.Slice, ast.Tuple,
    ast.Call, ast.Attribute, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
)  # fmt: skip
LOOP: Final = "__pb_loop__"
"""The name by which adopted code asks whether a loop runs as a whole."""
LOCALS: Final = "__pb_locals__"
"""The name by which adopted code finds ``locals``."""
LEFT: Final = "__pb_left__"
"""What it is told."""
OWN: Final = "_pb_"
"""The prefix of names in generated code."""

CALLED: Final = ("bool", "reversed")
"""What generated code calls by the names that Python gives it."""


@define(eq=False)
class LoopCode:
    """A loop of an adopted program. What is made of it is known by the kinds of the values that its names have."""

    node: ast.For
    file: str
    names: tuple[str, ...] = field(init=False)
    """The names in it that may have values when it begins, but for those of which only a function is called."""
    called: frozenset[str] = field(init=False)
    """The names of functions, and of the modules in which they are: those of its module, no locals."""
    assigned: tuple[str, ...] = field(init=False)
    """The names that it binds."""
    stored: frozenset[str] = field(init=False)
    """The names of the arrays that it writes to."""
    nested: bool = field(init=False)
    """Whether another loop stands in it."""
    made: dict[Any, Any] = field(factory=dict, init=False)
    """The functions, or why there are none, by the kinds of the values."""
    why: str = field(default="", init=False)
    """Why it ran as it stands when it last did so under a trace that would have taken it whole."""
    not_compiled: str = field(default="", init=False)
    """Why a backend that was asked for did not compile it."""
    n_declined: int = field(default=0, init=False)
    """How many times in a row it had to run as it stands."""
    n_left_out: int = field(default=0, init=False)
    """How many times it is not asked before it is tried again."""

    def __attrs_post_init__(self) -> None:
        nodes = list(ast.walk(self.node))
        self.nested = any(isinstance(node, ast.For) and node is not self.node for node in nodes)
        functions = [node.func for node in nodes if isinstance(node, ast.Call)]
        functions += [node for node in nodes if isinstance(node, ast.Attribute) and node.attr != "shape"]
        called = {id(part): part for function in functions for part in ast.walk(function)}
        self.called = frozenset(part.id for part in called.values() if isinstance(part, ast.Name))
        names = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in called]
        self.names = tuple(dict.fromkeys(node.id for node in names))
        self.assigned = tuple(dict.fromkeys(node.id for node in names if isinstance(node.ctx, ast.Store)))
        self.stored = frozenset(
            node.value.id
            for node in nodes
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
        )

    def rests(self) -> bool:
        """Whether the loop is not asked now: it had to run as it stands in each of the last calls."""
        if self.n_left_out:
            self.n_left_out -= 1
        return self.n_left_out > 0

    def has_run(self, whole: bool) -> None:
        """Note whether the loop has run as a whole."""
        self.n_declined = 0 if whole else self.n_declined + 1
        if self.n_declined >= PATIENCE:
            self.n_left_out = min(self.n_declined, RARELY)


PATIENCE: Final = 8
"""Calls after which a loop that has to run as it stands is asked less often."""
RARELY: Final = 64
"""The most calls in a row for which it is left out."""
UNBOUND: Final = object()
"""The value of a name that has none."""
LOOPS: Final[list[LoopCode]] = []
"""The loops of all adopted modules, by number."""


LEFT_OUT: Final[dict[tuple[str, int], str]] = {}
"""Why other loops of theirs cannot be, by file and line."""


def loops_in(code: CodeType) -> tuple[list[LoopCode], list[str]]:
    """The loops in a function that are asked for, and why each of the others is not, or was not when it last ran."""
    lines = {line for _, _, line in code.co_lines() if line is not None}
    loops = [loop for loop in LOOPS if loop.file == code.co_filename and loop.node.lineno in lines]
    why = {loop.node.lineno: loop.why for loop in loops if loop.why}
    why |= {line: text for (file, line), text in LEFT_OUT.items() if file == code.co_filename and line in lines}
    told = [f"the loop at line {line} is not followed as a whole: {why[line]}" for line in sorted(why)]
    slow = {loop.node.lineno: loop.not_compiled for loop in loops if loop.not_compiled and not loop.why}
    return loops, [*told, *(f"the loop at line {line} is not compiled: {slow[line]}" for line in sorted(slow))]


def first_refused(node: ast.For) -> str:
    """What of a loop, that is no candidate, is not followed."""
    if not _is_loop(node):
        return f"{ast.unparse(node).splitlines()[0]} goes over no range"
    for statement in node.body:
        if isinstance(statement, ast.For) and not is_candidate(statement):
            return first_refused(statement)
        if isinstance(statement, ast.If) and not _is_statement(statement):
            parts = [part for part in (*statement.body, *statement.orelse) if not _is_statement(part)]
            return f"{ast.unparse(parts[0] if parts else statement.test).splitlines()[0]} is not followed"
        if not _is_statement(statement):
            return f"{ast.unparse(statement).splitlines()[0]} is not followed"
    return ""


def is_candidate(node: ast.For) -> bool:
    """Whether a loop is made of nothing but what can be written backwards, by its syntax."""
    return _is_loop(node) and all(map(_is_statement, node.body))


def _is_loop(node: ast.For) -> bool:
    called = isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range"
    own = isinstance(node.target, ast.Name) and _is_expression(node.target)
    return called and own and not node.orelse and _is_expression(node.iter)


def _is_statement(node: ast.stmt) -> bool:
    match node:
        case ast.For():
            return is_candidate(node)
        case ast.If():
            return _is_expression(node.test) and all(map(_is_statement, [*node.body, *node.orelse]))
        case ast.Assign(targets=[target]) | ast.AugAssign(target=target):
            return _is_target(target) and _is_expression(node.value)
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            return True
    return False


def _is_target(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and _is_expression(node)) or (
        isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and _is_expression(node)
    )


def _is_expression(node: ast.expr) -> bool:
    return all(
        isinstance(part, EXPRESSIONS)
        and not (isinstance(part, ast.Name) and (part.id.startswith(OWN) or part.id in CALLED))
        and not (isinstance(part, ast.Call) and part.keywords)
        for part in ast.walk(node)
    )


def asked_for(node: ast.For, number: int, assigned: Sequence[str], live: ast.expr) -> list[ast.stmt]:
    """The loop of this number, run as a whole where a trace is under way (``live``) and that can be; else as it
    stands."""
    left, none = ast.Name(LEFT, ast.Load()), ast.Constant(None)
    given = ast.Call(ast.Name(LOCALS, ast.Load()), [], [])
    asked = ast.IfExp(live, ast.Call(ast.Name(LOOP, ast.Load()), [ast.Constant(number), given], []), none)
    taken: list[ast.stmt] = [
        ast.If(
            ast.Compare(ast.Constant(name), [ast.In()], [left]),
            [ast.Assign([ast.Name(name, ast.Store())], ast.Subscript(left, ast.Constant(name), ast.Load()))],
            [],
        )
        for name in assigned
    ]
    forget = ast.Delete([ast.Name(LEFT, ast.Del())])  # the user's locals are as they would be, and nothing is held
    taken.append(forget)
    chosen = ast.If(ast.Compare(left, [ast.Is()], [none]), [forget], taken)
    made: list[ast.stmt] = [ast.Assign([ast.Name(LEFT, ast.Store())], asked), chosen]
    for part in [part for statement in made for part in ast.walk(statement)]:
        ast.copy_location(part, node)
    chosen.body.append(node)
    return made
