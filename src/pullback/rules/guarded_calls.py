"""Calls of code that authors outside the library have written. A forward or a rule that writes to its operands, keeps
what it returns, or returns what it has not declared is named in an error or made harmless.

This costs no pass over an array: operands and cotangents are handed over as read-only views, and a returned array that
somebody else still has is copied. The core's own primitives are tested instead, and called without it.
"""

import copy
from collections.abc import Callable, Mapping
from sys import getrefcount
from typing import Any

import numpy as np

from pullback.rules.rule_names import Names, Rule
from pullback.words.call_sites import site_here, site_text
from pullback.words.digests import same_bits
from pullback.words.errors import ConversionError, PullbackError, RuleError
from pullback.words.structures import flatten
from pullback.words.undocumented import HELD, LISTED, references

NUMBERS = (np.generic, int, float, complex)
ATOMS = frozenset((int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type, range, np.dtype))
"""The types of parameters in which nothing can change, and no tracer be."""


def called_guarded(prim: Any, values: tuple[Any, ...], params: Mapping[str, Any], *, locked: bool) -> Any:
    """What the forward gives, looked at: ``out``, or ``(out, residuals)``, every array in memory of its own unless
    the primitive is a view.

    ``locked`` operands cannot be written by it. Raises :class:`RuleError` where it returns something else than is
    declared, or writes into an operand.
    """
    if len(values) < len(prim.operands):
        raise RuleError(
            f"{prim.name} got {len(values)} of its operands {prim.operands} by position ({_where()}); what is given by "
            "keyword, or left to a default, is no operand: pass each by position"
        )
    if locked and not prim.view:
        out = _on_locked(
            prim.forward, values, params, lambda k: f"the forward of {prim.name} wrote into its {k} ({_where()})", prim,
            once=prim.ordered,
        )  # fmt: skip
    else:
        out = prim.forward(*values, **params)
    if len(params) < len(prim.params):
        name = next(name for name in prim.params if name not in params)
        raise RuleError(f"{prim.name} got no {name!r} ({_where()}), which a rule may read; pass it in every call")
    if type(out) is np.ndarray and not (prim.residuals or prim.outputs) and _fresh(getrefcount(out), out):
        return out
    parts, residuals = parts_of(prim, out, values)
    remake = getattr(type(out[0] if prim.residuals else out), "_make", prim.named_outputs)
    keys, count = list(residuals), len(parts)
    parts.extend(residuals.values())
    del out, residuals  # only what somebody else has is counted
    if not (prim.view and len(parts) == 1 and _shares(parts[0], values)):
        _take(parts)
    made = remake(parts[:count]) if prim.outputs else parts[0]
    return (made, dict(zip(keys, parts[count:], strict=True))) if prim.residuals else made


def parts_of(prim: Any, out: Any, values: tuple[Any, ...]) -> tuple[list[Any], Mapping[str, Any]]:
    """The outputs, one for each that is declared, and the residuals by name, of what a forward has returned for these
    operands. Raises :class:`RuleError` where it is something else."""
    residuals: Any = {}
    if prim.residuals:
        out, residuals = _with_residuals(prim, out)
    parts = _several(prim, out) if prim.outputs else [out]
    for k, name in enumerate(prim.outputs or ("out",)):
        _require_value(prim, name, parts[k], values)
    return parts, residuals


def guarded_rule(prim: Names, rule: Rule) -> Callable[..., Any]:
    """The function of a rule for the reverse pass: what it is handed cannot be written, what it keeps is copied."""
    names = ("ct", *rule.reads)

    def call(*args: Any) -> Any:
        which = ", ".join(map(repr, rule.operands))
        given = _on_locked(
            rule.fn,
            args,
            {},
            lambda k: f"the rule of {prim.name} for {which} wrote into {k}",
            names,
            once=prim.collective,
        )
        if type(given) is np.ndarray and _fresh(getrefcount(given), given):
            return given
        several = type(given) in (tuple, list)
        parts = list(given) if several else [given]
        del given
        originals = [a for arg in args for a in (arg if type(arg) is tuple else (arg,)) if type(a) is np.ndarray]
        parts = [_unlocked(part, originals) for part in parts]
        _take(parts, unless=originals)
        return tuple(parts) if several else parts[0]

    return call


def refuse_tracers(prim: Names, params: Mapping[str, Any]) -> None:
    """Raise :class:`ConversionError` for a tracer in a keyword parameter, or in a structure that one is."""
    for name, value in params.items():
        if type(value) not in ATOMS and any(hasattr(type(leaf), "__pullback_record__") for leaf in flatten(value)[0]):
            raise tracer_as_parameter(prim, name)


def tracer_as_parameter(prim: Names, name: str) -> ConversionError:
    """The error for a tracer in a keyword parameter, or for an operand that is given as one."""
    if name in prim.operand_names:
        return ConversionError(f"{prim.name} got its operand {name!r} by keyword ({_where()}); give it by position")
    return ConversionError(
        f"the parameter {name!r} of {prim.name} holds a tracer ({_where()}), whose derivative would be dropped: "
        f"parameters are metadata. Make it an operand (a positional parameter of the forward, with a rule), or give "
        "pullback.value(x) to drop the derivative on purpose"
    )


# ----------------------------------------------------------------------------------------------- what is handed over
def _on_locked(
    fn: Callable[..., Any], args: tuple[Any, ...], params: Mapping[str, Any], said: Callable[[str], str], names: Any,
    *, once: bool,
) -> Any:  # fmt: skip
    """``fn`` on views that cannot be written. What refuses those, as compiled code may, is called on copies, and told
    from what writes; what has an effect is called ``once``."""
    try:
        return fn(*map(_locked, args), **params)
    except (TypeError, ValueError) as error:
        if isinstance(error, PullbackError) or once:
            raise
        own = tuple(map(_copied, args))
        try:
            given = copy.deepcopy(dict(params))
            result = fn(*own, **given)
        except Exception:  # noqa: BLE001 - then it was not the lock
            raise error from None
        names = names if isinstance(names, tuple) else [f"operand {names.name_of(k)!r}" for k in range(len(args))]
        changed = [k for k, before, after in zip(names, args, own, strict=True) if not _unchanged(before, after)]
        changed += [f"parameter {k!r}" for k, before in params.items() if not _unchanged(before, given[k])]
        if changed:
            raise RuleError(
                f"{said(' and '.join(changed))}, which others read, and a recomputation reads again; work "
                "on a copy, np.array(x), and return it"
            ) from None
        return result


def _locked(value: Any) -> Any:
    if type(value) is np.ndarray:
        value = value.view()
        value.setflags(write=False)
        return value
    return tuple(map(_locked, value)) if type(value) is tuple else value


def _copied(value: Any) -> Any:
    if type(value) is np.ndarray:
        return value.copy(order="K")
    return tuple(map(_copied, value)) if type(value) is tuple else value


def _unchanged(before: Any, after: Any) -> bool:
    if type(before) is tuple:
        return all(map(_unchanged, before, after))
    return type(before) is not np.ndarray or same_bits(before, after)


# ---------------------------------------------------------------------------------------------------- what comes back
def _fresh(count: int, array: Any) -> bool:
    """Whether nobody but the local of the caller, who has counted, has the array and its memory."""
    return count <= HELD and array.base is None and bool(array.flags.writeable)


def _take(parts: list[Any], unless: list[Any] | None = None) -> None:
    """Replace each array in ``parts`` that others than ``parts`` have, or whose memory is somebody else's, by a copy;
    ``unless`` it looks at one of these."""
    owners = [part if type(part) is not np.ndarray or part.base is None else part.base for part in parts]
    for k in range(len(parts)):
        if type(parts[k]) is not np.ndarray or (unless is not None and _shares(parts[k], unless)):
            continue
        again = unless is None and any(p is parts[k] for p in parts[:k])
        if again or not parts[k].flags.writeable or not _lone(parts, owners, k):
            parts[k] = parts[k].copy(order="K")


def _lone(parts: list[Any], owners: list[Any], k: int) -> bool:
    """Whether nobody but the two lists has the memory of an array."""
    if type(owners[k]) is not np.ndarray or owners[k].base is not None:  # memory that NumPy does not count
        return False
    ours = sum(p is owners[k] for p in parts) + sum(p is owners[k] for p in owners) - 1
    ours += len({id(p) for p in parts if type(p) is np.ndarray and p.base is owners[k]})
    return LISTED > 0 and references(owners, k) <= LISTED + ours


def _shares(part: Any, arrays: Any) -> bool:
    return type(part) is np.ndarray and any(type(a) is np.ndarray and np.may_share_memory(part, a) for a in arrays)


def _unlocked(part: Any, originals: list[Any]) -> Any:
    """The array itself where a rule has returned nothing but the lock around it."""
    if type(part) is np.ndarray and part.base is not None and not part.flags.writeable:
        for array in originals:
            same = part.shape == array.shape and part.strides == array.strides and part.dtype == array.dtype
            if same and part.__array_interface__["data"][0] == array.__array_interface__["data"][0]:
                return array
    return part


def _with_residuals(prim: Any, out: Any) -> Any:
    if not isinstance(out, tuple) or len(out) != 2 or not isinstance(out[1], Mapping):
        raise RuleError(
            f"the forward of {prim.name} declares residuals {prim.residuals} and must return (out, {{name: value}}), "
            f"got {_said(out)} ({_where()})"
        )
    missing = [name for name in prim.residuals if name not in out[1]]
    if missing:
        raise RuleError(
            f"the forward of {prim.name} did not return the residual {missing[0]!r} it declares; it returned "
            f"{tuple(out[1])} ({_where()})"
        )
    return out


def _several(prim: Any, out: Any) -> list[Any]:
    if not isinstance(out, tuple | list) or len(out) != len(prim.outputs):
        raise RuleError(
            f"the forward of {prim.name} returned {_said(out)}, expected a tuple of {len(prim.outputs)}: it declares "
            f"outputs={prim.outputs} ({_where()}); return one value for each, or declare no outputs"
        )
    return list(out)


def _require_value(prim: Any, name: str, part: Any, values: tuple[Any, ...]) -> None:
    """Refuse what is neither an array nor a number, unless it is declared as opaque."""
    kind = type(part)
    if kind is np.ndarray or name in prim.opaque or "out" in prim.opaque or issubclass(kind, NUMBERS):
        return
    if hasattr(kind, "__pullback_record__"):
        if any(hasattr(type(v), "__pullback_record__") for v in values):
            return
        raise RuleError(
            f"the forward of {prim.name} returned a tracer for plain operands ({_where()}): it reads one through a "
            "closure, a global or a function that it was given; make it an operand"
        )
    remedy = f"return an array or a number, or declare opaque={{{name!r}: nbytes_of}}"
    if isinstance(part, tuple | list) and not prim.outputs:
        remedy = "name the parts with outputs=('first', ...), or return one array, np.stack(...)"
    elif part is None:
        remedy = "is there a return?"
    elif isinstance(part, np.ndarray):
        remedy = "return np.asarray(...) of it"
    which = name if prim.outputs else "its result"
    raise RuleError(f"the forward of {prim.name} returned {_said(part)} for {which} ({_where()}); {remedy}")


def _said(value: Any) -> str:
    return f"a {type(value).__name__} of {len(value)}" if isinstance(value, tuple | list) else f"{type(value).__name__}"


def _where() -> str:
    return f"called at {site_text(site_here())}"
