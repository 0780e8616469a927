"""Loop functions inside marked steps, where a policy runs them again: what they read is what they read the first
time, or it is told."""

import numpy as np
import pytest

import pullback as pb

POLICIES = (pb.Binomial(1), pb.Binomial(2), pb.Recompute())
X = np.array([1.0, 2.0, 3.0])


def _captured_and_overwritten(write):
    def f(x):
        u = x
        for k in pb.steps(3):
            a = np.sin(x) + k
            u = pb.fori_loop(0, 2, lambda _, v, a=a: v * a * 0.5 + x, u)
            write(a, u)
            u = u + a
        return np.sum(u**2)

    return f


def _increment(a, u):
    a += u


def _scale(a, u):
    a *= 3


def _assign(a, u):
    a[1:] = u[1:]


@pytest.mark.parametrize("write", [_increment, _scale, _assign])
def test_a_captured_value_that_is_overwritten_later(write):
    f = _captured_and_overwritten(write)
    gradient, product = pb.grad(f)(X), pb.hvp(f, (X,), (X,))
    np.testing.assert_allclose(product, (pb.grad(f)(X * (1 + 1e-6)) - pb.grad(f)(X * (1 - 1e-6))) / 2e-6, rtol=1e-7)
    for policy in POLICIES:
        assert pb.grad(f, policy=policy)(X).tobytes() == gradient.tobytes(), policy
        assert pb.hvp(f, (X,), (X,), policy=policy).tobytes() == product.tobytes(), policy


@pytest.mark.parametrize("legacy", [False, True])
def test_random_numbers_of_a_loop_are_those_of_the_first_run(legacy):
    def f(x):
        random, u = np.random.default_rng(0), x
        np.random.seed(0)  # noqa: NPY002 - users of the legacy generator must be replayed too
        for _ in pb.steps(4):
            draw = np.random.normal if legacy else random.normal
            u = pb.fori_loop(0, 3, lambda _, v, draw=draw: v * draw(size=3) + x, u)
        after = np.random.normal() if legacy else random.normal()  # noqa: NPY002
        return np.sum(u**2) * after

    expected = pb.grad(f)(X)
    for policy in POLICIES:
        assert pb.grad(f, policy=policy)(X).tobytes() == expected.tobytes(), policy


@pytest.mark.parametrize("solves", [False, True])
def test_an_array_that_is_overwritten_from_step_to_step(solves):
    def f(x, keeps):
        matrix, u = np.zeros((3, 3)), x
        for k in pb.steps(4):
            if keeps:
                matrix = np.zeros((3, 3))
            matrix[...] = np.eye(3) * (2 + k) + 0.1 * k

            def once(v, m):
                if solves:
                    return pb.custom_linear_solve(
                        lambda x: m @ x, v, lambda _, b: np.linalg.solve(m, b), symmetric=True
                    )
                return pb.fori_loop(0, 1, lambda _, v: m @ v * 0.1, v)

            u = once(u, matrix) + x
        return np.sum(u**2)

    expected = pb.grad(f)(X, True)
    assert np.array_equal(pb.grad(f)(X, False), expected)
    for policy in POLICIES:
        assert np.array_equal(pb.grad(f, policy=policy)(X, True), expected), policy
        with pytest.raises(
            pb.ReplayError, match="run again, the loop gave other bytes than in the first run, in leaf 0 of its result"
        ):
            pb.grad(f, policy=policy)(X, False)


def test_a_solver_may_write_to_arrays_of_its_own():
    work = np.zeros(3)

    def f(x):
        def solve(matvec, b):
            work[:] = b
            np.divide(work, matvec(np.ones(3)), out=work)
            return work.copy()

        return np.sum(pb.custom_linear_solve(lambda v: v * x, x**3, solve, symmetric=True))

    np.testing.assert_allclose(pb.grad(f)(X), 2 * X)


def test_a_solver_that_closes_over_traced_values():
    def solution(a, b):
        return pb.custom_linear_solve(
            lambda v: a @ v, b, lambda _, b: np.linalg.solve(a, b), lambda _, b, a=a: np.linalg.solve(a.T, b)
        )

    def stepped(a, solve):
        u = X
        for _ in pb.steps(3):
            u = solve(a, u) + X
        return np.sum(u**2)

    a = np.array([[4.0, 1.0, 0.5], [0.0, 3.0, 1.0], [1.0, 0.2, 5.0]])
    for f in (
        lambda a, solve: np.sum(np.sin(solve(a, X))),
        stepped,
        lambda a, solve: np.sum(pb.checkpoint(lambda a: solve(a, X) ** 2)(a)),
    ):
        # Called at once.
        gradient = pb.grad(f)(a, np.linalg.solve)
        product = pb.hvp(lambda a: f(a, np.linalg.solve), (a,), (a.T,))  # noqa: B023
        for policy in (pb.SaveAll(), *POLICIES):
            np.testing.assert_allclose(pb.grad(f, policy=policy)(a, solution), gradient, rtol=1e-10)
            found = pb.hvp(lambda a: f(a, solution), (a,), (a.T,), policy=policy)  # noqa: B023 - called at once
            np.testing.assert_allclose(found, product, rtol=1e-9)


def test_long_doubles_have_no_bytes_that_mean_nothing():
    x = X.astype(np.longdouble) / 3

    def f(x):
        return np.sum(pb.fori_loop(0, 6, lambda _, u: np.sin(u) * x, x))

    expected = pb.grad(f)(x)
    for policy in POLICIES:
        assert np.array_equal(pb.grad(f, policy=policy)(x), expected), policy
