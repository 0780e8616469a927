"""Draws programs of loops over numbers and parts of arrays."""

from random import Random

HEAD = """
import math
import numpy as np

TABLE = np.linspace(0.2, 1.3, 9)
SCALE = 0.7


class P:
    k, most = 0.4, np.inf


def program(c, a, m):
    s, r, q = 0.5, 1.0, c * 0.3
    inf, nan, P.k = c * 0.2, 0.3, 0.4
    u, v, w = np.zeros(6), np.ones(6) * 0.4, np.zeros((6, 5))
    w[0, :] = a[:5]
    q2 = q
    b, c2 = {others}
    held = {held}
"""
TAIL = """    P.k = 0.9
    return s + r * q + np.sum(u * u) + np.sum(v) + np.sum(w ** 2) + np.sum(m * 0.1){extra}
"""
INDICES = ("i", "i - 1", "5 - i", "i // 2", "0", "-1", "2")


class Drawn:
    """One program, by its seed."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)  # noqa: S311 - draws programs
        self.loops: list[str] = []

    def index(self, extent: int) -> str:
        """An integer in the range of an axis, whatever the loops are at: they go up to 5."""
        name = self.draw.choice(self.loops)
        text = self.draw.choice(INDICES).replace("i", name, 1) if self.draw.random() < 0.9 else f"k{len(self.loops)}"
        text = text if not text.startswith("k") else name
        return (
            text if extent > 5 else f"({text}) % {extent}" if self.draw.random() < 0.5 else f"min({name}, {extent - 1})"
        )

    def element(self) -> str:
        """One element of an array."""
        kind = self.draw.choice(("a", "u", "v", "w", "m", "TABLE", "b"))
        if kind in ("w", "m"):
            return f"{kind}[{self.index(6)}, {self.index(5)}]"
        return f"{kind}[{self.index(6)}]"

    def number(self, depth: int = 2) -> str:
        """An expression that gives a number."""
        choice = self.draw.random()
        if depth == 0 or choice < 0.25:
            return self.draw.choice([
                self.element(),
                self.element(),
                "c",
                "s",
                "r",
                "q",
                "SCALE",
                "P.k",
                "inf",
                "0.3",
                "2",
                self.draw.choice(self.loops),
            ])
        one, other = self.number(depth - 1), self.number(depth - 1)
        if choice < 0.65:
            return f"({one} {self.draw.choice('+-*')} {other})"
        if choice < 0.73:
            return f"({one} / ({other} + 3.5))" if self.draw.random() < 0.8 else f"({one} / P.most + nan)"
        if choice < 0.78:
            return f"({one}) ** 2"
        if choice < 0.9:
            function = self.draw.choice(("np.sin", "np.cos", "np.tanh", "math.sin", "np.exp", "abs", "-", "math.atan"))
            return f"{function}(0.2 * ({one}))"
        if choice < 0.95:
            return f"np.dot({self.row()}, {self.row()})"
        return f"{self.row()} @ {self.row()}"

    def row(self) -> str:
        """A vector of four numbers."""
        i = self.index(6)
        return self.draw.choice((
            f"w[{i}, 1:]",
            f"m[{i}, :4]",
            "a[1:5]",
            "u[2:]",
            "v[:4]",
            "np.flip(a[:4])",
            "w[:4, 2]",
        ))

    def vector(self, depth: int = 2) -> str:
        """An expression that gives four numbers."""
        if depth == 0 or self.draw.random() < 0.3:
            return self.row()
        one = self.vector(depth - 1)
        if self.draw.random() < 0.3:
            return f"np.{self.draw.choice(('sin', 'tanh', 'sqrt'))}(np.abs({one}) + 0.1)"
        other = self.number(1) if self.draw.random() < 0.4 else self.vector(depth - 1)
        one, other = (one, other) if self.draw.random() < 0.6 else (other, one)
        return f"({one} {self.draw.choice('+-*')} {other})"

    def statement(self, depth: int) -> list[str]:
        """A statement, with those in it."""
        choice = self.draw.random()
        op = self.draw.choice(("=", "=", "+=", "-=", "*="))
        if depth and choice < 0.15:
            name = "ijkl"[len(self.loops)]
            over = self.draw.choice(("range(1, 4)", "range(5, 0, -2)", "range(3)", f"range({self.loops[-1]})"))
            self.loops.append(name)
            body = self.block(depth - 1)
            self.loops.pop()
            return [f"for {name} in {over}:", *body]
        if depth and choice < 0.25:
            test = self.draw.choice((f"{self.loops[-1]} % 2 == 0", f"{self.element()} > 0.4", f"s < {self.number(1)}"))
            lines = [f"if {test}:", *self.block(depth - 1)]
            return [*lines, "else:", *self.block(depth - 1)] if self.draw.random() < 0.5 else lines
        if choice < 0.45:
            return [f"{self.draw.choice('srq')} {op} 0.5 * {self.number()}"]
        if choice < 0.75:
            target = self.draw.choice((
                f"u[{self.index(6)}]",
                f"v[{self.index(6)}]",
                f"w[{self.index(6)}, {self.index(5)}]",
            ))
            return [f"{target} {op} 0.5 * {self.number()}"]
        i = self.index(6)
        target = self.draw.choice((f"w[{i}, 1:]", "u[2:]", "v[:4]", f"w[{i}, :4]", "w[:4, 1]"))
        value = self.number(1) if self.draw.random() < 0.3 else self.vector()
        return [f"{target} {self.draw.choice(('=', '+=', '-=', '*='))} {value}"]

    def block(self, depth: int) -> list[str]:
        """Statements, indented."""
        lines = []
        for _ in range(self.draw.randint(1, 3)):
            lines += self.statement(depth)
        return ["    " + line for line in lines]

    def body(self) -> tuple[list[str], bool]:
        """One or two loops with a statement after each; whether the number of the first is bound after them."""
        lines, bound = [], True
        for _ in range(self.draw.randint(1, 2)):
            self.loops = ["i"]
            ends = f"{self.draw.randint(1, 2)}, {self.draw.randint(3, 6)}" if self.draw.random() < 0.85 else "4, 1"
            bound = bound and ends != "4, 1"
            lines += [f"for i in range({ends}):", *self.block(2)]
            if self.draw.random() < 0.5:
                lines.append(
                    self.draw.choice((
                        "u = u * c",
                        "s = s + u[1] * v[2]",
                        "w[1] = w[2] * r",
                        "r = r * 0.5 + i" if bound else "pass",
                        "P.k = P.k * 1.5",
                    ))
                )
        return lines, bound

    def text(self) -> str:
        """The whole program."""
        lines, bound = self.body()
        extra = self.draw.choice((
            "",
            " + q2",
            " + np.sum(np.where(u > 0.1, u * c, 0.0))",
            " + i * c" * bound,
            " + held[0][1]",
        ))
        held = self.draw.choice(("[a]", "[a]", "[u[::1], v[1:]]", "[w[2], w[:, 1], u[::-1]]", "[v[:3], u]"))
        others = self.draw.choice(("a, c", "a * 1.0, c * 1.0", "a * 1.0, c * 1.0", "m[:, 0], c + 0.1"))
        return (
            HEAD.format(others=others, held=held)
            + "\n".join("    " + line for line in lines)
            + "\n"
            + TAIL.format(extra=extra)
        )


STEPS = {
    "plain": """    for t in range(n):
{body}
""",
    "marked": """    for t in pb.steps(n):
{body}
""",
    "fori_loop": """    def step(t, state):
        s, r, q, u, v, w = state
        u, v, w = u * 1.0, v * 1.0, w * 1.0
{body}
        return s * 1.0, r * 1.0, q * 1.0, u, v, w
    s, r, q, u, v, w = pb.fori_loop(0, n, step, (s * 1.0, r * 1.0, q, u * c, v * c, w))
""",
    "scan": """    def step(state, x):
        s, r, q, u, v, w = state
        u, v, w = u * 1.0, v * 1.0, w * x
{body}
        return (s * 1.0, r * 1.0, q * 1.0, u, v, w), s * x
    (s, r, q, u, v, w), ys = pb.scan(step, (s * 1.0, r * 1.0, q, u * c, v * c, w), np.linspace(0.5, 1.0, n))
    s = s + np.sum(ys)
""",
    "checkpoint": """    def step(s, r, q, u, v, w):
        u, v, w = u * 1.0, v * 1.0, w * 1.0
{body}
        return s * 1.0, r * 1.0, q * 1.0, u, v, w
    step = pb.checkpoint(step)
    for t in range(n):
        s, r, q, u, v, w = step(s, r, q, u, v, w)
""",
}
"""Programs whose steps have drawn loops in them, by how the steps are told."""


def in_steps(seed: int, how: str) -> str:
    """A program of ``n`` steps with the same drawn loops in each."""
    drawn = Drawn(seed)
    lines, _ = drawn.body()
    lines = [line.replace(" + i", "") if line.startswith("r = r * 0.5") else line for line in lines]
    head = HEAD.format(others="a * 1.0, c * 1.0", held="a").replace("(c, a, m)", "(c, a, m, n=5)")
    damped = ["u, v, w = np.tanh(u), np.tanh(v), np.tanh(w)", "s, r, q = np.tanh(s), np.tanh(r), np.tanh(q)"]
    inner = "\n".join("        " + line for line in [*lines, *damped])
    return "import pullback as pb\n" + head + STEPS[how].format(body=inner) + TAIL.format(extra="")


WHOLE = (
    "x = x * a + y", "y = np.sin(x) * c", "s = s + np.dot(x, y)", "w[i, :] = x", "x = w[i, :] * 0.5",
    "u[i] = np.dot(x, a)", "y = a - x * s", "s = s * 0.5 + u[i]", "w[:, i] += y * c", "x = -y + u",
    "u[:] = x * 0.3", "u[1:] = u[:-1] * 0.7", "w[i] *= c", "t = x + y", "z = t * a", "s += z @ a", "w *= 1.0",
    "x = M2[i] * y", "u -= 0.1", "y = y + u", "s = float(i) * s", "q = s * c", "u[i] = q / (1.0 + a[i] ** 2)",
    "x = np.maximum(x, 0.3)", "y = np.tanh(y) + x * 0.0", "M2[i, 1] = s * 0.1", "u[::2] = a[::2] * s",
    "u[::-1] = x", "s = s + i // 2", "w[i, 1:3] /= 1.5 + a[1:3]", "w[i, :] -= c",
)  # fmt: skip
ASKED = """

def asked(*values):
    told = 0.0
    for k, value in enumerate(values):
        try:
            np.asarray(value).tolist()
        except Exception:
            told += 2.0 ** k
    return told
"""


def with_what_depends(seed: int) -> str:
    """A program that tells which of its values depend on the inputs, by what raises."""
    text = (
        Drawn(seed)
        .text()
        .replace("    return ", "    told = asked(s, r, q, u, v, w)\n    return (told + 1.0) * c * c + ")
    )
    return text + ASKED


AFTER = (
    "x[0] = c", "y[1:] = a[1:]", "u[0] = s", "x = x + y", "w[0] = x", "s = s * c", "x *= 2.0", "pass",
)  # fmt: skip
ARRAYS = """
import numpy as np

K = np.linspace(0.1, 0.4, 16).reshape(4, 4)


def program(c, a, m):
    s, q, t, z = c * 0.5, 0.1, a * 1.0, a * 2.0
    x, y, u, w, M2 = np.ones(4), a * c, np.zeros(4), np.zeros((4, 4)), K.copy()
"""
NESTED = """        for j in range(i):
            s = s + u[j] * w[i, j]
            u[j] = u[j] * 0.5 + m[j, i]
"""
SUMS = "    return s * q + np.sum(x * y) + np.sum(u * u) + np.sum(w ** 2) + np.sum(t + z) + np.sum(M2) + np.dot(a, a)"


def whole_arrays(seed: int) -> str:
    """A program whose loops bind and change whole arrays, with statements after them that write to these."""
    draw = Random(seed)  # noqa: S311 - draws programs
    text = ARRAYS + f"    {draw.choice(('b = a', 'u[:] = a', 'w[1] = a', 'v = w[2]'))}\n"
    for _ in range(draw.randint(1, 2)):
        text += f"    for i in range({draw.choice(('4', '1, 4', '3, -1, -1', '0'))}):\n"
        text += "".join(f"        {draw.choice(WHOLE)}\n" for _ in range(draw.randint(1, 5)))
        text += NESTED if draw.random() < 0.3 else ""
        text += f"    {draw.choice(AFTER)}\n"
    return text + SUMS + draw.choice(("", " + np.sum(np.where(x > 0.5, x, 0.0))")) + "\n"
