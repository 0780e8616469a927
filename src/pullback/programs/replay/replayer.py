"""Executes the steps of a recorded program again, from their recipes; the user's Python is never called. The same
primitive on the same values in the same strides gives the same bits."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import define, field

from pullback.programs.replay.needed_values import Needs
from pullback.programs.replay.recipes import Recipe
from pullback.programs.replay.step_recipes import StepRecipes
from pullback.recording.crossing import raised
from pullback.recording.handles import (
    Handle,
    freeze,
    plain_value,
    twin_of,
)
from pullback.recording.recorder import evaluate
from pullback.recording.results import COMPONENT, looks_at
from pullback.recording.tape import FORWARD
from pullback.recording.writes import CREATE, WRITE_OPCODES, created
from pullback.rules.rule_names import read
from pullback.words.call_sites import site_text
from pullback.words.digests import short_digest
from pullback.words.errors import ReplayError, say_where
from pullback.words.ordered_calls import UNDER_WAY


@define(eq=False)
class Replayer:
    """Re-executes recipes on an environment of values by id. It writes in place where the first run did, and nowhere
    else."""

    recipes: StepRecipes
    needs: Needs
    env: dict[int, Any] = field(factory=dict)
    at: int = 0
    """The step at whose start ``env`` stands."""
    staged: Any = None
    """Functions of steps that repeat, as of ``staging.replay.staged_patterns``."""
    start: int = field(default=0, init=False)
    """The first record of the step under way, and below its plain operands."""
    operands: tuple[Any, ...] = field(default=(), init=False)
    own: set[int] = field(factory=set)
    """Ids whose buffers this replay made."""
    written: set[int] = field(factory=set)
    """Ids of arrays that have been written: views of them are copied when saved."""
    pinned: set[int] = field(factory=set)
    """Ids of arrays a record made in this replay holds."""
    base: dict[int, int] = field(factory=dict)
    """View id to the id of the array it looks at."""
    residuals: dict[int, Mapping[str, Any]] = field(factory=dict)

    def reach(self, step: int) -> None:
        """Execute the steps up to the start of ``step``, values only."""
        while self.at < step:
            reached = self.at if self.staged is None else self.staged.advance(self.at, step, self.env)
            if reached == self.at:
                self.run(self.at, None)
            else:
                self.at = reached
                self._forget()

    def run(self, step: int, records: list[Any] | None) -> None:
        """Execute the recipes of a step; with ``records``, put each record back in its place with the values it holds.

        Silently: the first run has warned where the user's own ``np.errstate`` let it.
        """
        with np.errstate(all="ignore"):
            self._run(step, records)
        self.at = step + 1

    def _forget(self) -> None:
        """Drop the values that nothing reads after steps that functions have carried out: what these gave may look at
        what entered, so nothing is written in place."""
        needs, at, recipes = self.needs, self.at, self.recipes
        start, near = (recipes.cuts[at], needs.steps[at].before) if at < len(needs.steps) else (0, frozenset[int]())
        for ident in [i for i in self.env if i - start not in near and not needs.reads_from(at, i, recipes)]:
            del self.env[ident]
            self.base.pop(ident, None)
        self.own.clear()

    def reaching(self, step: int) -> dict[int, Any]:
        """The values that a step, or a later one, reads from before it."""
        needs, recipes, cut = self.needs, self.recipes, self.recipes.cuts[step]
        return {i: v for i, v in self.env.items() if i < cut and needs.reads_from(step, i, recipes)}

    def digests(self, step: int) -> dict[int, int]:
        """The digests of these."""
        return {i: short_digest(plain_value(v)) for i, v in self.reaching(step).items()}

    def require_repeated(self, step: int, wanted: Mapping[int, int]) -> None:
        """Raise :class:`ReplayError` where ``step`` would begin with values of other digests than ``wanted``: those of
        when it was executed."""
        found = self.digests(step) if wanted else {}
        wrong = [i for i in sorted(wanted) if found.get(i, wanted[i]) != wanted[i]]
        if wrong:
            recipe = self.recipes.get(wrong[0])
            assert recipe is not None  # it was executed
            raise other_bytes(recipe, f" before step {step}")

    def _run(self, step: int, records: list[Any] | None) -> None:
        self.start, self.operands = self.recipes.cuts[step], self.recipes.operands_of(step)
        needs, start = self.needs.steps[step], self.start
        for place, recipe in enumerate(self.recipes.patterns[step].recipes):
            if recipe is None:
                continue
            ident, arguments = start + place, self._arguments(recipe)
            if place in needs.values:
                self._again(ident, recipe, arguments)
            if records is not None:
                records[ident] = self._record(ident, recipe, arguments)
            self._drop(ident, recipe, needs.dropped[place])
        for coded, _ in needs.far:
            ident = self.recipes.ident(coded, 0)
            if self.needs.far[ident][0] == step:
                self.env.pop(ident, None)
                self.base.pop(ident, None)
        alive = self.env.keys() | self.base.values()
        self.own &= alive
        self.written &= alive
        self.pinned &= alive

    def _arguments(self, recipe: Recipe) -> list[Any]:
        """The ids of what a recipe reads, and its plain operands as :class:`Const`."""
        start, operands = self.start, self.operands
        return [self.recipes.ident(a, start) if type(a) is int else Const(operands[a.place]) for a in recipe.arguments]

    def _again(self, ident: int, recipe: Recipe, arguments: list[Any]) -> None:
        """Execute a recipe; an error says that this is not the first time."""
        try:
            self._execute(ident, recipe, arguments)
        except Exception as error:
            say_where(error, f"as {recipe.form.name}, called at {site_text(recipe.skeleton[-1])}, was executed again")
            raise

    def _execute(self, ident: int, recipe: Recipe, arguments: list[Any]) -> None:
        form = recipe.form
        opcode = recipe.skeleton[0]
        if opcode in WRITE_OPCODES:
            self._write(ident, recipe, *arguments)
            return
        if opcode == CREATE.opcode:
            self.env[ident] = created(arguments, **recipe.params)
            self.own.add(ident)
            return
        values = [self.env[a] if type(a) is int else a.value for a in arguments]
        if recipe.rerun is not None:
            # the run holds what entered the loop
            self.pinned.update(self.base.get(a, a) for a in arguments if type(a) is int)
            self.env[ident], held = recipe.rerun([
                freeze(value) if isinstance(value, Handle) else value for value in values
            ])
            self.residuals[ident] = {"held": held}
            return
        if opcode == COMPONENT.opcode:
            self.env[ident] = values[0][recipe.params["place"]]
            return
        is_mark = not (
            form.primitive.rules or form.primitive.nondiff
        )  # nothing to differentiate: it hands on what it is given
        if is_mark:
            out = form.primitive.forward(*values, **recipe.params)
        elif form.primitive.collective:
            out = _called_again(form.primitive, tuple(values), recipe.params)
        else:
            out = evaluate(form.primitive, tuple(values), recipe.params)
        if form.primitive.residuals:
            out, self.residuals[ident] = out
        if form.primitive.opaque:  # what an opaque object keeps of an operand is not written
            self.pinned.update(self.base.get(a, a) for a in arguments if type(a) is int)
        source = arguments[0]
        if form.primitive.view and type(source) is int and looks_at(out, values[0]):
            self.base[ident] = self.base.get(source, source)
        else:
            if isinstance(out, Handle):
                out = freeze(out) if any(out is v for v in values) else out
            elif type(out) is np.ndarray and any(
                out is v or (out.base is not None and isinstance(v, np.ndarray) and np.may_share_memory(out, v))
                for v in values
            ):
                out = out.copy(order="K")
            self.own.add(ident)
        self.env[ident] = out

    def _write(self, ident: int, recipe: Recipe, root: Any, value: Any) -> None:
        source = self.env[value] if type(value) is int else value.value
        array = self.env[root] if type(root) is int else root.value
        free = type(root) is int and root in self.own and root not in self.pinned and not self._read_later(root, ident)
        if not free:
            array = twin_of(array)
        if isinstance(source, Handle):
            array = raised(array, source._tape)
        region = recipe.params["region"]
        if region.fancy and isinstance(source, np.ndarray) and np.may_share_memory(source, array):
            source = np.array(source)
        run = recipe.form.execute
        assert run is not None  # every write form says how it is executed
        run(array, source, region)
        self.env[ident] = array
        self.own.add(ident)
        self.written.add(ident)

    def _read_later(self, root: int, ident: int) -> bool:
        """Whether the value before a write, or a view of it, is read after the write."""
        place = ident - self.start
        return self._last(root) > place or any(
            self._last(view) > place for view, base in self.base.items() if base == root and view in self.env
        )

    def _last(self, ident: int) -> int:
        """The place in the step of the last use of a value."""
        return self.needs.last_use(self.at, ident, self.recipes)

    def _record(self, ident: int, recipe: Recipe, arguments: list[Any]) -> tuple[Any, ...]:
        form = recipe.form
        record = self.recipes.recorded(recipe, self.start)
        if recipe.rerun is not None:
            return (*record[:2], *self.residuals.pop(ident)["held"], record[-1])
        if not form.saved:
            return record
        return form.with_saved(record, [self._saved(name, ident, recipe, arguments) for name in form.saved])

    def _saved(self, name: str, ident: int, recipe: Recipe, arguments: list[Any]) -> Any:
        prim = recipe.form.primitive
        if name == "out" or name in prim.outputs:
            self.pinned.add(ident)
        residuals = self.residuals.get(ident, {})
        return read(prim, name, lambda k: self._held(arguments[k]), len(arguments), self.env.get(ident), residuals)

    def _held(self, argument: Any) -> Any:
        if type(argument) is not int:
            return argument.value
        value = self.env[argument]
        if isinstance(value, Handle):
            return freeze(value)
        root = self.base.get(argument, argument)
        if root != argument and root in self.written:
            return twin_of(value) if isinstance(value, np.ndarray) else value
        self.pinned.add(root)
        return value

    def _drop(self, ident: int, recipe: Recipe, dropped: tuple[int, ...]) -> None:
        """Let go of the values that nothing after this recipe reads."""
        for coded in dropped:
            self.env.pop(self.start + coded, None)
            self.base.pop(self.start + coded, None)
        unused = self.residuals.pop(ident, None)
        if unused is not None and recipe.rerun is not None:
            unused["held"][0].release()


def other_bytes(recipe: Recipe, where: str = "") -> ReplayError:
    """The error that a recipe gave other bytes when it was executed again than at first."""
    return ReplayError(
        f"{recipe.form.name}, called at {site_text(recipe.skeleton[-1])}{where}, gave other bytes when it was executed "
        "again. The forward of a primitive must depend on nothing but its operands and parameters; what else it reads "
        "must be one of them"
    )


class Const:
    """An operand of a recipe that is no value of the tape."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _called_again(prim: Any, values: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
    """What a call gives that meets calls of others: while steps are executed again, such traces alone go on around them
    that compute tangents."""
    token = UNDER_WAY.set(tuple(tape for tape in UNDER_WAY.get() if tape.mode == FORWARD))
    try:
        return prim(*values, **params)
    finally:
        UNDER_WAY.reset(token)
