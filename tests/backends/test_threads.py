"""The threads that work is divided among."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pullback.backends import threads
from pullback.backends.threads import side_by_side


@pytest.fixture(autouse=True)
def no_threads_are_left():
    yield
    threads.end()


def test_each_thread_works_once_and_all_have_ended():
    seen = []
    barrier = threading.Barrier(3, timeout=30)

    def work():
        barrier.wait()
        seen.append(threading.get_ident())

    side_by_side(work, 3)
    assert len(seen) == len(set(seen)) == 3
    assert threading.get_ident() in seen


def test_one_thread_is_the_one_that_calls():
    seen = []
    side_by_side(lambda: seen.append(threading.get_ident()), 1)
    assert seen == [threading.get_ident()]


def test_a_pool_is_made_once():
    side_by_side(lambda: None, 2)
    pool = threads._POOLS[1]
    side_by_side(lambda: None, 2)
    assert threads._POOLS[1] is pool


def test_what_is_raised_in_a_thread_comes_when_all_have_ended():
    me = threading.get_ident()
    done = []

    def work():
        if threading.get_ident() != me:
            raise ValueError("in a thread")
        done.append(1)

    with pytest.raises(ValueError, match="in a thread"):
        side_by_side(work, 2)
    assert done == [1]


def test_work_within_work_waits_for_nobody():
    n = []

    def inner():
        n.append(1)

    side_by_side(lambda: side_by_side(inner, 2), 2)
    assert 3 <= len(n) <= 4  # this thread asks the pool, that of the pool works alone


def test_many_callers_share_a_pool():
    n = []
    with ThreadPoolExecutor(6) as callers:
        for future in [callers.submit(side_by_side, lambda: n.append(1), 2) for _ in range(60)]:
            future.result(timeout=60)
    assert len(n) == 120


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    side_by_side(lambda: None, 2)
    child = os.fork()
    if not child:
        n = []
        side_by_side(lambda: n.append(1), 2)
        os._exit(0 if len(n) == 2 else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
