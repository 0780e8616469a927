"""A tracer meets a list with tracers: as NumPy has it, one array."""

import numpy as np
import pytest

import pullback as pb

POLICIES = (pb.Binomial(2), pb.Recompute())
H = 1e-6
OPERATIONS = {
    "right": lambda t, x: x * [t, 2.0, t],
    "left": lambda t, x: [t, 2.0, t] - x,
    "tuple": lambda t, x: x / (t, 2.0, t),
    "product": lambda t, x: x @ [t, 2.0, t],
    "function": lambda t, x: np.dot(x, [t, 2.0, t]),
    "ufunc": lambda t, x: np.maximum(x, [t, 0.1, t]),
    "where": lambda t, x: np.where([True, False, True], x, [t, 2.0, t]),
    "nested": lambda t, x: np.outer(x, x) * [[t, 1.0, 2.0], [t, t, t], [0.0, 1.0, t]],
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("loop", [False, True])
def test_a_tracer_meets_a_list_of_tracers(name, loop):
    """What NumPy makes of the list is one array, as if np.stack had been written."""

    def total(t):
        x = np.array([0.5, 1.0, 1.5]) * t
        if not loop:
            return np.sum(OPERATIONS[name](t, x))
        return pb.fori_loop(0, 9, lambda _, s: s + 0.1 * np.sum(OPERATIONS[name](t, x * s)), t)

    gradient = pb.grad(total)(0.8)
    np.testing.assert_allclose(gradient, (total(0.8 + H) - total(0.8 - H)) / (2 * H), rtol=1e-6)
    for policy in POLICIES:
        assert pb.grad(total, policy=policy)(0.8) == gradient
    with pb.using(staging="off"):
        assert pb.grad(total)(0.8) == gradient
    np.testing.assert_allclose(pb.jvp(total, (0.8,), (1.0,))[1], gradient, rtol=1e-12)


def test_a_ragged_list_is_numpys_error():
    with pytest.raises(ValueError, match="inhomogeneous"):
        pb.grad(lambda t: np.sum(np.ones(3) * t * [t, [t, t], 1.0]))(1.0)
