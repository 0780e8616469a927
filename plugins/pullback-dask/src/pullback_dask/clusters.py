"""The client of a sum: the caller's, or that of a local cluster of its own."""

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any

import dask
from distributed import Client, LocalCluster

import pullback as pb
from pullback_dask.environment import CONFIG, worker_environment

QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "2s",
}
"""What Dask does besides in each process, a hundred times a second for a dashboard that nobody opens: it took three
quarters of what idle workers and their scheduler computed, from the processors that the items are computed on."""


def local_client(workers: int | None, until: ExitStack) -> Client:
    """The client of ``workers`` processes on this machine, one thread each, that end with ``until``."""
    variables = worker_environment()
    with dask.config.set({CONFIG: variables, **QUIET}), set_for_now(variables):
        cluster = until.enter_context(
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", processes=True)
        )
    client: Client = until.enter_context(Client(cluster, set_as_default=False))
    return client


@contextmanager
def set_for_now(variables: dict[str, str]) -> Generator[None, None, None]:
    """The environment has these variables within the block. A nanny leaves those of its workers in its own environment,
    which is this process's, and a later one takes them before what the configuration says."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def require_open(client: Any) -> None:
    """Nothing, or :class:`pullback.WorkerError` unless it is a client that can be used."""
    if not isinstance(client, Client):
        raise pb.WorkerError(f"client= takes a distributed.Client, got {type(client).__name__}; pass Client(cluster)")
    if client.asynchronous:
        raise pb.WorkerError("client= takes a client that waits for its answers, got one with asynchronous=True")
    if client.status != "running":
        raise pb.WorkerError(
            f"the client is {client.status}, not running: make a new one, and the sum anew with it; what the old one "
            "held on the workers is gone"
        )


def moved_by(dask_worker: Any) -> int:
    """The bytes that a worker has sent to others; runs on it."""
    return int(dask_worker.transfer_outgoing_bytes_total)
