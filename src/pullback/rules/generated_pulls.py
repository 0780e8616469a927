"""The pull of a record, generated for its form: it calls the rules and adds what they return to the cotangents of the
operands."""

from collections.abc import Callable
from math import isfinite
from textwrap import indent
from typing import Any

import numpy as np

from pullback.rules.cotangent_sums import (
    LARGE,
    divided_into,
    in_rows,
    into_dying,
    join,
    multiplied,
    multiplied_into,
    multiplied_masked,
    negated,
    of_one,
)
from pullback.rules.declaration import Primitive
from pullback.rules.forms import Form, layout, new_form, rules_for, spec_key
from pullback.rules.generated_code import compile_function, identifier
from pullback.rules.guarded_calls import guarded_rule
from pullback.rules.rule_names import Rule, meaning
from pullback.rules.unbroadcast import filled, laid_out, settle, settle_several, summed, zeros_for

SEND = """    i = record[{place}]
    p = cts[i]
    cts[i] = g if p is None else join(p, g, i, sweep)"""
"""The text of :func:`pullback.rules.cotangent_sums.send`: a call more would be felt in every pull."""


SETTLE = """    s = record[{place}]
    if s is None or type(g) not in settled or g.shape != s.shape or g.dtype is not s.dtype:
        g = settle(g, s, form, {position}, record[-1], ct)"""
"""What is of its primal's spec already needs no settling."""


_LARGE = f"    large = type(ct) is ndarray and ct.nbytes >= {LARGE}"
_TWICE = """    if large and record[1] == record[2] and record[{x}] is record[{y}]:
        g = multiplied(ct, record[{y}])
        if g is None:
            g = rule1(ct, record[{y}])
        i = record[1]
        p = cts[i]
        if p is None:
            cts[i] = add(g, g, g)
            sweep.owned.add(i)
        else:
            cts[i] = join(p, g, i, sweep)
            p = cts[i]
            cts[i] = join(p, g, i, sweep)
        return None"""
"""The text for ``x * x``, whose cotangents are one product: it is computed once, and added to itself."""


def make_pull(
    form: Form,
    cleaned: Callable[[Any, Any], Any] | None = None,
    called: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
) -> Callable[..., None]:
    """``pull(record, ct, cts, sweep)`` for a form: each rule once, each cotangent settled and added to what is there.

    ``cleaned(g, ct)`` is what a cotangent goes through that a rule has made of ``ct``; ``called(rule)`` is
    called in the place of a rule.
    """
    name = f"pull_{identifier(form.primitive)}"
    namespace: dict[str, Any] = {
        "join": join, "settle": settle,
        "settled": frozenset((np.ndarray, np.float64)), "ndarray": np.ndarray, "settle_several": settle_several,
        "form": form, "cleaned": cleaned, "laid_out": laid_out, "summed": summed, "in_rows": in_rows,
        "multiplied": multiplied, "add": np.add, "of_one": of_one,
    }  # fmt: skip
    lines = [f"def {name}(record, ct, cts, sweep):"]
    if form.primitive.outputs and form.primitive.collective:
        namespace["filled"] = filled(form)
        lines.append("    ct = filled(ct, record)")
    elif form.primitive.outputs:
        lines.append("    ct = tuple(ct)")
    if cleaned is None and called is None and alike(form):
        lines.append(_TWICE.format(x=1 + len(form.active), y=2 + len(form.active)))
    for number, (rule, positions) in enumerate(form.rules):
        fn = guarded_rule(form.primitive, rule) if form.primitive.guarded else rule.fn
        namespace[f"rule{number}"] = fn if called is None else called(fn)
        last = number == len(form.rules) - 1
        if rule.joint:
            lines += _joint_lines(form, rule, number, positions, namespace)
        elif len(positions) > 1:
            lines += _family_lines(form, rule, number, positions, namespace)
        else:
            found = None if called else seen(form, rule, namespace)
            later = {saved_place(form, name) for rule, _ in form.rules[number + 1 :] for name in rule.reads}
            in_place = consuming_lines(found, number, namespace, later, consumes=last and cleaned is None)
            text = _computed(form, rule, number, positions[0], found)
            lines += _single_lines(form, rule, number, positions[0], in_place, text, cleaned is not None)
    lines.append("    return None")
    if any("large" in line for line in lines):
        lines.insert(1, _LARGE)
    return compile_function(name, "\n".join(lines) + "\n", namespace)


def _single_lines(
    form: Form, rule: Rule, number: int, position: int, in_place: list[str], computed: str, cleaned: bool
) -> list[str]:
    at = form.active.index(position) + 1
    if form.primitive.elementwise and form.primitive.trusted and not form.exact and not rule.reads:
        # The rule multiplies by a number, which may as well be done when the sum over broadcast axes has been taken.
        lines = [f"    g = rule{number}(summed(ct, record[{_spec_place(form, position)}]))"]
    elif in_place:
        lines = [*in_place, "    if g is None:", f"        g = {computed}"]
    else:
        lines = [f"    g = {computed}"]
    if cleaned and rule.reads:  # a number makes no NaN of a 0
        lines.append("    g = cleaned(g, ct)")
    if not form.exact:
        lines.append(SETTLE.format(place=_spec_place(form, position), position=position))
    return [*lines, *_laid_out(form), SEND.format(place=at)]


def _laid_out(form: Form) -> list[str]:
    """The line by which what others have sent lies alike in any pull, be it of a step that is staged or not."""
    return ["    g = laid_out(g)"] if form.primitive.collective else []


def seen(form: Form, rule: Rule, namespace: dict[str, Any]) -> "Term | None":
    """What a rule computes, as is seen by calling it once on :class:`Term`; None where that does not show it."""
    prim = form.primitive
    if not (prim.trusted and prim.elementwise and form.exact) or set(rule.reads) - {*prim.operands, "out"}:
        return None
    places = {name: saved_place(form, name) for name in rule.reads}
    try:
        found = rule.fn(Term("ct", namespace), *(Term(places[name], namespace) for name in rule.reads))
    except (UnseenError, TypeError):
        return None
    return found if type(found) is Term else None


def _computed(form: Form, rule: Rule, number: int, position: int, found: "Term | None") -> str:
    """The text that gives the cotangent: that of the rule itself, where it is seen and nothing in it is computed
    twice, since a call costs a fifth of a small pull; else a call of the rule."""
    if found is not None and found.text and not found.repeats():
        return found.text
    index = position - len(form.primitive.operands) if form.primitive.family else None
    return f"rule{number}({_arguments(form, rule, index)})"


def _joint_lines(
    form: Form, rule: Rule, number: int, positions: tuple[int, ...], namespace: dict[str, Any]
) -> list[str]:
    namespace[f"needed{number}"] = frozenset(form.primitive.rule_name(p) for p in positions)
    lines = [
        (
            f"    gs = settle_several(rule{number}({_arguments(form, rule, None, number)}), {len(rule.operands)}, "
            "form, record[-1])"
        )
    ]
    for position in positions:
        place = rule.operands.index(form.primitive.rule_name(position))
        spec = _spec_place(form, position)
        lines.append(f"    g = settle(gs[{place}], record[{spec}], form, {position}, record[-1], ct)")
        lines += _laid_out(form)
        lines.append(SEND.format(place=form.active.index(position) + 1))
    return lines


def _family_lines(
    form: Form, rule: Rule, number: int, positions: tuple[int, ...], namespace: dict[str, Any]
) -> list[str]:
    """One rule for many operands of a family: a loop instead of a line each."""
    first = len(form.primitive.operands)
    namespace[f"places{number}"] = tuple(
        (p, p - first, form.active.index(p) + 1, _spec_place(form, p)) for p in positions
    )
    return [
        f"    for position, index, at, spec in places{number}:",
        f"        g = rule{number}({_arguments(form, rule, None)})",
        "        g = settle(g, record[spec], form, position, record[-1], ct)",
        *(f"    {line}" for line in _laid_out(form)),
        indent(SEND.format(place="at"), "    "),
    ]


def consuming_lines(
    found: "Term | None", number: int, namespace: dict[str, Any], later: set[str], *, consumes: bool
) -> list[str]:
    """The lines that compute ``g`` of a large ``ct`` without a new array, and leave None for any other; none for a rule
    of another kind, which is ``found``.

    A product or a negative of the cotangent goes into the cotangent itself, if nobody but the sweep can see it; it is
    then lost, so the rule must be the last (``consumes``). A product or quotient with an array that the rule has made
    goes into that. A chain goes into a saved value that dies (:func:`into_dying`), unless a rule reads
    it that comes ``later``.
    """
    if found is None or not found.parts:
        return []
    ways = []
    function, given, where = _written(found, consumes=consumes)
    if function is not None:
        namespace[f"in_place{number}"] = function
        ways.append((where, f"in_place{number}({given})"))
    dying, place = into_dying(found, namespace)
    if dying is not None and place not in later:
        namespace[f"into_dying{number}"] = dying
        ways.append(("sweep.consumes", f"into_dying{number}(ct, {place})"))
    if not any(part.parts for part in found.parts):  # of the cotangent and a saved value: the cotangent is nearer
        ways.reverse()
    if found.what in _SCALING and found.parts[0].text == "ct" and found.parts[1].text.startswith("record["):
        ways.append(("", f"of_one(ct, {found.parts[1].text})"))
    lines = ["    g = None", "    if large:"]
    for test, call in reversed(ways):
        tests = [test] if test else []
        tests += ["g is None"] if len(lines) > 2 else []
        lines += [f"        if {' and '.join(tests)}:", f"            g = {call}"] if tests else [f"        g = {call}"]
    return lines if ways else []


def _written(found: "Term", *, consumes: bool) -> tuple[Callable[..., Any] | None, str, str]:
    """What computes a rule into its cotangent or into an array that it has made, its arguments, and the test for it;
    None where nothing does."""
    other = found.parts[1] if len(found.parts) > 1 else None
    if found.parts[0].text != "ct":
        return None, "", ""
    if other is None or not other.parts:
        return (_CONSUMING.get(found.what) if consumes else None), "ct" if other is None else f"ct, {other.text}", ""
    if "ct" in other.leaves() or other.repeats():
        return None, "", ""
    return _RECEIVING.get(found.what), f"ct, {other.text}", "in_rows(ct)"


def alike(form: Form) -> bool:
    """Whether the rules of both operands are the product of the cotangent with the other one."""
    prim = form.primitive
    if not (prim.trusted and prim.elementwise and form.exact) or len(form.active) != 2 or len(form.rules) != 2:
        return False
    reads = [rule.reads for rule, _ in form.rules]
    if reads != [prim.operands[1:], prim.operands[:1]] or len(form.saved) != 2:
        return False
    try:
        found = [rule.fn(Term("ct", {}), Term("other", {})) for rule, _ in form.rules]
    except (UnseenError, TypeError):
        return False
    return all(type(one) is Term and one.text == "(ct * other)" for one in found)


_SCALING = ("*", "masked_multiply")
_CONSUMING: dict[str, Callable[..., Any]] = {"*": multiplied, "negative": negated, "masked_multiply": multiplied_masked}
_RECEIVING: dict[str, Callable[..., Any]] = {"masked_multiply": multiplied_into, "masked_divide": divided_into}


class UnseenError(Exception):
    """What a rule does cannot be seen by calling it on terms: it looks at them."""


class Term:
    """What a rule computes with, in the place of an array, while it is looked at: a text that computes the same."""

    __array_priority__ = 1e6
    __slots__ = ("namespace", "parts", "text", "what")

    def __init__(self, text: str, namespace: dict[str, Any], what: str = "", parts: tuple["Term", ...] = ()) -> None:
        self.text, self.namespace, self.what, self.parts = text, namespace, what, parts

    def leaves(self) -> set[str]:
        """The texts of what it is made from."""
        return set[str]().union(*(part.leaves() for part in self.parts)) if self.parts else {self.text}

    def repeats(self) -> bool:
        """Whether something computed stands in the text twice, and would be computed twice."""
        made, under = [], [self]
        while under:
            term = under.pop()
            made += [id(term)] if term.parts else []
            under += term.parts
        return len(set(made)) < len(made)

    def made(self, what: str, text: str, *operands: Any) -> "Term":
        """The term that ``what`` makes of the operands, whose texts go into ``text``."""
        terms = tuple(x if type(x) is Term else Term(repr(_number(x)), self.namespace) for x in operands)
        return Term(text.format(*(term.text for term in terms)), self.namespace, what, terms)

    def __add__(self, other: Any) -> "Term":
        return self.made("+", "({} + {})", self, other)

    def __radd__(self, other: Any) -> "Term":
        return self.made("+", "({} + {})", other, self)

    def __sub__(self, other: Any) -> "Term":
        return self.made("-", "({} - {})", self, other)

    def __rsub__(self, other: Any) -> "Term":
        return self.made("-", "({} - {})", other, self)

    def __mul__(self, other: Any) -> "Term":
        return self.made("*", "({} * {})", self, other)

    def __rmul__(self, other: Any) -> "Term":
        return self.made("*", "({} * {})", other, self)

    def __neg__(self) -> "Term":
        return self.made("negative", "(-{})", self)

    def __array_ufunc__(self, ufunc: Any, how: str, *operands: Any, **options: Any) -> "Term":
        if how != "__call__" or options or ufunc.nout > 1:
            raise UnseenError
        name = f"ufunc_{ufunc.__name__}"
        self.namespace[name] = ufunc
        return self.made(ufunc.__name__, f"{name}({', '.join('{}' for _ in operands)})", *operands)

    @staticmethod
    def __pullback_record__(prim: Any, operands: tuple[Any, ...], params: Any) -> "Term":
        terms = [x for x in operands if type(x) is Term]
        if params or prim.name not in _RECEIVING or any(term.what in _RECEIVING for term in terms):
            raise UnseenError
        return terms[0].made(prim.name, "", *operands)

    def __getattr__(self, name: str) -> Any:
        raise UnseenError

    def __bool__(self) -> bool:
        raise UnseenError

    def __eq__(self, other: object) -> bool:
        raise UnseenError

    __hash__ = object.__hash__


def _number(x: Any) -> Any:
    if type(x) not in (int, float) or not isfinite(x):
        raise UnseenError
    return x


def saved_place(form: Form, name: str) -> str:
    """The text of a saved value, by the name under which rules read it; none for what is not saved."""
    return f"record[{1 + len(form.active) + form.saved.index(name)}]" if name in form.saved else ""


def _spec_place(form: Form, key: int | str) -> int:
    return form.first_spec + form.specs.index(key)


def _arguments(form: Form, rule: Rule, index: int | None, number: int = 0) -> str:
    """The text of a rule call's arguments: where in the record each declared name is."""
    prim = form.primitive
    words = (
        meaning(
            prim,
            name,
            needed=f"needed{number}",
            index="index" if index is None else index,
            param=lambda name: f"record[-2][{prim.params.index(name)}]",
            spec=lambda name: f"record[{_spec_place(form, spec_key(prim, name))}]",
            value=lambda name: saved_place(form, name),
        )
        for name in rule.reads
    )
    return ", ".join(map(str, ("ct", *words)))


def make_form(
    prim: Primitive, active: tuple[int, ...], arity: int, held: frozenset[int], *, exact: bool, site: int
) -> Form:
    """A new form in the opcode table, with its generated pull."""
    rules = rules_for(prim, active, held, site)
    served = tuple(sorted(p for _, positions in rules for p in positions))
    saved, specs, has_params = layout(prim, rules, exact=exact)

    def build(opcode: int) -> tuple[Form, Any]:
        form = Form(opcode, prim, served, arity, rules, saved, specs, exact, has_params)
        if prim.collective:
            form.unreached = zeros_for(form)
        return form, make_pull(form)

    return new_form(build)
