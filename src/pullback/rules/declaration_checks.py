"""What is checked when a primitive or a rule is declared: names, signatures, and that a rule captures no array."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pullback.rules.rule_names import RESERVED, SPEC, Names, Rule
from pullback.words.errors import DeclarationError
from pullback.words.undocumented import global_names


def signature_of(
    forward: Callable[..., Any], options: dict[str, Any]
) -> tuple[tuple[str, ...], str | None, tuple[str, ...], dict[str, Any]]:
    """Operands, family, params and their defaults: as given in the options, else as the signature says."""
    if "operands" in options:
        names = tuple(options.pop("params", ()))
        return tuple(options.pop("operands")), options.pop("family", None), names, _defaults(forward, names)
    try:
        parameters = inspect.signature(forward).parameters.values()
    except (TypeError, ValueError):
        raise DeclarationError(
            f"the signature of {forward!r} cannot be read; name its operands: primitive(fn, operands=('x', 'y'), "
            "params=('axis',))"
        ) from None
    kinds = inspect.Parameter
    operands = tuple(p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD))
    family = next((p.name for p in parameters if p.kind is kinds.VAR_POSITIONAL), None)
    params = tuple(p.name for p in parameters if p.kind is kinds.KEYWORD_ONLY)
    defaults = {p.name: p.default for p in parameters if p.kind is kinds.KEYWORD_ONLY and p.default is not kinds.empty}
    return operands, family, params, defaults


def _defaults(forward: Callable[..., Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The defaults of these parameters, as far as they can be read."""
    if not names:  # reading a signature takes long
        return {}
    try:
        parameters = inspect.signature(forward).parameters
    except (TypeError, ValueError):
        return {}
    known = {name: parameters[name].default for name in names if name in parameters}
    return {name: default for name, default in known.items() if default is not inspect.Parameter.empty}


def check_names(prim: Names) -> None:
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
    require_known(prim, "nondiff", prim.nondiff, prim.operand_names)
    require_known(prim, "opaque", prim.opaque, prim.value_names)


def check_collective(prim: Names) -> None:
    """Refuse what a primitive cannot be that is collective."""
    if prim.elementwise:
        raise DeclarationError(
            f"{prim.name} is collective, so what it gives depends on the operands of others; leave elementwise out"
        )
    if prim.residuals:
        raise DeclarationError(
            f"{prim.name} is collective, and every trace around a call records it, which residuals do not reach; "
            "return them as outputs=('out', ...)"
        )


def require_known(prim: Names, option: str, names: Iterable[str], known: tuple[str, ...]) -> None:
    """Raise :class:`DeclarationError` where an option names what is not ``known``."""
    for name in names:
        if name not in known:
            raise DeclarationError(f"{prim.name}: {option}= names {name!r}, which is none of {known}")


def build_rule(prim: Names, fn: Callable[..., Any], operands: tuple[str, ...], saves: tuple[str, ...] | None) -> Rule:
    """A rule for these operands, with what it reads. Raises :class:`DeclarationError` for names that are none of the
    primitive's, and for a captured array."""
    reads = tuple(saves) if saves is not None else _rule_reads(prim, fn)
    known = (*prim.value_names, *prim.spec_names, *prim.params, "needed", "index")
    for name in reads:
        if name not in known:
            raise DeclarationError(
                f"the rule of {prim.name} for {', '.join(operands)} reads {name!r}, which is none of its operands "
                f"{prim.operand_names}, out, residuals {prim.residuals}, parameters {prim.params}, or a *{SPEC} of "
                "these"
            )
    if len(operands) > 1 and "needed" not in reads and len(set(operands)) != len(operands):
        raise DeclarationError(f"the joint rule of {prim.name} names an operand twice: {operands}")
    _refuse_captured_arrays(prim, fn, operands)
    return Rule(fn, operands, reads, tuple(n for n in reads if n in prim.value_names))


def _rule_reads(prim: Names, fn: Callable[..., Any]) -> tuple[str, ...]:
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        raise DeclarationError(
            f"the signature of the rule of {prim.name} cannot be read; say what it reads: {prim.name}.vjp('x', "
            "saves=('x',), fn=rule)"
        ) from None
    if not parameters or parameters[0].kind in (
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    ):
        raise DeclarationError(
            f"the rule of {prim.name} takes no cotangent; its first parameter is ct, the names after it are what is "
            "saved"
        )
    if any(p.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) for p in parameters):
        raise DeclarationError(
            f"the rule of {prim.name} has *args or **kwargs, which declare nothing; name what it reads, or pass "
            "saves=(...)"
        )
    return tuple(p.name for p in parameters[1:])


def _refuse_captured_arrays(prim: Names, fn: Callable[..., Any], operands: tuple[str, ...]) -> None:
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
            raise DeclarationError(
                f"the rule of {prim.name} for {', '.join(operands)} captures the array {name!r}; nothing counts, "
                "guards or recomputes it. Make it an operand, a residual of the forward, or a keyword parameter"
            )


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or hasattr(type(value), "__pullback_record__")


def _cell_contents(function: Any) -> list[Any]:
    contents = []
    for cell in function.__closure__ or ():
        try:
            contents.append(cell.cell_contents)
        except ValueError:  # an empty cell: a name bound later
            contents.append(None)
    return contents
