"""The recipes of a pattern as statements: what executing a step again computes, written down once."""

from typing import Any

import numpy as np
from attrs import define, field

from pullback.primitives.selecting.indexing import READ
from pullback.programs.replay.needed_values import StepNeeds
from pullback.programs.replay.recipes import Operand, Pattern, Recipe
from pullback.recording.copies import faithful_copy
from pullback.recording.recorder import INPUT
from pullback.recording.results import COMPONENT
from pullback.recording.writes import CREATE, WRITE_OPCODES
from pullback.rules.forms import FORMS
from pullback.staging.generated.forward_statements import Forward, NotStageableError, called, written
from pullback.staging.generated.reverse_statements import held_by_symbols
from pullback.staging.shadow.postponed_operations import may_wait
from pullback.staging.statements.symbols import Program, Symbol


@define(eq=False)
class PatternStatements:
    """The forward of a step, and its records with symbols in the place of values. The records of what enters come
    first: ids count from these."""

    inputs: tuple[int, ...]
    """What enters, as it stands in the recipes."""
    forward: Forward = field(factory=Forward)
    known: dict[int, Any] = field(factory=dict)
    """The symbols of values, by how these stand in the recipes."""
    records: list[Any] = field(factory=list)

    @property
    def program(self) -> Program:
        """Where the statements are."""
        return self.forward.program

    def local(self, coded: int) -> int:
        """The place among the records of what stands so in the recipes."""
        return coded + len(self.inputs) if coded >= 0 else self.inputs.index(coded)


def inputs_of(pattern: Pattern) -> tuple[int, ...]:
    """What the recipes of a pattern read from before the step."""
    return tuple(dict.fromkeys(k for recipe in pattern.recipes if recipe is not None for k in recipe.ids() if k < 0))


def statements_of(
    pattern: Pattern,
    needs: StepNeeds,
    entering: dict[int, Any],
    operands: tuple[Any, ...],
    recorded: list[Any],
    program: Program,
) -> PatternStatements:
    """Write down the steps of a pattern in a ``program`` that has begun, from the values that one of them was entered
    by and the records that were made of it. Raises :class:`NotStageableError`."""
    made = PatternStatements(inputs_of(pattern), Forward(program))
    forward = made.forward
    for coded in made.inputs:
        if coded in entering:
            made.known[coded] = program.value(entering[coded])
            forward.inputs.append(made.known[coded])
        made.records.append((INPUT.opcode, 0))
    forward.constants = [program.value(x) for x in operands]
    for place, (recipe, record) in enumerate(zip(pattern.recipes, recorded, strict=True)):
        if recipe is None or recipe.rerun is not None:
            raise NotStageableError("a loop, or what is not executed again")
        program.site = recipe.skeleton[-1]
        given = tuple(forward.constants[a.place] if type(a) is Operand else made.known.get(a) for a in recipe.arguments)
        out, residuals = _executed(program, recipe, given) if place in needs.values else (None, {})
        made.known[place] = out
        made.records.append(held_by_symbols(_local(made, recipe, record), given, out, residuals))
    return made


def _executed(program: Program, recipe: Recipe, given: tuple[Any, ...]) -> tuple[Any, Any]:
    form, opcode = recipe.form, recipe.skeleton[0]
    if opcode in WRITE_OPCODES:
        add = form.name.startswith("increment")
        return written(program, given[0], recipe.params["region"], given[1], add=add), {}
    if opcode == CREATE.opcode:
        return _created(program, recipe, given), {}
    if opcode == COMPONENT.opcode:
        return given[0][recipe.params["place"]], {}
    if form.passes and form.active:
        return given[0], {}
    prim = form.primitive
    if form is not READ and (prim.guarded or prim.opaque or prim.ordered or not prim.rules or not may_wait(prim)):
        raise NotStageableError(f"{form.name} may fail, has an effect, is not the library's own, or a mark")
    return called(program, prim, given, recipe.params)


def _created(program: Program, recipe: Recipe, given: tuple[Any, ...]) -> Symbol:
    if given:
        copied: Symbol = program.call(faithful_copy, given, {})
        return copied
    params = recipe.params
    made: Symbol = program.call(np.zeros, (params["shape"], params["dtype"]), {})
    if program.samples[made.number].strides != params["strides"]:
        raise NotStageableError("a new array that lies in another order")
    return made


def _local(made: PatternStatements, recipe: Recipe, record: Any) -> Any:
    """A record with the ids of the statements."""
    ids = [made.local(k) for k in recipe.skeleton[1 : 1 + len(FORMS[record[0]].active)]]
    return (record[0], *ids, *record[1 + len(ids) :])
