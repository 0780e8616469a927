"""An interrupt at any line of the stores, an error in any step: nothing is left on disk, nobody waits forever, and the
next gradient is right."""

import _thread
import gc
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import wraps
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.stores import Disk, Stored, Zlib
from pullback.stores.background import Background
from pullback.stores.folders import folder_in

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
    """Raises at the ``at``-th line, or instruction, that is run in the stores by this thread."""

    def __init__(self, at, error=KeyboardInterrupt, *, event="line"):
        self.left, self.error, self.event = at, error, event

    def __enter__(self):
        sys.settrace(self)
        return self

    def __exit__(self, kind, *_):
        sys.settrace(None)
        return kind is self.error

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(STORES):
            return None
        frame.f_trace_opcodes = self.event == "opcode"
        if event == self.event:
            self.left -= 1
            if not self.left:
                sys.settrace(None)
                raise self.error
        return self


def in_a_thread(test):
    """The test in a thread of its own. An error that a trace function raises in the middle of a handler may stay what
    Python takes to be handled there: it would be in the message of every later error."""

    @wraps(test)
    def run(**given):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(test, **given).result()

    return run


@pytest.fixture(autouse=True)
def no_collector():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.share(3, of=lambda every, **_: every)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a lock file that nobody has closed
@pytest.mark.parametrize("f", [marked, nested])
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda place: Stored(pb.Binomial(2), memory=place),
        lambda place: Stored(pb.SaveAll(), memory=place),
        lambda place: pb.Periodic(3, tier=place),
        lambda place: pb.Keep({np.sin: place}),
    ],
)
@pytest.mark.parametrize("every", [37, pytest.param(5, marks=pytest.mark.slow)])
@in_a_thread
def test_an_interrupt_at_any_line(f, wrapped, every, tmp_path):
    policy, expected = wrapped(Disk(tmp_path, codec=Zlib(), queue=1)), pb.grad(f)(X)
    n_threads = _thread._count()
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
    assert_ends(n_threads)


def assert_ends(n_threads):
    """No more threads are there than before. Those of the stores are none of :mod:`threading`; they end in a moment."""
    ends = time.monotonic() + 5.0
    while _thread._count() > n_threads:
        assert time.monotonic() < ends
        time.sleep(0.001)


def interrupted_everywhere(made, used, error=KeyboardInterrupt):
    """What ``made`` gives, each time, once ``used`` was interrupted at its next instruction."""
    at, interrupted = 1, True
    while interrupted:
        given = made()
        with Interrupt(at, error, event="opcode") as interrupt:
            used(given)
        interrupted = interrupt.left <= 0
        yield given
        at += 1
    assert at > 20


@in_a_thread
def test_a_thread_ends_wherever_an_interrupt_came_as_it_began():
    n_threads = _thread._count()
    for background in interrupted_everywhere(Background, lambda background: background.do(int)):
        background.close()
        assert_ends(n_threads)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a lock file that nobody has closed
@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError, ZeroDivisionError])
@in_a_thread
def test_a_folder_and_its_lock_go_wherever_an_interrupt_came(error, tmp_path):
    """That of a time limit may be any error, and the file system's own."""

    def opened():
        folder = folder_in(tmp_path, None, "")
        folder.make()
        (Path(folder.path) / "1.npy").write_bytes(b"1")
        return folder

    def close(folder):  # as the stores do
        try:
            folder.close()
        except BaseException:
            folder.close()
            raise

    numbers = Path("/proc/self/fd")
    before = len(list(numbers.glob("*")))
    for folder in interrupted_everywhere(opened, close, error):
        assert not Path(folder.path).exists()
        opened().close()  # the next run removes a lock file that is left
        assert list(tmp_path.iterdir()) == []
    del folder
    assert len(list(numbers.glob("*"))) == before

    def make(folder):
        with suppress(pb.StoreError):  # an error of the file system, for all that is known
            folder.make()

    for folder in interrupted_everywhere(lambda: folder_in(tmp_path, None, ""), make, error):
        folder.close()
        assert list(tmp_path.iterdir()) == []
    del folder
    assert len(list(numbers.glob("*"))) == before


@pytest.mark.parametrize("at", [1, 5])
def test_an_error_in_a_step_of_which_some_values_are_elsewhere(at, tmp_path):
    def body(k, u):
        return np.sin(u) if k < at else {}[k] * u

    with suppress(KeyError):
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, body, x)), policy=pb.Keep({np.sin: Disk(tmp_path)}))(X)
    assert list(tmp_path.iterdir()) == []


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
