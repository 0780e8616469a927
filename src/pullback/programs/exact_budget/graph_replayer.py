"""Executes single operations of a recorded program again, in the order of a plan, and puts its records back."""

from typing import Any

import numpy as np
from attrs import define, field

from pullback.programs.replay.kept_replayer import bits_of
from pullback.programs.replay.replayer import Replayer, other_bytes
from pullback.recording.handles import Handle, freeze, twin_of
from pullback.rules.rule_names import positions


@define(eq=False)
class GraphReplayer(Replayer):
    """A replayer on the values that a :class:`~pullback.programs.exact_budget.graph_chain.GraphChain` holds; views are
    derived when they are read."""

    needs: Any = field(init=False, default=None)
    chain: Any = field(kw_only=True)
    passing: int | None = None
    """The value that nothing reads any more after the operation under way: that may write into it."""
    derived: list[int] = field(factory=list)
    at_record: int = -1
    """The record that is put back."""

    @classmethod
    def of(cls, chain: Any) -> "GraphReplayer":
        """A replayer with everything in place that is held."""
        made = cls(chain.recipes, chain=chain, env={**chain.pinned, **chain.kept})
        made.start, made.operands = chain.start, chain.recipes.operands_of(0)
        return made

    def compute(self, ident: int, passing: int | None = None) -> Any:
        """The value of an operation."""
        recipe = self.recipes.get(ident)
        assert recipe is not None  # it is a node
        self.passing = passing
        arguments = self._ready(ident)
        with np.errstate(all="ignore"):  # the first run has warned where the user's own let it
            self._again(ident, recipe, arguments)
        wanted = self.chain.digests.get(ident)
        if wanted is not None and bits_of(self.env[ident]) != wanted:
            raise other_bytes(recipe)
        self._let_go_of_views()
        return self.env[ident]

    def put_back(self, ident: int) -> None:
        """The record stands on the tape, with the values that it holds."""
        recipe = self.recipes.get(ident)
        assert recipe is not None  # it is a node, or a view
        self.at_record = ident
        self.chain.tape.records[ident] = self._record(ident, recipe, self._ready(ident, held=True))
        self._let_go_of_views()
        self.pinned.clear()

    def put_back_all(self) -> None:
        """All records that were let go of."""
        chain = self.chain
        for ident in range(chain.cuts[0], chain.cuts[1]):
            recipe = self.recipes.get(ident)
            if recipe is None or chain.tape.records[ident] is not None:
                continue
            if ident not in self.env and chain.is_node(ident) and chain.root(ident) == ident:
                self.compute(ident)
            self.put_back(ident)

    def _ready(self, ident: int, *, held: bool = False) -> list[Any]:
        """The arguments of a recipe, all that is read of them in place."""
        recipe = self.recipes.get(ident)
        assert recipe is not None  # who asks has seen it
        arguments = self._arguments(recipe)
        for place, argument in enumerate(arguments):
            if type(argument) is int and (not held or self._holds(recipe, place, len(arguments))):
                self._derive(argument)
        return arguments

    def _derive(self, ident: int) -> None:
        way = []
        while ident not in self.env:
            way.append(ident)
            ident = self.chain.base[ident]
        for view in reversed(way):
            recipe = self.recipes.get(view)
            assert recipe is not None  # a view has one
            self._execute(view, recipe, self._arguments(recipe))
            self.derived.append(view)

    def _let_go_of_views(self) -> None:
        for view in self.derived:
            self.release(view)
        self.derived.clear()

    def release(self, ident: int) -> None:
        """A value is dropped."""
        self.env.pop(ident, None)
        self.base.pop(ident, None)
        self.own.discard(ident)
        self.written.discard(ident)

    def _holds(self, recipe: Any, place: int, arity: int) -> bool:
        return any(place in positions(recipe.form.primitive, name, arity) for name in recipe.form.saved)

    def _read_later(self, root: int, ident: int) -> bool:  # noqa: ARG002 - the plan says so
        return root != self.passing

    def _held(self, argument: Any) -> Any:
        if type(argument) is not int:
            return argument.value
        value = self.env[argument]
        if isinstance(value, Handle):
            return freeze(value)
        if (self.at_record, argument) in self.chain.twins:
            return twin_of(value)
        return value
