"""Handles without values: what they answer, and that one which leaks from its step raises by name."""

import math

import numpy as np
import pytest
from tests.staging.both_ways import loop_over, measured, require_same, stages

import pullback as pb
from pullback.staging.valueless import CLASSES, kind_name
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
