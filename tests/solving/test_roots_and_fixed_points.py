"""Roots, fixed points and linear systems: first and second derivatives against closed forms, in every mode and under
every policy."""

import gc
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback as pb
from pullback.recording import tape as tapes

POLICIES = [pb.SaveAll(), pb.Recompute(), pb.Binomial(2), pb.Keep("multiply"), pb.Budget("1 GB", exact=True)]
P = np.array([2.0, 5.0])
V = np.array([1.0, -2.0])
W = np.array([1.0, 3.0])


def dense(g, y):
    """Solve a linear system by its matrix; the solver must never see a tracer."""
    assert type(y) is np.ndarray
    return np.linalg.solve(np.stack([g(e) for e in np.eye(len(y))], axis=1), y)


def newton(f, x):
    assert type(x) is np.ndarray
    for _ in range(30):
        if np.max(np.abs(f(x))) < 1e-15:
            break
        x = x - dense(lambda v, x=x: pb.jvp(f, (x,), (v,))[1], f(x))
    return x


def square_root(p):
    return pb.custom_root(lambda x: x * x - p, np.ones(2), newton, dense)


def coupled(p):
    """x0 x1 = p0 and x0 = p1 x1: x1 = sqrt(p0 / p1), x0 = sqrt(p0 p1)."""
    return pb.custom_root(
        lambda x: np.stack([x[0] * x[1] - p[0], x[0] - p[1] * x[1]]), np.ones(2), newton, dense, tol=1e-12
    )


def coupled_exactly(p):
    return np.stack([np.sqrt(p[0] * p[1]), np.sqrt(p[0] / p[1])])


def second_orders(f, at, v):
    """The Hessian of ``f`` times ``v`` by the four mixtures of modes; the last is v'Hv."""
    slope = pb.grad(f)
    return {
        "forward over reverse": pb.jvp(slope, (at,), (v,))[1],
        "reverse over reverse": pb.grad(lambda x: np.sum(slope(x) * v))(at),
        "reverse over forward": pb.grad(lambda x: pb.jvp(f, (x,), (v,))[1])(at),
        "forward over forward": pb.jvp(lambda x: pb.jvp(f, (x,), (v,))[1], (at,), (v,))[1],
    }


def require_second_order(f, at, v, wanted):
    for mode, found in second_orders(f, at, v).items():
        expected = np.sum(wanted * v) if mode == "forward over forward" else wanted
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13, err_msg=mode)


# ---------------------------------------------------------------------------------------------------------------- roots


def test_a_root_has_the_derivative_of_the_closed_form():
    def f(p):
        return np.sum(W * square_root(p))

    np.testing.assert_allclose(square_root(P), np.sqrt(P), rtol=1e-15)
    np.testing.assert_allclose(pb.grad(f)(P), W / (2 * np.sqrt(P)), rtol=1e-14)
    np.testing.assert_allclose(pb.jvp(f, (P,), (V,))[1], np.sum(W * V / (2 * np.sqrt(P))), rtol=1e-14)
    require_second_order(f, P, V, -W * V * P**-1.5 / 4)


def test_a_root_of_coupled_equations_needs_the_transpose_in_reverse_mode():
    def f(solution):
        return lambda p: np.sum(np.sin(W * solution(p)))

    np.testing.assert_allclose(coupled(P), coupled_exactly(P), rtol=1e-14)
    np.testing.assert_allclose(pb.grad(f(coupled))(P), pb.grad(f(coupled_exactly))(P), rtol=1e-13)
    require_second_order(f(coupled), P, V, pb.jvp(pb.grad(f(coupled_exactly)), (P,), (V,))[1])


def test_third_derivatives():
    def f(p):
        return np.sum(W * square_root(p))

    wanted = 0.375 * W * P**-2.5 * V * V
    along = lambda p: np.sum(V * pb.grad(f)(p))  # noqa: E731
    np.testing.assert_allclose(pb.jvp(pb.grad(along), (P,), (V,))[1], wanted, rtol=1e-12)
    np.testing.assert_allclose(pb.grad(lambda p: np.sum(V * pb.grad(along)(p)))(P), wanted, rtol=1e-12)


def test_the_solver_may_differentiate_what_it_is_given():
    """``newton`` above takes jvp of f inside: a solver that got a function without derivative would not move."""
    seen = []

    def solve(f, x):
        seen.append(pb.grad(lambda x: np.sum(f(x)))(np.full(2, 3.0)))
        return newton(f, x)

    pb.grad(lambda p: np.sum(pb.custom_root(lambda x: x * x - p, np.ones(2), solve, dense)))(P)
    np.testing.assert_array_equal(seen, [[6.0, 6.0]])


def test_the_derivative_by_the_initial_guess_is_zero_and_the_root_is_a_constant_where_nothing_is_traced():
    gradient = pb.grad(
        lambda guess: np.sum(pb.custom_root(lambda x: x * x - P, guess, newton, dense)) + 0.0 * guess[0]
    )(np.ones(2))
    np.testing.assert_array_equal(gradient, [0.0, 0.0])


class Pair(NamedTuple):
    """A structure with names."""

    a: Any
    b: Any


def test_structures():
    def solve(f, x):
        return Pair(np.sqrt(P), {"c": np.float64(P[0] * P[1])})

    def system(g, y):
        flat = np.concatenate([y.a, [y.b["c"]]])
        columns = [g(Pair(e[:2], {"c": e[2]})) for e in np.eye(3)]
        found = np.linalg.solve(np.stack([np.concatenate([c.a, [c.b["c"]]]) for c in columns], axis=1), flat)
        return Pair(found[:2], {"c": found[2]})

    def f(p):
        equation = lambda x: Pair(x.a * x.a - p, {"c": x.b["c"] - x.a[0] ** 2 * x.a[1] ** 2})  # noqa: E731
        x = pb.custom_root(equation, Pair(np.ones(2), {"c": 1.0}), solve, system)
        return np.sum(x.a) + np.sin(x.b["c"])

    exact = lambda p: np.sum(np.sqrt(p)) + np.sin(p[0] * p[1])  # noqa: E731
    np.testing.assert_allclose(pb.grad(f)(P), pb.grad(exact)(P), rtol=1e-13)
    require_second_order(f, P, V, pb.jvp(pb.grad(exact), (P,), (V,))[1])


def test_aux_is_handed_through_as_the_solver_gives_it():
    def solve(f, x):
        return newton(f, x), {"steps": 30}

    def f(p):
        x, aux = pb.custom_root(lambda x: x * x - p, np.ones(2), solve, dense, has_aux=True)
        assert aux == {"steps": 30}
        return np.sum(x)

    np.testing.assert_allclose(pb.grad(f)(P), 0.5 / np.sqrt(P), rtol=1e-14)
    with pytest.raises(pb.StructureError, match=r"has_aux=True solve returns \(root, aux\), got ndarray"):
        pb.custom_root(lambda x: x * x - P, np.ones(2), newton, dense, has_aux=True)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_dtypes_are_kept(dtype):
    p = np.array([2.0, 5.0], dtype) + (1j if dtype is np.complex128 else 0)

    def root(p):
        return pb.custom_root(
            lambda x: x * x - p, np.ones_like(pb.value(p)), lambda f, x: np.sqrt(-f(0 * x)), lambda g, y: y / g(y / y)
        )

    out, pull = pb.vjp(root, p)
    (ct,) = pull(np.ones(2, dtype))
    assert out.dtype == ct.dtype == dtype
    np.testing.assert_allclose(ct, 0.5 / np.sqrt(p), rtol=1e-6)


def test_views_that_are_stale_when_the_equation_reads_them():
    def f(p):
        w = p * 1.0
        first = w[:1]
        w[0] = 2 * w[1]
        return np.sum(pb.custom_root(lambda x: x * x - first, np.ones(1), newton, dense))

    np.testing.assert_allclose(pb.grad(f)(P), [0.0, 1 / np.sqrt(2 * P[1])], rtol=1e-14)
    np.testing.assert_allclose(pb.jvp(f, (P,), (V,))[1], V[1] / np.sqrt(2 * P[1]), rtol=1e-14)


def test_an_equation_that_writes_to_its_unknown_does_not_reach_the_solution():
    def equation(p):
        def f(x):
            x *= x
            x -= 1.0 * p
            return x

        return f

    def f(p):
        return np.sum(W * pb.custom_root(equation(p), np.ones(2), lambda f, x: np.sqrt(-f(np.zeros(2))), dense))

    np.testing.assert_allclose(pb.grad(f)(P), W / (2 * np.sqrt(P)), rtol=1e-14)
    np.testing.assert_allclose(pb.jvp(f, (P,), (V,))[1], np.sum(W * V / (2 * np.sqrt(P))), rtol=1e-14)


def test_pulls_may_be_called_again_and_agree():
    _, pull = pb.vjp(coupled, P)
    (first,), (second,), (other,) = pull(W), pull(W), pull(V)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(other, pb.vjp(coupled_exactly, P)[1](V)[0], rtol=1e-13)


def test_solvers_are_those_of_the_moment_of_the_call():
    """The reverse pass comes when the loop variable has gone on: a solver that read it then would be another one."""

    def f(p):
        total = 0.0
        for scale in (1.0, 2.0, 4.0):
            equation = lambda x: x * x * scale - p  # noqa: B023, E731 - called at once
            tangent = lambda g, y: y / g(np.full(2, scale)) * scale  # noqa: B023, E731 - what is asked here
            total = total + pb.custom_root(equation, np.ones(2), newton, tangent)
        return np.sum(total)

    np.testing.assert_allclose(pb.grad(f)(P), (1 + 2**-0.5 + 0.5) / (2 * np.sqrt(P)), rtol=1e-13)


def test_nothing_is_left_of_a_gradient():
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(o, tapes.Tape) for o in gc.get_objects())
        for _ in range(3):
            pb.grad(lambda p: np.sum(coupled(p)))(P)
            pb.jvp(pb.grad(lambda p: np.sum(coupled(p))), (P,), (V,))
            _, pull = pb.vjp(coupled, P)
            pull(W)
            del pull
        assert sum(isinstance(o, tapes.Tape) for o in gc.get_objects()) == before
    finally:
        gc.enable()


# ----------------------------------------------------------------------------------------------- inside loops and steps


def stepped(loop):
    """Four steps u -> root of x**3 + x = u p, where p is read twice."""

    def f(p, policy):
        step = lambda u: pb.custom_root(  # noqa: E731
            lambda x: x * x * x + x - 0.5 * u * p - 0.5 * (p * u), np.ones(2), newton, dense
        )
        if loop == "fori_loop":
            return np.sum(pb.fori_loop(0, 4, lambda _, u: step(u), p, policy=policy))
        if loop == "scan":
            return np.sum(pb.scan(lambda u, _: (step(u), None), p, length=4, policy=policy)[0])
        if loop == "while_loop":
            return np.sum(pb.while_loop(lambda s: s[1] < 4, lambda s: (step(s[0]), s[1] + 1), (p, 0), policy=policy)[0])
        u = p
        for _ in {"steps": pb.steps, "range": range}[loop](4):
            u = pb.checkpoint(step)(u) if loop == "range" else step(u)
        return np.sum(u)

    return f


def implicit_by_hand(p):
    """Gradient of the four steps, and Hessian times V, by the chain rule: x' = (u' p + u) / (3 x**2 + 1), each
    element by itself."""
    u, du, ddu = P.copy(), np.ones(2), np.zeros(2)
    for _ in range(4):
        x = newton(lambda x, u=u: x**3 + x - u * p, np.ones(2))
        a = 3 * x**2 + 1
        dx = (du * p + u) / a
        ddx = (ddu * p + 2 * du - 6 * x * dx**2) / a
        u, du, ddu = x, dx, ddx
    return du, ddu * V


@pytest.mark.share(6, of=lambda **_: "")
@pytest.mark.filterwarnings("ignore:Keep")  # an equation in plain code is held as it is: no rule fits there
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("loop", ["fori_loop", "scan", "while_loop", "steps", "range"])
def test_steps_that_solve_have_the_bits_of_save_all(loop, policy):
    f = stepped(loop)
    around = policy if loop in ("steps", "range") else None
    gradient = pb.grad(f, policy=around)(P, policy)
    product = pb.jvp(pb.grad(lambda p: f(p, policy), policy=around), (P,), (V,))[1]
    np.testing.assert_array_equal(gradient, pb.grad(f)(P, pb.SaveAll()))
    np.testing.assert_array_equal(product, pb.jvp(pb.grad(lambda p: f(p, pb.SaveAll())), (P,), (V,))[1])
    first, second = implicit_by_hand(P)
    np.testing.assert_allclose(gradient, first, rtol=1e-12)
    np.testing.assert_allclose(product, second, rtol=1e-11)
    reverse = pb.grad(lambda p: np.sum(V * pb.grad(lambda p: f(p, policy), policy=around)(p)))(P)
    np.testing.assert_allclose(reverse, second, rtol=1e-11)


def test_what_steps_hold_does_not_grow_with_their_number():
    def peak(n):
        def f(p):
            return np.sum(
                pb.fori_loop(
                    0, n, lambda _, u: pb.custom_root(lambda x: x * x * x + x - u * p, np.ones(2), newton, dense), p
                )
            )

        _, pull = pb.vjp(f, P, policy=pb.Binomial(3))
        pull(1.0)
        return pull.report.peak_bytes

    assert peak(40) == peak(20)


def test_an_equation_with_a_loop_of_its_own_is_reversed_again_and_again():
    def f(p):
        def equation(x):
            return x + 0.1 * pb.fori_loop(0, 3, lambda _, y: y * np.cos(0.1 * x) + 0.1 * p, x) - p

        return np.sum(W * pb.custom_root(equation, P, newton, dense))

    def equation(x, p):
        y = x
        for _ in range(3):
            y = y * np.cos(0.1 * x) + 0.1 * p
        return x + 0.1 * y - p

    x = newton(lambda x: equation(x, P), P)
    by_x = pb.grad(lambda x: np.sum(equation(x, P)))(x)
    by_p = pb.grad(lambda p: np.sum(equation(x, p)))(P)
    np.testing.assert_allclose(pb.grad(f)(P), -W * by_p / by_x, rtol=1e-12)
    found = second_orders(f, P, V)
    wanted = found.pop("forward over reverse")
    np.testing.assert_allclose(found.pop("forward over forward"), np.sum(wanted * V), rtol=1e-10)
    for mode, other in found.items():
        np.testing.assert_allclose(other, wanted, rtol=1e-10, err_msg=mode)
    h = 1e-6
    np.testing.assert_allclose(wanted, (pb.grad(f)(P + h * V) - pb.grad(f)(P - h * V)) / (2 * h), rtol=1e-7)


def test_a_root_of_a_root():
    """inner(x) = sqrt(x p); x with x + inner(x) = p has sqrt(x) = sqrt(p) (sqrt(5) - 1) / 2."""

    def f(p):
        inner = lambda x: pb.custom_root(lambda y: y * y - x * p, np.ones(2), newton, dense)  # noqa: E731
        return np.sum(W * pb.custom_root(lambda x: x + inner(x) - p, np.ones(2), newton, dense))

    np.testing.assert_allclose(pb.grad(f)(P), W * ((np.sqrt(5) - 1) / 2) ** 2, rtol=1e-12)
    np.testing.assert_allclose(pb.jvp(f, (P,), (V,))[1], np.sum(W * V) * ((np.sqrt(5) - 1) / 2) ** 2, rtol=1e-12)
    for found in second_orders(f, P, V).values():
        np.testing.assert_allclose(found, np.zeros_like(found), atol=1e-12)


def test_under_a_trap_the_gradient_is_the_same():
    with pb.trap("nan", "inf"):
        trapped = pb.grad(stepped("fori_loop"))(P, pb.Binomial(2))
    np.testing.assert_array_equal(trapped, pb.grad(stepped("fori_loop"))(P, pb.Binomial(2)))


# ------------------------------------------------------------------------------------------------------- linear systems

A = np.array([[4.0, 1.0, 0.5], [-1.0, 3.0, 0.2], [0.3, 0.1, 5.0]])
B = np.array([1.0, -2.0, 0.5])


def solved(A, b):
    return pb.custom_linear_solve(lambda v: np.sum(A * v, axis=1), b, dense, dense)


def test_a_linear_solution_has_the_derivatives_of_the_inverse():
    tangents = (np.arange(9.0).reshape(3, 3) / 10, np.array([0.3, 0.1, -0.2]))
    loss = lambda s: lambda A, b: np.sum(np.sin(s(A, b)))  # noqa: E731
    x = np.linalg.solve(A, B)
    g = np.linalg.solve(A.T, np.cos(x))
    by_A, by_b = pb.grad(loss(solved), (0, 1))(A, B)
    np.testing.assert_allclose(by_b, g, rtol=1e-14)
    np.testing.assert_allclose(by_A, -np.outer(g, x), rtol=1e-13)
    dx = np.linalg.solve(A, tangents[1] - tangents[0] @ x)
    np.testing.assert_allclose(pb.jvp(solved, (A, B), tangents)[1], dx, rtol=1e-13)
    dg = np.linalg.solve(A.T, -np.sin(x) * dx - tangents[0].T @ g)
    wanted = -np.outer(dg, x) - np.outer(g, dx), dg
    slopes = pb.grad(loss(solved), (0, 1))
    for found in (
        pb.jvp(slopes, (A, B), tangents)[1],
        pb.grad(lambda A, b: sum(np.sum(s * t) for s, t in zip(slopes(A, b), tangents, strict=True)), (0, 1))(A, B),
        pb.grad(lambda A, b: pb.jvp(loss(solved), (A, b), tangents)[1], (0, 1))(A, B),
    ):
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(found[1], wanted[1], rtol=1e-12)


def test_a_symmetric_system_is_its_own_transpose_and_others_must_say_how():
    S = A + A.T

    def symmetric(b):
        return np.sum(pb.custom_linear_solve(lambda v: np.sum(S * v, axis=1), b, dense, symmetric=True))

    np.testing.assert_allclose(pb.grad(symmetric)(B), np.linalg.solve(S, np.ones(3)), rtol=1e-14)
    silent = lambda b: np.sum(pb.custom_linear_solve(lambda v: np.sum(A * v, axis=1), b, dense))  # noqa: E731
    np.testing.assert_allclose(pb.jvp(silent, (B,), (B,))[1], np.sum(np.linalg.solve(A, B)), rtol=1e-14)
    with pytest.raises(
        pb.NotDifferentiableError, match="reverse mode solves with the transpose; pass transpose_solve="
    ):
        pb.grad(silent)(B)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_linear_solutions_in_a_loop(policy):
    def f(A):
        return np.sum(pb.fori_loop(0, 5, lambda _, u: solved(A, u), B, policy=policy))

    def by_inverse(A):
        return np.ones(3) @ np.linalg.matrix_power(np.linalg.inv(A), 5) @ B

    np.testing.assert_array_equal(
        pb.grad(f)(A), pb.grad(lambda A: np.sum(pb.fori_loop(0, 5, lambda _, u: solved(A, u), B)))(A)
    )
    h = 1e-6
    differences = [
        [(by_inverse(A + h * e) - by_inverse(A - h * e)) / (2 * h) for e in rows]
        for rows in np.eye(9).reshape(3, 3, 3, 3)
    ]
    np.testing.assert_allclose(pb.grad(f)(A), differences, atol=1e-9)


# --------------------------------------------------------------------------------------------------------- fixed points


def cosine(a):
    return pb.fixed_point(lambda a, x: np.cos(a * x), a, 0.5 * np.ones(2))


def test_a_fixed_point_has_the_derivative_of_the_implicit_function():
    a = np.array([0.8, 1.1])
    x = cosine(a)
    np.testing.assert_allclose(x, np.cos(a * x), rtol=1e-13)
    s, c = np.sin(a * x), np.cos(a * x)
    dx = -s * x / (1 + s * a)
    ddx = -(c * (x + a * dx) ** 2 + 2 * s * dx) / (1 + s * a)
    np.testing.assert_allclose(pb.grad(lambda a: np.sum(W * cosine(a)))(a), W * dx, rtol=1e-12)
    np.testing.assert_allclose(pb.jvp(cosine, (a,), (V,))[1], V * dx, rtol=1e-12)
    require_second_order(lambda a: np.sum(W * cosine(a)), a, V, W * ddx * V)


def test_a_tiny_cotangent_has_a_derivative_of_the_same_relative_accuracy():
    a = np.array([0.8, 1.1])
    small = pb.grad(lambda a: 1e-200 * np.sum(cosine(a)))(a)
    np.testing.assert_allclose(1e200 * small, pb.grad(lambda a: np.sum(cosine(a)))(a), rtol=1e-12)


def test_a_fixed_point_by_what_its_map_closes_over_and_its_structure():
    def unrolled(a, b):
        u, v = np.zeros(2, like=b), np.zeros(2, like=b)
        for _ in range(60):
            u, v = 0.5 * np.sin(v) + a, 0.3 * u * b
        return np.sum(v)

    def f(a, b):
        x = pb.fixed_point(
            lambda a, x: {"u": 0.5 * np.sin(x["v"]) + a, "v": 0.3 * x["u"] * b}, a, {"u": np.zeros(2), "v": np.zeros(2)}
        )
        return np.sum(x["v"])

    for found, wanted in zip(pb.grad(f, (0, 1))(P, W), pb.grad(unrolled, (0, 1))(P, W), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11)


def test_a_map_that_is_no_contraction_is_refused_with_the_figures():
    with pytest.raises(
        pb.ConvergenceError, match=r"did not converge: after 300 steps .* is 0\.\d+, tol is 1\.42e-14"
    ) as caught:
        pb.fixed_point(lambda a, x: a * x * (1 - x), 3.2, 0.4, max_steps=300)
    assert caught.value.n_steps == 300
    assert 0.1 < caught.value.residual < 1
    with (
        np.errstate(over="ignore"),
        pytest.raises(ArithmeticError, match=r"after \d+ steps the distance of two iterates is (inf|nan)"),
    ):
        pb.fixed_point(lambda a, x: a * x * x, 3.2, 4.0)


def test_a_solution_whose_derivative_does_not_converge_is_refused():
    """Newton's own start lies on the solution of x = 2 x - a: the value converges at once, its derivative cannot."""
    f = lambda a: pb.fixed_point(lambda a, x: 2 * x - a, a, 3.0, max_steps=50)  # noqa: E731
    assert f(3.0) == 3.0
    for derivative in (lambda: pb.grad(f)(3.0), lambda: pb.jvp(f, (3.0,), (1.0,))):
        with pytest.raises(pb.ConvergenceError, match="the derivative of fixed_point did not converge: after 50 steps"):
            derivative()


def test_a_distance_of_ones_own_and_a_looser_tolerance():
    counted = []

    def far(new, old):
        counted.append(1)
        return np.max(np.abs(new - old))

    x = pb.fixed_point(lambda a, x: np.cos(a * x), np.array([0.8]), np.array([0.5]), tol=1e-3, distance=far)
    loose = len(counted)
    pb.fixed_point(lambda a, x: np.cos(a * x), np.array([0.8]), np.array([0.5]), tol=1e-12, distance=far)
    assert 0 < loose < (len(counted) - loose) / 2
    assert 1e-9 < np.abs(x - np.cos(0.8 * x))[0] < 1e-3


# ------------------------------------------------------------------------------------------------------------ bad input


def test_a_solver_that_returns_no_root_is_refused():
    with pytest.raises(pb.ConvergenceError, match=r"largest element of f is 4, tol is 1e-06") as caught:
        pb.custom_root(lambda x: x * x - P, np.ones(2), lambda f, x: x, dense, tol=1e-6)
    assert caught.value.residual == 4.0
    with pytest.raises(
        pb.ConvergenceError, match="custom_root: 1 of the 2 elements that the solver returned are not finite"
    ):
        pb.custom_root(lambda x: x * x - P, np.ones(2), lambda f, x: np.array([1.0, np.nan]), dense)
    with pytest.raises(pb.ConvergenceError, match="custom_linear_solve: 3 of the 3 elements"):
        pb.grad(lambda b: np.sum(pb.custom_linear_solve(lambda v: v, b, lambda g, y: y * np.inf, symmetric=True)))(B)


def test_functions_of_other_shapes_are_refused():
    with pytest.raises(
        pb.StructureError, match=r"custom_root: an unknown is float64\[2\], the function gives float64\[\]"
    ):
        pb.grad(lambda p: np.sum(pb.custom_root(lambda x: np.sum(x * x - p), P, lambda f, x: x, dense)))(P)
    with pytest.raises(
        pb.StructureError, match=r"the unknown has structure .*, the function gives .*; as many equations as unknowns"
    ):
        pb.grad(lambda p: np.sum(pb.custom_root(lambda x: (x - p,), P, lambda f, x: x, dense)))(P)
    with pytest.raises(
        pb.StructureError, match=r"fixed_point: an unknown is float64\[\], the function gives float64\[2\]"
    ):
        pb.fixed_point(lambda p, x: np.stack([p, p]), 1.0, 1.0)
    with pytest.raises(
        pb.StructureError,
        match=r"solve returned PyTreeSpec\(\*\) of float64\[2\], b is PyTreeSpec\(\*\) of float64\[3\]; return",
    ):
        pb.custom_linear_solve(lambda v: v, np.ones(3), lambda _, b: b[:2])
    with pytest.raises(pb.StructureError, match=r"solve returned PyTreeSpec\(None\) of , b is"):
        pb.custom_linear_solve(lambda v: v, np.ones(3), lambda _, b: None)
    with pytest.raises(pb.StructureError, match=r"the solver returned int64\[2\], which carries no derivative"):
        pb.custom_root(lambda x: x - P, P, lambda f, x: np.array([2, 5]), dense)


def test_a_factorisation_in_a_tuple_may_be_overwritten_before_the_reverse_pass():
    a = np.array([[3.0, 1.0], [0.5, 2.0]])
    factors = {"inverse": (np.linalg.inv(a), None)}
    solve = lambda _, b: factors["inverse"][0] @ b  # noqa: E731
    transposed = lambda _, b: factors["inverse"][0].T @ b  # noqa: E731
    _, pull = pb.vjp(lambda b: pb.custom_linear_solve(lambda x: a @ x, b, solve, transposed), np.ones(2))
    factors["inverse"][0][...] = np.nan
    np.testing.assert_allclose(pull(np.array([1.0, 2.0]))[0], np.linalg.inv(a).T @ [1.0, 2.0])


def test_an_equation_that_takes_a_derivative_has_the_same_derivative_in_each_call():
    """After some calls the derivative in it is one record, that of a staged call, which must count as read."""

    def least(q):
        def slope(x):
            return pb.grad(lambda x: np.sum((x - q) ** 4 + q[0] * x**2))(x)

        def newton(f, x):
            for _ in range(60):
                x = x - f(x) / (12 * (x - pb.value(q)) ** 2 + 2 * pb.value(q)[0])
            return x

        return pb.custom_root(slope, np.zeros(2), newton, lambda g, y: y / g(np.ones_like(y)))

    q = np.array([0.7, -1.2])
    first, *others = (pb.grad(lambda q: np.sum(least(q) * q))(q) for _ in range(60))
    assert np.all(first != 0)
    for again in others:
        np.testing.assert_array_equal(again, first)
