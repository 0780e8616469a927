"""Successive steps of one kind, executed by the functions of their stage: what would be looked up and checked for each
of them is so once for all."""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field

from pullback.memory.ledger import Item
from pullback.memory.reverse_sweep import Sweep
from pullback.programs.replay.needed_values import Needs
from pullback.programs.replay.step_recipes import FAR, StepRecipes
from pullback.recording.copies import faithful
from pullback.staging.generated.stages import slot_items
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.replay.pattern_routes import Route, idents_of, picking
from pullback.staging.replay.pattern_shelf import KnownPattern
from pullback.staging.replay.pattern_stages import PatternReverse, PatternStage, Seeded

Seeds = Callable[[int, Sweep, PatternStage], tuple[Seeded, list[Any]] | None]
"""Which cotangents there are when the turn of a step comes, and these."""


@define(eq=False)
class Handed:
    """Cotangents on their way from one step to the one before it: in no sweep yet."""

    step: int
    """The step that takes them; what stays of it is for that one, too."""
    alike: "Alike"
    key: Seeded
    reverse: PatternReverse
    seeds: Sequence[Any]
    function: Callable[..., Any]
    places: tuple[Any, ...]
    """What it works in."""
    clear_from: int
    """The id from which on no value has a cotangent but by ``seeds``."""
    way: Callable[[Any], tuple[Any, ...]] | None
    """Picks those for the step before, of what the function gives; None where it takes others."""
    sure: bool = False
    """Whether what was picked so has been of the right kind once."""

    def back(self, one: Sweep) -> None:
        """The sweep has them."""
        recipes, (places, before, _) = self.alike.recipes, self.key
        start = recipes.cuts[self.step]
        idents = [*(start + place for place in places), *idents_of(recipes, before, self.step)]
        for ident, ct in zip(idents, self.seeds, strict=True):
            one.cts[ident] = ct
            one.owned.discard(ident)


@define(eq=False)
class Alike:
    """The steps from ``first`` on, before ``stop``: after each the same is needed, and all are of one length."""

    recipes: StepRecipes
    needs: Needs
    first: int
    stop: int
    known: KnownPattern
    stage: PatternStage
    route: Route
    work: Workspace
    operands: Sequence[Any] = field(init=False)
    """The plain operands of steps that have no others."""
    plain: bool = field(init=False)
    """Whether no step has others."""
    lowest: int = field(init=False)
    """The lowest id that is read and counts from a step."""
    places: tuple[Any, Any] = field(init=False)
    """What the functions that advance and record work in."""
    closes: bool | None = field(init=False, default=None)
    """Whether what a step gives is of the kind that the next takes; None where none was run."""

    def __attrs_post_init__(self) -> None:
        self.operands = self.recipes.patterns[self.first].operands
        self.plain = not any(self.recipes.others[self.first : self.stop]) and self.stage.takes_constants(self.operands)
        self.places = self.work.of(self.stage.advance), self.work.of(self.stage.record)
        self.lowest = min((k for k in self.stage.entering if k >= FAR), default=0)

    @property
    def last(self) -> int:
        """The last step at whose start a state may stand."""
        return self.stop - 1

    def state_of(self, values: dict[int, Any], step: int) -> tuple[Any, ...] | None:
        """What enters a step, of values by id; None where it is not for these functions."""
        idents = idents_of(self.recipes, self.route.keys, step)
        state = tuple(map(values.get, idents))
        if any(x is None for x in state):
            return None
        if len(values) > len(state) and any(
            self.needs.reads_from(step, i, self.recipes) for i in {*values} - {*idents}
        ):
            return None
        return state if self.stage.takes(self.route.read(state)) else None

    def values(self, step: int, state: Sequence[Any]) -> dict[int, Any]:
        """The values by id, of what enters a step."""
        return dict(zip(idents_of(self.recipes, self.route.keys, step), state, strict=True))

    def _operands_of(self, step: int) -> Sequence[Any] | None:
        """The plain operands of a step; None where the functions are not for them."""
        operands = self.recipes.operands_of(step)
        return operands if self.stage.takes_constants(operands) else None

    def advance(self, start: int, stop: int, state: tuple[Any, ...]) -> tuple[int, tuple[Any, ...]]:
        """The step that is reached, and the state there."""
        read, pick, function = self.route.read, self.route.pick, self.stage.advance.function
        (buffers, fresh), operands = self.places[0], self.operands
        if self.closes and self.plain:
            for _ in range(start, stop):
                (returned,) = function(read(state), operands, buffers, fresh)
                state = pick((*returned, *state))
            return stop, state
        for step in range(start, stop):
            own = operands if self.plain else self._operands_of(step)
            if own is None:
                return step, state
            (returned,) = function(read(state), own, buffers, fresh)
            state = pick((*returned, *state))
            if self.closes is None:
                self.closes = self.stage.takes(read(state))
            if not self.closes:
                return step + 1, state
        return stop, state

    def slots(self, step: int, state: tuple[Any, ...]) -> Sequence[Any] | None:
        """What the reverse of a step reads; None where the functions are not for it, or others are still to be made."""
        if self.known.wanting and not self.known.over:
            return None
        operands = self.operands if self.plain else self._operands_of(step)
        if operands is None:
            return None
        (slots,) = self.stage.record.function(self.route.read(state), operands, *self.places[1])
        found: Sequence[Any] = slots
        return found

    def items(self, slots: Sequence[Any]) -> list[Item]:
        """What a recorded step holds."""
        return slot_items(self.stage.booked, slots)

    def seeded(self, step: int, one: Sweep, seeds_of: Seeds) -> Handed | None:
        """The cotangents that a step takes, which leave the sweep; None where no function takes these."""
        given = seeds_of(step, one, self.stage)
        if given is None:
            return None
        key, seeds = given
        reverse = self.stage.reverses.get(key)
        if reverse is None or not reverse.fits(seeds):
            return None
        start, stop, cts = self.recipes.cuts[step], self.recipes.cuts[step + 1], one.cts
        cts[start:stop] = [None] * (stop - start)
        for ident in idents_of(self.recipes, key[1], step):
            cts[ident] = None
        way, clear = None if reverse.way is None else picking(reverse.way), start
        if way is not None and step > self.first:
            least = max(0, self.recipes.cuts[self.first] + self.lowest)
            clear = next((i + 1 for i in range(start - 1, least - 1, -1) if cts[i] is not None), least)
        generated = reverse.own or reverse.generated
        if reverse.own is not None:  # it may write to them
            seeds = list(map(faithful, seeds))
        return Handed(step, self, key, reverse, seeds, generated.function, self.work.of(generated), clear, way)

    def reverse(self, step: int, slots: Sequence[Any], handed: Handed, one: Sweep) -> Handed | None:
        """Take cotangents back through a step: those for the step before, or the sweep has them."""
        reverse, way, before = handed.reverse, handed.way, step - 1
        (cts,) = handed.function(slots, handed.seeds, *handed.places)
        if way is not None and before >= self.first and self._clear(before, handed.clear_from):
            seeds = way(cts)
            if handed.sure or reverse.fits(seeds):
                handed.step, handed.seeds, handed.sure = before, seeds, True
                return handed
        for ident, ct in zip(idents_of(self.recipes, reverse.gives, step), cts, strict=True):
            one.cts[ident] = ct
            one.owned.discard(ident)
        return None

    def _clear(self, step: int, clear_from: int) -> bool:
        return max(0, self.recipes.cuts[step] + self.lowest) >= clear_from
