"""A primitive: name, operands, forward, residuals and VJP rules, declared in one place and checked when built.

The names of a rule's parameters after ``ct`` *are* the declaration of what it reads. Each is an operand (``x``), the
output (``out``, or the name of one of several outputs), a residual (``lu``), a static parameter (``axis``), or
``x_spec`` / ``out_spec`` for shape and dtype without bytes. Values are saved; specs and parameters are not arrays and
cost nothing.
"""

import dis
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import Any

import numpy as np
from attrs import define, field, frozen

from pullback.words.errors import DeclarationError

RESERVED = ("ct", "out", "needed", "index")
SPEC = "_spec"
REACHES = {"": (), "place": (), "moved": (), "reduced": ("axis", "keepdims"), "before": ("axis",), "line": ("axis",)}


@frozen
class Rule:
    """One VJP rule: what it reads, in the order in which it is called, and which operands it gives cotangents for."""

    fn: Callable[..., Any] = field(repr=False)
    operands: tuple[str, ...]
    reads: tuple[str, ...]
    values: tuple[str, ...]
    """The part of ``reads`` that names arrays: what is saved."""

    @property
    def joint(self) -> bool:
        """True when one call yields the cotangents of several operands."""
        return len(self.operands) > 1


@frozen
class Output:
    """How an output is to be treated: ``view`` may share memory with an operand; ``nbytes`` prices an output that is
    no array."""

    view: bool = False
    nbytes: Callable[[Any], int] | None = field(default=None, repr=False)


@define(eq=False, slots=False)
class Primitive:
    """A differentiable operation: what authors build with :func:`primitive` and the executor calls.

    ``operands`` are positional arrays, ``params`` keyword-only metadata. A primitive with a ``family`` takes any number
    of operands under one name. ``serves`` are the NumPy functions that mean this primitive. Calling it with plain
    arrays runs the forward; with a tracer among the operands, records it.
    """

    name: str
    forward: Callable[..., Any] = field(repr=False)
    operands: tuple[str, ...]
    family: str | None = None
    params: tuple[str, ...] = ()
    residuals: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    nondiff: tuple[str, ...] = ()
    serves: tuple[Callable[..., Any], ...] = field(default=(), repr=False)
    view: bool = False
    symbol: str = ""
    opaque: Mapping[str, Callable[[Any], int]] = field(factory=dict, repr=False)
    elementwise: bool = False
    linear: tuple[str, ...] = ()
    """The operands in which the primitive is linear together, the others held fixed: its tangent is the forward at
    their tangents."""
    bilinear: tuple[str, ...] = ()
    """The operands in each of which the primitive is linear, all others held fixed, as both of a matrix product."""
    reach: str = ""
    """On which elements of the operands an element of the output depends, for sparse Jacobians: on those at its own
    ``"place"`` after broadcasting; on one of them, which was ``"moved"``; on those that ``np.sum`` with this ``axis``
    and ``keepdims`` adds up there (``"reduced"``); on its ``"line"`` along ``axis``; on what stands ``"before"`` it
    there, and itself. Empty: on all, unless ``elementwise``, ``linear`` or ``view`` tells more."""
    masks: bool = False
    """Its rules send a cotangent of exactly 0 to what was not taken: what happened to that before must not make a
    NaN of it."""
    trusted: bool = False
    """The results of its rules are not checked at run time: the table of the core, which conformance tests check
    instead."""
    defaults: Mapping[str, Any] = field(factory=dict, repr=False)
    """Default values of the static parameters."""
    rules: dict[str, tuple[Rule, ...]] = field(factory=dict, repr=False)
    jvps: dict[str, Rule] = field(factory=dict, repr=False, init=False)
    """Rules for tangents, for operands whose rule cannot be had from what is said above (see ``tangents``)."""
    forms: dict[Any, Any] = field(factory=dict, repr=False, init=False)
    """The specialised record layouts of this primitive, made on first use."""

    def __attrs_post_init__(self) -> None:
        self.__doc__ = getattr(self.forward, "__doc__", None)  # as it stands: who reads it cleans it
        _check_names(self)

    def __call__(self, *operands: Any, **params: Any) -> Any:
        if len(params) < len(self.defaults):
            params = {**self.defaults, **params}
        for operand in operands:
            record = getattr(type(operand), "__pullback_record__", None)
            if record is not None:
                return record(self, operands, params)
        result = self.forward(*operands, **params)
        return result[0] if self.residuals else result

    def vjp(self, *operands: str, saves: tuple[str, ...] | None = None, fn: Callable[..., Any] | None = None) -> Any:
        """Declare the rule for one operand, or a joint rule for several (it returns one cotangent each).

        Use as a decorator, ``@softplus.vjp("x")``, or hand the function over with ``fn=``. ``saves`` names what the
        rule reads where its signature cannot be inspected. A second rule for the same operand is an alternative that
        saves something else. Raises :class:`DeclarationError` for unknown names and for a rule that captures an array.
        """

        def declare(rule_fn: Callable[..., Any]) -> Callable[..., Any]:
            rule = _build_rule(self, rule_fn, operands, saves)
            for operand in operands:
                self.rules[operand] = (*self.rules.get(operand, ()), rule)
            self.forms.clear()
            return rule_fn

        if not operands:
            message = (
                f"{self.name}.vjp() names no operand; name one of {self.operand_names}, as in "
                f"@{self.name}.vjp({self.operand_names[0]!r})"
            )
            raise DeclarationError(message)
        for operand in operands:
            if operand not in self.operand_names:
                message = f"{self.name} has no operand {operand!r}; its operands are {self.operand_names}"
                raise DeclarationError(message)
        return declare if fn is None else declare(fn)

    def jvp(self, operand: str, *, saves: tuple[str, ...] | None = None, fn: Callable[..., Any] | None = None) -> Any:
        """Declare the JVP rule for one operand: it takes its tangent, then what it reads, and returns its part of the
        output's tangent.

        Never needed: without one the rule of an elementwise or linear primitive is derived, and any other VJP rule is
        transposed at the price of a trace for each call. Raises :class:`DeclarationError` as :meth:`vjp` does.
        """

        def declare(rule_fn: Callable[..., Any]) -> Callable[..., Any]:
            self.jvps[operand] = _build_rule(self, rule_fn, (operand,), saves)
            return rule_fn

        _require_known(self, "jvp", (operand,), self.operand_names)
        return declare if fn is None else declare(fn)

    @property
    def operand_names(self) -> tuple[str, ...]:
        """The operand names; for a family its one name stands last."""
        return (*self.operands, self.family) if self.family else self.operands

    def name_of(self, position: int) -> str:
        """The name of the operand at a position; ``arrays[3]`` inside a family."""
        if position < len(self.operands):
            return self.operands[position]
        return f"{self.family}[{position - len(self.operands)}]"

    def rule_name(self, position: int) -> str:
        """The name under which the rule of the operand at ``position`` is declared."""
        return self.operands[position] if position < len(self.operands) else str(self.family)


@frozen
class Composite:
    """A NumPy function made of primitives: it needs no rule of its own. ``function`` takes what NumPy's does."""

    name: str
    function: Callable[..., Any] = field(repr=False)
    serves: tuple[Callable[..., Any], ...] = field(repr=False)
    plain: bool = False
    """True where the derivative is zero wherever it exists: tracers go in as their values, and the result is plain."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def composite(*serves: Callable[..., Any], name: str | None = None) -> Callable[[Callable[..., Any]], Composite]:
    """Decorator: the function below is what ``serves`` mean on tracers, written with primitives and NumPy functions."""

    def build(function: Callable[..., Any]) -> Composite:
        return Composite(name or function.__name__.strip("_"), function, serves)

    return build


def primitive(forward: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A :class:`Primitive` from a forward function; decorator with or without options.

    Positional parameters of ``forward`` are operands, ``*arrays`` is a family, keyword-only parameters are static.
    Options: ``name``, ``operands``, ``params`` (both where the signature cannot be read), ``residuals`` (``forward``
    then returns ``(out, {"lu": lu})``), ``outputs`` (names, where it returns a tuple), ``nondiff`` (operands without
    derivative, such as an index), ``serves`` (NumPy functions), ``view`` (the output may share memory with an operand),
    ``linear``, ``bilinear``, ``elementwise``, ``reach`` (for tangents and sparse Jacobians; the class explains them),
    ``opaque`` (``{"lu": nbytes_of}`` for residuals, operands or an ``out`` that are no arrays), ``masks`` (its rules
    send exact zeros to what was not taken, as those of ``where`` do). Raises :class:`DeclarationError` naming what is
    wrong.
    """
    if forward is None:
        return lambda fn: primitive(fn, **options)
    operands, family, params, defaults = _signature(forward, options)
    name = options.pop("name", None) or getattr(forward, "__name__", type(forward).__name__)
    rules, tangent_rules = options.pop("vjps", {}), options.pop("jvps", {})
    built = Primitive(
        name=name, forward=forward, operands=operands, family=family, params=params, defaults=defaults, **options
    )
    for operand, rule_fns in rules.items():
        for fn in rule_fns if isinstance(rule_fns, tuple) else (rule_fns,):
            built.vjp(operand, fn=fn)
    for operand, fn in tangent_rules.items():
        built.jvp(operand, fn=fn)
    return built


def elementwise(
    ufunc: Callable[..., Any], *, name: str = "", symbol: str = "", linear: str = "", masks: bool = False, **rules: Any
) -> Primitive:
    """One line of the table: a ufunc and a rule per operand, such as
    ``sin = elementwise(np.sin, x=lambda ct, x: ct * np.cos(x))``.

    The order of the keywords is the order of the operands. A tuple of rules are alternatives that save different
    things. ``symbol`` is the Python operator with the same meaning, which NumPy evaluates faster on scalars.
    """
    made: Primitive = primitive(
        ufunc, name=name or getattr(ufunc, "__name__", ""), operands=tuple(rules), params=(), vjps=rules, symbol=symbol,
        elementwise=True, trusted=True, serves=(ufunc,), linear=tuple(linear.split()), masks=masks,
    )  # fmt: skip
    return made


def zero_derivative(function: Callable[..., Any]) -> Composite:
    """A NumPy function whose derivative is zero wherever it exists: on tracers it gives NumPy's plain value."""

    def plain(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_plain, args), **{name: _plain(value) for name, value in kwargs.items()})

    return Composite(getattr(function, "__name__", "?"), plain, (function,), plain=True)


def _plain(x: Any) -> Any:
    """The concrete value of a tracer, told by its class; lists and tuples element by element."""
    look = getattr(type(x), "__pullback_value__", None)
    if look is not None:
        return look(x)
    return type(x)(map(_plain, x)) if type(x) in (list, tuple) else x


def _signature(
    forward: Callable[..., Any], options: dict[str, Any]
) -> tuple[tuple[str, ...], str | None, tuple[str, ...], dict[str, Any]]:
    """Operands, family, params and their defaults: as given in the options, else as the signature says."""
    if "operands" in options:
        return tuple(options.pop("operands")), options.pop("family", None), tuple(options.pop("params", ())), {}
    try:
        parameters = inspect.signature(forward).parameters.values()
    except (TypeError, ValueError):
        message = (
            f"the signature of {forward!r} cannot be read; name its operands: primitive(fn, operands=('x', 'y'), "
            "params=('axis',))"
        )
        raise DeclarationError(message) from None
    kinds = inspect.Parameter
    operands = tuple(p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD))
    family = next((p.name for p in parameters if p.kind is kinds.VAR_POSITIONAL), None)
    params = tuple(p.name for p in parameters if p.kind is kinds.KEYWORD_ONLY)
    defaults = {p.name: p.default for p in parameters if p.kind is kinds.KEYWORD_ONLY and p.default is not kinds.empty}
    return operands, family, params, defaults


def _check_names(prim: Primitive) -> None:
    """Refuse reserved names, names used twice, and names in options that are no operand."""
    kinds = {
        "operand": prim.operand_names,
        "residual": prim.residuals,
        "parameter": prim.params,
        "output": prim.outputs,
    }
    seen: dict[str, str] = {}
    for kind, names in kinds.items():
        for name in names:
            if name in RESERVED or name.endswith(SPEC):
                raise DeclarationError(
                    f"{prim.name}: {kind} {name!r} has a reserved name ({', '.join(RESERVED)}, *{SPEC}); rename it"
                )
            if name in seen:
                raise DeclarationError(
                    f"{prim.name}: {name!r} is both {seen[name]} and {kind}; the names of a primitive are disjoint"
                )
            seen[name] = kind
    if not prim.operand_names:
        raise DeclarationError(
            f"{prim.name} has no operand; arrays are positional parameters of the forward, metadata is keyword-only"
        )
    _require_known(prim, "nondiff", prim.nondiff, prim.operand_names)
    _require_known(prim, "reach", (prim.reach,), tuple(REACHES))
    _require_known(prim, "reach", REACHES[prim.reach], prim.params)
    _require_known(prim, "opaque", prim.opaque, (*prim.operand_names, *prim.residuals, *prim.outputs, "out"))


def _require_known(prim: Primitive, option: str, names: Iterable[str], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            message = f"{prim.name}: {option}= names {name!r}, which is none of {known}"
            raise DeclarationError(message)


def _build_rule(
    prim: Primitive, fn: Callable[..., Any], operands: tuple[str, ...], saves: tuple[str, ...] | None
) -> Rule:
    reads = tuple(saves) if saves is not None else _rule_reads(prim, fn)
    values = (*prim.operand_names, *prim.residuals, *prim.outputs, "out")
    specs = tuple(f"{name}{SPEC}" for name in (*prim.operand_names, *prim.outputs, "out"))
    known = (*values, *specs, *prim.params, "needed", "index")
    for name in reads:
        if name not in known:
            message = (
                f"the rule of {prim.name} for {', '.join(operands)} reads {name!r}, which is none of its operands "
                f"{prim.operand_names}, out, residuals {prim.residuals}, parameters {prim.params}, or a *{SPEC} of "
                "these"
            )
            raise DeclarationError(message)
    if len(operands) > 1 and "needed" not in reads and len(set(operands)) != len(operands):
        message = f"the joint rule of {prim.name} names an operand twice: {operands}"
        raise DeclarationError(message)
    _refuse_captured_arrays(prim, fn, operands)
    return Rule(fn, operands, reads, tuple(n for n in reads if n in values))


def _rule_reads(prim: Primitive, fn: Callable[..., Any]) -> tuple[str, ...]:
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        message = (
            f"the signature of the rule of {prim.name} cannot be read; say what it reads: {prim.name}.vjp('x', "
            "saves=('x',), fn=rule)"
        )
        raise DeclarationError(message) from None
    if not parameters or parameters[0].kind in (
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    ):
        message = (
            f"the rule of {prim.name} takes no cotangent; its first parameter is ct, the names after it are what is "
            "saved"
        )
        raise DeclarationError(message)
    if any(p.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) for p in parameters):
        message = (
            f"the rule of {prim.name} has *args or **kwargs, which declare nothing; name what it reads, or pass "
            "saves=(...)"
        )
        raise DeclarationError(message)
    return tuple(p.name for p in parameters[1:])


def _refuse_captured_arrays(prim: Primitive, fn: Callable[..., Any], operands: tuple[str, ...]) -> None:
    """A rule may read only what it declares: no array in a closure cell, a global it names, or a default."""
    function = inspect.unwrap(fn)
    code = getattr(function, "__code__", None)
    if code is None:
        return
    found = dict(zip(code.co_freevars, _cell_contents(function), strict=True))
    suspects = {name: function.__globals__[name] for name in code.co_names if _is_array(function.__globals__.get(name))}
    if suspects:  # rarely: reading the instructions takes longer than all the rest of a declaration
        found |= {name: value for name, value in suspects.items() if name in global_names(code)}
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    found |= {f"a default ({position})": value for position, value in enumerate(defaults)}
    for name, value in found.items():
        if _is_array(value):
            message = (
                f"the rule of {prim.name} for {', '.join(operands)} captures the array {name!r}; nothing counts, "
                "guards or recomputes it. Make it an operand, a residual of the forward, or a keyword parameter"
            )
            raise DeclarationError(message)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or hasattr(type(value), "__pullback_record__")


def global_names(code: CodeType) -> set[str]:
    """The global names a code object reads; ``co_names`` would add its attribute names."""
    return {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}


def _cell_contents(function: Any) -> list[Any]:
    contents = []
    for cell in function.__closure__ or ():
        try:
            contents.append(cell.cell_contents)
        except ValueError:  # an empty cell: a name bound later
            contents.append(None)
    return contents
