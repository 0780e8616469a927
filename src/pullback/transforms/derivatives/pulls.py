"""The ``pull`` that ``vjp`` returns: a trace that waits to be reversed, as often as it is called."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from threading import RLock
from typing import Any

from pullback.memory.in_force import staging_in_force, watchers
from pullback.memory.ledger import Ledger, Report, mib
from pullback.memory.reverse_sweep import Releasing, Sweep, given_out, release_records, seeded, sweep
from pullback.programs.marks.named_values import Adjoints, adjoints, require_marked
from pullback.recording.handles import Handle
from pullback.recording.tape import marks_of
from pullback.rules.forms import FORMS
from pullback.tracing.running import Traced
from pullback.transforms.derivatives.seed_checks import checked_seed, conjugate
from pullback.travelling.made_functions import refuse
from pullback.words.call_sites import public, site_text
from pullback.words.errors import StructureError, TracerError
from pullback.words.specs import spec_of
from pullback.words.structures import flatten, matched

ENOUGH = 40
"""Sweeps of records that say the same, after which a function for them pays: to make it takes about as long as so
many."""
FEW, SOME = 1, 12
"""Sweeps of a tape before a pull asks whether there is a generated function: ``SOME`` where the room that makes it is
not imported yet, else ``FEW``."""

_ROOM = "pullback.staging.pulls.repeated_pulls"


class Pull:
    """What ``vjp`` returns beside the value: a function from a cotangent of the output to the cotangents of the
    primals."""

    def __init__(self, traced: Traced, ledger: Ledger) -> None:
        self.out_leaves: list[Any] = []
        self.out_definition: Any = None
        self.conj = False
        self._traced: Traced | None = traced
        self._site = traced.site
        self._adjoints: Adjoints | None = None
        self._governor: Any = traced.governor
        self._n_sweeps = 0
        self._repeated: Any = None
        self.ledger = ledger
        self._lock = RLock()
        self._pulling = False

    @public
    def __call__(self, ct: Any, *, on_adjoint: Mapping[str, Callable[[Any, Any], Any]] | None = None) -> Any:
        """The tuple of the cotangents of the primals, given a cotangent of the output; for a list of cotangents a list
        of tuples.

        A list is one cotangent where it has the structure of the output. Of several, each has the bits that a call of
        its own would give it; what the policy runs again is run once for all of them, and the cotangents under way are
        held for each. ``on_adjoint={"u": fn}`` calls ``fn(step, ct)`` for every value marked ``pullback.name(u, "u")``;
        ``ct`` is a list with one for each where several are given. One thread pulls at a time; others wait for it.
        """
        with self._lock:
            if self._pulling:
                raise TracerError(
                    f"this pull is called while it pulls (of the function differentiated at {self._open().called_at}): "
                    "by a rule, a body or a function in on_adjoint; make a vjp of its own for the inner call"
                )
            self._pulling = True
            try:
                with self._open().agrees():
                    return self._pulled(ct, on_adjoint)
            finally:
                self._pulling = False

    def _pulled(self, ct: Any, on_adjoint: Mapping[str, Callable[[Any, Any], Any]] | None) -> Any:
        traced = self._open()
        # Asked first, since optree would write down the whole list for its error.
        one = (type(ct) is not list or self.out_definition.type is list) and matched(
            ct, self.out_definition
        ) is not None
        if not one and type(ct) is not list:
            raise StructureError(self._misfit(ct, ""))
        given = [ct] if one else ct
        seeds = [self._seeds_of(cotangent, f" number {k}" if not one else "") for k, cotangent in enumerate(given)]
        self.listen(on_adjoint, keeps=True, several=None if one else len(given))
        found = [
            tuple(traced.structured([self._given(g) for g in cts]))
            for cts in self.each(self.out_leaves, seeds, free=False)
        ]
        return found[0] if one else found

    def _seeds_of(self, ct: Any, which: str) -> list[Any]:
        """A checked seed for each leaf of the output."""
        leaves = matched(ct, self.out_definition)
        if leaves is None:
            raise StructureError(self._misfit(ct, which))
        traced = self._open()
        return [
            self._given(checked_seed(leaf, out, traced, which))
            for leaf, out in zip(leaves, self.out_leaves, strict=True)
        ]

    def _misfit(self, ct: Any, which: str) -> str:
        where = self._open().called_at
        return (
            f"the cotangent{which} has structure {flatten(ct)[1]}, the output of the function differentiated at "
            f"{where} has {self.out_definition}; give one leaf per output leaf, None where an output is not used, or a "
            "list of such for several seeds"
        )

    def _given(self, ct: Any) -> Any:
        """A cotangent as it goes between the user and the sweep, in either direction."""
        return conjugate(ct) if self.conj else ct

    def once(self, outs: list[Any], seeds: list[Any], *, free: bool) -> list[Any]:
        """One reverse sweep: the cotangent of every input, zeros where the output does not depend on it. ``free``
        gives up the tape."""
        [cts] = self.each(outs, [seeds], free=free)
        return cts

    def each(
        self, outs: list[Any], seeds: Sequence[Sequence[Any]], *, free: bool, generated: bool = True
    ) -> list[list[Any]]:
        """The cotangents for several seeds, a list for each; the seeds share what the policy runs again. By
        ``generated`` functions where there are."""
        if not seeds:
            return []
        traced = self._open()
        traced.require_unchanged()
        began = time.perf_counter()
        tape = traced.tape
        told = watchers()
        plain = self.ledger.plain_bytes(tape.records) if told else {}  # now: a freed tape holds nothing afterwards
        runs = [seeded(tape, outs, given) for given in seeds]
        for run in runs:
            run.frees, run.told = free, self._adjoints
        if free:
            self._traced = None
        try:
            with traced.agrees(always=False), Releasing(tape) if free else nullcontext():
                if self._governor is not None:
                    self._governor.reverse(runs)
                else:
                    left = self._left(runs) if generated and not free and self._adjoints is None else runs
                    if left:
                        go_back = sweep_of_steps() if tape.marked else sweep
                        for start, stop in self._stretches(tape):
                            go_back(tape, start, stop, left)
        finally:
            (tape.telling or self.ledger).rests()
        self.ledger.elapsed_seconds += time.perf_counter() - began
        for tell in told:
            tell(self.ledger.report(plain))
        return [[given_out(run.cts, k, given) for k, given in enumerate(traced.inputs)] for run in runs]

    def _stretches(self, tape: Any) -> Iterable[tuple[int, int]]:
        """The tape, the last part first: parted at marked steps where somebody is told of each."""
        ends = tape.n_inputs, len(tape.records)
        return (ends,) if tape.telling is None else tape.telling.stretches(*ends)

    def _left(self, runs: list[Sweep]) -> list[Sweep]:
        """The sweeps that no generated function of a pull that is called often has made."""
        self._n_sweeps += len(runs)
        if self._n_sweeps <= FEW or staging_in_force() == "off" or self.tape.collective:
            return runs
        if self._repeated is None:
            if self._n_sweeps <= SOME and _ROOM not in sys.modules:
                return runs
            # As in reverse.py: few programs pull so often, and the others need not import that room.
            from pullback.staging.pulls.repeated_pulls import RepeatedPulls  # noqa: PLC0415

            self._repeated = RepeatedPulls(self._open().tape)
        plain = [run for run in runs if run.outer is None]
        left = [run for run in runs if run.outer is not None]
        for run, cts in zip(plain, self._repeated.of([run.cts for run in plain], ENOUGH), strict=True):
            if cts is None:
                left.append(run)
            else:
                run.cts = cts
        return left

    def schedules(self) -> list[tuple[int, Any, dict[str, int]]]:
        """The number of steps, the policy whose schedule they go by, and the sizes that this was asked for with, of
        marked steps and of plain code that was cut."""
        chains = self._governor.chains if self._governor is not None else ()
        drawn = [(chain, getattr(getattr(chain, "schedule", None), "policy", None)) for chain in chains]
        return [
            (max(0, len(chain.cuts) - 1), policy, dict(chain.sizes)) for chain, policy in drawn if policy is not None
        ]

    @property
    def seed_bytes(self) -> int:
        """About what the cotangents of one more seed in the same call hold."""
        traced = self._open()
        tape = traced.tape
        chains = self._governor.chains if self._governor is not None else ()
        loops = [record[2] for record in tape.records if record is not None and FORMS[record[0]].steps]
        around = sum(spec_of(leaf).nbytes for leaf in self.out_leaves if isinstance(leaf, Handle))
        around += sum(given.spec.nbytes for given in traced.inputs) + 8 * len(tape.records)
        within = [sum(loop.ct_bytes) for loop in loops] + [chain.snapshots.largest_bytes() for chain in chains]
        return int(around + max(within, default=0))

    def listen(self, on_adjoint: Mapping[str, Any] | None, *, keeps: bool, several: int | None = None) -> None:
        """Send the cotangents of marked values to the functions in ``on_adjoint`` from now on; with ``keeps`` the
        others are stored."""
        tape = self._open().tape
        hears = on_adjoint or (keeps and tape.marks is not None)
        self._adjoints = adjoints(tape, on_adjoint, keeps=keeps, given=self._given, several=several) if hears else None

    def adjoint(self, tag: str) -> Any:
        """The cotangent, in the last call of this pull, of the value marked ``pullback.name(u, tag)``; of several, a
        list in forward order.

        Where the call was given a list of seeds, each is a list with one for each seed. Zeros where the output does not
        depend on the value. Raises :class:`StructureError` for a tag that is not marked, and for one marked in the
        steps of a loop function, whose cotangents only ``pull(ct, on_adjoint={tag: fn})`` hands out.
        """
        if self._adjoints is None:
            require_marked((tag,), marks_of(self._open().tape))
            raise StructureError(
                f"adjoint({tag!r}) has the cotangents of the last reverse pass, and there was none; call pull(ct) first"
            )
        return self._adjoints.of(tag)

    @property
    def input_specs(self) -> list[Any]:
        """The specs of the inputs."""
        return [given.spec for given in self._open().inputs]

    def _open(self) -> Traced:
        if self._traced is None:
            raise TracerError(
                "this pull is closed and holds nothing (of the function differentiated at "
                f"{site_text(self._site)}); call vjp again"
            )
        return self._traced

    @property
    def traced(self) -> Traced:
        """The trace that waits to be reversed."""
        return self._open()

    @property
    def tape(self) -> Any:
        """The records that the pull holds."""
        return self._open().tape

    @property
    def report(self) -> Report:
        """What was held between forward and reverse, by reason, and what the reverse did."""
        return self.ledger.report(self.ledger.plain_bytes(() if self._traced is None else self._traced.tape.records))

    def __repr__(self) -> str:
        where = f"pull of the function differentiated at {site_text(self._site)}"
        if self._traced is None:
            return f"<{where}: released>"
        report = self.report
        parts = ", ".join(f"{reason} {mib(nbytes)}" for reason, nbytes in report.bytes_by_reason.items() if nbytes)
        return f"<{where}: holds {mib(report.live_bytes)}; at the peak {mib(report.peak_bytes)} ({parts})>"

    why_it_stays = (
        "a pull holds the records of one run, which cannot go to another process, nor be copied; send the function and "
        "its arguments there, and call pullback.grad, value_and_grad or vjp on that side"
    )
    __reduce_ex__ = refuse

    def __del__(self) -> None:
        # The module may be gone when the interpreter ends; an interrupt may have come while it was made.
        if sys is not None and not sys.is_finalizing() and hasattr(self, "_pulling"):
            self.close()

    def close(self) -> None:
        """Release everything held for the reverse; a pull under way in another thread ends first."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._traced is not None:
            release_records(self._traced.tape.records)
            # a loop among them knows the tape: a cycle, which would wait for the collector
            self._traced.tape.records.clear()
        self._traced, self.out_leaves, self._adjoints, self._repeated = None, [], None, None
        if self._governor is not None:
            self._governor.close()
            self._governor = None


def sweep_of_steps() -> Callable[..., None]:
    """How a trace is taken back that holds marked steps."""
    # As in reverse.py: what runs steps again.
    from pullback.programs.plain.functions_of_steps import sweep_held  # noqa: PLC0415 - as above

    return sweep_held
