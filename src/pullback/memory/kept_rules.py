"""What the rules of ``Keep`` say of the values of a program: which rule decides, and which have decided nothing."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import Any, ClassVar

import numpy as np
from attrs import define, field

from pullback.memory.entry_parts import Taken, put_in
from pullback.memory.ledger import Item, Ledger, mib, value_items
from pullback.memory.store import Store
from pullback.policies.keep import RECOMPUTE, Keep, KeepRule, what_text
from pullback.policies.save_all import SaveAll
from pullback.rules.catalogue import registry
from pullback.rules.declaration import Composite, Primitive
from pullback.words.call_sites import site_line, warn_user
from pullback.words.errors import PolicyWarning

SHOWN = 12
"""How many names a warning tells."""
VALUE = "kept value"
OPERATOR = "operator_"


@define(eq=False)
class Value:
    """A value of a program, with its views: what a function in ``Keep`` is asked about."""

    made_by: str
    """The name of the primitive that returned it."""
    functions: tuple[str, ...] = ()
    """The names of functions made of several primitives that returned it: ``"einsum"``."""
    labels: tuple[str, ...] = ()
    """What :func:`pullback.name` has called it so far."""
    saved_as: tuple[str, ...] = ()
    """The names by which pullbacks read it, as far as the program has come: ``"multiply.x"``, ``"exp.out"``."""
    shape: tuple[int, ...] = ()
    dtype: Any = None
    nbytes: int = 0
    """Bytes of the whole array, where this is a view of it."""
    how: Any = field(default=None, repr=False)
    """What becomes of it; None while that is to be found."""
    rule: int = field(default=-1, repr=False)
    """Which rule says so; -1 for ``others``."""
    site: int = field(default=-1, repr=False)

    @property
    def line(self) -> str:
        """The user's line that made it, ``model.py:12``; empty where that is not known."""
        file, number = site_line(self.site) if self.site >= 0 else ("", 0)
        return f"{PurePath(file).name}:{number}" if file else ""


@define(eq=False)
class KeptValue:
    """A value as a store takes it."""

    value: Any
    items: Sequence[Item]
    never_changes: ClassVar[bool] = True

    def split(self) -> tuple["KeptValue", list[Any]]:
        """What stays in memory, and the array."""
        taken = Taken()
        return KeptValue(taken.out(self.value), ()), taken.arrays

    def joined(self, arrays: list[Any]) -> "KeptValue":
        """The value, with its array again."""
        return KeptValue(put_in(self.value, arrays), self.items)


@define(eq=False)
class Decisions:
    """The rules of one ``Keep``, as they decide in one call, and what there was to decide."""

    keep: Keep
    store: Store
    """The store of what a rule puts elsewhere."""
    chains: set[int] = field(factory=set)
    """The ids of the chains of steps that go by them."""
    n_stored: int = 0
    fits: list[Callable[[Value], bool]] = field(init=False)
    used: set[int] = field(factory=set)
    """The rules that have decided what becomes of something."""
    labels: set[str] = field(factory=set)
    makers: set[str] = field(factory=set)
    saved: set[str] = field(factory=set)
    n_steps: int = 0
    """The number of steps that it speaks of; two of them may hold one value."""
    held_bytes: int = 0
    """What is kept in memory, of each step by itself."""
    all_bytes: int = 0
    """What save-all holds, likewise."""

    def __attrs_post_init__(self) -> None:
        self.fits = [_fitting(rule) for rule in self.keep.rules]

    def decide(self, value: Value) -> Any:
        """What becomes of a value: ``"keep"``, ``"recompute"`` or the name of a tier."""
        for k, fits in enumerate(self.fits):
            if fits(value):
                value.rule, value.how = k, self._told(self.keep.rules[k].how, self.keep.rules[k].what)
                return value.how
        value.rule = -1
        value.how = self._told(self.keep.others, "others") if value.saved_as else RECOMPUTE
        return value.how

    def _told(self, how: Any, what: Any) -> Any:
        return how if isinstance(how, str) else "others" if what == "others" else what_text(what)

    def put(self, tier: str, value: Any) -> int:
        """Store a value elsewhere: under which number it is there."""
        self.n_stored += 1
        self.store.prepare(tier)
        self.store.put(VALUE, self.n_stored, tier, KeptValue(value, value_items((value,), "saved")))
        return self.n_stored

    def get(self, number: int, tier: str) -> Any:
        """What is stored under a number; it stays stored."""
        return self.store.get(VALUE, number, tier).value

    def drop(self, number: int, tier: str) -> None:
        """It is needed no more."""
        self.store.drop(VALUE, number, tier)

    def left_by(self, chain: Any) -> None:
        """Whose steps these are needs nothing any more; when nobody does all tiers are closed, with what an interrupt
        may have left there."""
        chain.let_all_go()
        self.chains.discard(id(chain))
        if not self.chains:
            self.store.clear()

    def tell(self) -> None:
        """Warn, once, of rules that have decided nothing, and where nothing was saved."""
        unused = [rule.text for k, rule in enumerate(self.keep.rules) if k not in self.used]
        if unused:
            warn_user(
                f"{self.keep!r}: nothing that the pullbacks need fits {', '.join(unused)}. There are the labels "
                f"{_names(self.labels)}, values made by {_names(self.makers)}, and saved as {_names(self.saved)}. "
                "Correct the rule, or leave it out: one of these names serves, too",
                PolicyWarning,
            )
        if self.all_bytes and self.held_bytes >= self.all_bytes:
            held, whole, outer = mib(self.held_bytes), mib(self.all_bytes), self.keep.outer
            told = f"holds {held}, and save-all would hold {whole}"
            if type(outer) is not SaveAll:
                told = f"holds {held} of the steps that are recorded, each by itself, and {outer!r} alone {whole}"
            elif self.n_steps > 1:
                told = "holds of each step all that save-all would hold"
            warn_user(
                f"{self.keep!r} {told}: nothing is saved. Keep fewer values, or pass pullback.{outer!r}", PolicyWarning
            )


def decisions_of(keep: Keep, ledger: Ledger) -> Decisions:
    """The decisions of the call that books in a ledger."""
    found = ledger.decided.get(keep)
    if found is None:
        found = ledger.decided[keep] = Decisions(keep, Store(ledger, keep))
    return found


def _names(names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return (", ".join(map(repr, found[:SHOWN])) or "none") + more


def _fitting(rule: KeepRule) -> Callable[[Value], bool]:
    """Whether a value is one that a rule is for."""
    what = rule.what
    if isinstance(what, str):
        return lambda value: (
            what == value.made_by or any(what in names for names in (value.functions, value.labels, value.saved_as))
        )
    found = what if isinstance(what, Primitive | Composite) else _served(what)
    if found is None:
        return lambda value: bool(what(value))
    direct = found.direct if isinstance(found, Composite) else found
    if direct is None:
        return lambda value: found.name in value.functions
    name = direct.name.removeprefix(OPERATOR)
    return lambda value: value.made_by == name


def _served(what: Any) -> Any:
    """The primitive for a function of NumPy's, or of a plugin's; None for a function of the user's."""
    library = isinstance(what, np.ufunc) or str(getattr(what, "__module__", "")).startswith(("numpy", "scipy"))
    return registry.find(what) if library else registry.functions.get(what)
