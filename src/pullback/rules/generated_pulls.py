"""The pull of a record, generated: it calls the rules of a form and adds what they send to the cotangents of the
operands."""

from collections.abc import Callable
from textwrap import indent
from typing import Any

import numpy as np

from pullback.rules.cotangent_sums import join
from pullback.rules.declaration import Primitive
from pullback.rules.forms import Form, layout, new_form, rules_for, spec_key
from pullback.rules.generated_code import compile_function, identifier
from pullback.rules.guarded_calls import guarded_rule
from pullback.rules.rule_names import Rule, meaning
from pullback.rules.unbroadcast import settle, settle_several, summed

SEND = """    i = record[{place}]
    p = cts[i]
    cts[i] = g if p is None else join(p, g, i, sweep)"""
"""As :func:`pullback.rules.cotangent_sums.send`: a call more would be felt in every pull."""


SETTLE = """    s = record[{place}]
    if s is None or type(g) not in settled or g.shape != s.shape or g.dtype is not s.dtype:
        g = settle(g, s, form, {position}, record[-1], ct)"""
"""What is of its primal's spec already needs no settling."""


def make_pull(
    form: Form,
    cleaned: Callable[[Any, Any], Any] | None = None,
    called: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
) -> Callable[..., None]:
    """``pull(record, ct, cts, sweep)`` for a form: each rule once, each cotangent settled and added to what is there.

    ``cleaned(g, ct)`` is what a cotangent goes through that a rule has made of ``ct``; ``called(rule)`` is called in the
    place of a rule.
    """
    name = f"pull_{identifier(form.primitive)}"
    namespace: dict[str, Any] = {
        "join": join, "settle": settle,
        "settled": frozenset((np.ndarray, np.float64)), "settle_several": settle_several, "form": form,
        "cleaned": cleaned, "summed": summed,
    }  # fmt: skip
    lines = [f"def {name}(record, ct, cts, sweep):"]
    if form.primitive.outputs:
        lines.append("    ct = tuple(ct)")
    for number, (rule, positions) in enumerate(form.rules):
        fn = guarded_rule(form.primitive, rule) if form.primitive.guarded else rule.fn
        namespace[f"rule{number}"] = fn if called is None else called(fn)
        if rule.joint:
            lines += _joint_lines(form, rule, number, positions, namespace)
        elif len(positions) > 1:
            lines += _family_lines(form, rule, number, positions, namespace)
        else:
            lines += _single_lines(form, rule, number, positions[0], cleaned is not None)
    lines.append("    return None")
    return compile_function(name, "\n".join(lines) + "\n", namespace)


def _single_lines(form: Form, rule: Rule, number: int, position: int, cleaned: bool) -> list[str]:
    at = form.active.index(position) + 1
    index = position - len(form.primitive.operands) if form.primitive.family else None
    if form.primitive.elementwise and form.primitive.trusted and not form.exact and not rule.reads:
        # The rule multiplies by a number, which may as well be done when the sum over broadcast axes has been taken.
        lines = [f"    g = rule{number}(summed(ct, record[{_spec_place(form, position)}]))"]
    else:
        lines = [f"    g = rule{number}({_arguments(form, rule, index)})"]
    if cleaned and rule.reads:  # a number makes no NaN of a 0
        lines.append("    g = cleaned(g, ct)")
    if not form.exact:
        lines.append(SETTLE.format(place=_spec_place(form, position), position=position))
    return [*lines, SEND.format(place=at)]


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
        indent(SEND.format(place="at"), "    "),
    ]


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
            value=lambda name: f"record[{1 + len(form.active) + form.saved.index(name)}]",
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
        return form, make_pull(form)

    return new_form(build)
