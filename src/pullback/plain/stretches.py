"""Code before, between and after loops and marked steps, where a number of bytes is over all: each such stretch is a
chain that is cut by itself, and becomes save-all at its end where nothing of it had to be given up."""

from functools import partial
from typing import Any

from pullback.memory.ledger import record_items
from pullback.memory.working_bytes import BESIDE
from pullback.words.errors import BudgetError

SPARE = 4
"""One part in so many beyond what is needed now is asked for, so that not every operation asks."""


def end_stretch(governor: Any) -> None:
    """The stretch under way has ended."""
    chain = governor.active
    if chain is not governor.unmarked:
        return
    if governor.refused is not None:  # the figure of what came before is the one to tell
        chain.ended = True
        raise governor.refused
    try:
        if len(chain.work_items) < len(chain.cuts) - 1 and chain.schedule is not None:
            governor.end()  # some of its steps hold nothing
            return
        if governor.marked:
            _require_room(chain)
    except Exception:
        chain.ended = True
        raise
    governor.hold()


def require_held(governor: Any) -> None:
    """A checkpoint under a policy of its own has ended. Raises :class:`BudgetError` where what is held exceeds the
    bytes."""
    ledger, policy = governor.ledger, governor.policy
    held = ledger.total + sum(ledger.plain_bytes(governor.tape.records).values())
    if held > policy.room:
        raise BudgetError(
            f"{policy!r} is too little for a checkpoint that goes by a policy of its own: {held:,} bytes are held when "
            f"it has ended. Allow at least {held:,} bytes, or give the checkpoint no policy.",
            held,
        )


def asks_as_it_grows(chain: Any, limit: int) -> Any:
    """Who is asked for room while the first steps of a stretch are recorded, as ``Lifetimes.asks``: loops before it
    give up what they can where more is there at once than is free."""
    return partial(_room, chain, limit)


def _room(chain: Any, limit: int, asked: int) -> float:
    from pullback.memory.lending import make_room  # noqa: PLC0415 - for those who have several loops

    lifetimes, ledger, records = chain.tape.governor.lifetimes, chain.ledger, chain.tape.records
    held = {key for key, _, _ in record_items(records)}
    live = {key: nbytes for key, nbytes in lifetimes.lies_in.values() if key not in held and key not in ledger.held}
    needed = sum(live.values()) + BESIDE * max(live.values(), default=0)
    needed += needed // SPARE
    left: float = max(0, make_room(ledger, limit, records, needed) - needed)
    return asked + left


def _require_room(chain: Any) -> None:
    """What is held when the trace ends, and the cotangents of the stretch, have room: loops before it give up what they
    can. Raises :class:`BudgetError`."""
    from pullback.memory.lending import make_room  # noqa: PLC0415 - as above

    lifetimes, records, ledger = chain.tape.governor.lifetimes, chain.tape.records, chain.ledger
    if lifetimes is None:  # its plan has seen to that
        return
    needed, limit = lifetimes.needed(records, chain.cuts[0]).back, chain.policy.room
    make_room(ledger, limit, records, needed)
    least = needed + ledger.total + sum(ledger.plain_bytes(records).values())
    if least > limit:
        raise BudgetError(
            f"{chain.policy!r} is too little for what follows the last loop: with what is held before it, it takes "
            f"{least:,} bytes. Allow at least {least:,} bytes.",
            least,
        )
