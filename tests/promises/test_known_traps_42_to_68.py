"""One test for each trap that other systems fall into, by its number, part 2: differences, special values, tracing
itself (42 to 68)."""

import asyncio
import copy
import threading

import numpy as np
import pytest
from tests.promises.test_known_traps_1_to_41 import same

import pullback as pb
from pullback.testing import check_grads
from pullback.words.errors import ConstantChangedError, PullbackError, RuleError

X = np.array([0.3, -0.7, 1.1])
INF, NAN = np.inf, np.nan
POLICIES = [pb.Recompute(), pb.Binomial(1), pb.Binomial(3)]


def slope(f, *xs):
    """The gradient of the sum of ``f``: an array, or a tuple of them where there are several arguments."""
    xs = tuple(np.asarray(x, float) if not hasattr(x, "dtype") else x for x in xs)
    with np.errstate(all="ignore"):
        found = pb.grad(lambda *a: np.sum(f(*a)), tuple(range(len(xs))))(*xs)
    return found[0] if len(xs) == 1 else found


def test_row_42_differences_of_samples():
    same(slope(np.gradient, [1.0, 4.0]), [-2, 2])
    same(slope(np.gradient, [1.0, 4.0, 2.0]), [-1.5, 0, 1.5])
    for call in (
        lambda f: np.gradient(f, 0.5, edge_order=2),
        lambda f: np.gradient(f, np.array([0.0, 0.4, 1.5, 1.7])),
        lambda f: np.diff(f, prepend=f[0] ** 2, append=2.0),
    ):
        check_grads(call, (np.array([1.0, 4.0, 2.0, -1.0]),), order=2)
    same(slope(lambda x: np.diff(x, 4), X), np.zeros(3))
    same(slope(lambda dx: np.trapezoid(X, dx=dx), 0.5), np.trapezoid(X))
    same(slope(lambda x: np.trapezoid([1.0, 3.0, 2.0], x), [0.0, 1.0, 4.0]), [-2, -0.5, 2.5])


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("f", [np.convolve, np.correlate])
def test_row_43_convolution_of_both_lengths(f, mode):
    long = np.linspace(-1, 2, 7)
    for a, b in ((long, X), (X, long), (X, X)):
        check_grads(lambda a, b: f(a, b, mode), (a, b), order=2)
        assert np.array_equal(pb.vjp(lambda a, b: f(a, b, mode), a, b)[0], f(a, b, mode))


def test_row_52_the_origin_and_numbers_far_away():
    for f in (np.hypot, np.arctan2):
        assert slope(f, 0.0, 0.0) == (0, 0)
    same(slope(np.hypot, 1e200, 1e200), [np.sqrt(0.5)] * 2)
    same(slope(np.arctan2, 1e200, 1e200), [5e-201, -5e-201])
    same(slope(np.hypot, 1e160, 0.0), [1, 0])
    same(slope(np.hypot, 1e-310, 1e-310), [np.sqrt(0.5)] * 2, rtol=1e-12)


def test_row_53_saturation():
    assert slope(np.logaddexp, -INF, -INF) == (0.5, 0.5)
    assert slope(np.logaddexp, INF, 0.0) == (1, 0)
    assert slope(np.logaddexp, 1e4, -1e4) == (1, 0)
    assert slope(lambda x: np.log1p(np.expm1(x)), 1e-20) == 1
    same(slope(np.tanh, [800.0, -800.0]), [0, 0])
    same(slope(np.logaddexp.reduce, X + 1000), np.exp(X) / np.exp(X).sum(), rtol=1e-12)


def test_row_54_special_functions_at_special_points():
    for f in (np.sinc, np.i0, np.angle):
        assert slope(f, 0.0) == 0
    assert slope(np.arccos, 1.0) == slope(np.arccos, -1.0) == -INF
    assert slope(np.arctanh, 1.0) == INF


@pytest.mark.parametrize("f", [np.mod, np.remainder, np.fmod, lambda x, y: np.divmod(x, y)[1]])
def test_row_55_remainders(f):
    cut = np.trunc if f is np.fmod else np.floor
    x, y = np.array([5.3, -5.3, 5.3, -5.3, 6.0]), np.array([2.0, 2.0, -2.0, -2.0, 3.0])
    gx, gy = slope(f, x, y)
    same(gx, np.ones(5))
    same(gy, -cut(x / y))
    assert isinstance(pb.vjp(np.floor_divide, x, y)[0], np.ndarray)
    gx, gy = slope(lambda x, y: x * np.floor_divide(x, y), x, y)
    same(gx, x // y)
    same(gy, np.zeros(5))


def test_row_56_numbers_taken_apart():
    same(slope(np.nan_to_num, [1.0, NAN, INF]), [1, 0, 0])
    gx, gy = slope(np.heaviside, [-1.0, 0.0, 2.0], [0.5, 0.5, 0.5])
    same((gx, gy), ([0, 0, 0], [0, 1, 0]))
    gx, gy = slope(np.copysign, [-2.0, 3.0], [1.0, -1.0])
    same((gx, gy), ([-1, -1], [0, 0]))
    assert slope(lambda x: np.ldexp(x, 3), 1.5) == 8
    assert slope(lambda x: np.modf(x)[0], 1.5) == 1
    assert slope(lambda x: np.frexp(x)[0], 5.0) == 2.0**-3


class Marked(np.ndarray):
    """A subclass without an arithmetic of its own."""


def test_row_57_arrays_that_are_not_plain():
    matrix, masked, structured = (
        np.ones((2, 2)).view(np.matrix),
        np.ma.masked_array(X, X > 0),
        np.zeros(2, dtype=[("a", float)]),
    )
    for x, words in [
        (np.array([1.0, 2.0], dtype=object), "argument 0.*dtype object"),
        (matrix, "argument 0: matrix has an arithmetic of its own"),
        (masked, "argument 0: MaskedArray has an arithmetic of its own"),
        (structured, "argument 0.*has dtype .*carries no derivative"),
    ]:
        with pytest.raises(TypeError, match=words):
            pb.grad(np.sum)(x)
    same(np.asarray(slope(np.sin, X.view(Marked))), np.cos(X))
    for dtype in (np.float16, np.longdouble):
        assert slope(np.sin, X.astype(dtype)).dtype == dtype


def test_row_58_tracers_by_keyword():
    c = np.array([True, False, True])
    same(slope(lambda y: np.clip(X, a_min=y, a_max=9.0), 0.0), slope(lambda y: np.clip(X, y, 9.0), 0.0))
    same(slope(lambda x: np.interp(x=0.5, xp=[0.0, 1.0], fp=x), X[:2]), [0.5, 0.5])
    same(slope(lambda w: np.average(X, weights=w), np.ones(3)), (X - X.mean()) / 3)
    with pytest.raises(TypeError, match="keyword"):
        np.where(c, x=X, y=X)  # NumPy itself takes them by position
    same(slope(lambda x: np.where(c, x, 0.0), X), [1, 0, 1])


def test_row_59_fan_out_and_long_chains():
    assert slope(lambda x: x * x + x, 3.0) == 7
    same(slope(lambda x: np.multiply(x, x), X), 2 * X)

    def chain(x):
        for _ in range(100_000):
            x = x + 0.0
        return x

    assert slope(chain, 2.0) == 1
    assert slope(lambda x: sum(x for _ in range(10_000)), 2.0) == 10_000


def test_row_60_outputs_that_do_not_depend():
    for x in (X, np.float32(2), np.zeros((0, 2)), X + 1j):
        gradient = pb.grad(lambda x: 3.0)(x)
        assert (np.shape(gradient), np.asarray(gradient).dtype, np.any(gradient)) == (
            np.shape(x),
            np.asarray(x).dtype,
            False,
        )
    gx, gy = slope(lambda x, y: x, X, X)
    same((gx, gy), (np.ones(3), np.zeros(3)))


def test_row_61_nested_gradients():
    assert pb.grad(lambda x: x * pb.grad(lambda y: x + y)(1.0))(1.0) == 1.0
    columns = [pb.grad(lambda x, k=k: pb.grad(lambda x: np.sqrt(np.sum(x * x)))(x)[k])(X) for k in range(3)]
    size = np.sqrt(X @ X)
    same(columns, np.eye(3) / size - np.outer(X, X) / size**3, rtol=1e-13)


def test_row_62_threads_tasks_generators_and_exceptions():
    def nested(x):
        return pb.grad(lambda x: np.sum(pb.grad(lambda y: np.sum(y**3))(x) * x))(x)

    found = {}
    threads = [threading.Thread(target=lambda k=k: found.update({k: nested(X * k)})) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        same(found[k], 9 * (X * k) ** 2, rtol=1e-13)

    async def task(k):
        await asyncio.sleep(0)
        return nested(X * k)

    async def all_tasks():
        return await asyncio.gather(*(task(k) for k in range(4)))

    for k, gradient in enumerate(asyncio.run(all_tasks())):
        same(gradient, 9 * (X * k) ** 2, rtol=1e-13)

    def suspended(x):
        yield x * 2
        yield x * 3

    def outer(x):
        parts = suspended(x)
        first = next(parts)
        same(nested(X), 9 * X**2, rtol=1e-13)
        return np.sum(first * next(parts))

    same(pb.grad(outer)(X), 12 * X)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            pb.grad(lambda x: np.sum(x) + 1 // 0)(X)
    same(nested(X), 9 * X**2, rtol=1e-13)


BAD = {
    "shape": lambda ct, x: np.ones(5),
    "dtype": lambda ct, x: "text",
    "count": lambda ct, x: (ct, ct),
    "nothing": lambda ct, x: None,
}


@pytest.mark.parametrize("name", BAD)
def test_row_63_a_bad_rule_is_named(name):
    scaled = pb.primitive(lambda x: x * 2, name="scaled", operands=("x",))
    scaled.vjp("x", fn=BAD[name])
    with pytest.raises(RuleError, match=r"scaled.*'x'|'x'.*scaled"):
        pb.grad(lambda x: np.sum(scaled(x)))(X)


def test_row_64_what_a_tracer_answers():
    def f(x):
        assert not isinstance(x, np.ndarray)  # documented: a handle, no subclass
        y = copy.copy(x).copy()
        y[0] = 0.0  # a copy: x is untouched
        assert f"{x[2]:.2f}" == "1.10"
        assert x.real is x or np.shape(x.real) == (3,)
        return np.sum(x.real * +x.T) + x.item(0) + round(x[2]) * x[1] + np.sum(y) + (x // 2).sum() * 0.0

    same(slope(f, X), 2 * X + [1, 1, 0] + [0, 1, 1])
    for road in (lambda x: x.tolist(), float, lambda x: int(x[0])):
        with pytest.raises(PullbackError, match="would drop the derivative"):
            pb.grad(lambda x, road=road: np.sum(x) + np.sum(road(x[:1])))(X)


def test_row_65_what_is_returned_is_the_callers_own():
    x, seed = X.copy(), np.ones(3)
    _, pull = pb.vjp(lambda a, b: a + b, x, x)
    ga, gb = pull(seed)
    assert not any(np.shares_memory(one, other) for one, other in ((ga, gb), (ga, seed), (gb, seed), (ga, x)))
    ga[:] = 7
    same(seed, np.ones(3))
    same(pull(seed)[1], np.ones(3))
    out, pull = pb.vjp(lambda x: x, x)
    assert not np.shares_memory(out, x)
    assert not np.shares_memory(pull(seed)[0], seed)


def test_row_66_arrays_changed_between_forward_and_reverse():
    constant, x = X + 2, X.copy()
    _, pull = pb.vjp(lambda x: np.exp(x) * constant, x)
    constant[:] = 100  # a copy is kept
    same(pull(np.ones(3))[0], np.exp(X) * (X + 2))
    _, pull = pb.vjp(lambda x: x * x, x)
    x[:] = 100
    with pytest.raises(ConstantChangedError, match=r"argument 0.*was changed between the forward pass"):
        pull(np.ones(3))


def test_row_67_sets_and_counts():
    x = np.array([2.0, 1.0, 2.0, 3.0])
    same(pb.vjp(np.unique, x)[1](np.array([1.0, 10, 100]))[0], [10, 1, 0, 100])
    gx, gy = slope(np.union1d, [2.0, 1.0], [2.0, 3.0])
    assert gx.sum() + gy.sum() == 3
    assert np.sum(slope(np.intersect1d, [2.0, 1.0], [2.0, 3.0])) == 1
    places, ct = np.array([0, 2, 2]), np.array([1.0, 10, 100])
    same(pb.vjp(lambda w: np.bincount(places, w), X)[1](ct)[0], [1, 100, 100])
    same(pb.vjp(lambda w: np.histogram([0.1, 0.9, 0.5], 3, (0, 1), weights=w)[0], X)[1](ct)[0], [1, 100, 10])


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_row_68_recomputation_gives_the_same_bits_and_the_same_draws(policy):
    def program(x):
        rng = np.random.default_rng(3)

        def body(k, u):
            return np.sin(u) * rng.standard_normal(3) + np.sqrt(np.abs(u))

        return np.sum(pb.fori_loop(0, 9, body, x))

    assert pb.grad(program, policy=policy)(X).tobytes() == pb.grad(program)(X).tobytes()
