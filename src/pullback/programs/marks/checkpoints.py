"""``checkpoint``: a function of whose inside nothing is held between forward and reverse."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from pullback.memory.in_force import (
    checked,
    innermost,
    recorded,
    staging_in_force,
)
from pullback.memory.ledger import Ledger
from pullback.policies.base import PolicyOrAuto
from pullback.policies.run_again import RunAgain
from pullback.programs.plain.ends_without_schedule import left_alone, require_held, watched_whole
from pullback.programs.plain.plain_code import PlainCode
from pullback.programs.replay.recipes import Calls
from pullback.recording.tape import RECORDING, REPLAYABLE
from pullback.travelling.made_functions import made
from pullback.words.call_sites import public


def checkpoint(f: Callable[..., Any], policy: PolicyOrAuto = None) -> Callable[..., Any]:
    """``f``, holding nothing of its inside between forward and reverse: its records are executed again when its
    cotangent arrives.

    The user's function is not called again, so it may draw random numbers or print. Where it is called again and again,
    and does the same, generated functions execute its records again, and reverse them, with the same bits (``staging``
    of :func:`using`).

    Parameters
    ----------
    f
        Any function.
    policy
        The inside is governed by that policy, cut by itself. Inside steps, a loop function or another checkpoint ``f``
        is only called; so it is under :class:`Budget`, which holds of the inside what it has room for, as of any code.

    Returns
    -------
    A function of the arguments of ``f``, with its values.

    Raises
    ------
    PolicyError
        For what is no policy.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> layer = pb.checkpoint(lambda x: np.sin(np.exp(x)) ** 2)
    >>> g = pb.grad(lambda x: np.sum(layer(layer(x))))(np.ones(3))
    >>> bool(np.all(g == pb.grad(lambda x: np.sum(layer.__wrapped__(layer.__wrapped__(x))))(np.ones(3))))
    True
    """
    policy = None if policy is None else checked(policy)

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        tape = innermost()
        if (
            tape is None
            or _PLAINLY.get()
            or tape.mode not in (RECORDING, REPLAYABLE)
            or tape.captures is not None
            or recorded(tape.outer)
        ):
            return f(*args, **kwargs)
        if left_alone(tape):
            if policy is None:  # as under the budget that leaves the program alone
                return f(*args, **kwargs)
            tape.records.tell()  # type: ignore[attr-defined]  # as asked above
        governor = tape.governor
        governing = RunAgain() if policy is None else policy.at_call()
        if not isinstance(governor, PlainCode):
            governor = PlainCode(governing, tape.ledger or Ledger(), repeatable=tape.repeatable, marked=True)
            governor.open(tape)
            tape.governor = governor
        if governor.within or (governor.binds and policy is None):
            return f(*args, **kwargs)
        governor.mark()
        if governor.seen is not None:
            governor.seen.alone = False  # it goes by more than the budget
        before, tape.mode = tape.mode, REPLAYABLE
        chain = governor.begin(1 if policy is None else None, governing, calls=_calls_of(f), name="checkpoint")
        watched = watched_whole(governor) if governor.binds else None
        try:
            out = f(*args, **kwargs)
        finally:
            if governor.active is chain:
                governor.end()
            tape.mode = before
        if governor.binds:
            require_held(governor, watched)
        return out

    return made("checkpoint", f, public(checkpointed, like=f), policy=policy)


_PLAINLY: ContextVar[bool] = ContextVar("pullback_plainly", default=False)
"""Whether checkpointed functions are only called."""


@contextmanager
def without_checkpoints() -> Iterator[None]:
    """Within the block what :func:`checkpoint` has made only calls its function: everything is held."""
    token = _PLAINLY.set(True)
    try:
        yield
    finally:
        _PLAINLY.reset(token)


_CALLS: WeakKeyDictionary[Any, Calls] = WeakKeyDictionary()
"""What checkpointed calls have in common, by the code of the function."""


def _calls_of(f: Any) -> Calls | None:
    """What the calls of a function have in common, of which another comes; None where nothing is staged."""
    code = getattr(f, "__code__", None)
    if code is None or staging_in_force() == "off":
        return None
    found = _CALLS.get(code)
    if found is None:
        found = _CALLS.setdefault(code, Calls())
    found.n += 1
    return found if found.repeat else None
