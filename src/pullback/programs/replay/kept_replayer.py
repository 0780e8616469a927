"""In which order the values of a step that are not kept are computed again, each once, as late as it can be: just
before the first record is reversed that needs it, and until the last that does.

Time runs against the records. At the time of record ``i`` what it needs is executed first, in the order of the program,
``(-i, 0, id)``; then it is reversed, ``(-i, 1, 0)``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from pullback.memory.ledger import lasting_buffers, record_items, value_items
from pullback.memory.reverse_sweep import Sweep, sweep
from pullback.programs.replay.recipes import Recipe
from pullback.programs.replay.replayer import Replayer, other_bytes
from pullback.programs.replay.step_recipes import StepRecipes
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Primitive
from pullback.rules.rule_names import positions
from pullback.words.digests import short_digest

Time = tuple[int, int, int]


def bits_of(value: Any) -> int:
    """A digest of the values alone: what a record holds of a slice may be a copy."""
    plain = plain_value(value)
    return short_digest(np.ascontiguousarray(plain) if isinstance(plain, np.ndarray) else plain)


def held_key(prim: Primitive, name: str, ident: int) -> Any:
    """The key by which a value that a record holds is kept, where it is none of the operands: an id of the tape for the
    only output, else (id, name)."""
    return ident if name == "out" and not prim.outputs else (ident, name)


class Order:
    """What of a step is computed again, and when."""

    def __init__(self, recipes: StepRecipes, step: int, kept: Mapping[Any, Any], *, at_once: bool = False) -> None:
        self.recipes, self.step, self.start = recipes, step, recipes.cuts[step]
        self.due: dict[int, int] = {}
        """Id of what is executed to the record at whose time it is."""
        self.last: dict[Any, Time] = {}
        """Id to the last time at which the value is read."""
        self.read: set[Any] = set()
        """What is read of what is kept."""
        self.last_of: dict[int, Time] = {}
        """The last time at which a value, or a view of it, is read, by the id of what is no view."""
        self._find(kept, recipes.cuts[step + 1] - 1 if at_once else None)
        for ident, time in self.last.items():
            if type(ident) is int:
                root = self.root(ident)
                self.last_of[root] = max(time, self.last_of.get(root, time))
        self.groups = {self.root(key) for key in self.read if type(key) is int}

    def recipe(self, ident: int) -> Recipe | None:
        """What executes a record of the step again; None of one that holds what it needs."""
        recipes, place = self.recipes.patterns[self.step].recipes, ident - self.start
        recipe = recipes[place] if 0 <= place < len(recipes) else None
        return None if recipe is None or recipe.whole else recipe

    def ids(self, recipe: Recipe) -> list[int]:
        """What a recipe reads."""
        return [self.recipes.ident(a, self.start) for a in recipe.arguments if type(a) is int]

    def root(self, ident: int) -> int:
        """What a view looks at, as far as can be told without values."""
        while True:
            recipe = self.recipe(ident)
            if recipe is None or not recipe.form.primitive.view or type(recipe.arguments[0]) is not int:
                return ident
            ident = self.recipes.ident(recipe.arguments[0], self.start)

    def _find(self, kept: Mapping[Any, Any], always: int | None) -> None:
        last, due = self.last, self.due

        def need(ident: int, time: Time, at: int) -> None:
            last[ident] = max(time, last.get(ident, time))
            if ident in kept:
                self.read.add(ident)
            else:
                due[ident] = max(at, due.get(ident, at))

        for ident in range(self.recipes.cuts[self.step + 1] - 1, self.start - 1, -1):
            recipe = self.recipe(ident)
            if recipe is None:
                continue
            at = ident if always is None else always
            for key in self._held(ident, recipe):
                if type(key) is int:
                    need(key, (-ident, 1, 0), at)
                elif key in kept:
                    self.read.add(key)
                    last[key] = (-ident, 1, 0)
                else:  # what returns it is executed, kept or not
                    last[ident] = max((-ident, 1, 0), last.get(ident, (-ident, 1, 0)))
                    due[ident] = max(at, due.get(ident, at))
            at = due.get(ident, -1)
            if at >= 0:
                for other in self.ids(recipe):
                    need(other, (-at, 0, ident), at)
        self.batches: dict[int, list[int]] = {}
        for ident in sorted(due):
            self.batches.setdefault(due[ident], []).append(ident)

    def _held(self, ident: int, recipe: Recipe) -> Iterator[Any]:
        """What a record holds: ids, and (id, name) of what is no value of the tape."""
        form, arity = recipe.form, len(recipe.arguments)
        for name in form.saved:
            places = positions(form.primitive, name, arity)
            for k in places:
                if type(recipe.arguments[k]) is int:
                    yield self.recipes.ident(recipe.arguments[k], self.start)
            if not places:
                yield held_key(form.primitive, name, ident)

    def stretches(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The last and the first record of each stretch that is reversed at once, the last stretch first: what is
        executed is due at its last record."""
        tops = sorted({stop - 1, *self.batches}, reverse=True) if stop > start else []
        for top, below in zip(tops, [*tops[1:], start - 1], strict=False):
            yield top, below + 1

    def over(self, key: Any, low: int) -> bool:
        """Whether something is read no more, once the records from ``low`` on have been made."""
        return self.last.get(key, (-low, 1, 0)) <= (-low, 1, 0)


@define(eq=False)
class KeptReplayer(Replayer):
    """Executes the recipes of one step in such an order."""

    needs: Any = field(init=False, default=None)
    order: Order = field(kw_only=True)
    value: Callable[[Any], Any] = field(kw_only=True)
    """Hands out what is kept."""
    wanted: Mapping[int, int] = field(kw_only=True)
    """The digests of what the pullbacks would have read."""
    now: Time = (0, 0, 0)

    def __attrs_post_init__(self) -> None:
        self.start, self.operands = self.order.start, self.recipes.operands_of(self.order.step)
        self.at = self.order.step

    def execute(self, at: int) -> None:
        """Execute what is due at the time of record ``at``."""
        order = self.order
        with np.errstate(all="ignore"):  # the first run has warned where the user's own let it
            for ident in order.batches.get(at, ()):
                recipe = order.recipe(ident)
                assert recipe is not None  # what has none is kept
                self.now = (-at, 0, ident)
                arguments = self._arguments(recipe)
                self._again(ident, recipe, arguments)
                self._require_same(ident, recipe)
                for used in {ident, *(a for a in arguments if type(a) is int)}:
                    if order.last.get(used, self.now) <= self.now:
                        self._release(used)

    def record(self, ident: int, records: list[Any]) -> bool:
        """Put a record in its place, with the values that it holds; whether there is one that is made again."""
        recipe = self.order.recipe(ident)
        if recipe is None:
            return False
        records[ident] = self._record(ident, recipe, self._arguments(recipe, held=True))
        self.residuals.pop(ident, None)
        return True

    def forget(self, low: int) -> None:
        """Let go of what no record before ``low`` needs."""
        for ident in [ident for ident in self.env if self.order.over(ident, low)]:
            self._release(ident)

    def _release(self, ident: int) -> None:
        self.env.pop(ident, None)
        self.base.pop(ident, None)

    def _arguments(self, recipe: Recipe, *, held: bool = False) -> list[Any]:
        """As in every replay; those that are kept are fetched, of a record (``held``) the ones that it holds."""
        arguments = super()._arguments(recipe)
        form = recipe.form
        places: Any = range(len(arguments))
        if held:
            places = [k for name in form.saved for k in positions(form.primitive, name, len(arguments))]
        for k in places:
            ident = arguments[k]
            if type(ident) is int and ident not in self.env:
                self.env[ident] = self.value(ident)
        return arguments

    def _saved(self, name: str, ident: int, recipe: Recipe, arguments: list[Any]) -> Any:
        form = recipe.form
        if not positions(form.primitive, name, len(arguments)):
            key = held_key(form.primitive, name, ident)
            if key in self.order.read:
                self.pinned.add(ident)
                return self.value(key)
        return super()._saved(name, ident, recipe, arguments)

    def _require_same(self, ident: int, recipe: Recipe) -> None:
        """Raise :class:`ReplayError` where a value is another than the pullbacks would have read."""
        wanted = self.wanted.get(ident)
        if wanted is not None and bits_of(self.env[ident]) != wanted:
            raise other_bytes(recipe)

    def _read_later(self, root: int, ident: int) -> bool:  # noqa: ARG002 - the order says at what time this is
        return self.order.last_of.get(self.order.root(root), self.now) > self.now


def pull_kept(chain: Any, step: int, sweeps: Sequence[Sweep]) -> None:
    """Reverse a step of a ``KeptChain`` for each seed, what is not kept made again."""
    records, start = chain.tape.records, chain.cuts[step]
    order = Order(chain.recipes, step, chain.kept)
    replayer = KeptReplayer(chain.recipes, order=order, value=chain.value_of, wanted=chain.digests)
    passing = (
        []
        if chain.repeatable
        else sorted(
            ((order.last[key], key) for key in order.read if chain.first_of(key) >= start),
            key=lambda pair: pair[0],
            reverse=True,
        )
    )
    for at, low in order.stretches(start, chain.cuts[step + 1]):
        replayer.execute(at)
        made = [ident for ident in range(low, at + 1) if replayer.record(ident, records)]
        replayer.forget(low)
        while passing and passing[-1][0] <= (-low, 1, 0):
            chain.let_go(passing.pop()[1])
        items, held = [], []
        if chain.ledger.books:
            values = replayer.env.values()
            items = record_items(records[ident] for ident in made) + value_items(values, "saved")
            held = lasting_buffers(records[low : at + 1], values)
        with chain.ledger.holding(items):
            sweep(chain.tape, low, at + 1, sweeps)
        held.clear()
        for ident in made:
            records[ident] = None


def put_whole(chain: Any, step: int) -> None:
    """Put the records of a step back with the values they hold."""
    order = Order(chain.recipes, step, chain.kept, at_once=True)
    replayer = KeptReplayer(chain.recipes, order=order, value=chain.value_of, wanted={})
    replayer.execute(chain.cuts[step + 1] - 1)
    for ident in range(chain.cuts[step], chain.cuts[step + 1]):
        replayer.record(ident, chain.tape.records)
