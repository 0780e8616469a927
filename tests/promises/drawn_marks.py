"""Draws programs whose marked steps call functions that make and write arrays, keep what they have made, swap it, and
do something else now and then.

A step has a few statements that every step does, and some under a condition. Programs run as they are on plain arrays;
what only adopted code can do is drawn for those that are adopted whole.
"""

from random import Random

HELPERS = """
import copy
import numpy as np
import pullback as pb
from dataclasses import dataclass

TABLE = np.linspace(0.2, 1.0, 200).reshape(40, 5)
ORDER = np.array([2, 0, 3, 1, 4])
KEPT = []


@dataclass
class State:
    u: object
    v: object
    n: int = 0


class Holder:
    def __init__(self, u):
        self.u, self.log, self.buffer = u, [], np.zeros(5)

    def step(self, c):
        self.u = self.u * 0.9 + c
        self.log.append(self.u)
        return self.u


def h_zeros(u, c):
    z = np.zeros(5)
    z[1:] = u[:-1] * 0.5
    z[0] = c
    return z


def h_arange(u, c):
    r = np.arange(5) * 0.1
    r[2] = np.sum(u) * c
    r += u * 0.3
    return r


def h_list(u, c):
    return np.array([u[0], c, u[1] * u[2], 0.5, np.sin(u[3])])


def h_loop(u, c):
    s, t = 0.0, np.zeros(5)
    for i in range(1, 5):
        s = s + u[i] * u[i - 1]
        t[i] = t[i - 1] * 0.5 + s * c
    return t


def h_copy(u, c):
    z = u.copy()
    z[::2] *= 0.5
    z[1] = c
    return z


def h_kept(u, c):
    KEPT.append(u * c)
    return KEPT[-1] * 0.5


def h_rows(u, c):
    w = np.ones((3, 5))
    w[0] = u
    row = w[1]
    row[:] = u * 0.5
    w[2] = row + w[0] * c
    return w[2]


def h_constant(u, c):
    z = np.zeros(5)
    z[1] = 0.3
    return z


def h_in_place(u, c):
    u[1:] = u[:-1] * 0.7
    u[0] = c
    return u


def k_filled(u, k):
    z = np.zeros(5)
    if k > 8:
        z[0] = 0.5
    z[1:] = u[1:]
    return z * 0.9 + u * 0.1


def k_made(u, k):
    z = np.zeros(5) if k % 3 else np.ones(5)
    z[k % 2] = u[0]
    return z * 0.5 + u * 0.4


def k_several(u, k):
    return np.sum(np.stack([u, *[TABLE[3]] * (k % 3), *[u * 0.1] * int(k == 9)]), 0) * 0.4


def k_types(u, k):
    z = np.zeros(5, np.float32 if k in (7, 8) else float)
    z[:] = u
    return z.astype(float) * 0.9


def k_shapes(u, k):
    z = np.zeros((2 if k % 4 == 3 else 1, 5))
    z[0] = u
    return z.sum(axis=0) * 0.8


def k_orders(u, k):
    z = np.zeros((5, 3), order="F" if k > 7 else "C")
    z[:, 0], z[:, 1] = u, u * 0.3
    return z.sum(axis=1) * 0.7


def k_until(u, k):
    z, j = np.zeros(5), 0
    while j < k % 3:
        z[j] = u[j]
        j += 1
    return u * 0.5 + z * 0.4


def k_kept(u, k):
    if k % 4 == 0 or not KEPT:
        KEPT.append(np.zeros(5))
    if k == 9:
        KEPT[-1][1] = 0.3
    KEPT[-1][k % 5] = u[1]
    return u * 0.5 + KEPT[-1] * 0.3


def k_in_place(u, k):
    z = np.full(5, 0.1 * (k > 5))
    z += u * 0.5
    if k % 5 == 4:
        z[::2] *= 0.5
    return z


def h_branch(u, c):
    if u[0] > 0.4:
        return u * 0.5
    z = np.empty(5)
    z[:] = u + c
    return z


"""
PROGRAM = """def program(x, w, p):
    rng = np.random.default_rng(3)
    u, v, r = x * 1.0, w * 0.5, {third}
    s, t, n = {number}, np.sum(x) * 0.1, 0
    plain, like = p * 0.5, np.zeros_like(x)
    kept, named, holder, state = [u * 0.5], {{"a": v * 0.5}}, Holder(u * 1.0), State(u * 0.7, v * 0.9)
    a = c = None
    {before}
{loops}
    out = np.sum(u * u) + np.sum(v * 0.3) + np.sum(r * x) + s * 0.5 + t
    return out + {more}
"""
MAKERS = (
    "h_zeros", "h_arange", "h_list", "h_loop", "h_copy", "h_rows", "h_constant",
)  # fmt: skip
ARRAYS = (
    "u", "u", "v", "v", "r", "x", "w", "p", "TABLE[3]", "TABLE[k]", "plain", "kept[-1]", "kept[0]", "named['a']",
    "holder.u", "holder.buffer", "state.u", "state.v", "like", "u[::-1]", "rng.standard_normal(5)",
)  # fmt: skip
NUMBERS = (
    "0.3", "s", "t", "u[0]", "v[-1]", "np.sum(u) * 0.1", "k * 0.01", "n * 0.1", "np.dot(u, v) * 0.2", "rng.random()",
    "plain[k % 5]", "TABLE[k, 1]", "np.mean(v)", "float(k % 3)", "holder.u[2]", "state.n * 0.1", "np.max(u)",
)  # fmt: skip
BY_STEP = ("filled", "made", "several", "types", "shapes", "orders", "until", "kept", "in_place")
FORMS = (
    "np.where({0} > 0.3, {0}, {1})", "np.maximum({0}, {1})", "np.concatenate([({0})[2:], ({1})[:2]])",
    "np.roll({0}, 1)", "np.stack([{0}, {1}])[1]", "np.cumsum({0}) * 0.2", "({0})[ORDER]", "np.abs({0})",
)  # fmt: skip
STEADY = (
    "u = np.tanh({0})", "v = 0.9 * ({0})", "u = np.sin({0}) + 0.1 * u", "r = 0.5 * ({0})", "t = t * 0.9 + {2} * 0.05",
    "s = s * 0.5 + {2} * 0.1", "n += 1", "u, v = v, u", "un = u; u = v * 0.9 + 0.1 * un",
    "a = np.sin(u); u = u * 0.9 + 0.1 * a", "kept[0] = u * 0.5", "kept = [u * 0.5]", "kept.append(u * 0.5)",
    "kept.append(np.sin(v)); kept = kept[-3:]", "named['a'] = np.sin(v)", "holder.step(0.1)",
    "holder.u = holder.u * 0.9 + {2} * 0.05", "state.n += 1", "state.u = np.sin(state.u) + 0.1 * u",
    "state = State(u * 0.5, v * 0.9, k)", "plain[k % 5] = 0.1 * k", "plain *= 0.95", "plain = plain + 0.01",
    "u = u + plain * 0.1; plain[:] = 0.5", "z = plain * 1.0; u = u + z * 0.1; z[:] = -1",
    "z = u * 0.9; z[1:] += v[:-1] * 0.1; u = z * 1.0", "z = v.copy(); z[::2] *= 0.5; v = np.sin(z)",
    "z = np.zeros_like(u); z[1:3] = v[:2]; u = u * 0.9 + z * 0.1",
    "z = np.empty_like(u); np.cos(u, out=z); v = z * 0.5",
    "z = np.sin(u); part = z[1:4]; part *= 0.5; u = u * 0.5 + z * 0.4",
    "z = u * 1.0; row = z[::2]; z[0] = t; v = v * 0.9 + np.sum(row) * 0.01",
    "f = lambda: u * 0.5; u = u * 0.8 + 0.1 * f()", "u = 1.0 * h_in_place(u * 0.9, 0.3)",
    "u = u / (1.0 + np.sum(u * u))", "s = 0.1 * k", "e = x * w; u = u * 0.9 + 0.05 * e",
    "u = pb.name(u, 'u') * 0.9", "z = pb.name(np.sin(u), 'z'); u = u * 0.5 + z * 0.4", "u = pb.name(u * 0.9, 'u')",
    "pb.name(v, 'v', step=k); v = np.cos(v)", "un = pb.name(u, 'un'); u = v * 0.9 + 0.1 * un",
)  # fmt: skip
ADOPTED = (
    "z = np.zeros(5); z[1:] = u[1:]; u = z * 0.9 + 0.1", "z = np.empty(5); z[:] = v; v = z * 0.9",
    "u = np.array([u[4], u[0], t, t, v[1]]) * 0.9",
    "z = np.zeros((2, 5)); z[0], z[1] = u, v; u, v = z[0] * 1.0, z[1] * 0.9",
    "z = np.zeros(5); d = z; d[1] = u[0]; u = u * 0.9 + z * 0.1",
    "holder.buffer = np.zeros(5); holder.buffer[1] = u[0]", "kept.append(np.ones(5))", "plain = np.zeros(5) + 0.1",
    "holder.buffer[k % 5] = 0.3", "r = np.ones(5) * 0.2",
)  # fmt: skip
SELDOM = (
    "kept.append(u)", "kept.append(v); kept.append(r)", "named['k'] = u", "c = u", "c = (u, v, a)", "c = u[1:3]",
    "kept.append(u[::-1])", "u *= 0.9", "v[1] = 0.3", "kept[-1] *= 0.5", "s = t", "u = v", "a = None",
    "del kept[:-1]", "kept = [u]", "float(pb.value(u[0]))", "break", "continue", "u = kept[0] * 0.9",
    "u, v, r = v, r, u", "holder = Holder(u)", "state = State(u, u)", "plain = u", "r = kept[-1]", "x = u * 0.1",
    "w = x", "c = lambda: u", "c = (z * 0.5 for z in (u, v)); u = next(c)", "u = np.zeros_like(u)", "u = np.ones(5)",
    "t = 0.5", "u = pb.fori_loop(0, 3, lambda j, z: np.sin(z), u)", "u = pb.checkpoint(np.sin)(u)", "r = v[::-1]",
    "u = h_branch(u, 0.1)", "u = k_filled(u, 9)", "c = copy.copy(u)", "state = copy.copy(state)", "c = u.copy()",
    "c = list(u)",
    "like += u", "like[2] = t", "np.add(u, v, out=u)", "u[u > 0.8] = 0.2", "u = h_kept(u, t)",
    "kept[0] = h_in_place(kept[0], t)", "u = np.append(u, u[:1])[:5]",
    "pb.name(u[1:], 'part')", "w = pb.name(w, 'w')", "kept.append(pb.name(u, 'u'))", "t = pb.name(t, f't{{k}}')",
)  # fmt: skip
CONDITIONS = (
    "k == 7", "k in (6, 9)", "k > 8", "k < 5", "k % 5 == 4", "9 < k < 12", "t > 0.6", "u[0] > 0.6", "k == 1",
    "k == 13",
)  # fmt: skip
AFTER = (
    "u *= 0.5", "v[1:] += u[:-1]", "u = u + r", "named['a'] += u", "u, v = v, u", "u = u[::-1]", "pass", "pass",
)  # fmt: skip
MORE = (
    "0.0", "sum(np.sum(z) for z in kept)", "np.sum(named['a'])", "sum(np.sum(z) for z in holder.log[:3])",
    "np.sum(state.u) * np.sum(state.v)", "np.sum(like)", "np.sum(kept[-1] * kept[0])", "np.sum(holder.buffer)",
    "(np.sum(a) if a is not None else 0.0)", "(np.sum(c()) if callable(c) else 0.0)", "sum(np.sum(z) for z in KEPT)",
)  # fmt: skip
OVER = (
    "{0}", "{0}", "range({0})", "range({0}, 0, -1)", "ORDER.tolist() * 3", "np.arange({0})",
    "(j for j in range({0}))",
)  # fmt: skip


def program_text(seed: int, adopted: bool) -> str:
    """The program of a seed."""
    draw = Random(seed)  # noqa: S311 - draws programs

    def number() -> str:
        return draw.choice(NUMBERS)

    def vector(depth: int = 2) -> str:
        if depth == 0 or draw.random() < 0.2:
            return draw.choice(ARRAYS)
        one, other, kind = vector(depth - 1), vector(depth - 1), draw.random()
        if kind < 0.3:
            return f"np.{draw.choice(('sin', 'cos', 'tanh'))}({one})"
        if kind < 0.45:
            return f"{draw.choice(MAKERS)}({one}, {number()})"
        if kind < 0.52:
            return f"k_{draw.choice(BY_STEP)}({one}, k)"
        if kind < 0.65:
            return draw.choice(FORMS).format(one, other)
        return f"({one} {draw.choice('+-*')} {other if draw.random() < 0.6 else number()})"

    def said(texts: tuple[str, ...], pad: str) -> list[str]:
        text = draw.choice(texts).format(vector(), vector(1), number())
        return [pad + line for line in text.split("; ")]

    def loop() -> list[str]:
        length = draw.choice((14, 16, 18))
        pad = "        "
        steady = STEADY + ADOPTED * adopted + tuple(f"u = k_{name}(u * 0.9 + 0.1 * v, k)" for name in BY_STEP)
        steps = [said(steady, pad) for _ in range(draw.randint(2, 6))]
        for _ in range(draw.choice((0, 1, 1, 2))):
            seldom = [f"{pad}if {draw.choice(CONDITIONS)}:", *said(SELDOM + STEADY, pad + "    ")]
            steps.insert(draw.randint(0, len(steps)), seldom)
        return [
            f"    for k in pb.steps({draw.choice(OVER).format(length)}):",
            *(line for step in steps for line in step),
            f"    {draw.choice(AFTER)}",
        ]

    loops = [line for _ in range(draw.choice((1, 1, 2))) for line in loop()]
    return HELPERS + PROGRAM.format(
        third=draw.choice(("p * 1.0", "x * w", "np.zeros_like(x)", "x", *("np.ones(5)",) * adopted)),
        number=draw.choice(("0.1", "np.sum(w) * 0.1")),
        before=draw.choice(("pass", "pass", "v = u[::-1]", "r = u", "kept.append(v)", "u = x", "v = w")),
        more=draw.choice(MORE),
        loops="\n".join(loops),
    )
