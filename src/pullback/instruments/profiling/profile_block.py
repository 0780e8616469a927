"""``with profile() as p``: figures of all gradients that are computed within the block."""

from contextlib import ExitStack
from typing import Any, Self

from attrs import define, field

from pullback.instruments.inspect.tables import as_text
from pullback.memory.in_force import watching
from pullback.memory.ledger import LEDGERS, Report, mib
from pullback.words.byte_sizes import as_bytes
from pullback.words.errors import CheckError


def require_peak(what: str, peak_bytes: int, bytes_by_reason: dict[str, int], budget: int | str) -> None:
    """Raise :class:`CheckError` where more than ``budget`` bytes were held at the peak."""
    most = as_bytes(budget, "budget")
    if peak_bytes > most:
        parts = ", ".join(f"{reason} {mib(n)}" for reason, n in bytes_by_reason.items() if n)
        raise CheckError(
            f"{what} held {peak_bytes:,} bytes at the peak, {peak_bytes - most:,} more than the {most:,} that are "
            f"allowed ({parts}); pullback.saved(f, ...) lists them by your lines, and "
            f"pullback.plan(f, ..., budget={most}) names a policy that keeps to it"
        )


@define(eq=False)
class Watch:
    """Figures of every reverse pass within the block, of this thread or task; they stay when it has ended. Prints as a
    sentence.

    Nothing is kept of a single pass but the report of the largest, so a training loop may run inside.
    """

    n_passes: int = 0
    n_forward: int = 0
    """Forward steps executed, in all passes."""
    seconds: float = 0.0
    """Spent in reverse passes."""
    largest: Report | None = None
    """The report of the pass that held most."""
    interrupted: Report | None = None
    """The report of the pass under way where the block was left by an error: what loops and marked steps had booked up
    to there."""
    _ledger: Any = field(default=None, repr=False)
    """The ledger of the pass under way."""
    _block: ExitStack = field(factory=ExitStack, repr=False)

    @property
    def peak_bytes(self) -> int:
        """The most that one pass held."""
        return self.largest.peak_bytes if self.largest is not None else 0

    @property
    def bytes_by_reason(self) -> dict[str, int]:
        """The bytes of that pass by reason."""
        return dict(self.largest.bytes_by_reason) if self.largest is not None else {}

    def assert_peak(self, budget: int | str) -> None:
        """Nothing, if no pass held more than so many bytes (``"200 MB"``) at the peak; else raises
        :class:`CheckError`, an ``AssertionError``, with what held them. It does so where there was no pass, too, by
        which nothing would be held to."""
        if not self.n_passes:
            raise CheckError(
                "no reverse pass has come to its end here, so there is no peak to compare; compute a gradient within "
                "the block, or pull what vjp returns"
            )
        require_peak("a reverse pass", self.peak_bytes, self.bytes_by_reason, budget)

    def note(self, report: Report) -> None:
        """A reverse pass has ended."""
        self._ledger = None
        self.n_passes += 1
        self.n_forward += report.n_forward
        self.seconds += report.seconds
        if self.largest is None or report.peak_bytes > self.largest.peak_bytes:
            self.largest = report

    def __enter__(self) -> Self:
        self._block.enter_context(watching(self.note))
        made = LEDGERS.get()
        self._block.callback(LEDGERS.reset, LEDGERS.set(lambda *, heard: self._begun(made(heard=heard))))
        return self

    def _begun(self, ledger: Any) -> Any:
        self._ledger = ledger
        return ledger

    def __exit__(self, *error: object) -> None:
        self._block.close()
        if error[0] is not None and self._ledger is not None:
            self.interrupted = self._ledger.report({})
        self._ledger = None

    def __str__(self) -> str:
        parts = ", ".join(f"{reason} {mib(n)}" for reason, n in self.bytes_by_reason.items())
        return (
            f"{self.n_passes} reverse {'pass' if self.n_passes == 1 else 'passes'}, {self.n_forward} forward steps, "
            f"{self.seconds:.3g} s; the largest held {mib(self.peak_bytes)} ({parts or 'nothing'})"
            f"{'' if self.interrupted is None else f'; one was interrupted: {self.interrupted}'}"
        )

    def _repr_html_(self) -> str:
        return as_text(str(self))
