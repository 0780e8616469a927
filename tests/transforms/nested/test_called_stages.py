"""How the stage of a call is made: compared with the ordinary way in a trace of its own, reverse included."""

from functools import partial

import numpy as np
import pytest

import pullback as pb
from pullback.staging.generated import shelf
from pullback.staging.generated.forward_statements import NotStageableError
from pullback.transforms.derivatives.called_again import _both
from pullback.transforms.nested import called_stages
from pullback.transforms.nested.call_leaves import kinds_of_call, leaves_of
from pullback.transforms.nested.called_stages import RECORDED, made

X, T = np.array([0.3, -0.7]), np.array([1.0, 0.5])


def stage_in_a_trace(f, args_of):
    found = []

    def outer(x):
        args = args_of(x)
        leaves, parts = leaves_of(f, args)
        kinds = kinds_of_call(leaves, len(args), x._tape)
        found.append(made(partial(_both, pb.jvp), f, len(args), parts, leaves, kinds, x._tape))
        return np.sum(x)

    pb.grad(outer)(X)
    return found[0]


def test_a_stage_knows_which_values_are_recorded():
    stage = stage_in_a_trace(lambda y: np.sum(np.sin(y)), lambda x: (T, x))
    assert stage.way == RECORDED
    assert stage.moves == [False, True]  # the value does not depend on what the trace knows
    assert stage.ready.exits.stage.entered == (True,)
    assert stage.active == [1]
    assert stage.still == [0]


@pytest.mark.parametrize(
    "f", [lambda y: y[:1], lambda y: y, lambda y: np.sum(y) if y[0] > 0 else np.sum(y * y), lambda y: 2.0],
    ids=["a part of an argument", "an argument", "decides", "a constant"],
)  # fmt: skip
def test_there_is_none(f):
    with pytest.raises(Exception, match=r".+"):
        stage_in_a_trace(f, lambda x: (x, T))


def test_another_reverse_is_refused(monkeypatch):
    reverse = called_stages.Ready.reverse
    monkeypatch.setattr(
        called_stages.Ready, "reverse", lambda self, *given: ([2.0 * ct for ct in reverse(self, *given)[0]], [])
    )
    with pytest.raises(NotStageableError, match="other bytes"):
        stage_in_a_trace(lambda y: np.sum(np.sin(y)), lambda x: (x, T))


def test_names_are_those_of_the_function():
    shelf.forget()
    stage = stage_in_a_trace(lambda y: np.sum(np.sin(y)), lambda x: (x, T))
    assert stage.names is globals()
