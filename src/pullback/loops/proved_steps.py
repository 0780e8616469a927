"""Steps of a body that is proved to do the same whatever their number: once two of them have been checked, the generated
functions go on by themselves, and the body rests.

The proof is that of ``bodies.same_again``: all that the body reads besides its state stays as it is, so the operations
and the plain operands of the next step are those of the last one. Two steps are run with their body before: the second
must have met the operands of the first, and left what is read as it was. Then what is read is compared again every
``CHECKED`` steps, since other threads may change it; where it differs, the steps after it run their body again.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field

from pullback.bodies.same_again import NotTheSameError, Reads, reads_of, uses_argument
from pullback.loops.rerun import as_before
from pullback.loops.staged_step import StagedStep, StepKind
from pullback.machine.actions import MEMORY
from pullback.machine.known_schedules import ADVANCE, AT_ONCE, DELETE, LOAD, SAVE
from pullback.staging.generated import say_line, usable
from pullback.words.sameness import same_content

FEWEST = 32
"""Steps, or actions of a schedule, from which it pays to prove something: the bytecode is read in each loop."""
CHECKED = 64
"""Steps after which what the body reads is compared again."""


@define(eq=False)
class Proof:
    """Whether the body of one loop does the same in each step, and what it reads. ``counted``: it is told the number of
    the step."""

    body: Any
    counted: bool
    why: str = field(default="", init=False)
    """Why it is not proved; empty where that has not been asked, or it is."""
    reads: Reads | None = field(default=None, init=False)
    before: tuple[list[Any], list[Any]] | None = field(default=None, init=False)
    """The captured values and the plain operands of the step before."""

    def begins(self) -> None:
        """Other steps may have been run since."""
        self.reads = self.before = None

    def repeats(self, values: list[Any], constants: list[Any]) -> bool:
        """Whether the step that has just been run, with these captured values and plain operands, has done what the one
        before did, so that every other step will."""
        if self.why or sys.gettrace() is not None or sys.getprofile() is not None:  # those see each step
            return False
        before, self.before = self.before, (values, constants)
        if self.reads is None:
            self._read()
        elif before is not None and self.reads.hold() and _are_same(values, before[0]):
            return len(constants) == len(before[1]) and all(map(same_content, before[1], constants))
        else:
            self.why = "it changes what it reads"
        return False

    def _read(self) -> None:
        code = getattr(self.body, "__code__", None)
        try:
            if code is None or code.co_flags & 0xC:  # any number of arguments
                raise NotTheSameError("its arguments have no names")
            if self.counted and uses_argument(code, code.co_varnames[0]):
                raise NotTheSameError("it uses the number of the step")
            self.reads = reads_of(self.body, _nothing, steps=True)
        except NotTheSameError as error:
            self.why = str(error)


def _nothing(_: Any) -> None:
    """No function of the library's stands for one of the user's."""


def _are_same(values: list[Any], others: list[Any]) -> bool:
    return len(values) == len(others) and all(one is other for one, other in zip(values, others, strict=True))


def recorded_on(
    kind: StepKind, given: tuple[list[Any], list[Any], Any], proof: Proof, verifier: Any, k: int, stop: int,
    state: list[Any], take: Callable[[Any], None],
) -> tuple[int, list[Any]]:  # fmt: skip
    """Record steps from ``k`` up to ``stop``; ``take`` gets each. The step reached, and the state there. ``given`` are
    captured values, plain operands, and the block that hears of what NumPy warns of."""
    values, constants, told = given
    stage, reads, compares = kind.stage, proof.reads, verifier.compares
    assert reads is not None  # it is proved
    function, places, closed = usable(stage.record).function, kind.work.of(stage.record), stage.closed
    try:
        while k < stop and reads.hold():
            with told:
                for k in range(k, min(k + CHECKED, stop)):  # noqa: B020, PLR1704 - goes on where it was
                    returned, slots = function(state, values, constants, *places)
                    state = list(returned) if closed else as_before(state, returned)
                    if compares:
                        verifier.after(k, state, [])
                    take(StagedStep(kind, slots, k))
            k += 1
    except Exception as error:
        say_line(error, stage.record)
        raise
    return k, state


def _leaves(numbers: Sequence[int], at: int, n: int) -> bool:
    """Whether the state that has been reached is left: another one is loaded, or there is no action any more."""
    while at < n and numbers[at] == DELETE:
        at += 3
    return at >= n or numbers[at] == LOAD


@define(eq=False)
class ProvedPass:
    """What carries out the actions of a schedule on a reverse pass, from where ``once`` has reversed a step of a proved
    body."""

    once: Any
    """How steps are recorded and reversed at once (``at_once.AtOnce``)."""
    chain: Any
    proof: Proof
    given: tuple[list[Any], list[Any]]
    """Captured values and plain operands."""

    def carry_out(self, numbers: Sequence[int], at: int, snapshot: Callable[[list[Any]], Any]) -> int:
        """The actions from place ``at`` among the numbers on, as far as they are of states in memory and of steps that
        are reversed at once; the place reached. ``snapshot`` is one of a state, which nobody writes to."""
        once, reads = self.once, self.proof.reads
        assert reads is not None  # it is proved
        stage = once.kind.stage
        try:
            if once.told is None:
                return self._carry_out(numbers, at, snapshot)
            with once.told:
                return self._carry_out(numbers, at, snapshot)
        except Exception as error:
            for generated in (stage.at_once, stage.leaf, stage.advance):
                say_line(error, generated)
            raise

    def _carry_out(self, numbers: Sequence[int], at: int, snapshot: Callable[[list[Any]], Any]) -> int:
        once, chain, (values, constants) = self.once, self.chain, self.given
        kind, one, reads, entries = once.kind, once.one, self.proof.reads, chain.store.entries
        stage, verifier, state, n = kind.stage, chain.verifier, chain.state, len(numbers)
        advance, both, leaf = stage.advance.function, stage.at_once.function, stage.leaf.function
        of_advance, of_both, of_leaf = (kind.work.of(each) for each in (stage.advance, stage.at_once, stage.leaf))
        cts, sums, closed, n_forward = one.cts, once.sums, stage.closed, 0
        compares, each = verifier.compares, verifier.compares and verifier.stride > 1
        leaves = once.told is None and not each
        held, looked = True, 0
        try:
            while at < n:
                code, step = numbers[at], numbers[at + 1]
                if looked == CHECKED:
                    looked, held = 0, reads.hold()
                looked += 1
                if code == ADVANCE:
                    if not held:
                        break
                    stop = numbers[at + 2]
                    for k in range(step, stop):
                        (returned,) = advance(state, values, constants, *of_advance)
                        state = returned if closed else as_before(state, returned)
                        if each:
                            verifier.after(k, list(state), [])
                    if compares and not each:
                        verifier.after(stop - 1, list(state), [])
                    n_forward += stop - step
                elif code == AT_ONCE:
                    if not held:
                        break
                    if leaves and _leaves(numbers, at + 3, n):
                        cts, sums = leaf(state, values, constants, cts, sums, *of_leaf)
                    else:
                        if each:
                            verifier.starts(step, list(state))
                        returned, cts, sums = both(state, values, constants, cts, sums, *of_both)
                        state = returned if closed else as_before(state, returned)
                        if compares:
                            verifier.after(step, list(state), [])
                    n_forward += 1
                elif code == LOAD:
                    state = entries["state", step, MEMORY].leaves
                elif code == SAVE:
                    entries["state", step, MEMORY] = snapshot(list(state))
                elif code == DELETE:
                    del entries["state", step, MEMORY]
                else:
                    break
                at += 3
        finally:
            chain.state, chain.owned, one.cts, once.sums = list(state), False, cts, sums
            one.gathered.update(zip(kind.ids, sums, strict=True))
            chain.store.ledger.n_forward += n_forward
        return at
