"""Loops of adopted code over single numbers, compiled by numba: the bits of Python's own run, or that run."""

import warnings
from itertools import count
from random import Random

import numpy as np
import pytest

import pullback as pb
from pullback.adopting.loops import compiled_runs

FILES = count()
A = np.random.default_rng(3).uniform(0.2, 1, 6)
M = np.random.default_rng(4).uniform(0.2, 1, (6, 5))
HEAD = """
import numpy as np

TABLE = np.linspace(0.2, 1.3, 9)
PLACES = np.array([3, 0, 5, 1, 2, 4])


def program(c, a, m):
    s, r, p, n, k = 0.5, np.float64(1.0), c * 0.3, 6, 0
    u, w = np.zeros(6), np.ones((6, 5)) * 0.4
    w[0, :] = a[:5]
"""
TAIL = """    return s + r * p + k * c + np.sum(u * u) + np.sum(w ** 2) + np.sum(m * 0.1) + np.float32(0.1) * s
"""


class DrawnNumbers:
    """A program of loops over single numbers, by its seed."""

    def __init__(self, seed):
        self.draw = Random(seed)  # noqa: S311 - draws programs
        self.loops = ["i"]

    def index(self, extent):
        name = self.draw.choice(self.loops)
        texts = "{}", "{} - 1", "5 - {}", "{} // 2", "-1", "2", "{} * 2", "({} * 7 + n)", "len(a) - {}"
        text = self.draw.choice(texts)
        return f"({text.format(name)}) % {extent}"

    def element(self):
        kind = self.draw.choice(("a", "u", "w", "m", "TABLE"))
        place = self.index(6) if kind not in "wm" else f"{self.index(6)}, {self.index(5)}"
        return f"{kind}[{place}]"

    def number(self, depth=2):
        choice = self.draw.random()
        if depth == 0 or choice < 0.25:
            names = [self.element(), self.element(), "c", "s", "r", "p", "0.3", "2", "n", self.draw.choice(self.loops)]
            return self.draw.choice(names)
        one, other = self.number(depth - 1), self.number(depth - 1)
        if choice < 0.75:
            return f"({one} {self.draw.choice('+-*')} {other})"
        if choice < 0.76:
            return f"(TABLE[{self.index(9)}] {self.draw.choice(('//', '%'))} 0.3)"  # which is not compiled
        return f"({one} / ({other} + 3.5))" if choice < 0.9 else f"-({one})"

    def statement(self, depth):
        choice = self.draw.random()
        op = self.draw.choice(("=", "=", "+=", "-=", "*=", "/="))
        shift = " + 2.5" if op == "/=" else ""
        if depth and choice < 0.2:
            name = "ijkl"[len(self.loops)] * 2
            around = f"range({self.loops[-1]})"
            over = self.draw.choice(("range(1, 4)", "range(5, 0, -2)", "range(3)", around, "range(2, 2)"))
            self.loops.append(name)
            body = self.block(depth - 1)
            self.loops.pop()
            return [f"for {name} in {over}:", *body]
        if depth and choice < 0.4:
            test = self.draw.choice((
                f"{self.loops[-1]} % 2 == 0", f"{self.element()} > 0.4", f"s < {self.number(1)} and i > 1", "not c > 2"
            ))  # fmt: skip
            lines = [f"if {test}:", *self.block(depth - 1)]
            return [*lines, "else:", *self.block(depth - 1)] if self.draw.random() < 0.5 else lines
        if choice < 0.45:
            texts = "k = i + 1", "k += 2", "k = i * i", "s = 2", "s = 0.25", "r = 1", "t = s; s = t * c"
            return [self.draw.choice(texts)]
        if choice < 0.65:
            return [f"{self.draw.choice('srp')} {op} 0.5 * {self.number()}{shift}"]
        target = self.draw.choice((f"u[{self.index(6)}]", f"w[{self.index(6)}, {self.index(5)}]", "u[i]", "u[i - 3]"))
        return [f"{target} {op} 0.5 * {self.number()}{shift}"]

    def block(self, depth):
        return ["    " + line for _ in range(self.draw.randint(1, 3)) for line in self.statement(depth)]

    def text(self):
        first = self.draw.choice(("range(6)", "range(1, 5)", "range(5, -1, -1)", "range(n - 2)", "range(0)"))
        return HEAD + "\n".join("    " + line for line in [f"for i in {first}:", *self.block(3)]) + "\n" + TAIL


@pytest.fixture
def adopted(tmp_path):
    def adopt(text):
        path = tmp_path / f"numbers_{next(FILES)}.py"
        path.write_text(text)
        return pb.adopt(path)

    return adopt


@pytest.fixture
def ran(monkeypatch):
    """What ran compiled: ``forward`` and ``reverse``, by the number of times."""
    seen = {"run": 0, "pull": 0}

    def watched(name):
        own = getattr(compiled_runs.CompiledLoop, name)

        def asked(self, *args):
            found = own(self, *args)
            seen[name] += found is not None
            return found

        monkeypatch.setattr(compiled_runs.CompiledLoop, name, asked)

    watched("run")
    watched("pull")
    return seen


def outcome(f, args, **options):
    """Value, gradients and warnings, or the error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            value, gradients = pb.value_and_grad(f, (0, 1, 2)[: len(args)], **options)(*args)
        except Exception as error:  # noqa: BLE001 - compared
            return type(error), str(error)
    heard = [(each.category, str(each.message)) for each in told]
    return type(value), *map(bits, (value, *gradients)), heard


def bits(x):
    """Any bits do for a NaN."""
    return np.where(np.isnan(x), np.nan, x).tobytes()


def require_same(f, *args, told=""):
    with pb.using(staging="off"):
        expected = outcome(f, args)
    with pb.using(staging="numba"):
        assert outcome(f, args) == expected, told
        assert outcome(f, args) == expected, told
    return expected


def test_drawn_loops(adopted, ran):
    """The same bits, and most of them by what is compiled, in each of two runs."""
    for seed in range(10):
        require_same(adopted(DrawnNumbers(seed).text()).program, 0.8, A.copy(), M.copy(), told=f"seed {seed}")
    assert ran["run"] >= 10
    assert ran["pull"] >= 6


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 1400, 40))
def test_many_drawn_loops(adopted, start):
    for seed in range(start, start + 40):
        f = adopted(DrawnNumbers(seed).text()).program
        require_same(f, 0.8, A.copy(), M.copy())
        require_same(f, -1.3, A[::-1] - 0.5, M * np.where(M > 0.9, np.nan, 1))


SWEEP = """
import numpy as np

def sweep(u, n=12, shift=0):
    v = np.zeros(n)
    v[:] = u
    for t in range(3):
        for i in range(1, n - 1):
            v[i + shift] = v[i] - v[i] * v[i] / (v[i - 1] + 3.0)
    return np.sum(v)

def lasting(u, n):
    s = 0.0
    for i in range(n):
        s = s + u[i] * 0.5
    return s

def conditional(u):
    t = 1.5
    for i in range(12):
        if u[i] > 5.0:
            t = u[i] * 2.0
    return t * u[0]

def long_product(u, n):
    s = 0.0
    for i in range(n, n + 3):
        s = s + u[0] * (i * i * i)
    return s

def bound_late(u):
    for i in range(3):
        if i > 0:
            s = s + t * u[i]
        else:
            s = u[0] * 1.0
        if i == 0:
            t = u[1] * 2.0
    return s

def unbound(u):
    for i in range(3):
        if i > 1:
            t = u[0] * 2.0
        u = u * 1.0
        s = u[1] * t
    return s

def counted(u, k):
    s = 0.0
    for i in range(3):
        k = (k * 6364136223846793005 + 1442695040888963407) % 18446744073709551616
        s = s + u[i] * k
    return s

def divided(u, b):
    s = 1.0
    for i in range(3):
        s = s * b / (u[i] - u[i])
    return s
"""
U = np.linspace(0.1, 0.6, 12)


def test_a_sweep_is_compiled_forward_and_back(adopted, ran):
    require_same(adopted(SWEEP).sweep, U)
    assert ran == {"run": 2, "pull": 2}


CHANGES = [
    lambda u: u * np.nan, lambda u: u * 1e300, lambda u: u - 3.0 - u, lambda u: u * 0, np.negative,
    lambda u: u[::2].repeat(2),
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_what_numpy_warns_of_is_warned_of(adopted, change):
    require_same(adopted(SWEEP).sweep, change(U))


@pytest.mark.parametrize("state", [{"all": "raise"}, {"all": "ignore"}, {"under": "raise"}, {"over": "raise"}], ids=str)
def test_the_error_state_is_kept(adopted, state):
    f, inputs = adopted(SWEEP).sweep, (U, U * 1e300, U * 1e-320)
    with np.errstate(**state):
        for u in inputs:
            require_same(f, u)


def test_an_index_out_of_range_is_pythons_error(adopted):
    f = adopted(SWEEP).sweep
    found = require_same(lambda u: f(u, shift=5), U)
    assert found[0] is IndexError
    require_same(lambda u: f(u, shift=-3), U)
    require_same(f, U)


def test_a_number_keeps_the_type_that_python_gives_it(adopted):
    module = adopted(SWEEP)
    for n in (0, 3):
        require_same(lambda u: np.float32(1.0) * module.lasting(u, n), U)  # noqa: B023 - called at once
        require_same(lambda u: np.ones(2, np.float32) * module.lasting(u, n) @ np.ones(2), U)  # noqa: B023
    require_same(module.conditional, U)
    require_same(module.conditional, U * 20)


def test_integers_are_as_long_as_pythons(adopted):
    module = adopted(SWEEP)
    for n in (2, 2**20, 2**31, 2**40):
        require_same(lambda u: module.long_product(u, n), U)  # noqa: B023 - called at once
    for k in (3, 2**40, np.int32(7)):
        require_same(lambda u: module.counted(u, k), U)  # noqa: B023


def test_names_without_a_value(adopted):
    module = adopted(SWEEP)
    require_same(module.bound_late, U)
    assert require_same(module.unbound, U)[0] is UnboundLocalError


def test_divisions_by_zero_are_pythons_or_numpys(adopted):
    f = adopted(SWEEP).divided
    require_same(f, U, 2.0)
    require_same(f, U, 0.0)


def test_second_derivatives_go_the_ordinary_way(adopted):
    f = adopted(SWEEP).sweep
    with pb.using(staging="numba"):
        pb.grad(f)(U)
        second = pb.hvp(f, (U,), (U,))
    np.testing.assert_array_equal(second, pb.hvp(f, (U,), (U,)))


STEPS = """
import numpy as np
import pullback as pb

def relaxed(u):
    for i in range(1, len(u) - 1):
        u[i] = (u[i - 1] * u[i] + u[i + 1]) / (1.5 + u[i])
    return u

def marked(u):
    u = u * 1.0
    for k in pb.steps(9):
        u = relaxed(u)
    return np.sum(u * u)

def body(u):
    return np.sum(pb.fori_loop(0, 9, lambda k, v: relaxed(v * 1.0), u) ** 2)
"""


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(2), pb.Recompute(3), pb.Budget("1 MB")], ids=str)
@pytest.mark.parametrize("name", ["marked", "body"])
def test_steps_under_a_policy_are_compiled_forward_and_back(adopted, ran, name, policy):
    f = getattr(adopted(STEPS), name)
    x = np.linspace(0.1, 0.6, 40)
    with pb.using(staging="off"):
        expected = pb.grad(f)(x)
    with pb.using(staging="numba"):
        np.testing.assert_array_equal(pb.grad(f, policy=policy)(x), expected)
        _, pull = pb.vjp(f, x, policy=policy)
        for _ in range(2):
            np.testing.assert_array_equal(pull(1.0)[0], expected)
    assert ran["run"] >= 18
    assert ran["pull"] >= 27


def test_explain_stage_says_why_a_loop_is_not_compiled(adopted):
    module = adopted(SWEEP)
    with pb.using(staging="numba"):
        pb.grad(lambda u: module.counted(u, 3))(U)
    assert "is not compiled: k * 6364136223846793005 may be a long integer" in str(pb.explain_stage(module.counted))
