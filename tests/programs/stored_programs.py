"""Programs drawn for policies with places: states of any structure and kind, with numbers of Python's, shared and
strided arrays, generators and effects, in every form of a loop, with loops, checkpoints and marks inside."""

from collections import namedtuple
from random import Random
from typing import Any

import numpy as np

import pullback as pb

Pair = namedtuple("Pair", "one rest")  # noqa: PYI024 - as users write it
TABLE = np.linspace(0.1, 0.4, 4)
FORMS = ("fori", "scan", "while", "steps", "plain")
BEGINS = (
    "x * 1.0", "x", "z", "x[::-1]", "x[...]", "np.concatenate([x, z])[::2]", "np.concatenate([x, z])[1:5]",
    "np.zeros_like(x)", "TABLE.copy()", "TABLE.astype('>f8')", "np.repeat(TABLE, 2)[::2]", "np.broadcast_to(x[:1], 4)",
    "base[:4]", "base[2:6]",
)  # fmt: skip
"""What an array of the state is before the loop."""
OTHERS = {
    "0.5": "{v} = {v} * 0.9", "2": "{v} = {v} * 3 + 1", "2**70": "{v} = {v} + 1", "True": "{v} = not {v}",
    "0.5 + 0.1j": "{v} = {v} * 1j", "None": "pass", "np.float64(0.5)": "{v} = np.sin({v})",
    "np.array(0.25)": "{v} += 0.1",
    "np.arange(6)[::2]": "{v} = ({v} * 3 + 1) % 7", "np.array([True, False])": "{v} = ~{v}",
    "np.ones(0)": "{v} = {v} * 2",
    "np.asfortranarray(np.outer(x, x))": "{v} = {v} * 0.5", "np.full(3, 0.1, 'f4')": "{v} *= np.float32(0.9)",
    "x * 1j": "{v} = {v} * 1j", "np.random.RandomState(3)": "a = a * {v}.uniform()",
    "np.random.default_rng(3)": "a = a * {v}.uniform()",
}  # fmt: skip
"""What other leaves are, and what a step makes of them."""
STEPS = (
    "{a} = 0.9 * {a} + 0.1 * np.sin({b})", "{a} += 0.1 * {b}", "{a}[...] = {b} * 0.9", "{a}[1:] += 0.1 * {a}[:-1]",
    "{a}, {b} = {b}, {a}", "{a} = {b}", "t = np.concatenate([{a}, {b}]); {a} = t[:4]; {b} = t[4:]", "{a} = {a}[::-1]",
    "np.multiply({a}, 0.9, out={a})", "{a} = np.tanh({a} * z)", "{a} = {a} * TABLE[k % 4]", "tell(k, {a})",
    "{a} = {a} * rng.uniform()", "{a} = {a} + 0.1 * count(k)", "if k % 3 == 1: {a} = {a} * np.cos({b})",
    "{a} = pb.fori_loop(0, 3, lambda j, q: np.sin(q) * 0.9 + 0.1 * {b}, {a})", "{a} = pb.checkpoint(np.sin)({a})",
    "{a}, _ = pb.while_loop(lambda c: (tell(c[1]), c[1] < 2)[1], lambda c: (np.cos(c[0]) * x, c[1] + 1), ({a}, 0))",
    "{a} = pb.fori_loop(0, 2, lambda j, q: (tell(k, j), q * rng.uniform())[1], {a})",
    "for _ in pb.steps(2): {a} = np.sin({a})", "{a} = pb.stop_gradient({a}) * {a}",
)  # fmt: skip
HEADS = {
    "fori": ("def step(k, s):", "s = pb.fori_loop(0, {n}, step, {init})"),
    "scan": ("def step(s, w):", "s, ys = pb.scan(step, {init}, np.linspace(0.1, 0.9, {n}) * x[0])"),
    "while": ("def step(s):", "s = pb.while_loop(lambda s: (tell(s[0]), s[0] < {n})[1], step, (0, {init}))[1]"),
}


def drawn_program(draw: Random) -> str:
    """The text of ``f(x)``, for four values."""
    form, n = draw.choice(FORMS), draw.choice((1, 2, 5, 9, 26))
    others = draw.sample(list(OTHERS), draw.randrange(4))
    leaves = ["a", "b", *(f"l{i}" for i in range(len(others)))]
    packed = draw.choice(("({})", "[{}]", "{{'one': [{}]}}", "Pair(1.0, [{}])")).format(", ".join(leaves) + ", ")
    begins = [draw.choice(BEGINS), draw.choice(BEGINS)]
    if form in ("steps", "plain"):  # where a step writes to the program's own arrays
        begins = [f"np.array({begin}, like=x)" for begin in begins]
    body = [draw.choice(STEPS).format(a=draw.choice("ab"), b=draw.choice("ab")) for _ in range(draw.randrange(1, 5))]
    body += [OTHERS[kind].format(v=f"l{i}") for i, kind in enumerate(others)]
    draw.shuffle(body)
    lines = ["def f(x):", " rng = np.random.default_rng(5); z = np.sin(x); base = np.concatenate([x, z])"]
    lines += [f" {name} = {begin}" for name, begin in zip(leaves, (*begins, *others), strict=True)]
    lines += _loop(form, n, packed, body)
    rest = " + np.sum(ys)" if form == "scan" else ""
    return "\n".join([*lines, f" return np.sum(a) + 0.5 * np.sum(b){rest}"])


def _loop(form: str, n: int, packed: str, body: list[str]) -> list[str]:
    if form in ("steps", "plain"):
        return [f" for k in {'pb.steps' if form == 'steps' else 'range'}({n}):", *(f"  {line}" for line in body)]
    names = packed[packed.index("a,") : packed.rindex(", ") + 1]
    unpacked = {"(": "s", "[": "s", "{": "s['one']", "P": "s.rest"}[packed[0]]
    head, call = HEADS[form]
    first = {"fori": "pass", "scan": "k = 1; b = None", "while": "k, s = s"}[form]
    result = {"fori": packed, "scan": f"{packed}, w * a", "while": f"(k + 1, {packed})"}[form]
    return [
        f" {head}", f"  {first}", f"  {names} = {unpacked}", *(f"  {line}" for line in body), f"  return {result}",
        f" {call.format(n=n, init=packed)}", f" {names} = {unpacked}",
    ]  # fmt: skip


def made(text: str, seen: list[Any]) -> Any:
    """The function of a text; its effects write to ``seen``."""

    def count(k: int) -> float:
        seen.append("count")
        return 0.1 * (sum(x == "count" for x in seen) % 5)

    def tell(*args: Any) -> None:
        seen.append(tuple(np.asarray(x).tobytes() for x in args))

    effects = {"tell": pb.effect(tell), "count": pb.effect(count)}
    around = {"np": np, "pb": pb, "TABLE": TABLE.copy(), "Pair": Pair, **effects}
    exec(compile(text, "<drawn>", "exec"), around)  # noqa: S102 - drawn above
    return around["f"]
