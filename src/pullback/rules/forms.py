"""Forms: how a call of one primitive with a given set of active operands is recorded, and the process-wide opcode
table.

A form says which rules apply, which values a record holds, and in which places. The opcode of a record is the index of
its form in :data:`FORMS`; the table only grows, so opcodes stay good for every tape.
"""

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

from attrs import define, field

from pullback.rules.declaration import Primitive
from pullback.rules.rule_names import SPEC, Rule
from pullback.words.call_sites import site_text
from pullback.words.errors import MissingRuleError

FORMS: list["Form"] = []
PULLS: list[Callable[..., None]] = []
"""Opcode to the function that pulls a cotangent back through one record: ``pull(record, ct, cts, sweep)``."""
TOGETHER: dict[int, Callable[..., None]] = {}
"""Opcode to the function that pulls the cotangents of several seeds back through one record at once,
``pull(record, cts, sweeps)``: one cotangent, or None, for each. For records whose pull costs much that does not depend
on the seed (a loop), and for marks."""
_GROWING = Lock()


@define(eq=False)
class Form:
    """One layout: ``(opcode, *ids, *saved, *specs, params?, site)``."""

    opcode: int
    primitive: Primitive
    active: tuple[int, ...]
    """Positions of the operands that depend on the inputs of the trace."""
    arity: int
    rules: tuple[tuple[Rule, tuple[int, ...]], ...] = field(repr=False)
    """Each rule with the active positions it serves."""
    saved: tuple[str, ...]
    specs: tuple[int | str, ...] = ()
    """The specs that a record holds: of an operand by its position, of anything else by its name."""
    exact: bool = False
    """The output has shape and dtype of every active operand: cotangents need no projection."""
    has_params: bool = False
    wide: bool = False
    """The ids are one tuple at place 1, since their number differs from record to record (a loop)."""
    holds: Callable[[tuple[Any, ...]], Any] | None = field(default=None, repr=False)
    """What a wide record tells of all that it holds: of each buffer the bytes, the reason, and a name. None where the
    record is a loop function's, whose steps book for themselves."""
    entering: Callable[[tuple[Any, ...]], tuple[int, ...]] | None = field(default=None, repr=False)
    """How a record that has its ids elsewhere tells them, as that of a staged call does."""
    execute: Callable[..., Any] | None = field(default=None, repr=False)
    """How a replay computes the value, for forms that are no primitive call (writes, inputs, components)."""
    own: int = 0
    """The place, from its end, at which a record holds its own id; 0 where it does not."""
    passes: bool = False
    """Whether it is the mark of a value: it gives what it is given, and its pull tells of the cotangent, if anybody
    hears, and passes it on."""
    unreached: Callable[[tuple[Any, ...]], Any] | None = field(default=None, repr=False)
    """What a record gets where nothing sends it a cotangent, or None where it is then passed over. None in the place of
    the function: every record of this form is passed over."""

    held: tuple[tuple[str, str], ...] = field(init=False, repr=False)
    """The names of ``saved``, each with the reason for which the ledger books it."""

    steps: bool = field(init=False)
    """Whether the record is that of a loop function, which runs steps of its own and books what they hold."""

    def __attrs_post_init__(self) -> None:
        self.steps = self.wide and self.holds is None
        self.held = tuple((name, self._reason(name)) for name in self.saved)

    def _reason(self, name: str) -> str:
        prim = self.primitive
        if name in prim.operands and prim.operands.index(name) not in self.active:
            return "constant"
        return "residual" if name in prim.residuals else "saved"

    @property
    def name(self) -> str:
        """The primitive's name, an operator's without saying that it is one."""
        return self.primitive.name.removeprefix("operator_")

    @property
    def n_ids(self) -> int:
        """How many ids a record of this form holds."""
        return len(self.active)

    @property
    def first_spec(self) -> int:
        """Where the specs begin in a record."""
        return 1 + len(self.active) + len(self.saved)

    def ids(self, record: tuple[Any, ...]) -> tuple[int, ...]:
        """The ids of the active operands of a record."""
        if self.entering is not None:
            return self.entering(record)
        ids: tuple[int, ...] = record[1] if self.wide else record[1 : 1 + len(self.active)]
        return ids

    def saved_values(self, record: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values a record holds, in the order of ``saved``."""
        start = 1 + len(self.active)
        return record[start : start + len(self.saved)]

    def with_saved(self, record: tuple[Any, ...], values: Iterable[Any]) -> tuple[Any, ...]:
        """The record with other values in the places of ``saved``."""
        start = 1 + len(self.active)
        return (*record[:start], *values, *record[start + len(self.saved) :])


def new_form(
    build: Callable[[int], tuple[Form, Callable[..., None]]], together: Callable[..., None] | None = None
) -> Form:
    """Append a form to the table. ``build`` gets the opcode and returns the form and its pull; ``together`` is that
    of several seeds."""
    with _GROWING:
        form, pull = build(len(FORMS))
        FORMS.append(form)
        PULLS.append(pull)
        if together is not None:
            TOGETHER[form.opcode] = together
    return form


def special_form(
    name: str,
    pull: Any,
    execute: Any = None,
    n_ids: int = 1,
    *,
    wide: bool = False,
    own: int = 0,
    together: Any = None,
    unreached: Any = None,
    holds: Any = None,
) -> Form:
    """A form that is no primitive call: an input, a component, a write, a loop."""
    prim = Primitive(name=name, forward=execute or (lambda x: x), operands=("x",), guarded=False)
    ids = tuple(range(n_ids))

    def build(opcode: int) -> tuple[Form, Any]:
        form = Form(
            opcode, prim, ids, n_ids, (), (),
            wide=wide, own=own, execute=execute, unreached=unreached, holds=holds,
        )  # fmt: skip
        return form, pull

    return new_form(build, together)


def rules_for(
    prim: Primitive, active: tuple[int, ...], held: frozenset[int], site: int
) -> tuple[tuple[Rule, tuple[int, ...]], ...]:
    """The rule of every active operand, joint rules once. Among alternatives, one that reads only operands in
    ``held`` wins, else the first."""
    chosen: dict[int, tuple[Rule, list[int]]] = {}
    for position in active:
        operand = prim.rule_name(position)
        if operand in prim.nondiff:
            continue
        alternatives = prim.rules.get(operand)
        if not alternatives:
            raise MissingRuleError(
                f"{prim.name} has no VJP rule for operand {prim.name_of(position)!r}, which depends on the inputs "
                f"(called at {site_text(site)}); declare one with @{prim.name}.vjp({operand!r}), list it in nondiff=, "
                "or pass pullback.stop_gradient(...)"
            )
        rule = _choose(prim, alternatives, held)
        key = id(rule) if rule.joint else -1 - position
        chosen.setdefault(key, (rule, []))[1].append(position)
    return tuple((rule, tuple(positions)) for rule, positions in chosen.values())


def _choose(prim: Primitive, alternatives: tuple[Rule, ...], held: frozenset[int]) -> Rule:
    if len(alternatives) > 1 and held:
        names = {prim.rule_name(position) for position in held}
        for rule in alternatives:
            if rule.values and set(rule.values) <= names:
                return rule
    return alternatives[0]


def layout(
    prim: Primitive, rules: tuple[tuple[Rule, tuple[int, ...]], ...], *, exact: bool
) -> tuple[tuple[str, ...], tuple[int | str, ...], bool]:
    """Names of the saved values and specs of a record, and whether it carries params; each value once, however many
    rules read it."""
    saved = tuple(dict.fromkeys(name for rule, _ in rules for name in rule.values))
    read = [spec_key(prim, name) for rule, _ in rules for name in rule.reads if name.endswith(SPEC)]
    own = [] if exact else [position for _, positions in rules for position in positions]
    given = prim.outputs or ("out",) if prim.collective else ()  # for the zeros that stand for a missing cotangent
    specs = tuple(dict.fromkeys((*own, *read, *given)))
    has_params = any(name in prim.params for rule, _ in rules for name in rule.reads)
    return saved, specs, has_params


def spec_key(prim: Primitive, name: str) -> int | str:
    """What stands in :attr:`Form.specs` for ``x_spec``."""
    stem = name.removesuffix(SPEC)
    return prim.operands.index(stem) if stem in prim.operands else stem


def is_collective(record: tuple[Any, ...]) -> bool:
    """Whether a record is a call that meets calls of others, or a loop that has made such."""
    form = FORMS[record[0]]
    return bool(record[2].collective) if form.wide else form.primitive.collective
