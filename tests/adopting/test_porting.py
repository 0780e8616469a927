"""The smallest patch that makes a file traceable without adoption."""

from types import ModuleType

import numpy as np
import pytest

import pullback as pb
from pullback.adopting.porting import ported

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
