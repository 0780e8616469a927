"""The two functions of a loop, forward and reverse, for values of given kinds."""

import ast
import builtins
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from inspect import getattr_static
from types import FunctionType, ModuleType
from typing import Any

from attrs import define, field

from pullback.adopting.loops.kinds import ACTIVE, FLAG, LoopKind, RefusedError, joined
from pullback.adopting.loops.loop_code import UNBOUND, LoopCode
from pullback.adopting.loops.statements import STEP, Statements
from pullback.rules.generated_code import compile_function
from pullback.words.specs import ArraySpec

TRIALS = 8
"""The most times that a loop is written until nothing new is found of its names."""


def unwrapped(function: Any) -> Any:
    """A function of NumPy's or Python's behind what adopted code calls."""
    while isinstance(function, FunctionType) and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


@define(eq=False, slots=False)
class Callees:
    """The functions and the numbers of its module that a loop reads, as they were when it was first written: its
    reverse is written later, when they may be others."""

    module: dict[str, Any]
    found: dict[str, tuple[ast.expr, Any]] = field(factory=dict)

    def __call__(self, node: ast.expr) -> Any:
        """The function or number that an expression stands for; None for anything else."""
        text = ast.unparse(node)
        if text not in self.found:
            self.found[text] = node, _meant(node, self.module)
        return self.found[text][1]

    def unchanged(self, module: Mapping[str, Any]) -> bool:
        """Whether the module still means the same by them."""
        return all(_meant(node, module) is meant for node, meant in self.found.values())


def _meant(node: ast.expr, module: Mapping[str, Any]) -> Any:
    match node:
        case ast.Name(id=name):
            return unwrapped(module[name] if name in module else getattr(builtins, name, None))
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            return unwrapped(_member(module.get(name), attr))
    return None


def _member(owner: Any, name: str) -> Any:
    """A member of a module, or of another object where it lies in a dict: a property is code of the user's."""
    if isinstance(owner, ModuleType):
        return getattr(owner, name, None)
    own = isinstance(type(owner).__getattribute__, FunctionType)
    return None if own else getattr_static(owner, name, None)


@define(eq=False, slots=False)
class Written:
    """A loop for values of given kinds."""

    code: LoopCode
    known: dict[str, LoopKind]
    """The kinds of its names, those that it binds among them."""
    callees: Callees
    entering: dict[str, LoopKind] = field(init=False)
    """The kinds of the names before the loop."""
    forward: Any = field(init=False)
    """``forward(push, put, *values)`` computes on arrays that it may write to, and gives the names that have values
    then, flags among them. What the reverse reads is pushed where it is a number, and put where it is an array."""
    trips: Any = field(init=False)
    """``trips(*values)``: how often it is gone through."""
    arrays: tuple[str, ...] = field(init=False)
    """The active arrays."""
    scalars: tuple[str, ...] = field(init=False)
    """The names that have a cotangent of their own: active numbers, and arrays that are made anew."""
    read: tuple[str, ...] = field(init=False)
    """The names whose values the reverse reads where they lie."""
    text: str = field(init=False)
    """The text of the forward."""
    texts: dict[bool, str] = field(factory=dict, init=False)
    """The text of each reverse that was asked for, by whether it masks NaN."""
    compiled: dict[str, Any] = field(factory=dict, init=False)
    """What each backend has made of both functions, by its name."""

    def __attrs_post_init__(self) -> None:
        self.entering = dict(self.known)
        writer, back = self._written(masked=False)
        active = [name for name in self.code.names if self.known.get(name, LoopKind(0, 0)).level == ACTIVE]
        self.arrays = tuple(n for n in active if self.known[n].rank and n not in self.code.assigned)
        self.scalars = tuple(n for n in active if n not in self.arrays)
        self.forward, self.trips = self._forward(writer), self._trips()
        loads = {node.id for node in ast.walk(ast.parse("\n".join(back))) if isinstance(node, ast.Name)}
        self.read = tuple(sorted(loads & set(self.code.names)))

    def _written(self, *, masked: bool) -> tuple[Statements, list[str]]:
        """The loop, written when everything is known of its names."""
        code, nodes = self.code, list(ast.walk(self.code.node))
        counts = Counter(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        counts.update(f"for {n.target.id}" for n in nodes if isinstance(n, ast.For) and isinstance(n.target, ast.Name))
        for _ in range(TRIALS):
            constant = frozenset(code.names) - set(code.assigned)
            writer = Statements(self.known, constant, code.stored, self.callees, self.entering, masked, counts=counts)
            back = writer.block([code.node])
            grown = {name: joined(self.known.get(name), kind) for name, kind in writer.found.items()}
            if all(self.known.get(name) == kind for name, kind in grown.items()):
                return writer, back
            self.known |= grown
        raise RefusedError("the kinds of its names do not settle")

    def _forward(self, writer: Statements) -> Any:
        """The forward, whose lines are the user's own in tracebacks and warnings."""
        code = self.code
        first = [f"{FLAG}{name} = {name in code.assigned and writer.entered_active(name)}" for name in self._flagged()]
        missing = [name for name in code.assigned if name not in self.entering]
        first += [f"if {name} is {writer.bound(UNBOUND)}: del {name}" for name in missing]
        said = [*first, *(line for line, _ in writer.lines), f"return {writer.bound(locals)}()"]
        self.text = f"def loop(_pb_push, _pb_put, {', '.join(code.names)}):\n" + "\n".join(STEP + line for line in said)
        tree = ast.parse(self.text)
        own = code.node.lineno
        at = [own, *(own for _ in first), *(line for _, line in writer.lines), own]
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt | ast.expr | ast.arg):
                node.lineno = node.end_lineno = at[node.lineno - 1]
        module = self.callees.module  # warnings are filtered by its name, and noted there
        names = {
            "__name__": module.get("__name__"),
            "__warningregistry__": module.setdefault("__warningregistry__", {}),
        }
        namespace = {**writer.namespace, **names}
        exec(compile(tree, self.code.file, "exec"), namespace)  # noqa: S102 - the user's own statements
        return namespace["loop"]

    def specs(self, values: Mapping[str, Any]) -> dict[str, ArraySpec]:
        """The specs of the active arrays."""
        return {name: ArraySpec(values[name].shape, values[name].dtype) for name in self.arrays}

    def told(self, made: Mapping[str, Any]) -> list[str]:
        """The names that came to depend on the inputs in a run, by what its forward gave, or to do so anew."""
        return [name for name in self._flagged() if made[FLAG + name]]

    def _flagged(self) -> list[str]:
        """The names that may come to depend on the inputs."""
        code = self.code
        return [n for n in (*self.scalars, *self.arrays) if n in code.assigned or n in code.stored]

    def _trips(self) -> Any:
        over = ast.unparse(self.code.node.iter)
        return compile_function("trips", f"def trips({', '.join(self.code.names)}):\n    return len({over})\n", {})

    @cached_property
    def reverse(self) -> Any:
        """``reverse(pop, take, new, values, cotangents)`` gives the cotangents of ``scalars``, then of ``arrays``."""
        return self._reverse(masked=False)

    @cached_property
    def masked_reverse(self) -> Any:
        """``reverse`` for a trace in which something is masked."""
        return self._reverse(masked=True)

    def _reverse(self, *, masked: bool) -> Any:
        writer, back = self._written(masked=masked)
        own = [f"_pb_b_{name}" for name in self.scalars] + [f"_pb_B_{name}" for name in self.arrays]
        made = [f"_pb_new_{name}" for name in self.arrays]
        given = ["_pb_pop", "_pb_take", *made, *self.read, *own]
        lines = [f"def loop_back({', '.join(given)}):", *(STEP + line for line in back or ["pass"])]
        lines.append(f"{STEP}return ({''.join(f'{name}, ' for name in own)})")
        self.texts[masked] = "\n".join(lines)
        return compile_function("loop_back", "\n".join(lines) + "\n", dict(writer.namespace))
