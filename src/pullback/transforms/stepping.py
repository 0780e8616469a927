"""Marks a program can carry: ``steps`` (where one time step ends and the next begins), ``checkpoint``,
``stop_gradient``."""

from collections.abc import Callable, Iterable, Iterator, Sized
from functools import wraps
from typing import Any

from attrs import frozen

from pullback.loops.plain_code import PlainChain
from pullback.memory.in_force import innermost, recorded
from pullback.memory.ledger import Ledger
from pullback.policies.actions import Action, Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save
from pullback.policies.base import MemoryPolicy
from pullback.policies.save_all import SaveAll
from pullback.recording.crossing import detached
from pullback.recording.tape import RECORDING, REPLAYABLE, Tape
from pullback.words.structures import map_leaves


def steps(n_or_iterable: int | Iterable[Any]) -> Iterator[Any]:
    """``range(n)``, or the items of an iterable, with each iteration marked as one step of a chain that the policy
    governs.

    Outside a trace, under save-all, and inside other steps it only iterates. ``break`` and exceptions end the chain.
    Plain arrays that a step reads are held for its replay (see ``fori_loop`` for a form that holds none).
    """
    items: Iterable[Any] = range(n_or_iterable) if isinstance(n_or_iterable, int) else n_or_iterable
    n = len(items) if isinstance(items, Sized) else None
    tape = innermost()
    chain = tape.chain if tape is not None else None
    if tape is not None and tape.trap is not None:
        items = tape.trap.numbered(items, tape)
    if tape is None or chain is None or tape.mode != REPLAYABLE or not governs(chain, tape):
        yield from items
        return
    if n == 0:
        return
    chain.mark()
    own = chain.begin(n, chain.policy)
    started = False
    try:
        for item in items:
            if started and chain.active is own:
                own.cut()
            started = True
            yield item
    finally:
        if chain.active is own:
            chain.end()


def governs(chain: PlainChain, tape: Tape) -> bool:
    """Whether steps of this trace are the chain's: not within a step, be it marked or a loop function's, not under
    save-all, and not where a trace around this one records them."""
    within = tape.captures is not None or (chain.active is not None and chain.marked)
    return not within and not isinstance(chain.policy, SaveAll) and not recorded(tape.outer)


@frozen
class _Once(MemoryPolicy):
    """Hold the values at entry, and run everything again when its cotangent arrives."""

    def actions(self, n: int, *, state_bytes: int, tape_bytes: int) -> Iterator[Action]:  # noqa: ARG002 - nothing to choose
        yield Save("state", 0)
        yield Advance(0, n)
        yield EndForward()
        yield Load("state", 0)
        yield Delete("state", 0)
        for k in range(n):
            yield Record(k)
            if k < n - 1:
                yield Save("tape", k)
        for k in reversed(range(n)):
            if k < n - 1:
                yield Load("tape", k)
                yield Delete("tape", k)
            yield Reverse(k)
        yield EndReverse()


def checkpoint(f: Callable[..., Any], policy: Any = None) -> Callable[..., Any]:
    """``f``, holding nothing of its inside between forward and reverse: its records are executed again when its
    cotangent arrives.

    With ``policy`` the inside is governed by that policy, cut by itself. The user's function is not called again, so it
    may draw random numbers or print. Inside steps, a loop function or another checkpoint it only calls ``f``.
    """

    @wraps(f)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        tape = innermost()
        if (
            tape is None
            or tape.mode not in (RECORDING, REPLAYABLE)
            or tape.captures is not None
            or recorded(tape.outer)
        ):
            return f(*args, **kwargs)
        if tape.chain is None:
            tape.chain = PlainChain(policy or _Once(), tape.ledger or Ledger(), repeatable=tape.repeatable)
            tape.chain.open(tape)
            tape.chain.marked = True
        chain = tape.chain
        if chain.active is not None and chain.marked:
            return f(*args, **kwargs)
        chain.mark()
        before, tape.mode = tape.mode, REPLAYABLE
        own = chain.begin(1 if policy is None else None, policy or _Once())
        try:
            return f(*args, **kwargs)
        finally:
            if chain.active is own:
                chain.end()
            tape.mode = before

    return checkpointed


def stop_gradient(x: Any) -> Any:
    """``x`` with no dependence on the inputs: the same values, zero derivative. Structures leaf by leaf."""
    return map_leaves(detached, x)
