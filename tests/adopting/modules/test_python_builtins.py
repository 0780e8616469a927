"""Adopted functions in loops, in staged functions, in threads and within each other's derivatives."""

from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from tests.adopting.modules.simulations import lists

import pullback as pb
from pullback.memory.in_force import LIVE

TEXT = """
import numpy as np

SCALE = np.linspace(1, 2, 8)

def step(u, c):
    un = np.zeros(8)
    un[1:-1] = u[1:-1] + c * SCALE[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
    un[0] = float(c) if isinstance(c, float) and type(un) is np.ndarray else 100.0
    w = np.arange(8) * 0.1
    w[2] = c
    return un + 0.01 * w
"""
START = np.sin(np.arange(8.0))


@pytest.fixture
def step(tmp_path):
    (tmp_path / "marching.py").write_text(TEXT)
    return pb.adopt(tmp_path / "marching.py").step


def plain(step):
    def f(c):
        u = START * c
        for _ in range(12):
            u = step(u, c)
        return np.sum(u**2)

    return f


def marked(step):
    def f(c):
        u = START * c
        for _ in pb.steps(12):
            u = step(u, c)
        return np.sum(u**2)

    return f


def looped(step):
    return lambda c: np.sum(pb.fori_loop(0, 12, lambda k, u: step(u, c), START * c) ** 2)


@pytest.mark.parametrize("form", [plain, marked, looped])
def test_policies_and_repeated_calls_give_the_same_bits(step, form):
    f, h = form(step), 1e-6
    gradient = pb.grad(f)(0.1)
    np.testing.assert_allclose(gradient, (plain(step)(0.1 + h) - plain(step)(0.1 - h)) / (2 * h), rtol=1e-8)
    for policy in (pb.Binomial(3), pb.Recompute(), pb.Periodic(4)):
        assert all(pb.grad(f, policy=policy)(0.1) == gradient for _ in range(3)), policy
    assert all(pb.grad(f)(0.1) == gradient for _ in range(4))
    assert all(pb.grad(f)(c) == pb.grad(f, policy=pb.Binomial(2))(c) for c in (0.2, 0.3))
    assert not LIVE


def test_a_staged_step_gives_the_same_bits(step):
    staged = pb.staged(step)
    for c in (0.1, 0.1, 0.1, 0.2):
        assert pb.grad(plain(staged))(c) == pb.grad(plain(step))(c)


def test_derivatives_of_derivatives(step):
    f, h = plain(step), 1e-5
    second = pb.hvp(f, (0.1,), (1.0,))
    np.testing.assert_allclose(second, (pb.grad(f)(0.1 + h) - pb.grad(f)(0.1 - h)) / (2 * h), rtol=1e-7)
    np.testing.assert_allclose(pb.grad(pb.grad(f))(0.1), second, rtol=1e-12)


def test_threads(step):
    found = []
    threads = [Thread(target=lambda: found.extend(pb.grad(plain(step))(0.1) for _ in range(3))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12
    assert set(found) == {pb.grad(plain(step))(0.1)}


LISTS = pb.adopt(Path(lists.__file__))
POLICIES = (pb.Binomial(2), pb.Recompute())
H = 1e-6


@pytest.mark.parametrize("name", lists.FUNCTIONS)
def test_a_function_of_numpy_takes_a_list_of_traced_numbers(name):
    gradient = pb.grad(LISTS.run)(0.4, name)
    difference = (lists.run(0.4 + H, name) - lists.run(0.4 - H, name)) / (2 * H)
    np.testing.assert_allclose(gradient, difference, rtol=1e-6, atol=1e-8)
    assert all(pb.grad(LISTS.run, policy=policy)(0.4, name) == gradient for policy in POLICIES)
    assert np.asarray(LISTS.run(0.4, name)).tobytes() == np.asarray(lists.run(0.4, name)).tobytes()


def test_lists_are_written_into_arrays():
    difference = (lists.written(0.4 + H) - lists.written(0.4 - H)) / (2 * H)
    np.testing.assert_allclose(pb.grad(LISTS.written)(0.4), difference, rtol=1e-6)


KINDS = """
import numpy as np

def checked(x, kind, *, other=np.float64, key=len):
    made = kind(x) * other(x)
    return made * key([x]), list(map(kind, [x, 2.0]))

def total(x):
    made, both = checked(x, kind=float)
    return made + both[0] + checked(x, int)[0] + checked(x, lambda v: 2 * v)[0]
"""


def test_a_parameter_that_is_float_converts_a_tracer(tmp_path):
    (tmp_path / "kinds.py").write_text(KINDS)
    total = pb.adopt(tmp_path / "kinds.py").total
    assert total(1.5) == 1.5**2 + 1.5 + 1.5 + 2 * 1.5**2
    assert pb.grad(total)(1.5) == 3.0 + 1.0 + 1.0 + 6.0


ABSTRACT = """
from collections.abc import Iterable, Sized
import numpy as np

def spread(x):
    if not isinstance(x, Iterable) and not isinstance(x, (str, Sized)):
        return np.array([x, 2 * x])
    return x

def total(x):
    match x[0]:
        case Iterable():
            kind = 100.0
        case _:
            kind = 1.0
    return kind * np.sum(spread(x[0])) + np.sum(spread(x))
"""


def test_a_traced_number_is_no_iterable(tmp_path):
    (tmp_path / "abstract.py").write_text(ABSTRACT)
    total, x = pb.adopt(tmp_path / "abstract.py").total, np.array([2.0, 3.0])
    assert total(x) == pb.value_and_grad(total)(x)[0] == 11.0
    np.testing.assert_array_equal(pb.grad(total)(x), [4.0, 1.0])
