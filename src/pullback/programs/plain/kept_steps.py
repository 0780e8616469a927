"""Marked steps under a policy, of which ``Keep`` holds some values: what a tape holds of a step is what the rules say.

The user's run is watched by a :class:`~pullback.programs.plain.kept_chain.KeptChain` for the step under way. When a
step is over one record stands on the tape in the place of all its records, and holds what is kept; so what goes by the
records of a step goes by that one. A step that is recorded once more, from its recipes, keeps what the first step of
its kind did."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, Final

from attrs import define, field

from pullback.programs.plain.ends_without_schedule import hold_whole
from pullback.programs.plain.kept_chain import Far, KeptChain
from pullback.programs.plain.plain_chain import PlainChain
from pullback.programs.plain.plain_snapshots import PlainSnapshots
from pullback.programs.replay.kept_replayer import bits_of, held_key, pull_kept, put_whole
from pullback.programs.replay.recipes import Pattern, Recipe
from pullback.programs.replay.replayer import Replayer
from pullback.programs.replay.step_recipes import AROUND
from pullback.recording.handles import Handle, freeze, plain_value
from pullback.rules.declaration import Primitive
from pullback.rules.forms import Form, new_form
from pullback.rules.rule_names import positions
from pullback.scheduling.machine.actions import Advance

REASONS: Final = (("kept", "saved"), ("entering", "snapshot"), ("residual", "residual"))
ALL: Final = 1 << 62
"""A number above every id."""


def _kept_form(opcode: int) -> tuple[Form, Any]:
    prim = Primitive(name="kept", forward=lambda x: x, operands=("x",), guarded=False)
    form = Form(opcode, prim, (), 0, (), tuple(name for name, _ in REASONS))
    form.held = REASONS
    return form, lambda record, ct, cts, sweep: None


KEPT: Final = new_form(_kept_form)


@define(eq=False)
class KeptContents:
    """What a kept record holds: the keys of its values, and the digests of what the pullbacks would have read
    besides."""

    keys: tuple[tuple[Any, ...], ...]
    digests: dict[int, int]


@define(eq=False)
class WatchedSnapshots(PlainSnapshots):
    """The snapshots, and who keeps values of the step under way: both are told what is read."""

    keeps: Any = None

    @property
    def reads_from(self) -> int:
        """All values are told to :meth:`read`."""
        return ALL

    def read(self, ident: int, value: Any, operand: Any) -> None:
        """A record reads a value, or it is about to be written."""
        self.keeps.read(ident, value, operand)
        super().read(ident, value, operand)


@define(eq=False)
class KeptSteps(PlainChain):
    """Steps as of a :class:`PlainChain`; of those that are recorded, ``keeps`` says what is held."""

    keeps: Any = None
    """The :class:`KeptChain` of the step under way, or of the one that is reversed."""
    plans: dict[Pattern | int, Mapping[Any, str]] = field(factory=dict)
    """What is kept of steps by what they do: its key as recipes have ids, and the tier."""
    settled: int = 0
    """The number of steps that are over, and hold what is kept."""
    far: dict[int, list[Far]] = field(factory=dict)
    """What is in stores of the tape of each step."""
    whole: bool = False
    """Whether every record is to get back all its values."""
    collects: ClassVar[bool] = True

    @classmethod
    def under(cls, keeps: KeptChain, **parts: Any) -> "KeptSteps":
        """The chain with the parts of a :class:`PlainChain`; what ``keeps`` goes by the same recipes."""
        made = cls(keeps=keeps, **parts)
        keeps.recipes, keeps.verifies = made.recipes, made.verifies
        return made

    # The user's run.
    def met(self, ident: int, record: tuple[Any, ...], operands: Any, values: Any) -> None:
        """A record is about to be appended."""
        self.keeps.met(ident, record, operands, values)

    def returned(self, name: str, handle: Any) -> None:
        """A function of several primitives has returned a value."""
        self.keeps.returned(name, handle)

    def proceed(self, k: int) -> None:
        """As every chain, once the step before holds what is kept alone."""
        self._settle()
        super().proceed(k)
        self.keeps.stores = type(self.pending) is not Advance  # else it outlives the step only where the loop ends
        self.keeps.verifies = self.verifies and (self.keeps.stores or self.n is None)

    def book(self, step: int) -> None:
        """As every chain."""
        self._settle()
        super().book(step)

    def _settle(self) -> None:
        """What is kept of the step that is over goes into one record."""
        keeps, recipes = self.keeps, self.recipes
        while self.settled < len(recipes.patterns):
            step, self.settled = self.settled, self.settled + 1
            keeps.settle(step)
            kept, digests, hows = keeps.taken()
            hows |= {key: value.tier for key, value in kept.items() if type(value) is Far}
            floor, start = recipes.floor(step), recipes.cuts[step]
            plan = {_coded(key, floor, start): hows.get(key, "") for key in kept}
            if self.plans.setdefault(recipes.patterns[step], plan) != plan:
                self.plans[step] = plan  # a rule has told its labels from those of the others
            if keeps.stores or self.ended:
                self.put(step, {key: self.stored(value, hows.get(key, "")) for key, value in kept.items()}, digests)

    def plan_of(self, step: int) -> Mapping[Any, str]:
        """What is kept of a step, as its pattern has it or as it has it alone."""
        plan = self.plans.get(step)
        return self.plans[self.recipes.patterns[step]] if plan is None else plan

    def stored(self, value: Any, tier: str) -> Any:
        """A kept value, or where it is: in a tier that has a name."""
        return Far(self.keeps.decisions.put(tier, value), tier) if tier and type(value) is not Far else value

    def put(self, step: int, kept: Mapping[Any, Any], digests: dict[int, int]) -> None:
        """The record of what is kept of a step takes a place where none stands."""
        self._forget_far(step)
        records, start = self.tape.records, self.cuts[step]
        free = next((k for k in range(start, self.cuts[step + 1]) if records[k] is None), None)
        if free is None:  # they hold what they need
            return
        parts: tuple[dict[Any, Any], ...] = ({}, {}, {})
        for key, value in kept.items():
            parts[2 if type(key) is tuple else 1 if key < start else 0][key] = value
        contents = KeptContents(tuple(map(tuple, parts)), digests)
        site = next((recipe.skeleton[-1] for recipe in self.recipes.patterns[step].recipes if recipe is not None), -1)
        records[free] = (KEPT.opcode, *(tuple(part.values()) for part in parts), contents, site)
        far = [value for value in kept.values() if type(value) is Far]
        if far:
            self.far[step] = far

    def needed_by(self, needed: Any, lifetimes: Any) -> Any:
        """What the steps need while they run: of a step all is made again at worst, beside cotangents of all."""
        cuts, skeletons = self.cuts, [recipe.skeleton for p in self.recipes.patterns for recipe in p.recipes if recipe]
        within = [
            [nbytes for ident, nbytes in lifetimes.sizes.items() if start <= ident < stop]
            for start, stop in zip(cuts, (*cuts[1:], ALL), strict=True)
        ]
        made = max(map(sum, within), default=0)
        return needed.computing_again(max(within, key=sum, default=[]), skeletons, made)

    # The actions.
    def replaying(self, values: dict[int, Any], step: int) -> Replayer:
        """What executes the steps from ``step`` on again."""
        return KeepingReplayer(self.recipes, self.needs, values, step, steps=self)

    def reverse(self, step: int) -> None:
        """Pull back through the step of which something is kept."""
        keeps = self.keeps
        self._lift(step)
        self.ledger.release(self.work_items.pop(step))  # each value is booked by itself until it goes
        pull_kept(keeps, step, self.sweeps)
        keeps.let_all_go()
        self.ledger.reversed_one([])
        self.work = None

    def _lift(self, step: int) -> None:
        """What the record of a step holds is taken from the tape."""
        records, start = self.tape.records, self.cuts[step]
        self.far.pop(step, None)
        for k in range(start, self.cuts[step + 1]):
            record = records[k]
            if record is not None and record[0] == KEPT.opcode:
                records[k], contents = None, record[-2]
                pairs = zip(chain(*contents.keys), chain(*record[1:4]), strict=True)
                self.keeps.takes(dict(pairs), contents.digests, start)
                return

    def drop(self, step: int) -> None:
        """The step holds nothing any more."""
        self._forget_far(step)
        super().drop(step)

    def delete(self, kind: str, step: int, tier: str) -> None:
        """Release an entry."""
        super().delete(kind, step, tier)
        if kind == "tape" and step not in self.work_items and not self.store.holds("tape", step):
            self._forget_far(step)

    def _forget_far(self, step: int) -> None:
        for value in self.far.pop(step, ()):
            self.keeps.decisions.drop(*value)

    # Everything is held, or nothing.
    def put_back(self, step: int) -> None:
        """The records of a step stand on the tape: all of them where everything is to be held."""
        if self.whole:
            self._lift(step)
            put_whole(self.keeps, step)
            self.keeps.let_all_go()

    def hold_all(self) -> None:
        """Put every record back with the values it holds."""
        self.whole = True
        if self.schedule is None:  # the first steps hold what is kept, and no plan has been made
            self.recipes.cut(len(self.tape.records))
            self.keeps.stores = True
            self._settle()
            for step in range(self.settled):
                self.put_back(step)
        hold_whole(self)

    def close(self, *, held: bool = False) -> None:
        """Release everything."""
        super().close(held=held)
        for step in list(self.far):
            self._forget_far(step)
        self.keeps.decisions.left_by(self.keeps)


@define(eq=False)
class KeepingReplayer(Replayer):
    """Executes steps again; of a step that is recorded it takes what is kept of its kind."""

    steps: Any = field(kw_only=True)
    plan: Mapping[Any, str] | None = None
    """What is kept of the step under way, by key; None while it only runs."""
    taken: dict[Any, Any] = field(factory=dict)
    found: dict[int, int] = field(factory=dict)
    """The digests of what the pullbacks would read besides."""

    def run(self, step: int, records: list[Any] | None) -> None:
        """Execute the recipes of a step."""
        if records is None:
            super().run(step, None)
            return
        recipes, start = self.recipes, self.recipes.cuts[step]
        plan = self.steps.plan_of(step).items()
        self.plan, self.taken, self.found = {_decoded(key, recipes, start): how for key, how in plan}, {}, {}
        super().run(step, records)
        self.steps.put(step, self.taken, self.found)
        self.plan = None

    def _again(self, ident: int, recipe: Recipe, arguments: list[Any]) -> None:
        self._take(arguments)  # before a write may reach them
        super()._again(ident, recipe, arguments)
        self._take((ident,))

    def _record(self, ident: int, recipe: Recipe, arguments: list[Any]) -> Any:
        if self.plan is None or recipe.whole:
            return super()._record(ident, recipe, arguments)
        self._take(arguments)
        form = recipe.form
        for name in form.saved:
            places = positions(form.primitive, name, len(arguments))
            key = held_key(form.primitive, name, ident)
            if places:
                self._look([arguments[k] for k in places])
            elif key == ident:
                self._look([ident])
            elif key in self.plan:
                self.taken[key] = self._saved(name, ident, recipe, arguments)
        return None

    def _take(self, idents: Sequence[Any]) -> None:
        if self.plan is None:
            return
        for ident in idents:
            if type(ident) is not int or ident not in self.plan or ident in self.taken or ident not in self.env:
                continue
            value = self.env[ident]
            self.pinned.add(self.base.get(ident, ident))
            kept = freeze(value) if isinstance(value, Handle) else self.steps.stored(value, self.plan[ident])
            self.taken[ident] = kept

    def _look(self, idents: Sequence[Any]) -> None:
        """The digests of what is read of this step, and not kept."""
        for ident in idents:
            if self.steps.verifies and type(ident) is int and ident >= self.start and ident not in self.taken:
                self.found.setdefault(ident, bits_of(plain_value(self.env[ident])))


def _coded(key: Any, floor: int, start: int) -> Any:
    """A key as steps of one kind have it in common: ids count from the step where those of its recipes do."""
    if type(key) is tuple:
        return key[0] - start, key[1]
    return key - start if key >= floor else key - AROUND


def _decoded(key: Any, recipes: Any, start: int) -> Any:
    return (key[0] + start, key[1]) if type(key) is tuple else recipes.ident(key, start)
