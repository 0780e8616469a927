"""What a tier did, for reports: reads, writes, bytes before and after its codec, and the error of a lossy one."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from attrs import define, field, frozen


@frozen
class StoreReport:
    """What one tier of a policy did. Errors are the largest of any stored array: ``|stored - given|``, and that over
    the largest ``|given|`` of its array; 0 for what gives the same bits back."""

    tier: str
    codec: str
    """Empty where there is none."""
    lossy: bool
    n_writes: int
    n_reads: int
    given_bytes: int
    """Bytes of the arrays that were stored."""
    stored_bytes: int
    """What they took where they were stored."""
    max_absolute_error: float
    max_relative_error: float

    @property
    def ratio(self) -> float:
        """How many times smaller the codec made what was given."""
        return self.given_bytes / self.stored_bytes if self.stored_bytes else 1.0

    def __str__(self) -> str:
        text = f"{self.tier!r}: {self.n_writes} parts written, {self.n_reads} read"
        if self.codec:
            text += f", {self.codec} {self.ratio:.3g} times smaller"
        if self.lossy:
            text += (
                f", lossy: not the same bits, errors up to {self.max_absolute_error:.3g} absolute and "
                f"{self.max_relative_error:.3g} relative"
            )
        return text


@define(eq=False)
class Figures:
    """The figures of a tier, while they are gathered."""

    tier: str
    codec: Any
    n_writes: int = 0
    n_reads: int = 0
    given_bytes: int = 0
    stored_bytes: int = 0
    max_absolute_error: float = 0.0
    max_relative_error: float = 0.0
    jobs: list[Any] = field(factory=list)
    """Writes that are under way, or have failed."""

    def wrote(self, given: np.ndarray[Any, Any], stored_bytes: int) -> None:
        """One array has been stored."""
        self.n_writes += 1
        self.given_bytes += given.nbytes
        self.stored_bytes += stored_bytes

    def differs(self, given: np.ndarray[Any, Any], back: np.ndarray[Any, Any]) -> None:
        """What a lossy codec gives back for an array."""
        if given.dtype.kind not in "fc":
            return
        with np.errstate(all="ignore"):
            apart = np.where(given == back, 0.0, np.abs(np.subtract(back, given)))
            apart = apart[np.isfinite(given)]
            largest = float(np.max(apart, initial=0.0))
            size = float(np.max(np.abs(given[np.isfinite(given)]), initial=0.0))
        self.max_absolute_error = max(self.max_absolute_error, largest)
        if largest:
            self.max_relative_error = max(self.max_relative_error, largest / size)

    @property
    def report(self) -> StoreReport:
        """The figures of what was asked for so far."""
        for job in self.jobs:
            job.wait()
        codec = self.codec
        return StoreReport(
            self.tier, "" if codec is None else repr(codec), codec is not None and bool(codec.lossy),
            self.n_writes, self.n_reads, self.given_bytes, self.stored_bytes,
            self.max_absolute_error, self.max_relative_error,
        )  # fmt: skip


def reports(figures: Iterable[Figures]) -> tuple[StoreReport, ...]:
    """One for each tier and codec, whichever loops have used it."""
    sums: dict[tuple[str, str], StoreReport] = {}
    for one in (each.report for each in figures):
        before = sums.get((one.tier, one.codec))
        sums[one.tier, one.codec] = one if before is None else StoreReport(
            one.tier, one.codec, one.lossy, one.n_writes + before.n_writes, one.n_reads + before.n_reads,
            one.given_bytes + before.given_bytes, one.stored_bytes + before.stored_bytes,
            max(one.max_absolute_error, before.max_absolute_error),
            max(one.max_relative_error, before.max_relative_error),
        )  # fmt: skip
    return tuple(sums.values())
