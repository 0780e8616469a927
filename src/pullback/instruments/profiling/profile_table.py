"""``Profile``: what was predicted and measured under each policy, as a table. ``profile_runs`` fills it."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from attrs import asdict, evolve, field, frozen

from pullback.instruments.inspect.tables import Column, Table
from pullback.instruments.profiling.profile_block import require_peak
from pullback.instruments.profiling.seconds import Phases
from pullback.memory.in_force import policy_in_force
from pullback.memory.ledger import mib
from pullback.memory.timeline import Timeline
from pullback.policies.base import PolicyOrAuto
from pullback.words.errors import CheckError, PolicyError


@frozen
class Row:
    """What was predicted and measured under one policy; None for a figure that is not wanted or does not apply."""

    policy: str
    snapshots: int
    """Most held at once by one loop."""
    n_forward: int | None
    """Forward steps executed, the first sweep included; None for plain code under save-all, which has no steps."""
    recompute_factor: float | None
    """``n_forward`` relative to the steps of the loop."""
    predicted_bytes: int
    """Peak of what is held for the reverse, as ``plan`` forecasts it."""
    peak_bytes: int
    """Peak of what is held for the reverse, as the ledger counted it."""
    bytes_by_reason: dict[str, int]
    rss_bytes: int | None
    """Peak resident set of a process of its own that computes this gradient, interpreter and libraries included."""
    seconds: float
    """Forward and reverse by the clock on the wall, the least of the runs."""
    forward_seconds: float
    """The part of it before the pull."""
    cpu_seconds: float
    """What the processor has worked, the least of the runs."""
    ratio: float
    """``cpu_seconds`` relative to one plain forward run: what else runs on the machine does not count."""
    taylor_rate: float | None
    """2 for a right gradient, 1 for a wrong one."""
    dot_product_error: float | None
    """The largest ``|<w, J v> - <J' w, v>| / (|w| |J v|)`` of three random directions."""
    predicted_seconds: float | None = field(kw_only=True, default=None)
    """Forward and reverse, from a few steps of each loop; of a program that must be run to be planned, of one run."""
    phases: Phases | None = field(kw_only=True, default=None)
    """Seconds forward, of what is executed again, and reverse, by the clock and of the processor, and the operations
    executed again: of one more run, in which steps are recorded and reversed each for themselves."""
    timeline: Timeline | None = field(kw_only=True, default=None)
    """What was held when, by reason, with phase and step: of one more run, where it is wanted. ``timeline.peak`` is
    what was live at the peak."""
    without_line: str = field(kw_only=True, default="")
    """The line of yours whose values are computed again, where the policy is to hold everything but these."""
    same_bits: bool
    """Whether every run gave the bits of the first run of the first policy (save-all where it is among them)."""


@frozen
class Profile:
    """The rows, one for each policy, and the seconds of one plain forward run. Prints as a table; ``to_json`` keeps
    every figure."""

    name: str
    rows: tuple[Row, ...]
    forward_seconds: float
    reference: str
    """The policy whose gradient the others are compared with."""
    derivative: str | None = None
    """How J v of the dot-product test was found."""
    forward_cpu_seconds: float = 0.0
    without_rss: str = ""
    """Why the peak RSS could not be read, where it was asked for."""
    refused: tuple[tuple[str, str], ...] = ()
    """Policies under which there is no gradient, each with why: what refused, or what was raised half way."""
    held_by: tuple[tuple[str, int], ...] = ()
    """The lines that hold something between forward and reverse under ``reference``, and their bytes, most first."""

    @property
    def answer(self) -> tuple[str, ...]:
        """Which line holds the memory, and what it would cost not to hold it, in sentences."""
        return tuple(self._answer())

    def _answer(self) -> Iterator[str]:
        if self.held_by:
            (line, nbytes), total = self.held_by[0], sum(n for _, n in self.held_by)
            share = f"{nbytes / (total or 1):.0%}"
            yield f"{line} holds {mib(nbytes)}, {share} of the {mib(total)} that are saved under {self.reference}."
        first = next((row for row in self.rows if row.policy == self.reference), None)
        if first is None:
            return
        policies = [row for row in self.rows if not row.without_line and row.peak_bytes < first.peak_bytes]
        least = min(policies, key=lambda row: (row.peak_bytes, row.cpu_seconds), default=None)
        others = [row.policy for row in self.rows if not row.without_line and row is not first]
        if least is None and others:
            yield f"None of {', '.join(others)} holds less than {first.policy}."
            if len(others) == len(self.rows) - 1:
                yield "lines=2 (--lines 2) tells what it costs not to hold what one line makes."
        for row in self.rows:
            slower = f"takes {row.cpu_seconds / (first.cpu_seconds or np.nan):.2f} times as long as {self.reference}"
            if row is least:
                yield f"{row.policy} holds {mib(row.peak_bytes)} in the place of {mib(first.peak_bytes)}, and {slower}."
            elif row.without_line and row.peak_bytes < first.peak_bytes:
                yield (
                    f"Where all is held but what {row.without_line} makes, that is {mib(row.peak_bytes)} in the place "
                    f"of {mib(first.peak_bytes)}, and a gradient {slower}."
                )
            elif row.without_line:
                yield f"What {row.without_line} makes is needed at once: computing it again leaves no less at the peak."

    def assert_peak(self, budget: int | str, policy: PolicyOrAuto = None) -> None:
        """Nothing, if no row (none of ``policy``) held more than so many bytes (``"200 MB"``) at the peak; else raises
        :class:`CheckError`, an ``AssertionError``, with what held them. For a test of a program of yours.

        Raises ``PolicyError`` for a policy that was not profiled, ``CheckError`` where one was refused, too.
        """
        name = None if policy is None else repr(policy_in_force(policy))
        rows = [row for row in self.rows if name is None or row.policy == name]
        if not rows:
            raise PolicyError(f"{name} was not profiled; pass one of {', '.join(row.policy for row in self.rows)}")
        if self.refused and name is None:
            raise CheckError(f"{self.name} was not profiled under every policy: {_refusals(self.refused)}")
        for row in rows:
            require_peak(f"{self.name} under {row.policy}", row.peak_bytes, row.bytes_by_reason, budget)

    def table(self) -> Table:
        """Columns for what was measured, and notes on what they mean."""
        rows = self.rows
        columns = [Column("policy", tuple(row.policy for row in rows), text=True)]
        for header, show, values in self._figures():
            if any(value is not None for value in values):
                columns.append(Column(header, tuple("-" if value is None else show(value) for value in values)))
        return Table(f"gradient of {self.name}, by memory policy", tuple(columns), self._notes())

    def _figures(self) -> Iterable[tuple[str, Callable[[Any], str], list[Any]]]:
        """Header, format and values of every column but the first."""
        rows = self.rows
        yield "|snapshots", str, [row.snapshots for row in rows]
        yield "forward|steps", str, [row.n_forward for row in rows]
        yield "recompute|factor", "{:.2f}".format, [row.recompute_factor for row in rows]
        yield "peak bytes|predicted", mib, [row.predicted_bytes for row in rows]
        yield "peak bytes|measured", mib, [row.peak_bytes for row in rows]
        yield "RSS|peak", mib, [row.rss_bytes for row in rows]
        yield "seconds|predicted", "{:.3g}".format, [row.predicted_seconds for row in rows]
        yield "seconds|measured", "{:.3g}".format, [row.seconds for row in rows]
        for part in ("forward", "recompute", "reverse"):
            spent = [None if row.phases is None else getattr(row.phases, part).cpu_seconds for row in rows]
            yield f"CPU s|{part}", "{:.3g}".format, spent
        yield "CPU|x plain", "{:.2f}".format, [row.ratio for row in rows]
        yield "Taylor|rate", "{:.3f}".format, [row.taylor_rate for row in rows]
        yield "dot-product|error", "{:.1e}".format, [row.dot_product_error for row in rows]
        yield "same|bits", lambda same: "yes" if same else "NO", [row.same_bits for row in rows]

    def _notes(self) -> tuple[str, ...]:
        off = [row for row in self.rows if row.predicted_bytes != row.peak_bytes]
        equal = "every gradient equals that of" if all(row.same_bits for row in self.rows) else "compared with"
        notes = [
            f"one plain forward run: {self.forward_seconds:.3g} s, {self.forward_cpu_seconds:.3g} s of the processor",
            "predicted = measured to the byte, for every policy"
            if not off
            else f"predicted and measured bytes differ for {', '.join(row.policy for row in off)}",
            f"same bits: {equal} {self.reference}, bit for bit",
        ]
        notes += [
            f"executed again under {row.policy}: " + ", ".join(f"{name} {n:,}" for name, n in most_of(row.phases))
            for row in self.rows
            if row.phases is not None and row.phases.operations
        ]
        notes += [f"{row.policy}: {row.timeline}" for row in self.rows if row.timeline is not None]
        if self.refused:
            notes.append(f"not profiled: {_refusals(self.refused)}")
        if self.without_rss:
            notes.append(f"no peak RSS: {self.without_rss}")
        if self.derivative is not None:
            notes.append(
                "dot-product error: |<w, Jv> - <J'w, v>| / (|w| |Jv|), the largest of three v, with Jv by "
                f"{self.derivative}"
            )
        return (*notes, *self.answer)

    def to_dict(self) -> dict[str, Any]:
        """Everything in it as plain values, ready for ``json.dump``."""
        rows = [
            asdict(evolve(row, timeline=None)) | {"timeline": row.timeline and row.timeline.to_dict()}
            for row in self.rows
        ]
        return asdict(evolve(self, rows=())) | {"rows": rows, "answer": self.answer}

    def to_json(self) -> str:
        """Every figure, as text that ``json.loads`` reads; bytes and seconds as numbers."""
        return json.dumps(self.to_dict(), indent=2)

    def _repr_html_(self) -> str:
        return self.table().html()

    def __str__(self) -> str:
        return str(self.table())


def most_of(phases: Phases) -> list[tuple[str, int]]:
    """The primitives that were executed again most often, six at most."""
    return list(phases.operations.items())[:6]


def _refusals(refused: tuple[tuple[str, str], ...]) -> str:
    return "; ".join(f"{policy}: {why}" for policy, why in refused)
