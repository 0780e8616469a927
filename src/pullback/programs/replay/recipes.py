"""A recipe: what executes one record again, and what it needs to become a record again; and patterns of them, which
steps and calls have in common."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field, frozen

from pullback.rules.forms import FORMS, Form, is_collective
from pullback.rules.rule_names import positions
from pullback.words.sameness import same_content, same_parts

MOST_NEW: Final = 72
"""Calls in a row that did each another thing, after which no more are compared."""


@frozen(eq=False)
class Operand:
    """A stand-in for the plain operand ``place`` of a step, in the arguments of a recipe."""

    place: int


_OPERANDS: dict[int, Operand] = {}


def operand_at(place: int) -> Operand:
    """One for each place, for all threads: recipes compare them by identity."""
    found = _OPERANDS.get(place)
    return _OPERANDS.setdefault(place, Operand(place)) if found is None else found


@define(eq=False)
class Recipe:
    """What re-executes one record, and what it needs to become a record again."""

    skeleton: tuple[Any, ...]
    """The record without the values it holds."""
    arguments: tuple[Any, ...]
    """Ids, and an :class:`Operand` for what is no value of the tape."""
    params: Mapping[str, Any]
    rerun: Any = None
    """The function that runs a loop again on the values of what entered."""
    rest: tuple[Any, ...] | None = field(init=False)
    """What of the record is neither an id nor a value that it holds; None for a loop."""
    short: bool = field(init=False)
    """Whether that is the call site alone."""
    whole: bool = field(init=False)
    """Whether its record always holds all that it needs: that of a loop, and of a call that meets calls of others."""

    def __attrs_post_init__(self) -> None:
        self.rest = _rest(self.skeleton)
        self.whole = self.rerun is not None or self.collective
        self.short = self.rest is not None and len(self.rest) == 1

    def says(self, record: tuple[Any, ...], arguments: Any, params: Any, rerun: Any = None) -> bool:
        """Whether this is the recipe of a record with these arguments. The ids in it are those of the arguments, and
        what it holds of the parameters need not be compared twice. Of loops, ``rerun`` tells all that the ids do
        not."""
        return (
            self.arguments == arguments
            and self.skeleton[0] == record[0]
            and self.rerun == rerun
            and (self.skeleton[-1] == record[-1] if self.short or rerun is not None else self.says_the_rest(record))
            and (not params or self.rest_holds_params or same_content(self.params, params))
        )

    def says_the_rest(self, record: tuple[Any, ...]) -> bool:
        """Whether what a record tells beside ids and held values is the same."""
        return self.rest is not None and same_parts(self.rest, _rest(record) or ())

    @property
    def rest_holds_params(self) -> bool:
        """Whether the rest of the record tells the parameters."""
        return self.form.has_params or self.form.own != 0

    @property
    def form(self) -> Form:
        """The form of the record."""
        form: Form = FORMS[self.skeleton[0]]
        return form

    @property
    def collective(self) -> bool:
        """Whether it is executed in every replay of its step, needed or not."""
        return is_collective(self.skeleton)

    def ids(self) -> list[int]:
        """The ids this recipe reads."""
        return [a for a in self.arguments if type(a) is int]

    def saved_ids(self, place: int) -> set[int]:
        """The ids whose values the record holds, its own, ``place``, for its output or a residual."""
        if self.rerun is not None:
            return {place}
        form, arity = self.form, len(self.arguments)
        found: set[int] = set()
        for name in form.saved:
            if name in form.primitive.operand_names:
                given = map(self.arguments.__getitem__, positions(form.primitive, name, arity))
                found |= {a for a in given if type(a) is int}
            else:
                found.add(place)
        return found


@define(eq=False)
class Pattern:
    """What steps have in common."""

    recipes: tuple[Recipe | None, ...]
    """The recipes by place in the step; None for a record that nothing re-executes."""
    operands: tuple[Any, ...]
    """The plain operands of the first of these steps; of a call, nothing in the place of each."""
    kept: dict[Any, Any] = field(factory=dict)
    """What a replay of such calls needs, and what is known of them, by what is read after them."""
    n: int = 1
    """How many calls have done this."""


@define(eq=False)
class Calls:
    """What the calls of one function have in common."""

    n: int = 0
    """How many there were."""
    patterns: tuple[Pattern, ...] = ()
    """The newest."""
    n_new: int = 0
    """How many in a row did what none of these had done."""
    may_miss: bool = False
    """Whether calls count in which nothing re-executes some of the records."""

    @property
    def repeat(self) -> bool:
        """Whether they do what others have done."""
        return self.n_new < MOST_NEW


def _rest(record: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What a record tells beside ids, its own too, and held values; None for a loop, which tells it in objects."""
    form = FORMS[record[0]]
    rest = record[form.first_spec :]
    kept = (*rest[: form.own], *rest[form.own + 1 :]) if form.own else rest
    return None if form.wide else kept
