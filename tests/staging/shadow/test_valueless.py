"""Handles without values: what they answer, and that one which leaks from its step raises by name."""

import math
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.staging.generated.both_ways import loop_over, measured, require_same, stages

import pullback as pb
from pullback.staging.shadow.valueless import CLASSES, kind_name
from pullback.testing.comparing.bits import same_bits
from pullback.tracing.tracer import Tracer

X = np.array([0.3, -0.7, 1.1, 0.2])
LEAKED: list = []


@pytest.fixture
def leaked():
    """A handle of a step that was followed."""

    def body(k, u, x):
        v = np.sin(u) * x
        LEAKED[:] = [v]
        return v + 1.0

    measured(loop_over(body), X, pb.SaveAll(), "numpy")
    assert stages()
    return LEAKED.pop()


@pytest.mark.parametrize(
    "use",
    [
        lambda v: v * 2.0,
        lambda v: np.ones(4) + v,
        np.sin,
        np.sum,
        lambda v: v[0],
        lambda v: v.__setitem__(0, 1.0),
        lambda v: v.__iadd__(1.0),
        lambda v: -v,
        lambda v: v.reshape(2, 2),
        np.zeros_like,
        lambda v: pb.grad(lambda x: np.sum(x * v))(X),
        lambda v: pb.fori_loop(0, 3, lambda k, u: u * v, X),
    ],
)
def test_a_leaked_handle_raises_by_name(leaked, use):
    with pytest.raises(pb.TracerError, match=r"(step|trace) (that )?has ended .*leaked out of .*Return"):
        use(leaked)


def test_a_handle_that_leaks_into_a_later_step_raises():
    kept = []

    def body(k, u, x):
        kept.append(u * x)
        return np.sin(kept[8]) * x if k == 11 else np.sin(u) * x

    for staging in ("off", "numpy"):
        kept.clear()
        with pytest.raises(pb.TracerError):
            measured(loop_over(body), X, pb.SaveAll(), staging)


def test_the_spec_answers_in_a_followed_step():
    seen = []

    def body(k, u, x):
        v = u.reshape(2, 2)
        seen.append((v.shape, v.ndim, v.size, v.dtype, len(v), isinstance(v, pb.Tracer)))
        return np.sin(v).reshape(4) * x

    require_same(loop_over(body), X, policies=(pb.SaveAll(),))
    assert len(set(seen)) == 1
    assert seen[0] == ((2, 2), 2, 4, np.dtype(float), 2, True)
    assert stages()


@pytest.mark.parametrize("ask", [float, int, hash, np.asarray, math.sin])
def test_what_a_tracer_refuses_is_refused_alike(ask):
    def body(k, u, x):
        v = np.sin(u) * x
        if k == 8:
            ask(v[0])
        return v

    said = []
    for staging in ("off", "numpy"):
        with pytest.raises((pb.PullbackError, TypeError)) as raised:
            measured(loop_over(body), X, pb.SaveAll(), staging)
        said.append((type(raised.value), str(raised.value)))
    assert said[0] == said[1]


def test_every_kind_of_handle_has_one_without_a_value():
    found = []
    pb.grad(lambda x: found.extend(map(kind_name, (x, x[:2], np.zeros_like(x)))) or np.sum(x))(X)
    assert found == ["tracer", "view", "buffer"]
    assert all(issubclass(CLASSES[name], Tracer) for name in (*found, "weak"))


KEPT = []
KEEPING = {
    "the handle": lambda v: v,
    "a weak reference": lambda v: (weakref.ref(v), KEPT.append(v))[0],
    "a method": lambda v: v.sum,
    "a view": lambda v: v[1:],
    "a view's view": lambda v: v[1:][::2],
    "an iterator": iter,
}


def found_in(thing):
    """The handle behind what was kept."""
    if isinstance(thing, weakref.ref):
        return thing()
    if isinstance(thing, list):
        return thing[0]
    if hasattr(thing, "__next__"):
        return next(thing)
    return thing() if callable(thing) else thing


@pytest.mark.parametrize("when", [(4,), (4, 5, 6), range(12)], ids=["once", "some", "always"])
@pytest.mark.parametrize("how", KEEPING)
def test_a_handle_that_somebody_keeps_is_not_that_of_a_later_step(how, when):
    def body(k, u, x):
        v = np.sin(u) * x
        if k in when:
            kept.append(KEEPING[how](v))
        v = v * 0.5 + u[::-1]
        if k == 9 and uses:
            v = v + np.sum(found_in(kept[0]))
        if k == 11:
            kept.clear()
        return v

    uses, kept = False, []
    require_same(loop_over(body), X, policies=(pb.SaveAll(),))
    uses = True
    for staging in ("off", "numpy"):
        kept.clear()
        with pytest.raises(pb.TracerError):
            measured(loop_over(body), X, pb.SaveAll(), staging)
    KEPT.clear()


@pytest.mark.parametrize("keep", [lambda u, x: u, lambda u, x: x * 1.0, lambda u, x: u.T])
def test_what_enters_and_what_is_captured_is_not_that_of_a_later_step_either(keep):
    kept = []

    def body(k, u, x):
        kept.append(keep(u, x))
        return np.sin(kept[3] if k == 8 else u) * x

    for staging in ("off", "numpy"):
        kept.clear()
        with pytest.raises(pb.TracerError):
            measured(loop_over(body), X, pb.SaveAll(), staging)


def test_handles_are_made_once_where_nobody_keeps_them():
    seen = []

    def body(k, u, x):
        v = np.sin(u) * x
        v[1:] += u[:-1]
        v *= 0.5
        seen.append(id(v))
        return v + np.sum(v[1:] * x[1:])

    require_same(loop_over(body), X, policies=(pb.SaveAll(),))
    assert len(set(seen[-8:])) == 1


def test_a_handle_that_was_written_to_stands_for_its_first_value_again():
    def body(k, u, x):
        u[k % 2] = 0.25
        v = np.zeros_like(u)
        v[:] = u * x
        w = v[1:]
        v[0] += 1.5
        w[0] *= 0.5
        v /= 2.0
        return u * 0.5 + np.sin(v) + np.sum(w)

    require_same(loop_over(body), X)
    assert stages()


def test_two_kinds_of_steps_in_turns():
    def body(k, u, x):
        v = np.sin(u) * x
        w = v[1:] if k % 2 else v[:-1]
        return v + np.sum(w * w) * (u if k % 3 else x)

    require_same(loop_over(body, 40), X)


def test_a_loop_in_two_threads_at_once():
    def body(k, u, x):
        v = np.sin(u) * x
        v *= 0.5
        return v + np.sum(u)

    f = loop_over(body, 60)
    wanted = measured(f, X, pb.SaveAll(), "off")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: measured(f, X, pb.SaveAll(), "numpy"), range(12)))
    assert all(same_bits(one, wanted) for one in found)
