"""Arguments chosen by number and by name."""

import functools

import numpy as np
import pytest

import pullback as pb
from pullback.words.errors import StructureError

X = np.array([1.0, 2.0, 3.0])
MODES = ("auto", "forward", "reverse")


pytestmark = pytest.mark.usefixtures("state_restored")


def test_argnums_out_of_range():
    with pytest.raises(
        StructureError,
        match=r"argnums=2 of <lambda>: the call gives 1 by position; pass the argument by position",
    ):
        pb.grad(lambda x: x, argnums=2)(1.0)


@pytest.mark.parametrize("argnums", ["x", 1.0, (0, 1.5), None])
def test_argnums_that_are_no_numbers(argnums):
    with pytest.raises(
        StructureError, match=r"argnums=.* is no number of an argument; give 0 for the first.*argnames="
    ):
        pb.grad(np.sum, argnums)


# --------------------------------------------------------------------------------------------------------------- names
def weighted(x, y, *, scale=2.0, **more):
    return np.sum(x * y**2) * scale + sum(np.sum(v) for v in more.values())


def test_one_name_gives_the_gradient_itself():
    for call in (
        lambda g: g(X, y=X + 1, scale=3.0),
        lambda g: g(X, X + 1, scale=3.0),
        lambda g: g(y=X + 1, x=X, scale=3.0),
    ):
        np.testing.assert_array_equal(call(pb.grad(weighted, argnames="y")), 6 * X * (X + 1))
        np.testing.assert_array_equal(call(pb.grad(weighted, argnames="x")), 3 * (X + 1) ** 2)
        np.testing.assert_array_equal(call(pb.grad(weighted, argnames="scale")), np.sum(X * (X + 1) ** 2))


def test_several_names_give_a_dict():
    value, got = pb.value_and_grad(weighted, argnames=("scale", "x", "extra"))(X, X + 1, scale=3.0, extra=X)
    assert list(got) == ["scale", "x", "extra"]
    np.testing.assert_array_equal(got["x"], 3 * (X + 1) ** 2)
    np.testing.assert_array_equal(got["extra"], np.ones(3))
    assert value == weighted(X, X + 1, scale=3.0, extra=X)
    assert list(pb.grad(weighted, argnames=["x"])(X, X)) == ["x"]


def test_names_of_other_callables():
    half = functools.partial(weighted, y=X + 1)
    np.testing.assert_array_equal(pb.grad(half, argnames="x")(X), 2 * (X + 1) ** 2)
    np.testing.assert_array_equal(pb.grad(half, argnames="scale")(X, scale=1.0), np.sum(X * (X + 1) ** 2))

    class Model:
        def loss(self, w, b):
            return np.sum(w) * b

    np.testing.assert_array_equal(pb.grad(Model().loss, argnames="w")(w=X, b=2.0), np.full(3, 2.0))
    got = pb.jacobian(lambda x, k: x * k, argnames="x")(k=2.0, x=X)
    np.testing.assert_array_equal(got, 2 * np.eye(3))
    for mode in MODES:
        np.testing.assert_array_equal(pb.jacobian(lambda x, *, k: x * k, argnames=("k",), mode=mode)(X, k=2.0)["k"], X)


def test_wrong_names():
    with pytest.raises(
        StructureError, match=r"argnames='z' of weighted: the call gives no .* only x, y, scale; pass it"
    ):
        pb.grad(weighted, argnames="z")(X, X, scale=1.0)
    with pytest.raises(StructureError, match=r"argnames='scale' of weighted: .*\(a default has no derivative\)"):
        pb.grad(weighted, argnames="scale")(X, X)
    with pytest.raises(
        StructureError, match=r"argnums=1 and argnames='x' together; choose the arguments by one of them"
    ):
        pb.grad(weighted, 1, argnames="x")
    with pytest.raises(StructureError, match=r"names an argument twice; name each once"):
        pb.grad(weighted, argnames=("x", "x"))
    with pytest.raises(StructureError, match=r"argnums=\(0, -2\) of weighted names argument 0 twice"):
        pb.grad(weighted, (0, -2))(X, X)
    with pytest.raises(StructureError, match=r"argnames=\(\) names no argument"):
        pb.jacobian(weighted, argnames=())
    with pytest.raises(TypeError, match=r"missing a required argument: 'y'"):
        pb.grad(weighted, argnames="x")(X)


@pytest.mark.parametrize(
    "x", [np.ones(3), 2.0, np.float64(2.0), {"a": np.ones(2)}], ids=["array", "float", "scalar", "dict"]
)
def test_arguments_given_to_the_transform_are_told(x):
    for transform in (pb.grad, pb.value_and_grad, pb.jacobian, pb.hessian):
        with pytest.raises(StructureError, match=r"grad\(f\)\(x\), not grad\(f, x\)"):
            transform(np.sum, x)
