"""Drawn programs whose arrays share memory: functions hand on their argument, or views of it, and arguments, results
and buffers are written to afterwards.

Such a function under ``checkpoint`` or ``staged``, under both, or in a loop, in plain code or in marked steps, has the
bits of the function as it is under every policy; its tangent, and second derivatives of both kinds, agree as well.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pullback as pb

FUNCTIONS: tuple[Callable[[Any], Any], ...] = (
    lambda u: u,
    lambda u: u[1:],
    lambda u: u[::-1],
    lambda u: u.reshape(-1),
    lambda u: u[::-1] + 1.0,
    lambda u: 0.9 * np.sin(u),
    lambda u: u.copy(),
    lambda u: (u, u[1:]),
    lambda u: (np.cos(u), u),
    lambda u: np.stack([u, 0.5 * u])[1],
    lambda u: np.split(np.tanh(u), [1])[1],
)
NEW = FUNCTIONS[4:7]
"""Those that give a new array of the same shape."""


def in_a_loop(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function as the one step of a loop, which gives new arrays, so only where it does."""
    if f in FUNCTIONS and f not in NEW:
        return f
    return lambda u: pb.fori_loop(0, 1, lambda _, v: f(v), u)


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "checkpoint": pb.checkpoint,
    "keep": lambda f: pb.checkpoint(f, pb.Keep(np.sin)),
    "staged": pb.staged,
    "staged checkpoint": lambda f: pb.staged(pb.checkpoint(f)),
    "checkpoint of staged": lambda f: pb.checkpoint(pb.staged(f)),
    "loop": in_a_loop,
}
N_ROUNDS = 3
MOST_ARRAYS = 5
pytestmark = pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
X, D = np.linspace(0.2, 0.9, 5), np.cos(np.arange(5.0))


def program_of(ops: list[tuple[int, int, int]], marked: bool, wrap: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The drawn program: each of ``ops`` calls, writes or reads, on arrays that it names by number."""
    functions = [wrap(f) for f in FUNCTIONS]

    def program(x: Any) -> Any:
        buffer, arrays = np.zeros_like(x), [x * 1.0]
        reading = wrap(lambda u: np.sin(u + (buffer if len(u) == len(buffer) else buffer[: len(u)])))
        for k in pb.steps(N_ROUNDS) if marked else range(N_ROUNDS):
            if k == 2:
                buffer = np.zeros_like(x)
            for what, i, j in ops:
                u, v = arrays[i % len(arrays)], arrays[j % len(arrays)]
                if what == 0:
                    made = functions[j % len(functions)](u)
                    arrays += made if isinstance(made, tuple) else (made,)
                elif what == 1:
                    arrays.append(reading(u))
                elif what == 2:
                    u *= 0.9
                elif what == 3:
                    u[0] = np.sin(v[-1])
                elif what == 4:
                    u[-1:] += 0.1 * v[:1]
                elif what == 5:
                    buffer += 0.1 * u[0]
                elif what == 6:
                    u[...] = np.cos(u)
                else:
                    arrays.append(0.5 * u + v[0] * buffer[-1])
                arrays = [a for a in arrays if len(a)][-MOST_ARRAYS:]
        return sum(np.sum(np.sin(a)) for a in arrays) + np.sum(buffer * buffer)

    return program


def bits(*parts: Any) -> list[bytes]:
    return [np.asarray(part).tobytes() for part in parts]


def assert_as_it_is(ops: list[tuple[int, int, int]], marked: bool, name: str, policy: Any, staging: str) -> None:
    plain, wrapped = program_of(ops, marked, lambda f: f), program_of(ops, marked, WRAPPERS[name])
    with pb.using(staging="off"):
        value, gradient = pb.value_and_grad(plain)(X)
        product = pb.hvp(plain, (X,), (D,))
    assert bits(value) == bits(plain(X)), "the value is not NumPy's"
    with pb.using(staging=staging):
        for f in (plain, wrapped):
            for _ in range(3):
                assert bits(*pb.value_and_grad(f, policy=policy)(X)) == bits(value, gradient), f"{policy!r}"
            out, tangent = pb.jvp(f, (X,), (D,))
            assert bits(out) == bits(value), "the value of the tangent"
            np.testing.assert_allclose(tangent, gradient @ D, rtol=1e-9, atol=1e-9, err_msg="jvp")
            first = pb.grad(f, policy=policy)
            for what, second in (
                ("hvp", pb.hvp(f, (X,), (D,), policy=policy)),
                ("grad of grad", pb.grad(lambda x: np.sum(first(x) * D))(X)),  # noqa: B023 - called at once
            ):
                np.testing.assert_allclose(second, product, rtol=1e-8, atol=1e-8, err_msg=what)


drawn = (
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=6),
    st.booleans(),
    st.sampled_from(sorted(WRAPPERS)),
    st.sampled_from([pb.SaveAll(), pb.Recompute(), pb.Binomial(2), pb.Keep(np.sin), pb.Budget("100 MB")]),
    st.sampled_from(["off", "numpy", "auto"]),
)
checks = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=20, deadline=None, suppress_health_check=checks)
@given(*drawn)
def test_drawn_programs(ops, marked, name, policy, staging):
    assert_as_it_is(ops, marked, name, policy, staging)


@pytest.mark.slow
@settings(max_examples=5_000, deadline=None, suppress_health_check=checks)
@given(*drawn)
def test_many_drawn_programs(ops, marked, name, policy, staging):
    assert_as_it_is(ops, marked, name, policy, staging)


def woven():
    """A matrix of which each element but two lies at the place of others, too."""
    return np.lib.stride_tricks.as_strided(np.arange(5.0), (3, 3), (8, 8))


@pytest.mark.parametrize("n_calls", [1, 40])
def test_an_argument_that_overlaps_itself_is_read_and_not_written(n_calls):
    def written(x):
        y = x[0] * 2.0
        x[0, 1] = 5.0
        return np.sum(x * x) + np.sum(y)

    gradient = pb.grad(written)
    for _ in range(n_calls - 1):
        gradient(np.ones((3, 3)))
    calls = (
        lambda: gradient(woven()),
        lambda: pb.jvp(written, (woven(),), (np.ones((3, 3)),)),
        lambda: pb.jacobian(written)(woven()),
        lambda: pb.grad(lambda x, _: written(x))(woven(), 1.0),
    )
    for call in calls:
        with pytest.raises(pb.WriteError, match=r"elements of .* share it, and NumPy would change both"):
            call()
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x * x))(woven()), 2 * woven())
