"""Warm calls that enter straight: they give the bits of the ordinary way, and whatever could make them give another
result takes that way."""

import gc
import sys
import threading
import warnings
from dataclasses import dataclass
from typing import NamedTuple
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as pb
from pullback.loops.bodies.deterministic_functions import NotTheSameError, reads_of
from pullback.staging.calls import shortcut_callers, shortcuts
from pullback.staging.calls.known_functions import gradient_of, staged_of
from pullback.staging.calls.shortcut_making import function_within
from pullback.words.call_sites import MISSED

X, T = np.array([0.3, -0.2]), np.array([1.0, 0.5])
FACTOR, TABLE, NAMED = 2.0, np.array([0.5, 0.25]), np.sin


def potential(q):
    return 0.5 * FACTOR * np.dot(q, q) + q[0] * q[0] * q[1] - NAMED(q[1]) * TABLE[1] + np.sum(TABLE * q)


def often(call, *args, n=8):
    for _ in range(n):
        found = call(*args)
    return found


def bits(found):
    return [np.asarray(part).tobytes() for part in (found if isinstance(found, tuple) else (found,))]


def same_as_recorded(call, *args):
    found = call(*args)
    with pb.using(staging="off"):
        assert bits(found) == bits(call(*args))
    return found


def derivatives(f):
    gradient = pb.grad(f)
    twice = pb.grad(lambda q: np.dot(gradient(q), T))
    ways = {
        "grad": pb.grad(f),
        "value_and_grad": pb.value_and_grad(f),
        "jvp": lambda q: pb.jvp(f, (q,), (T,)),
        "reverse over reverse": twice,
        "forward over reverse": lambda q: pb.jvp(gradient, (q,), (T,)),
    }
    owners = {
        "grad": lambda: staged_of(f).warm.gradients,
        "value_and_grad": lambda: staged_of(f).warm.gradients,
        "jvp": lambda: staged_of(f).warm.tangents,
        "reverse over reverse": lambda: gradient_of(twice).warm.gradients,
        "forward over reverse": lambda: gradient_of(gradient).warm.tangents,
    }
    return ways, owners


WAYS = list(derivatives(pb.staged(potential))[0])


@pytest.fixture(autouse=True)
def served(request, monkeypatch):
    """By whom calls were computed that did not take the ordinary way. Shortcuts get a caller at once: what that misses
    they are asked next, so each test is one of both."""
    calls, by = [], getattr(request, "param", "caller")
    put_back, made = shortcuts.Shortcuts.put_back, shortcut_callers.caller_of

    def counting(shortcut, form):
        caller = made(shortcut, form)

        def called(args):
            found = caller(args)
            if found is not MISSED:
                calls.append("caller")
            return found

        return caller and called

    monkeypatch.setattr(shortcuts, "PAYS", 1 if by == "caller" else 10**9)
    monkeypatch.setattr(shortcut_callers, "caller_of", counting)
    monkeypatch.setattr(
        shortcuts.Shortcuts, "put_back", lambda self, one: (calls.append("shortcut"), put_back(self, one))
    )
    return calls


@pytest.mark.parametrize("served", ["shortcut", "caller"], indirect=True)
@pytest.mark.parametrize("way", WAYS)
def test_an_entry_gives_the_bits_of_recording_at_other_inputs(way, served, request):
    f = pb.staged(potential)
    ways, owners = derivatives(f)
    often(ways[way], X, n=60)
    made = owners[way]()
    assert made.kept, made.why
    served.clear()
    for at in (X, np.array([1.5, 0.7]), np.array([np.nan, 1.0]), np.array([-0.0, 0.0])):
        same_as_recorded(ways[way], at)
    assert served == [request.node.callspec.params["served"]] * 4


@pytest.mark.parametrize("way", WAYS)
def test_what_a_function_reads_may_change_at_any_time(way, monkeypatch):
    f = pb.staged(potential)
    ways, _ = derivatives(f)
    call = ways[way]
    first = bits(often(call, X, n=60))
    module = sys.modules[__name__]
    for name, value in {"FACTOR": -3.0, "TABLE": np.array([2.0, 4.0]), "NAMED": np.cos}.items():
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            same_as_recorded(call, X)
        assert bits(call(X)) == first
    with monkeypatch.context() as patch:
        patch.setattr(np, "dot", lambda a, b: np.sum(a * b) * 5.0)
        same_as_recorded(call, X)
    TABLE[:] += 1.0
    try:
        same_as_recorded(call, X)
    finally:
        TABLE[:] -= 1.0
    assert bits(call(X)) == first


def test_cells_defaults_and_code_may_change():
    scale = 2.0

    def inner(q, by=3.0):
        return np.sum(q * q) * scale * by

    f = pb.staged(lambda q: inner(q) + 0.0)
    gradient = pb.grad(f)
    assert often(gradient, X).tolist() == (12.0 * X).tolist()
    assert staged_of(f).warm.gradients.kept
    scale = -1.0
    assert gradient(X).tolist() == (-6.0 * X).tolist()
    inner.__defaults__ = (5.0,)
    assert gradient(X).tolist() == (-10.0 * X).tolist()

    def other(q, by=3.0):
        return np.sum(q) * scale * by

    often(gradient, X)
    inner.__code__ = other.__code__
    assert gradient(X).tolist() == [-5.0, -5.0]


def test_other_kinds_of_arguments_take_the_ordinary_way():
    f = pb.staged(lambda q: np.sum(np.sin(q) * q))
    gradient = pb.grad(f)
    x = np.linspace(0, 1, 6)
    often(gradient, x)
    assert staged_of(f).warm.gradients.kept
    for at in (
        x[::2],
        x[::-1],
        x.reshape(2, 3),
        np.asfortranarray(x.reshape(2, 3)),
        x.astype("f4"),
        0.5,
        np.float64(2),
    ):
        same_as_recorded(gradient, at)


def test_plain_arguments_are_compared_by_content():
    f = pb.staged(lambda q, a, k: np.sum(q * a) * k)
    gradient = pb.grad(f)
    a = np.array([1.0, 2.0])
    often(gradient, X, a, 3.0)
    assert staged_of(f).warm.gradients.kept
    assert gradient(X, a, 3.0).tolist() == [3.0, 6.0]
    a[0] = 7.0
    assert gradient(X, a, 3.0).tolist() == [21.0, 6.0]
    assert gradient(X, a, -0.0).tolist() == [-0.0, -0.0]
    assert gradient(X, X, 1.0).tolist() == X.tolist()
    assert gradient(X, np.array([True, False]), 1).tolist() == [1.0, 0.0]


def test_an_array_written_by_out_is_written_once_in_each_call():
    buffers = np.zeros(2), np.zeros(2)

    def f(q, a, c):
        np.add(a, np.sum(c), c)
        return np.sum(q * c)

    def g(q):
        np.multiply(TABLE, 1.5, TABLE)
        return np.sum(q * TABLE)

    staged, before = pb.staged(f), TABLE.copy()
    of_f, of_g = pb.grad(staged), pb.grad(pb.staged(g))
    for _ in range(12):
        found = of_f(X, T, buffers[0])
        assert found.tobytes() == pb.grad(f)(X, T, buffers[1]).tobytes()
        assert buffers[0].tobytes() == buffers[1].tobytes()
    assert staged_of(staged).warm.gradients.kept == []
    expected = before.copy()
    try:
        for _ in range(12):
            expected *= 1.5
            assert of_g(X).tobytes() == expected.tobytes() == TABLE.tobytes()
    finally:
        TABLE[:] = before


def test_structures():
    f = pb.staged(lambda p, y: np.sum((p["w"] * y + p["b"]) ** 2))
    both = pb.value_and_grad(f)
    params, y = {"w": np.array([1.0, 2.0], "f4"), "b": np.array([0.5, 0.5], "f4")}, np.array([3.0, 4.0], "f4")
    often(both, params, y)
    assert staged_of(f).warm.gradients.kept
    other = {"w": np.array([1.5, 2.5], "f4"), "b": np.array([0.5, -0.5], "f4")}
    value, found = both(other, y)
    with pb.using(staging="off"):
        expected, right = both(other, y)
    assert type(value) is type(expected) and value == expected
    assert {k: v.tobytes() for k, v in found.items()} == {k: v.tobytes() for k, v in right.items()}
    assert all(v.dtype == np.float32 for v in found.values())


SCALE = {"by": 1.0}


@dataclass
class Pair:
    one: object
    two: object

    def mean(self):
        return self.one * SCALE["by"] + self.two

    @property
    def T(self):  # noqa: N802  as arrays have it
        return self.one * SCALE["by"]


class Named(NamedTuple):
    one: object

    def sum(self):
        return self.one * SCALE["by"]


@pytest.mark.parametrize(
    ("f", "argument"),
    [
        (lambda p: np.sum(p.mean() ** 2), Pair(X, 2 * X)),
        (lambda p: np.sum(p.T**2), Pair(X, 2 * X)),
        (lambda p: np.sum(p.sum() ** 2), Named(X)),
        (lambda p: np.sum(p["pair"].mean() ** 2), {"pair": Pair(X, X)}),
    ],
    ids=["method", "property", "named tuple", "within a dict"],
)
def test_a_class_of_the_users_has_members_that_nobody_has_looked_at(f, argument, monkeypatch):
    gradient = pb.grad(pb.staged(f))
    often(gradient, argument)
    monkeypatch.setitem(SCALE, "by", 3.0)
    found = pb.ravel(gradient(argument))[0]
    with pb.using(staging="off"):
        assert np.array_equal(found, pb.ravel(pb.grad(f)(argument))[0])


@pytest.mark.parametrize("n", [1, 2048])
def test_results_belong_to_the_caller(n):
    f = pb.staged(lambda q, r: np.sum(q * r))
    gradient = pb.grad(f, (0, 1))
    q, r = np.tile([1.0, 2.0], n), np.tile([3.0, 4.0], n)
    often(gradient, q, r)
    first = gradient(q, r)
    first[0][:] = first[1][:] = 99.0
    assert q.tolist() == [1.0, 2.0] * n and r.tolist() == [3.0, 4.0] * n
    assert [each.tolist() for each in gradient(q, r)] == [[3.0, 4.0] * n, [1.0, 2.0] * n]
    assert first[0].tolist() == [99.0, 99.0] * n


NOTES = []


def noting(q):
    NOTES.append(len(NOTES))
    return np.sum(q * q)


def drawing(q):
    return np.sum(q * RNG.random())


RNG = np.random.default_rng(0)


@pytest.mark.parametrize("f", [noting, drawing])
def test_a_body_that_does_more_runs_in_each_call(f):
    staged = pb.staged(f)
    gradient = pb.grad(staged)
    NOTES.clear()
    found = [gradient(X).tolist() for _ in range(20)]
    assert staged_of(staged).warm.gradients.kept == []
    assert len(NOTES) == (20 if f is noting else 0)
    assert f is noting or len({each[0] for each in found}) == 20


def _counting():
    n = 0

    def counts(q):
        nonlocal n
        n = n + 1
        return np.sum(q)

    return counts


_swaps = _counting()


def _writes(q):
    TABLE[0] = 1.0
    return np.sum(q)


def _adds_in_place(q):
    t = TABLE
    t += 1.0
    return np.sum(q)


def _hands_on_a_module(q):
    m = np
    return m.sum(q)


def _asks_for_random(q):
    return np.sum(q) * np.random.random()  # noqa: NPY002


def _tells_objects_apart(q):
    return np.sum(q) if q is TABLE else np.sum(q * q)


def _prints(q):
    sys.stdout.write(str(q.shape))
    return np.sum(q)


def _reads_a_list(q):
    return np.sum(q) * len(NOTES)


def _reads_uninitialised(q):
    return np.sum(q * np.empty(2))


def _copies(q):
    np.copyto(TABLE, 1.0)
    return np.sum(q)


def _imports(q):
    import math  # noqa: PLC0415

    return np.sum(q) * math.pi


def _hides_in_a_lambda(q):
    return list(map(lambda x: x * RNG.random(), [np.sum(q)]))[0]  # noqa: C417, RUF015


def _catches(q):
    try:
        return np.sum(q)
    finally:
        pass


@pytest.mark.parametrize(
    "f",
    [
        _swaps, _writes, _adds_in_place, _hands_on_a_module, _asks_for_random, _tells_objects_apart, _prints,
        _reads_a_list, _reads_uninitialised, _copies, _imports, _hides_in_a_lambda, _catches, noting, drawing,
        pb.staged(noting), pb.grad(drawing), lambda q: list(NOTES) and q, lambda q: q.sort(),
        lambda q: q.flags, vars, pb.vjp, len,
    ],
)  # fmt: skip
def test_what_is_not_proved(f):
    with pytest.raises(NotTheSameError):
        reads_of(f, function_within)


def test_what_is_proved():
    def local(q, k=2):
        rows = [np.sin(q) * j for j in range(k)]
        shifted = lambda x: x + FACTOR  # noqa: E731
        total, shift = sum(rows), shifted(q)
        return np.sum(total) + np.linalg.norm(shift) if q.shape else total

    for f in (potential, pb.staged(potential), pb.grad(potential), local):
        assert reads_of(f, function_within).hold()


def test_an_argument_written_in_place_is_refused_as_ever():
    def f(q):
        q[0] = 2.0
        return np.sum(q * q)

    gradient = pb.grad(pb.staged(f))
    x = X.copy()
    assert [gradient(x).tolist() for _ in range(8)] == [[0.0, 2 * X[1]]] * 8
    assert x.tolist() == X.tolist()


def test_settings_in_force_are_asked_in_each_call():
    f = pb.staged(lambda q: np.sum(np.log(q)))
    gradient = pb.grad(f)
    often(gradient, np.ones(2))
    assert staged_of(f).warm.gradients.kept
    bad = np.array([0.0, 1.0])
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        gradient(bad)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        gradient(bad)
    assert [str(each.message) for each in told] == ["divide by zero encountered in log"]
    assert told[0].filename == __file__
    with warnings.catch_warnings(record=True) as told, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        gradient(bad)
    assert told == []
    for policy in (pb.SaveAll(), pb.Binomial(2)):
        with pb.using(policy):
            assert gradient(np.array([2.0, 4.0])).tolist() == [0.5, 0.25]
    _, pull = pb.vjp(gradient, np.array([2.0, 4.0]))
    assert pull(np.ones(2))[0].tolist() == [-0.25, -0.0625]


def test_who_traces_sees_the_body_run():
    f = pb.staged(lambda q: np.sum(q * q))
    gradient, seen = pb.grad(f), []
    often(gradient, X)
    assert staged_of(f).warm.gradients.kept
    before = sys.gettrace()
    sys.settrace(lambda frame, *_: seen.append(frame.f_code))
    try:
        gradient(X)
    finally:
        sys.settrace(before)
    assert f.__wrapped__.__code__ in seen


def test_threads_do_not_share_an_entry():
    f = pb.staged(potential)
    gradient = pb.grad(f)
    often(gradient, X)
    inputs = [np.array([k, k + 0.5]) for k in range(4)]
    wrong = []

    def work(x):
        expected = gradient(x).tolist()
        wrong.extend(1 for _ in range(200) if gradient(x).tolist() != expected)

    threads = [threading.Thread(target=work, args=(x,)) for x in inputs]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_a_call_within_a_call_shares_nothing(served):
    gradient = pb.grad(pb.staged(potential))
    often(gradient, X, n=60)
    other, expected, within = np.array([1.5, 0.7]), gradient(X).tolist(), []
    right = gradient(other).tolist()

    def collected(phase, _):
        if phase == "start":
            within.append(gradient(other).tolist())

    before = gc.get_threshold()
    served.clear()
    gc.callbacks.append(collected)
    gc.set_threshold(1)
    try:
        found = [gradient(X).tolist() for _ in range(50)]
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collected)
    assert found == [expected] * 50
    assert len(within) > 20 and within == [right] * len(within)


def test_a_function_that_is_dropped_does_not_wait_for_the_collector():
    def f(q):
        return np.sum(q * q)

    gone, staged = ref(f), pb.staged(f)
    gradient = pb.grad(staged)
    for _ in range(8):
        gradient(X)
        pb.jvp(staged, (X,), (T,))
    gc.disable()
    try:
        del f, staged, gradient
        assert gone() is None
    finally:
        gc.enable()


def test_a_warning_and_an_error_come_in_every_call(served):
    gradient = pb.grad(pb.staged(lambda q: np.sum(np.log(q))))
    often(gradient, np.ones(2), n=60)
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
            gradient(np.array([0.0, 1.0]))
    served.clear()
    assert gradient(np.ones(2)).tolist() == [1.0, 1.0]
    assert len(served) == 1
    product = pb.grad(pb.staged(lambda q: np.sum(np.linalg.inv(q))))
    often(product, np.eye(2), n=60)
    with pytest.raises(np.linalg.LinAlgError):
        product(np.zeros((2, 2)))
    assert product(np.eye(2)).tolist() == [[-1.0, -1.0], [-1.0, -1.0]]


PIECES = ["np.sin({})", "{} * 0.5", "{} * q", "{} + TABLE", "{}[::-1]", "np.exp(-{} * {})", "-{}", "{} / (1.0 + q * q)"]


@pytest.mark.slow
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4), st.floats(-2, 2), st.sampled_from(WAYS))
def test_drawn_programs(pieces, at, way):
    text = "q"
    for piece in pieces:
        text = "(" + piece.format(text, text) + ")"
    f = pb.staged(eval(f"lambda q: np.sum({text})", globals()))  # noqa: S307
    ways, _ = derivatives(f)
    often(ways[way], X, n=8)
    if way == "reverse over reverse":
        often(ways[way], X, n=40)
    same_as_recorded(ways[way], np.array([at, 0.4]))


def test_functions_of_numpy_written_in_python_change_nothing():
    @pb.staged
    def padded(q):
        return np.sum(np.concatenate((np.ones(1), q, np.full(2, 0.5))) ** 3)

    gradient = pb.grad(padded)
    often(same_as_recorded, gradient, X)
    assert staged_of(padded).warm.gradients.kept, staged_of(padded).warm.gradients.why
