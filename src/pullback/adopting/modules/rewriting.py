"""What is written into the copy of a module, beside an ``__import__`` of its own: questions that cost nothing while no
trace is under way.

| in a function of the module | becomes |
|---|---|
| its beginning | ``if live: a, b = arguments(a, b)`` |
| ``u = np.arange(n) * dx`` | ... ``if live: u = fresh(u)`` |
| ``self.u = np.arange(n) * dx`` | ... ``if live: fresh_attribute(self, "u")`` |
| ``TABLE``, an array of the module | ``(TABLE if not live else of_module(TABLE))`` |
| ``float(t)``, ``int``, ``complex``, ``type``, ``isinstance`` | ``(float if not live else called(float))(t)`` |
| ``np.float64(t)``, ``np.int64(t)`` | the same |
| ``x.__class__`` | ``(x.__class__ if not live else called(type)(x))`` |
| ``case float():`` | ``case kind():`` of a name that has been bound to ``(float if not live else matching(float))`` |
| ``kind(t)``, of a parameter | ``(kind if not live else called(kind))(t)`` |
| ``map(float, parts)`` | ``map(float if not live else called(float), parts)``; ``key=float`` likewise |
| ``type(a) is csr_matrix`` | ``type(a) is classes(csr_matrix)``, traced or not |
| ``np.sum(parts)``, of NumPy | ``(np.sum if not live else with_lists(np.sum))(parts)`` |
| ``math.sin(t)``, of the namespace | ``(plain_math.sin if not live else math.sin)(t)`` |
| ``Body(u * 2)``, of a class | ``Body(u * 2 if not live else fresh(u * 2))`` |
| ``"%g" % t`` | ``("%g" % t if not live else formatted("%g", t))`` |
| ``for i in range(n): ...`` | the same, ``if whole_loop(...) is None`` (``adopting.loops.loop_code.asked_for``) |
| its end | ``if live: leaving(result)`` |

Lines and columns stay those of the file. Nothing else of a program changes, and functions that numba compiles stay as
they are.
"""

import ast
from copy import deepcopy
from typing import Any, Final

from attrs import define, field

from pullback.adopting.loops.loop_code import LEFT_OUT, LOOPS, LoopCode, asked_for, first_refused, is_candidate
from pullback.adopting.modules import numpy_calls
from pullback.adopting.modules.module_names import (
    Function,
    handed_to_compilers,
    imported_names,
    is_compiled,
    meant_by,
    name_of,
    names_in,
    names_of_arrays,
)
from pullback.words.plugins import LIVE_NAME

ARGUMENTS: Final = "__pb_arguments__"
FRESH: Final = "__pb_fresh__"
FRESH_ATTRIBUTE: Final = "__pb_fresh_attribute__"
OF_MODULE: Final = "__pb_of_module__"
CALLED: Final = "__pb_called__"
CLASSES: Final = "__pb_classes__"
MATCHING: Final = "__pb_matching__"
WITH_LISTS: Final = "__pb_with_lists__"
FORMATTED: Final = "__pb_formatted__"
LEAVING: Final = "__pb_leaving__"
PLAIN_MODULES: Final = {"math": "__pb_math__", "cmath": "__pb_cmath__"}
"""Python's own modules of numbers, which are called while no trace is under way: the namespace would cost a call."""
READS_SOURCE: Final = "__pb_reads_source__"
READ_SOURCE: Final = ("getsource", "getsourcelines", "getsourcefile", "open")
ITSELF: Final = frozenset((*READ_SOURCE[:-1], *(f"inspect.{name}" for name in READ_SOURCE[:-1])))
"""Functions that read the source of a program: they raise when they are called."""
RESULT: Final = "__pb_result__"
LISTED: Final = ("numpy", "numpy.linalg", "numpy.fft")
"""Modules whose functions take lists for arrays, and look into these without asking what is in them."""
TAKE_LISTS: Final = frozenset(vars(numpy_calls)) | frozenset(
    "block bmat matrix asmatrix multi_dot lexsort select choose piecewise apply_along_axis apply_over_axes histogramdd "
    "zeros ones empty errstate printoptions".split()
)
"""Functions that do ask, those of which a list is no array, and those of which no argument is one."""

ASKED: Final = frozenset(("float", "int", "complex", "type", "isinstance", "hasattr"))
"""Builtin functions of which a tracer is asked."""
ASKED_IN_PATTERNS: Final = ("numpy", "numbers", "collections.abc")
"""Modules that have classes of which a tracer may be an instance."""
SCALAR_TYPES: Final = frozenset(numpy_calls.SCALAR_TYPES)
"""NumPy's types of numbers, which convert as ``float`` and ``int`` do."""


def rewritten(tree: ast.Module, file: str = "<adopted>") -> ast.Module:
    """The module with these questions written in."""
    rewriter = Rewriter(names_of_arrays(tree), imported_names(tree), file, handed_to_compilers(tree))
    for node in tree.body:
        rewriter.visit(node)
    return ast.fix_missing_locations(tree)


def _bound(node: ast.AST) -> set[str]:
    """The names that are local to a function, without those of functions in it."""
    found: set[str] = set()
    declared: set[str] = set()
    todo: list[ast.AST] = list(ast.iter_child_nodes(node))
    while todo:
        part = todo.pop()
        if isinstance(part, ast.Global):
            declared |= set(part.names)
        elif isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            found.add(part.id)
        elif isinstance(part, ast.arg):
            found.add(part.arg)
        elif isinstance(part, ast.alias):
            found.add((part.asname or part.name).partition(".")[0])
        elif isinstance(part, ast.ExceptHandler) and part.name:
            found.add(part.name)
        if isinstance(part, Function | ast.ClassDef):
            found.add(part.name)
        elif not isinstance(part, ast.Lambda):
            todo += ast.iter_child_nodes(part)
    return found - declared


def _live() -> ast.expr:
    return ast.Name(LIVE_NAME, ast.Load())


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _if_live(at: ast.AST, *statements: ast.stmt) -> ast.stmt:
    """The statements, in the line of ``at``, while a trace is under way."""
    made = ast.If(_live(), list(statements), [])
    for part in ast.walk(made):
        ast.copy_location(part, at)
    return made


def _unless_live(plain: ast.expr, live: ast.expr) -> ast.expr:
    made = ast.copy_location(ast.IfExp(ast.UnaryOp(ast.Not(), _live()), plain, live), plain)
    for part in (live, made.test, *ast.walk(made.test)):
        ast.copy_location(part, plain)
    return made


def _may_be_new(value: ast.expr | None) -> bool:
    """Whether an expression may give an array that nobody else holds."""
    return isinstance(value, ast.Call | ast.BinOp | ast.UnaryOp | ast.IfExp | ast.Await | ast.Subscript)


def _may_take_lists(call: ast.Call) -> bool:
    """Whether an argument of a call may be a list, by the way it is written."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    never = ast.Constant | ast.BinOp | ast.UnaryOp | ast.Compare | ast.Lambda
    return not all(isinstance(part, never) for part in given)


def _as_fresh(value: ast.expr) -> ast.expr:
    """An argument that nobody else holds; one that asks already stays as it is, or its text would be doubled."""
    asks = any(isinstance(part, ast.Name) and part.id == LIVE_NAME for part in ast.walk(value))
    if asks or not isinstance(value, ast.Call | ast.BinOp | ast.UnaryOp):
        return value
    return _unless_live(value, _call(FRESH, value))


@define
class Rewriter(ast.NodeTransformer):
    """Writes the questions into functions. ``arrays`` are the names that may stand for arrays in the module."""

    arrays: frozenset[str]
    imported: dict[str, str]
    """What the names stand for that imports bind."""
    file: str
    compiled: frozenset[str]
    """Functions that are handed to a compiler by their name."""
    hidden: list[set[str]] = field(factory=list)
    """The local names of the functions around."""
    parameters: list[list[str]] = field(factory=list)
    """Those of the functions around, each of which may be ``float`` or the like."""

    # Functions.
    def _function(self, node: Function) -> Any:
        if is_compiled(node) or (node.name in self.compiled and not self.hidden):
            return node
        self.hidden.append(_bound(node))
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        self.parameters.append(names)
        node.body = self._body(node.body)
        self.parameters.pop()
        self.hidden.pop()
        first = 1 if ast.get_docstring(node, clean=False) is not None else 0
        at = node.body[first] if len(node.body) > first else node.body[0]
        if names:
            targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
            values: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
            taken = ast.Assign([ast.Tuple(targets, ast.Store())], _call(ARGUMENTS, *values))
            node.body.insert(first, _if_live(at, taken))
            if not isinstance(node.body[-1], ast.Return | ast.Raise):
                node.body.append(_if_live(node.body[-1], ast.Expr(_call(LEAVING, ast.Constant(None)))))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """A function, and those in it."""
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        """As a function."""
        return self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """The expression in it."""
        self.hidden.append(_bound(node))
        self.generic_visit(node)
        self.hidden.pop()
        return node

    def _body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in statements:
            made = self.visit(statement)
            found += made if isinstance(made, list) else [made]
        return found

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        """A class, unless it is compiled."""
        return node if is_compiled(node) else self.generic_visit(node)

    # Statements in functions.
    def visit_Return(self, node: ast.Return) -> Any:
        """What is returned is looked at while it is."""
        self.generic_visit(node)
        if not self.hidden or node.value is None or isinstance(node.value, ast.Constant):
            return [_if_live(node, ast.Expr(_call(LEAVING, ast.Constant(None)))), node] if self.hidden else node
        kept = ast.copy_location(ast.Assign([ast.Name(RESULT, ast.Store())], node.value), node)
        asked = _if_live(node, ast.Expr(_call(LEAVING, ast.Name(RESULT, ast.Load()))))
        node.value = ast.copy_location(ast.Name(RESULT, ast.Load()), node)
        return [kept, asked, node]

    def _binds(self, node: Any, target: ast.expr) -> Any:
        self.generic_visit(node)
        if not self.hidden or not _may_be_new(getattr(node, "value", None)):
            return node
        match target:
            case ast.Attribute(value=ast.Name(id=owner), attr=attr):
                return [
                    node,
                    _if_live(node, ast.Expr(_call(FRESH_ATTRIBUTE, ast.Name(owner, ast.Load()), ast.Constant(attr)))),
                ]
        asked: list[ast.stmt] = [
            ast.Assign([ast.Name(name, ast.Store())], _call(FRESH, ast.Name(name, ast.Load())))
            for name in names_in(target)
        ]
        return [node, _if_live(node, *asked)] if asked else node

    def visit_Assign(self, node: ast.Assign) -> Any:
        """A name that is bound to an array which nobody else holds."""
        return self._binds(node, node.targets[0]) if len(node.targets) == 1 else self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """The same."""
        return self._binds(node, node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """The same: a number may become an array."""
        self.generic_visit(node)
        if not self.hidden or not isinstance(node.target, ast.Name):
            return node
        name = node.target.id
        asked = ast.Assign([ast.Name(name, ast.Store())], _call(FRESH, ast.Name(name, ast.Load())))
        return [node, _if_live(node, asked)]

    def visit_For(self, node: ast.For) -> Any:
        """A loop that can be written backwards from its text is asked for as a whole."""
        if not self.hidden or not is_candidate(node):
            if self.hidden:
                LEFT_OUT[self.file, node.lineno] = first_refused(node)
            return self.generic_visit(node)
        number, code = len(LOOPS), LoopCode(deepcopy(node), self.file)
        LOOPS.append(code)
        self.generic_visit(node)
        return asked_for(node, number, code.assigned, _live())

    def visit_Match(self, node: ast.Match) -> Any:
        """A class in a pattern is asked for what a tracer stands for."""
        self.generic_visit(node)
        patterns = [p for case in node.cases for p in ast.walk(case.pattern) if isinstance(p, ast.MatchClass)]
        bound: list[ast.stmt] = []
        for pattern in patterns if self.hidden else ():
            if not self._may_be_traced(pattern.cls):
                continue
            name = f"{MATCHING}{len(bound)}"
            kind = ast.Assign([ast.Name(name, ast.Store())], _call(MATCHING, pattern.cls))
            bound.append(kind)
            for part in ast.walk(kind):
                ast.copy_location(part, node)
            kind.value = _unless_live(pattern.cls, kind.value)
            pattern.cls = ast.copy_location(ast.Name(name, ast.Load()), pattern.cls)
        return [*bound, node]

    def _may_be_traced(self, cls: ast.expr) -> bool:
        """Whether a class may be that of a traced number or array."""
        if isinstance(cls, ast.Name) and cls.id in ("float", "complex", "int"):
            return True
        return meant_by(cls, self.imported).rpartition(".")[0] in ASKED_IN_PATTERNS

    # Expressions in functions.
    def visit_Name(self, node: ast.Name) -> Any:
        """An array of the module."""
        if not self.hidden or not isinstance(node.ctx, ast.Load) or node.id not in self.arrays:
            return node
        if any(node.id in names for names in self.hidden):
            return node
        return _unless_live(node, _call(OF_MODULE, ast.Name(node.id, ast.Load())))

    def visit_Call(self, node: ast.Call) -> Any:
        """A builtin that would ask a tracer for its number, or what reads the source of the program."""
        text = ast.unparse(node.func) if name_of(node.func) in READ_SOURCE else ""
        if text in ITSELF or (text == "open" and node.args and ast.unparse(node.args[0]) == "__file__"):
            made = _call(READS_SOURCE, ast.Constant(f"{self.file}:{node.lineno}"), ast.Constant(text))
            return ast.copy_location(made, node)
        module, _, name = meant_by(node.func, self.imported).rpartition(".")
        self.generic_visit(node)
        if self.hidden and name_of(node.func)[:1].isupper():  # a class, whose __init__ may be nobody's
            node.args = [_as_fresh(part) for part in node.args]
            for keyword in node.keywords:
                keyword.value = _as_fresh(keyword.value)
        if self.hidden:
            self._asked_by_others(node)
        match node.func:
            case ast.Name(id=called) if self.hidden and node.args and not node.keywords and self._asks(called):
                node.func = _unless_live(node.func, _call(CALLED, ast.Name(called, ast.Load())))
            case _ if self.hidden and module:
                if module in PLAIN_MODULES:
                    node.func = self._plainly(node.func, module, name)
                elif self._is_type_of_numbers(f"{module}.{name}") and node.args:
                    node.func = _unless_live(node.func, _call(CALLED, node.func))
                elif module in LISTED and name not in TAKE_LISTS and _may_take_lists(node):
                    node.func = _unless_live(node.func, _call(WITH_LISTS, node.func))
        return node

    def _asks(self, name: str) -> bool:
        """Whether a name stands for a builtin of which a tracer is asked, or for a parameter, which may be one."""
        if self.parameters and name in self.parameters[-1]:
            return True
        return name in ASKED and not any(name in names for names in self.hidden)

    @staticmethod
    def _is_type_of_numbers(name: str) -> bool:
        """Whether a name of a library is one of NumPy's types of numbers, handed on by ``library.numpy``, too."""
        module, _, last = name.rpartition(".")
        return module.rpartition(".")[2] == "numpy" and last in SCALAR_TYPES

    def _asked_by_others(self, node: ast.Call) -> None:
        """``float`` and the like, where they are handed to who calls them."""

        def asking(given: ast.expr) -> ast.expr:
            asks = isinstance(given, ast.Name) and self._asks(given.id)
            return _unless_live(given, _call(CALLED, given)) if asks else given

        if isinstance(node.func, ast.Name) and node.func.id in ("map", "filter") and node.args:
            node.args[0] = asking(node.args[0])
        for keyword in node.keywords:
            if keyword.arg == "key":
                keyword.value = asking(keyword.value)

    @staticmethod
    def _plainly(function: ast.expr, module: str, name: str) -> ast.expr:
        """A function of ``math``: Python's own while no trace is under way."""
        own = ast.Attribute(ast.Name(PLAIN_MODULES[module], ast.Load()), name, ast.Load())
        for part in ast.walk(own):
            ast.copy_location(part, function)
        return _unless_live(own, function)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """A type is compared with a class, for which a namespace of ours may have something else."""
        sides = [node.left, *node.comparators]
        asks = [isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and x.func.id == "type" for x in sides]
        self.generic_visit(node)
        if self.hidden and any(asks):
            sides = [
                x if asked or isinstance(x, ast.Constant) else ast.copy_location(_call(CLASSES, x), x)
                for x, asked in zip([node.left, *node.comparators], asks, strict=True)
            ]
            node.left, node.comparators = sides[0], sides[1:]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """The class of what a tracer stands for."""
        self.generic_visit(node)
        if not self.hidden or node.attr != "__class__" or not isinstance(node.ctx, ast.Load):
            return node
        return _unless_live(node, ast.Call(_call(CALLED, ast.Name("type", ast.Load())), [node.value], []))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """A text that values are put into."""
        self.generic_visit(node)
        match node.left:
            case ast.Constant(value=str()) if self.hidden and isinstance(node.op, ast.Mod):
                return _unless_live(node, _call(FORMATTED, node.left, node.right))
        return node
