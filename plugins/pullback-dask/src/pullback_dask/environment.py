"""What the environment of a worker must say, and whether it does."""

import os
import warnings
from typing import Any

import pullback as pb

TRIM, MAP = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"
LEAST_TRIM = 2**20
"""Bytes. Below this an array of a small grid is given back to the system and faulted in again."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
CONFIG = "distributed.nanny.pre-spawn-environ"


class WorkerSettingsWarning(UserWarning):
    """Workers of a cluster run without what :func:`worker_environment` gives: the result is the same and comes
    later."""


def worker_environment(blas_threads: int = 1) -> dict[str, str]:
    """The environment variables with which workers are to be started.

    Dask's nanny sets ``MALLOC_TRIM_THRESHOLD_=65536``: memory goes back to the system with every array that is freed,
    and is faulted in again with the next, which makes a shot of 128 x 128 nodes about twice as slow. Here memory is
    kept, up to 256 MiB of it that are free; arrays of 32 MiB and more still go back at once.

    A variable that the environment of the nanny itself has comes before that. So in the script of a batch job, as of
    ``dask-jobqueue``, they are lines of ``job_script_prologue``; and a cluster that was started in this process before
    may have left its own in ``os.environ``.

    Parameters
    ----------
    blas_threads
        Threads of one product of matrices; more than one is for clusters with fewer workers than processors.

    Returns
    -------
    A dict of names and values, which Dask takes from its configuration before the workers start.

    Raises
    ------
    PullbackError
        For ``blas_threads`` that is no whole number from 1 on.

    Example
    -------
    >>> import dask
    >>> from pullback_dask import worker_environment
    >>> worker_environment()["OMP_NUM_THREADS"]
    '1'
    >>> from distributed import LocalCluster
    >>> with dask.config.set({"distributed.nanny.pre-spawn-environ": worker_environment()}):
    ...     cluster = LocalCluster(n_workers=2, threads_per_worker=1)  # doctest: +SKIP
    """
    if type(blas_threads) is not int or blas_threads < 1:
        raise pb.PullbackError(f"worker_environment got blas_threads={blas_threads!r}: give a whole number from 1 on")
    # 32 MiB is the most that every version of glibc takes for mappings.
    return {TRIM: str(2**28), MAP: str(2**25), **dict.fromkeys(THREADS, str(blas_threads))}


def settings_of_worker() -> dict[str, Any]:
    """The process and those of its variables that matter; runs on a worker."""
    return {"pid": os.getpid(), **{name: os.environ.get(name) for name in (TRIM, *THREADS)}}


def faults(settings: dict[str, Any]) -> list[str]:
    """What is wrong with the settings of a worker. One that lives in this process has no settings of its own."""
    if settings["pid"] == os.getpid():
        return []
    found = []
    trim = settings[TRIM]
    if trim is not None and int(trim) < LEAST_TRIM:
        found.append(f"{TRIM}={trim} gives memory back with every array")
    if all(settings[name] is None for name in THREADS):
        found.append(f"none of {', '.join(THREADS)} is set, so that each worker computes with all processors")
    return found


def warn_of(settings: dict[str, dict[str, Any]]) -> None:
    """Warn once where workers, by address, run without what they should be started with."""
    bad = {address: told for address, one in settings.items() if (told := faults(one))}
    if bad:
        address, told = next(iter(bad.items()))
        warnings.warn(
            f"{len(bad)} of {len(settings)} workers run without pullback_dask.worker_environment(), which makes them "
            f"slower: at {address} {'; '.join(told)}. Start workers within "
            f"dask.config.set({{{CONFIG!r}: worker_environment()}})",
            WorkerSettingsWarning,
            stacklevel=4,
        )
