"""The smallest patch that makes a file traceable without adoption."""

from difflib import SequenceMatcher
from types import ModuleType

import numpy as np
import pytest

import pullback as pb
from pullback.adopting.modules.porting import ported

SCALAR = """
import math
import numpy as np

def diffuse(alpha, steps=6, n=12):
    dx = 1.0 / (n - 1)
    x = np.arange(n) * dx
    kept = np.ones(n)
    u = np.zeros(n)
    u[3:6] = 1.0
    out = np.zeros(
        steps)
    for k in range(steps):
        un = u.copy()
        u[1:-1] = un[1:-1] + alpha * 1e-3 / dx**2 * (un[2:] - 2 * un[1:-1] + un[:-2])
        out[k] = float(math.sqrt(np.sum(u**2))) + math.asin(alpha)
    x[0] = alpha
    return np.mean(out * 1.0) + x @ u + kept.sum()
"""
ARRAY = """
import numpy

def smooth(c):
    u = numpy.zeros(c.shape)
    v = numpy.linspace(0, 1, len(c))
    for k in range(3):
        u[k] = c[k] * v[k + 1]
        v[k] = u[k] ** 2
    return u.sum() + v @ c
"""


def loaded(text):
    module = ModuleType("patched")
    exec(text, module.__dict__)  # noqa: S102 - the program of this test
    return module


@pytest.mark.parametrize(
    ("name", "text", "x", "lines"),
    [
        ("diffuse", SCALAR, 0.4, ["np.arange(n) * dx + 0 * alpha", "np.zeros(n) + 0 * alpha", "steps) + 0 * alpha",
                                  "np.sqrt", "np.arcsin"]),
        ("smooth", ARRAY, np.linspace(1, 2, 4), ["numpy.zeros(c.shape, like=c)",
                                                 "numpy.array(numpy.linspace(0, 1, len(c)), like=c)"]),
    ],
)  # fmt: skip
def test_the_patched_program_is_traceable_and_still_plain(tmp_path, name, text, x, lines):
    (tmp_path / "plain.py").write_text(text)
    path = str(tmp_path / "plain.py")
    function = getattr(loaded(text), name)
    with pytest.raises(pb.ConversionError):
        pb.grad(function)(x)
    patch = ported(path, name, lambda f: ((x,), (0,)))
    assert all(line in patch.program for line in lines), patch.text
    assert "kept = np.ones(n) + " not in patch.program
    assert not patch.notes
    assert patch.text.startswith(f"--- a/{path}")
    after = getattr(loaded(patch.program), name)
    assert after(x) == function(x)
    np.testing.assert_array_equal(pb.grad(after)(x), pb.grad(getattr(pb.adopt(path), name))(x))


def test_what_no_line_can_mend_is_a_note(tmp_path):
    (tmp_path / "deep.py").write_text(
        "import numpy as np\ndef made():\n    return np.zeros(3)\ndef f(c):\n    u = made()\n    u[0] = c\n"
        "    return u.sum()\n"
    )
    patch = ported(str(tmp_path / "deep.py"), "f", lambda f: ((2.0,), (0,)))
    assert patch.text == ""
    assert "no traced value is in scope at" in patch.notes[0]
    assert "deep.py:3" in patch.notes[0]


ALIKE = np.linspace(0.5, 1.5, 4)
PROGRAMS = {
    "zeros_arr": ("def f(c):\n    u = np.zeros(4)\n    u[1:] = c[1:] * 2\n    return u @ c\n", ALIKE),
    "empty": (
        """
def f(c):
    u = np.empty(3)
    for i in range(3):
        u[i] = c * i
    return np.sum(u ** 2)
""",
        0.7,
    ),
    "empty_arr": (
        "def f(c):\n    u = np.empty((4, 2))\n    u[:, 0] = c\n    u[:, 1] = c ** 2\n    return np.sum(u)\n",
        ALIKE,
    ),
    "copy": ("B = np.ones(3)\n\ndef f(c):\n    u = B.copy()\n    u[0] = c\n    return u @ B\n", 0.7),
    "copy_arr": ("B = np.linspace(0, 1, 4)\n\ndef f(c):\n    u = B.copy()\n    u[0] = c[1]\n    return u @ c\n", ALIKE),
    "npcopy": ("B = np.arange(4.0)\n\ndef f(c):\n    u = np.copy(B)\n    u[0] = c[1]\n    return u @ c\n", ALIKE),
    "literal": ("def f(c):\n    x = np.array([1.0, 2.0, 3.0])\n    x[2] *= c\n    return np.sum(x * x)\n", 0.7),
    "literal_arr": ("def f(c):\n    x = np.array([1.0, 2.0, 3.0, 4.0])\n    x[2] *= c[0]\n    return x @ c\n", ALIKE),
    "full_like": (
        """
def f(c):
    x = np.linspace(0, 1, 4)
    y = np.full_like(x, 3.0)
    y[0] = c
    return x @ y
""",
        0.7,
    ),
    "two": (
        """
def f(c):
    u, v = np.zeros(3), np.ones(3)
    u[0] = c
    v[1] = c * u[0]
    return u @ v
""",
        0.7,
    ),
    "two_one": ("def f(c):\n    u, v = np.zeros(3), np.ones(3)\n    u[0] = c\n    return u @ v + c\n", 0.7),
    "chain": ("def f(c):\n    u = v = np.zeros(3)\n    u[0] = c\n    return v.sum()\n", 0.7),
    "attr": (
        """
class S:
    def __init__(self, c):
        self.u = np.zeros(3)
        self.c = c
    def step(self):
        self.u[1] = self.u[0] + self.c

def f(c):
    s = S(c)
    s.step()
    return s.u.sum()
""",
        0.7,
    ),
    "attr_arr": (
        """
class S:
    def __init__(self, c):
        self.u = np.zeros(len(c))
        self.c = c
    def step(self):
        self.u[1:] = self.u[:-1] + self.c[1:]

def f(c):
    s = S(c)
    s.step()
    s.step()
    return s.u.sum()
""",
        ALIKE,
    ),
    "dict": (
        """
def f(c):
    d = {"u": np.zeros(3), "v": np.ones(3)}
    d["u"][0] = c
    return np.sum(d["u"] * d["v"])
""",
        0.7,
    ),
    "listcomp": (
        """
def f(c):
    rows = [np.zeros(3) for _ in range(2)]
    rows[0][1] = c
    rows[1][0] = c * c
    return np.sum(rows[0] + rows[1])
""",
        0.7,
    ),
    "helper": (
        """
def make(n, c):
    out = np.zeros(n)
    return out

def f(c):
    u = make(3, c)
    u[0] = c
    return u.sum()
""",
        0.7,
    ),
    "list_array": ("def f(c):\n    v = np.array([c, 1.0, c * c])\n    return v @ v\n", 0.7),
    "list_append": (
        """
def f(c):
    out = []
    for k in range(3):
        out.append(c * k)
    return np.sum(np.array(out) ** 2)
""",
        0.7,
    ),
    "list_store": ("def f(c):\n    u = np.zeros((2, 2))\n    u[0] = [c, 1.0]\n    return np.sum(u * u)\n", 0.7),
    "floatcall": ("def f(c):\n    s = float(np.sum(c * 2))\n    return s + c\n", 0.7),
    "random": (
        """
def f(c):
    rng = np.random.default_rng(3)
    u = rng.normal(size=3)
    u[0] = c
    return u.sum() * c
""",
        0.7,
    ),
    "cond": ("def f(c, on=True):\n    u = np.zeros(3) if on else np.ones(3)\n    u[0] = c\n    return u.sum()\n", 0.7),
    "slices": (
        """
def f(c):
    w = np.zeros((4, 4))
    row = w[1]
    row[2] = c
    w[:, 0] += c * 2
    return np.sum(w ** 2)
""",
        0.7,
    ),
    "eye": ("def f(c):\n    m = np.eye(3)\n    m[0, 1] = c\n    return np.sum(m @ m)\n", 0.7),
    "float32": (
        "def f(c):\n    u = np.zeros(4, dtype=c.dtype)\n    u[:2] = c[:2]\n    return np.sum(u * c)\n",
        ALIKE.astype(np.float32),
    ),
    "inplace": ("def f(c):\n    u = np.ones(3)\n    u *= c\n    u += 1.0\n    return np.sum(u * u)\n", 0.7),
    "out": ("def f(c):\n    u = np.empty(4)\n    np.multiply(c, 2.0, out=u)\n    return u @ c\n", ALIKE),
    "reshape": ("def f(c):\n    g = np.zeros(6).reshape(2, 3)\n    g[1, 2] = c\n    return g.sum()\n", 0.7),
    "meshgrid": (
        """
def f(c):
    X, Y = np.meshgrid(np.arange(3.0), np.arange(2.0))
    X[0, 0] = c
    return np.sum(X * Y) + X.sum()
""",
        0.7,
    ),
    "loadgrow": (
        """
def f(c):
    u = np.zeros(2)
    u[0] = c
    u = np.concatenate([u, np.zeros(2)])
    u[3] = c * c
    return u.sum()
""",
        0.7,
    ),
    "stacked": ("def f(c):\n    u = np.vstack([np.zeros(2), np.ones(2)])\n    u[1, 0] = c\n    return u.sum()\n", 0.7),
    "return_expr": (
        """
def g(u, c):
    u[0] = c
    return u

def f(c):
    return np.sum(g(np.zeros(3), c)) * np.sum(g(np.ones(2), c))
""",
        0.7,
    ),
    "walrus": ("def f(c):\n    if (u := np.zeros(3)) is not None:\n        u[0] = c\n    return u.sum()\n", 0.7),
    "multiline": (
        """
def f(c):
    u = np.zeros(
        (3,
         2),  # two
    )
    u[0, 0] = c
    return u.sum()
""",
        0.7,
    ),
    "multiline_arr": (
        """
def f(c):
    u = np.zeros(
        (4,
         2),  # two
    )
    u[:, 0] = c
    return u.sum()
""",
        ALIKE,
    ),
    "annotated": ("def f(c):\n    u: np.ndarray = np.zeros(3)\n    u[0] = c\n    return u.sum()\n", 0.7),
    "comment_end": (
        """
def f(c):
    u = np.zeros(4)  # a buffer
    u[0] = c[0]; v = np.ones(4); v[1] = c[1]
    return u @ v
""",
        ALIKE,
    ),
    "arr0": ("def f(c):\n    u = np.zeros((len(c)))\n    u[1] = c[2] * u[2]\n    return np.sum(u * c)\n", ALIKE),
    "arr1": (
        "def f(c):\n    u = np.zeros((2 * len(c)))[:4]\n    u[1] = c[2] * u[2]\n    return np.sum(u * c)\n",
        ALIKE,
    ),
    "arr2": (
        """
def f(c):
    u = np.zeros(shape=(4,), dtype=float)
    u[1] = c[2] * u[2]
    return np.sum(u * c)
""",
        ALIKE,
    ),
    "arr3": ("def f(c):\n    u = np.array([1., 2.] * 2)\n    u[1] = c[2] * u[2]\n    return np.sum(u * c)\n", ALIKE),
    "arr4": ("def f(c):\n    u = np.full((4), (1.0))\n    u[1] = c[2] * u[2]\n    return np.sum(u * c)\n", ALIKE),
    "arr5": ("def f(c):\n    u = np.ones((4),)\n    u[1] = c[2] * u[2]\n    return np.sum(u * c)\n", ALIKE),
    "arr7": ("def f(c):\n    u = (np.zeros(4))\n    u[1] = c[2] * u[2]\n    return np.sum(u * c)\n", ALIKE),
    "arr8": (
        """
def f(c):
    u = np.zeros_like(np.arange(4.0))
    u[1] = c[2] * u[2]
    return np.sum(u * c)
""",
        ALIKE,
    ),
    "arr9": (
        """
def f(c):
    u = np.stack([np.zeros(4), np.ones(4)])[0]
    u[1] = c[2] * u[2]
    return np.sum(u * c)
""",
        ALIKE,
    ),
    "arr10": (
        """
def f(c):
    u = np.array([c[0], 1.0, c[1], 2.0])
    u[1] = c[2] * u[2]
    return np.sum(u * c)
""",
        ALIKE,
    ),
    "arr11": (
        """
def f(c):
    u = [np.zeros(4) for k in range(2)][1]
    u[1] = c[2] * u[2]
    return np.sum(u * c)
""",
        ALIKE,
    ),
    "arr12": (
        """
def f(c):
    u = np.meshgrid(np.arange(4.0), np.ones(2))[0][1]
    u[1] = c[2] * u[2]
    return np.sum(u * c)
""",
        ALIKE,
    ),
    "arr13": (
        """
def f(c):
    u = np.linspace(0, 1, 4, endpoint=(True))
    u[1] = c[2] * u[2]
    return np.sum(u * c)
""",
        ALIKE,
    ),
    "arr15": (
        """
def f(c):
    u = np.ones(4) if len(c) else np.zeros(4)
    u[1] = c[2] * u[2]
    return np.sum(u * c)
""",
        ALIKE,
    ),
    "arr17": (
        """
def f(c):
    u = np.concatenate((np.zeros(2), np.ones(2)))
    u[1] = c[2] * u[2]
    return np.sum(u * c)
""",
        ALIKE,
    ),
    "pair_arr": (
        """
def f(c):
    X, Y = np.meshgrid(np.arange(4.0), np.arange(2.0))
    X[0] = c
    if True:
        P, Q = np.gradient(np.outer(np.ones(4), np.arange(4.0)))
        Q[1] = c
    return np.sum(X * Y) + Q.sum()
""",
        ALIKE,
    ),
    "nested": (
        """
def f(c):
    def g(n):
        u = np.zeros(n)
        u[0] = c
        return u
    return g(2).sum() + g(3).sum()
""",
        0.7,
    ),
    "nested2a": ("def f(c):\n    m = np.array([[c[0], 1.0], [0.0, c[1]]])\n    return np.sum(m @ m)\n", ALIKE),
    "meth": (
        """
class M:
    def __init__(self):
        self.x = np.linspace(0, 1, 4)
        self.y = self.x * 2.0
    def go(self, c):
        y = self.y.copy()
        y[1:] -= c * self.x[:-1]
        self.y = y
        return y

def f(c):
    m = M()
    m.go(c)
    return np.sum(m.go(c))
""",
        0.7,
    ),
    "split": (
        """
def f(c):
    parts = np.split(np.zeros(6), 2)
    u = parts[0]
    u[0] = c
    return np.sum(np.concatenate(parts)) + c
""",
        0.7,
    ),
}
NOTED = {
    "structured": (
        """
def f(c):
    s = np.zeros(3, dtype=[("x", float), ("n", int)])
    s["x"][1] = c
    s["n"][:] = 2
    return np.sum(s["x"] * s["n"])
""",
        "makes a structured array",
    ),
    "binop_arg": (
        """
def g(u, c):
    u[0] = c
    return u

def f(c):
    return g(np.zeros(3) + 1.0, c).sum()
""",
        "bind it to a name before",
    ),
    "global": (
        """
T = np.ones(3)

def f(c):
    T[0] = c
    return T.sum()
""",
        "T, an array of the module",
    ),
    "nested2": (
        """
def f(c):
    m = np.array([[c, 1.0], [0.0, c]])
    return np.sum(m @ m)
""",
        "still raises: a plain array made of a tracer",
    ),
    "kwlist": (
        """
def f(c):
    m = np.array([c, 1.0], dtype=float)
    return np.sum(m * m)
""",
        "still raises: a plain array made of a tracer",
    ),
    "selfbuf": (
        """
class M:
    def __init__(self):
        self.y = np.zeros(3)
    def go(self, c):
        self.y[1:] += c

def f(c):
    m = M()
    m.go(c)
    return np.sum(m.y)
""",
        "no traced value is in scope",
    ),
}


def with_a_change_left_out(before, after):
    """The programs in which one of the changes of a patch is left out."""
    a, b = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for kind, i, k, j, n in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind != "equal":
            yield "".join([*b[:j], *a[i:k], *b[n:]])


@pytest.mark.parametrize(("body", "x"), PROGRAMS.values(), ids=PROGRAMS)
def test_drawn_programs(tmp_path, body, x):
    """The patched program gives the same bits without a trace, the gradient of the adopted one, and needs each of its
    changes."""
    text = "import math\nimport numpy as np\n\n\n" + body
    path = tmp_path / "drawn.py"
    path.write_text(text)
    expected = pb.grad(pb.adopt(path).f)(x)
    patch = ported(str(path), "f", lambda f: ((x,), (0,)))
    assert patch.notes == ()
    after = loaded(patch.program).f
    assert np.asarray(after(x)).tobytes() == np.asarray(loaded(text).f(x)).tobytes()
    np.testing.assert_array_equal(pb.grad(after)(x), expected)
    for less in with_a_change_left_out(text, patch.program):
        with pytest.raises((pb.PullbackError, TypeError)):
            pb.grad(loaded(less).f)(x)


@pytest.mark.parametrize(("body", "note"), NOTED.values(), ids=NOTED)
def test_what_drawn_programs_cannot_have(tmp_path, body, note):
    path = tmp_path / "drawn.py"
    path.write_text("import numpy as np\n\n\n" + body)
    patch = ported(str(path), "f", lambda f: ((0.7,), (0,)))
    assert any(note in told for told in patch.notes), patch.notes


def test_a_patch_that_changes_the_value_is_told(tmp_path):
    """What a name is bound to is a view of what another name sees, too."""
    path = tmp_path / "drawn.py"
    path.write_text(
        "import numpy as np\n\n\ndef f(c):\n    rows = [np.sqrt(np.ones((2, 2)))]\n    u = rows[0][1]\n    u[0] = c\n"
        "    return np.sum(rows[0]) + c\n"
    )
    patch = ported(str(path), "f", lambda f: ((0.7,), (0,)))
    assert any("gives another value" in note for note in patch.notes), patch.notes
