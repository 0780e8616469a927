"""What names stand for in a module that is adopted, read off its text: what it imports, which may be arrays, and which
functions are compiled."""

import ast
from typing import Final

import numpy as np

SCALARS: Final = frozenset(("int", "float", "len", "round", "abs", "min", "max", "str", "bool", "range", "complex"))
"""Builtin functions that give no array, of what gives none."""

COMPILED: Final = frozenset(
    "jit njit vectorize guvectorize cfunc stencil generated_jit jitclass register_jitable pythran cython".split()
)
"""Parts of names of decorators that compile a function."""

ALL_OF: Final = {"numpy": np.__all__, "numpy.linalg": np.linalg.__all__, "numpy.fft": np.fft.__all__}
"""What ``from numpy import *`` binds."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def names_of_arrays(tree: ast.Module) -> frozenset[str]:
    """The names that may stand for arrays in the module itself, read off what it assigns to them."""
    scalars: set[str] = set()
    found: set[str] = set()
    for node in _statements(tree.body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None) if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) else None
        names = {name for target in targets if target is not None for name in names_in(target)}
        if value is not None and _is_scalar(value, scalars):
            scalars |= names - found
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.With):
            found |= names
    return frozenset(found)


def imported_names(tree: ast.Module) -> dict[str, str]:
    """The names that imports alone bind, and what they stand for: ``{"np": "numpy", "norm": "numpy.linalg.norm"}``."""
    found: dict[str, str] = {}
    others: set[str] = set()
    aliases = dict(pair for node in tree.body for pair in _aliases(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name, meant in _imports(node):
                if not meant or found.setdefault(name, meant) != meant:
                    others.add(name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            meant = meant_by(aliases[node], found) if node in aliases else ""
            if not meant or found.setdefault(node.id, meant) != meant:
                others.add(node.id)
        elif isinstance(node, Function | ast.ClassDef):
            others.add(node.name)
        elif isinstance(node, ast.arg):
            others.add(node.arg)
    return {name: meant for name, meant in found.items() if name not in others}


def _aliases(node: ast.stmt) -> list[tuple[ast.expr, ast.expr]]:
    """The second name that a statement gives to something, and the first: of ``Real = np.float64``."""
    match node:
        case ast.Assign(targets=[ast.Name() as name], value=ast.Attribute() | ast.Name() as value):
            return [(name, value)]
    return []


def meant_by(node: ast.AST, names: dict[str, str]) -> str:
    """The name of a library that an expression stands for, by what names stand for; empty for any other."""
    if isinstance(node, ast.Attribute):
        owner = meant_by(node.value, names)
        return owner and f"{owner}.{node.attr}"
    return names.get(node.id, "") if isinstance(node, ast.Name) else ""


def _imports(node: ast.Import | ast.ImportFrom) -> list[tuple[str, str]]:
    """The names that an import binds, and what each stands for; empty for what is relative to the module."""
    if isinstance(node, ast.ImportFrom):
        source = "" if node.level else f"{node.module}."
        if node.names[0].name == "*":
            return [(name, source + name) for name in ALL_OF.get(source[:-1], ())]
        return [(part.asname or part.name, source and source + part.name) for part in node.names]
    return [
        (part.asname, part.name) if part.asname else (part.name.partition(".")[0],) * 2  # import a.b binds a
        for part in node.names
    ]


def _statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a module outside functions and classes, in their order."""
    found: list[ast.stmt] = []
    for node in body:
        found.append(node)
        if not isinstance(node, Function | ast.ClassDef):
            for part in ("body", "orelse", "finalbody"):
                found += _statements(getattr(node, part, []))
            for handler in getattr(node, "handlers", []):
                found += _statements(handler.body)
    return found


def _is_scalar(node: ast.expr, scalars: set[str]) -> bool:
    """Whether an expression surely gives no array."""
    match node:
        case ast.Constant() | ast.JoinedStr() | ast.Dict() | ast.List() | ast.Set() | ast.Lambda() | ast.Compare():
            return True
        case ast.Tuple():
            return all(_is_scalar(part, scalars) for part in node.elts)
        case ast.Name():
            return node.id in scalars
        case ast.BinOp():
            return _is_scalar(node.left, scalars) and _is_scalar(node.right, scalars)
        case ast.UnaryOp():
            return _is_scalar(node.operand, scalars)
        case ast.Attribute(value=ast.Name(), attr="pi" | "e" | "inf" | "nan" | "newaxis"):
            return True
        case ast.Call(func=ast.Name(id=name)) if name in SCALARS:
            return all(_is_scalar(part, scalars) for part in node.args)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math" | "cmath"))):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="sqrt" | "exp" | "sin" | "cos")):
            return all(_is_scalar(part, scalars) for part in node.args)
    return False


def names_in(target: ast.expr) -> list[str]:
    """The names that an assignment binds."""
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Tuple | ast.List):
        return [name for part in target.elts for name in names_in(part)]
    return names_in(target.value) if isinstance(target, ast.Starred) else []


def name_of(function: ast.expr) -> str:
    """The last name of a dotted expression; empty for any other."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def is_compiled(node: Function | ast.ClassDef) -> bool:
    """Whether a function or class is handed to a compiler by its decorators."""
    return any(map(_names_compiler, node.decorator_list))


def _names_compiler(expression: ast.expr) -> bool:
    return any(isinstance(x, ast.Name | ast.Attribute) and name_of(x) in COMPILED for x in ast.walk(expression))


def handed_to_compilers(tree: ast.Module) -> frozenset[str]:
    """The names of functions that the module hands to a compiler by a call: of ``fast = njit(slow)`` ``slow``."""
    calls = [part for part in ast.walk(tree) if isinstance(part, ast.Call) and _names_compiler(part.func)]
    return frozenset(given.id for call in calls for given in call.args if isinstance(given, ast.Name))
