"""Values and gradients of sums over items, on a cluster of Dask: :class:`SumOverItems`."""

from pullback_dask.environment import WorkerSettingsWarning, worker_environment
from pullback_dask.sums import SumOverItems

__all__ = ["SumOverItems", "WorkerSettingsWarning", "worker_environment"]
