"""Values of expressions in a loop: their text in the forward, and what the reverse does with their cotangent."""

import ast
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from attrs import define, field

from pullback.adopting.loops.kinds import ACTIVE, PLAIN, WHOLE, LoopKind, RefusedError
from pullback.primitives.shared.masked_arithmetic import over, times
from pullback.rules.declaration import Primitive
from pullback.rules.nan_masking import without_nan

SUMMED: Final = "{0} = {0}.sum(axis=(0,))"
"""A cotangent is brought to a number that was broadcast along one axis."""
CONSTANTS: Final = (int, float)
ALWAYS: Final = "True"
"""The flag of what depends on the inputs in any case."""
SEEN: Final = {
    ("operator_add", 0): "{ct}", ("operator_add", 1): "{ct}",
    ("operator_subtract", 0): "{ct}", ("operator_subtract", 1): "-{ct}",
    ("operator_multiply", 0): "{ct} * {0}", ("operator_multiply", 1): "{ct} * {0}",
    ("in_place_multiply", 0): "{ct} * {0}", ("in_place_multiply", 1): "{ct} * {0}",
    ("operator_negative", 0): "-{ct}", ("operator_positive", 0): "{ct}",
}  # fmt: skip
"""Rules of the table that are written out where they stand, as their lambdas compute: by primitive and operand."""


@define(eq=False)
class Val:
    """What an expression gives."""

    text: str
    kind: LoopKind
    steady: bool = False
    """Whether the text gives the same value in the reverse."""
    fresh: bool = True
    """Whether nothing else looks at the memory of an array."""
    name: str = ""
    """The name that it is the value of, where that has a cotangent of its own."""
    ct: str = ""
    """The variable that has the cotangent of any other active one."""
    back: list[str] = field(factory=list)
    """What the reverse does once that is there."""
    flag: str = ""
    """What tells, as the loop runs, whether an active one does depend on the inputs."""

    @property
    def active(self) -> bool:
        """Whether it may depend on the inputs."""
        return self.kind.level == ACTIVE

    @property
    def operand(self) -> str:
        """The text within an expression."""
        return self.text if self.text.isidentifier() else f"({self.text})"

    def sent(self, text: str) -> list[str]:
        """The lines that send it a cotangent."""
        if not self.active:
            return []
        if not self.name:
            return [f"{self.ct} = {text}"]
        own = f"_pb_b_{self.name}"
        first = [] if text == "_pb_g" else [f"_pb_g = {text}"]
        return [*first, f"{own} = _pb_g if {own} is None else {own} + _pb_g"]


def constant(number: float) -> Val:
    """A number whose text is one wherever it stands: of an infinity, ``inf``, it would be a name."""
    text = repr(number).replace("inf", "1e999")
    if text == "nan":
        raise RefusedError("NaN has no text")
    return Val(text, LoopKind(WHOLE if type(number) is int else PLAIN, 0), steady=True)


def flag_of(operands: Iterable[Val]) -> str:
    """What tells whether any of them depends on the inputs."""
    flags = dict.fromkeys(val.flag for val in operands if val.flag)
    return ALWAYS if ALWAYS in flags else " or ".join(flags)


def rule_lines(
    prim: Primitive, k: int, ct: str, read: list[str], bound: Any, *, ranks: tuple[int, int], masked: bool
) -> list[str]:
    """The lines that put into ``_pb_g`` what operand ``k`` of a call gets of its cotangent ``ct``: as the pull of a
    record does it (``rules.generated_pulls``). ``read`` are the texts of what the rule reads, ``ranks`` those of the
    operand and of the result."""
    own, rank = ranks
    if own != rank and (own, rank) != (0, 1):
        raise RefusedError("a number meets an array of several axes")
    rule = prim.rules[prim.operands[k]][0]
    lines = []
    if not read and own != rank:
        lines, ct, own = [f"_pb_g = {ct}", SUMMED.format("_pb_g")], "_pb_g", rank
    lines += _computed(prim, k, ct, read, bound, rule, scalar=rank == 0)
    if masked and read and prim.elementwise:
        cleaned = f"_pb_g = {bound(without_nan)}(_pb_g, {ct})"
        lines.append(f"if _pb_g != _pb_g: {cleaned}" if rank == 0 else cleaned)
    return [*lines, SUMMED.format("_pb_g")] if own != rank else lines


def _computed(prim: Primitive, k: int, ct: str, read: list[str], bound: Any, rule: Any, *, scalar: bool) -> list[str]:
    seen = SEEN.get((prim.name, k))
    if seen is not None:
        return [f"_pb_g = {seen.format(*read, ct=ct)}"]
    if prim.name == "operator_divide" and scalar:
        y = read[0]
        if k == 0:
            first = f"_pb_g = {ct} / {y}"
            return [first] if _is_nonzero(y) else [first, f"if _pb_g != _pb_g: _pb_g = {bound(over)}({ct}, {y})"]
        return [
            f"_pb_h = -{ct} / {y}",
            f"if _pb_h != _pb_h: _pb_h = {bound(over)}(-{ct}, {y})",
            f"_pb_g = _pb_h * {read[1]}",
            f"if _pb_g != _pb_g: _pb_g = {bound(times)}(_pb_h, {read[1]})",
        ]
    return [f"_pb_g = {bound(rule.fn)}({', '.join([ct, *read])})"]


def _is_nonzero(text: str) -> bool:
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return type(found) in CONSTANTS and bool(found) and bool(np.isfinite(found))
