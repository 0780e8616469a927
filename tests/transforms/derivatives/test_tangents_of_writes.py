"""Forward mode, alone and over reverse, of programs that write: as grad and differences, the same bits under every
policy."""

import numpy as np
import pytest

import pullback as pb
from pullback.testing.comparing.bits import same_bits
from pullback.testing.comparing.differences import inner, random_like, richardson

RNG = np.random.default_rng(11)
GRID = RNG.uniform(0.5, 1.5, (2, 3))
LINE = RNG.uniform(0.5, 1.5, 4)
ZERO_D = np.array(0.8)
SLOPES = np.arange(1.0, 7.0).reshape(2, 3)


def a_copy_that_is_no_view(x):
    x.reshape(-1)[::2] *= -1.5  # of an array that is laid out backwards, reshape makes a copy
    return x * x * SLOPES


def a_buffer_of_zeros(x):
    made = np.zeros_like(x)
    made[1:] = x[:-1]
    made[:1] += x[1:2] * 2
    return made * made * x


def a_buffer_full_of_a_number(x):
    made = np.full_like(x, 3)
    made[0] *= x[0]
    return made * x


def a_buffer_full_of_x(x):
    made = np.full_like(x, x.sum())
    return made * x


def views_of_views(x):
    part = x[1:][::-1]
    x[1:3] *= x[:2]
    part[...] = part * part
    return part.sum() * x


def a_view_read_before_and_after(x):
    part = x[1:]
    before = part * part
    x *= x[0]
    return before * part


def sorted_in_place(x):
    x.sort()
    np.maximum(x, 1.0, out=x)
    return x * x * x


def an_increment(x):
    x += x * x
    x *= 0.5
    return x * x


def an_assignment(x):
    y = x * x
    x[...] = y
    x[x > 0] *= 2
    return x * x


def at_an_element_of_0d(x):
    np.multiply.at(x, Ellipsis, 0.75)
    made = np.ones(3, like=x)
    made[True] = x
    return made * x


def an_element_and_the_number_itself(x):
    return np.sin(x[x > 0.1]) * x * x


PROGRAMS = (
    *((f, GRID) for f in (a_buffer_of_zeros, a_copy_that_is_no_view)),
    (a_copy_that_is_no_view, np.ascontiguousarray(GRID[::-1])[::-1]),
    *(
        (f, LINE)
        for f in (
            a_buffer_of_zeros,
            a_buffer_full_of_a_number,
            a_buffer_full_of_x,
            views_of_views,
            a_view_read_before_and_after,
        )
    ),
    *((f, LINE) for f in (sorted_in_place, an_increment, an_assignment)),
    *((f, ZERO_D) for f in (an_increment, an_assignment, at_an_element_of_0d, an_element_and_the_number_itself)),
)
NAMES = [f"{f.__name__} {x.ndim}-d {x.strides}" for f, x in PROGRAMS]


def twice(f, x):
    """The program in two marked steps, so that a policy has something to run again."""
    loss = 0.0
    for _ in pb.steps(2):
        made = f(x)
        loss = loss + np.sum(made * made)
        x = np.copy(np.sin(made)) if made.shape == x.shape else x
    return loss


@pytest.fixture(params=PROGRAMS, ids=NAMES)
def program(request):
    f, x = request.param
    return lambda x: twice(f, x), lambda: x.copy() if x.flags.c_contiguous else x[::-1].copy()[::-1]


def test_jvp_is_the_gradient_along_the_tangent(program):
    f, x = program
    along = random_like(RNG, x())
    value, slope = pb.jvp(f, [x()], [along])
    assert same_bits(value, f(x()))
    assert slope == pytest.approx(inner(pb.grad(f)(x()), along), rel=1e-12)


def test_hvp_is_the_difference_of_gradients(program):
    f, x = program
    along = random_like(RNG, x())
    product = pb.hvp(f, [x()], [along])

    def gradient(t):
        moved = x()
        moved += t * along  # laid out as x is
        return np.ravel(pb.grad(f)(moved))

    expected = richardson(gradient)
    np.testing.assert_allclose(np.ravel(product), expected.value, rtol=1e-7, atol=1e-8)
    for policy in (pb.Recompute(), pb.Binomial(1)):
        assert same_bits(pb.hvp(f, [x()], [along], policy=policy), product)


def test_a_real_base_and_a_complex_exponent():
    exponents = np.array([0.3 + 0.4j, 0.5 - 0.2j])

    def f(x):
        return np.sum((np.power(x * x + 1, exponents) * np.float_power(x + 2, exponents)).real)

    x = 0.3
    assert pb.jvp(f, [x], [1.0])[1] == pytest.approx(pb.grad(f)(x), rel=1e-14)
    assert pb.hvp(f, [x], [1.0]) == pytest.approx(pb.grad(pb.grad(f))(x), rel=1e-13)
    assert pb.grad(f)(x) == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-8)


VIEWS = {
    "ravel": lambda u: u.ravel("F"),
    "reshape of the transpose": lambda u: u.T.reshape(-1),
    "transpose": lambda u: u.T,
    "reshape": lambda u: u.reshape(-1),
    "a reversed line": lambda u: u.ravel("F")[::-1],
    "reshape of the reversed": lambda u: u[::-1].reshape(-1),
    "reshape of the reversed transpose": lambda u: u[::-1].T.reshape(-1),
}
LAYOUTS = {
    "C": np.copy,
    "F": lambda a: np.array(a, order="F"),
    "reversed": lambda a: a[::-1].copy()[::-1],
    "rows reversed": lambda a: a[:, ::-1].copy()[:, ::-1],
    "F reversed": lambda a: np.array(a[::-1], order="F")[::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_write_through_a_view_that_is_one_in_this_layout_alone(view, layout):
    """The cotangents and tangents that are written, of every order, lie in memory as the array does."""

    def f(u):
        v = view(u)
        v *= 0.5
        v[1:] = v[1:] ** 2
        return np.sum(np.sin(u) * np.arange(6.0).reshape(3, 2))

    x, t = np.random.default_rng(0).normal(size=(2, 3, 2))
    gradient, h = pb.grad(f), 1e-5

    def differences(f):
        return (f(layout(x + h * t)) - f(layout(x - h * t))) / (2 * h)

    assert np.sum(gradient(layout(x)) * t) == pytest.approx(differences(f), rel=1e-6)
    assert pb.jvp(f, (layout(x),), (t,))[1] == pytest.approx(differences(f), rel=1e-6)
    expected = differences(gradient)
    product = pb.hvp(f, (layout(x),), (t,))
    np.testing.assert_allclose(product, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(gradient(x) * t))(layout(x)), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(pb.grad(lambda x: pb.jvp(f, (x,), (t,))[1])(layout(x)), expected, rtol=1e-6, atol=1e-8)
    for policy in (pb.Recompute(), pb.Binomial(1)):
        assert same_bits(pb.hvp(f, (layout(x),), (t,), policy=policy), product)


def test_the_tangent_of_a_written_array_is_laid_out_as_its_value_where_a_gradient_looks_on():
    """A real tangent times a complex array of Fortran's order gives a tangent of C's order."""

    def f(x, w):
        u = w * x
        u.reshape(-1, order="F")[1:] *= 0.5
        return np.sum((w * u * u).real * np.arange(9.0).reshape(3, 3))

    rng = np.random.default_rng(0)
    x = np.array(rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)), order="F")
    along = (rng.normal(size=(3, 3)).astype(complex), 0.3)
    found = pb.grad(lambda *xs: pb.jvp(f, xs, along)[1], (0, 1))(x, 0.7)
    for ours, right in zip(found, pb.hvp(f, (x, 0.7), along), strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-12)


@pytest.mark.parametrize("x", [np.array(0.3), np.array([0.3, -0.7])], ids=["0-d", "1-d"])
def test_one_of_several_outputs_has_a_tangent_of_its_own(x):
    """The fraction of ``modf`` has the tangent of its operand, which a write to that must not reach."""

    def f(x, w):
        fraction = np.modf(x)[0]
        x += fraction
        return np.sum(w * fraction * fraction + x * x)

    along = (np.cos(np.ones_like(x)), 0.3)
    found = pb.grad(lambda *xs: pb.jvp(f, xs, along)[1], (0, 1))(x, 0.5)
    for ours, right in zip(found, pb.hvp(f, (x, 0.5), along), strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-12)


def test_an_operator_in_place_gives_a_step_run_again_the_bits_of_a_recorded_one():
    """The tangent lies in memory as the value, whether the step is run on the forward trace alone or recorded around
    it."""
    rng = np.random.default_rng(1)

    def f(x):
        def body(_, u):
            u /= np.sqrt(1 + np.sum(np.abs(u) ** 2))
            return u

        return np.sum(np.real(pb.fori_loop(0, 3, body, x) * np.arange(60.0).reshape(3, 4, 5)))

    for _ in range(5):
        x, along = rng.normal(size=(2, 3, 4, 5)) + 1j * rng.normal(size=(2, 3, 4, 5))
        x = np.array(x, order="F")
        assert same_bits(pb.hvp(f, (x,), (along,), policy=pb.Binomial(1)), pb.hvp(f, (x,), (along,)))
