"""Each name of the shim gives what the same name of autograd gives; where autograd has no answer, numbers that are
known otherwise."""

from importlib import import_module
from types import new_class

import numpy as np
import pytest

import pullback as pb
import pullback_autograd
from pullback_autograd import extend, grad, grad_named, hessian, jacobian, make_vjp, multigrad_dict, primitive
from pullback_autograd import numpy as anp
from pullback_autograd.misc import fixed_points, flatten, optimizers
from pullback_autograd.misc.flatten import leaves_of
from pullback_autograd.test_util import check_grads, combo_check
from pullback_autograd.tracer import getval, isbox

X = np.array([0.3, 0.7, 1.1])
V = np.array([1.0, -2.0, 0.5])


def quartic(np):
    return lambda x: np.sum(x**4) * np.exp(x[0]) + x[1] * x[2]


def vector(np):
    return lambda x: np.concatenate([np.sin(x) * x[0], x[:2] ** 2])


def of_two(np):
    return lambda a, b=2.0: np.sum(np.sin(a) * b**2)


CASES = {
    "grad": lambda ag, np: ag.grad(quartic(np))(X),
    "grad of two": lambda ag, np: ag.grad(of_two(np), (0, 1))(X, 3.0),
    "grad by keyword": lambda ag, np: ag.grad(of_two(np), argnum=1)(X, 3.0),
    "grad of a dict": lambda ag, np: ag.grad(lambda p: np.sum(p["a"] * p["b"][0]) + p["b"][1] ** 2)({
        "a": X,
        "b": [V, 2.0],
    }),
    "value_and_grad": lambda ag, np: ag.value_and_grad(quartic(np))(X),
    "grad_and_aux": lambda ag, np: ag.grad_and_aux(lambda x: (np.sum(x**2), {"mean": 3.0}))(X),
    "holomorphic_grad": lambda ag, np: ag.holomorphic_grad(lambda z: z**3 * np.exp(z))(0.4 + 0.2j),
    "grad of complex": lambda ag, np: ag.grad(lambda z: np.sum(np.abs(z * V) ** 2))(X + 1j * V),
    "elementwise_grad": lambda ag, np: ag.elementwise_grad(np.tanh)(X),
    "elementwise_grad twice": lambda ag, np: ag.elementwise_grad(ag.elementwise_grad(np.tanh))(X),
    "deriv": lambda ag, np: ag.deriv(lambda x: np.sin(x) ** 2)(X),
    "jacobian": lambda ag, np: ag.jacobian(vector(np))(X),
    "jacobian of a scalar": lambda ag, np: ag.jacobian(lambda x: np.array([x, x**2]))(0.7),
    "hessian": lambda ag, np: ag.hessian(quartic(np))(X),
    "hessian of a vector": lambda ag, np: ag.hessian(vector(np))(X),
    "hessian_vector_product": lambda ag, np: ag.differential_operators.hessian_vector_product(quartic(np))(X, V),
    "hessian_tensor_product": lambda ag, np: ag.differential_operators.hessian_tensor_product(quartic(np))(X, V),
    "vector_jacobian_product": lambda ag, np: ag.differential_operators.vector_jacobian_product(vector(np))(
        X, np.arange(5.0)
    ),
    "tensor_jacobian_product": lambda ag, np: ag.differential_operators.tensor_jacobian_product(vector(np))(
        X, np.arange(5.0)
    ),
    "make_hvp": lambda ag, np: (ag.make_hvp(quartic(np))(X)[0](V), ag.make_hvp(quartic(np))(X)[1]),
    "make_ggnvp": lambda ag, np: ag.make_ggnvp(vector(np))(X)(V),
    "make_jvp": lambda ag, np: ag.make_jvp(vector(np))(X)(V),
    "make_jvp_reversemode": lambda ag, np: ag.differential_operators.make_jvp_reversemode(vector(np))(X)(V),
    "make_vjp": lambda ag, np: (ag.make_vjp(vector(np))(X)[0](np.arange(5.0)), ag.make_vjp(vector(np))(X)[1]),
    "grad_named": lambda ag, np: ag.differential_operators.grad_named(of_two(np), "b")(X, 3.0),
    "checkpoint": lambda ag, np: ag.grad(ag.differential_operators.checkpoint(quartic(np)))(X),
    "array of arrays": lambda ag, np: ag.grad(lambda x: np.sum(np.array([[x[0], 2.0], [x[1], x[2]]]) ** 2))(X),
    "concatenate of lists": lambda ag, np: ag.grad(lambda x: np.sum(np.concatenate((x, np.array([x[0], 1.0]))) ** 2))(
        X
    ),
    "random": lambda ag, np: np.random.RandomState(3).randn(2),
}


def run(case, package):
    return leaves_of(CASES[case](import_module(package), import_module(f"{package}.numpy")))


@pytest.mark.parametrize("case", CASES)
def test_a_name_gives_what_autograd_gives(case):
    pytest.importorskip("autograd", reason="compares with autograd, which is not installed")
    given, expected = run(case, "pullback_autograd"), run(case, "autograd")
    assert [np.shape(leaf) for leaf in given] == [np.shape(leaf) for leaf in expected]
    for a, b in zip(given, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_multigrad_dict_names_every_argument():
    def f(a, b=3.0, *more, **named):
        return a * b * sum(more) * named.get("scale", 1.0)

    assert multigrad_dict(f)(2.0) == {"a": 0.0, "b": 0.0, "more": (), "named": {}}
    assert multigrad_dict(f)(2.0, 3.0, 4.0, 5.0, scale=10.0) == {
        "a": 270.0,
        "b": 180.0,
        "more": (60.0, 60.0),
        "named": {"scale": 54.0},
    }
    with pytest.raises(pb.StructureError, match="f has no argument 'c'; its arguments are"):
        grad_named(f, "c")


def test_a_vjp_may_be_pulled_many_times():
    pull, out = make_vjp(anp.sin)(X)
    np.testing.assert_array_equal(out, np.sin(X))
    for _ in range(3):
        np.testing.assert_array_equal(pull(V), V * np.cos(X))


def test_dtypes_follow_the_argument():
    single = X.astype(np.float32)
    assert grad(lambda x: anp.sum(x**2))(single).dtype == np.float32
    assert jacobian(lambda x: x**2)(single).dtype == np.float32
    assert hessian(lambda x: anp.sum(x**3))(single).dtype == np.float32


def test_what_has_no_jacobian_is_refused():
    with pytest.raises(pb.StructureError, match="the output of <lambda> is a tuple; use make_vjp for structures"):
        jacobian(lambda x: (x, x))(X)
    with pytest.raises(pb.NotDifferentiableError, match="has type int and carries no derivative; pass floats"):
        jacobian(lambda x: x)(3)
    with pytest.raises(pb.StructureError, match="argnum 1 of <lambda>: the call has 1 positional arguments"):
        grad(lambda x: x, 1)(2.0)
    with pytest.raises(pb.NotDifferentiableError, match="elementwise_grad is for real outputs"):
        pullback_autograd.egrad(lambda x: x * 1j)(X)
    with pytest.raises(pb.NotDifferentiableError, match="returned int, which carries no derivative"):
        pullback_autograd.deriv(lambda x: 3)(X)


def test_an_empty_jacobian():
    assert jacobian(lambda x: x[:0])(X).shape == (0, 3)


# --------------------------------------------------------------------------------------------------------------- extend
def declared_product():
    @primitive
    def scaled_product(x, y, power, flip=False):
        """x * y**power, negated by ``flip``."""
        assert isinstance(x, np.ndarray)  # it always runs on plain arrays
        return (-1 if flip else 1) * x * y**power

    extend.defvjp(
        scaled_product,
        lambda ans, x, y, power, flip=False: lambda g: (-1 if flip else 1) * g * y**power,
        lambda ans, x, y, power, flip=False: lambda g: (-1 if flip else 1) * g * x * power * y ** (power - 1),
    )
    return scaled_product


def test_a_declared_primitive_is_differentiated_by_its_makers():
    f = declared_product()
    np.testing.assert_allclose(f(X, V, 2), X * V**2)
    got = grad(lambda x, y: anp.sum(f(x, y, 3, flip=True)), (0, 1))(X, V)
    np.testing.assert_allclose(got[0], -(V**3))
    np.testing.assert_allclose(got[1], -3 * X * V**2)
    np.testing.assert_allclose(hessian(lambda y: anp.sum(f(X, y, 3)))(V), np.diag(6 * X * V))
    check_grads(lambda x, y: f(x, y, 3), (0, 1))(X, V)
    assert f.__name__ == "scaled_product"


def test_a_declared_primitive_under_a_policy():
    f = declared_product()

    def program(x):
        for _ in pb.steps(5):
            x = f(x, x, 1) * 0.9
        return np.sum(x)

    np.testing.assert_array_equal(pb.grad(program, policy=pb.Binomial(2))(X), pb.grad(program)(X))


def test_a_maker_of_none_is_a_zero_derivative():
    f = primitive(lambda x, y: x * y)
    extend.defvjp(f, None, lambda ans, x, y: lambda g: g * x)
    assert grad(lambda x: f(x, x))(3.0) == 3.0


def test_makers_for_argument_numbers():
    f = primitive(lambda x, y: x * y)
    extend.defvjp(f, lambda ans, x, y: lambda g: g * x, argnums=[1])
    assert grad(lambda y: f(2.0, y))(3.0) == 2.0
    with pytest.raises(
        pb.MissingRuleError, match=r"has no derivative with respect to argument 0: declare it with defvjp"
    ):
        grad(lambda x: f(x, 2.0))(3.0)
    g = primitive(lambda x, y: x * y)
    extend.defvjp_argnum(g, lambda argnum, ans, args, kwargs: lambda ct: ct * args[1 - argnum])
    assert grad(g, (0, 1))(2.0, 3.0) == (3.0, 2.0)
    h = primitive(lambda x, y: x * y)
    extend.defvjp_argnums(h, lambda argnums, ans, args, kwargs: lambda ct: tuple(ct * args[1 - n] for n in argnums))
    assert grad(h, (0, 1))(2.0, 3.0) == (3.0, 2.0)


def test_rules_for_tangents_are_accepted_and_not_used():
    f = primitive(lambda x: x**2)
    extend.defvjp(f, lambda ans, x: lambda g: 2 * g * x)
    for declare in (extend.defjvp, extend.defjvp_argnum, extend.defjvp_argnums):
        declare(f, lambda *args, **kwargs: 1 / 0)
    extend.def_linear(f)
    assert pullback_autograd.make_jvp(f)(3.0)(2.0) == (9.0, 12.0)


def test_what_a_declared_primitive_cannot_take():
    f = declared_product()
    with pytest.raises(pb.ConversionError, match="scaled_product got a tracer by keyword"):
        grad(lambda x: f(1.0, 2.0, 3, flip=x))(1.0)

    def leaking(t):
        inner = primitive(lambda x: x * t)
        extend.defvjp(inner, lambda ans, x: lambda g: g)
        return inner(t * 1.0)

    with pytest.raises(pb.NotDifferentiableError, match="returned a tracer from outside"):
        grad(leaking)(2.0)


@pytest.mark.parametrize("name", ["Box", "SparseObject", "register_notrace", "JVPNode", "VJPNode"])
def test_what_has_no_counterpart_says_so(name):
    with pytest.raises(pb.NotDifferentiableError, match=f"autograd.extend.{name} has no counterpart in pullback"):
        getattr(extend, name)(X)
    with pytest.raises(pb.NotDifferentiableError, match="has no counterpart"):
        getattr(extend, name).register(float)
    with pytest.raises(pb.NotDifferentiableError, match="has no counterpart"):
        new_class("Mine", (getattr(extend, name),))


def test_a_function_without_a_trace():
    shape_of = extend.notrace_primitive(lambda x: float(np.sum(x)))
    np.testing.assert_array_equal(grad(lambda x: anp.sum(x) * shape_of(x))(X), np.full(3, X.sum()))


def test_values_and_types_behind_tracers():
    builtins = pullback_autograd.builtins
    seen = []

    def f(x):
        seen.extend([isbox(x), isbox(getval(x)), builtins.isinstance(x, np.ndarray), builtins.type(x) is np.ndarray])
        seen.append(isinstance(x, anp.numpy_boxes.ArrayBox))
        return anp.sum(x)

    grad(f)(X)
    assert seen == [True, False, True, True, True]
    assert builtins.tuple is tuple
    assert builtins.dict is dict
    assert builtins.list is list


# --------------------------------------------------------------------------------------------------------------- checks
def test_check_grads_tells_right_from_wrong():
    check_grads(anp.sin)(X)
    check_grads(anp.outer, (0, 1), modes=["rev"], order=1)(X, V)
    wrong = primitive(lambda x: x**2)
    extend.defvjp(wrong, lambda ans, x: lambda g: 3 * g * x)
    with pytest.raises(AssertionError, match=r"\(VJP\) check of <lambda> failed"):
        check_grads(wrong, modes=["rev"])(X)
    combo_check(anp.sum, 0, modes=["rev"], order=1)([X, np.outer(X, V)], axis=[None, 0], keepdims=[True, False])
    with pytest.raises(AssertionError, match="failed"):
        combo_check(wrong, modes=["rev"], order=1)([np.array([0.0]), X])


# ----------------------------------------------------------------------------------------------------------------- misc
def test_flatten_goes_there_and_back():
    tree = {"b": [1.5, (2.0, X)], "a": np.outer(X, V)}
    vector_of, unflatten = flatten(tree)
    np.testing.assert_array_equal(vector_of, np.concatenate([np.outer(X, V).ravel(), [1.5, 2.0], X]))
    back = unflatten(vector_of)
    assert back["b"][0] == 1.5
    np.testing.assert_array_equal(back["a"], tree["a"])
    np.testing.assert_allclose(grad(lambda t: anp.sum(flatten(t)[0] ** 2))(tree)["a"], 2 * tree["a"])
    assert flatten(())[0].shape == (0,)


@pytest.mark.parametrize("name", ["sgd", "rmsprop", "adam"])
def test_an_optimizer_takes_autograds_steps(name):
    pytest.importorskip("autograd", reason="compares with autograd, which is not installed")
    results = []
    for package in ("pullback_autograd", "autograd"):
        seen = []
        loss = lambda p, i: np.sum((p["x"] - V) ** 2) + (p["y"] - 0.1 * i) ** 2  # noqa: E731
        optimize = getattr(import_module(f"{package}.misc.optimizers"), name)
        look = lambda x, i, g, seen=seen: seen.append((i, x["y"], g["y"]))  # noqa: E731
        end = optimize(
            import_module(package).grad(loss), {"x": X, "y": 1.0}, callback=look, num_iters=15, step_size=0.05
        )
        results.append([end["x"], end["y"], *seen[-1]])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def test_an_optimizer_finds_the_minimum():
    gradient = grad(lambda x, i: anp.sum((x - V) ** 2))
    np.testing.assert_allclose(optimizers.adam(gradient, X, num_iters=2000, step_size=0.05), V, atol=1e-6)


def test_a_fixed_point_is_differentiated_at_the_fixed_point():
    def newton(a):
        return lambda x: 0.5 * (x + a / x)

    def root(a):
        return fixed_points.fixed_point(newton, a, np.ones(3), lambda x, y: np.max(np.abs(x - y)), 1e-14)

    np.testing.assert_allclose(grad(lambda a: anp.sum(root(a) * V))(X), V * 0.5 / np.sqrt(X), rtol=1e-12)
    np.testing.assert_allclose(hessian(lambda a: anp.sum(root(a)))(X), np.diag(-0.25 * X**-1.5), rtol=1e-10)
    assert (
        grad(
            lambda s: anp.sum(
                fixed_points.fixed_point(newton, X, s * np.ones(3), lambda x, y: np.max(np.abs(x - y)), 1e-14)
            )
        )(1.0)
        == 0
    )
