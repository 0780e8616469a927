"""The executor: carries out the actions of a schedule on a chain of steps. It decides nothing.

A chain is anything with the methods of :class:`Chain`: a loop body that is called again, or a stretch of a recorded
program that is executed again. Every action goes through the same state machine as in the simulator, so a wrong
schedule raises before it can give a wrong number.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, Protocol

from pullback.scheduling.machine.actions import (
    MEMORY,
    Action,
    Advance,
    Delete,
    EndForward,
    EndReverse,
    Load,
    Record,
    Reverse,
    Save,
    Transfer,
)
from pullback.scheduling.machine.known_schedules import (
    ADVANCE,
    AT_ONCE,
    BACK,
    DELETE,
    DELETE_TAPE,
    KEEP,
    LOAD,
    LOAD_TAPE,
    RECORD,
    REVERSE,
    SAVE,
    SAVE_TAPE,
    TAKE,
    Noted,
    Numbers,
)
from pullback.scheduling.machine.machine import Machine
from pullback.scheduling.machine.schedule import Schedule, known
from pullback.words.errors import ScheduleError


class Chain(Protocol):
    """What the executor asks of a chain of steps."""

    def advance(self, start: int, stop: int) -> int:
        """Run steps ``start .. stop-1`` without recording; the step reached, less than ``stop`` where the loop
        ended."""

    def record(self, step: int) -> None:
        """Run ``step`` and keep its tape in WORK."""

    def reverse(self, step: int) -> None:
        """Pull the cotangent back through the tape in WORK and drop the tape."""

    def save(self, kind: str, step: int, tier: str) -> None:
        """Put the live state of ``step``, or the tape in WORK, into a tier."""

    def load(self, kind: str, step: int, tier: str) -> None:
        """Take it out again; the entry stays."""

    def transfer(self, kind: str, step: int, source: str, target: str) -> None:
        """Copy an entry from one tier to another, past WORK."""

    def delete(self, kind: str, step: int, tier: str) -> None:
        """Release an entry."""


def run_forward(schedule: Any, machine: Machine, chain: Chain) -> None:
    """Carry out the actions of the initial sweep, up to and including EndForward."""
    if machine.n is not None and _takes_numbers(schedule, chain):
        _by_numbers(schedule, machine, chain, EndForward)
        return
    if chain_end(chain, machine) is not None:  # a loop of unknown length that ends before the next step
        schedule.finalize(machine.cursor)
        machine.finalize(machine.cursor)
    for action in schedule:
        reached = carry_out(action, machine, chain)
        if reached is not None:  # the loop ended inside an Advance
            schedule.finalize(reached)
            machine.finalize(reached)
        if type(action) is EndForward:
            return


def run_reverse(schedule: Any, machine: Machine, chain: Chain) -> None:
    """Carry out the rest of the actions, up to EndReverse. A chain with a method ``record_and_reverse`` is told
    of both in one call where they follow each other."""
    numbers = known(schedule)
    if numbers is not None:
        getattr(chain, "carry_out_known", partial(carry_out_known, chain))(numbers)
        machine.end()
        return
    if _takes_numbers(schedule, chain):
        ended = _by_numbers(schedule, machine, chain, EndReverse)
    else:
        ended = _one_by_one(schedule, machine, chain)
    if not ended:
        raise ScheduleError(
            f"{schedule!r} ended before EndReverse; yield Reverse(k) for every step and EndReverse() last"
        )


def _one_by_one(schedule: Any, machine: Machine, chain: Any) -> bool:
    at_once = getattr(chain, "record_and_reverse", None)
    noted = Noted(schedule)
    for action in schedule:
        if type(action) is EndReverse:
            machine.apply(action)
            noted.end()
            return True
        noted.take(action)
        if at_once is None or type(action) is not Record:
            carry_out(action, machine, chain)
            continue
        machine.apply(action)
        following = next(schedule, None)
        if type(following) is Reverse and following.step == action.step:
            machine.apply(following)
            noted.take(following)
            at_once(action.step)
            continue
        chain.record(action.step)
        if following is None:
            break
        noted.take(following)
        carry_out(following, machine, chain)
    return False


def _takes_numbers(schedule: Any, chain: Any) -> bool:
    """Whether a chain carries out many actions together: not where somebody looks at each of them."""
    return hasattr(chain, "carry_out_known") and type(schedule) is Schedule


def _by_numbers(schedule: Any, machine: Machine, chain: Any, last: type) -> bool:
    """Carry out the actions up to and including one of the type ``last``, many together; each is checked before, and
    before what precedes it among these has been done. Whether there was such a one."""
    numbers, noted = Numbers(), Noted(schedule) if last is EndReverse else None
    for action in schedule:
        machine.apply(action)
        if noted is not None and type(action) is not last:
            noted.take(action)
        if type(action) is not last and numbers.take(action):
            if numbers.full:
                chain.carry_out_known(numbers.taken())
            continue
        chain.carry_out_known(numbers.taken())
        if type(action) is last:
            if noted is not None:
                noted.end()
            return True
        _done(action, chain)
    return False


def carry_out_known(chain: Any, numbers: Iterable[int]) -> None:
    """Actions that the machine has checked. A chain with a method of this name does it by itself."""
    at_once = getattr(chain, "record_and_reverse", None) or partial(_both, chain)
    each = iter(numbers)
    for code, step, stop in zip(each, each, each, strict=True):
        if code == ADVANCE:
            chain.advance(step, stop)
        elif code == AT_ONCE:
            at_once(step)
        elif code == KEEP:
            for k in range(step, stop):
                chain.record(k)
                chain.save("tape", k, MEMORY)
        elif code == BACK:
            for k in range(step, stop - 1, -1):
                carry_out_one(chain, TAKE, k)
                chain.reverse(k)
        else:
            carry_out_one(chain, code, step)


def carry_out_one(chain: Any, code: int, step: int) -> None:
    """An action of a single step, by its number."""
    if code == RECORD:
        chain.record(step)
    elif code == REVERSE:
        chain.reverse(step)
    elif code == SAVE:
        chain.save("state", step, MEMORY)
    elif code == LOAD:
        chain.load("state", step, MEMORY)
    elif code == DELETE:
        chain.delete("state", step, MEMORY)
    elif code == SAVE_TAPE:
        chain.save("tape", step, MEMORY)
    else:
        if code != DELETE_TAPE:
            chain.load("tape", step, MEMORY)
        if code != LOAD_TAPE:
            chain.delete("tape", step, MEMORY)


def _both(chain: Chain, step: int) -> None:
    chain.record(step)
    chain.reverse(step)


def carry_out(action: Action, machine: Machine, chain: Chain) -> int | None:
    """One action. The step at which the loop ended, if an Advance met its end; else None."""
    kind = type(action)
    if kind is Advance:
        machine.require_fits(action)  # type: ignore[arg-type]
        reached = chain.advance(action.start, action.stop)  # type: ignore[union-attr]  # kind says which action it is
        if reached < action.stop:  # type: ignore[union-attr]
            if reached > machine.cursor:
                machine.apply(Advance(machine.cursor, reached))
            return reached
        machine.apply(action)
        return chain_end(chain, machine)
    machine.apply(action)
    _done(action, chain)
    return chain_end(chain, machine) if kind is Record else None


def _done(action: Action, chain: Chain) -> None:
    """The chain carries out an action that is no Advance."""
    kind = type(action)
    if kind is Record:
        chain.record(action.step)  # type: ignore[union-attr]
    elif kind is Reverse:
        chain.reverse(action.step)  # type: ignore[union-attr]
    elif kind is Save:
        chain.save(action.kind, action.step, action.tier)  # type: ignore[union-attr]
    elif kind is Load:
        chain.load(action.kind, action.step, action.tier)  # type: ignore[union-attr]
    elif kind is Delete:
        chain.delete(action.kind, action.step, action.tier)  # type: ignore[union-attr]
    elif kind is Transfer:
        chain.transfer(action.kind, action.step, action.source, action.target)  # type: ignore[union-attr]


def chain_end(chain: Any, machine: Machine) -> int | None:
    """The step at which the condition of a loop of unknown length now says that it ends, else None."""
    if machine.n is not None or chain.goes_on(machine.cursor):
        return None
    return machine.cursor
