"""Plain programs under a policy: which stretches of the tape are held whole, and which are chains of steps that the
policy governs.

Code before and after marked steps is save-all; each marked loop is a chain of its own. A program without marks is one
chain, cut by itself where few bytes are live.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from pullback.memory.in_force import recorded
from pullback.memory.ledger import Ledger, nbytes_of, value_items
from pullback.memory.reverse_sweep import Sweep, sweep
from pullback.memory.working_bytes import Lifetimes, Variables
from pullback.programs.exact_budget.foreseen import Seen, seen
from pullback.programs.plain.chains import PROGRAM, chain_for
from pullback.programs.plain.cutter import Cutter
from pullback.programs.plain.ends_without_schedule import (
    end_rest,
    end_stretch,
    held_whole,
    large_constants,
    marked,
    require_floor,
    stands_between,
    unmarked,
)
from pullback.programs.replay.followed_steps import FollowedRecipes
from pullback.programs.replay.recipes import Calls
from pullback.recording.handles import Handle, freeze
from pullback.recording.results import COMPONENT
from pullback.recording.tape import REPLAYABLE, Governor, Ident, Tape
from pullback.recording.writes import WRITE_OPCODES
from pullback.rules.forms import FORMS
from pullback.words.call_sites import warn_user
from pullback.words.errors import PolicyError, PolicyWarning, PullbackError


@define(eq=False)
class PlainCode(Governor):
    """The governor of plain code: the stretches of one tape under a policy."""

    policy: Any
    ledger: Ledger
    repeatable: bool
    tape: Tape | None = None
    chains: list[Any] = field(factory=list)
    gauges: list[Any] = field(factory=list)  # of chains under a policy that looks at them
    active: Any = None
    """The chain under way: a :class:`PlainChain`, or what keeps some values (``kept_chain``)."""
    unmarked: Any = None
    """That chain where it stands outside marked steps."""
    following: FollowedRecipes | None = None  # the recipes of marked steps
    marked: bool = False  # from the first mark on: outside marked steps everything is held
    cuts_itself: bool = True  # not for a policy that must know the length: such a program is held whole
    cutter: Cutter | None = None
    lifetimes: Lifetimes | None = None
    """Lifetimes of the values of the steps that tell a policy what it needs to know."""
    binds: bool = False
    """Whether all that the trace holds is to stay within a number of bytes: then code outside marked steps becomes
    save-all only where there is room (``programs.plain.ends_without_schedule``)."""
    counts: bool = False
    """Whether loops go by a number of bytes: what variables have from before counts for them."""
    floor: int = 0
    """What code outside marked steps takes at least, where all is to stay within a number of bytes."""
    unlooked_bytes: int = 0
    """What the program may still make before it becomes a chain."""
    constants: dict[int, Any] = field(factory=dict)
    """The copies of plain arrays that recipes hold, by ``id``."""
    calls: Calls | None = None
    """What steps of a loop have in common, of which this trace is one."""
    works: dict[Any, Any] = field(factory=dict)
    """What the functions of staged steps work in, by stage."""
    constant_site: int = -1
    seen: Seen | None = None
    """What is known of the program from calls before, in a gradient under a policy that counts bytes."""
    refused: PullbackError | None = None
    """What a policy said of a chain, raised again when the trace ends: Python drops it where ``break`` ends the chain,
    and a program that catches errors of its own may catch it."""
    talks: bool = False  # whether calls that meet calls of others are all there is of marks
    rest: Any = None  # the chain that has become save-all though its code goes on
    left: bool = False  # whether ``break`` has left the chain under way, which ends when the program goes on
    noted: list[str] = field(factory=list)  # what is to be warned of then

    @classmethod
    def of(cls, policy: Any, ledger: Ledger, repeatable: bool, called: Any, *, marked: bool) -> "PlainCode":
        """The governor of a call of ``(f, args, kwargs)``. Who looks at the report sees what is governed."""
        known = seen(policy, *called) if policy.counts_bytes and not marked and not ledger.heard else None
        binds, counts = (not marked and each.room is not None for each in (policy, policy.between))
        return cls(policy, ledger, repeatable, marked=marked, binds=binds, counts=counts, seen=known)

    @property
    def keeps(self) -> bool:
        """Whether the policy decides of values within steps: then there is no code that it leaves alone."""
        return self.policy.within is not None or self.policy.plans_values

    def open(self, tape: Tape) -> None:
        """The trace begins, or does more than is known of it."""
        if self.seen is not None and self.seen.leaves(tape, self._govern):
            return
        self.tape = tape
        self.cutter = None if self.keeps and not self.counts else Cutter()
        self.unlooked_bytes = self.policy.unlooked_bytes

    def _govern(self, tape: Tape) -> None:
        tape.mode, tape.governor = REPLAYABLE, self
        self.open(tape)

    # What the recorder tells.
    def before_record(
        self, record: tuple[Any, ...], operands: Any, values: Any, params: Mapping[str, Any], rerun: Any = None
    ) -> None:
        """Keep what executes the record again, and let snapshots take what it reads from before them; cut the program
        first where few bytes are live."""
        if self.seen is not None:
            self.seen.met(record, self.tape)
        tape = self.tape
        if tape is not None and tape.collective and stands_between(self, record):
            return
        chain, following = self.active, self.following
        if following is not None and rerun is not None:
            following.leave()
        elif following is not None and following.meets(record, operands, values, params, self):
            return
        if chain is None:
            if record[0] == COMPONENT.opcode:
                return  # of a loop, which stands between two stretches
            self._begin_unmarked()
            chain = self.active
        if chain is None or tape is None:
            return
        ident = len(tape.records)
        if (
            self.cutter is not None
            and chain is self.unmarked
            and not self.keeps
            and FORMS[record[0]].execute is None
            and self.cutter.wants_cut(ident - chain.cuts[-1])
        ):
            chain.cut()
        recipes, snapshots = chain.recipes, chain.snapshots
        cut, start, near = snapshots.reads_from, recipes.start, recipes.near
        rewritten = operands[0] if record[0] in WRITE_OPCODES else None  # it was read before, and is another by now
        arguments: list[Any] = []
        for operand, value in zip(operands, values, strict=True):
            known = None
            if isinstance(operand, Handle):
                if operand._tape is tape:
                    known = operand._id
            elif type(operand) is Ident:
                known = operand.ident
            if known is None:
                arguments.append(recipes.operand(self.constant(value, record[-1])))
                continue
            if known < cut and operand is not rewritten:
                snapshots.read(known, value, operand if type(operand) is not Ident else None)
            arguments.append(known - start if known >= near else recipes.coded(known))
        recipes.add(ident, record, tuple(arguments), params, rerun)
        if chain.collects:
            chain.met(ident, record, operands, values)

    def watch(self, handle: Any) -> None:
        """A handle was made; while the program cuts itself, the bytes of live handles are counted."""
        if self.lifetimes is not None:
            self.lifetimes.watch(handle)
        if self.seen is not None:
            self.seen.made(handle._value)
        if self.unlooked_bytes > 0:
            self.unlooked_bytes -= nbytes_of(handle._value) or 8
        elif self.cutter is not None and (self.counts or not self.marked):
            self.cutter.watch(handle)
            self._measure(handle)

    def bytes_beside(self, held: Collection[Hashable], before: int) -> int:
        """What variables of the program have from before a record, and nobody else holds."""
        return self.cutter.bytes_beside(self, held, before) if self.cutter and self.counts else 0

    def variables(self, held: Collection[Hashable], *others: Any) -> Variables | None:
        """The same one by one, as :meth:`Cutter.variables` does."""
        return self.cutter.variables(self, held, *others) if self.cutter and self.counts else None

    def sent_from(self, place: int) -> set[int]:
        """The ids before chains that begin at record ``place`` or later, to which these send cotangents."""
        later = (chain for chain in self.chains if chain.replays and chain.cuts and chain.cuts[0] >= place)
        return {ident for chain in later for ident in chain.recipes.read_before()}

    def activated(self, handle: Any) -> None:
        """A handle stands for another value."""
        if self.lifetimes is not None:
            self.lifetimes.watch(handle)
        self._measure(handle)

    def _measure(self, handle: Any) -> None:
        if self.unmarked is not None and self.active is self.unmarked and not self.keeps:
            self.active.recipes.stands(handle)

    def before_write(self, root: Any) -> None:
        """A value is about to be written: a snapshot that may need it takes it first."""
        self._begin_unmarked()
        if self.active is not None and root._id is not None:
            self.active.snapshots.read(root._id, root._value, root)

    def returned(self, name: str, handle: Any) -> None:
        """A NumPy function has returned what the handle stands for."""
        if self.active is not None and self.active.collects:
            self.active.returned(name, handle)

    def constant(self, value: Any, site: int) -> Any:
        """What is read there as it is now: of a plain array the held copy, one for each distinct content."""
        assert self.tape is not None
        if not isinstance(value, np.ndarray):
            return freeze(value) if isinstance(value, Handle) else value  # of a trace around
        self.constant_site = site
        copy = self.tape.keep(value)
        if id(copy) not in self.constants:
            self.constants[id(copy)] = copy
            self.ledger.hold(value_items((copy,), "constant"))
        return copy

    # Marks.
    def _begin_unmarked(self) -> None:
        """A program without marks, so far, is one chain from its first record on; so is all code between marks where
        a number of bytes binds it."""
        if self.active is not None or self.rest is not None or not self.cuts_itself or self.unlooked_bytes > 0:
            return
        if self.marked and not self.binds:
            return
        if self.keeps:
            self.begin(None, self.policy, calls=self.calls, name=PROGRAM).counts = False
            return
        try:
            self.policy.schedule(None)
        except PolicyError:  # the policy needs to know the length: everything is held up to the first mark
            self.cuts_itself = False
            return
        self.begin(None, self.policy, name=PROGRAM)

    @property
    def replays(self) -> bool:
        """Within steps, and in a program that has no marks so far; under ``Keep`` no loop function is."""
        return not self.marked and not self.keeps if self.active is None else self.active.replays

    @property
    def joins(self) -> bool:
        """Not where the policy, or that of a checkpoint under way, decides of values within steps."""
        return not self.keeps and (self.active is None or self.active.replays)

    @property
    def executes(self) -> bool:
        """Not where everything is held: there the records are those of save-all, as a loop expects of step 0."""
        return self.active is not None or self.binds or not self.marked

    @property
    def between_marks(self) -> bool:
        """Whether code under way, which a number of bytes binds, stands between marks or after them."""
        return self.binds and self.marked and self.active is not None and self.active is self.unmarked

    @property
    def within(self) -> bool:
        """Whether marked steps, or a checkpoint, are under way."""
        return self.active is not None and self.active is not self.unmarked

    def mark(self) -> None:
        """A mark: what came before the first one becomes save-all, and what came before each where a number of bytes
        has room for that."""
        if self.talks or self.left:
            marked(self)
        if self.rest is not None:
            end_rest(self)
        if self.keeps:
            return
        if self.binds and self.active is not None:
            end_stretch(self)
        elif not self.marked:
            self.hold()
        self.marked = True

    def meet(self) -> None:
        """A value of a trace around this one has come in: where that one will be reversed too, everything is held
        from now on."""
        if self.tape is not None and recorded(self.tape.outer):
            self.binds, self.seen = False, None
            self.hold()

    def keep_all(self) -> bool:
        """Whether the policy has decided to keep every step of the chain under way, which is save-all from now on."""
        chain = self.active
        keeps = chain is not None and chain.gauge is not None and chain.gauge.saves_all and not chain.collects
        if keeps:
            self.active.gauge.ended()
            self.hold()
        return keeps

    def hold(self) -> None:
        """The chain under way becomes save-all, and so does what comes after it up to the next mark."""
        chain, unmarked = self.active, self.unmarked
        self.active, self.unmarked, self.following, self.marked = None, None, None, True
        if chain is not None:
            if chain.gauge is not None:
                self.ledger.counted, chain.gauge.saves_all = chain.gauge.counted, True
                chain.gauge.keep(chain.gauge.held_here)
            chain.hold_all()
            if chain is unmarked and not self.keeps:
                self.ledger.n_forward -= len(chain.cuts) - 1  # no steps after all
            self.chains.remove(chain)
            if not self.chains:
                self._release_constants()

    def hold_now(self) -> None:
        """The code under way becomes save-all before it ends; it is asked for room as before."""
        self.rest, lifetimes = self.active, self.lifetimes
        self.hold()
        self.lifetimes = lifetimes

    def begin(
        self, n: int | None, policy: Any, verify: Any = None, staging: Any = None, threads: Any = None, *,
        calls: Calls | None = None, name: str = "steps", ledger: Any = None,
    ) -> Any:  # fmt: skip
        """A chain of steps begins at the next record; ``calls`` of a function where it is one of these, ``name`` for
        the report, the ``ledger`` where it books elsewhere than the others."""
        assert self.tape is not None
        self.end()  # what stands before marked steps
        how = verify, staging, threads
        self.active = chain_for(self, n, policy, how, calls, name, ledger or self.ledger)
        self.chains.append(self.active)
        if name == PROGRAM:
            self.unmarked = self.active
        self.active.begin()
        return self.active

    def end(self) -> None:
        """The chain under way has ended."""
        if self.active is not None:
            try:
                self.active.finish()
            except PullbackError as error:
                self.refused = error.with_traceback(None)
            if self.active.gauge is not None:
                self.active.gauge.ended()
            replays, self.active, self.unmarked, self.following = self.active.replays, None, None, None
            if replays:
                self.noted += large_constants(self)

    def finish(self) -> None:
        """The trace has ended."""
        if self.rest is not None:
            end_rest(self)
        if not self.keeps and (self.between_marks or (self.binds and self.active and self.active.schedule is None)):
            end_stretch(self, last=True)
        self.end()
        if self.binds and (self.refused is None or self.floor > self.policy.room):
            require_floor(self)
        if self.refused is not None:
            raise self.refused
        if self.seen is not None and self.tape is not None:
            self.seen.ended(self.tape)
        whole = [] if self.cuts_itself or self.marked else [unmarked(self)]
        for message in (*self.noted, *([held_whole(self)] if self.talks else []), *whole):
            warn_user(message, PolicyWarning)
        for decisions in self.ledger.decided.values():
            decisions.tell()
        self.ledger.decided.clear()
        self.policy.kept_unlooked(self.ledger)
        if self.cutter is not None:
            self.cutter.watched.clear()
            self.cutter = None

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
        self.refused = None  # its frames hold the trace
        for chain in self.chains:
            chain.close()
        for gauge in self.gauges:
            gauge.keep(0)
        self._release_constants()

    def _release_constants(self) -> None:
        for constant in self.constants.values():
            self.ledger.release(value_items((constant,), "constant"))
        self.constants.clear()
