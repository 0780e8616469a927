"""Calls that come again and again: what changes between two of them is seen as in the first."""

import gc
import tracemalloc
import warnings
from functools import wraps
from threading import Thread
from weakref import ref

import numpy as np
import pytest

import pullback as pb
from pullback.recording.tape import Tape
from pullback.staging.calls.derivative_stages import MOST_NBYTES
from pullback.staging.calls.hot_gradients import LATER, TRIALS
from pullback.testing.comparing.bits import same_bits

X, T = np.array([0.3, -0.7, 1.1]), np.array([0.5, 1.0, -2.0])
MANY = 60
FACTOR = 2.0


pytestmark = pytest.mark.usefixtures("nothing_is_known")


def recorded(derivative):
    with pb.using(staging="off"):
        return derivative()


def often(gradient, *args):
    for _ in range(MANY):
        gradient(*args)
    return gradient


@pytest.mark.parametrize("decorated", [False, True])
def test_closures_globals_and_defaults_are_read_in_every_call(decorated, monkeypatch):
    c = 2.0

    def f(x, *, k=3.0):
        return x * x * c * FACTOR + k * x

    gradient = often(pb.grad(pb.staged(f) if decorated else f), 3.0)
    assert gradient(3.0) == 27.0
    c = 5.0
    assert gradient(3.0) == 63.0
    monkeypatch.setitem(globals(), "FACTOR", 1.0)
    assert gradient(3.0) == 33.0
    f.__kwdefaults__ = {"k": 4.0}
    assert gradient(3.0) == 34.0
    c = np.array([1.0, 2.0])
    with pytest.raises(pb.NotDifferentiableError, match="scalar"):
        gradient(3.0)
    c = 2.0
    assert gradient(3.0) == 16.0


@pytest.mark.parametrize("decorated", [False, True])
def test_other_operations_and_other_arguments(decorated):
    way = 0

    def f(x):
        return np.sum(x * x) if way == 0 else np.sum(np.sin(x)) if way == 1 else np.sum(x * x[::-1] * 2.0)

    gradient = often(pb.grad(pb.staged(f) if decorated else f), X)
    for way in (1, 0, 2, 2, 2, 2, 0, 1, 1, 1, 0):  # noqa: B007 - f reads it
        for x in (X, T, X[:2], X.astype(np.float32), X[::-1], X.copy()):
            assert same_bits(gradient(x), recorded(lambda x=x: pb.grad(f)(x)))


@pytest.mark.parametrize("decorated", [False, True])
def test_the_argument_may_be_changed_between_calls_and_not_within(decorated):
    x, changes = X.copy(), False

    def f(u):
        if changes:
            x[0] += 1.0
        return np.sum(u * u * u)

    gradient = often(pb.grad(pb.staged(f) if decorated else f), x)
    x[1] = 7.0
    assert gradient(x)[1] == 147.0
    changes = True
    with pytest.raises(pb.ConstantChangedError):
        gradient(x)
    changes = False
    assert same_bits(gradient(x), recorded(lambda: pb.grad(f)(x)))


def test_what_is_given_out_is_nobody_elses():
    gradient = often(pb.value_and_grad(lambda x: np.sum(x * x)), X)
    first, second = gradient(X)[1], gradient(X)[1]
    first[:] = 0.0
    assert same_bits(second, X * 2)
    assert not np.shares_memory(gradient(X)[1], X)


@pytest.mark.parametrize("decorated", [False, True])
def test_a_handle_that_leaks_cannot_be_used(decorated):
    kept = []

    def f(x):
        kept[:] = [x * 2.0]
        return x * x

    gradient = often(pb.grad(pb.staged(f) if decorated else f), 3.0)
    assert gradient(3.0) == 6.0
    with pytest.raises(pb.TracerError):
        kept[0] * 2.0
    assert gradient(4.0) == 8.0


def test_a_function_that_calls_its_own_gradient_and_threads():
    def f(x):
        return x * x * (1.0 if depth[0] else 2.0)

    depth, found = [0], []
    gradient = often(pb.grad(f), 3.0)

    def asked():
        found.extend(gradient(float(k)) for k in range(200))

    threads = [Thread(target=asked) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [4.0 * k for k in range(200)] * 4 or sorted(found) == sorted([4.0 * k for k in range(200)] * 4)

    def outer(x):
        return x * pb.value(gradient(2.0))

    assert often(pb.grad(outer), 1.0)(1.0) == 8.0


def test_a_small_function_is_staged_by_itself_and_one_that_differs_is_not():
    calls = 0

    def f(x):
        nonlocal calls
        calls += 1
        for _ in range(calls % 5):
            x = x * 1.5
        return x * x

    gradient = pb.grad(f)
    for k in range(MANY + TRIALS):
        assert gradient(2.0) == 4.0 * 1.5 ** (2 * ((k + 1) % 5))
    assert calls == MANY + TRIALS


def test_errors_and_warnings_name_the_line():
    def f(x):
        return np.log(x) + x

    gradient = often(pb.grad(f), 2.0)
    with pytest.warns(RuntimeWarning, match="divide by zero") as told:
        gradient(0.0)
    assert told[0].filename == __file__
    with pytest.warns(RuntimeWarning, match="invalid value"):
        gradient(-1.0)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        gradient(-1.0)


def test_a_function_that_is_dropped_is_gone():
    def made():
        def f(x):
            return x * x

        often(pb.grad(f), 2.0)
        staged = pb.staged(lambda x: np.sum(x * x))
        often(pb.grad(staged), X)
        for _ in range(5):
            pb.jvp(staged, (X,), (T,))
        return ref(f), ref(staged.__pullback_staged__)

    gc.collect()
    gc.disable()
    try:
        assert [each() for each in made()] == [None, None]
    finally:
        gc.enable()


def test_no_trace_around_is_kept():
    gradient = pb.grad(pb.staged(lambda x: np.sum(x * x * x)))

    def outer(x):
        y = x
        for _ in range(20):
            y = np.sin(y)
        return gradient(y) @ T

    for derivative in (lambda: pb.grad(outer)(X), lambda: pb.jvp(outer, (X,), (T,))):
        for _ in range(8):
            derivative()
        gc.collect()
        kept = [thing for thing in gc.get_objects() if type(thing) is Tape]
        assert all(len(tape.records) < 5 and tape.tangents is None and tape.outer is None for tape in kept)


def test_what_looks_like_a_staged_function_is_another():
    f = pb.staged(lambda x: np.sum(x * x * x * x))

    @wraps(f)
    def half(x):
        return f(x) * 0.5

    gradient = often(pb.grad(f), X)
    for _ in range(4):
        assert same_bits(pb.grad(half)(X), gradient(X) * 0.5)
        assert same_bits(pb.jvp(half, (X,), (T,))[1], pb.jvp(f, (X,), (T,))[1] * 0.5)
        assert np.allclose(pb.jvp(gradient, (X,), (T,))[1], 12 * X * X * T)
    second = pb.grad(pb.grad(pb.staged(lambda x: x * x * x * x)))
    often(pb.grad(f), X)
    assert [second(2.0) for _ in range(MANY)] == [48.0] * MANY
    first = pb.grad(pb.staged(lambda x: x * x * x * x))
    assert often(first, 2.0)(2.0) == 32.0
    assert pb.grad(first)(2.0) == 48.0


def test_tangents_at_once():
    def f(x):
        return np.sum(np.sin(x) * x) * scale

    scale, staged = 2.0, pb.staged(f)
    for k in range(8):
        scale = 2.0 if k < 6 else 3.0
        x, t = X * (k + 1), T * k
        assert same_bits(pb.jvp(staged, (x,), (t,)), pb.jvp(f, (x,), (t,)))
    for x, t in ((X[:2], T[:2]), (X.astype(np.float32), T.astype(np.float32)), (X, None), (X, T[::-1])):
        for _ in range(4):
            assert same_bits(pb.jvp(staged, (x,), (t,)), pb.jvp(f, (x,), (t,)))
    with pytest.raises(pb.StructureError):
        pb.jvp(staged, (X,), (T[:2],))


def test_the_reverse_warns_of_nothing(recwarn):
    def f(x):
        return np.sum(np.where(x > 0, np.sqrt(np.abs(x)), 0.0) * 1e200 * x)

    staged = pb.staged(f)
    x = np.array([0.0, 1.0, 1e-300])
    for _ in range(6):
        for function in (f, staged):
            gradient = pb.grad(function)
            for _ in range(6):
                gradient(x)
    assert [str(each.message) for each in recwarn] == []


@pytest.mark.parametrize("decorated", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_a_rule_that_asks_for_the_value_of_a_number_asks_in_every_call(decorated, turned):
    number = 3

    def f(x):
        return np.sum(number**x if turned else x**number) * 1e-200

    def g(x):
        return np.sum(number**x if turned else x**number) * 0.0

    def float_power(x):
        return np.sum(np.float_power(number, x) if turned else np.float_power(x, number)) * 0.0

    for h in (f, g, float_power):
        number = 3
        gradient = often(pb.grad(pb.staged(h) if decorated else h), X)
        square = np.asfortranarray(np.outer(X, T))
        for _ in range(6):
            gradient(square)
        for number in (2, 1, 0, 2, -1, 10**30, 3, True, 3.0, 2.0, 2.0, 2.0, 0.5, 2):  # noqa: B007 - f reads it
            for x in (X, np.array([1e308, np.inf, np.nan]), np.array([-0.0, 0.0, -np.inf]), square):
                with np.errstate(all="ignore"):
                    assert same_bits(gradient(x), recorded(lambda x=x, h=h: pb.grad(h)(x)))


@pytest.mark.parametrize("decorated", [False, True])
@pytest.mark.parametrize("x", [2.5, np.float64(2.5), np.array(2.5)])
def test_the_gradient_at_a_number_is_a_number(decorated, x):
    for f in (np.sum, lambda x: np.sum(np.fmod(x, 2.0)), lambda x: x * 1.0, lambda x: 2.0 * np.sum(x * x)):
        gradient = often(pb.value_and_grad(pb.staged(f) if decorated else f), x)
        assert type(gradient(x)[1]) is np.float64
        assert same_bits(gradient(x), recorded(lambda f=f: pb.value_and_grad(f)(x)))


def test_errors_name_the_function_and_not_what_is_called_in_its_place():
    def f(x):
        return None if nothing else x * x

    for late in (39, 40, 41, 42, 60):
        nothing = False
        gradient = pb.grad(f)
        for _ in range(late):
            gradient(2.0)
        nothing = True
        with pytest.raises(pb.NotDifferentiableError, match="f returned None"):
            gradient(2.0)
        with pytest.raises(pb.NotDifferentiableError, match="argument 0 of f has"):
            gradient(np.arange(3))


@pytest.mark.parametrize("decorated", [False, True])
@pytest.mark.parametrize("which", range(4))
def test_a_handle_of_a_former_call_is_none_of_this_one(decorated, which):
    kept, keeps, uses = [], False, False

    def f(x):
        y = x * 2.0
        z = y * x
        out = np.sum(z)
        if keeps:
            kept.append((x, y, z, out)[which])
        return (kept[-1] if returns else np.sum(kept[-1] * x)) if uses else out

    returns = False
    gradient = often(pb.grad(pb.staged(f) if decorated else f), X)
    for _ in range(4):
        keeps = True
        assert same_bits(gradient(X), X * 4)
        keeps, uses = False, True
        for returns in (False, True):  # noqa: B007 - f reads it
            with pytest.raises(pb.TracerError, match=r"leaked out of the differentiated function"):
                gradient(X)
            with pb.using(staging="off"), pytest.raises(pb.TracerError, match=r"leaked out of the differentiated"):
                gradient(X)
        uses = False
        for _ in range(6):
            assert same_bits(gradient(X), X * 4)
        kept.clear()
        for _ in range(6):
            assert same_bits(gradient(T), T * 4)


@pytest.mark.parametrize("decorated", [False, True])
def test_no_array_that_a_call_has_read_lives_longer(decorated):
    def f(x, c):
        return np.sum(x * x * c) + np.sum(x * tables[-1])

    gradient = pb.value_and_grad(pb.staged(f) if decorated else f)
    tables = []
    for k in range(MANY):
        x, c, tables = X.copy(), X + k, [T + k]
        met = ref(x), ref(c), ref(tables[0])
        gradient(x, c)
        del x, c
        tables.clear()
        assert [each() for each in met] == [None] * 3


@pytest.mark.filterwarnings("ignore:Setting the dtype:DeprecationWarning")  # of NumPy 2.5
def test_an_array_whose_dtype_is_set_between_two_reads():
    def f(x, staging):
        table = np.array([1, 2, 3])
        with pb.using(staging=staging):
            y = x * table
            table.dtype = np.float64
            return np.sum(y + x * (table * 1e300) + x * table)

    for staging in ("off", "auto"):
        want = np.array([1, 2, 3]) + np.array([1, 2, 3]).view(float) * 1e300 + np.array([1, 2, 3]).view(float)
        assert same_bits(pb.grad(f)(X, staging), want)


@pytest.mark.parametrize("decorated", [False, True])
@pytest.mark.parametrize("x", [2.5, np.float64(2.5), X, X[::-1]])
def test_a_number_that_is_too_large_fails_at_its_own_place(decorated, x):
    number = 3

    def f(x):
        try:
            y = x * number
            y = number * y[...] if np.ndim(y) else number * y
        except OverflowError:
            y = x * 7.0
        return np.sum(y * x)

    gradient = often(pb.grad(pb.staged(f) if decorated else f), x)
    for number in (3, 10**400, 4, -(10**400), 2**1023 - 1, 10**30, 2**1024 - 2**900, 3):  # noqa: B007 - f reads it
        with np.errstate(all="ignore"):
            assert same_bits(gradient(x), recorded(lambda: pb.grad(f)(x)))


@pytest.mark.parametrize("decorated", [False, True])
def test_errors_of_pythons_name_an_ordinary_tracer(decorated):
    fails = False

    def f(x):
        return x.nothing if fails else x * x

    for x in (2.5, np.float64(2.5)):
        fails = False
        gradient = often(pb.grad(pb.staged(f) if decorated else f), x)
        fails = True
        told = []
        for how in (None, "off"):
            with pb.using(staging=how), pytest.raises(AttributeError) as error:
                gradient(x)
            told.append(str(error.value))
        assert told[0] == told[1]


@pytest.mark.parametrize("decorated", [False, True])
def test_a_quotient_by_a_number_that_is_none(decorated):
    number = scale = 2.0

    def f(x):
        return (np.sum(x / number) + np.mean(x)) * scale

    gradient = often(pb.grad(pb.staged(f) if decorated else f), X)
    for number in (2.0, np.nan, np.inf, 0.0, -0.0, 1e308, 3.0):  # noqa: B007 - f reads it
        for scale in (1.0, 0.0, np.inf, np.nan, 1e-300):  # noqa: B007
            with np.errstate(all="ignore"):
                assert same_bits(gradient(X), recorded(lambda: pb.grad(f)(X)))


@pytest.mark.parametrize("decorated", [False, True])
def test_only_the_function_itself_warns(decorated):
    def f(x):
        return np.sum(np.sqrt(x)) + np.sum(1e200 * x)

    x = np.array([1e-200, 0.0, -1.0])
    gradient = pb.grad(pb.staged(f) if decorated else f)
    for _ in range(MANY):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            gradient(x)
        assert [str(each.message) for each in told] == ["invalid value encountered in sqrt"]


def test_a_function_of_many_records_is_staged_by_itself_after_many_calls():
    c = 1.01

    def f(x):
        for _ in range(30):
            x = np.sin(x) * c + 0.1
        return np.sum(x)

    gradient = pb.grad(f)
    hot = gradient.__pullback_hot__
    for k in range(2 * LATER):
        c = 1.01 if k % 50 else 1.02
        assert same_bits(gradient(X), recorded(lambda: pb.grad(f)(X)))
        assert (hot.known is None) is (k < LATER + 40)
    assert not hot.over


MANY_PLAIN = np.ones(100_000)


def sum_with_large_plain(x):
    return np.sum(np.sin(MANY_PLAIN * x) * MANY_PLAIN)


def gradient_of_gradient(inner):
    first = pb.grad(inner)

    def outer(x):
        return np.sum(first(x) ** 2)

    return pb.grad(outer)


LARGE = {
    "plain operand": (pb.grad(sum_with_large_plain), 0.3, 0),
    "argument": (gradient_of_gradient(lambda x: np.sum(np.sin(x) * x)), np.ones(100_000), 0),
    # the call that finds out holds all values until there are too many
    "intermediate": (gradient_of_gradient(lambda x: np.sum(np.sin(np.outer(x, x)))), np.full(400, 0.3), MOST_NBYTES),
}


@pytest.mark.parametrize("what", LARGE)
def test_nobody_who_has_not_asked_for_a_stage_pays_for_one_in_memory(what):
    gradient, x, more = LARGE[what]
    for _ in range(10):
        gradient(x)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        first, later = [], []
        for k in range(60):
            tracemalloc.reset_peak()
            gradient(x)
            (first if k < 10 else later).append(tracemalloc.get_traced_memory())
    finally:
        tracemalloc.stop()
        gc.enable()
    assert later[-1][0] < max(held for held, _ in first) + 300_000
    assert max(peak for _, peak in later) < max(peak for _, peak in first) + 300_000 + more
