"""Derivatives within a trace, and of functions made anew, as stages: the bits of the ordinary way, whatever changes."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pullback as pb
from pullback.recording.tape import RECORDING
from pullback.staging.generated import shelf
from pullback.transforms.nested import called_derivatives
from pullback.transforms.nested.called_stages import PLAIN, PUSHED, RECORDED

X, W = np.array([0.3, -0.7]), np.float64(0.8)
SHIFT = np.array([0.5, 1.5])


@pytest.fixture(autouse=True)
def nothing_is_known():
    shelf.forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(called_derivatives, "BEFORE", dict.fromkeys(called_derivatives.BEFORE, 3))
        yield
    shelf.forget()


@pytest.fixture
def handed(monkeypatch):
    """How each call was answered by a stage."""
    ways, ordinary = [], called_derivatives._handed_out

    def handed_out(found, *rest):
        ways.append(found.way)
        return ordinary(found, *rest)

    monkeypatch.setattr(called_derivatives, "_handed_out", handed_out)
    return ways


def bits(found):
    vector, _ = pb.ravel(found)
    return vector.dtype, vector.tobytes()


def potential(x, w):
    a, b = x
    return 1.0 / np.sqrt((a - 2.0) ** 2 + (b + w) ** 2) + np.sin(a * b) * w


staged = pb.staged(potential)


def columns(f):
    return lambda x, *others: np.stack([pb.jvp(lambda x: f(x, *others), (x,), (unit,))[1] for unit in np.eye(len(x))])


INNER = {
    "gradient": pb.grad(potential),
    "gradient of a staged function": pb.grad(staged),
    "columns": columns(potential),
    "columns of a staged function": columns(staged),
    "gradient of a function made anew": lambda x, w: pb.grad(lambda x: potential(x, w))(x),
    "value and gradient": lambda x, w: np.multiply(*pb.value_and_grad(staged)(x, w)),
    "tangent by both": lambda x, w: np.sum(np.array([1.0, 2.0]) * x) * pb.jvp(potential, (x, w), (x, w))[1] * x,
}


def path(force, n=12):
    def last(x, w):
        v = np.zeros(2)
        for k in range(n):
            v = v - 0.1 * force(x, w * (1.0 + 0.1 * k))
            x = x + 0.1 * v
        return np.sum(x * x) + x[0] * w

    return last


OUTER = {
    "gradient": lambda f, x, w: pb.value_and_grad(f, argnums=(0, 1))(x, w),
    "tangent": lambda f, x, w: pb.jvp(f, (x, w), (np.cos(x), np.cos(w))),
    "value": lambda f, x, w: f(x, w),
    "gradient by one": lambda f, x, w: pb.grad(f, argnums=1)(x, w),
    "product": lambda f, x, w: pb.hvp(lambda x: f(x, w), (x,), (np.cos(x),)),
}


def assert_right(outer, f, x=X, w=W, policy=None):
    """At three inputs, against the same without staging."""
    for k in range(3):
        with pb.using(staging="off"):
            wanted = bits(outer(f, x + 0.1 * k, w - 0.2 * k))
        with pb.using(policy=policy):
            assert bits(outer(f, x + 0.1 * k, w - 0.2 * k)) == wanted


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", OUTER)
def test_the_bits_are_those_of_the_ordinary_way(outer, inner):
    assert_right(OUTER[outer], path(INNER[inner]))


@pytest.mark.parametrize("policy", [pb.Binomial(3), pb.Recompute()], ids=repr)
@pytest.mark.parametrize("inner", INNER)
def test_other_policies_go_the_ordinary_way(inner, policy, handed):
    assert_right(OUTER["gradient"], path(INNER[inner]), policy=policy)
    assert RECORDED not in handed


@pytest.mark.parametrize(("outer", "way"), [("gradient", RECORDED), ("tangent", PUSHED), ("value", PLAIN)])
def test_calls_are_answered_by_stages(outer, way, handed):
    OUTER[outer](path(INNER["columns"]), X, W)
    assert handed.count(way) > 10


def test_the_body_does_not_run(handed, monkeypatch):
    """It would be met by whoever replaces its code: which ends the stage, and is right."""
    f = path(columns(potential))
    assert_right(OUTER["gradient"], f)
    n = len(handed)
    monkeypatch.setattr(potential, "__code__", (lambda x, w: np.sum(x * x * w)).__code__)
    assert_right(OUTER["gradient"], f)
    assert len(handed) > n


def test_what_is_read_from_outside_may_change(monkeypatch):
    def shifted(x, w):
        return np.sum(np.sin(x + SHIFT) * w)

    def outer(x, w):
        total = 0.0
        for k in range(20):
            if k == 9:
                SHIFT[0] += 1.0
            if k == 14:
                monkeypatch.setitem(globals(), "SHIFT", np.array([2.0, 3.0]))
            total = total + np.sum(pb.jvp(lambda x: shifted(x, w), (x,), (x,))[1])
        monkeypatch.setitem(globals(), "SHIFT", np.array([0.5, 1.5]))
        return total

    assert_right(OUTER["gradient"], outer)


def test_an_array_that_is_read_from_outside_may_be_given_as_well(handed):
    def reading(z, w):
        return np.sum(np.sin(z) * SHIFT) * w

    def within(z):
        return np.sum(z * SHIFT)

    def outer(x, w):
        total, SHIFT[:] = 0.0, (0.5, 1.5)
        for k in range(24):
            if k in (12, 18):
                SHIFT[k % 5 % 2] += 0.5 * k
            given, function = SHIFT, within
            total = total + pb.jvp(lambda z: reading(z, w), (x,), (SHIFT,))[1]
            total = total + pb.jvp(lambda z: np.sum(z * given) * function(z), (x,), (x,))[1]  # noqa: B023 - at once
            total = total + np.sum(pb.grad(reading)(SHIFT, w) * x)
        SHIFT[:] = 0.5, 1.5
        return total

    for each in OUTER.values():
        assert_right(each, outer)
    assert {RECORDED, PUSHED, PLAIN} <= set(handed)


def test_arrays_may_be_written_to_after_the_call(handed):
    def outer(x, w):
        total, t = 0.0, np.array([1.0, 0.5])
        for _ in range(12):
            total = total + pb.jvp(lambda x: potential(x * t, w), (x,), (t,))[1]
            t[0] += 0.25
            t[1] *= -1.5
        t[:] = np.nan
        return total

    assert_right(OUTER["gradient"], outer)
    assert handed.count(RECORDED) > 5


def test_traced_arrays_may_be_written_to_after_the_call(handed):
    def outer(x, w):
        total, y = 0.0, np.copy(x)
        for k in range(12):
            total = total + pb.jvp(lambda y: potential(y, w), (y,), (x,))[1]
            y[k % 2] = y[1 - k % 2] * 0.9 + 0.1
        return total

    assert_right(OUTER["gradient"], outer)
    assert_right(OUTER["tangent"], outer)
    assert {RECORDED, PUSHED} <= set(handed)


def test_a_number_from_around_is_traced_at_times(handed):
    def outer(x, w):
        total, plain = 0.0, np.float64(0.3)
        for k in range(24):
            factor = w if k % 3 == 0 else plain
            plain = plain * 1.1
            tangent = pb.jvp(lambda x: potential(x, factor), (x,), (np.ones(2),))[1]  # noqa: B023 - at once
            total = total + np.sum(tangent)
            total = total + np.sum(pb.grad(staged)(np.array([0.1, 0.2]) * (k % 2) + plain, factor))
        return total + np.sum(x)

    for each in OUTER.values():
        assert_right(each, outer)
    assert {RECORDED, PUSHED, PLAIN} <= set(handed)


def test_numbers_of_python_are_compared(handed):
    def outer(x, w):
        total = 0.0
        for k in range(24):
            p = 2 if k < 8 else 3
            total = total + pb.jvp(lambda x: np.sum(x**p) * w, (x,), (np.ones(2),))[1]  # noqa: B023 - at once
        return total

    for each in OUTER.values():
        assert_right(each, outer)
    assert handed


def test_what_decides_by_values_goes_the_ordinary_way(handed):
    def deciding(x, w):
        return np.sum(x * x * w) if x[0] > 0.5 else np.sum(np.sin(x) * w)

    def outer(x, w):
        return sum(np.sum(pb.grad(lambda x: deciding(x, w))(x + 0.1 * k)) for k in range(12))

    for each in OUTER.values():
        assert_right(each, outer)
    assert not handed


def test_the_same_code_with_other_globals():
    text = "def f(x, w): return np.sum(x * x) * w * FACTOR\n"
    spaces = [{"np": np, "FACTOR": 2.0}, {"np": np, "FACTOR": 3.0}]
    for space in spaces:
        exec(text, space)  # noqa: S102 - a text of our own
    first, second = (space["f"] for space in spaces)

    def outer(x, w):
        total = 0.0
        for k in range(16):
            f = first if k % 3 else second
            total = total + pb.jvp(f, (x, w), (x, w))[1] + np.sum(pb.grad(f)(x, w))
        return total

    for each in OUTER.values():
        assert_right(each, outer)


def test_a_tangent_of_a_gradient_is_none_of_its_function():
    force = pb.grad(staged)

    def outer(x, w):
        return sum(np.sum(pb.jvp(force, (x, w * k), (x, w))[1]) for k in range(1, 12))

    for name in ("gradient", "tangent", "value"):
        assert_right(OUTER[name], outer)


def test_values_of_another_trace_around():
    def outer(x, w):
        def middle(y):
            return sum(pb.jvp(lambda z: potential(z * y, w), (y,), (x,))[1] for _ in range(8)) + np.sum(x * y)

        return np.sum(pb.grad(middle)(x * 2.0) * x)

    for name in ("gradient", "tangent", "value"):
        assert_right(OUTER[name], outer)


def test_one_value_in_two_places():
    def outer(x, w):
        total = 0.0
        for _ in range(10):
            total = total + pb.jvp(lambda y: potential(x * y, w), (x,), (x,))[1]
        return total

    for each in OUTER.values():
        assert_right(each, outer)


def test_what_gives_other_values_is_not_used(monkeypatch, handed):
    monkeypatch.setattr(called_derivatives, "_is_right", lambda *_: False)
    for each in OUTER.values():
        assert_right(each, path(columns(potential)))
    assert not handed


def test_without_staging_there_is_none(handed):
    with pb.using(staging="off"):
        OUTER["gradient"](path(columns(potential)), X, W)
        OUTER["value"](path(columns(potential)), X, W)
    OUTER["gradient"](path(pb.grad(pb.staged(potential, staging="off"))), X, W)
    assert not handed


@pytest.mark.parametrize(
    "f",
    [
        lambda x, w: np.sum(np.outer(x, x)) * w,
        lambda x, w: np.cumsum(x)[-1] * w,
        lambda x, w: np.sum(np.stack([x, x * w]) ** 2) * len(x),
        lambda x, w: np.sum(np.concatenate([x * w, x])),
        lambda x, w: np.trace(np.outer(x, np.sin(x))) * w,
    ],
    ids=["outer", "cumsum", "stack", "concatenate", "trace"],
)
def test_how_a_value_lies_is_known_without_it(f, handed):
    for inner in (columns(f), pb.grad(f)):
        for each in OUTER.values():
            assert_right(each, path(inner))
    assert {RECORDED, PUSHED, PLAIN} <= set(handed)


def test_whoever_looks_at_each_line_sees_the_body_run(handed):
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        OUTER["gradient"](path(columns(potential)), X, W)
    finally:
        sys.settrace(before)
    assert not handed


def test_errors_and_warnings_are_those_of_the_ordinary_way():
    def outer(x, w):
        return sum(np.sum(pb.jvp(lambda x: np.log(x) * w, (x,), (x,))[1]) for _ in range(8))

    f = pb.grad(outer, argnums=(0, 1))
    f(np.array([1.0, 2.0]), W)
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
        f(np.array([0.0, 2.0]), W)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        f(np.array([0.0, 2.0]), W)


def test_threads():
    f = path(columns(staged))
    with pb.using(staging="off"):
        wanted = [bits(OUTER["gradient"](f, X + k, W)) for k in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            found = list(pool.map(lambda k: bits(OUTER["gradient"](f, X + k, W)), range(4)))
            assert found == wanted


def test_a_stage_is_made_when_it_pays(monkeypatch, handed):
    monkeypatch.undo()
    made, ordinary = [], called_derivatives.made
    monkeypatch.setattr(called_derivatives, "made", lambda *given: made.append(1) or ordinary(*given))
    monkeypatch.setattr(called_derivatives, "BEFORE", {**called_derivatives.BEFORE, RECORDING: 40})
    OUTER["gradient"](path(INNER["gradient"], n=40), X, W)
    assert not made
    OUTER["gradient"](path(INNER["gradient"], n=20), X, W)
    assert made


def test_large_functions_go_the_ordinary_way(handed):
    def large(x, w):
        for _ in range(150):
            x = np.sin(x) * w + x
        return np.sum(x)

    OUTER["gradient"](path(columns(large)), X, W)
    OUTER["value"](path(columns(large)), X, W)
    assert not handed


def test_few_functions_are_remembered():
    for k in range(3 * called_derivatives.MOST_FUNCTIONS):
        space = {"np": np}
        exec(f"def f(x): return np.sum(x * {k}.5)", space)  # noqa: S102 - a text of our own
        pb.jvp(space["f"], (X,), (X,))
    assert len(called_derivatives._SHELF) <= called_derivatives.MOST_FUNCTIONS
