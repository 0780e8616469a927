"""Functions that transforms make: by name under a decorator, else by what they are made of."""

import copy
import inspect
import pickle
import subprocess
import sys
from functools import partial, update_wrapper

import cloudpickle
import numpy as np
import pytest
from tests.promises import travelling_programs as programs

import pullback as pb
from pullback.travelling import made_functions

X = programs.X
TRANSFORMS = [
    pb.checkpoint, pb.effect, pb.elementwise_grad, pb.grad, pb.hessian, pb.jacobian, pb.sparse_jacobian, pb.staged,
    pb.value_and_grad,
]  # fmt: skip


def again(thing, pickler=pickle):
    return pickle.loads(pickler.dumps(thing))  # noqa: S301 - what was dumped just now


def test_under_a_decorator_it_is_pickled_by_its_name():
    for pickler in (pickle, cloudpickle):
        assert again(programs.layer, pickler) is programs.layer
        assert again(programs.Stack().layer, pickler).__func__ is programs.Stack.layer


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_else_by_what_it_is_made_of(transform):
    made = transform(programs.misfit)
    assert len(pickle.dumps(made)) < 400
    for pickler in (pickle, cloudpickle):
        other = again(made, pickler)
        assert other is not made
        assert (type(other), other.origin) == (type(made), made.origin)


def test_settings_are_kept():
    made = again(pb.grad(programs.marked, (1, 0), policy=pb.Binomial(3), has_aux=True, allow_int=True))
    transform, f, settings = made.origin
    assert (transform, f) == ("grad", programs.marked)
    assert settings == {
        "argnums": (1, 0), "argnames": None, "policy": pb.Binomial(3), "has_aux": True, "holomorphic": False,
        "allow_int": True, "conj": False, "on_adjoint": None, "progress": None,
    }  # fmt: skip


def test_every_setting_of_a_transform_is_in_its_recipe():
    """A parameter that is added to a transform, and not to what is pickled, would be lost on the way."""
    for transform in TRANSFORMS:
        taken = list(inspect.signature(transform).parameters)[1:]
        assert sorted(transform(programs.misfit).origin[2]) == sorted(taken), transform


def test_a_function_that_cannot_be_found_says_so():
    def local(x):
        return x * x

    with pytest.raises((pickle.PicklingError, AttributeError), match="local"):
        pickle.dumps(pb.grad(local))
    assert again(pb.grad(local), cloudpickle)(3.0) == 6.0


def test_it_is_a_function_in_all_else():
    made = pb.value_and_grad(programs.marked, 1, policy=pb.Binomial(2))
    assert made.__name__ == "marked"
    assert made.__wrapped__ is programs.marked
    assert str(inspect.signature(made)) == "(scale, x)"
    assert copy.copy(made) is made
    assert copy.deepcopy({"f": made})["f"] is made
    assert repr(made).startswith("<value_and_grad of marked at 0x")
    assert partial(made, 2.0)(X)[1].shape == X.shape
    assert made.__code__ is made.func.__code__
    assert made.__globals__ is made.func.__globals__
    assert made.__closure__ == made.func.__closure__


def test_what_wraps_it_is_another_function():
    made = pb.grad(programs.misfit)
    wrapped = update_wrapper(lambda x: made(2 * x), made)
    np.testing.assert_array_equal(wrapped(X), made(2 * X))


def test_in_a_closure_it_is_frozen_as_functions_are():
    """A traced value behind ``checkpoint(f)`` in a body is the one that the loop began with."""

    def f(x):
        scale = np.sin(x)
        step = pb.checkpoint(lambda u: u * scale)
        found = pb.fori_loop(0, 3, lambda k, u: step(u), x)
        scale = x  # nobody reads it
        return np.sum(found)

    def plain(x):
        return np.sum(x * np.sin(x) ** 3)

    for policy in (pb.SaveAll(), pb.Binomial(1)):
        np.testing.assert_allclose(pb.grad(f, policy=policy)(X), pb.grad(plain)(X), rtol=1e-14)


def test_what_holds_a_run_says_why_it_stays():
    stays = made_functions.made_here(np.sin, "it holds a run; make it there")
    assert stays(0.0) == 0.0
    for pickler in (pickle, cloudpickle):
        with pytest.raises(pb.TravelError, match=r"it holds a run; make it there \(PB104"):
            pickler.dumps(stays)
    _, pull = pb.vjp(programs.misfit, X)
    for way in (pickle.dumps, cloudpickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(pb.TravelError, match="a pull holds the records of one run"):
            way(pull)


SCRIPT = """
import pickle, sys, cloudpickle, numpy as np, pullback as pb

@pb.checkpoint
def layer(x):
    return np.tanh(x) * x

def f(x):
    return np.sum(layer(x))

assert pickle.loads(pickle.dumps(layer)) is layer
sys.stdout.buffer.write(cloudpickle.dumps((layer, pb.grad(f, policy=pb.Binomial(2)), pb.grad(pb.grad(layer)))))
"""


def test_of_a_script_cloudpickle_takes_it_along():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True)
    layer, slope, second = pickle.loads(done.stdout)  # noqa: S301 - written by the script above
    np.testing.assert_array_equal(slope(X), pb.grad(lambda x: np.sum(programs.layer(x)))(X))
    assert layer(0.5) == np.tanh(0.5) * 0.5
    assert second(0.5) == pb.grad(pb.grad(programs.layer))(0.5)
