"""``steps``: marks where one time step of a program ends and the next begins."""

from collections.abc import Iterable, Iterator, Sized
from operator import index
from sys import _getframe
from typing import Any

import numpy as np

from pullback.memory.in_force import (
    innermost,
    planned,
    progress_in_force,
    recorded,
    resumed,
    staging_in_force,
    threads_in_force,
    verify_in_force,
)
from pullback.policies.save_all import SaveAll
from pullback.programs.plain.first_steps import agrees
from pullback.programs.plain.plain_code import PlainCode
from pullback.programs.replay.marked_steps import MarkedSteps
from pullback.recording.handles import Handle
from pullback.recording.tape import CLOSED, RECORDING, REPLAYABLE, Tape
from pullback.staging.marks.which_are_followed import followed
from pullback.words.errors import PolicyError, StructureError, say_where


def steps(
    n_or_iterable: Any,
    *,
    verify: str | None = None,
    staging: str | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Iterator[Any]:
    """``range(n)``, or the items of an iterable, with each iteration marked as one step of a chain that the policy
    governs.

    Outside a trace, under save-all, and inside other steps it only iterates. ``break`` and exceptions end the chain.
    Plain arrays that a step reads are held for its replay (:func:`fori_loop` is the form that holds none).

    Parameters
    ----------
    n_or_iterable
        A number of steps, or an iterable. There are as many steps as items come: what ``len()`` says only helps the
        policy to plan. Where fewer come, the loop was left early; where more come, the policy goes on as for an unknown
        length, or raises where it cannot.
    verify
        Whether the values that a step executed again hands on are compared with those that the next step began with
        (default: that of :func:`using`, else ``"all"``); ``"off"`` compares nothing. Only a primitive whose forward
        depends on more than its operands makes them differ.
    staging
        How steps that do the same are computed, and executed again, with the same bits (default: that of
        :func:`using`, else ``"auto"``): by generated functions where that pays (``"auto"``: 24 such steps and more, of
        at most 64 MiB; in your own run 96), from the second such step on (``"numpy"``), by those of a backend (its
        name), or one primitive after the other (``"off"``).
    threads
        Among how many threads these functions divide large arrays (default: that of :func:`using`, else 1).
    progress
        Shows how far the steps are, forward and back (default: that of :func:`using`).

    Returns
    -------
    An iterator.

    Raises
    ------
    ReplayError
        In the reverse pass, where a step executed again gives other values.
    PolicyError
        For another word of ``verify`` or ``staging``, and fewer threads than 1.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> def decayed(u):
    ...     for _ in pb.steps(50):
    ...         u = u - 0.1 * u**2
    ...     return u
    >>> bool(pb.grad(decayed, policy=pb.Binomial(3))(1.0) == pb.grad(decayed)(1.0))
    True
    """
    how = verify_in_force(verify), staging_in_force(staging), threads_in_force(threads)
    items = counted = _items(n_or_iterable)
    tape = innermost()
    governor = tape.governor if tape is not None else None
    if tape is not None and tape.trap is not None:
        items = tape.trap.numbered(items, tape)
    if tape is None or not isinstance(governor, PlainCode) or tape.mode != REPLAYABLE or not governs(governor, tape):
        if tape is not None and _counts(tape, governor):
            marks = followed(tape, None, _length(counted), how[1], _getframe(1))
            items = _counted(items, tape, _telling(tape, counted, progress), how, marks)
        for item in items:  # no ``yield from``, which would close a generator of the user's that is left by break
            yield item
        return
    n = _length(counted)
    _require_no_journal()
    governor.mark()
    ledger = _told(tape.ledger, progress)
    chain = governor.begin(n, governor.policy, *how, ledger=ledger) if n != 0 else None
    marks = followed(tape, chain, None if chain is None else n, how[1], _getframe(1))
    for item in _governed(items, tape, n, chain, how, ledger, marks):
        yield item


def _governed(
    items: Iterable[Any], tape: Tape, n: int | None, chain: Any, how: tuple[str, str, int], ledger: Any, marks: Any
) -> Iterator[Any]:
    """The items, each of which begins a step of a chain that the policy governs."""
    governor: Any = tape.governor
    promised, mode, over = n, tape.mode, False
    try:
        for done, item in enumerate(items):
            marks.ends()
            if done == n:  # more items than were promised
                n, chain = None, _unforeseen(governor, tape, chain, promised, how, ledger)
            elif done and chain is not None and governor.active is chain:
                chain.cut()
                if governor.keep_all() and tape.trap is None:
                    tape.mode = RECORDING  # nothing will run again: to the end of the loop it goes the fast way
                    tape.ledger.within_steps = True
                    ledger.sweeps(n, anew=False)
            if tape.mode == RECORDING:
                ledger.n_forward += 1
            marks.begins(done)
            yield item
        over = True
    finally:
        marks.finish()
        if tape.mode == RECORDING:
            tape.mode = mode
            tape.ledger.within_steps = False
        # An error keeps this iterator, with the frame that has it, until after the trace.
        if chain is not None and governor.active is chain and tape.mode != CLOSED:
            governor.left = not over and agrees(chain)
            if not governor.left:
                governor.end()
        ledger.rests()


def _require_no_journal() -> None:
    session = resumed()
    if session is not None:
        session.refuse(
            "the steps of pullback.steps are run again from their records, which no journal holds",
            "write the loop as pullback.fori_loop or pullback.scan",
        )


def _told(ledger: Any, progress: bool | None) -> Any:
    """The ledger, where somebody watches one that shows how far the steps are."""
    if not progress_in_force(progress) or planned() is not None or ledger.untold is not ledger:
        return ledger
    from pullback.instruments.watching.progress import told  # noqa: PLC0415 - for those who watch

    return told(ledger)


def _telling(tape: Tape, items: Any, progress: bool | None) -> Any:
    """Who shows how far the steps of save-all over ``items`` are, of which the pull will tell; None for nobody."""
    telling = tape.telling or _told(tape.ledger, progress)
    if telling.untold is telling:
        return None
    tape.telling, tape.ledger.heard = telling, True
    telling.begins(_length(items), None, {})
    return telling


def _items(n_or_iterable: Any) -> Iterable[Any]:
    """What is iterated over; a whole number of any type (``np.int64(5)``, a 0-d array) is a ``range``."""
    given = n_or_iterable[()] if isinstance(n_or_iterable, np.ndarray) and not n_or_iterable.ndim else n_or_iterable
    if hasattr(type(given), "__index__") and not hasattr(type(given), "__iter__"):
        return range(index(given))
    has_items = hasattr(type(given), "__iter__") or (
        hasattr(given, "__getitem__") and not isinstance(given, np.generic)
    )
    if not has_items or (isinstance(given, Handle) and not np.shape(given._value)):
        raise StructureError(
            f"pullback.steps takes a whole number or something to iterate over, got {type(given).__name__}; write "
            "int(n) for a number, and int(pullback.value(n)) where it is traced"
        )
    items: Iterable[Any] = given
    return items


def _length(items: Any) -> int | None:
    """What ``len(items)`` promises; None where it promises nothing. A plain loop would not ask, so no error of it
    counts."""
    try:
        return len(items) if isinstance(items, Sized) else None
    except Exception:  # noqa: BLE001
        return None


def _unforeseen(
    governor: PlainCode, tape: Tape, chain: Any, promised: int | None, how: tuple[str, str, int], ledger: Any
) -> Any:
    """The chain of the steps that come after the ``promised`` ones, of a length unknown."""
    if chain is not None and governor.active is chain:
        governor.end()
    elif chain is not None or not governs(governor, tape):
        return chain
    try:
        return governor.begin(None, governor.policy, *how, ledger=ledger)
    except PolicyError as error:
        say_where(error, f"len() of what pullback.steps iterates over was {promised}, and more items come")
        raise


def governs(governor: PlainCode, tape: Tape) -> bool:
    """Whether steps of this trace become a chain: not within a step, be it marked or a loop function's, not under
    save-all, and not where a trace around this one records them."""
    within = tape.captures is not None or governor.within
    return not within and not isinstance(governor.policy, SaveAll) and not recorded(tape.outer)


def _counts(tape: Tape, governor: Any) -> bool:
    """Whether steps that no chain governs are those of save-all, and in no others. A call that goes by a stage
    immediately has no ledger."""
    within = tape.captures is not None or (isinstance(governor, PlainCode) and governor.within)
    alone = tape.mode == RECORDING and tape.outer is None and not within
    return alone and tape.ledger is not None and not tape.ledger.within_steps


def _counted(items: Iterable[Any], tape: Tape, telling: Any, how: tuple[str, str, int], marks: Any) -> Iterator[Any]:
    """The items, each of which begins a step, as the tape is told; ``telling`` hears of each that is over."""
    ledger: Any = tape.ledger
    cuts: list[int] = []
    tape.marked.append(MarkedSteps(cuts, *how[1:]))
    ledger.within_steps = True
    try:
        for done, item in enumerate(items):
            marks.ends()
            (telling or ledger).n_forward += 1
            if tape.mode == RECORDING:  # else it has done more than was foreseen, and is governed
                cuts.append(len(tape.records))
            if telling is not None:
                telling.marked(len(tape.records))
            marks.begins(done)
            yield item
    finally:
        marks.finish()
        ledger.within_steps = False
        if telling is not None:
            telling.rests()
        if tape.mode == RECORDING:
            cuts.append(len(tape.records))
