"""What the first steps of a program tell a policy that goes by bytes.

A loop function runs step 0 to know them. Marked steps are run by the user, so the schedule is drawn when two steps have
been recorded, and catches up with them.
"""

from collections.abc import Collection, Mapping
from functools import partial
from math import inf
from typing import Any

from pullback.choosing.agreement import agreed, least
from pullback.memory.ledger import record_items, value_items
from pullback.memory.working_bytes import BESIDE, FREE_BOOKS, RECORD_BYTES, Lifetimes, books_of, parts_of_keys
from pullback.programs.plain.plain_snapshots import INITIAL
from pullback.programs.replay.step_recipes import BOOK_BYTES, OPERAND_BYTES, OPERANDS_BYTES, SLOT_BYTES, STEP_BYTES
from pullback.rules.forms import FORMS
from pullback.scheduling.machine.actions import MEMORY
from pullback.words.errors import BudgetError

N_FIRST = 2
"""Steps that are recorded before the schedule is drawn: what both read from before the loop is no part of a state."""
SPARE = 4
"""One part in so many beyond what is needed now is asked for, so that not every operation asks."""
FIRST_SHARE = 4
"""The divisor of the bytes that gives the part which the first steps may take."""
OWN_BYTES = RECORD_BYTES + 150
"""Bytes of Python's own objects, for each record of code that has just run, with the handle that it made."""
WATCHED_BYTES = 500
"""Bytes of Python's own objects, for each handle whose lifetime is watched."""
OWN_PART = 128
"""The divisor of the bytes that gives the part which is left to them all the same, where the first steps bind."""
MOST_FIRST = 8
"""The most first steps of a program that is cut by itself: they are often of other kinds than those that follow."""


def waits(chain: Any, k: int) -> bool:
    """Whether the first ``k`` steps do not tell yet what the next ones will be like."""
    if k < N_FIRST:
        return k == 0 or chain.policy.needs_sizes or agrees(chain) or _holds_little(chain)
    patterns, governor = chain.recipes.patterns, chain.tape.governor
    if governor.unmarked is not chain or k >= MOST_FIRST or patterns[k - 1] is patterns[k - 2]:
        return False
    items = record_items(chain.tape.records[chain.cuts[0] :])
    for snapshot in chain.snapshots.filling.values():
        items += value_items(list(snapshot.values.values()), "snapshot")
    held = sum({key: nbytes for key, nbytes, _ in items}.values())
    room: int | None = chain.policy.room
    free = 0 if room is None else room - chain.ledger.total * governor.marked  # loops before it have taken their part
    return held <= free // FIRST_SHARE


def _holds_little(chain: Any) -> bool:
    """Whether the tape of step 0 takes less than what the step reads from before, so that tapes may take the place of
    states: else a policy that counts these has to know no more."""
    records, read = chain.tape.records[chain.cuts[0] : chain.cuts[1]], chain.snapshots.filling[0].values
    return tape_bytes(records, set()) < sum(n for _, n, _ in value_items(list(read.values()), "snapshot"))


def will_draw(chain: Any) -> None:
    """A :class:`~pullback.programs.plain.plain_chain.PlainChain` begins: its schedule is drawn immediately where sizes
    do not change it. Raises :class:`PolicyError` where the policy refuses that the length is unknown."""
    policy = chain.governing = chain.policy
    chain.ledger.stretch_begins()
    if policy.looks:
        chain.schedule = policy.measuring(chain.n, chain.gauge)
        chain.ledger.begins(None, chain.schedule, {})
        return
    if chain.n is None or not policy.needs_sizes:
        chain.schedule = policy.schedule(chain.n)
    if policy.needs_sizes or policy.counts_states:
        chain.schedule, chain.tape.governor.lifetimes = None, Lifetimes()
    else:
        chain.ledger.begins(chain.n, chain.schedule, {})
    if policy.room is None:
        return
    ledger = chain.ledger
    ledger.counted = True  # loops that follow have to know what this one holds
    governor = chain.tape.governor
    if governor.between_marks:
        governor.lifetimes.asks = partial(_room_for, chain, policy.room)
    elif ledger.lenders and chain.tape.captures is None:
        from pullback.memory.lending import room_beside  # noqa: PLC0415 - for those who have several loops

        records, others = chain.tape.records, governor.bytes_beside((), len(chain.tape.records))
        governor.lifetimes.asks = partial(room_beside, ledger, policy.room, records, others)


def keep_initial(chain: Any) -> None:
    """Where another reverse pass may come, what the steps begin with is held; it is booked when the schedule is drawn
    where the code may become save-all before."""
    if chain.repeatable:
        chain.snapshots.begin(INITIAL, chain.cuts[0])
        if not chain.tape.governor.between_marks:
            chain.snapshots.book_initial()


def _room_for(chain: Any, limit: int, asked: int) -> float:
    """``Lifetimes.asks`` of the first steps of a stretch after loops: these give up what they can where more is there
    at once than is free."""
    from pullback.memory.lending import held_now, make_room  # noqa: PLC0415 - for those who have several loops

    governor, ledger, records = chain.tape.governor, chain.ledger, chain.tape.records
    lifetimes = governor.lifetimes
    held = {key for key, _, _ in record_items(records)}.union(ledger.held)
    live = {key: nbytes for key, nbytes in lifetimes.lies_in.values() if key not in held}
    read = {key: nbytes for key, nbytes in chain.snapshots.filled.items() if key not in held}
    beside = governor.bytes_beside(read, chain.cuts[0])
    there = sum((live | read).values()) + beside
    largest = max(live.values(), default=0)
    n_held = sum(record is not None for record in records)  # steps that are executed again have let go of theirs
    books = OWN_BYTES * n_held + WATCHED_BYTES * len(lifetimes.watched)
    books += sum(each.recipes.nbytes for each in governor.chains if each.replays)
    needed = (there + BESIDE * largest) * (SPARE + 1) // SPARE
    room = make_room(ledger, limit, records, needed, books)
    if room == float("inf"):  # nothing can be given up: more may be there than is allowed
        taken = there + held_now(ledger, chain.tape) + books_of(records, books)
        taken += min(FREE_BOOKS, max(limit // OWN_PART, taken // (OWN_PART - 1)))  # the part of the figure that is told
        if taken + largest > limit and len(chain.cuts) > 1:
            chain.catch_up(len(chain.cuts) - 1)  # the steps that are over can be
        elif taken + largest > limit and _holds_for_steps_alone(chain, read):
            governor.hold_now()
        else:
            governor.floor = max(governor.floor, taken)
        return asked
    left: float = room - needed
    return asked + left


def _holds_for_steps_alone(chain: Any, read: Mapping[int, int]) -> bool:
    """Whether of code that is still in its first step more is held to execute it again, of what the snapshots have
    ``read``, than records hold that no variable has."""
    cutter, records = chain.tape.governor.cutter, record_items(chain.tape.records[chain.cuts[0] :])
    alive: Collection[Any] = () if cutter is None else cutter.alive()
    given_up = sum(nbytes for key, nbytes, _ in records if key not in alive)
    return sum(nbytes for key, nbytes in read.items() if key not in alive) > given_up


def anew(chain: Any, *, again: bool = False) -> None:
    """The schedule of another reverse pass, or of another number of steps. ``again``: what is held beside the steps is
    what such passes begin with, all of which is known by now."""
    if chain.policy.looks:
        chain.schedule = chain.policy.measuring(chain.n, chain.gauge)
        return
    if again and chain.working is not None:
        from pullback.memory.lending import cotangent_items, held_now  # noqa: PLC0415 - for those who pass a number

        policy = chain.governing
        waiting = cotangent_items((one.cts[: chain.cuts[0]] for one in chain.sweeps), chain.tape.records)
        held = held_now(chain.ledger, chain.tape)
        held += sum(nbytes for _, nbytes, _ in waiting) if chain.recipes.most is None else 0
        besides = min(_besides_again(chain, held), policy.max_bytes - _least_beside(chain))  # there is room: see below
        if chain.agreed:
            [besides] = agreed(chain.tape.agreement, told_of(chain), (besides,))
        chain.governing = chain.governing.reserving(besides, start_held=chain.repeatable)
    chain.schedule = chain.governing.schedule(chain.n, **chain.sizes)


def least_again(chain: Any, held: int) -> int:
    """The bytes that another reverse pass through the steps can do with, where so many are held by all that such passes
    begin with and by cotangents that wait; 0 where no number of bytes is the limit, or ranks have to agree."""
    if chain.working is None or chain.agreed:
        return 0
    return _besides_again(chain, held) + _least_beside(chain)


def _besides_again(chain: Any, held: int) -> int:
    from pullback.memory.lending import beyond_result  # noqa: PLC0415 - for those who pass a number of bytes

    if chain.recipes.most is not None:
        return held + int(chain.recipes.most) - _least_beside(chain)
    reserved: int = chain.governing.reserved
    return reserved + beyond_result(held - reserved + chain.working, chain.sizes["state_bytes"])


def _least_beside(chain: Any) -> int:
    return int(chain.governing.reserving(0, start_held=chain.repeatable).least(chain.n, **chain.sizes))


def _constant(chain: Any, newest: int) -> set[int]:
    """The values from before the loop that step ``newest`` reads wherever step 0 has read them. What it reads elsewhere
    goes from place to place, as the newest two states of a leapfrog do, and others will come in its stead."""
    if not newest:
        return set()
    recipes, first, places = chain.recipes, chain.cuts[0], [dict[int, set[Any]](), dict[int, set[Any]]()]
    for step, read in zip((0, newest), places, strict=True):
        for place, recipe in enumerate(recipes.patterns[step].recipes):
            for k, a in enumerate(recipe.arguments if recipe is not None else ()):
                ident = recipes.ident(a, chain.cuts[step]) if type(a) is int else first
                if ident < first:
                    read.setdefault(ident, set()).add((place, k))
    return {ident for ident, found in places[1].items() if found == places[0].get(ident)}


def _constants_to_come(chain: Any, newest: int) -> int:
    """Copies of plain arrays that the steps will hold beside those of today, where each holds its own: as many for each
    step as the newest holds beyond the one before. Where the length is unknown, only what keys hold today."""
    cuts, records = chain.cuts, chain.tape.records
    of_keys = parts_of_keys(records[cuts[0] :])
    if not newest or chain.n is None:
        return sum(of_keys.values())
    held = [
        {key: nbytes for key, nbytes, reason in record_items(part) if reason == "constant"} | parts_of_keys(part)
        for part in (records[cuts[newest - 1] : cuts[newest]], records[cuts[newest] : cuts[newest + 1]])
    ]
    own = sum(nbytes for key, nbytes in held[1].items() if key not in held[0])
    to_come: int = max(0, chain.n - newest - 1)
    return sum(of_keys.values()) + own * to_come


def _books_to_come(chain: Any, newest: int) -> int:
    """What Python takes for the books of many steps, where their number is known: for each as for the newest."""
    if chain.n is None or not chain.policy.counts_bytes:
        return 0
    cuts, others = chain.cuts, chain.recipes.others
    stop = cuts[newest + 1] if newest + 1 < len(cuts) else len(chain.tape.records)
    own = others[newest] if newest < len(others) else None
    operands = 0 if own is None else OPERANDS_BYTES + OPERAND_BYTES * (len(own) - 1)
    each: int = BOOK_BYTES + STEP_BYTES + SLOT_BYTES * (stop - cuts[newest]) + operands
    return max(0, each * int(chain.n) - FREE_BOOKS)


def draw(chain: Any) -> None:
    """The schedule, for the sizes that the newest step tells that is over, and for what is held beside snapshots and
    tapes; after a single step for no sizes, where the policy does not need to know them. Functions of steps are made
    where the policy affords them."""
    governor, cuts, ledger = chain.tape.governor, chain.cuts, chain.ledger
    chain.snapshots.book_initial()
    first, newest, records = cuts[0], max(0, len(cuts) - 2), chain.tape.records
    lifetimes, governor.lifetimes = governor.lifetimes, None
    if newest == 0 and not chain.policy.needs_sizes:
        chain.schedule = chain.policy.schedule(chain.n)
        ledger.begins(chain.n, chain.schedule, {}, max(0, len(cuts) - 1))
        return
    read, constant = chain.snapshots.filling[newest].values, _constant(chain, newest)
    shared = value_items([value for ident, value in read.items() if ident in constant], "snapshot")
    known = {key for key, _, _ in shared}
    passing = lifetimes.values_of(range(first, cuts[newest])) if newest else []  # a later step may read them
    state = value_items([*(value for ident, value in read.items() if ident not in constant), *passing], "snapshot")
    alone = governor.unmarked is chain  # its steps are of many kinds
    tapes = [
        tape_bytes(records[cuts[step] : cuts[step + 1] if step + 1 < len(cuts) else None], known)
        for step in range(0 if alone else newest, newest + 1)
    ]
    chain.sizes = {
        "state_bytes": sum(nbytes for key, nbytes, _ in state if key not in known),
        "tape_bytes": max(tapes),
    }
    besides = ledger.total + sum(ledger.plain_bytes(records[:first]).values())
    before = {key for key, _, _ in record_items(records[:first])}.union(ledger.held)
    seen = besides + sum(nbytes for key, nbytes, _ in record_items(records[first:]) if key not in before)
    besides += sum(nbytes for key, nbytes, _ in shared if key not in ledger.held)
    needed = chain.needed_by(lifetimes.needed(records, first), lifetimes)
    working = needed.beside(chain.sizes["state_bytes"])
    ledger.works(working - chain.sizes["state_bytes"])
    working += sum(nbytes for _, nbytes, _ in shared) + _books_to_come(chain, newest)
    besides += working + _constants_to_come(chain, newest)
    besides += governor.bytes_beside(known | {key for key, _, _ in state}, first)
    own = set(read) if chain.n == 1 else constant  # what steps send there is added to what waits
    chain.variables = governor.variables(known | {key for key, _, _ in state}, (), first, own)
    if chain.policy.counts_bytes:
        chain.sizes = needed.with_records(chain.sizes, max(1, len(cuts) - 1))
    extra, seen = needed.staging_bytes, seen + needed.forward
    if agrees(chain):
        besides, seen = agree(chain, besides, seen)
    elif chain.policy.affords(extra, besides + sum(chain.sizes.values())):
        besides += extra
    else:
        chain.staging = "off"
    if chain.policy.room is not None:
        chain.working = working if chain.staging == "off" else working + extra
    _plan(chain, besides, seen)
    chain.drawn_at, chain.known = newest, known


def agrees(chain: Any) -> bool:
    """Whether ranks run the steps together: marked ones. Code that is cut by itself sends nothing."""
    return chain.tape.agreement is not None and chain.tape.collective and chain.marked


def agree(chain: Any, besides: int, seen: int) -> tuple[int, int]:
    """What the schedule follows from becomes what is largest over all ranks, and the policy what they have in common.
    Raises :class:`PolicyError` where they run other steps, or under another policy."""
    agreement, told = chain.tape.agreement, told_of(chain)
    besides, seen, *sizes = agreed(agreement, told, (besides, seen, *chain.sizes.values()))
    chain.sizes, chain.agreed = dict(zip(chain.sizes, sizes, strict=True)), True
    chain.governing = chain.store.policy = chain.policy.common(partial(least, agreement, told))
    return besides, seen


def _require_agreed(chain: Any) -> None:
    """The steps are over. Raises :class:`PolicyError` where ranks have run other ones, or under another policy, and
    where nobody has agreed on what their schedules follow from."""
    if agrees(chain):
        agreed(chain.tape.agreement, told_of(chain) if chain.agreed else f"{told_of(chain)}, of {chain.sizes}")


def told_of(chain: Any) -> str:
    """What marked steps are, for ranks to compare."""
    return f"marked steps, {'as many as come' if chain.n is None else chain.n}, under {chain.policy!r}"


def _plan(chain: Any, besides: int, seen: int) -> None:
    """The schedule where ``besides`` bytes are held beside snapshots and tapes, and the first steps have taken
    ``seen``."""
    in_a_row = chain.policy.room is not None and chain.tape.captures is None
    try:
        freed = 0
        if in_a_row and chain.ledger.lenders:
            from pullback.memory.lending import borrowed  # noqa: PLC0415 - for those who have several loops

            freed = borrowed(
                chain.ledger, chain.policy, besides, chain.n, chain.sizes, start_held=chain.repeatable,
                refuses=not chain.recipes.told_at_end,
            )  # fmt: skip
        if chain.agreed and chain.policy.room is not None:  # what is given up on each rank is free; all lend, or none
            less, other = agreed(chain.tape.agreement, told_of(chain), (-freed, int(not in_a_row)))
            freed, in_a_row = -less, not other
        besides -= freed
        if chain.recipes.told_at_end:
            least = chain.policy.reserving(0, start_held=chain.repeatable).least(chain.n, **chain.sizes)
            besides = min(besides, chain.policy.max_bytes - least)
        chain.governing = chain.policy.reserving(besides, start_held=chain.repeatable)
        chain.governing = chain.governing.lending(chain.ledger.total) if in_a_row else chain.governing
        chain.schedule = chain.governing.schedule(chain.n, **chain.sizes)
        chain.ledger.begins(chain.n, chain.schedule, chain.sizes, max(0, len(chain.cuts) - 1))
        _require_room(chain, seen)
    except BudgetError as error:
        chain.ended = True  # before it has begun
        if error.minimum_bytes < seen:
            _require_room(chain, seen)
        raise
    except Exception:
        chain.ended = True
        raise


def tape_bytes(records: Any, known: set[Any]) -> int:
    """What the tape of a step holds, loop functions in it too, beside what is ``known`` and constants."""
    loops = [record[2] for record in records if record and FORMS[record[0]].steps]
    own = sum(nbytes for key, nbytes, reason in record_items(records) if key not in known and reason != "constant")
    kept: int = own + sum(loop.kept_bytes for loop in loops)
    return kept


def _require_room(chain: Any, seen: int) -> None:
    """Raise :class:`BudgetError` where the first steps, which had to be recorded, have taken more than is allowed."""
    if chain.recipes.told_at_end:
        chain.tape.governor.floor = max(chain.tape.governor.floor, seen)
    elif chain.policy.room is not None and seen > chain.policy.room:
        raise BudgetError(
            f"{chain.policy!r} is too little: the first steps, which are recorded to learn their sizes, and what is "
            f"held beside them take {seen:,} bytes. Allow at least {seen:,} bytes.",
            seen,
        )


def lend(chain: Any) -> None:
    """The steps are over: loops that follow may need what they hold."""
    if chain.tape.governor.cutter is not None:
        chain.tape.governor.cutter.most = inf
    _require_agreed(chain)
    lends = getattr(getattr(chain.schedule, "policy", None), "begun", None) is not None
    lends = lends and (chain.tape.agreement is None or chain.agreed or not chain.tape.collective)
    if lends and chain.schedule.n == chain.n and ("state", 0, MEMORY) in chain.store.entries:
        from pullback.memory.lending import Lender  # noqa: PLC0415 - for those who pass a number of bytes

        place = len(chain.tape.records)
        chain.ledger.lenders.append(
            Lender(
                chain, chain, chain.sizes, bool, chain.tape, chain.variables, place,
                told_at_end=chain.recipes.told_at_end,
            )
        )  # fmt: skip
