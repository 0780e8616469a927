"""Second order of plain code under policies that run steps again, where the steps write to buffers or differentiate
inside."""

import numpy as np
import pytest

import pullback as pb


def _wave(c):
    before, u, misfit = np.zeros_like(c), np.zeros_like(c), 0.0
    for k in pb.steps(6):
        after = 2 * u - before
        after[1:-1] += c[1:-1] * (u[2:] + u[:-2] - 2 * u[1:-1])
        after[2] += k + 1.0
        before, u = u, after
        misfit = misfit + np.sum((u[1:3] - 0.3) ** 2)
    return misfit


def _filled(x):
    rows = np.zeros((6, x.size), like=x)
    rows[0] = x
    for k in pb.steps(5):
        part = np.empty_like(x)
        part[:2], part[2:] = np.sin(rows[k, 1:3]), rows[max(k - 1, 0), 2:] * x[:-2]
        rows[k + 1] = part[::-1] * x
    return np.sum(rows**2)


def _with_a_gradient_inside(x):
    u = x
    for _ in pb.steps(4):
        inner = pb.grad(lambda v: np.sum(np.sin(v[1:]) * v[:-1] * x[1:] + v[::-1][1:]), policy=pb.SaveAll())
        u = u - 0.1 * inner(u)
    return np.sum(u**2)


@pytest.mark.parametrize("f", [_wave, _filled, _with_a_gradient_inside])
def test_second_order_where_steps_write_to_buffers(f):
    """A replay writes values of an outer trace where the first run did, into buffers that were plain before the
    write."""
    x, t = np.array([0.3, 0.7, 1.1, -0.4]), np.array([1.0, -0.5, 0.25, 2.0])
    product = pb.hvp(f, (x,), (t,))
    numbers = [pb.grad(f)(x + e * t) for e in (1e-5, -1e-5)]
    np.testing.assert_allclose(product, (numbers[0] - numbers[1]) / 2e-5, rtol=1e-6, atol=1e-6)
    for policy in (pb.Binomial(1), pb.Binomial(3), pb.Recompute()):
        assert pb.hvp(f, (x,), (t,), policy=policy).tobytes() == product.tobytes(), policy
        twice = pb.grad(lambda x: np.sum(pb.grad(f, policy=policy)(x) * t))(x)  # noqa: B023 - called at once
        np.testing.assert_allclose(twice, product, rtol=1e-10, atol=1e-12)
