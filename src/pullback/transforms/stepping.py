"""Marks a program can carry: ``steps`` (where one time step ends and the next begins), ``checkpoint``,
``stop_gradient``."""

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

from pullback.loops.plain_code import PlainCode
from pullback.memory.in_force import innermost, recorded
from pullback.memory.ledger import Ledger
from pullback.policies.run_again import RunAgain
from pullback.policies.save_all import SaveAll
from pullback.recording.crossing import detached
from pullback.recording.tape import RECORDING, REPLAYABLE, Tape
from pullback.words.call_sites import public
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
    governor = tape.governor if tape is not None else None
    if tape is not None and tape.trap is not None:
        items = tape.trap.numbered(items, tape)
    if tape is None or not isinstance(governor, PlainCode) or tape.mode != REPLAYABLE or not governs(governor, tape):
        yield from items
        return
    if n == 0:
        return
    governor.mark()
    chain = governor.begin(n, governor.policy)
    started = False
    try:
        for item in items:
            if started and governor.active is chain:
                chain.cut()
            started = True
            yield item
    finally:
        if governor.active is chain:
            governor.end()


def governs(governor: PlainCode, tape: Tape) -> bool:
    """Whether steps of this trace become a chain: not within a step, be it marked or a loop function's, not under
    save-all, and not where a trace around this one records them."""
    within = tape.captures is not None or (governor.active is not None and governor.marked)
    return not within and not isinstance(governor.policy, SaveAll) and not recorded(tape.outer)


def checkpoint(f: Callable[..., Any], policy: Any = None) -> Callable[..., Any]:
    """``f``, holding nothing of its inside between forward and reverse: its records are executed again when its
    cotangent arrives.

    With ``policy`` the inside is governed by that policy, cut by itself. The user's function is not called again, so it
    may draw random numbers or print. Inside steps, a loop function or another checkpoint it only calls ``f``.
    """

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        tape = innermost()
        if (
            tape is None
            or tape.mode not in (RECORDING, REPLAYABLE)
            or tape.captures is not None
            or recorded(tape.outer)
        ):
            return f(*args, **kwargs)
        governor = tape.governor
        if not isinstance(governor, PlainCode):
            governor = PlainCode(policy or RunAgain(), tape.ledger or Ledger(), repeatable=tape.repeatable, marked=True)
            governor.open(tape)
            tape.governor = governor
        if governor.active is not None and governor.marked:
            return f(*args, **kwargs)
        governor.mark()
        before, tape.mode = tape.mode, REPLAYABLE
        chain = governor.begin(1 if policy is None else None, policy or RunAgain())
        try:
            return f(*args, **kwargs)
        finally:
            if governor.active is chain:
                governor.end()
            tape.mode = before

    return public(checkpointed, like=f)


def stop_gradient(x: Any) -> Any:
    """``x`` with no dependence on the inputs: the same values, zero derivative. Structures leaf by leaf."""
    return map_leaves(detached, x)
