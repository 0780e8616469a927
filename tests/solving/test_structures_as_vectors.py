"""SciPy's optimisers with ``ravel``, ``fun_and_grad`` and ``jacobian``, on functions whose derivatives are known
exactly."""

import dataclasses

import attrs
import numpy as np
import pytest
from scipy.optimize import approx_fprime, least_squares, minimize, root, rosen, rosen_der, rosen_hess, rosen_hess_prod

import pullback as pb

N = 1000


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


@dataclasses.dataclass
class Line:
    slope: float
    offset: np.ndarray


@attrs.frozen
class Wave:
    height: np.ndarray
    phase: float
    harmonics: int = 2


def drawn(size, seed=0):
    return np.random.default_rng(seed).normal(size=size)


# ---------------------------------------------------------------------------------------------------------------- ravel
TREE = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": [2.5, None, np.array([True])],
    "n": 7,
    "z": (np.float64(4.0), "name"),
}


def test_ravel_and_unravel_undo_each_other():
    vector, unravel = pb.ravel(TREE)
    assert vector.dtype == np.float64  # float32 and float64 promote
    np.testing.assert_array_equal(vector, [0, 1, 2, 3, 4, 5, 2.5, 4])
    again = unravel(vector)
    assert again["a"].dtype == np.float32
    assert again["a"].shape == (2, 3)
    assert again["b"][0] == 2.5 and type(again["b"][0]) is float
    assert again["b"][1] is None and again["b"][2] is TREE["b"][2]
    assert again["n"] == 7
    assert again["z"] == (4.0, "name")
    np.testing.assert_array_equal(pb.ravel(unravel(2 * vector)).vector, 2 * vector)


def test_the_vector_and_the_leaves_share_no_memory():
    tree = {"x": np.ones(3)}
    vector, unravel = pb.ravel(tree)
    leaf = unravel(vector)["x"]
    assert not np.shares_memory(vector, tree["x"])
    assert not np.shares_memory(vector, leaf)


@pytest.mark.parametrize(
    ("leaves", "dtype"),
    [
        ((np.float32(1), np.ones(2, np.float32)), np.float32),
        ((np.float16(1), np.ones(2, np.float32)), np.float32),
        ((1.0, np.ones(2, np.float32)), np.float64),
        ((1.0, np.ones(2, np.complex64)), np.complex128),
        ((1, "text"), np.float64),
    ],
)
def test_dtypes_promote(leaves, dtype):
    assert pb.ravel(leaves).vector.dtype == dtype


def test_a_real_leaf_among_complex_ones_comes_back_real():
    vector, unravel = pb.ravel((np.array([1.0, 2.0]), np.array(3 + 4j)))
    real, number = unravel(vector)
    assert real.dtype == np.float64
    assert number == 3 + 4j and number.shape == ()


def test_ravel_inside_a_differentiated_function():
    def f(tree):
        vector, unravel = pb.ravel(tree)
        back = unravel(np.sin(vector) * 2.0)
        return np.sum(back["a"] ** 2) * back["b"][0] + back["n"] * np.sum(vector)

    def by_hand(tree):
        a = 2.0 * np.sin(tree["a"])
        return np.sum(a**2) * (2.0 * np.sin(tree["b"][0])) + 7 * (np.sum(tree["a"]) + tree["b"][0] + tree["z"][0])

    tree = TREE | {"a": TREE["a"].astype(float)}
    np.testing.assert_allclose(f(tree), by_hand(tree), rtol=1e-12)
    gradient = pb.grad(f, allow_int=True)(tree)
    a, b = tree["a"], 2.5
    np.testing.assert_allclose(gradient["a"], 16 * np.sin(a) * np.cos(a) * np.sin(b) + 7, rtol=1e-12)
    np.testing.assert_allclose(gradient["b"][0], 8 * np.sum(np.sin(a) ** 2) * np.cos(b) + 7, rtol=1e-12)
    np.testing.assert_allclose(gradient["z"][0], 7.0, rtol=1e-12)
    assert gradient["n"] is None


def test_unravel_of_a_traced_vector_and_its_second_derivative():
    x0, unravel = pb.ravel({"a": np.ones((2, 2), np.float32), "b": 3.0})
    gradient = pb.grad(lambda v: np.sum(unravel(v)["a"] ** 3) * unravel(v)["b"])
    np.testing.assert_array_equal(gradient(x0), [9, 9, 9, 9, 4])
    np.testing.assert_array_equal(pb.jvp(gradient, (x0,), (np.ones(5),))[1], [21, 21, 21, 21, 12])


def test_a_leaf_of_unravel_is_a_copy_for_tracers_too():
    unravel = pb.ravel({"a": np.ones(2)}).unravel

    def f(v):
        a = unravel(v)["a"]
        a[:] = 0.0
        return np.sum(v**2)

    np.testing.assert_array_equal(pb.grad(f)(np.array([1.0, 2.0])), [2.0, 4.0])


@pytest.mark.parametrize("vector", [np.zeros(7), np.zeros((8, 1)), np.zeros(8, complex), np.array(["x"] * 8), 1.0])
def test_a_vector_that_does_not_fit_is_refused(vector):
    unravel = pb.ravel(TREE).unravel
    with pytest.raises(pb.StructureError, match=r"the structure takes float64\[8\] \(\['a'\]: float32\[2,3\] at 0:6; "):
        unravel(vector)


def test_another_structure_is_refused():
    unravel = pb.ravel({"a": np.ones(2), "b": 1.0}).unravel
    np.testing.assert_array_equal(unravel.ravel({"a": np.zeros(2), "b": 3.0}), [0, 0, 3])
    with pytest.raises(pb.StructureError, match=r"'c'.* is to be ravelled as .*'b'"):
        unravel.ravel({"a": np.zeros(2), "c": 3.0})
    with pytest.raises(
        pb.StructureError,
        match=r"the leaf \['a'\] is float64\[3\], in the structure that was ravelled it is float64\[2\]",
    ):
        unravel.ravel({"a": np.zeros(3), "b": 3.0})


def test_a_layout_prints():
    unravel = pb.ravel({"a": np.ones((2, 3), np.float32), "b": 1.0}).unravel
    assert repr(unravel) == "Layout(float64[7]: ['a']: float32[2,3] at 0:6; ['b']: float64[] at 6:7)"


# ------------------------------------------------------------------------------------------------------------- minimize
def test_rosenbrock_value_gradient_and_hessian_product():
    x, p = drawn(N), drawn(N, 1)
    fun = pb.fun_and_grad(rosenbrock, x)
    value, gradient = fun(x)
    assert type(value) is float
    np.testing.assert_allclose(value, rosen(x), rtol=1e-13)
    np.testing.assert_allclose(gradient, rosen_der(x), rtol=1e-11, atol=1e-11)
    assert gradient.dtype == np.float64 and gradient.flags.c_contiguous and gradient.flags.owndata
    np.testing.assert_allclose(fun.hessp(x, p), rosen_hess_prod(x, p), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        pb.fun_and_grad(rosenbrock, x[:7]).hess(x[:7]), rosen_hess(x[:7]), rtol=1e-12, atol=1e-11
    )


@pytest.mark.parametrize("method", ["L-BFGS-B", "trust-ncg", "Newton-CG", "trust-krylov"])
def test_rosenbrock_in_1000_dimensions_is_minimised(method):
    fun = pb.fun_and_grad(rosenbrock, np.linspace(0.7, 1.2, N))
    second = {} if method == "L-BFGS-B" else {"hessp": fun.hessp}
    options = (
        {"ftol": 1e-15, "gtol": 1e-8}
        if method == "L-BFGS-B"
        else {"xtol": 1e-10}
        if method == "Newton-CG"
        else {"gtol": 1e-8}
    )
    found = minimize(fun, fun.x0, jac=True, method=method, options=options, **second)
    assert found.success
    np.testing.assert_allclose(found.x, 1.0, atol=1e-5)


def test_trust_exact_takes_the_hessian():
    fun = pb.fun_and_grad(rosenbrock, np.full(5, 1.3))
    found = minimize(fun, fun.x0, jac=True, method="trust-exact", hess=fun.hess, options={"gtol": 1e-9})
    assert found.success
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)


def test_x0_is_a_copy_each_time():
    fun = pb.fun_and_grad(rosenbrock, np.ones(3))
    fun.x0[:] = 5.0
    np.testing.assert_array_equal(fun.x0, 1.0)


@pytest.mark.parametrize("policy", [pb.Binomial(3), pb.Recompute()])
def test_value_gradient_and_hessian_product_have_the_same_bits_under_a_policy(policy):
    def f(q):
        return np.sum(pb.fori_loop(0, 20, lambda _, x: x + 0.1 * np.sin(x * q["rate"]), q["start"]) ** 2)

    like, p = {"start": drawn(4), "rate": 1.5}, drawn(5, 1)
    plain, under = pb.fun_and_grad(f, like), pb.fun_and_grad(f, like, policy=policy)
    assert plain(plain.x0)[0] == under(under.x0)[0]
    np.testing.assert_array_equal(plain(plain.x0)[1], under(under.x0)[1])
    np.testing.assert_array_equal(plain.hessp(plain.x0, p), under.hessp(under.x0, p))


ABSCISSAE = np.linspace(0.0, 1.0, 30)
STRUCTURES = [
    (
        {"slope": 0.0, "offset": np.zeros(2)},
        lambda q: np.sum(
            (q["slope"] * ABSCISSAE[:, None] + q["offset"] - 2 * ABSCISSAE[:, None] - np.array([1.0, 3.0])) ** 2
        ),
        {"slope": 2.0, "offset": np.array([1.0, 3.0])},
    ),
    (
        Line(0.0, np.zeros(2)),
        lambda q: np.sum(
            (q.slope * ABSCISSAE[:, None] + q.offset - 2 * ABSCISSAE[:, None] - np.array([1.0, 3.0])) ** 2
        ),
        Line(2.0, np.array([1.0, 3.0])),
    ),
    (
        Wave(np.array([0.7]), 0.1),
        lambda q: np.sum(
            (q.height * np.sin(q.harmonics * np.pi * ABSCISSAE + q.phase) - 1.5 * np.sin(2 * np.pi * ABSCISSAE + 0.4))
            ** 2
        ),
        Wave(np.array([1.5]), 0.4),
    ),
]


@pytest.mark.parametrize(("like", "f", "solution"), STRUCTURES, ids=["dict", "dataclass", "attrs"])
def test_structured_parameters(like, f, solution):
    fun = pb.fun_and_grad(f, like)
    found = minimize(fun, fun.x0, jac=True, method="trust-ncg", hessp=fun.hessp, options={"gtol": 1e-10})
    params = fun.unravel(found.x)
    assert type(params) is type(like)
    np.testing.assert_allclose(pb.ravel(params).vector, pb.ravel(solution).vector, atol=1e-8)
    np.testing.assert_array_equal(fun.ravel(params), found.x)


def test_float32_parameters_stay_float32_inside():
    seen = []

    def f(q):
        seen.append(q.dtype)
        return np.sum((q - 1.0) ** 2)

    fun = pb.fun_and_grad(f, np.zeros(3, np.float32))
    value, gradient = fun(fun.x0)
    assert seen == [np.float32]
    assert value == 3.0
    assert gradient.dtype == np.float64
    np.testing.assert_array_equal(gradient, -2.0)


def test_complex_parameters_take_two_places_each():
    def f(q, shift):
        return np.sum(np.abs(q["z"] ** 2 - shift) ** 2) * q["scale"]

    fun = pb.fun_and_grad(f, {"z": np.array([1 + 1j, 2 - 0.5j]), "scale": 2.0})
    x, p = fun.x0, drawn(5)
    assert x.dtype == np.float64
    np.testing.assert_array_equal(x, [2, 1, 1, 2, -0.5])
    np.testing.assert_array_equal(fun.unravel(x)["z"], [1 + 1j, 2 - 0.5j])
    np.testing.assert_allclose(fun(x, 3.0)[1], approx_fprime(x, lambda x: fun(x, 3.0)[0]), rtol=1e-6)
    h = 1e-5
    difference = (fun(x + h * p, 3.0)[1] - fun(x - h * p, 3.0)[1]) / (2 * h)
    np.testing.assert_allclose(fun.hessp(x, p, 3.0), difference, rtol=1e-8)
    inside = pb.grad(lambda x: f(fun.unravel(x), 3.0))(x)
    np.testing.assert_allclose(inside, fun(x, 3.0)[1], rtol=1e-12)


def test_an_infinite_imaginary_part_leaves_the_real_part_alone():
    fun = pb.fun_and_grad(lambda z: np.sum(np.real(z)), np.array([1 + 1j]))
    np.testing.assert_array_equal(fun.unravel(np.array([2.0, np.inf])).real, [2.0])


def test_further_arguments_pass_through():
    fun = pb.fun_and_grad(lambda x, a, b: a * np.sum((x - b) ** 2), np.zeros(3))
    found = minimize(fun, fun.x0, args=(2.0, 5.0), jac=True, method="Newton-CG", hessp=fun.hessp)
    np.testing.assert_allclose(found.x, 5.0)


@pytest.mark.parametrize("like", [3, {"n": np.arange(3)}, [], None])
def test_a_structure_without_parameters_is_refused(like):
    with pytest.raises(pb.StructureError, match=r"no leaf of like=.* carries a derivative; give floating parameters"):
        pb.fun_and_grad(rosenbrock, like)


def test_a_vector_of_another_length_is_refused():
    fun = pb.fun_and_grad(lambda q: np.sum(q["a"]) ** 2, {"a": np.ones(3)})
    with pytest.raises(pb.StructureError, match=r"unravel got float64\[4\], the structure takes float64\[3\]"):
        fun(np.ones(4))
    with pytest.raises(pb.StructureError, match=r"unravel got float64\[2\], the structure takes float64\[3\]"):
        fun.hessp(np.ones(3), np.ones(2))
    with pytest.raises(pb.StructureError, match=r"is to be ravelled as"):
        fun.ravel({"b": np.ones(3)})


# -------------------------------------------------------------------------------------------------- least squares, root
def test_least_squares_takes_the_jacobian():
    times = np.linspace(0.0, 4.0, 40)
    truth = np.array([2.0, 0.7, 3.0, 0.5])
    data = truth[0] * np.exp(-truth[1] * times) * np.cos(truth[2] * times) + truth[3]

    def residuals(x):
        return x[0] * np.exp(-x[1] * times) * np.cos(x[2] * times) + x[3] - data

    found = least_squares(
        residuals, truth + np.array([0.3, -0.2, 0.1, 0.2]), jac=pb.jacobian(residuals), xtol=1e-14, ftol=1e-14
    )
    np.testing.assert_allclose(found.x, truth, rtol=1e-7)
    x, decay = found.x, np.exp(-found.x[1] * times)
    wave, turned = np.cos(x[2] * times), np.sin(x[2] * times)
    exact = np.stack(
        [decay * wave, -x[0] * times * decay * wave, -x[0] * times * decay * turned, np.ones_like(times)], axis=1
    )
    np.testing.assert_allclose(pb.jacobian(residuals)(x), exact, rtol=1e-12, atol=1e-14)


def test_least_squares_of_structured_parameters():
    data = 2.0 * ABSCISSAE[:, None] + np.array([1.0, 3.0])
    x0, unravel = pb.ravel(Line(0.5, np.zeros(2)))

    def residuals(x):
        line = unravel(x)
        return (line.slope * ABSCISSAE[:, None] + line.offset - data).reshape(-1)

    fitted = unravel(least_squares(residuals, x0, jac=pb.jacobian(residuals), method="lm").x)
    assert isinstance(fitted, Line)
    np.testing.assert_allclose(fitted.slope, 2.0, rtol=1e-12)
    np.testing.assert_allclose(fitted.offset, [1.0, 3.0], rtol=1e-12)


def test_rosenbrock_as_least_squares():
    def residuals(x):
        return np.concatenate([10.0 * (x[1:] - x[:-1] ** 2), 1.0 - x[:-1]])

    found = least_squares(residuals, np.full(20, 1.5), jac=pb.jacobian(residuals))
    np.testing.assert_allclose(found.x, 1.0, atol=1e-8)


@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_root_takes_the_jacobian(method):
    def fun(x):
        return np.stack([x[0] * np.cos(x[1]) - 4.0, x[1] * x[0] - x[1] - 5.0])

    found = root(fun, np.array([1.0, 1.0]), jac=pb.jacobian(fun), method=method)
    assert found.success
    np.testing.assert_allclose(fun(found.x), 0.0, atol=1e-8)
    np.testing.assert_allclose(found.x, [6.50409711, 0.90841421], rtol=1e-7)  # the example of scipy.optimize.fsolve
