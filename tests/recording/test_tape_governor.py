"""What a trace tells its governor, in which order, and what it asks."""

import numpy as np
import pytest

import pullback as pb
from pullback.memory.in_force import innermost
from pullback.programs.plain.plain_code import PlainCode
from pullback.recording.tape import REPLAYABLE, Governor

X = np.linspace(0.1, 0.9, 4)


@pytest.fixture
def told(monkeypatch):
    """The calls of a spy in the place of the governor of ``pb.vjp`` traces, with the number of records then."""
    calls = []

    class Spy(Governor):
        replays, executes = False, True

        def __init__(self, *_, **__):
            self.tape = None

        def note(self, what):
            calls.append((what, len(self.tape.records)))

        def open(self, tape):
            self.tape = tape
            self.note("open")

        def finish(self):
            self.note("finish")

        def before_record(self, record, operands, values, params, rerun=None):
            self.note("before_record")
            assert self.tape.mode == REPLAYABLE
            assert len(operands) == len(values)

        def before_write(self, root):
            self.note("before_write")

        def watch(self, handle):
            self.note("watch")

        def meet(self):
            self.note("meet")

        def mark(self):
            self.note("mark")

        def close(self):
            """Asked by the pull when it is closed."""

    monkeypatch.setattr(PlainCode, "of", Spy)
    return calls


def without_watch(told):
    return [call for call in told if call[0] != "watch"]


def test_a_record_is_told_before_it_is_there(told):
    pb.vjp(lambda x: np.sin(x) * 2.0, X, policy=pb.Recompute())
    assert told[0] == ("open", 0)
    assert without_watch(told)[1:] == [("before_record", 1), ("before_record", 2), ("finish", 3)]


def test_a_write_is_told_before_it_happens_and_again_before_its_record(told):
    def f(x):
        u = np.sin(x)
        u[0] = 1.0
        return u

    pb.vjp(f, X, policy=pb.Recompute())
    assert without_watch(told)[1:] == [("before_record", 1), ("before_write", 2), ("before_record", 2), ("finish", 3)]


def test_a_plain_buffer_that_is_written_gets_a_record_of_its_own(told):
    def f(x):
        u = np.zeros_like(x)
        u[:] = x
        return u

    pb.vjp(f, X, policy=pb.Recompute())
    assert without_watch(told)[1:] == [("before_record", 1), ("before_write", 2), ("before_record", 2), ("finish", 3)]


def test_each_of_several_outputs_is_told(told):
    pb.vjp(lambda x: np.linalg.qr(x.reshape(2, 2))[1], X, policy=pb.Recompute())
    assert [n for what, n in told if what == "before_record"] == [1, 2, 3, 4]


def test_a_loop_is_a_mark(told):
    pb.vjp(lambda x: pb.fori_loop(0, 3, lambda k, u: np.sin(u), x), X, policy=pb.Recompute())
    assert ("mark", 1) in told


def test_a_value_of_a_trace_around_is_told(told):
    pb.vjp(lambda y: pb.vjp(lambda x: x * y, X, policy=pb.Recompute())[0], X, policy=pb.SaveAll())
    assert "meet" in [what for what, _ in told]


def test_save_all_and_forward_traces_have_none():
    governors = []

    def f(x):
        governors.append(innermost().governor)
        return np.sin(x)

    pb.vjp(f, X)
    pb.jvp(f, (X,), (X,))
    assert governors == [None, None]
