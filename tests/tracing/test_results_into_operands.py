"""Results in the memory of operands that die: the same bits and strides as in new arrays, and less memory."""

import functools
import sys

import numpy as np
import pytest
from tests.programs.measured import peak_of
from tests.rules.new_arrays import same
from tests.tracing.dying_operands import LARGE, RNG, N, X, by_nobody, in_new_arrays

import pullback as pb
from pullback.tracing import results_into_operands

pytestmark = pytest.mark.usefixtures("sooner")
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-320, 1e300, -1.0])


LAYOUTS = {
    "vector": lambda v: v,
    "rows": lambda v: v.reshape(8, -1),
    "columns first": lambda v: np.asfortranarray(v.reshape(8, -1)),
    "one column": lambda v: v.reshape(-1, 1),
    "one row": lambda v: v.reshape(1, -1),
    "gaps": lambda v: np.repeat(v, 2)[::2],
    "backwards": lambda v: v[::-1],
}
OTHERS = {
    "a float": lambda x: 0.7,
    "an int": lambda x: 3,
    "a scalar": lambda x: np.float64(0.7),
    "a narrow scalar": lambda x: np.float32(0.7),
    "an array": np.cos,
    "an array in rows": lambda x: np.ascontiguousarray(np.cos(x)),
    "an array with its columns first": lambda x: np.asfortranarray(np.cos(x)),
    "an array with gaps": lambda x: np.repeat(np.cos(x), 2, axis=-1)[..., ::2],
    "an array that repeats": lambda x: np.broadcast_to(np.cos(x.ravel()[:1]), x.shape),
    "another dtype": lambda x: np.cos(x).astype(np.float32 if x.dtype == np.float64 else np.float64),
    "complex": lambda x: np.cos(x) + 1j,
    "integers": lambda x: np.arange(1, 1 + x.size).reshape(x.shape),
    "the last axis": lambda x: np.cos(x)[-1] if x.ndim > 1 else np.cos(x[-1:]),
    "the first axis": lambda x: np.cos(x)[:, :1] if x.ndim > 1 else np.cos(x[:1]),
    "one number": lambda x: np.array(0.7),
    "one axis more": lambda x: np.stack([np.cos(x), np.sin(x)]),
    "turned round": lambda x: np.cos(x)[::-1],
}


def seen(y):
    """A view of an array."""
    return y[...] if np.ndim(y) else y


@pytest.mark.share(3, of=lambda **_: "")
@pytest.mark.parametrize("traced", [False, True], ids=["constant", "traced"])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.complex128])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_operators_have_the_same_bits(monkeypatch, dtype, other, traced):
    n = 9 * N  # more than NumPy computes at once where it has to convert
    base = RNG.uniform(0.2, 0.9, n).astype(dtype)
    base[RNG.integers(n, size=40)] = np.tile(SPECIAL, 5).astype(dtype)
    for layout in LAYOUTS.values():
        x = layout(base)
        y = OTHERS[other](x.real)
        if traced and not np.issubdtype(np.asarray(y).dtype, np.inexact):
            continue
        fs = (
            lambda x, y: ((x * 2.0) + y, y + (x * 2.0)),
            lambda x, y: ((x + 0.5) - y, y - (x + 0.5)),
            lambda x, y: ((x + 0.5) * y, y * (x + 0.5)),
            lambda x, y: ((x + 0.5) / y, y / (x + 0.5)),
            lambda x, y: (-(x * 2.0), -(x * y), -(y - x)),
            lambda x, y: ((x * 2.0) - seen(y), seen(y) / (x + 0.5), seen(x) * 2.0 + seen(y) - (seen(x) - y) * 0.5),
        )
        for f in fs:

            def run(f=f, x=x, y=y):
                out, pull = pb.vjp(f, x, y) if traced else pb.vjp(lambda x: f(x, y), x)
                cts = pull(tuple(np.ones_like(one) for one in out))
                return *out, *cts

            same(run(), in_new_arrays(monkeypatch, run))


@pytest.mark.parametrize("dtype", [np.float16, np.complex64, np.complex128])
def test_other_numbers_get_new_arrays(taken, dtype):
    pb.grad(lambda x: np.sum(np.abs(x * 2.0 + 1.0)))(X.astype(dtype))
    assert not taken


UFUNCS = (
    "positive", "negative", "deg2rad", "degrees", "exp", "exp2", "sqrt", "cbrt", "reciprocal", "tan", "tanh",
)  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ufuncs_have_the_same_bits(monkeypatch, computed, name, dtype):
    scope = {"np": np}
    exec(f"def f(x):\n    return np.{name}(x * 1.25), np.{name}(x - 0.5) * x", scope)  # noqa: S102 - by its own name
    base = RNG.uniform(-2.0, 2.0, 9 * N).astype(dtype)
    base[RNG.integers(9 * N, size=40)] = np.tile(SPECIAL, 5).astype(dtype)
    for layout in LAYOUTS.values():
        x = layout(base)

        def run(x=x):
            out, pull = pb.vjp(scope["f"], x)
            return *out, *pull(tuple(np.ones_like(one) for one in out))

        same(run(), in_new_arrays(monkeypatch, run))
    assert computed.count(f"np.{name}") == 2 * (len(LAYOUTS) - 1)  # what has its columns first is not


def test_ufuncs_that_save_their_operand_get_new_arrays(computed):
    pb.grad(lambda x: np.sum(np.sin(x * 2.0) + np.log(x * 2.0) + np.square(x * 3.0)))(X)
    assert not computed


def test_an_expression_is_one_array(taken):
    f = lambda x, a, b: np.sum(a * x + b - 2.0 * x * 0.5 + (3.0 - x / 2.0))  # noqa: E731
    pb.grad(f)(X, 0.7, 0.3)
    assert taken == ["+", "*", "-", "-", "+"]
    del taken[:]
    pb.grad(f, (0, 1, 2))(X, 0.7 * X, 0.3 * X)
    assert taken == ["+", "*", "-", "-", "+"]


def test_operators_with_views_are_one_array(taken):
    def f(u):
        sides = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] - (u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])
        return np.sum(u[1:-1, 1:-1] + 0.1 * sides)

    pb.grad(f)(np.ones((40, 40)))
    assert taken == ["+", "-", "-", "+"]


def test_a_negative_goes_into_its_operand(monkeypatch):
    places = []
    negative = results_into_operands.np.negative
    monkeypatch.setattr(results_into_operands, "np", functools.partial(np.negative))  # an object that can be written to
    for name in ("ndarray", "float64"):
        setattr(results_into_operands.np, name, getattr(np, name))
    results_into_operands.np.negative = lambda x, out: (places.append(x is out), negative(x, out=out))[1]
    g = pb.grad(lambda x: np.sum(-(x * 2.0)))(X)
    np.testing.assert_array_equal(g, -2.0)
    assert places == [True]


def test_a_bias_is_added_to_a_product(taken):
    w, b = RNG.normal(size=(8, 64)), RNG.normal(size=64)
    inputs = RNG.normal(size=(N // 64, 8))
    f = lambda w, b: np.sum(np.tanh(inputs @ w + b))  # noqa: E731
    found = pb.grad(f, (0, 1))(w, b)
    assert taken == ["+"]
    hidden = np.tanh(inputs @ w + b)
    np.testing.assert_allclose(found[1], np.sum(1 - hidden**2, axis=0), rtol=1e-10)


def test_less_is_held_at_the_peak(monkeypatch):
    x = np.tile(X, 800)

    def peak():
        pb.grad(lambda x: np.sum(((x * 0.5 + 1.0) * 2.0 - 3.0) * 0.5))(x)
        _, found = peak_of(pb.grad(lambda x: np.sum(((x * 0.5 + 1.0) * 2.0 - 3.0) * 0.5)), x)
        return found / x.nbytes

    assert peak() < 1.1
    assert in_new_arrays(monkeypatch, peak) > 1.9


def test_small_arrays_are_left_alone(taken):
    pb.grad(lambda x: np.sum(x * 0.5 + 1.0))(X[: LARGE // 8 - 1].copy())
    assert not taken
    pb.grad(lambda x: np.sum(x * 0.5 + 1.0))(X[: LARGE // 8].copy())
    assert taken == ["+"]


def test_where_counts_do_not_tell_nothing_is_taken_over(monkeypatch, taken):
    for nothing in ((0, 99), (99, 0)):
        with monkeypatch.context() as patch:
            for limits in ("NARROW", "WIDE"):
                patch.setattr(results_into_operands, limits, (nothing, nothing))
            patch.setattr(results_into_operands, "CALLED", nothing)
            pb.grad(lambda x: np.sum(by_nobody(x) + np.exp(x * 2.0) - x[:]))(X)
        assert not taken
    with monkeypatch.context() as patch:
        patch.setattr(results_into_operands, "objects_held", lambda: sys.maxsize)
        pb.grad(lambda x: np.sum(by_nobody(x)))(X)
    assert not taken


def test_a_trap_sees_every_value(taken):
    with pb.trap("nan"):
        pb.grad(lambda x: np.sum(x * 2.0 + 1.0))(X)
    assert not taken


def test_reports_and_plans_agree():
    f = lambda x: np.sum(np.tanh(x * 0.5 + 1.0) * (x * 0.5 - 1.0) + x)  # noqa: E731
    _, pull = pb.vjp(f, X, policy=pb.SaveAll())
    pull(1.0)
    assert pull.report.peak_bytes == pb.plan(f, X, policy=pb.SaveAll()).peak_bytes
    pull.close()
    assert pull.report.live_bytes == 0
