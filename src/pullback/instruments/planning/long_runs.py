"""What the binomial schedule costs, in closed form: a schedule of 10**9 steps takes hours to walk, action by action,
and microseconds to forecast."""

from math import inf
from typing import Any

import numpy as np
from attrs import frozen

from pullback.scheduling.machine.schedule import whole_number
from pullback.scheduling.optimal.binomial_split import forward_steps, repetitions, writes
from pullback.words.byte_sizes import as_bytes
from pullback.words.errors import PolicyError

_UNITS = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_TIMES = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"))


@frozen
class RunForecast:
    """What :func:`forecast` tells; names as in :class:`pullback.schedules.Simulation`. Prints as a small table.

    Attributes
    ----------
    n
        Steps of the loop.
    snapshots
        How many are allowed.
    n_forward
        Forward executions, recordings and the first sweep included.
    repetitions
        No step is advanced more often than this.
    n_writes
        Snapshots that are stored.
    n_reads
        Snapshots that are loaded: one for each step but the last.
    peak_slots
        Most snapshots stored at once.
    peak_bytes
        Of these and the tape of one step, on each worker; the live state is held besides.
    seconds
        n_forward step_seconds + n reverse_seconds + n_writes write_seconds + n_reads read_seconds. Workers compute side
        by side.
    workers
        How many there are.

    Example
    -------
    >>> from pullback.schedules import forecast
    >>> forecast(10**9, 1_000, state_bytes=8, step_seconds=1e-3).peak_slots
    1000
    """

    n: int
    snapshots: int
    n_forward: int
    repetitions: int
    n_writes: int
    n_reads: int
    peak_slots: int
    peak_bytes: int
    seconds: float
    workers: int

    @property
    def total_bytes(self) -> int:
        """``peak_bytes`` of all workers together."""
        return self.peak_bytes * self.workers

    def __str__(self) -> str:
        factor = self.n_forward / self.n if self.n else 0.0
        most = f"none advanced more than {self.repetitions} times"
        shared = f", {_size(self.total_bytes)} on {self.workers:,} workers" if self.workers > 1 else ""
        rows = {
            "n_forward": f"{self.n_forward:,}  ({factor:.2f} per step, {most})",
            "n_writes": f"{self.n_writes:,}",
            "n_reads": f"{self.n_reads:,}",
            "peak_slots": f"{self.peak_slots:,}",
            "peak_bytes": f"{_size(self.peak_bytes)}{shared}",
            "seconds": f"{self.seconds:.4g}{_time(self.seconds)}",
        }
        head = f"forecast of {self.n:,} steps with {self.snapshots:,} snapshots"
        return "\n".join([head, *(f"  {name:<14} {text}" for name, text in rows.items())])


def forecast(
    n: int,
    snapshots: int,
    state_bytes: int | str = 0,
    step_seconds: float = 0.0,
    write_seconds: float = 0.0,
    *,
    tape_bytes: int | str = 0,
    reverse_seconds: float = 0.0,
    read_seconds: float = 0.0,
    workers: int = 1,
) -> RunForecast:
    """Forward steps, bytes and seconds of :class:`pullback.Binomial` with so many ``snapshots`` on ``n`` steps, in
    closed form: what :func:`pullback.schedules.simulate` counts, for any ``n``.

    Parameters
    ----------
    n
        Steps of the loop, at least 0.
    snapshots
        States stored at once, at least 1: x_0 takes one.
    state_bytes, tape_bytes
        Of one state, and of what one recorded step holds; on each worker, where a state is divided among several. Whole
        numbers or texts such as ``"16 MB"``.
    step_seconds, reverse_seconds
        A step forward, and its reverse.
    write_seconds, read_seconds
        To store one snapshot, and to load one: 0 for those that lie in memory. Each is read about as often as there are
        steps, so a store that is slower than a step is no place for all of them: ``Tiered`` has a few there.
    workers
        How many hold a part of the state each.

    Returns
    -------
    A :class:`RunForecast`.

    Raises
    ------
    PolicyError
        For a number below its least, and for what is no number.

    Source: A. Griewank and A. Walther, "Algorithm 799: revolve", ACM TOMS 26 (2000), 19-45, equations (1)-(3).

    Example
    -------
    >>> from pullback.schedules import forecast
    >>> print(forecast(10**9, 1000, "16 MB", step_seconds=1e-3, workers=10_000))
    forecast of 1,000,000,000 steps with 1,000 snapshots
      n_forward      4,831,828,996  (4.83 per step, none advanced more than 4 times)
      n_writes       832,331,499
      n_reads        999,999,999
      peak_slots     1,000
      peak_bytes     16 GB, 160 TB on 10,000 workers
      seconds        4.832e+06  (55.9 days)
    """
    n = whole_number(n, "n", 0, "Pass the number of steps")
    s = whole_number(snapshots, "snapshots", 1, "Pass how many states are stored at once: x_0 takes one")
    workers = whole_number(workers, "workers", 1, "Pass how many hold a part of the state each")
    state, tape = as_bytes(state_bytes, "state_bytes"), as_bytes(tape_bytes, "tape_bytes")
    slots, n_forward, n_writes, n_reads = min(s, max(0, n - 1)), forward_steps(n, s), writes(n, s), max(0, n - 1)
    seconds = (
        _seconds(step_seconds, "step_seconds") * n_forward
        + _seconds(reverse_seconds, "reverse_seconds") * n
        + _seconds(write_seconds, "write_seconds") * n_writes
        + _seconds(read_seconds, "read_seconds") * n_reads
    )
    return RunForecast(
        n=n,
        snapshots=s,
        n_forward=n_forward,
        repetitions=repetitions(n, s),
        n_writes=n_writes,
        n_reads=n_reads,
        peak_slots=slots,
        peak_bytes=slots * state + (tape if n else 0),
        seconds=seconds,
        workers=workers,
    )


def _seconds(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < inf:
        raise PolicyError(f"{name}={value!r} is no number of seconds; pass one, at least 0")
    return float(value)


def _size(nbytes: int) -> str:
    """Bytes in powers of ten, as the memory of machines is told."""
    unit, name = next(((unit, name) for unit, name in _UNITS if nbytes >= unit), (1, "bytes"))
    return f"{nbytes / unit:.3g} {name}"


def _time(seconds: float) -> str:
    return next((f"  ({seconds / unit:.1f} {name})" for unit, name in _TIMES if seconds >= unit), "")
