"""The bytes of a loop with a policy of its own, in a program whose limit is one number of bytes: a loop that takes more
than there is is refused, after step 0 where its length is known, else when it has ended."""

from typing import Any

from pullback.loops.functions.loop_bytes import bytes_besides, in_program, least_beside
from pullback.memory.lending import cheapest
from pullback.words.errors import BudgetError


def require_room(record: Any) -> None:
    """Step 0 has run, or the loop has ended. Raises :class:`BudgetError` where the loop takes more than the bytes of
    the program; loops before it give up what they can. One that goes by a number of bytes itself says so by itself."""
    tape, policy = record.chain.steps.enclosing, record.policy
    if policy.counts_bytes or policy.looks or not in_program(tape):
        return
    besides, ledger, limit = bytes_besides(record), record.chain.store.ledger, tape.governor.policy.room
    if record.n is None:
        return
    least = besides + least_beside(record)
    while least > limit and (lender := cheapest(ledger.lenders)) is not None:
        before = ledger.total
        lender.give(lender.level + 1)
        least -= before - ledger.total
    if least > limit:
        raise BudgetError(
            f"{tape.governor.policy!r} is too little for {record.name} under {policy!r}: it takes {least:,} bytes, "
            f"with what is held besides. Allow at least {least:,} bytes, or give the loop no policy of its own.",
            least,
        )
