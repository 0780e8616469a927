"""The table of ``recording.crossing``: what a value of another trace is to this one."""

import sys

import numpy as np
import pytest

import pullback as pb
from pullback.recording.crossing import by_value, entered, present, raised, standing_for
from pullback.recording.handles import Handle
from pullback.solving.implicit_derivative import paused

X = np.linspace(0.5, 1.5, 4)


def inside(check):
    """The gradient of a program that runs ``check(x)`` on its tracer."""

    def program(x):
        check(x)
        return np.sum(x * x)

    np.testing.assert_array_equal(pb.grad(program)(X), 2 * X)


def test_a_plain_value_is_itself():
    def check(x):
        tape = x._tape
        for value in (X, 2.0, [1.0], None):
            assert present(value, tape) is value
            assert entered(value, tape) is value
        assert type(entered(np.asarray(X).view(np.recarray), tape)) is np.ndarray
        with pytest.raises(pb.NotDifferentiableError):
            entered(np.ma.masked_array(X), tape)

    inside(check)


def test_a_handle_of_this_trace_is_itself_and_computes_with_its_value():
    def check(x):
        assert present(x, x._tape) is x
        assert entered(x, x._tape) is x._value

    inside(check)


def test_of_a_trace_that_is_left_alone_the_value_counts():
    def check(x):
        for given in (x, x[1:]):
            with paused(x._tape):
                assert present(given, None) is given._value
                assert not standing_for(given).flags.writeable
                own = by_value(given)
            np.testing.assert_array_equal(own, given._value)
            assert not np.shares_memory(own, given._value)
        assert by_value(x) is x
        assert standing_for(x) is x

    inside(check)


def test_a_step_that_is_recorded_captures_what_it_reads():
    found = []

    def program(x):
        def body(_, u):
            if isinstance(u, Handle):
                found.append((present(x, u._tape), present(x, u._tape), u._tape))
            return u * x

        return np.sum(pb.fori_loop(0, 2, body, x))

    np.testing.assert_allclose(pb.grad(program)(X), 3 * X**2)
    first, second, tape = found[0]
    assert first._tape is second._tape is tape
    assert first._id == second._id


def test_a_trace_meets_the_one_around_it():
    def program(x):
        def inner(y):
            assert present(x, y._tape) is x
            held = entered(x, y._tape)
            assert held is not x
            assert (held._tape, held._id) == (x._tape, x._id)
            assert y._tape.outer is x._tape
            return np.sum(y * x)

        return np.sum(pb.grad(inner)(np.ones(4)) * x)

    np.testing.assert_array_equal(pb.grad(program)(X), 2 * X)


def test_what_is_raised_is_of_the_trace_around_and_depends_on_nothing():
    def check(x):
        tape = x._tape
        array, number, same = raised([X, 2.0, x], tape)
        assert (array._tape, array._id) == (tape, None)
        assert number == 2.0
        assert same is x

    inside(check)


class Box:
    """Something that freezing a closure does not look into."""

    held = None


@pytest.mark.parametrize("policy", [None, pb.Binomial(1)])
def test_what_a_loop_within_a_loop_hands_on_of_the_trace_around_both(policy):
    box = Box()

    def program(x):
        box.held = x * 3
        outer = lambda _, u: pb.fori_loop(0, 3, lambda _, v: box.held, u) + 0 * u  # noqa: E731
        return np.sum(pb.fori_loop(0, 3, outer, x, policy=policy))

    np.testing.assert_array_equal(pb.grad(program)(X), np.full(4, 3.0))


def test_without_traces_in_traces_nothing_of_this_is_asked():
    def program(x):
        buffer = np.zeros_like(x)
        buffer[1:] = x[:-1]
        buffer += x
        return np.sum(pb.fori_loop(0, 5, lambda _, u: np.sin(u) * X, buffer, policy=pb.Binomial(2)))

    gradient, entered_files = pb.grad(program), set()
    gradient(X)
    sys.setprofile(lambda frame, *_: entered_files.add(frame.f_code.co_filename.rpartition("pullback")[2]))
    try:
        gradient(X)
    finally:
        sys.setprofile(None)
    assert "/recording/writes.py" in entered_files
    assert "/recording/crossing.py" not in entered_files
