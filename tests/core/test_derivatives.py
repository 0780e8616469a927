"""Jacobians, Hessians and products with them, against derivatives known exactly."""

import threading
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import attrs
import numpy as np
import pytest

import pullback as pb
from pullback import BudgetError, NotDifferentiableError, PolicyError, ReplayError, StructureError
from pullback.transforms.jacobian_blocks import Block
from pullback.words.specs import spec_of

X = np.array([0.3, -0.7, 1.1, 0.4])
T = np.array([1.0, -2.0, 0.5, 3.0])
A = np.array([[1.0, 2.0, -1.0, 0.5], [0.0, 1.5, 4.0, -2.0], [3.0, -1.0, 0.25, 1.0]])
MODES = ("auto", "forward", "reverse")
Pair = namedtuple("Pair", "x y")  # noqa: PYI024 - the plain kind is what is tested


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


# ------------------------------------------------------------------------------------------------------------- jacobian


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", [None, pb.Recompute(2), pb.Binomial(2)], ids=str)
def test_jacobian(mode, policy):
    got = pb.jacobian(mixed, mode=mode, policy=policy)(X)
    assert got.shape == (3, 4)
    np.testing.assert_allclose(got, JACOBIAN, rtol=1e-15)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", [None, pb.Binomial(2)], ids=str)
def test_jacobian_of_a_tall_map(mode, policy):
    def tall(x):
        return np.stack([k * x**2 for k in range(1, 5)])

    got = pb.jacobian(tall, mode=mode, policy=policy)(X)
    np.testing.assert_allclose(got, np.stack([np.diag(2 * k * X) for k in range(1, 5)]), rtol=1e-15)
    assert got.shape == (4, 4, 4)


@pytest.mark.parametrize(
    ("mode", "columns", "runs"),
    [("reverse", 4, 1), ("forward", 4, 4), ("auto", 4, 1), ("auto", 1, 2), ("forward", 1, 1)],
)
def test_how_often_the_function_is_run(mode, columns, runs):
    """Rows come from one recorded run, columns from a run each; where there are many columns and still more rows,
    from one run too."""
    count = []

    def f(x):
        count.append(1)
        return np.stack([np.sum(x) * k + x[0] ** 2 for k in range(12)])

    got = pb.jacobian(f, mode=mode)(X[:columns])
    expected = np.arange(12.0)[:, None] + np.append(2 * X[0], np.zeros(columns - 1))
    np.testing.assert_allclose(got, expected, rtol=1e-15)
    assert len(count) == runs


def test_an_infinite_slope_stays_infinite():
    """Through the recorded linear map too: rules that keep a cotangent of 0 at 0 must not be recorded there."""
    x = np.array([0.0, 1.0, 4.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        for mode in MODES:
            got = pb.jacobian(
                lambda x: np.concatenate([np.log(x), np.sqrt(x), np.where(x > 0, x * np.log(x), 0.0)]), mode=mode
            )(x)
            slopes = np.stack([got[k : k + 3].diagonal() for k in (0, 3, 6)])
            np.testing.assert_allclose(slopes, [[np.inf, 1, 0.25], [np.inf, 0.5, 0.25], [0, 1, 1 + np.log(4)]])


@pytest.mark.parametrize("mode", MODES)
def test_the_structure_is_that_of_the_output_of_that_of_the_input(mode):
    def f(p, extra):
        return {"product": p.x * p.y["s"], "count": 3, "pair": (np.sum(p.x**2), extra * p.y["s"])}

    given = Pair(X, {"s": np.float64(2.0), "n": 7, "none": None})
    got = pb.jacobian(f, mode=mode)(given, 5.0)
    assert got["count"] is None
    assert isinstance(got["product"], Pair)
    assert got["product"].y.keys() == {"s", "n", "none"}
    assert got["product"].y["n"] is None
    assert got["product"].y["none"] is None
    np.testing.assert_array_equal(got["product"].x, 2 * np.eye(4))
    np.testing.assert_array_equal(got["product"].y["s"], X)
    np.testing.assert_array_equal(got["pair"][0].x, 2 * X)
    assert got["pair"][0].y["s"] == 0
    assert got["pair"][1].y["s"] == 5
    assert got["pair"][1].x.shape == (4,)


@pytest.mark.parametrize("mode", MODES)
def test_an_attrs_class_and_several_arguments(mode):
    @attrs.frozen
    class Ball:
        at: np.ndarray
        mass: float

    def f(ball, push):
        return ball.at * ball.mass + push

    by_ball, by_push = pb.jacobian(f, argnums=(0, 1), mode=mode)(Ball(X, 2.0), T)
    assert isinstance(by_ball, Ball)
    np.testing.assert_array_equal(by_ball.at, 2 * np.eye(4))
    np.testing.assert_array_equal(by_ball.mass, X)
    np.testing.assert_array_equal(by_push, np.eye(4))


@pytest.mark.parametrize("mode", MODES)
def test_float32_stays_float32_and_mixed_dtypes_are_promoted(mode):
    x = X.astype(np.float32)
    assert pb.jacobian(np.sin, mode=mode)(x).dtype == np.float32
    assert pb.jacobian(lambda x: x * np.float64(2), mode=mode)(x).dtype == np.float64
    wide, narrow = pb.jacobian(lambda x, y: x * y, argnums=(0, 1), mode=mode)(X, x)
    assert wide.dtype == narrow.dtype == np.float64
    assert pb.hessian(rosenbrock)(x).dtype == np.float32
    assert pb.hvp(rosenbrock, (x,), (x,)).dtype == np.float32


@pytest.mark.parametrize("mode", MODES)
def test_empty_and_0d(mode):
    assert pb.jacobian(np.sin, mode=mode)(np.zeros((0, 2))).shape == (0, 2, 0, 2)
    assert pb.jacobian(np.sum, mode=mode)(np.zeros(0)).shape == (0,)
    assert pb.jacobian(lambda x: x[:0], mode=mode)(X).shape == (0, 4)
    slope = pb.jacobian(np.sin, mode=mode)(0.5)
    assert isinstance(slope, np.float64)
    assert slope == np.cos(0.5)
    np.testing.assert_array_equal(pb.jacobian(lambda t: t * X, mode=mode)(2.0), X)
    assert pb.hessian(lambda x: np.sum(x**2))(np.zeros(0)).shape == (0, 0)
    assert pb.hessian(np.sin)(0.5) == -np.sin(0.5)


@pytest.mark.parametrize("mode", MODES)
def test_an_output_without_dependence_has_zeros(mode):
    constant, through = pb.jacobian(lambda x: (np.ones(2), x), mode=mode)(X)
    np.testing.assert_array_equal(constant, np.zeros((2, 4)))
    np.testing.assert_array_equal(through, np.eye(4))


def test_aux_is_plain():
    for mode in MODES:
        got, aux = pb.jacobian(lambda x: (mixed(x), {"twice": 2 * x}), mode=mode, has_aux=True)(X)
        np.testing.assert_allclose(got, JACOBIAN, rtol=1e-15)
        assert type(aux["twice"]) is np.ndarray
    got, aux = pb.hessian(lambda x: (rosenbrock(x), np.sin(x)), has_aux=True)(X)
    np.testing.assert_array_equal(aux, np.sin(X))
    product, aux = pb.hvp(lambda x: (rosenbrock(x), np.sin(x)), (X,), (T,), has_aux=True)
    np.testing.assert_allclose(product, got @ T, rtol=1e-12)
    np.testing.assert_array_equal(aux, np.sin(X))


def test_the_result_shares_no_memory():
    x = X.copy()
    for mode in MODES:
        got = pb.jacobian(lambda x: (x, x[::2]), mode=mode)(x)
        assert all(block.flags.writeable and not np.shares_memory(block, x) for block in got)
        assert not np.shares_memory(*got)


# ---------------------------------------------------------------------------------------------------------------- chunk


@pytest.mark.parametrize("mode", MODES)
def test_a_jacobian_larger_than_chunk_raises_with_the_figures(mode):
    text = (
        r"has 1000 rows and 1000 columns and takes 7.63 MiB \(8000000 bytes\), chunk allows 977 KiB \(1000000 "
        r"bytes\); use products"
    )
    with pytest.raises(BudgetError, match=text) as caught:
        pb.jacobian(lambda x: 2 * x, mode=mode, chunk="1 MB")(np.ones(1000))
    assert caught.value.minimum_bytes == 8_000_000
    assert pb.jacobian(lambda x: 2 * x, mode=mode, chunk=8 * 16)(X).shape == (4, 4)
    with pytest.raises(BudgetError, match=r"dense Hessian of rosenbrock has 4 rows .*\(127 bytes\)"):
        pb.hessian(rosenbrock, chunk=127)(X)


@pytest.mark.parametrize("chunk", ["200 furlongs", "", -1, 1.5, True, "1.2.3 MB"])
def test_a_chunk_that_is_no_number_of_bytes(chunk):
    with pytest.raises(PolicyError, match=r"chunk=.* is no number of bytes; write an integer, or a text"):
        pb.jacobian(mixed, chunk=chunk)


UNITS = [("0.1 KiB", False), ("0.125KiB", True), ("1e2", None), (np.int64(128), True), ("128 b", True)]


@pytest.mark.parametrize(("chunk", "enough"), UNITS)
def test_chunk_in_units(chunk, enough):
    if enough is None:
        with pytest.raises(PolicyError, match="no number of bytes"):
            pb.jacobian(np.sin, chunk=chunk)
    elif enough:
        assert pb.jacobian(np.sin, chunk=chunk)(X).nbytes == 128
    else:
        with pytest.raises(BudgetError, match="chunk allows 102 B"):
            pb.jacobian(np.sin, chunk=chunk)(X)


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


@pytest.mark.parametrize("column", [False, True])
def test_a_block_of_plain_and_traced_parts(column):
    """The first parts may be plain and the later ones traced: those that came before are kept."""

    def f(a):
        block = Block(spec_of(X), spec_of(X))
        for k, part in enumerate((X, a * X, T, a * a * T)):
            block.put(k, part, column=column)
        return np.sum(block.array() * (A[0] if column else A[0][:, None]))

    assert pb.value(f(2.0)) == pytest.approx(A[0] @ [np.sum(X), 2 * np.sum(X), np.sum(T), 4 * np.sum(T)], rel=1e-14)
    assert pb.grad(f)(2.0) == pytest.approx(A[0, 1] * np.sum(X) + 4 * A[0, 3] * np.sum(T), rel=1e-14)
    assert pb.value_and_grad(f)(2.0)[0] == pytest.approx(f(2.0), rel=1e-14)


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


@pytest.mark.parametrize(
    "transform", [pb.jvp, pb.hvp, lambda f, primals, tangents: pb.linearize(f, *primals)[1](*tangents)]
)
def test_a_tangent_of_an_integer_argument(transform):
    """Like the gradient by an integer, it would be 0 for want of a float."""
    with pytest.raises(
        NotDifferentiableError,
        match=r"argument 0 at .* is int64\[4\], which carries no derivative, and its tangent is not 0",
    ):
        transform(lambda n: np.sum(n * 2.0), (np.arange(4),), (np.ones(4),))
    for tangent in (None, np.zeros(4, int)):
        assert pb.jvp(lambda n, x: np.sum(n * x), (np.arange(4), X), (tangent, T))[1] == np.arange(4) @ T


@pytest.mark.parametrize("argument", [3, np.arange(3), np.array([True]), [1.0]])
def test_elementwise_grad_of_what_is_no_floating_array(argument):
    with pytest.raises(
        NotDifferentiableError,
        match=r"argument 0 of sin is (int64\[3?\]|bool\[1\]|list); elementwise_grad is for floating",
    ):
        pb.elementwise_grad(np.sin)(argument)


def test_tangents_share_no_memory():
    tangent = T.copy()
    _, sent = pb.jvp(lambda x: (x, x, x[1:], {"reversed": x[::-1]}), (X,), (tangent,))
    leaves = [*sent[:3], sent[3]["reversed"], tangent]
    assert not any(np.shares_memory(a, b) for k, a in enumerate(leaves) for b in leaves[:k])
