"""Derivatives of staged functions within other derivatives: the same bits as those of the function as it is."""

import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.testing.comparing.bits import same_bits

X, Y = np.array([0.3, -0.7, 1.1, 0.2]), np.array([1.3, 0.7, -0.1, 0.9])
T = np.array([1.0, -0.5, 0.25, 2.0])


pytestmark = pytest.mark.usefixtures("nothing_is_known")


def twice(f, x, t):
    return pb.grad(lambda x: np.dot(pb.grad(f)(x), t))(x)


def with_its_value(f, x, t):
    def outer(x):
        out, gradient = pb.value_and_grad(f)(x * 2.0)
        return out * np.sum(gradient * t) + np.sum(gradient)

    return pb.value_and_grad(outer)(x)


def used_around(f, x, t):
    """Cotangents of x come from before, from within and from after."""

    def outer(x):
        before = np.sum(np.sin(x) * t)
        slope = pb.grad(f)(x)
        return before * np.dot(slope, x) + np.sum(np.cos(x) * x) * pb.value_and_grad(f)(x)[0]

    return pb.value_and_grad(outer)(x)


def tangent_of_much(f, x, t):
    def outer(x):
        return np.sum(np.exp(x * 0.1)) * f(x) + f(np.sin(x)) * 2.0

    return pb.jvp(outer, (x,), (t,))


DERIVATIVES = {
    "tangent": lambda f, x, t: pb.jvp(f, (x,), (t,)),
    "tangent of much": tangent_of_much,
    "product": lambda f, x, t: pb.hvp(f, (x,), (t,)),
    "tangent of value and gradient": lambda f, x, t: pb.jvp(pb.value_and_grad(f), (x,), (t,)),
    "hessian": lambda f, x, t: pb.hessian(f)(x),
    "columns": lambda f, x, t: pb.jacobian(f, mode="forward")(x),
    "twice": twice,
    "with its value": with_its_value,
    "used around": used_around,
    "linearize": lambda f, x, t: pb.linearize(f, x)[1](t),
    "gradient of a tangent": lambda f, x, t: pb.grad(lambda x: pb.jvp(f, (x,), (t,))[1])(x),
    "thrice": lambda f, x, t: pb.grad(lambda x: np.dot(twice(f, x, t), t))(x),
}


def polynomial(x):
    return 0.5 * np.dot(x, x) + x[0] * x[1] * x[2] - x[3] ** 2 * x[0] / 3.0


def elementwise(x):
    return np.sum(np.sin(x) * np.exp(-x * x) / (1.0 + x**2) + np.sqrt(x * x + 1.0))


def matrices(x):
    m = x.reshape(2, 2)
    return np.sum(np.tanh(m @ m.T) * m[::-1]) + np.mean(m, axis=0) @ m[1]


def masked(x):
    return np.sum(np.where(np.array([True, False, True, True]), x, x * x)) + np.sum(x[[0, 0, 2]] ** 3)


def writing(x):
    out = np.zeros_like(x)
    out[1:] = x[:-1] * x[1:]
    out[0] += x[3] * x[0]
    y = x * 2.0
    y *= x
    return np.sum(out * y)


def copied_from(x):
    y = np.concatenate([x, x[:2] * x[2:]])
    return np.sum(np.stack([y, y * y])) * np.max(x)


def branching(x):
    return np.sum(x * x * x) if float(pb.value(x)[0]) > 0.5 else np.sum(np.sin(x) * x)


def comparing(x):
    return np.sum(x * x) if x[0] > 0.5 else np.sum(np.cos(x) * x)


def bounded(x):
    return np.sum(np.maximum(x, 0.0) ** 2 + np.abs(x) * x + np.clip(x, -0.5, 0.5) * x)


def linear(x):
    return np.sum(2.0 * x)


def looping(x):
    return np.sum(pb.fori_loop(0, 3, lambda k, u: np.sin(u) * u, x))


def checkpointing(x):
    return np.sum(pb.checkpoint(lambda u: np.sin(u) * u)(x) * x)


def checkpointing_under_a_policy(x):
    return np.sum(pb.checkpoint(lambda u: np.sin(u) * u, pb.Binomial(2))(x) * x)


def nested(x):
    return np.sum(pb.grad(polynomial)(x) ** 2)


def smooth(x):
    return np.sum(np.sin(x) * np.exp(x) * (1.0 + x * x)) * np.cos(x[1])


def constant(x):
    return np.float64(3.0)


PROGRAMS = (
    polynomial, elementwise, matrices, masked, writing, copied_from, branching, comparing, bounded, linear, looping,
    nested, constant, smooth, checkpointing, checkpointing_under_a_policy,
)  # fmt: skip


def asked(derivative, f, *args):
    try:
        return derivative(f, *args)
    except Exception as error:  # noqa: BLE001 - the same kind has to come
        return type(error), str(error).partition(" (at")[0].partition("call")[0]


def require_same(derivative, f, *calls):
    """The derivative is the same with ``f`` staged and as it is; asked thrice, since stages are there by then."""
    staged = pb.staged(f)
    for args in calls:
        wanted = asked(derivative, f, *args)
        for _ in range(4):
            found = asked(derivative, staged, *args)
            assert (
                found == wanted
                if isinstance(wanted, tuple) and isinstance(wanted[0], type)
                else same_bits(found, wanted)
            )
    return staged.__pullback_staged__


@pytest.mark.share(6, of=lambda f, derivative: f)
@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("f", PROGRAMS)
def test_the_bits_are_those_without_the_decorator(f, derivative):
    require_same(DERIVATIVES[derivative], f, (X, T), (Y, T), (X, X[::-1]), (X[::-1], T))


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_other_dtypes(dtype, derivative):
    require_same(DERIVATIVES[derivative], polynomial, (X.astype(dtype), T.astype(dtype)), (X, T))


@pytest.mark.parametrize("derivative", ["tangent", "product", "twice"])
@pytest.mark.parametrize("f", [polynomial, smooth, elementwise, matrices])
def test_they_are_staged(f, derivative):
    known = require_same(DERIVATIVES[derivative], f, (X, T), (Y, T))
    assert all(len(found.known) == 1 and not found.n_failed for found in known.derivatives.values())
    assert [len(made) for found in known.derivatives.values() for made in found.made.values()] == [1]


def test_it_says_what_is_staged_and_why_not():
    f, g = pb.staged(polynomial), pb.staged(branching)
    for _ in range(3):
        twice(f, X, T)
        pb.hvp(f, (X,), (T,))
        twice(g, X, T)
    assert len(pb.explain_stage(f).stages) == 2
    g = pb.staged(bounded)
    for _ in range(3):
        twice(g, X, T)
    assert pb.explain_stage(g).why == ("a derivative within another cannot be, since a value is asked for",)


def test_numbers():
    def f(x, y):
        return x * x * y + np.sin(x) / y

    for x in (1.5, np.float64(1.5), np.float32(1.5)):
        require_same(lambda f, x: pb.jvp(f, (x, x + 1), (x, x)), f, (x,))
        require_same(lambda f, x: pb.grad(lambda x: pb.grad(f)(x, 2.0))(x), f, (x,))
        require_same(lambda f, x: pb.hvp(f, (x, x + 1), (x, x)), f, (x,))


def test_several_arguments_and_plain_ones():
    def f(x, n, y, c):
        return np.sum(np.sin(x) * y * c) * n + np.dot(x, y * y)

    def products(f, x, y, n, c):
        first = pb.hvp(lambda x, y: f(x, n, y, c), (x, y), (T, T))
        return first, pb.jvp(pb.value_and_grad(f, (2, 0)), (x, n, y, c), (T, None, T, None))

    def again(f, x, y, n, c):
        return pb.grad(lambda x, y: np.sum(pb.grad(f, 2)(x, n, y, c) * x), (0, 1))(x, y)

    for derivative in products, again:
        require_same(derivative, f, (X, Y, 2.0, T), (Y, X, 2.0, T), (X, Y, 3.0, X), (X, Y, 2.0, T), (X, X, 2, T))


def test_plain_operands_that_differ_in_each_call_are_right_all_the_same():
    """There is a stage for each content, up to some."""
    scale = [0.0]

    def f(x):
        return np.sum(np.sin(x * scale[0]) * x) + 1.0 / scale[0]

    def scaled(f, x, k):
        scale[0] = k
        return twice(f, x, T), pb.jvp(f, (x,), (T,))

    require_same(scaled, f, *((X, k) for k in (1.0, 2.0, 1.0, 2.5, 3.0, 4.0, 5.0, 6.0, 1.0)))


def test_a_buffer_that_is_written_again():
    buffer = np.zeros(4)

    def f(x, k):
        buffer[:] = k
        y = np.sin(x * buffer)
        buffer[:] = 0.5
        return np.sum(y * buffer * x)

    require_same(lambda f, x, k: (pb.hvp(lambda x: f(x, k), (x,), (T,)), twice(lambda x: f(x, k), x, T)), f,
                 (X, 1.0), (Y, 1.0), (Y, 2.0))  # fmt: skip


def test_captured_values():
    def derivative(decorate, x, t):
        def outer(x):
            w = np.cos(x)
            f = decorate(lambda u: np.sum(u * w * u))
            return np.sum(pb.grad(f)(x) * t) + f(x)

        return pb.grad(outer)(x), pb.jvp(outer, (x,), (t,))

    for _ in range(3):
        assert same_bits(derivative(pb.staged, X, T), derivative(lambda f: f, X, T))


def test_it_runs_once_for_each_call():
    calls = []
    drawn = np.random.default_rng(0)

    @pb.staged
    def f(x):
        calls.append(None)
        return np.sum(np.sin(x) * drawn.standard_normal(4))

    for k in range(6):
        twice(f, X, T)
        pb.jvp(f, (X,), (T,))
        pb.hvp(f, (X,), (T,))
        assert len(calls) == 3 * (k + 1)


def test_under_policies_and_in_loops():
    def within(f, x, t):
        return np.sum(pb.fori_loop(0, 6, lambda k, u: u - 0.01 * pb.grad(f)(u), x) * t)

    for policy in (pb.SaveAll(), pb.Binomial(2)):
        require_same(lambda f, x, t, policy=policy: pb.value_and_grad(within, 1, policy=policy)(f, x, t), polynomial,
                     (X, T), (Y, T))  # fmt: skip
        require_same(lambda f, x, t, policy=policy: pb.hvp(f, (x,), (t,), policy=policy), elementwise, (X, T), (Y, T))


def test_an_error_leaves_nothing():
    fails = [False]

    @pb.staged
    def f(x):
        y = np.sin(x)
        if fails[0]:
            raise KeyError("mine")
        return np.sum(y * x)

    wanted = twice(f, X, T), pb.jvp(f, (X,), (T,)), pb.hvp(f, (X,), (T,))
    for k in range(6):
        fails[0] = k % 2 == 1
        for derivative, right in zip((twice, *map(DERIVATIVES.get, ("tangent", "product"))), wanted, strict=True):
            if fails[0]:
                with pytest.raises(KeyError):
                    derivative(f, X, T)
            else:
                assert same_bits(derivative(f, X, T), right)


def test_a_handle_that_leaks_is_refused():
    kept = []

    @pb.staged
    def f(x):
        kept.append(np.sin(x))
        return np.sum(x * x)

    for derivative in (twice, DERIVATIVES["tangent"], lambda f, x, t: pb.grad(f)(x)):
        for _ in range(4):
            derivative(f, X, T)
        with pytest.raises(pb.TracerError):
            kept[-1] * 2.0


def test_the_handles_of_a_call_serve_the_next():
    """And results stay what they are."""
    f = pb.staged(elementwise)
    found = [(pb.grad(f)(x), pb.jvp(f, (x,), (T,)), pb.hvp(f, (x,), (T,))) for x in (X, Y, X, Y, X, Y)]
    assert same_bits(found[0], found[2])
    assert same_bits(found[1], found[5])


def test_warnings_come_as_without_the_decorator():
    def f(x):
        return np.sum(np.log(x) * x) + np.sum(x * 1e200 * x)

    for derivative in ("tangent", "product", "twice"):
        told = []
        for g in (f, staged := pb.staged(f)):
            for x in (Y + 2.0, Y + 2.0, Y + 2.0, np.array([1e200, 1.0, 2.0, 0.0])):
                with warnings.catch_warnings(record=True) as found:
                    warnings.simplefilter("always")
                    DERIVATIVES[derivative](g, x, T)
            told.append(sorted({str(one.message).removeprefix("scalar ") for one in found}))
        assert told[0] == told[1]
        assert staged.__pullback_staged__.derivatives


def test_slopes_that_are_singular():
    """What met one is decided by the values of each call; the bits of a NaN are the same, too."""

    def f(x):
        return np.sum(np.sqrt(x * x) * x / (x + 0.5)) + np.sum(np.tanh(x) / x[1] ** 1.5)

    def g(x):
        return np.sqrt(x[0] * x[0]) * np.log(x[1]) / x[2]

    at = Y, np.abs(X), X, np.zeros(4), np.array([0.0, 1.0, -0.5, 0.0]), np.array([np.inf, 1.0, 0.5, 0.0]), Y
    with np.errstate(all="ignore"):
        for one in f, g:
            for name in ("tangent", "product", "twice"):
                calls = [(x, t) for x in at for t in (T, T * [0.0, 1.0, 0.0, 1.0])]
                known = require_same(DERIVATIVES[name], one, *calls)
                assert one is f or not any(found.n_failed for found in known.derivatives.values())


def test_an_argument_that_is_changed_meanwhile():
    x = X.copy()

    @pb.staged
    def f(u):
        y = np.sin(u)
        x[0] += change
        return np.sum(y * u)

    for derivative in (DERIVATIVES["tangent"], DERIVATIVES["product"], twice):
        change = 0.0
        for _ in range(4):
            derivative(f, x, T)
        change = 1.0
        with pytest.raises(pb.ConstantChangedError):
            derivative(f, x, T)


def of_two(x, y):
    return np.sum(np.sin(x) * y) + np.dot(x * y, np.exp(0.1 * y))


ONE_OF_TWO = {
    "first": lambda f, x, t: pb.grad(lambda x, y: np.dot(pb.grad(f)(x, y), y * t), (0, 1))(x, x + 1),
    "second": lambda f, x, t: pb.grad(lambda x, y: np.dot(pb.grad(f, 1)(x, y), x), (0, 1))(x, t),
    "with its value": lambda f, x, t: pb.grad(lambda x, y: np.sum(pb.value_and_grad(f, 1)(x, y)[1] * x), (0, 1))(x, t),
    "pushed": lambda f, x, t: pb.jvp(pb.grad(f, 1), (x, t), (t, x)),
    "pushed with its value": lambda f, x, t: pb.jvp(pb.value_and_grad(f), (x, t), (t, x)),
    "the same twice": lambda f, x, t: pb.grad(lambda x: np.dot(pb.grad(f)(x, x), t))(x),
    "and of that": lambda f, x, t: pb.hvp(lambda x, y: np.dot(pb.grad(f, 1)(x, y), x), (x, t), (t, x)),
    "turned": lambda f, x, t: pb.grad(lambda x, y: np.dot(pb.grad(f, (1, 0))(x, y)[0], x), (0, 1))(x, t),
}


@pytest.mark.parametrize("derivative", ONE_OF_TWO)
def test_a_gradient_by_some_of_the_traced_arguments(derivative):
    known = require_same(ONE_OF_TWO[derivative], of_two, (X, T), (Y, T), (X[::-1], T))
    if derivative not in ("the same twice", "and of that"):  # one value for two arguments, and a trace around both
        assert {bool(found.known and not found.n_failed) for found in known.derivatives.values()} == {True}
