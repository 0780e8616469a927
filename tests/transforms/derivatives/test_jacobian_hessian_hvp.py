"""Hessians, products with them, and elementwise derivatives, against derivatives known exactly."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pullback as pb
from pullback import NotDifferentiableError, ReplayError, StructureError

X = np.array([0.3, -0.7, 1.1, 0.4])
T = np.array([1.0, -2.0, 0.5, 3.0])
A = np.array([[1.0, 2.0, -1.0, 0.5], [0.0, 1.5, 4.0, -2.0], [3.0, -1.0, 0.25, 1.0]])
MODES = ("auto", "forward", "reverse")


def mixed(x):
    """A times the sines of x, without a matrix product."""
    return np.sum(A * np.sin(x), axis=1)


JACOBIAN = A * np.cos(X)


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock_hessian(x):
    """As SciPy's documentation gives it (scipy.optimize.rosen_hess)."""
    h = np.diag(-400 * x[:-1], 1) + np.diag(-400 * x[:-1], -1)
    diagonal = np.full(len(x), 202.0) + 1200 * x**2 - 400 * np.append(x[1:], 0)
    diagonal[0] -= 200
    diagonal[-1] = 200
    return h + np.diag(diagonal)


# -------------------------------------------------------------------------------------------------------------- hessian


def test_hessian_is_exact_and_symmetric():
    got = pb.hessian(rosenbrock)(X)
    np.testing.assert_allclose(got, rosenbrock_hessian(X), rtol=1e-13, atol=1e-12)
    np.testing.assert_array_equal(got, got.T)
    for policy in (pb.Recompute(2), pb.Binomial(3)):
        np.testing.assert_array_equal(pb.hessian(rosenbrock, policy=policy)(X), got)


def test_a_hessian_whose_columns_round_differently_is_symmetric_to_the_last_bit():
    def f(x, y):
        return np.sin(x[0] * x[1] * x[2]) * np.exp(x[3] * y[0] / x[2]) + np.prod(x / y) ** 3

    columns = pb.jacobian(pb.grad(f), mode="forward")(X, T)
    assert not np.array_equal(columns, columns.T)
    got = pb.hessian(f)(X, T)
    np.testing.assert_array_equal(got, got.T)
    np.testing.assert_allclose(got, columns, rtol=1e-12)
    (_, xy), (yx, yy) = pb.hessian(f, argnums=(0, 1))(X, T)
    np.testing.assert_array_equal(xy, yx.T)
    np.testing.assert_array_equal(yy, yy.T)


def test_hessian_of_a_structure():
    def f(p):
        return np.sum(p["x"] ** 3) * p["y"] ** 2

    got = pb.hessian(f)({"x": X, "y": np.float64(2.0), "n": 1})
    np.testing.assert_allclose(got["x"]["x"], np.diag(24 * X), rtol=1e-14)
    np.testing.assert_allclose(got["x"]["y"], 12 * X**2, rtol=1e-14)
    np.testing.assert_array_equal(got["x"]["y"], got["y"]["x"])
    np.testing.assert_allclose(got["y"]["y"], 2 * np.sum(X**3), rtol=1e-14)
    assert got["n"] is None
    assert got["x"]["n"] is None


def test_hessian_of_several_arguments():
    def f(x, y):
        return np.sum(x**3) * y**2

    (xx, xy), (yx, yy) = pb.hessian(f, argnums=(0, 1))(X, 2.0)
    np.testing.assert_allclose(xx, np.diag(24 * X), rtol=1e-14)
    np.testing.assert_array_equal(xy, yx)
    by_name = pb.hessian(f, argnames=("y", "x"))(X, y=2.0)
    assert list(by_name) == ["y", "x"]
    np.testing.assert_array_equal(by_name["y"]["x"], yx)
    np.testing.assert_array_equal(by_name["x"]["x"], xx)
    assert by_name["y"]["y"] == yy


def test_hessian_of_a_complex_argument_raises():
    with pytest.raises(
        NotDifferentiableError, match=r"hessian is of real arguments, <lambda> is given complex128\[4\]: .*use hvp"
    ):
        pb.hessian(lambda z: np.sum(np.abs(z) ** 2))(X + 1j)


# ------------------------------------------------------------------------------------------------------------------ hvp


def test_hvp():
    np.testing.assert_allclose(pb.hvp(rosenbrock, (X,), (T,)), rosenbrock_hessian(X) @ T, rtol=1e-13)


def test_hvp_of_several_primals_and_structures():
    def f(p, y, count):
        return np.sum(p["x"] ** 3) * y**2 * count

    by_p, by_y, by_count = pb.hvp(f, ({"x": X}, np.float64(2.0), 2), ({"x": T}, np.float64(1.0), None))
    np.testing.assert_allclose(by_p["x"], 2 * (24 * X * T + 12 * X**2), rtol=1e-14)
    np.testing.assert_allclose(by_y, 2 * (12 * np.sum(X**2 * T) + 2 * np.sum(X**3)), rtol=1e-14)
    assert by_count is None


def test_hvp_of_a_python_float_without_a_tangent():
    def f(x, y):
        return np.sum(x**3) * y**2

    by_x, by_y = pb.hvp(f, (X, 2.0), (T, None))
    np.testing.assert_allclose(by_x, 24 * X * T, rtol=1e-14)
    np.testing.assert_allclose(by_y, 12 * np.sum(X**2 * T), rtol=1e-14)


def swing(u):
    """1 000 steps of a chain of pendulums."""

    def step(k, state):
        angle, speed = state
        speed = speed - 0.01 * np.sin(angle) + 0.005 * (np.roll(angle, 1) - angle)
        return angle + 0.01 * speed, speed

    angle, speed = pb.fori_loop(0, 1000, step, (u, np.zeros_like(u)))
    return np.sum(angle**2 * np.arange(1.0, 7.0)) + np.sum(np.cos(speed))


def test_hvp_of_a_thousand_steps_is_the_same_bits_under_binomial_and_symmetric():
    rng = np.random.default_rng(4)
    u, v, w = rng.normal(size=(3, 6))
    along_v = pb.hvp(swing, (u,), (v,))
    np.testing.assert_array_equal(pb.hvp(swing, (u,), (v,), policy=pb.Binomial(10)), along_v)
    along_w = pb.hvp(swing, (u,), (w,), policy=pb.Binomial(10))
    assert abs(w @ along_v - v @ along_w) <= 1e-10 * abs(w @ along_v)
    step = 1e-6
    difference = (pb.grad(swing)(u + step * v) - pb.grad(swing)(u - step * v)) / (2 * step)
    np.testing.assert_allclose(along_v, difference, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("product", [pb.jvp, pb.hvp, pb.gauss_newton_product])
def test_products_refuse_what_is_no_tuple(product):
    with pytest.raises(
        StructureError, match=r"takes a tuple of primals, one for each argument, got ndarray; write \(primal,\) for one"
    ):
        product(rosenbrock, X, (T,))
    with pytest.raises(StructureError, match=r"takes a tuple of tangents, .*got ndarray"):
        product(rosenbrock, (X,), T)
    with pytest.raises(StructureError, match=r"got 1 primals and 2 tangents"):
        product(rosenbrock, (X,), (T, T))
    with pytest.raises(
        StructureError, match=r"the tangent of argument 0 .* is float64\[3\], the argument is float64\[4\]"
    ):
        product(rosenbrock, (X,), (T[:3],))


# --------------------------------------------------------------------------------------------------------- gauss-newton


def test_gauss_newton_product():
    np.testing.assert_allclose(pb.gauss_newton_product(mixed, (X,), (T,)), JACOBIAN.T @ (JACOBIAN @ T), rtol=1e-14)
    weights = 12 * mixed(X) ** 2
    got = pb.gauss_newton_product(mixed, (X,), (T,), loss=lambda r: np.sum(r**4), policy=pb.Recompute(2))
    np.testing.assert_allclose(got, JACOBIAN.T @ (weights * (JACOBIAN @ T)), rtol=1e-14)


def test_gauss_newton_product_of_structures():
    def f(x, y):
        return {"a": x * y, "n": 3}

    by_x, by_y = pb.gauss_newton_product(
        f, (X, np.float64(2.0)), (T, np.float64(1.0)), loss=lambda r: np.sum(r["a"] ** 2) / 2
    )
    pushed = 2 * T + X
    np.testing.assert_allclose(by_x, 2 * pushed, rtol=1e-15)
    np.testing.assert_allclose(by_y, X @ pushed, rtol=1e-15)
    unweighted = pb.gauss_newton_product(f, (X, np.float64(2.0)), (T, np.float64(1.0)))
    np.testing.assert_array_equal(unweighted[0], by_x)


def test_gauss_newton_of_complex_residuals_is_the_hessian_of_half_the_squares():
    def f(x):
        return np.exp(1j * x) * x

    j = np.exp(1j * X) * (1 + 1j * X)
    np.testing.assert_allclose(pb.gauss_newton_product(f, (X,), (T,)), np.abs(j) ** 2 * T, rtol=1e-14)


def test_a_function_that_differs_when_run_again_is_refused():
    rng = np.random.default_rng(0)

    def noisy(x):
        return x * rng.normal()

    with pytest.raises(
        ReplayError, match=r"noisy gave other values when it was run again .*draw random numbers outside"
    ):
        pb.jacobian(noisy, mode="forward")(X)
    with pytest.raises(ReplayError, match="noisy gave other values"):
        pb.gauss_newton_product(noisy, (X,), (T,))
    assert pb.jacobian(noisy, mode="reverse")(X).shape == (4, 4)


# ----------------------------------------------------------------------------------------------------- elementwise_grad


def test_elementwise_grad():
    np.testing.assert_array_equal(pb.elementwise_grad(np.sin)(X), np.cos(X))
    assert pb.elementwise_grad(np.sin)(0.5) == np.cos(0.5)
    assert pb.elementwise_grad(np.sin)(np.zeros((0, 3))).shape == (0, 3)
    assert pb.elementwise_grad(np.sin)(X.astype(np.float32)).dtype == np.float32
    third = pb.elementwise_grad(pb.elementwise_grad(pb.elementwise_grad(np.sin)))
    np.testing.assert_allclose(third(X), -np.cos(X), rtol=1e-14)
    np.testing.assert_array_equal(
        pb.elementwise_grad(lambda x: 2.0 * x - x, policy=pb.Recompute(2))(np.ones((50, 3))), np.ones((50, 3))
    )


def test_elementwise_grad_broadcasts_a_smaller_argument():
    x = X[:, None]
    by_x, by_y = pb.elementwise_grad(lambda x, y: x * y, argnums=(0, 1))(x, T)
    np.testing.assert_array_equal(by_x, np.broadcast_to(T, (4, 4)))
    np.testing.assert_array_equal(by_y, np.broadcast_to(x, (4, 4)))
    assert pb.elementwise_grad(lambda x, y: x * y, argnames=["y"])(X, y=3.0)["y"].shape == (4,)


NOT_ELEMENTWISE = {
    "cumsum": np.cumsum,
    "flip": lambda x: x[::-1],
    "roll": lambda x: np.roll(x, 1) * x,
    "mean": lambda x: x - np.mean(x),
    "one pair": lambda x: x + np.where(np.arange(x.size) == 0, x[-1], 0),
    "sort": np.sort,
}


@pytest.mark.parametrize("name", NOT_ELEMENTWISE)
@pytest.mark.parametrize("size", [2, 5, 200])
def test_elementwise_grad_refuses_what_mixes_elements(name, size):
    x = np.random.default_rng(size).permutation(np.linspace(2.0, 1.0, size))
    if name == "sort":
        x[:2] = 3.0, 0.5
    with pytest.raises(
        NotDifferentiableError, match=r"is not elementwise: element \(\d+,\) of argument 0 reaches other elements"
    ):
        pb.elementwise_grad(NOT_ELEMENTWISE[name])(x)


def test_elementwise_grad_refuses_another_shape():
    with pytest.raises(
        NotDifferentiableError, match=r"sum is not elementwise: it made an output of shape \(\) of .* shape \(4,\)"
    ):
        pb.elementwise_grad(np.sum)(X)
    with pytest.raises(
        NotDifferentiableError, match=r"<lambda> gave complex128\[4\] for arguments of shape \(4,\); use jacobian"
    ):
        pb.elementwise_grad(lambda x: x * 1j)(X)
    with pytest.raises(NotDifferentiableError, match=r"functions that return an array, <lambda> returned tuple"):
        pb.elementwise_grad(lambda x: (x, x))(X)


# -------------------------------------------------------------------------------------------------------------- nesting


def test_perturbations_are_not_confused():
    """d/dx (x d/dy (x + y)) = 1, not 2 (Siskind and Pearlmutter, Perturbation confusion, IFL 2005), in every pair of
    modes."""
    slope = {
        "grad": pb.grad,
        "forward": lambda f: pb.jacobian(f, mode="forward"),
        "reverse": lambda f: pb.jacobian(f, mode="reverse"),
        "elementwise": pb.elementwise_grad,
        "jvp": lambda f: lambda x: pb.jvp(f, (x,), (1.0,))[1],
        "hvp": lambda f: lambda x: pb.hvp(lambda y: f(y) * y, (x,), (1.0,)) / 2,  # of (x + y) y: 1
    }
    for outer in ("grad", "forward", "reverse", "elementwise", "jvp"):
        for inner, d in slope.items():
            assert slope[outer](lambda x, d=d: x * d(lambda y: x + y)(1.0))(3.0) == 1.0, (outer, inner)


def test_derivatives_of_derivatives():
    np.testing.assert_allclose(
        pb.grad(lambda x: np.sum(pb.jacobian(mixed)(x) ** 2))(X), np.sum(-2 * A**2 * np.cos(X) * np.sin(X), axis=0)
    )
    expected = np.zeros((3, 4, 4))
    expected[:, range(4), range(4)] = -A * np.sin(X)
    for inner in MODES:
        for outer in MODES:
            got = pb.jacobian(pb.jacobian(mixed, mode=inner), mode=outer)(X)
            np.testing.assert_allclose(got, expected, atol=1e-15, err_msg=f"{inner} {outer}")
    trace = pb.grad(lambda x: np.trace(pb.hessian(lambda y: np.sum(y**4))(x)))
    np.testing.assert_allclose(trace(X), 24 * X, rtol=1e-14)
    np.testing.assert_allclose(
        pb.jacobian(lambda x: pb.hvp(lambda y: np.sum(y**4), (x,), (T,)))(X), np.diag(24 * X * T), rtol=1e-14
    )


def test_a_closure_over_an_outer_trace():
    """What the inner function does not say it depends on is traced all the same."""

    def outer(a):
        return np.sum(pb.jacobian(lambda x: np.stack([x[0], a * x[1]]), mode="reverse")(X[:2]) ** 2)

    assert pb.grad(outer)(3.0) == 6.0
    assert (
        pb.grad(lambda a: np.sum(pb.jacobian(lambda x: np.stack([x[0], a * x[1]]), mode="forward")(X[:2]) ** 2))(3.0)
        == 6.0
    )


def test_threads_that_run_different_transforms_agree_with_serial_runs():
    tasks = [
        pb.jacobian(mixed),
        pb.jacobian(mixed, mode="forward"),
        pb.hessian(rosenbrock, policy=pb.Recompute(2)),
        lambda x: pb.hvp(rosenbrock, (x,), (T,), policy=pb.Binomial(2)),
        lambda x: pb.gauss_newton_product(mixed, (x,), (T,)),
        pb.elementwise_grad(np.tanh),
        pb.grad(rosenbrock),
        lambda x: pb.jvp(mixed, (x,), (T,))[1],
        lambda x: pb.linearize(mixed, x)[1](T),
    ]
    points = [X + 0.1 * k for k in range(20)]
    serial = [[task(x) for x in points] for task in tasks]
    start = threading.Barrier(len(tasks))

    def work(task):
        start.wait()
        return [task(x) for x in points]

    with ThreadPoolExecutor(len(tasks)) as pool:
        for got, expected in zip(pool.map(work, tasks), serial, strict=True):
            np.testing.assert_array_equal(got, expected)


def test_an_unknown_mode():
    with pytest.raises(StructureError, match=r"mode='fast' of jacobian; choose one of 'auto', 'forward', 'reverse'"):
        pb.jacobian(mixed, mode="fast")


@pytest.mark.parametrize("mode", MODES)
def test_an_integer_argument(mode):
    with pytest.raises(
        NotDifferentiableError, match=r"argument 0.*(carries no derivative|has no floating or complex leaf)"
    ):
        pb.jacobian(mixed, mode=mode)(np.arange(4))


@pytest.mark.parametrize("argument", [3, np.arange(3), np.array([True]), [1.0]])
def test_elementwise_grad_of_what_is_no_floating_array(argument):
    with pytest.raises(
        NotDifferentiableError,
        match=r"argument 0 of sin is (int64\[3?\]|bool\[1\]|list); elementwise_grad is for floating",
    ):
        pb.elementwise_grad(np.sin)(argument)
