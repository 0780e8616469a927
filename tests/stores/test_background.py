"""An interrupt at any line of the stores, an error in any step: nothing is left on disk, nobody waits forever, and the
next gradient is right."""

import gc
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.stores import Disk, Stored, Zlib
from pullback.stores.background import Background

X = np.linspace(0.1, 0.9, 5)
STORES = str(Path(sys.modules["pullback.stores"].__file__).parent)


def marked(x):
    u = x
    for _ in pb.steps(8):
        u = np.sin(u) * x + u
    return np.sum(u)


def nested(x):
    inner = lambda u: pb.fori_loop(0, 2, lambda _, v: np.sin(v) * x, u)  # noqa: E731
    return np.sum(pb.fori_loop(0, 6, lambda _, u: inner(u) + 0.1 * u, x))


class Interrupt:
    """Raises at the ``at``-th line that is run in the stores by this thread."""

    def __init__(self, at):
        self.left = at

    def __enter__(self):
        sys.settrace(self)
        return self

    def __exit__(self, kind, *_):
        sys.settrace(None)
        return kind is KeyboardInterrupt

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(STORES):
            return None
        if event == "line":
            self.left -= 1
            if not self.left:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


@pytest.fixture(autouse=True)
def no_collector():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.share(2)
@pytest.mark.parametrize("f", [marked, nested])
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda place: Stored(pb.Binomial(2), memory=place),
        lambda place: Stored(pb.SaveAll(), memory=place),
        lambda place: pb.Periodic(3, tier=place),
    ],
)
@pytest.mark.parametrize("every", [37, pytest.param(5, marks=pytest.mark.slow)])
def test_an_interrupt_at_any_line(f, wrapped, every, tmp_path):
    policy, expected = wrapped(Disk(tmp_path, codec=Zlib(), queue=1)), pb.grad(f)(X)
    at, interrupted = 1, True
    while interrupted:
        with Interrupt(at) as interrupt:
            pb.grad(f, policy=policy)(X)
        interrupted = interrupt.left <= 0
        assert list(tmp_path.iterdir()) == [], at
        at += every
    assert at > 2
    assert np.array_equal(pb.grad(f, policy=policy)(X), expected)
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() == 1 or not any("pullback" in t.name for t in threading.enumerate())


CALLS = {
    "grad": lambda f, policy: pb.grad(f, policy=policy)(X),
    "value_and_grad": lambda f, policy: pb.value_and_grad(f, policy=policy)(X),
    "checkpoint": lambda f, policy: pb.grad(pb.checkpoint(f, policy))(X),
    "jacobian": lambda f, policy: pb.jacobian(f, mode="reverse", policy=policy)(X),
    "hvp": lambda f, policy: pb.hvp(f, (X,), (X,), policy=policy),
    "on_adjoint": lambda f, policy: pb.grad(f, policy=policy, on_adjoint={"u": lambda *_: None})(X),
    "plan": lambda f, policy: pb.plan(f, X, policy=policy),
    "saved": lambda f, policy: pb.saved(f, X),
    "record": lambda f, policy: pb.record(f, X),
}


@pytest.mark.parametrize("at", [7, 17, 19, 26, 33, 1000])
@pytest.mark.parametrize("call", CALLS)
def test_an_error_in_one_of_two_loops(call, at, tmp_path):
    """The other one, whose reverse pass has not come, lets go of its files as well."""
    stored, runs = Stored(pb.Binomial(2), memory=Disk(tmp_path)), [0]

    def f(x):
        def body(_, u):
            runs[0] += 1
            if runs[0] == at:
                raise ZeroDivisionError
            return np.cos(u) * x

        first = pb.fori_loop(0, 9, body, pb.name(x * 1.0, "u"), policy=stored)
        return np.sum(pb.fori_loop(0, 9, body, first, policy=stored))

    with suppress(ZeroDivisionError):
        CALLS[call](f, stored)
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_goes_to_another_directory(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    expected = pb.grad(marked)(X)
    _, pull = pb.vjp(marked, X, policy=pb.Periodic(2, tier=Disk("here")))
    monkeypatch.chdir(tmp_path / "other")
    assert np.array_equal(pull(1.0)[0], expected)
    pull.close()
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_what_is_not_done_when_a_process_is_forked_off_it_does_itself():
    background, begin = Background(), threading.Event()
    waits = background.do(begin.wait)
    job = background.do(lambda: 5)
    child = os.fork()
    if not child:
        os._exit(job.result())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    assert not waits.done
    begin.set()
    assert job.result() == 5
    background.close()


def test_what_waits_when_it_is_closed_is_not_begun():
    background, begin, done = Background(), threading.Event(), []
    first = background.do(begin.wait)
    later = background.do(done.append, 1)
    background.closed = True
    begin.set()
    background.close()
    background.close()
    assert first.done
    assert later.done
    assert later.cancelled
    assert done == []


def test_a_file_system_with_errors_of_its_own(tmp_path):
    class RefusedError(Exception):
        pass

    class Remote:
        def open(self, path, mode):
            raise RefusedError("no such bucket")

        def makedirs(self, path, exist_ok):
            Path(path).mkdir(exist_ok=exist_ok)

        def rm(self, path, recursive):
            Path(path).rmdir()

    with pytest.raises(pb.StoreError, match=r"array 0 of the state of step 0 .* could not be written .*no such bucket"):
        pb.grad(marked, policy=pb.Periodic(2, tier=Disk(tmp_path, files=Remote())))(X)
    assert list(tmp_path.iterdir()) == []
