"""Primitives with an effect: each call is made once, in its order, in staged steps, too."""

import numpy as np
import pytest
from tests.staging.generated.both_ways import POLICIES, loop_over, reasons, stages

import pullback as pb
from pullback.backends.plans import Call, Kernel, Plan
from pullback.staging.generated import shelf
from pullback.testing.comparing.bits import same_bits
from pullback.words.ordered_calls import fed, ordered_forward

X = np.array([0.3, -0.8, 0.9, 0.2])
LOG = []


@pytest.fixture(autouse=True)
def _anew():
    shelf.forget()
    LOG.clear()


@pb.primitive(ordered=True, guarded=False, linear=("u",))
def tap(u, *, name="t"):
    """Keeps what it is given, and hands it on."""
    LOG.append((name, u))
    return u


@tap.vjp("u")
def _tap_rule(ct):
    return ct


def tapped(k, u, x):
    v = np.sin(u * x)
    w = tap(v, name="a")
    tap(v * 2.0, name="nobody reads it")
    LOG.append(("python", np.float64(k)))
    y = tap(w * x, name="b")
    y *= 0.5
    return y + u * 0.1


def branched(k, u, x):
    w = tap(np.sin(u * x), name="a")
    if np.sum(w) > 0.45 and k % 3:
        w = tap(w * 0.5, name="less")
    return w + tap(np.cos(u), name="b") * 0.1


def seen_once_in_a_while(k, u, x):
    w = tap(np.sin(u * x), name="a")
    if k == 9:
        w = w * 0.5
    return w + u * 0.1


def by_python(k, u, x):
    w = tap(np.sin(u) * x, name="a")
    LOG.append(("seen", LOG[-1][1] * 2.0))
    return w * float(LOG[-1][1][0])


def on_what_has_no_derivative(k, u, x):
    zeros = np.zeros_like(u)
    zeros[1:] += 0.5
    return np.sin(u * x) + tap(zeros, name="a") * 0.1 + tap(np.arange(u.size) * 0.1, name="plain")


def on_a_view(k, u, x):
    v = u * x
    tap(v[1:], name="before")
    v[1:] *= 0.5
    tap(v[1:], name="after")
    return np.sin(v)


BODIES = (tapped, branched, seen_once_in_a_while, by_python, on_what_has_no_derivative, on_a_view)


def logged(f, x, policy, staging):
    LOG.clear()
    with pb.using(staging=staging):
        found = pb.value_and_grad(f, policy=policy)(x)
    return found, [(name, np.asarray(value).tobytes()) for name, value in LOG]


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("size", [1, 1000])
def test_the_log_and_the_bits_are_those_of_recorded_steps(body, policy, size):
    f = loop_over(body, 24)
    for x in (np.tile(X, size), np.tile(X[::-1], size) * 1.2 + 0.1):
        wanted = logged(f, x, policy, "off")
        for _ in range(3):
            found = logged(f, x, policy, "numpy")
            assert same_bits(found[0], wanted[0])
            if isinstance(policy, pb.SaveAll):
                assert found[1] == wanted[1]
    assert stages()
    assert not reasons()


def test_a_staged_function_keeps_the_order_too():
    def energy(q):
        return np.sum(tap(np.sin(tap(q * 2.0, name="first")) * q, name="then"))

    staged = pb.staged(energy)
    for x in (X, X * 2, X):
        found = []
        for f in (energy, staged):
            LOG.clear()
            found.append((pb.value_and_grad(lambda x, f=f: f(x) * f(x * 0.5))(x), [v.tobytes() for _, v in LOG]))
        assert same_bits(found[0][0], found[1][0])
        assert found[0][1] == found[1][1]
    assert pb.explain_stage(staged).stages


def test_marked_steps_and_checkpoints_with_such_a_call_are_executed_one_by_one():
    def marked(x):
        for _ in pb.steps(30):
            x = tap(np.sin(x), name="a")
        return np.sum(x)

    def checkpointed(x):
        for _ in range(5):
            x = pb.checkpoint(lambda u: tap(np.sin(u), name="a"))(x)
        return np.sum(x)

    for f, policy in ((marked, pb.Binomial(3)), (checkpointed, pb.SaveAll())):
        wanted = logged(f, X, policy, "off")
        for _ in range(3):
            found = logged(f, X, policy, "numpy")
            assert same_bits(found[0], wanted[0])
            assert found[1] == wanted[1]


def test_a_call_that_fails_fails_where_it_stands_and_is_not_made_again():
    calls = []

    @pb.primitive(ordered=True, guarded=False, linear=("u",), vjps={"u": lambda ct: ct})
    def fragile(u):
        calls.append(len(calls))
        if len(calls) % 17 == 0:
            raise OSError("lost")
        return u * 1.0

    def body(k, u, x):
        v = np.sin(u * x)
        try:
            v = fragile(v)
        except OSError:
            v = v * 2.0
        return v + 0.1 * x

    found = []
    for staging in ("off", "numpy", "numpy"):
        calls.clear()
        with pb.using(staging=staging):
            found.append((pb.value_and_grad(loop_over(body, 40))(X), len(calls)))
    assert same_bits(found[0][0], found[1][0])
    assert same_bits(found[0][0], found[2][0])
    assert found[0][1] == found[1][1] == found[2][1] == 40


def test_one_that_gives_several_is_recorded():
    @pb.primitive(ordered=True, guarded=False, linear=("u",), outputs=("a", "b"))
    def both(u):
        LOG.append(("both", u.copy()))
        return u * 1.0, u * 2.0

    @both.vjp("u")
    def _rule(cts):
        return cts[0] + 2.0 * cts[1]

    def body(k, u, x):
        one, other = both(np.sin(u * x))
        return one + 0.1 * other

    wanted = logged(loop_over(body), X, pb.SaveAll(), "off")
    for _ in range(3):
        found = logged(loop_over(body), X, pb.SaveAll(), "numpy")
        assert same_bits(found[0], wanted[0])
        assert found[1] == wanted[1]
    assert not stages()
    assert any("more than one" in why for why in reasons())


def test_a_rule_with_such_a_call_is_not_tried():
    @pb.primitive(linear=("u",), guarded=False)
    def both_ways(u):
        return u * 1.0

    @both_ways.vjp("u")
    def _rule(ct):
        return tap(ct, name="back")

    def body(k, u, x):
        return both_ways(np.sin(u * x))

    wanted = logged(loop_over(body), X, pb.SaveAll(), "off")
    assert logged(loop_over(body), X, pb.SaveAll(), "numpy")[1] == wanted[1]
    assert not stages()
    assert any("has an effect" in why for why in reasons())


def test_what_is_fed_is_given_in_the_place_of_calls():
    made = ordered_forward(lambda x: LOG.append(x) or x)
    a = np.ones(2)
    with fed([a]):
        given = made(np.zeros(2))
        assert given is not a
        assert np.array_equal(given, a)
        with pytest.raises(LookupError, match="has an effect"):
            made(np.zeros(2))
    assert not LOG
    assert made(a) is not a
    assert len(LOG) == 1


def test_it_can_be_no_view():
    with pytest.raises(pb.DeclarationError, match="ordered"):
        pb.primitive(lambda x: x, name="it", view=True, ordered=True)


def call(kind, *, ordered=False):
    return Call(kind, np.sin, (), {}, 0, (), None, (), (), ordered)


@pytest.mark.parametrize(
    ("order", "good"),
    [
        ([0, 1, 2, 3], True),
        ([0, 1, 3, 2], True),
        ([1, 0, 2, 3], False),
        ([0, 2, 1, 3], False),
        ([0, Kernel((1, 2), np.sin, ()), 3], False),
        ([0, 1, Kernel((2, 3), np.sin, ())], True),
        ([Kernel((0, 2), np.sin, ()), 1, 3], False),
    ],
)
def test_a_backend_moves_nothing_past_one(order, good):
    plan = Plan("record", (call("ufunc"), call("other", ordered=True), call("ufunc"), call("ufunc")), {}, (), True)
    if good:
        assert plan.checked(order) == order
        return
    with pytest.raises(ValueError, match="ordered"):
        plan.checked(order)
