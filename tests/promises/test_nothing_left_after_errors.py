"""After an error or an interrupt, in a forward pass, a rule, or a body that is run again: no cycle, no byte in the
ledger, no policy in force."""

import gc
from contextlib import suppress

import numpy as np
import pytest

import pullback as pb
from pullback.memory.in_force import depth, policy_in_force

X = np.array([0.3, 0.5])
POLICIES = (pb.SaveAll(), pb.Recompute(), pb.Binomial(2), pb.Binomial(50))
RAISED: list[type[BaseException]] = []


@pb.primitive
def doubled(u):
    """Its rule raises when told to."""
    return u * 2


@doubled.vjp("u")
def _(ct):
    if RAISED:
        raise RAISED[0]
    return ct * 2


def _steps(body, x):
    for k in pb.steps(24):
        x = body(k, x)
    return x


FORMS = {
    "fori_loop": lambda body, x: pb.fori_loop(0, 24, body, x),
    "scan": lambda body, x: pb.scan(lambda u, _: (body(0, u), u), x, length=24)[0],
    "while_loop": lambda body, x: pb.while_loop(lambda s: s[0] < 24, lambda s: (s[0] + 1, body(0, s[1])), (0, x))[1],
    "steps": _steps,
    "nested": lambda body, x: pb.fori_loop(0, 8, lambda _, u: pb.fori_loop(0, 3, body, u), x),
    "checkpoint": lambda body, x: pb.checkpoint(lambda u: _steps(body, u))(x),
}
ERRORS = {
    "in the forward pass": (24, ZeroDivisionError, None),
    "interrupted in the forward pass": (13, KeyboardInterrupt, None),
    "in a body that is run again": (27, ZeroDivisionError, None),
    "interrupted in a body that is run again": (27, KeyboardInterrupt, None),
    "in a rule": (None, None, ZeroDivisionError),
    "interrupted in a rule": (None, None, KeyboardInterrupt),
    "changed": (None, pb.ReplayError, None),
}


def ends_in_an_error(form, error, policy):
    """Bytes left in the ledger after a gradient that ends in an error, or in none where nothing was run again."""
    at, kind, of_rule = ERRORS[error]
    calls, c, pull = [0], np.ones(2), None

    def body(_, u):
        calls[0] += 1
        if at is not None and calls[0] == at:
            raise kind
        return np.sin(doubled(u)) * c

    with suppress(of_rule or kind):
        pull = pb.vjp(lambda x: np.sum(FORMS[form](body, x)), X.copy(), policy=policy)[1]
        RAISED.extend([of_rule] if of_rule else ())
        c[:] = 3.0 if kind is pb.ReplayError else 1.0
        pull(1.0)
    RAISED.clear()
    if pull is None:
        return 0
    pull.close()
    return pull.report.live_bytes


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("form", FORMS)
def test_an_error_leaves_nothing(form, error, policy):
    ends_in_an_error(form, error, policy)  # what is made once and kept is made here
    gc.collect()
    gc.disable()
    try:
        assert ends_in_an_error(form, error, policy) == 0
        assert gc.collect() == 0
    finally:
        gc.enable()
    assert depth() == 0
    assert policy_in_force() == pb.SaveAll()
