"""Bodies in adopted code that make arrays: staged as others are, with the bits of the ordinary way."""

import numpy as np
import pytest

import pullback as pb

TEXT = """
import numpy as np
import pullback as pb

TABLE = np.linspace(0.1, 0.6, 6)


def filled(k, u):
    x = np.arange(6) * 0.1 * (k % 3)                  # other contents in each step
    x[1] = u[2] * u[1]
    return u * 0.9 + x


def by_item(k, u):
    v = np.empty(6)
    for i in range(6):
        v[i] = u[i] * u[(i + 1) % 6] * 0.7
    return v


def derived(k, u):
    v = np.full((2, 3), 0.3)
    w = v * 2.0
    w[0] = u[:3] * v[1]
    w[1, :] += u[3:]
    z = np.zeros_like(w)
    z[:, 1:] = w[:, :-1] * w[:, 1:]
    return np.sin(z).ravel() + 0.1 * u


def aliased(k, u):
    v = np.ones(6)
    w = v
    w[2:4] = u[:2]
    v *= u
    if k % 2:
        v[0] = 0.3
    else:
        t = np.array([u[0], 1.0, 2.0])
        v[:3] += t * 0.1
    return v


def asked(k, u):
    v = np.zeros(6)
    v[:] = np.cos(u)
    return v * (v.sum() * 0.1 if v.max() > 0 else 1.0)


def of_the_module(k, u):
    v = TABLE.copy()
    v[1:] = u[1:] * TABLE[:-1]
    return v


def loop(u, body):
    return np.sum(pb.fori_loop(0, 30, body, u) ** 2)


def scanned(u, body):
    c, ys = pb.scan(lambda c, x: (body(2, c) + x, np.sum(c)), u, np.linspace(0, 0.1, 12))
    return np.sum(c) + np.sum(ys)


@pb.staged
def staged(u):
    v = np.zeros(6)
    v[1:] = u[1:] * u[:-1]
    w = np.arange(6) * 0.1
    w[0] = u[0]
    return np.sum(v * w)
"""
BODIES = ("filled", "by_item", "derived", "aliased", "asked")
POINTS = np.linspace(0.1, 1, 6), np.linspace(0.3, 0.6, 6)


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "bodies_of_arrays.py"
    path.write_text(TEXT)
    return pb.adopt(path)


@pytest.mark.filterwarnings("ignore:Keep:pullback.PolicyWarning")
@pytest.mark.parametrize("around", ["loop", "scanned"])
@pytest.mark.parametrize("body", [*BODIES, "of_the_module"])
def test_a_body_that_makes_arrays_has_the_bits_of_the_ordinary_way(module, body, around):
    def f(u):
        return getattr(module, around)(u, getattr(module, body))

    for u in POINTS:
        with pb.using(staging="off"):
            value, gradient = pb.value_and_grad(f)(u)
        for staging in ("auto", "numpy"):
            for policy in (pb.SaveAll(), pb.Binomial(4), pb.Recompute(), pb.Budget("10 MB"), pb.Keep()):
                with pb.using(staging=staging):
                    again, same = pb.value_and_grad(f, policy=policy)(u)
                assert again == value
                assert same.tobytes() == gradient.tobytes()


@pytest.mark.parametrize("body", BODIES)
def test_such_a_body_is_staged(module, body):
    pb.grad(module.loop)(POINTS[0], getattr(module, body))
    assert "stage" in str(pb.explain_stage(getattr(module, body))).splitlines()[0].replace("0 stages", "")


def test_a_staged_function_makes_arrays(module):
    gradient = pb.grad(module.staged)
    for u in POINTS * 3:
        with pb.using(staging="off"):
            expected = pb.grad(module.staged)(u)
        assert gradient(u).tobytes() == expected.tobytes()
    assert str(pb.explain_stage(module.staged)).startswith("staged: 1 stage")
