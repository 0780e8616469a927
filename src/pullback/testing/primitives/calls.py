"""One call of a primitive under check: its forward, what its rules read, and their raw results, on twins of the
operands.

Rules are called straight from the declaration, as the executor calls them, so that first-order checks need no tracer.
Every call gets twins of its own: a rule or a forward that writes where it must not spoils nothing but its own call.
"""

import copy
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import define, field, frozen

from pullback.rules.declaration import Primitive
from pullback.rules.guarded_calls import parts_of
from pullback.rules.rule_names import SPEC, Rule
from pullback.rules.unbroadcast import broadcasts_to
from pullback.testing.comparing.bits import same_bits, twin, twins
from pullback.testing.comparing.differences import random_like
from pullback.words.specs import INEXACT, carries_derivative, spec_of

SEED = 20250704


@frozen(eq=False)
class Evaluation:
    """What one run of the forward gave, and the twins of the operands on which it ran."""

    operands: tuple[Any, ...]
    outputs: tuple[Any, ...]
    """One value for each output; a single one for a primitive that names no outputs."""
    residuals: dict[str, Any]


@frozen(eq=False)
class Use:
    """One rule with the active positions it serves: one position, or several for a joint rule."""

    primitive: Primitive
    rule: Rule = field(repr=False)
    positions: tuple[int, ...]
    number: int = 0
    """Which of the alternatives for its operand."""

    @property
    def label(self) -> str:
        """``the rule of mul for 'x'``; alternatives are told apart by what they read."""
        names = ", ".join(repr(self.primitive.name_of(p)) for p in self.positions)
        several = len(self.primitive.rules[self.rule.operands[0]]) > 1
        return f"the rule of {self.primitive.name} for {names}" + (
            f" that reads ({', '.join(self.rule.reads)})" if several else ""
        )

    def place(self, position: int) -> int:
        """Where in the rule's results the cotangent of ``position`` stands."""
        return self.rule.operands.index(self.primitive.rule_name(position)) if self.rule.joint else 0


@define(eq=False)
class PrimitiveCall:
    """A primitive with operands and parameters; ``first`` is the evaluation all others are compared with."""

    primitive: Primitive
    operands: tuple[Any, ...]
    params: dict[str, Any]
    first: Evaluation
    settings: dict[str, Any]
    """Every parameter of the forward, defaults filled in."""
    active: tuple[int, ...]
    """Positions of the operands that carry derivatives."""
    uses: tuple[Use, ...]
    seeds: tuple[Any, ...] = ()
    """Cotangents of the output(s), as a rule gets them."""
    outcomes: dict[int, Any] = field(factory=dict)
    """Use (by place) to its raw results on the first seed, or to the exception it raised."""

    def ran(self) -> Iterator[tuple[int, Use]]:
        """Uses whose rule raised nothing, with their places."""
        return ((place, use) for place, use in enumerate(self.uses) if not isinstance(self.outcomes[place], Exception))

    def sound(self) -> Iterator[tuple[int, Use]]:
        """Uses whose rule returned a floating array of a fitting shape for each operand."""
        for place, use in self.ran():
            raw = self.outcomes[place]
            if all(_fits(self, p, raw[use.place(p)]) for p in use.positions):
                yield place, use

    def results(self, use: Use, seed: Any, evaluation: Evaluation | None = None) -> tuple[Any, ...]:
        """The raw results of a rule on twins of everything; raises what the rule raises."""
        values = environment(self, evaluation or self.first, use)
        return apply(use, twins((seed,), writeable=True)[0], values)

    def name(self, position: int) -> str:
        """The operand's name with its shape and dtype: ``'x' (float64[3])``."""
        return f"{self.primitive.name_of(position)!r} ({spec_of(self.operands[position])})"


def make_call(prim: Primitive, operands: tuple[Any, ...], params: dict[str, Any]) -> PrimitiveCall:
    """The call with its first evaluation, the uses of its rules, and their results on the first seed."""
    operands = tuple(np.asarray(v) if isinstance(v, list | tuple) else v for v in operands)
    first = evaluate(prim, operands, params)
    active = tuple(p for p, v in enumerate(operands) if carries_derivative(v) and prim.rule_name(p) not in prim.nondiff)
    # An opaque or integer output has no cotangent that could be made up here: then no rule is called.
    uses = _uses(prim, active) if any(map(carries_derivative, first.outputs)) else ()
    call = PrimitiveCall(prim, operands, params, first, _settings(prim, params), active, uses)
    call.seeds = _seeds(call)
    for place, use in enumerate(call.uses):
        try:
            call.outcomes[place] = call.results(use, call.seeds[0])
        except Exception as error:  # noqa: BLE001 - whatever a rule raises is what is reported
            call.outcomes[place] = error
    return call


def evaluate(
    prim: Primitive, operands: tuple[Any, ...], params: dict[str, Any], *, keep_flags: bool = False
) -> Evaluation:
    """The forward on twins of the operands: writable ones, or with the flags of the operands (``keep_flags``)."""
    own = twins(operands, writeable=None if keep_flags else True)
    value = prim.forward(*own, **copy.deepcopy(params))
    parts, residuals = parts_of(prim, value, own)
    return Evaluation(own, tuple(parts), dict(residuals))


def nearby(value: Any) -> Any:
    """Other bits, the same domain: scaled by 1 + 2^-10, which keeps signs, orders and definiteness."""
    array = np.asarray(value)
    return (array * (1 + 2.0**-10)).astype(array.dtype) if array.dtype.kind in "fc" else value


def environment(call: PrimitiveCall, evaluation: Evaluation, use: Use) -> dict[str, Any]:
    """Everything a rule may name, for this use; the arrays are twins of the evaluation's."""
    prim, n = call.primitive, len(call.primitive.operands)
    values: dict[str, Any] = dict(zip(prim.operands, evaluation.operands, strict=False))
    if prim.family:
        values[prim.family] = evaluation.operands[n:]
    values["out"] = evaluation.outputs if prim.outputs else evaluation.outputs[0]
    values |= dict(zip(prim.outputs, evaluation.outputs, strict=False)) | evaluation.residuals
    values = {name: twins(v) if isinstance(v, tuple) else twin(v) for name, v in values.items()}
    specs = {f"{name}{SPEC}": _spec(value) for name, value in values.items() if name not in prim.residuals}
    position = use.positions[0]
    needed = frozenset(prim.rule_name(p) for p in use.positions)
    return {**values, **specs, **call.settings, "needed": needed, "index": position - n}


def apply(use: Use, ct: Any, values: dict[str, Any]) -> tuple[Any, ...]:
    """The raw results of the rule, one for each operand it names; raises :class:`WrongCountError` for another
    number."""
    result = use.rule.fn(ct, *[values[name] for name in use.rule.reads])
    if not use.rule.joint:
        return (result,)
    if isinstance(result, tuple | list) and len(result) == len(use.rule.operands):
        return tuple(result)
    raise WrongCountError(len(result) if isinstance(result, tuple | list) else 1)


class WrongCountError(Exception):
    """A joint rule returned another ``number`` of cotangents: from :func:`apply` to the check that words the fault."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def stable(call: PrimitiveCall, place: int) -> bool:
    """True when the rule gives the same bits again: bits of an unstable rule say nothing about what it reads."""
    use, before = call.uses[place], call.outcomes[place]
    return not isinstance(before, Exception) and same_bits(before, call.results(use, call.seeds[0]))


def fits_shape(call: PrimitiveCall, position: int, shape: tuple[int, ...]) -> bool:
    """True for the shapes that the executor takes: the operand's, or a broadcast of it (for elementwise primitives
    the cotangent's)."""
    own = spec_of(call.operands[position]).shape
    if call.primitive.elementwise:
        return shape in {own, np.shape(call.seeds[0])}
    return broadcasts_to(own, shape)


def _fits(call: PrimitiveCall, position: int, raw: Any) -> bool:
    if raw is None or isinstance(raw, tuple | list | dict | str):
        return False
    array = np.asarray(raw)
    return array.dtype.kind in INEXACT and fits_shape(call, position, array.shape)


def _spec(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_spec(v) for v in value)
    return spec_of(value)


def _settings(prim: Primitive, params: dict[str, Any]) -> dict[str, Any]:
    """Every parameter by name: as passed, else the forward's default, else None."""
    try:
        declared = inspect.signature(prim.forward).parameters
    except (TypeError, ValueError):
        declared = {}  # type: ignore[assignment]  # an empty mapping stands for a signature that cannot be read
    defaults = {n: p.default for n, p in declared.items() if p.default is not inspect.Parameter.empty}
    return {name: params.get(name, defaults.get(name)) for name in prim.params}


def _uses(prim: Primitive, active: tuple[int, ...]) -> tuple[Use, ...]:
    """Every alternative rule of every active operand; a joint rule once, with all the active operands it serves."""
    uses: dict[tuple[int, int], Use] = {}
    for position in active:
        for number, rule in enumerate(prim.rules.get(prim.rule_name(position), ())):
            key = (id(rule), -1 if rule.joint else position)
            before = uses[key].positions if key in uses else ()
            uses[key] = Use(prim, rule, (*before, position), number)
    return tuple(uses.values())


def _seeds(call: PrimitiveCall) -> tuple[Any, ...]:
    """Random cotangents. For several outputs: all of them, then each alone with None for the others, as the executor
    passes them."""
    rng = np.random.default_rng(SEED)
    outputs = call.first.outputs
    whole = tuple(random_like(rng, v) if carries_derivative(v) else None for v in outputs)
    if not call.primitive.outputs:
        return (whole[0], random_like(rng, outputs[0]) if whole[0] is not None else None)
    if call.primitive.collective:  # which gets zeros for what is missing
        return (tuple(np.zeros(np.shape(v)) if ct is None else ct for v, ct in zip(outputs, whole, strict=True)),)
    alone = [
        tuple(v if k == place else None for k, v in enumerate(whole))
        for place in range(len(whole))
        if whole[place] is not None
    ]
    return (whole, *alone) if len(alone) > 1 else (whole,)
