"""What somebody has still is never written: a result goes into operands that die, and into no other."""

import sys
import threading
import traceback
import weakref

import numpy as np
import pytest
from tests.rules.new_arrays import same
from tests.tracing.dying_operands import HOLDERS, KEPT, N, X, by_a_partial, by_a_variable, by_nobody, in_new_arrays

import pullback as pb

pytestmark = pytest.mark.usefixtures("sooner")
POLICIES = (pb.Recompute(2), pb.Binomial(2), pb.Keep(), pb.Budget("1 MB"))


def told(kept):
    """What is kept, as it is now."""
    kept = [one() for one in kept if callable(one)] + [one for one in kept if not callable(one)]
    return [np.array(getattr(one, "_value", one)).tobytes() for one in kept if one is not None]


@pytest.mark.parametrize("f", HOLDERS, ids=lambda f: f.__name__)
def test_what_somebody_has_is_never_written(monkeypatch, f):
    before, at_end = X.tobytes(), []

    def program(x):
        out = f(x)
        at_end[:] = told(KEPT)
        return np.sum(out * np.cos(out))

    def run():
        KEPT.clear()
        value, g = pb.value_and_grad(program)(X)
        assert X.tobytes() == before
        return [value, g], list(at_end)

    (found, kept), (expected, kept_so) = run(), in_new_arrays(monkeypatch, run)
    same(found, expected)
    assert kept == kept_so
    if f is not by_a_partial:
        same([found[0]], [program(X)])


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("f", HOLDERS, ids=lambda f: f.__name__)
def test_every_policy_has_the_same_bits(f, policy):
    KEPT.clear()
    run = lambda policy: pb.grad(lambda x: np.sum(np.square(f(x))), policy=policy)(X)  # noqa: E731
    same([run(policy)], [run(None)])
    KEPT.clear()


@pytest.mark.parametrize("f", HOLDERS, ids=lambda f: f.__name__)
def test_derivatives_of_derivatives_have_the_same_bits(monkeypatch, f):
    loss = lambda x: np.sum(f(x) * np.sin(x))  # noqa: E731

    def run():
        KEPT.clear()
        return [
            pb.hvp(loss, (X,), (np.cos(X),)),
            *pb.jvp(pb.grad(loss), (X,), (np.cos(X),)),
            pb.grad(lambda x: np.sum(pb.grad(loss)(x) * X))(X),
            pb.grad(lambda x: pb.jvp(loss, (x,), (np.cos(X),))[1])(X),
        ]

    same(run(), in_new_arrays(monkeypatch, run))


@pytest.mark.parametrize("f", HOLDERS, ids=lambda f: f.__name__)
def test_a_pull_that_stays_gives_the_same_again(f):
    KEPT.clear()
    seed = np.cos(X)
    out, pull = pb.vjp(lambda x: np.ravel(f(x)), X)
    seed = np.resize(seed, out.shape)
    first, several, again = pull(seed), pull([seed, 2.0 * seed]), pull(seed)
    same(first, again)
    same(first, several[0])


def test_what_is_within_loops_and_steps_is_the_same(monkeypatch):
    def steps(x):
        u = x
        for _ in pb.steps(4):
            u = u * 0.5 + x * 0.25 - (u * 0.1 + 1.0)
        return np.sum(u * 2.0 + 1.0)

    def loop(x):
        body = lambda _, u: u * 0.5 + x * 0.25 - (u * 0.1 + 1.0)  # noqa: E731
        return np.sum(pb.fori_loop(0, 4, body, x * 2.0 + 1.0) * 2.0 + 1.0)

    def checkpointed(x):
        layer = pb.checkpoint(lambda u: np.sin(u * 0.5 + 1.0) * 2.0 - 1.0)
        return np.sum(layer(layer(x * 2.0 + 1.0) * 2.0 + 1.0) * 2.0 + 1.0)

    policies = (None, pb.Binomial(2), pb.Recompute(2))
    for f in (steps, loop, checkpointed):

        def run(f=f):
            return [pb.grad(f, policy=policy)(X) for policy in policies]

        found = run()
        same(found, in_new_arrays(monkeypatch, run))
        same(found[1:], [found[0], found[0]])


# -------------------------------------------------------------------------------------------------- errors and watchers
def test_an_error_on_the_way_leaves_what_can_be_seen(monkeypatch):
    zero = np.zeros(N)
    seen = []

    def f(x):
        t = x * 2.0
        try:
            with np.errstate(all="raise"):
                return np.sum(t * 1.0 / zero)
        except FloatingPointError as error:
            seen.append(error)
        return np.sum(t * 1.0 + t * 3.0)

    run = lambda: [pb.grad(f)(X)]  # noqa: E731
    found = run()
    same(found, in_new_arrays(monkeypatch, run))
    np.testing.assert_allclose(found[0], 8.0)


def test_who_keeps_the_handle_of_another_frame_is_told(taken):
    """What a traceback keeps is no value: an error, never another number."""
    zero, handles = np.zeros(N), []

    def f(x):
        try:
            with np.errstate(all="raise"):
                return np.sum((x * 2.0) / zero)
        except FloatingPointError as error:
            frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
            handles.extend(frame.f_locals["self"] for frame in frames if "self" in frame.f_locals)
        return np.sum(handles[0] + 1.0)

    with pytest.raises(AttributeError, match="_value"):
        pb.grad(f)(X)
    assert taken == ["/"]


def test_a_debugger_that_looks_at_frames_changes_nothing(monkeypatch):
    def look(frame, *_):
        dict(frame.f_locals)
        return look

    def run():
        before = sys.gettrace()
        sys.settrace(look)
        try:
            return [pb.grad(lambda x: np.sum(by_nobody(x) + by_a_variable(x)))(X)]
        finally:
            sys.settrace(before)

    found = run()
    same(found, [pb.grad(lambda x: np.sum(by_nobody(x) + by_a_variable(x)))(X)])
    same(found, in_new_arrays(monkeypatch, run))


WATCHES = {
    "a handle": lambda handle: handle,
    "its array": lambda handle: handle._value,
    "part of its array": lambda handle: handle._value[3:],
    "its bytes": lambda handle: memoryview(handle._value),
    "its value": pb.value,
    "its array, weakly": lambda handle: weakref.ref(handle._value),
    "a view": lambda handle: handle[3:],
}


@pytest.mark.parametrize("way", ["an operator", "a ufunc", "a view on the right", "a view on the left"])
@pytest.mark.parametrize("watch", WATCHES)
def test_a_profiler_may_keep_what_functions_return(watch, way):
    """It gets the temporary itself, on its way to the stack."""
    seen = []

    def look(frame, event, given):
        if event == "return" and frame.f_code.co_name == "__mul__" and not seen:
            sys.setprofile(None)
            seen.append(WATCHES[watch](given))

    def f(x):
        sys.setprofile(look)
        if way == "a ufunc":
            y = np.exp(x * 2.0)
        elif way == "an operator":
            y = x * 2.0 + 1.0
        else:
            y = x * 2.0 + x[::-1] if "right" in way else x[::-1] + x * 2.0
        found = seen[0]() if isinstance(seen[0], weakref.ref) else seen[0]
        if found is not None:
            at_end.append(np.array(getattr(found, "_value", found)))
        return np.sum(y * y)

    at_end = []
    before = sys.getprofile()
    try:
        g = pb.grad(f)(X)
    finally:
        sys.setprofile(before)
    expected = 4.0 * np.exp(4.0 * X) if way == "a ufunc" else 4.0 * (2.0 * X + 1.0)
    np.testing.assert_allclose(g, 10.0 * X + 8.0 * X[::-1] if "view" in way else expected)
    assert len(seen) == 1
    for kept in at_end:
        np.testing.assert_array_equal(kept, (2.0 * X)[-len(kept) :])


def test_threads_take_their_own(monkeypatch):
    def run():
        found = [None] * 4

        def work(k):
            found[k] = pb.grad(lambda x: np.sum(by_nobody(x) * (k + 1.0)))(X)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    same(run(), in_new_arrays(monkeypatch, run))
