"""Plain programs under a policy: which stretches of the tape are held whole, and which are chains of steps that the
policy governs.

Code before and after marked steps is save-all; each marked loop is a chain of its own. A program without marks is one
chain, cut by itself where few bytes are live.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np
from attrs import define, field

from pullback.memory.in_force import recorded, staging_in_force, threads_in_force, verify_in_force
from pullback.memory.ledger import Ledger, mib, nbytes_of, value_items
from pullback.memory.store import Store, is_lossy
from pullback.memory.sweep import Sweep, sweep
from pullback.plain.plain_chain import PlainChain
from pullback.plain.plain_snapshots import PlainSnapshots
from pullback.plain.step_entries import Calls, StepEntries
from pullback.policies.base import Schedule
from pullback.recording.handles import Handle
from pullback.recording.tape import Governor, Ident, Tape
from pullback.rules.forms import FORMS
from pullback.words.call_sites import site_text, warn_user
from pullback.words.errors import PolicyError, PolicyWarning, PullbackError

_WARN_BYTES = 1 << 16


@define(eq=False)
class PlainCode(Governor):
    """The governor of plain code: the stretches of one tape under a policy."""

    policy: Any
    ledger: Ledger
    repeatable: bool
    tape: Tape | None = None
    chains: list[PlainChain] = field(factory=list)
    active: PlainChain | None = None
    marked: bool = False
    """True from the first mark on: outside marked steps everything is held."""
    cuts_itself: bool = True
    """False for a policy that must know the length: a program without marks is then held whole."""
    cutter: "Cutter | None" = None
    constants: dict[int, Any] = field(factory=dict)
    """The copies of plain arrays that entries hold, by ``id``."""
    works: dict[Any, Any] = field(factory=dict)
    """What the functions of staged steps work in, by stage."""
    constant_site: int = -1
    refused: PullbackError | None = None
    """What a policy said of the length of a chain that has ended: Python prints and drops it where ``break`` ends the
    chain, so it is raised when the trace ends."""

    def open(self, tape: Tape) -> None:
        """The trace begins."""
        self.tape = tape
        self.cutter = Cutter()

    # What the recorder tells.
    def before_record(
        self, record: tuple[Any, ...], operands: Any, values: Any, params: Mapping[str, Any], rerun: Any = None
    ) -> None:
        """Keep what executes the record again, and let snapshots take what it reads from before them; cut the program
        first where few bytes are live."""
        chain, tape = self.active, self.tape
        if chain is None:
            self._begin_unmarked()
            chain = self.active
        if chain is None or tape is None:
            return
        ident = len(tape.records)
        if (
            self.cutter is not None
            and not self.marked
            and FORMS[record[0]].execute is None
            and self.cutter.wants_cut(ident - chain.cuts[-1])
        ):
            chain.cut()
        entries, snapshots = chain.entries, chain.snapshots
        newest = snapshots.newest
        cut = -1 if newest is None else newest.cut
        arguments: list[Any] = []
        for operand, value in zip(operands, values, strict=True):
            known = None
            if isinstance(operand, Handle) and operand._tape is tape:
                known = operand._id
            elif type(operand) is Ident:
                known = operand.ident
            if known is None:
                if isinstance(value, np.ndarray):
                    self.constant_site = record[-1]
                    value = self.constant(value)  # noqa: PLW2901
                arguments.append(entries.operand(value))
                continue
            if known < cut:
                snapshots.read(known, value, operand if type(operand) is not Ident else None)
            arguments.append(entries.coded(known))
        entries.add(ident, record, tuple(arguments), params, rerun)

    def watch(self, handle: Any) -> None:
        """A handle was made; while the program cuts itself, the bytes of live handles are counted."""
        if self.cutter is not None and not self.marked:
            self.cutter.watch(handle)

    def before_write(self, root: Any) -> None:
        """A value is about to be written: a snapshot that may need it takes it first."""
        self._begin_unmarked()
        if self.active is not None and root._id is not None:
            self.active.snapshots.read(root._id, root._value, root)

    def constant(self, value: Any) -> Any:
        """The held copy of a plain array, one for each distinct content."""
        assert self.tape is not None
        copy = self.tape.keep(value)
        if id(copy) not in self.constants:
            self.constants[id(copy)] = copy
            self.ledger.hold(value_items((copy,), "constant"))
        return copy

    # Marks.
    def _begin_unmarked(self) -> None:
        """A program without marks, so far, is one chain from its first record on."""
        if self.active is not None or self.marked or not self.cuts_itself:
            return
        try:
            schedule = self.policy.schedule(None)
        except PolicyError:  # the policy needs to know the length: everything is held up to the first mark
            self.cuts_itself = False
            return
        self.begin(None, self.policy, schedule=schedule)

    @property
    def replays(self) -> bool:
        """Within steps, and in a program that has no marks so far."""
        return self.active is not None or not self.marked

    def mark(self) -> None:
        """The first mark: what came before it becomes save-all."""
        if not self.marked:
            self._hold()

    def meet(self) -> None:
        """A value of a trace around this one has come in: where that one will be reversed too, everything is held
        from now on."""
        if self.tape is not None and recorded(self.tape.outer):
            self._hold()

    def _hold(self) -> None:
        """The chain under way becomes save-all, and so does what comes after it up to the next mark."""
        chain, self.active, self.marked = self.active, None, True
        if chain is not None:
            chain.hold_all()
            self.chains.remove(chain)
            if not self.chains:
                self._release_constants()

    def begin(
        self,
        n: int | None,
        policy: Any,
        verify: Any = None,
        staging: Any = None,
        threads: Any = None,
        *,
        calls: Calls | None = None,
        schedule: Schedule | None = None,
    ) -> PlainChain:
        """A chain of steps begins at the next record; ``calls`` of a function where it is one of these, ``schedule``
        where it is drawn already."""
        assert self.tape is not None
        store = Store(self.ledger, policy)
        verifies = verify_in_force(verify) != "off" and not is_lossy(policy)
        self.active = PlainChain(
            self.tape, store, schedule or policy.schedule(n), n, self.repeatable, PlainSnapshots(store),
            StepEntries(calls=calls), verifies=verifies, staging=staging_in_force(staging),
            threads=threads_in_force(threads), works=self.works,
        )  # fmt: skip
        self.chains.append(self.active)
        self.active.begin()
        return self.active

    def end(self) -> None:
        """The chain under way has ended."""
        if self.active is not None:
            try:
                self.active.finish()
            except PullbackError as error:
                self.refused = error.with_traceback(None)
            self.active = None
            self._warn_of_constants()

    def finish(self) -> None:
        """The trace has ended."""
        self.end()
        if self.refused is not None:
            raise self.refused
        if self.cutter is not None:
            self.cutter.watched.clear()
        self.cutter = None
        if not self.cuts_itself and not self.marked:
            message = (
                f"{self.policy!r} needs a known number of steps and the program marks none, so everything is held; "
                f"mark the loop with pullback.steps(n)"
            )
            warn_user(message, PolicyWarning)

    # The reverse pass.
    def reverse(self, sweeps: Sequence[Sweep]) -> None:
        """Pull back through all stretches for each seed, the last first."""
        tape = self.tape
        assert tape is not None
        stop = len(tape.records)
        for chain in reversed(self.chains):
            sweep(tape, chain.cuts[-1], stop, sweeps)
            chain.pull(sweeps)
            stop = chain.cuts[0]
        sweep(tape, tape.n_inputs, stop, sweeps)
        if not self.repeatable:
            self.close()

    def close(self) -> None:
        """Release everything."""
        for chain in self.chains:
            chain.close()
        self._release_constants()

    def _release_constants(self) -> None:
        for constant in self.constants.values():
            self.ledger.release(value_items((constant,), "constant"))
        self.constants.clear()

    def _warn_of_constants(self) -> None:
        constants = sum(constant.nbytes for constant in self.constants.values())
        snapshots = self.ledger.now.get("snapshot", 0)
        if constants > max(snapshots, _WARN_BYTES):
            message = (
                f"{self.policy!r} holds {mib(constants)} of plain arrays that the steps read, more than its snapshots "
                f"({mib(snapshots)}); the last was read at {site_text(self.constant_site)}. Use pullback.fori_loop or "
                "scan for the loop: they compute such arrays again and hold none"
            )
            warn_user(message, PolicyWarning)


@define(eq=False)
class Cutter:
    """Where a program without marks is cut: where few bytes are live and enough was produced since the last cut to
    be worth a snapshot."""

    live_bytes: int = 0
    produced: int = 0
    recent: deque[int] = field(factory=lambda: deque(maxlen=8))
    watched: dict[int, Any] = field(factory=dict)

    def watch(self, handle: Any) -> None:
        """Count a handle's bytes while it lives."""
        nbytes = nbytes_of(handle._value) or 8
        self.live_bytes += nbytes
        self.produced += nbytes
        key = id(handle)

        def gone(_: Any) -> None:
            self.live_bytes -= nbytes
            self.watched.pop(key, None)

        self.watched[key] = ref(handle, gone)

    def wants_cut(self, records: int) -> bool:
        """Whether to cut now, ``records`` after the last cut."""
        self.recent.append(self.live_bytes)
        if records < 2:
            self.recent.clear()
        if records < 4 or self.produced < 2 * self.live_bytes or self.live_bytes > 1.1 * min(self.recent):
            return False
        self.produced = 0
        return True
