"""Loops drawn as text whose state has whole numbers: counters, numbers of steps, flags. Most bodies may rest, since
nothing decides anything by the number; in the others it chooses a branch, a slice, an element or a row."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define

import pullback as pb
from pullback.words.structures import flatten

N = 70
START = np.array([0.31, 0.83, -0.52, 0.17])
TABLE = np.linspace(-0.9, 0.8, 4 * 40).reshape(40, 4)
STARTS = {"0": 0, "3": 3, "-2": -2, "True": True, "int64": np.int64(2), "array": np.arange(1, 4)}
COUNTS = (
    "n + 1", "n + 1", "n + 1", "n + 2", "n - 1", "1 + n", "(n + 1) % 7", "n * 3 % 101", "n", "-n", "n * 5 % 2**62",
    "n // 2 + 9",
    "n ** 2 % 97", "n + 1 if np.sum(n) < 30 else n + 2", "n + k", "next_of(n)", "n + (1 if k % 9 else 2)", "n * 1 + 1",
)  # fmt: skip
"""What the number is after a step."""
USES = (
    "u * 0.99", "u * 0.99", "u * (1.0 + 0.001 * m)", "u + 0.01 * TABLE[m % 40]", "u + 0.01 * TABLE[m % 40, 1]",
    "u * np.cos(0.1 * m)", "u + 0.01 * of_both(m, u)", "u * 0.9 if m % 7 == 3 else u * 0.99", "u[::-1] + 0.001 * m",
    "u + 0.01 * np.sum(u[: m % 3])", "u + 0.01 * u[m % 4]", "u + 0.001 * (m % 5)", "u + 0.001 * float(m)",
    "u + 0.01 * TABLE[m % 40][::-1] * u", "u - 0.01 * np.sin(u) * (m % 2)", "u + 0.01 * np.roll(u, m % 4)",
    "u * (0.99, 0.98)[m % 2]", "u + 0.01 * np.full(4, m % 3)", "np.where(m % 3 == 1, u, 0.99 * u)",
    "u * np.exp(-0.01 / (1 + m * m))",
)  # fmt: skip
"""What a step does with it; ``m`` is the number, or one of several."""
DECIDING = " if ", "u[:", "u[m", "float", "roll", "full", "98)", "where"
CARRIES = {
    "n, u": ("n, u = s", "({n}, {u})"),
    "u, n": ("u, n = s", "({u}, {n})"),
    "within": ("(n, t), u = s", "(({n}, t * 0.99 + 0.01 * u), {u})"),
    "by place": ("n, u = s[0], s[-1]", "({n}, {u})"),
    "helped": ("n, u = halves(s)", "both({n}, {u})"),
    "named": ("n, u = s['n'], s['u']", "{{'n': {n}, 'u': {u}}}"),
}
"""How a body takes its state apart, and what it returns."""
HELPERS = """
def next_of(n):
    return n + 1

def of_both(m, u):
    return u * (0.5 + 0.01 * m)

def halves(s):
    return s[0], s[1]

def both(n, u):
    return n, u
"""


@define(frozen=True)
class Counting:
    """One program: ``value(x, c)`` is a number."""

    form: str
    carry: str
    start: str
    count: str
    uses: tuple[str, ...]
    traced_rows: bool
    gives: bool

    @property
    def text(self) -> str:
        """The text of ``body(k, s, c, row)``, which returns the state and an output."""
        taken, returned = CARRIES[self.carry]
        m = "n[1]" if self.start == "array" else "n"
        lines = [f"u = {use}" for use in self.uses]
        returned = returned.format(n=self.count, u="u + 0.001 * c * row")
        lines = ["def body(k, s, c, row):", taken, f"m = {m}", *lines, f"return {returned}, u * 0.5"]
        return HELPERS + "\n    ".join(lines)

    def body(self) -> Callable[..., Any]:
        """The function of the text."""
        names: dict[str, Any] = {"np": np, "TABLE": TABLE}
        exec(compile(self.text, "<counting>", "exec"), names)  # noqa: S102 - drawn above
        found: Callable[..., Any] = names["body"]
        return found

    def state(self, x: Any) -> Any:
        """The initial one."""
        n = STARTS[self.start]
        n = n.copy() if isinstance(n, np.ndarray) else n
        return {"u, n": (x, n), "within": ((n, x * 0.5), x), "named": {"n": n, "u": x}}.get(self.carry, (n, x))

    def value(self, x: Any, c: Any) -> Any:
        """Of the last state, and of what the steps have given where that counts."""
        body = self.body()
        rows = TABLE[np.arange(N) % 40] * (c if self.traced_rows else 1.0)
        if self.form == "scan":
            state, ys = pb.scan(lambda s, row: body(0, s, c, row), self.state(x), rows)
        elif self.form == "while_loop":
            until = lambda t: t[0] < N  # noqa: E731
            step = lambda t: (t[0] + 1, body(0, t[1], c, 0.3)[0])  # noqa: E731
            (_, state), ys = pb.while_loop(until, step, (0, self.state(x))), None
        else:
            state, ys = pb.fori_loop(0, N, lambda k, s: body(k, s, c, 0.3)[0], self.state(x)), None
        total = sum(np.sum(np.tanh(leaf)) for leaf in flatten(state)[0])
        return total + np.sum(np.sin(ys)) if self.gives and ys is not None else total

    def last(self, x: Any, c: Any) -> Any:
        """The last state by a plain loop, in the order of its leaves."""
        body, state = self.body(), self.state(x.copy())
        rows = TABLE[np.arange(N) % 40] * (c if self.traced_rows else 1.0)
        for k in range(N):
            row = rows[k] if self.form == "scan" else 0.3
            state, _ = body(k if self.form == "fori_loop" else 0, state, c, row)
        return state


def counting(number: int) -> Counting:
    """The program of a number."""
    r = np.random.default_rng(number)
    form, carry, start = (str(r.choice(list(each))) for each in (("fori_loop", "scan", "while_loop"), CARRIES, STARTS))
    count = str(r.choice(COUNTS))
    count = "not n" if start == "True" else count
    uses = tuple(str(use) for use in r.choice(USES, r.integers(1, 4)))
    if r.integers(2):  # one that may rest
        still = [use for use in USES if not any(word in use for word in DECIDING)]
        uses, count = tuple(str(use) for use in r.choice(still, 2)), count if " if " not in count else "n + 1"
    return Counting(form, carry, start, count, uses, bool(r.integers(2)), bool(r.integers(2)))
