"""How a function of SciPy gets a counterpart that takes traced values.

A counterpart without a traced argument is SciPy's call, and its primitives compute forward by the same call: a traced
run has the bits of a plain one. Arguments that have no rule, and options that are not served, raise by name.
"""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from types import FunctionType
from typing import Any

import numpy as np

import pullback as pb

IGNORED = frozenset({"check_finite", "overwrite_a", "overwrite_b", "overwrite_ab", "overwrite_x", "workers"})
"""Options that do not change a result."""

as_array: Any = pb.numpy.asarray
"""NumPy's, which takes lists with traced numbers, too."""


def primitive(forward: Any = None, **options: Any) -> Any:
    """:func:`pullback.primitive`, whose calls are not looked at: the tests check each on operands of each kind."""
    return pb.primitive(forward, guarded=False, **options)


def holds(x: Any) -> bool:
    """Whether a traced value is among ``x``: itself, in a list, a tuple or a dict, or in an object that tells."""
    if isinstance(x, pb.Tracer):
        return True
    kind = type(x)
    if kind is list or kind is tuple:
        return any(map(holds, x))
    if kind is dict:
        return any(map(holds, x.values()))
    return bool(getattr(x, "holds_tracer", False)) and hasattr(kind, "holds_tracer")


def settled(x: Any) -> Any:
    """``x`` with plain arrays for those tracers in it that depend on no input, as arrays of adopted code may."""
    if isinstance(x, pb.Tracer):
        try:
            return np.array(x)[()]
        except pb.ConversionError:
            return x
    if type(x) is dict:
        return {name: settled(part) for name, part in x.items()}
    return type(x)(map(settled, x)) if type(x) in (list, tuple) else x


def same(x: Any, default: Any) -> bool:
    """Whether an option is what SciPy takes for it by itself."""
    return x is default or (type(x) is type(default) and np.ndim(x) == 0 and bool(x == default))


def mirror(function: Callable[..., Any], by: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: what ``function`` of SciPy means where one of its arguments ``by`` (names) is traced.

    The parameters of the decorated function are those of SciPy that it serves. Raises
    :class:`pullback.MissingRuleError` where another argument is traced, :class:`pullback.NotDifferentiableError` for
    another option.
    """
    named, title = frozenset(by.split()), f"{function.__module__.partition('._')[0]}.{function.__name__}"
    taken = signature(function)
    rest = next((p.name for p in taken.parameters.values() if p.kind is Parameter.VAR_KEYWORD), "")
    loose = any(p.kind is Parameter.VAR_POSITIONAL for p in taken.parameters.values())

    def build(counterpart: Callable[..., Any]) -> Any:
        served = frozenset(signature(counterpart).parameters)
        more = any(p.kind is Parameter.VAR_KEYWORD for p in signature(counterpart).parameters.values())

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not (holds(args) or holds(kwargs)):
                return function(*args, **kwargs)
            if loose:
                return counterpart(*args, **kwargs)
            given = taken.bind(*args, **kwargs).arguments
            given.update(given.pop(rest, {}))
            given = {name: x if name in named else settled(x) for name, x in given.items()}
            known = served | {name for name in given if more and name not in taken.parameters}
            try:
                refuse(title, named, known, given, taken)
                return counterpart(**{name: x for name, x in given.items() if name in known})
            except (pb.MissingRuleError, pb.NotDifferentiableError):
                args, kwargs = settled(args), settled(kwargs)
                if holds(args) or holds(kwargs):
                    raise
                return function(*args, **kwargs)

        call.by = tuple(by.split())  # type: ignore[attr-defined] # the tables of docs/scipy.md are made of it
        return call

    return build


def refuse(title: str, by: frozenset[str], served: frozenset[str], given: Any, taken: Any) -> None:
    """Raise by name where an argument has no rule, or an option is not served."""
    for name, x in given.items():
        if name not in by and holds(x):
            raise pb.MissingRuleError(
                f"{title} has no rule for its argument {name!r}, which is traced (there are rules for "
                f"{', '.join(sorted(by))}); give pullback.value({name}) to drop the derivative on purpose"
            )
        default = taken.parameters[name].default if name in taken.parameters else None
        if name not in served and name not in IGNORED and not same(x, default):
            raise pb.NotDifferentiableError(
                f"{title} with {name}={x!r:.60} has no derivative here; leave {name} at {default!r}, or declare a "
                "primitive of your own (docs/primitives.md)"
            )


def only(title: str, name: str, x: Any, *allowed: Any) -> None:
    """Raise :class:`pullback.NotDifferentiableError` unless an option is one of those that are served."""
    if not any(same(x, each) for each in allowed):
        said = ", ".join(map(repr, allowed))
        raise pb.NotDifferentiableError(
            f"{title} with {name}={x!r:.60} has no derivative here; served is {said}. Or declare a primitive of your "
            "own (docs/primitives.md)"
        )


def lacking(title: str, name: str) -> Exception:
    """The error for an attribute that a counterpart of an object of SciPy's does not have."""
    if name.startswith("_"):
        return AttributeError(name)
    return pb.NotDifferentiableError(
        f"{title} made of traced values has no {name!r} here; it can be called, or made of pullback.value(...) to drop "
        "the derivative"
    )


def single(title: str, *arrays: Any) -> None:
    """Raise :class:`pullback.NotDifferentiableError` for many matrices at once."""
    for x in arrays:
        if x.ndim > 2:
            raise pb.NotDifferentiableError(
                f"{title} of many matrices at once, here of shape {x.shape}, has no derivative here; call it for each, "
                "and np.stack what it gives"
            )


def derived(function: Any, formula: Any, operands: str, params: str = "", *, name: str, **options: Any) -> Any:
    """The primitive with the values of ``function`` and the derivative of ``formula``, which is written with functions
    that have one and equals it but for rounding. Both take the operands, and the parameters by keyword."""
    names, settings = tuple(operands.split()), tuple(params.split())
    made = primitive(function, name=name, operands=names, params=settings, **options)

    def rule(ct: Any, *saved: Any) -> Any:
        values, static, needed = saved[: len(names)], saved[len(names) : -1], saved[-1]
        moving = [k for k, each in enumerate(names) if each in needed]

        def of(*leaves: Any) -> Any:
            full = list(values)
            for k, leaf in zip(moving, leaves, strict=True):
                full[k] = leaf
            return formula(*full, **dict(zip(settings, static, strict=True)))

        out, pull = pb.vjp(of, *(floating(values[k]) for k in moving))
        if isinstance(ct, tuple):
            ct = tuple(np.zeros_like(x) if part is None else part for x, part in zip(out, ct, strict=True))
        found = dict(zip(moving, pull(ct), strict=True))
        return tuple(found.get(k) for k in range(len(names)))

    def alone(ct: Any, *saved: Any) -> Any:
        return rule(ct, *saved, names)[0]

    if len(names) == 1:
        made.vjp(*names, saves=(*names, *settings), fn=alone)
    else:
        made.vjp(*names, saves=(*names, *settings, "needed"), fn=rule)
    return made


def linear(function: Any, formula: Any, params: str = "", *, name: str, **options: Any) -> Any:
    """As :func:`derived`, for a function that is linear in its one operand ``x``: nothing is held for the pull."""
    settings = tuple(params.split())

    def rule(ct: Any, x_spec: Any, *static: Any) -> Any:
        given = dict(zip(settings, static, strict=True))
        _, pull = pb.vjp(lambda x: formula(x, **given), np.zeros(x_spec.shape, x_spec.dtype))
        return pull(ct)[0]

    return linear_by(function, rule, settings, name=name, **options)


def linear_by(function: Any, rule: Any, settings: tuple[str, ...], *, name: str, **options: Any) -> Any:
    """The primitive of a function that is linear in its one operand, by its rule, which reads the operand's spec and
    the parameters ``settings``. Where one of these is ``cval``, a number other than 0 is added to what is linear."""

    def made(**more: Any) -> Any:
        one = primitive(function, name=name, operands=("x",), params=settings, **options, **more)
        one.vjp("x", saves=("x_spec", *settings), fn=rule)
        return one

    straight = made(linear=("x",))
    if "cval" not in settings:
        return straight
    offset, tangents = (
        made(),
        lambda t, *static: straight(t, **{**dict(zip(settings, static, strict=True)), "cval": 0.0}),
    )
    offset.jvp("x", saves=settings, fn=tangents)
    return lambda x, **given: (straight if given["cval"] == 0 else offset)(x, **given)


def floating(x: Any) -> Any:
    """``x``, which is made floating where it is an integer: a moving operand has a derivative."""
    if isinstance(x, pb.Tracer) or np.asarray(x).dtype.kind in "fc":
        return x
    return np.asarray(x, float)


def fall_through(
    module: Any, here: dict[str, Any], handed: Callable[[Any], Any] = lambda function: function
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module that mirrors ``module``: what it has not made is SciPy's own, which
    refuses traced values by the name of the function. Functions are handed on by ``handed``."""

    def missing(name: str) -> Any:
        if name.startswith("__"):  # with SciPy's __path__, its files would be imported as ours
            raise AttributeError(f"module {here['__name__']!r} has no attribute {name!r}")
        found = getattr(module, name)
        return handed(found) if type(found) is FunctionType else found

    def names() -> list[str]:
        return sorted({*dir(module), *here})

    return missing, names
