"""What goes wrong: a worker that is killed, errors of the function, what cannot be sent, what is closed."""

import importlib
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.scaling.summed import ITEMS, FussyError, X, assert_same_bits, misfit, returns_an_array, summed

import pullback as pb

cloudpickle = pytest.importorskip("cloudpickle", reason="Dask is missing")
distributed = pytest.importorskip("distributed", reason="Dask is missing")
pullback_dask = pytest.importorskip("pullback_dask", reason="pullback-dask is not installed")

Client, LocalCluster, SumOverItems = distributed.Client, distributed.LocalCluster, pullback_dask.SumOverItems
WorkerSettingsWarning, worker_environment = pullback_dask.WorkerSettingsWarning, pullback_dask.worker_environment
faults = pullback_dask.environment.faults
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # no worker could import it
pytestmark = pytest.mark.usefixtures("limited")


def test_a_worker_that_is_killed_costs_no_bit(tmp_path, monkeypatch):
    # Whoever was about to fetch from the worker that is killed tries again that long: 30 seconds at times.
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "3s")

    def f(x, item):
        """Writes down who begins it, and takes its time."""
        (tmp_path / f"{os.getpid()}-{item:.3f}-{time.monotonic_ns()}").touch()
        time.sleep(0.15)
        return misfit(x, item)

    killed = []

    def kill(done, _items):
        if done >= 5 and not killed:
            last = max(tmp_path.iterdir(), key=lambda path: int(path.name.split("-")[2]))
            killed.append(int(last.name.split("-")[0]))
            os.kill(killed[0], signal.SIGKILL)

    with SumOverItems(f, ITEMS, workers=2, progress=kill) as total:
        assert_same_bits(total.value_and_grad(X), summed(misfit, X, ITEMS))
        begun = [path.name.split("-")[:2] for path in tmp_path.iterdir()]
        assert len(begun) > len(ITEMS), "nothing was computed again"
        assert {item for _, item in begun} == {f"{item:.3f}" for item in ITEMS}
        assert_same_bits(total.value_and_grad(X), summed(misfit, X, ITEMS))
        pids = {int(pid) for pid, _ in (path.name.split("-")[:2] for path in tmp_path.iterdir())}
        assert killed[0] in pids
        assert killed[0] not in total.client.run(os.getpid).values()


def test_a_task_that_brings_down_every_worker_is_an_error(tmp_path):
    def f(x, item):
        if item == 2:
            os._exit(3)
        return np.sum(x) * item

    with (
        SumOverItems(f, range(4), workers=1) as total,
        pytest.raises(pb.WorkerError, match=r"KilledWorker.*with fewer workers where memory is short"),
    ):
        total.value_and_grad(np.ones(2))


@pytest.mark.parametrize("cluster", ["2 threads", "2 processes"])
def test_an_error_has_its_class_its_item_and_its_line(cluster, clusters):
    def f(x, item):
        if item == 2:
            raise KeyError("mine")
        return np.sum(x) * item

    with SumOverItems(f, range(40), client=clusters(cluster)) as total:
        with pytest.raises(KeyError, match="mine") as caught:
            total.value_and_grad(np.ones(2))
        assert "pullback: item 2 of the sum" in caught.value.__notes__
        assert any(entry.name == "f" for entry in caught.traceback)


GO_ON = threading.Event()


def waits_at_zero(x, item):
    if item == 0:
        assert GO_ON.wait(100), "the error of another item did not end the sum"
    if item == 1:
        raise KeyError("mine")
    return np.sum(x)


def test_an_error_ends_the_sum_at_once():
    def f(x, item):
        # By name, and so the event of this process, in which these workers are threads.
        return sys.modules[test_module].waits_at_zero(x, item)

    test_module = __name__
    try:
        with (
            LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
            Client(cluster) as client,
            SumOverItems(f, range(40), client=client) as total,
        ):
            with pytest.raises(KeyError, match="mine"):
                total.value_and_grad(np.ones(2))
            assert not GO_ON.is_set()
            GO_ON.set()
    finally:
        GO_ON.set()


def test_an_error_that_no_pickle_gives_back_is_named(clusters):
    def f(x, item):
        raise FussyError(7, "no such shot")

    with (
        SumOverItems(f, [0], client=clusters("2 processes")) as total,
        pytest.raises(pb.WorkerError, match=r"FussyError: 7: no such shot; an error of that class"),
    ):
        total.value_and_grad(np.ones(2))


def test_a_function_must_return_a_number(clusters):
    with (
        SumOverItems(returns_an_array, [1.0], client=clusters("2 processes")) as total,
        pytest.raises(pb.NotDifferentiableError, match=r"scalar.*item 0 of the sum"),
    ):
        total.value_and_grad(np.ones(3))


def test_what_cannot_be_pickled_is_named(clusters):
    client, lock = clusters("2 threads"), threading.Lock()
    with pytest.raises(pb.WorkerError, match=r"item 1 cannot be pickled .*name of a file"):
        SumOverItems(misfit, [0.1, lock], client=client)
    with pytest.raises(pb.WorkerError, match=r"f cannot be pickled .*'_thread.lock'"):
        SumOverItems(lambda x, item: lock, [0.1], client=client)
    with SumOverItems(misfit, ITEMS, client=client) as total:
        with pytest.raises(pb.WorkerError, match=r"x cannot be pickled .*pass arrays"):
            total.value_and_grad({"speed": lock})
        assert total.value_and_grad(X)


def test_a_module_that_a_worker_lacks_is_named(clusters, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def f(x, item):\n    return x * item\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    only_here = importlib.import_module("only_here")
    with (
        SumOverItems(only_here.f, [0.1], client=clusters("2 processes")) as total,
        pytest.raises(pb.WorkerError, match=r"cannot be unpickled on a worker .*only_here.*client\.upload_file"),
    ):
        total.value_and_grad(1.0)


def test_what_is_closed_or_no_client_is_an_error(clusters):
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster:
        client = Client(cluster, set_as_default=False)
        total = SumOverItems(misfit, ITEMS, client=client)
        client.close()
        with pytest.raises(pb.WorkerError, match="the client is closed, not running: make a new one"):
            total.value_and_grad(X)
        with pytest.raises(pb.WorkerError, match="the client is closed"):
            SumOverItems(misfit, ITEMS, client=client)
    with pytest.raises(pb.WorkerError, match=r"takes a distributed\.Client, got str; pass Client\(cluster\)"):
        SumOverItems(misfit, ITEMS, client="tcp://127.0.0.1:8786")
    total = SumOverItems(misfit, ITEMS, client=clusters("2 threads"))
    total.close()
    with pytest.raises(pb.WorkerError, match="the sum is closed: make it anew"):
        total.value_and_grad(X)


def test_a_sum_needs_items(clusters):
    with pytest.raises(pb.PullbackError, match="there are no items"):
        SumOverItems(misfit, [], client=clusters("2 threads"))


def test_workers_without_the_environment_are_warned_of(monkeypatch):
    for name in worker_environment():
        monkeypatch.delenv(name, raising=False)
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        with pytest.warns(WorkerSettingsWarning, match=r"1 of 1 workers .*MALLOC_TRIM_THRESHOLD_=65536") as warned:
            total = SumOverItems(misfit, ITEMS, client=client)
        assert [Path(warning.filename).name for warning in warned] == [Path(__file__).name]
        assert total.value_and_grad(X)
    assert os.environ["MALLOC_TRIM_THRESHOLD_"] == "65536"  # which the nanny left here
    with warnings.catch_warnings(action="error", category=WorkerSettingsWarning):
        SumOverItems(misfit, ITEMS, workers=1).close()
    assert os.environ["MALLOC_TRIM_THRESHOLD_"] == "65536"


def test_what_is_wrong_with_a_worker():
    right = {"pid": -1, **worker_environment()}
    assert faults(right) == []
    assert faults({"pid": os.getpid(), "MALLOC_TRIM_THRESHOLD_": "65536"}) == []
    assert faults(right | {"MALLOC_TRIM_THRESHOLD_": None}) == []
    bare = dict.fromkeys(right, None) | {"pid": -1}
    assert "each worker computes with all processors" in faults(bare)[0]
    assert worker_environment(blas_threads=4)["OMP_NUM_THREADS"] == "4"
    for wrong in (0, "2", 1.0):
        with pytest.raises(pb.PullbackError, match="give a whole number from 1 on"):
            worker_environment(wrong)
