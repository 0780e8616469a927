"""Clusters that tests share, and an end to every test."""

import signal
from contextlib import ExitStack

import pytest


@pytest.fixture
def limited():
    """A test that takes two minutes ends with an error: a cluster that hangs would hang for ever."""

    def end(*_):
        raise TimeoutError("the test took longer than 120 seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def clusters():
    """``clusters("2 processes")`` is a client of so many workers, which are threads or processes of one thread each."""
    distributed = pytest.importorskip("distributed", reason="Dask is missing")
    local_client = pytest.importorskip("pullback_dask.clusters", reason="pullback-dask is not installed").local_client
    made = {}
    with ExitStack() as until:

        def client(name):
            if name not in made:
                number, kind = name.split()
                if kind.startswith("process"):
                    made[name] = local_client(int(number), until)
                else:
                    cluster = until.enter_context(
                        distributed.LocalCluster(
                            n_workers=int(number),
                            threads_per_worker=1,
                            processes=False,
                            dashboard_address="127.0.0.1:0",
                        )
                    )
                    made[name] = until.enter_context(distributed.Client(cluster, set_as_default=False))
            return made[name]

        yield client
