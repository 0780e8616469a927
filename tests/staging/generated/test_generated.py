"""Error states, warning filters and operations that fail by value: a step waits for none of them to be over."""

import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from tests.staging.generated.both_ways import loop_over, measured, require_same, stages

import pullback as pb
from pullback.staging.generated.generated import errors_are_ordinary

X = np.array([3.0, 4.0, 5.0, 6.0])


def catching(block, error):
    """A body that changes what an operation does that fails, and catches what it raises."""

    def body(k, u, x):
        with block():
            try:
                v = np.log(u - 0.3 * k)
            except error:
                v = u * 0.1
        return v * 0.5 + x

    return body


def raising():
    return np.errstate(all="raise")


@contextmanager
def filtering():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def failing(k, u, x):
    try:
        v = np.linalg.inv(np.eye(2) * (5 - k) * u[0]).sum()
    except np.linalg.LinAlgError:
        v = 0.3
    return u * 0.5 + v * 0.1 + x


def ignoring(k, u, x):
    with np.errstate(all="ignore"):
        v = np.sqrt(u - 3.5)
    return np.where(np.arange(4) > 1, u, 0.5) + x * 0.1 + v[3] * 0.0


CAUGHT = [catching(raising, FloatingPointError), catching(filtering, RuntimeWarning), failing, ignoring]


@pytest.mark.parametrize("body", CAUGHT, ids=["raising", "filtering", "failing", "ignoring"])
def test_a_body_that_catches_what_an_operation_raises(body):
    require_same(loop_over(body), X, policies=(pb.SaveAll(), pb.Recompute(3)))


@pytest.mark.parametrize("how", ["raise", "call", "ignore"])
def test_the_error_state_around_the_loop(how):
    seen = []
    with np.errstate(invalid=how, call=lambda *told: seen.append(told)):
        for staging in ("off", "numpy"):
            try:
                measured(loop_over(lambda k, u, x: np.log(u - 0.3 * k)), X, pb.SaveAll(), staging)
            except FloatingPointError:
                seen.append("raised")
        assert errors_are_ordinary() is (how == "ignore")
    assert len(seen) % 2 == 0
    assert seen[: len(seen) // 2] == seen[len(seen) // 2 :]
    assert errors_are_ordinary()


def test_a_warning_names_the_line_of_the_body():
    def body(k, u, x):
        np.log(u - 0.6 * k)  # which nobody reads
        return u * 0.9 + x * 0.1

    lines = []
    for staging in ("off", "numpy"):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            measured(loop_over(body), X, pb.SaveAll(), staging)
        lines.append({str(w.message) for w in found})
        staged = [(w.filename, w.lineno) for w in found]
    assert stages()
    assert lines[0] == lines[1]
    assert (__file__, body.__code__.co_firstlineno + 1) in staged
