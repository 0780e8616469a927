"""Memory that arrays of adopted code share, and traces within traces: the original's values and its derivatives, or
``WriteError``; and nothing is left of an array that an adopted program wrote."""

import gc
import importlib.util
import random
import sys
import weakref

import numpy as np
import pytest

import pullback as pb

SHARED = """
import numpy as np
import pullback as pb

{arrays}

class Held:
    inside = {held}

def scale(u, v, c):
    u[:] = c
    return np.sum(v * np.arange(v.size)) * c

def run(c):
    A[...] = 0.25
    s = 0.5
{lines}
    return np.sum(A) * c + np.sum(B) + s
"""
ARRAYS = (
    "A = np.ones(6); B = A[1:-1]; ROWS = [B]",
    "B = np.ones(6); A = B[::-1]; ROWS = [np.ones(6)]",
    "C = np.ones((2, 6)); A, B = C; ROWS = list(C)",
    "C = np.ones((6, 2)); A, B = C[:, 0], C[:, 1]; ROWS = [C.T]",
    "A = np.ones(6); B = np.ones(6); ROWS = [A]",
    *4 * ("A = np.ones(6); B = A.copy(); ROWS = [B.copy()]",),
)
LINES = (
    "A[{i}] = c * {i}", "B[1] = s * c", "A[1:] += 0.5 * A[:-1]", "s = s + np.sum(A) * c", "s = s + np.sum(B) * c",
    "s = s + np.sum(ROWS[0])", "s = s + np.sum(Held.inside) * c", "s = s + scale(np.zeros(4), np.ones(4), c)",
    "w = np.zeros(6); v = w[2:]; s = s + scale(w, v, c)",
    "s = s + np.sum(pb.fori_loop(0, 12, lambda k, u: u + 0.1 * np.sin(u * A), np.ones(6)))",
    "s = s + np.sum(pb.fori_loop(0, 12, lambda k, u: u + 0.1 * np.sin(u) * B[0], np.ones(2)))",
    "s = s + pb.grad(lambda z: np.sum(A * z**2))(c)", "s = s + pb.checkpoint(lambda z: np.sum(np.sin(A) * z))(c)",
)  # fmt: skip
POLICIES = (pb.SaveAll(), pb.Binomial(2), pb.Recompute(3))


@pytest.fixture
def adopted(tmp_path):
    """What makes a module of a text: the original and the copy."""
    made = []

    def module(text):
        name = f"shared_memory_{len(made)}_{tmp_path.name}".replace("-", "_")
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        original = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(original)
        copy = pb.adopt(path)
        made.append(copy.__name__)
        return original, copy

    yield module
    for name in made:
        sys.modules.pop(name, None)


def bits(found):
    return [np.asarray(x, float).tobytes() for x in found]


def drawn(seed):
    """A module in which arrays share memory, or do not, and a program on them."""
    draw = random.Random(seed)  # noqa: S311 - no secret is drawn
    lines = [draw.choice(LINES).format(i=draw.randrange(6)) for _ in range(draw.randint(2, 6))]
    held = draw.choice(("A[:2]", "np.ones(2)", "np.ones(3)", "np.ones(4)"))
    return SHARED.format(arrays=draw.choice(ARRAYS), held=held, lines="".join(f"    {line}\n" for line in lines))


def by_differences(module, c):
    """The value of the original, and its slope: each call finds the arrays of the module as they were."""
    arrays = [x for x in vars(module).values() if isinstance(x, np.ndarray)]
    before = [x.copy() for x in arrays]

    def run(c):
        for x, content in zip(arrays, before, strict=True):
            x[...] = content
        return module.run(c)

    slope = (run(c + 1e-6) - run(c - 1e-6)) / 2e-6
    return run(c), slope


def test_drawn_modules_whose_arrays_share_memory(adopted):
    refused = 0
    for seed in range(24):
        original, copy = adopted(drawn(seed))
        found = []
        for policy in POLICIES:
            try:
                found.append(pb.value_and_grad(copy.run, policy=policy)(0.7))
            except pb.WriteError as error:
                found.append("overlaps another one in memory" in str(error))
        if True in found:
            assert found == [True] * len(POLICIES), seed
            refused += 1
            continue
        value, slope = by_differences(original, 0.7)
        assert [bits(each) for each in found] == [bits(found[0])] * len(POLICIES), seed
        assert bits(found[0][:1]) == bits([value]), seed
        assert found[0][1] == pytest.approx(slope, rel=1e-5, abs=1e-5), seed
    assert 5 < refused < 19


@pytest.mark.parametrize("share", ["x, x", "x, x[1:]", "x[::-1], x", "x.reshape(2, 3), x.reshape(3, 2).T"])
def test_arguments_that_share_memory(adopted, share):
    _, copy = adopted("import numpy as np\ndef run(u, v, c):\n    u[...] = c\n    return np.sum(v) * c\n")
    x = np.arange(6.0)
    u, v = eval(share, {"x": x})  # noqa: S307 - a text of the line above
    if u is v:
        assert pb.value_and_grad(copy.run, 2)(u, v, 0.7) == pytest.approx((6 * 0.7**2, 12 * 0.7))
        return
    for argnums in (0, 1, 2):
        with pytest.raises(pb.WriteError, match="share it, and NumPy would change both"):
            pb.grad(copy.run, argnums)(u, v, 0.7)
    assert x.tolist() == list(range(6))


WRITES = """
import numpy as np
U = np.zeros(1000)
T = np.ones(1000)

def run(c):
    U[:] = c * T
    return np.sum(U * U)

def fails(u, c):
    u[:] = c
    raise ValueError("in the middle")
"""


def test_nothing_stays_of_arrays_that_were_written(adopted):
    _, copy = adopted(WRITES)

    class Held:
        x = np.ones(3)

    def failing(held):
        u = np.zeros(3)
        with pytest.raises(ValueError, match="in the middle"):
            pb.grad(lambda c: copy.fails(u, c) * held.x)(0.7)

    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(20):
            pb.grad(copy.run)(0.7)
        assert len(gc.get_objects()) - before < 100  # a trace that is left behind has hundreds
        held = Held()
        gone = weakref.ref(held)
        failing(held)
        del held
        assert gone() is None
    finally:
        gc.enable()
