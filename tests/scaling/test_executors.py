"""A sum by an executor: its bits, what it holds, and how it ends when something goes wrong."""

import threading
import weakref
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.scaling import summed
from tests.scaling.summed import ITEMS, X, assert_same_bits, late_misfit, misfit

import pullback as pb

pytestmark = pytest.mark.usefixtures("limited")


@pytest.fixture
def limited():
    """Every wait of a test ends: what hangs raises after a minute in the thread that waits."""
    with pytest.MonkeyPatch.context() as patch:
        wait = pb.scaling.executors.wait

        def limited_wait(futures, **how):
            found = wait(futures, timeout=60, **how)
            assert found.done, "nothing was done within a minute"
            return found

        patch.setattr(pb.scaling.executors, "wait", limited_wait)
        yield


class Inline(Executor):
    """Runs a task when it is submitted, in the caller's thread."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        pool.submit(int).result(60)  # starts the thread of the pool, which outlives a test
        yield pool


# ------------------------------------------------------------------------------------------------------------- the bits


@pytest.mark.parametrize("policy", [None, pb.Binomial(2)])
@pytest.mark.parametrize("n", [1, 2, 7, 11])
@pytest.mark.parametrize(("workers", "window"), [(1, None), (2, None), (3, 1), (4, 16)])
def test_threads_give_the_bits_of_the_tree(workers, window, n, policy):
    with ThreadPoolExecutor(workers) as pool:
        found = pb.over_executor(pool, late_misfit, X, ITEMS[:n], policy=policy, window=window)
    assert_same_bits(found, summed.summed(misfit, X, ITEMS[:n]))


def test_a_running_sum_has_other_bits():
    """Else the tests of this file could not fail."""
    gradients = [pb.grad(misfit)(X, item)["speed"] for item in ITEMS]
    assert sum(gradients).tobytes() != summed.summed(misfit, X, ITEMS)[1]["speed"].tobytes()


def test_processes_give_the_bits_of_the_tree(processes):
    expected = summed.summed(misfit, X, ITEMS)
    assert_same_bits(pb.over_executor(processes, late_misfit, X, ITEMS, policy=pb.Binomial(2)), expected)
    assert_same_bits(pb.over_executor(processes, misfit, X, ITEMS, window=3), expected)


def test_any_structure_and_leaves_without_a_gradient():
    def f(x, item):
        return np.sum(x["a"][0] * item) * x["n"] + x["b"]

    x = {"a": [np.ones(3)], "n": 2, "b": np.array(1.5), "none": None}
    value, gradient = pb.over_executor(Inline(), f, x, [1.0, 2.0, 3.0])
    assert value == 2 * 3 * 6.0 + 3 * 1.5
    np.testing.assert_array_equal(gradient["a"][0], np.full(3, 12.0))
    assert (gradient["n"], gradient["b"], gradient["none"]) == (None, 3.0, None)


def test_what_using_says_is_in_force_in_every_task(processes):
    with ThreadPoolExecutor(1) as threads, pb.using(pb.Binomial(2), verify="state"):
        for pool in (threads, processes):
            assert pb.over_executor(pool, summed.what_is_in_force, np.ones(2), [0, 1])[0] == 4.0
        assert pb.over_executor(threads, summed.what_is_in_force, np.ones(2), [0], policy=pb.SaveAll())[0] == 0.0


def test_an_optimiser_drives_it_in_two_lines():
    def f(x, item):
        return np.sum((x - item) ** 2)

    with ThreadPoolExecutor(2) as pool:
        found = minimize(lambda x: pb.over_executor(pool, f, x, [1.0, 2.0, 6.0]), np.zeros(4), jac=True)
    np.testing.assert_allclose(found.x, 3.0, atol=1e-6)


# ------------------------------------------------------------------------------------------------------- what it holds


@pytest.mark.parametrize("window", [1, 4])
def test_the_caller_holds_a_window_and_a_logarithm(window):
    alive, most = weakref.WeakSet(), 0

    class Watching(Inline):
        def submit(self, fn, /, *args, **kwargs):
            nonlocal most
            future = super().submit(fn, *args, **kwargs)
            alive.add(Leaf.of(future.result()[1]))
            most = max(most, len(alive))
            return future

    class Leaf:
        """Lives as long as the array that it watches."""

        kept: dict[int, "Leaf"] = {}  # noqa: RUF012 - of this test alone

        @classmethod
        def of(cls, array):
            leaf = cls.kept[id(array)] = cls()
            weakref.finalize(array, cls.kept.pop, id(array))
            return leaf

    value, _ = pb.over_executor(Watching(), lambda x, item: np.sum(x * item), np.ones(8), range(64), window=window)
    assert value == 8 * sum(range(64))
    assert most <= window + 7


def test_items_are_taken_when_their_turn_comes():
    taken = []

    class Looking(Inline):
        def submit(self, fn, /, *args, **kwargs):
            assert len(taken) == args[2] + 1
            return super().submit(fn, *args, **kwargs)

    items = (taken.append(k) or k for k in range(9))
    assert pb.over_executor(Looking(), lambda x, item: x * item, 1.0, items, window=3)[0] == 36.0


# ---------------------------------------------------------------------------------------------------------- how it ends


def test_an_error_ends_it_at_once_and_cancels_what_has_not_begun():
    started, go_on = [], threading.Event()

    def f(x, item):
        started.append(item)
        if item == 0:
            assert go_on.wait(60), "the error of another item did not end the sum"
        if item == 1:
            raise KeyError("mine")
        return np.sum(x)

    with ThreadPoolExecutor(2) as pool:
        try:
            with pytest.raises(KeyError, match="mine") as caught:
                pb.over_executor(pool, f, np.ones(2), range(50), window=40)
        finally:
            go_on.set()
    assert caught.value.__notes__ == ["pullback: item 1 of the sum"]
    assert "raise KeyError" in str(caught.getrepr())
    assert len(started) < 10


def test_an_error_comes_from_another_process_with_its_class_and_line(processes):
    with pytest.raises(KeyError, match="item 2 is bad") as caught:
        pb.over_executor(processes, summed.raises_at_two, np.ones(2), range(5))
    notes = "\n".join(caught.value.__notes__)
    assert "pullback: item 2 of the sum" in notes
    assert "summed.py" in notes
    assert 'raise KeyError(f"item {item} is bad")' in notes


def test_an_error_that_no_pickle_gives_back_is_named(processes):
    with pytest.raises(pb.WorkerError, match=r"summed\.FussyError: 7: no such shot; an error of that class") as caught:
        pb.over_executor(processes, summed.raises_what_does_not_come_back, np.ones(2), [0])
    assert "raise FussyError" in "\n".join(caught.value.__notes__)
    assert pb.over_executor(processes, misfit, X, ITEMS[:1])  # and the pool is whole


def test_threads_hand_over_any_error():
    with ThreadPoolExecutor(1) as pool, pytest.raises(summed.FussyError, match="no such shot"):
        pb.over_executor(pool, summed.raises_what_does_not_come_back, np.ones(2), [0])


def test_a_function_must_return_a_number(processes):
    with pytest.raises(pb.NotDifferentiableError, match=r"scalar.*item 0 of the sum"):
        pb.over_executor(processes, summed.returns_an_array, np.ones(3), [1.0])


def test_what_cannot_be_pickled_is_named(processes):
    with pytest.raises(pb.WorkerError, match=r"f cannot be pickled .*at the top of a module"):
        pb.over_executor(processes, lambda x, item: np.sum(x), np.ones(3), [1.0])
    with pytest.raises(pb.WorkerError, match=r"item 1 cannot be pickled .*name of a file"):
        pb.over_executor(processes, misfit, X, [1.0, threading.Lock()])
    assert pb.over_executor(processes, misfit, X, ITEMS[:1])


def test_a_process_that_dies_is_an_error():
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(pb.WorkerError, match=r"BrokenProcessPool.*worker was killed"),
    ):
        pb.over_executor(pool, summed.ends_the_process, np.ones(2), range(5))


def test_a_closed_executor_is_an_error():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(pb.WorkerError, match="cannot schedule new futures after shutdown"):
        pb.over_executor(pool, misfit, X, ITEMS)


def test_a_sum_needs_items():
    with pytest.raises(pb.PullbackError, match="there are no items"):
        pb.over_executor(Inline(), misfit, X, [])


@pytest.mark.parametrize("window", [0, 2.5, True])
def test_a_window_is_a_number(window):
    with pytest.raises(pb.PolicyError, match="window= takes a whole number from 1 on"):
        pb.over_executor(Inline(), misfit, X, ITEMS, window=window)


def test_an_executor_is_one():
    with pytest.raises(pb.WorkerError, match=r"takes a concurrent\.futures\.Executor, got int; pass one, such as"):
        pb.over_executor(3, misfit, X, ITEMS)

    class Client:
        def get_executor(self):
            """As Dask's."""

    with pytest.raises(pb.WorkerError, match=r"got Client; pass its get_executor\(\)"):
        pb.over_executor(Client(), misfit, X, ITEMS)
