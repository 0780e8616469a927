"""Programs written for autograd give under the shim the gradients they give under autograd, and those of
differences."""

import numpy as np
import pytest
from tests.compat.programs import PROGRAMS, SHIM, gaussian_mixture, library_of, neural_ode

from pullback.testing import check_grads
from pullback.words.structures import flatten


def assert_close(given, expected, tolerance):
    """Leaf by leaf, relative to the largest element of all."""
    given, expected = flatten(given)[0], flatten(expected)[0]
    size = max(float(np.max(np.abs(leaf))) for leaf in expected)
    assert [np.shape(leaf) for leaf in given] == [np.shape(leaf) for leaf in expected]
    worst = max(float(np.max(np.abs(a - b))) for a, b in zip(given, expected, strict=True))
    assert worst <= tolerance * size, (worst, size)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_gives_autograds_gradient(program):
    autograd = pytest.importorskip("autograd", reason="compares with autograd, which is not installed")
    ours, theirs = library_of(SHIM), library_of("autograd")
    loss, parameters = program(ours)
    value, gradient = ours().value_and_grad(loss)(parameters)
    their_loss, their_parameters = program(theirs)
    their_value, their_gradient = autograd.value_and_grad(their_loss)(their_parameters)
    assert_close([value], [their_value], 1e-12)
    assert_close(gradient, their_gradient, 1e-10)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_gives_the_gradient_of_differences(program):
    loss, parameters = program(library_of(SHIM))
    if program is neural_ode:  # a solver's error is not smooth enough for the tolerance of check_grads
        check_by_steps(library_of(SHIM)(), loss, parameters)
    else:
        check_grads(loss, (parameters,), order=1, modes=("rev",))


def check_by_steps(shim, loss, parameters):
    """Central differences in one direction, at the accuracy of the solver."""
    flatten_structure = library_of(SHIM)("misc.flatten").flatten
    vector, unflatten = flatten_structure(parameters)
    direction = np.cos(np.arange(vector.size))
    h = 1e-4
    slope = (loss(unflatten(vector + h * direction)) - loss(unflatten(vector - h * direction))) / (2 * h)
    gradient = flatten_structure(shim.grad(loss)(parameters))[0]
    assert abs(gradient @ direction - slope) < 1e-6 * abs(slope)


def test_the_hessian_of_a_mixture_times_a_vector():
    autograd = pytest.importorskip("autograd", reason="compares with autograd, which is not installed")
    products = []
    for library in (library_of(SHIM), library_of("autograd")):
        loss, parameters = gaussian_mixture(library)
        of_vector, _, vector = library("misc.flatten").flatten_func(lambda p, loss=loss: [loss(p)], parameters)
        direction = np.sin(np.arange(vector.size))
        products.append(library().hessian_vector_product(lambda x, f=of_vector: f(x)[0])(vector, direction))
    assert autograd.__name__ == "autograd"
    assert_close(products[0], products[1], 1e-10)
