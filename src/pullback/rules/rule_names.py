"""What the names mean that a rule reads: its parameters after ``ct`` *are* the declaration of what it reads.

| name | what a rule gets for it |
|---|---|
| an operand, ``x`` | its value; of a primitive that is not elementwise a NumPy scalar for a Python number |
| the family, ``arrays`` | the values of its operands, a tuple |
| ``out`` | the output; a tuple where there are several |
| one of several outputs, ``q`` | that output |
| a residual, ``lu`` | what the forward has returned beside its output |
| ``x_spec``, ``arrays_spec``, ``out_spec`` | shape and dtype instead of the value; None for what is no array |
| a parameter, ``axis`` | what the call gave for it |
| ``needed`` | the names of the operands whose cotangents a joint rule is to give |
| ``index`` | which operand of the family the cotangent is for |

Values are saved; specs and parameters are no arrays and cost nothing.
"""

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, cast

import numpy as np
from attrs import define, field, frozen

from pullback.words.errors import RuleError
from pullback.words.specs import shared_spec

RESERVED = ("ct", "out", "needed", "index")
SPEC = "_spec"


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


@define(eq=False, slots=False, kw_only=True)
class Names:
    """The names of a primitive: what its rules may read, and what its operands are called in messages."""

    name: str
    operands: tuple[str, ...]
    family: str | None = None
    params: tuple[str, ...] = ()
    residuals: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    nondiff: tuple[str, ...] = ()
    opaque: Mapping[str, Callable[[Any], int]] = field(factory=dict, repr=False)
    elementwise: bool = False
    collective: bool = False
    """Its calls meet calls of others, in other processes: each is recorded wherever a trace is under way, whatever its
    operands are, and pulled back in any case. It is ``ordered``, and made in every re-run of its step."""

    @cached_property
    def named_outputs(self) -> Callable[[Iterable[Any]], Any]:
        """What makes the several outputs one result: a named tuple of the primitive's name."""
        make: Any = namedtuple  # its fields are known when it is called  # noqa: PYI024
        kind = make(self.name if self.name.isidentifier() else "Outputs", self.outputs, rename=True)
        return cast("Callable[[Iterable[Any]], Any]", kind._make)

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

    @property
    def value_names(self) -> tuple[str, ...]:
        """The names of what may be saved."""
        return (*self.operand_names, *self.residuals, *self.outputs, "out")

    @property
    def spec_names(self) -> tuple[str, ...]:
        """The names of specs; a residual, which nobody else knows, has none."""
        return tuple(f"{name}{SPEC}" for name in (*self.operand_names, *self.outputs, "out"))


def meaning(
    prim: Names,
    name: str,
    *,
    needed: Any,
    index: Any,
    param: Callable[[str], Any],
    spec: Callable[[str], Any],
    value: Callable[[str], Any],
) -> Any:
    """What stands for ``name`` where a rule is called, by the kind of the name; for a spec ``spec`` is asked, without
    the suffix."""
    if name in ("needed", "index"):
        return needed if name == "needed" else index
    if name in prim.params:
        return param(name)
    return spec(name.removesuffix(SPEC)) if name.endswith(SPEC) else value(name)


def positions(prim: Names, name: str, arity: int) -> range:
    """The positions of the operands that a name stands for in a call of ``arity`` operands; none for any other name."""
    if name in prim.operands:
        k = prim.operands.index(name)
        return range(k, k + 1)
    return range(len(prim.operands) if name == prim.family else arity, arity)


def read(
    prim: Names, name: str, operand: Callable[[int], Any], arity: int, out: Any, residuals: Mapping[str, Any]
) -> Any:
    """The value that ``name`` stands for in a call of ``arity`` operands, where ``operand(k)`` is that of operand
    ``k``.

    Raises :class:`RuleError` for a residual that the forward has not returned.
    """
    if name in prim.operands:
        value = operand(prim.operands.index(name))
        # A rule that is no line of the table may ask for its shape.
        return np.asarray(value)[()] if type(value) in (float, complex) and not prim.elementwise else value
    if name == prim.family:
        return tuple(map(operand, positions(prim, name, arity)))
    if name == "out":
        return tuple(out) if prim.outputs else out
    if name in prim.outputs:
        return out[prim.outputs.index(name)]
    if name not in residuals:
        raise RuleError(
            f"the forward of {prim.name} did not return the residual {name!r} it declares; it returned "
            f"{tuple(residuals)}"
        )
    return residuals[name]


def read_spec(prim: Names, name: str, values: tuple[Any, ...], out: Any) -> Any:
    """The spec of what ``name`` stands for; a tuple of them where that is a tuple."""
    found = read(prim, name, values.__getitem__, len(values), out, {})
    several = name == prim.family or (name == "out" and prim.outputs)
    return tuple(map(shared_spec, found)) if several else shared_spec(found)
