"""Programs written for autograd give under the shim the gradients they give under autograd, and those of
differences.

Each program is a function of the library: ``library("numpy")`` is ``autograd.numpy`` or ours. It gives a scalar loss
and the parameters to differentiate it at. The programs are the kinds that autograd's documentation shows.
"""

from importlib import import_module

import numpy as np
import pytest

import pullback as pb
from pullback_autograd.misc.flatten import leaves_of

SHIM = "pullback_autograd"


def library_of(package):
    """A function from the rest of a module's name to the module: ``library("scipy.special")``, ``library()`` for the
    package."""
    return lambda inner="": import_module(f"{package}.{inner}" if inner else package)


def character_network(library):
    """A recurrent network that predicts the next letter: a dict of weights, a Python loop, a list of outputs joined
    at the end."""
    np = library("numpy")
    logsumexp = library("scipy.special").logsumexp
    npr = library("numpy.random").RandomState(0)
    text = "the tape remembers what the program forgets"
    letters = sorted(set(text))
    places = [letters.index(c) for c in text]
    hidden, many = 7, len(letters)
    weights = {
        "change": npr.randn(many + hidden + 1, hidden) * 0.3,
        "predict": npr.randn(hidden + 1, many) * 0.3,
        "start": npr.randn(1, hidden) * 0.1,
    }

    def affine(weights, *parts):
        return np.dot(np.hstack([*parts, np.ones((1, 1))]), weights)

    def loss(weights):
        state, outputs = weights["start"], []
        for place in places[:-1]:
            letter = np.eye(many)[place : place + 1]
            state = np.tanh(affine(weights["change"], letter, state))
            scores = affine(weights["predict"], state)
            outputs.append(scores - logsumexp(scores, axis=1, keepdims=True))
        log_probabilities = np.concatenate(outputs)
        return -np.sum(log_probabilities[np.arange(len(places) - 1), np.array(places[1:])]) / len(places)

    return loss, weights


def gaussian_mixture(library):
    """The log likelihood of points under a mixture, whose covariances are given by square roots."""
    np = library("numpy")
    logsumexp = library("scipy.special").logsumexp
    normal = library("scipy.stats").multivariate_normal
    npr = library("numpy.random").RandomState(1)
    points = np.concatenate([npr.randn(15, 2) * 0.5 + c for c in (-1.5, 0.5, 2.0)])
    parameters = {
        "log weights": npr.randn(3) * 0.1,
        "means": npr.randn(3, 2),
        "roots": np.stack([np.eye(2)] * 3) + 0.1 * npr.randn(3, 2, 2),
    }

    def loss(parameters):
        weights = parameters["log weights"] - logsumexp(parameters["log weights"])
        each = [
            weight + normal.logpdf(points, mean, np.dot(root.T, root))
            for weight, mean, root in zip(weights, parameters["means"], parameters["roots"], strict=True)
        ]
        return -np.sum(logsumexp(np.vstack(each), axis=0))

    return loss, parameters


def gaussian_process(library):
    """The marginal likelihood of a regression with a squared exponential kernel; one flat vector of parameters."""
    np = library("numpy")
    npr = library("numpy.random").RandomState(2)
    inputs = np.sort(npr.rand(12, 1) * 6, axis=0)
    targets = np.cos(inputs[:, 0]) + 0.1 * npr.randn(12)

    def kernel(scale, lengths, x, y):
        apart = np.expand_dims(x / lengths, 1) - np.expand_dims(y / lengths, 0)
        return scale * np.exp(-0.5 * np.sum(apart**2, axis=2))

    def loss(parameters):
        mean, noise, scale, lengths = (
            parameters[0],
            np.exp(parameters[1]) + 1e-3,
            np.exp(parameters[2]),
            np.exp(parameters[3:]),
        )
        covariance = kernel(scale, lengths, inputs, inputs) + noise * np.eye(len(targets))
        factor = np.linalg.cholesky(covariance)
        white = np.linalg.solve(factor, targets - mean)
        return 0.5 * np.dot(white, white) + np.sum(np.log(np.diag(factor))) + 0.5 * len(targets) * np.log(2 * np.pi)

    return loss, 0.3 * npr.randn(4)


def neural_ode(library):
    """A small network as the right-hand side of an ODE, fitted to a spiral; the gradient is the adjoint of the
    solver."""
    np = library("numpy")
    odeint, tuple_of = (
        library("scipy.integrate").odeint,
        library("builtins").tuple,
    )  # a plain tuple hides tracers from autograd
    npr = library("numpy.random").RandomState(3)
    times = np.linspace(0.0, 2.0, 6)
    matrix = np.array([[-0.1, 2.0], [-2.0, -0.1]])
    start = np.array([2.0, 0.0])
    exact = {"rtol": 1e-12, "atol": 1e-12, "mxstep": 5000}
    spiral = odeint(lambda y, t, matrix: np.dot(y**3, matrix), start, times, (matrix,), **exact)
    layers = [(0.3 * npr.randn(2, 5), 0.1 * npr.randn(5)), (0.3 * npr.randn(5, 2), 0.1 * npr.randn(2))]

    def slope(y, t, layers):
        (w, b), (v, c) = layers
        return np.dot(np.tanh(np.dot(y**3, w) + b), v) + c * np.cos(t)

    def loss(layers):
        return np.mean(np.abs(odeint(slope, start, times, tuple_of((layers,)), **exact) - spiral))

    return loss, layers


def fluid(library):
    """Smoke carried by a velocity field on a 20 x 20 torus: Jacobi iterations for the pressure, then advection by
    bilinear lookup."""
    np = library("numpy")
    npr = library("numpy.random").RandomState(4)
    n, steps, sweeps = 20, 4, 10
    rows, columns = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    smoke = np.exp(-((rows - 8.0) ** 2 + (columns - 11.0) ** 2) / 12)
    target = np.exp(-((rows - 12.0) ** 2 + (columns - 9.0) ** 2) / 20)

    def project(vx, vy):
        divergence = -0.5 * (np.roll(vx, -1, 1) - np.roll(vx, 1, 1) + np.roll(vy, -1, 0) - np.roll(vy, 1, 0)) / n
        pressure = np.zeros(divergence.shape)
        for _ in range(sweeps):
            around = (
                np.roll(pressure, 1, 0) + np.roll(pressure, -1, 0) + np.roll(pressure, 1, 1) + np.roll(pressure, -1, 1)
            )
            pressure = (divergence + around) / 4
        return vx - 0.5 * n * (np.roll(pressure, -1, 1) - np.roll(pressure, 1, 1)), vy - 0.5 * n * (
            np.roll(pressure, -1, 0) - np.roll(pressure, 1, 0)
        )

    def advect(field, vx, vy):
        y, x = (rows - vy).ravel(), (columns - vx).ravel()
        top, left = np.floor(y).astype(int), np.floor(x).astype(int)
        down, right = y - top, x - left
        corners = [field[(top + i) % n, (left + j) % n] for i in (0, 1) for j in (0, 1)]
        upper = (1 - right) * corners[0] + right * corners[1]
        lower = (1 - right) * corners[2] + right * corners[3]
        return np.reshape((1 - down) * upper + down * lower, (n, n))

    def loss(velocity):
        vx, vy = np.reshape(velocity, (2, n, n))
        now = smoke
        for _ in range(steps):
            vx, vy = advect(vx, vx, vy), advect(vy, vx, vy)
            vx, vy = project(vx, vy)
            now = advect(now, vx, vy)
        return np.mean((now - target) ** 2)

    return loss, 0.4 * npr.randn(2 * n * n)


PROGRAMS = (character_network, gaussian_mixture, gaussian_process, neural_ode, fluid)


# ---------------------------------------------------------------------------------------------------------------- tests
def assert_close(given, expected, tolerance):
    """Leaf by leaf, relative to the largest element of all."""
    given, expected = leaves_of(given), leaves_of(expected)
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
        pb.testing.check_grads(loss, (parameters,), order=1, modes=("rev",))


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


def test_adopted_code_that_imports_autograd_finds_all_names_here(tmp_path):
    (tmp_path / "by_autograd.py").write_text(
        "import autograd as ag\nimport autograd.numpy as npa\n\n"
        "@ag.primitive\ndef cube(x):\n    return x**3\n\n"
        "ag.extend.defvjp(cube, lambda out, x: lambda g: 3 * g * x**2)\n\n"
        "def f(x):\n    return npa.sum(npa.hstack((cube(x), npa.array([x[0], 1.0])))) + npa.vstack([x, x])[1, 0]\n"
    )
    gradient = pb.grad(pb.adopt(tmp_path / "by_autograd.py").f)(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(gradient, [5.0, 12.0])
