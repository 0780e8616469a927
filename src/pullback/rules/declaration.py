"""A primitive: name, operands, forward, residuals and VJP rules, declared in one place and checked when built.

The names of a rule's parameters after ``ct`` *are* the declaration of what it reads (see ``rule_names``).
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

import numpy as np
from attrs import define, field, frozen

from pullback.rules.declaration_checks import (
    build_rule,
    check_collective,
    check_names,
    require_known,
    signature_of,
)
from pullback.rules.guarded_calls import called_guarded, refuse_tracers
from pullback.rules.rule_names import Names, Rule
from pullback.travelling.declared import declaring_module, reduced
from pullback.words.errors import DeclarationError
from pullback.words.ordered_calls import UNDER_WAY, ordered_forward

Function = TypeVar("Function", bound=Callable[..., Any])

REACHES = {"": (), "place": (), "moved": (), "reduced": ("axis", "keepdims"), "before": ("axis",), "line": ("axis",)}
"""What ``Primitive.reach`` may say, and the parameters that it needs."""


class _DeclaredOnce:
    """What is found by its name wherever it travels, and never copied."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(self, DECLARED, sys._getframe(1))

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


@define(eq=False, slots=False, kw_only=True)
class Primitive(_DeclaredOnce, Names):
    """A differentiable operation: what authors build with :func:`primitive` and the executor calls.

    ``operands`` are positional arrays, ``params`` keyword-only metadata. A primitive with a ``family`` takes any number
    of operands under one name. ``serves`` are the NumPy functions that mean this primitive. Calling it with plain
    arrays runs the forward; with a tracer among the operands, records it.

    Example
    -------
    >>> import numpy as np
    >>> import pullback as pb
    >>> @pb.primitive
    ... def doubled(x):
    ...     return 2.0 * x
    >>> doubled.operands
    ('x',)
    """

    forward: Callable[..., Any] = field(repr=False)
    serves: tuple[Callable[..., Any], ...] = field(default=(), repr=False)
    view: bool = False
    symbol: str = ""
    linear: tuple[str, ...] = ()
    """The operands in which the primitive is linear together, the others held fixed: its tangent is the forward at
    their tangents."""
    bilinear: tuple[str, ...] = ()
    """The operands in each of which the primitive is linear, all others held fixed, as both of a matrix product."""
    reach: str = ""
    """The elements of of the operands an element of the output depends, for sparse Jacobians: on those at its own
    ``"place"`` after broadcasting; on one of them, which was ``"moved"``; on those that ``np.sum`` with this ``axis``
    and ``keepdims`` adds up there (``"reduced"``); on its ``"line"`` along ``axis``; on what stands ``"before"`` it
    there, and itself. Empty: on all, unless ``elementwise``, ``linear`` or ``view`` tells more."""
    masks: bool = False
    """Its rules send a cotangent of exactly 0 to what was not taken: what happened to that before must not make a
    NaN of it."""
    ordered: bool = False
    """Its calls have an effect. Generated functions make each of them, once, at the moment at which the program comes
    to it, and keep their order. It gets copies, and what it gives is in memory of its own."""
    trusted: bool = False
    """The results of its rules are not checked at run time: the table of the core, which conformance tests check
    instead."""
    guarded: bool = True
    """Its calls are looked at (see ``guarded_calls``): whatever stands outside the library."""
    module: str = field(factory=declaring_module, repr=False, init=False)
    """The module that declares it, by which another process finds it."""
    defaults: Mapping[str, Any] = field(factory=dict, repr=False)
    """Default values of the static parameters."""
    rules: dict[str, tuple[Rule, ...]] = field(factory=dict, repr=False)
    jvps: dict[str, Rule] = field(factory=dict, repr=False, init=False)
    """Rules for tangents, for operands whose rule cannot be had from what is said above (see ``tangents``)."""
    forms: dict[Any, Any] = field(factory=dict, repr=False, init=False)
    """The specialised record layouts of this primitive, made on first use."""

    callers: dict[tuple[type, ...], Any] = field(factory=dict, repr=False, init=False)
    """The fast ways to call this primitive, by the types of the operands (see ``tracing.callers_by_type``); None where
    a call has been seen, False where there is no fast way."""

    @property
    def has_alternatives(self) -> bool:
        """Whether some operand has several rules, of which the one is taken that reads what is held already."""
        return any(len(rules) > 1 for rules in self.rules.values())

    def __attrs_post_init__(self) -> None:
        self.__doc__ = getattr(self.forward, "__doc__", None)  # as it stands: who reads it cleans it
        check_names(self)
        require_known(self, "reach", (self.reach,), tuple(REACHES))
        require_known(self, "reach", REACHES[self.reach], self.params)
        if self.collective:
            self.ordered = True
            check_collective(self)
        if self.ordered:
            if self.view:
                raise DeclarationError(f"{self.name} is ordered, so it can be no view; leave one of the two out")
            self.forward = ordered_forward(self.forward, copies=self.guarded or not self.collective)

    def __call__(self, *operands: Any, **params: Any) -> Any:
        if len(params) < len(self.params):
            params = {**self.defaults, **params}
        if self.collective and (under_way := UNDER_WAY.get()):
            return under_way[-1].kinds.tracer.__pullback_record__(self, operands, params)
        for operand in operands:
            kind = type(operand)
            if kind is not np.ndarray and kind is not float:  # they are asked most often, and asking takes long
                record = getattr(kind, "__pullback_record__", None)
                if record is not None:
                    return record(self, operands, params)
        result = self.computed(operands, params)
        return result[0] if self.residuals else result

    def computed(self, operands: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
        """What the forward gives for plain operands, with the residuals."""
        if self.guarded:
            refuse_tracers(self, params)
            return called_guarded(self, operands, params, locked=False)
        return self.forward(*operands, **params)

    @overload
    def vjp(self, *operands: str, saves: tuple[str, ...] | None = None) -> Callable[[Function], Function]: ...

    @overload
    def vjp(self, *operands: str, saves: tuple[str, ...] | None = None, fn: Function) -> Function: ...

    def vjp(self, *operands: str, saves: tuple[str, ...] | None = None, fn: Any = None) -> Any:
        """Declare the rule for one operand, or a joint rule for several (it returns one cotangent each).

        Use as a decorator, ``@softplus.vjp("x")``, or hand the function over with ``fn=``. ``saves`` names what the
        rule reads where its signature cannot be inspected. A second rule for the same operand is an alternative that
        saves something else. Raises :class:`DeclarationError` for unknown names and for a rule that captures an array.
        """

        def declare(rule_fn: Callable[..., Any]) -> Callable[..., Any]:
            rule = build_rule(self, rule_fn, operands, saves)
            for operand in operands:
                self.rules[operand] = (*self.rules.get(operand, ()), rule)
            self.forms.clear()
            self.callers.clear()
            return rule_fn

        if not operands:
            raise DeclarationError(
                f"{self.name}.vjp() names no operand; name one of {self.operand_names}, as in "
                f"@{self.name}.vjp({self.operand_names[0]!r})"
            )
        for operand in operands:
            if operand not in self.operand_names:
                raise DeclarationError(f"{self.name} has no operand {operand!r}; its operands are {self.operand_names}")
        return declare if fn is None else declare(fn)

    @overload
    def jvp(self, operand: str, *, saves: tuple[str, ...] | None = None) -> Callable[[Function], Function]: ...

    @overload
    def jvp(self, operand: str, *, saves: tuple[str, ...] | None = None, fn: Function) -> Function: ...

    def jvp(self, operand: str, *, saves: tuple[str, ...] | None = None, fn: Any = None) -> Any:
        """Declare the JVP rule for one operand: it takes its tangent, then what it reads, and returns its part of the
        output's tangent.

        Never needed: without one the rule of an elementwise or linear primitive is derived, and any other VJP rule is
        transposed at the price of a trace for each call. Raises :class:`DeclarationError` as :meth:`vjp` does.
        """

        def declare(rule_fn: Callable[..., Any]) -> Callable[..., Any]:
            self.jvps[operand] = build_rule(self, rule_fn, (operand,), saves)
            return rule_fn

        require_known(self, "jvp", (operand,), self.operand_names)
        return declare if fn is None else declare(fn)


@frozen(eq=False)
class Composite(_DeclaredOnce):
    """A NumPy function made of primitives: it needs no rule of its own. ``function`` takes what NumPy's does.
    :func:`composite` makes one.

    Example
    -------
    >>> import numpy as np
    >>> import pullback as pb
    >>> type(pb.registry.find(np.linspace)).__name__
    'Composite'
    """

    name: str
    function: Callable[..., Any] = field(repr=False)
    serves: tuple[Callable[..., Any], ...] = field(repr=False)
    plain: bool = False
    """True where the derivative is zero wherever it exists: tracers go in as their values, and the result is plain."""
    direct: Primitive | None = None
    """The primitive that is called with the very arguments, where these are its operands and it knows their types."""
    how: Mapping[str, Any] = field(factory=dict, repr=False)
    """The parameters of that call."""
    module: str = field(factory=declaring_module, repr=False, init=False)
    """The module that declares it, by which another process finds it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


DECLARED = (Primitive, Composite)


def composite(
    *serves: Callable[..., Any],
    name: str | None = None,
    direct: Primitive | None = None,
    how: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Composite]:
    """Decorator: the function below is what ``serves`` mean on tracers, written with primitives and NumPy functions.

    Parameters
    ----------
    *serves
        NumPy functions; the function below takes what they take.
    name
        That of the composite; by default that of the function.
    direct
        The primitive that it hands its arguments on to where they are arrays and numbers given by position.
    how
        The parameters that it hands on as well, by default none.

    Returns
    -------
    A decorator that returns the :class:`Composite`, to be handed to :func:`register`.

    Raises
    ------
    RegistrationError
        By ``register``, where another declaration serves one of the functions.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> @pb.composite()
    ... def softplus(x):
    ...     return np.log1p(np.exp(x))
    >>> float(pb.grad(softplus)(0.0))
    0.5
    """

    def build(function: Callable[..., Any]) -> Composite:
        return Composite(name or function.__name__.strip("_"), function, serves, direct=direct, how=how or {})

    return build


def primitive(forward: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A :class:`Primitive` from a forward function, as :func:`pullback.primitive`, which says what the options are; of
    the core's own, whose calls are not guarded."""
    if forward is None:
        return lambda fn: primitive(fn, **options)
    operands, family, params, defaults = signature_of(forward, options)
    name = options.pop("name", None) or getattr(forward, "__name__", type(forward).__name__)
    rules, tangent_rules = options.pop("vjps", {}), options.pop("jvps", {})
    options.setdefault("guarded", False)
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
