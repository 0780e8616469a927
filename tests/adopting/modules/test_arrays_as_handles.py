"""Drawn programs: made of what numerical programs do with arrays, as files; the copy against the original, and each
policy against the others."""

import random

import numpy as np
import pytest

import pullback as pb

HEAD = """
import math
import numpy as np
TABLE = np.linspace(0.5, 1.5, 6)
COUNT = np.arange(6)

class Box:
    def __init__(self, u):
        self.u = u
        self.made = np.arange(6) * 0.1
        self.kept = []

def moved(u, v, c):
    u[1:] += c * v[:-1]
    return u

def run(c):
    a, b = np.zeros(6), np.ones(6)
    d = COUNT * 0.5
    e = TABLE.copy()
    s, k = 0.25, 2
    box = Box(np.random.default_rng(3).normal(size=6))
    items = [0.0] * 6
"""
TAIL = """
    return (a @ b + np.sum(d * e) + s + np.sum(box.u * box.made) + sum(items) + float(np.sum(TABLE * 0.1))
            + sum(float(x) for x in box.kept))
"""
LINES = (
    "{x}[{i}] = c * {y}[{j}]",
    "{x}[{i}:] = {y}[{i}:] * c",
    "{x}[1:-1] += 0.5 * ({y}[2:] - {y}[:-2])",
    "{x}[:] = np.roll({y}, {i})",
    "{x} = {y}.copy()",
    "{x} = {x} + s * {y}",
    "{x} *= 0.5",
    "{x} -= {y} * c",
    "{x} = np.where({y} > 0.3, {y}, c)",
    "{x} = np.maximum({x}, 0.2) / (1 + {y}**2)",
    "{x} = np.array([c, s, 1.0, {y}[{i}], 2.0, float(c)])",
    "{x} = moved({x}, {y}, c)",
    "{x}.fill(0.3)",
    "w = np.empty_like({y}); w[...] = {y}; {x} = w",
    "s = s + float({x}[{i}]) * math.sin(c)",
    "s = math.sqrt(abs(s) + 0.1)",
    "s += max({x}.min(), 0.1)",
    "items[{i}] = {x}[{j}] * c",
    "box.u = {x} * 1.0",
    "box.u[{i}] = s",
    "box.made[{i}] += c",
    "box.kept.append(np.sum({x}))",
    "Box.scale = {x}[{i}] * 0.5; s = s + Box.scale",
    "Box.shape = {x} * 0.5; s = s + np.sum(Box.shape)",
    "s = s + 0.01 * len(locals())",
    "k = len(next(iter(vars(box)))) % 3; {x}[k] = 0.4",
    "TABLE[{i}] = 0.1 * s",
    "{x}[{y} > 0.9] = c",
    "np.add.at({x}, COUNT % 3, {y})",
    "for n in range(2): {x}[n + 1] = {x}[n] * c + {y}[n]",
    "t = {x}[1:4]; t[0] = c; t *= 0.9",
    "{x} = np.linspace(0, 1, 6) * {y}",
    "{x}, {y} = {y}, {x}",
    "{x} = sorted([{x}, {y}], key=lambda z: float(z[0].sum()))[0] * 1.0",
    "k = (k + int({x}[{i}])) % 3; {x}[k] = 0.7",
)


def drawn(seed, n=14):
    draw = random.Random(seed)  # noqa: S311 - programs, no secrets
    names = ("a", "b", "d", "e")
    body = [
        draw.choice(LINES).format(x=draw.choice(names), y=draw.choice(names), i=draw.randrange(5), j=draw.randrange(5))
        for _ in range(n)
    ]
    return HEAD + "".join(f"    {line}\n" for line in body) + TAIL


@pytest.mark.parametrize("seed", [*range(24), *(pytest.param(k, marks=pytest.mark.slow) for k in range(24, 600))])
def test_a_drawn_program(tmp_path, seed):
    text = drawn(seed)
    path = tmp_path / f"drawn_{seed}.py"
    path.write_text(text)
    plain = {}
    exec(compile(text, "plain", "exec"), plain)  # noqa: S102 - drawn in this file
    table = plain["TABLE"].copy()

    def original(c):
        plain["TABLE"][:] = table
        return plain["run"](c)

    copy, x, h = pb.adopt(path), 0.61, 1e-6
    gradient = pb.grad(copy.run)(x)
    assert (table == copy.TABLE).all()
    for policy in (pb.Binomial(2), pb.Recompute(), pb.Periodic(3), pb.Budget("1 MiB")):
        assert pb.grad(copy.run, policy=policy)(x) == gradient, (policy, text)
    np.testing.assert_allclose(
        gradient, (original(x + h) - original(x - h)) / (2 * h), rtol=1e-6, atol=1e-7, err_msg=text
    )
    value = pb.value_and_grad(copy.run)(x)[0]
    assert np.asarray(value).tobytes() == np.asarray(original(x)).tobytes(), text
    assert np.asarray(copy.run(x)).tobytes() == np.asarray(original(x)).tobytes(), text


def test_arguments_written_without_dependence_are_seen_by_the_caller(tmp_path):
    (tmp_path / "with_arguments.py").write_text(
        "def start(u):\n    u[:] = 2.0\n\ndef scale(u, c):\n    u *= c\n    return u\n"
    )
    copy = pb.adopt(tmp_path / "with_arguments.py")

    def f(c):
        u = np.ones(3)
        copy.start(u)
        v = copy.scale(u, c)
        assert u.tolist() == [2.0, 2.0, 2.0]  # what it returns is traced, the caller's own array is not
        return np.sum(u) * c + v.sum()

    assert pb.grad(f)(1.5) == 12.0
    mine = np.ones(3)
    assert pb.grad(lambda c: copy.scale(mine, c).sum())(1.5) == 3.0
    np.testing.assert_array_equal(pb.grad(lambda u, c: copy.scale(u, c).sum(), argnums=1)(mine, 1.5), 3.0)
    assert mine.tolist() == [1.0, 1.0, 1.0]


def test_what_reads_an_array_that_depends_on_nothing_is_answered(tmp_path):
    (tmp_path / "reading.py").write_text(
        "import numpy as np\n\n"
        "def f(t):\n    a = np.arange(4.0)\n    bits = a.view(np.int64)\n"
        "    return t * float(len(a.tobytes()) + bits[0] + (not bits.flags.writeable))\n\n"
        "def g(t):\n    a = np.arange(4.0) * t\n    return np.sum(a.view(np.int64))\n"
    )
    reading = pb.adopt(tmp_path / "reading.py")
    assert pb.grad(reading.f)(2.0) == 33.0
    with pytest.raises(AttributeError, match="no attribute 'view'"):
        pb.grad(reading.g)(2.0)


def test_a_global_of_a_copy_is_set_in_a_trace_and_put_back(tmp_path):
    (tmp_path / "with_global.py").write_text(
        "import numpy as np\n\nSTART = np.ones(3)\n\ndef run():\n    return np.sum(START**2)\n"
    )
    model = pb.adopt(tmp_path / "with_global.py")
    own = vars(model)["START"]

    def energy(scale):
        start, model.START = model.START, model.START * scale
        try:
            return model.run()
        finally:
            model.START = start

    assert pb.grad(energy)(3.0) == 18.0
    assert vars(model)["START"] is own
    assert pb.grad(energy)(3.0) == 18.0


def test_a_deep_copy_in_adopted_code_is_a_copy(tmp_path):
    (tmp_path / "deep_copies.py").write_text(
        "from copy import deepcopy\nimport numpy as np\n\n"
        "def f(t):\n    a = np.zeros(3)\n    a[:] = t\n    kept = deepcopy({'a': a})\n    a[0] = 5.0\n"
        "    return np.sum(kept['a'] * a)\n"
    )
    assert pb.grad(pb.adopt(tmp_path / "deep_copies.py").f)(2.0) == 13.0
    (tmp_path / "first_copies.py").write_text(
        "import copy\n\ndef f(p):\n    return copy.deepcopy(p)['k'][0] * p['k'][1]\n"
    )
    assert pb.grad(lambda k: pb.adopt(tmp_path / "first_copies.py").f({"k": [k, k]}))(2.0) == 4.0


def test_what_a_program_keeps_is_made_by_a_run_before_the_gradient(tmp_path):
    (tmp_path / "with_cache.py").write_text(
        "from functools import lru_cache\nimport numpy as np\n\n"
        "@lru_cache\ndef table(n):\n    return np.linspace(0.0, 1.0, n)\n\ndef f(c):\n    return c * np.sum(table(3))\n"
    )
    copy = pb.adopt(tmp_path / "with_cache.py")
    assert pb.grad(copy.f)(2.0) == 1.5
    with pytest.raises(pb.TracerError, match=r"keeps what it has made \(a cache\) has to run once before"):
        pb.grad(copy.f)(2.0)
    copy.table.cache_clear()
    assert copy.f(2.0) == 3.0
    assert [pb.grad(copy.f)(2.0) for _ in range(2)] == [1.5, 1.5]


@pytest.mark.parametrize(
    ("made", "written", "kind", "words"),
    [
        ("np.ma.masked_array(np.arange(4.0), [0, 1, 0, 0])", "m[0] = t", pb.WriteError, "masked arrays.*np.where"),
        ("np.ma.zeros(3)", "m[0] = t", pb.ConversionError, "numpy.ma computes on plain arrays: keep the mask"),
    ],
)  # fmt: skip
def test_masked_arrays_are_refused_by_name(tmp_path, made, written, kind, words):
    file = tmp_path / "with_subclass.py"
    file.write_text(f"import numpy as np\n\ndef f(t):\n    m = {made}\n    {written}\n    return m.sum()\n")
    with pytest.raises(kind, match=words):
        pb.grad(pb.adopt(file).f)(2.0)


HELD = """
import numpy as np

STATE = {"u": np.zeros(3)}

class Model:
    buffer = np.zeros(3)

def add(c):
    STATE["u"] += c

def write(c):
    Model.buffer[:] = c
"""


@pytest.mark.parametrize("name", ["add", "write"])
def test_arrays_that_a_module_holds_elsewhere_than_in_a_name_are_not_written(tmp_path, name):
    """Who finds them another way, by ``self`` or in a loop, would read what was there before."""
    (tmp_path / f"held_{name}.py").write_text(HELD)
    with pytest.raises(pb.ConversionError, match="in adopted code a plain array here was made outside the trace"):
        pb.grad(getattr(pb.adopt(tmp_path / f"held_{name}.py"), name))(1.5)
