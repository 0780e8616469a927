"""Which schedule a loop goes by: what its policy makes of the bytes of its first step, of what loops around and before
it leave, and of what ranks agree on; and what those after it may take of its bytes.

A ``record`` here is a :class:`~pullback.loops.functions.loop_record.LoopRecord`.
"""

from functools import partial
from itertools import islice
from typing import Any

from pullback.choosing.agreement import GIVE_THE_SAME, agreed, least
from pullback.loops.functions.loop_bytes import (
    besides_again,
    book_kept,
    bytes_besides,
    captured_bytes,
    follows,
    in_program,
    least_beside,
    places_of,
    shares_of,
    sizes_of,
    variable_bytes,
    working_bytes,
)
from pullback.memory.in_force import planned
from pullback.memory.store import ByReference
from pullback.policies.save_all import SaveAll
from pullback.recording.tape import REPLAYABLE
from pullback.scheduling.machine.actions import MEMORY, Kind
from pullback.scheduling.machine.machine import Machine
from pullback.words.call_sites import site_here, site_text


def first_step(record: Any) -> Any:
    """Step 0 of a loop that begins, on tracers. Where its policy says a number of bytes, loops in its steps will be
    told what they get."""
    record.waiting = [] if in_program(record.chain.steps.enclosing) else None
    record.others = variable_bytes(record, ())
    chain, room, lenders = record.chain, record.policy.room, record.chain.store.ledger.lenders
    if room is not None and lenders and follows(record):
        from pullback.memory.lending import room_beside  # noqa: PLC0415 - for those who have several loops

        records = chain.steps.enclosing.records
        chain.steps.lifetimes.asks = partial(room_beside, chain.store.ledger, room, records, record.others)
    if room is None or planned() is not None or record.agreement is not None:  # step 0 is not run once more there
        return chain.probe_first()
    from pullback.memory.nested_loops import Nest  # noqa: PLC0415 - for those who pass a number of bytes

    places = places_of(record)
    room = room - chain.store.ledger.total if places is None else places.room
    chain.steps.nest = Nest(max(0, room), record.n)
    if lenders and follows(record):
        chain.steps.nest.ledger = chain.store.ledger
    return chain.steps.nest.first_step(record)


def begins(record: Any, schedule: Any) -> None:
    """Tell who shows how far the loop is what there is to do; its first step is over where it runs the first time."""
    sizes = sizes_of(record) if record.policy.counts_bytes else record.sizes
    record.chain.store.ledger.begins(record.n, schedule, sizes, int(record.fresh))


def go_forward(record: Any) -> int | None:
    """Carry out the forward part of the schedule of a loop; where all tapes are held, and nobody asks for the report,
    as save-all does, without its actions. The length."""
    chain, machine, schedule = record.chain, record.machine, record.schedule
    held = getattr(schedule, "held", "") if machine.n is not None else getattr(schedule, "n_whole", 0)
    silent = held and not chain.store.ledger.heard and isinstance(chain.store.tier(MEMORY), ByReference)
    if silent and _goes_whole(schedule, machine, chain):
        return int(machine.n)
    chain.go_forward(schedule, machine)
    reached: int | None = machine.n
    return reached


def _goes_whole(schedule: Any, machine: Machine, chain: Any) -> bool:
    """Whether all steps of a loop have been recorded and kept, as save-all does it. One of unknown length goes so until
    something has to give way: then its schedule is where it would be if it had gone by it."""
    n, n_whole = machine.n, schedule.n_whole
    chain.verifier.looks_seldom()
    kinds: list[Kind] = ["tape"] if schedule.held == "tapes" else ["tape", "state"]
    if "state" in kinds:
        chain.store.entries["state", 0, MEMORY] = chain.snapshot(0)
    reached: int = chain.go_forward_saving(n, n_whole)
    if n is not None or reached < n_whole:
        machine.n = machine.r = reached
        machine.hold_all(*kinds)
        return True
    for action in islice(schedule, len(kinds) - 1 + 2 * n_whole):  # x_0, and each step recorded and kept
        machine.apply(action)
    return False


def ended(record: Any, before: int) -> None:
    """The forward pass of a loop is over, which began with so many bytes held: the loop around learns of it, and those
    that follow may need what it holds."""
    book_kept(record)
    places = places_of(record)
    if places is not None:
        places.nest.ended(record, before)
    may_lend(record, record, record.chain)


def may_lend(record: Any, run: Any, chain: Any) -> None:
    """The forward pass of a loop is over, as ``run`` has carried it out on a chain: those that follow may need what it
    holds. Ranks need not need it alike: they agree when its reverse begins (``Lender.agrees``)."""
    if (
        getattr(getattr(run.schedule, "policy", None), "begun", None) is not None
        and (record.agreement is None or record.agreed is not None or not record.collective)
        and ("state", 0, MEMORY) in chain.store.entries
    ):
        from pullback.memory.lending import Lender  # noqa: PLC0415 - for those who pass a number of bytes

        told, tape = partial(book_kept, run), record.chain.steps.enclosing
        place, sizes = 0 if tape is None else len(tape.records) + 1, sizes_of(record)
        lender = Lender(run, chain, sizes, told, tape, record.variables, place, shares_of(record), record.stacked)
        chain.store.ledger.lenders.append(lender)


def scheduled_by(record: Any, policy: Any, n: int | None, ledger: Any = None, more: int = 0) -> Any:
    """The schedule of a policy, where ``more`` bytes are held than when the loop began; ``ledger`` is that of a
    forecast."""
    if not policy.counts_bytes:
        return policy.schedule(n, **record.sizes)
    besides, sizes, chain = bytes_besides(record) + more, sizes_of(record), record.chain
    steps, start_held = chain.steps, bool(chain.start)
    if record.agreed is not None:
        policy, besides = _lent_alike(record, policy, n, ledger, besides)
        return policy.reserving(besides, start_held=start_held).schedule(n, **sizes)
    if places_of(record) is not None or (steps.nest is not None and steps.nest.loops):
        from pullback.memory.nested_loops import schedule_of  # noqa: PLC0415 - for those who nest loops

        lends = policy.room is not None and ledger is None and record.fresh and follows(record)
        return schedule_of(record, policy, n, sizes, besides, working_bytes(record), lends=lends)
    needed, extra = record.needed, record.needed.staging_bytes
    held = besides + sum(sizes.values()) + (sizes["state_bytes"] if n is None else 0)
    if not policy.affords(extra, held):
        extra, free = 0, needed.at_work - captured_bytes(record)
        room, each = 0 if policy.room is None else policy.room - held, sum(sizes.values())
        if steps.staging and not steps.staging.made_of_first_steps(needed, chain.state_bytes, each, room, free):
            steps.staging = None
    besides += extra
    if policy.room is not None and ledger is None and not follows(record) and record.fresh:
        from pullback.memory.nested_loops import beside_marked_steps  # noqa: PLC0415 - for those who nest loops

        besides = beside_marked_steps(record, policy.room, n, sizes, besides)
    if policy.room is not None and (ledger is not None or follows(record)):
        besides -= _lent(record, policy, n, ledger, besides)
        policy = policy.lending((ledger or record.chain.store.ledger).total)
        if steps.staging is not None:
            steps.staging.lends = True
    steps.verifier.most, digests = record.needed.digests_within(policy.room, n)
    return policy.reserving(besides, start_held=start_held, digests=digests).schedule(n, **sizes)


def _lent(record: Any, policy: Any, n: int | None, ledger: Any, besides: int) -> int:
    """The bytes that loops before this one have given up for it."""
    ledger, forecast = ledger or record.chain.store.ledger, ledger
    if not ledger.lenders:
        return 0
    from pullback.memory.lending import borrowed, make_room  # noqa: PLC0415 - for those who have several loops

    before = ledger.total
    if forecast is not None:  # in a run step 0 has asked for itself
        made = record.needed.asked + record.others
        make_room(ledger, policy.room, record.chain.steps.enclosing.records, made)
    freed: int = before - ledger.total
    freed += borrowed(ledger, policy, besides - freed, n, sizes_of(record), start_held=bool(record.chain.start))
    if planned() is None and forecast is None:
        record.besides -= freed
    return freed


def _lent_alike(record: Any, policy: Any, n: int | None, ledger: Any, besides: int) -> tuple[Any, int]:
    """The policy of a loop whose schedule is the same on all ranks, and what is held beside it: what loops before it
    have given up on each of them is free, and it lends itself where it does so on each. A plan asks nobody."""
    if policy.room is None or ledger is not None or planned() is not None:
        return policy, besides
    alone = not follows(record)
    freed = 0 if alone else _lent(record, policy, n, None, besides)
    more, other = agreed(record.agreement, told_of(record), (-freed, int(alone)))
    record.besides = besides = besides + more
    return policy if other else policy.lending(record.chain.store.ledger.total), besides


def agree(record: Any) -> None:
    """What the schedule of a loop follows from becomes what is largest over all ranks, and its policy what they have in
    common. Raises :class:`PolicyError` where they run another loop, or under another policy."""
    policy, agreement = record.policy, record.agreement
    told = told_of(record)
    counts = policy.counts_bytes
    own, besides = sizes_of(record) if counts else record.sizes, bytes_besides(record) if counts else 0
    *sizes, besides = agreed(agreement, told, (*own.values(), besides))
    record.agreed = dict(zip(own, sizes, strict=True))
    record.besides = besides if counts else record.besides
    if not counts:
        record.sizes = record.agreed
    record.policy = record.chain.store.policy = policy.common(partial(least, agreement, told))


def agree_at_end(record: Any) -> None:
    """Agree on a loop whose calls have begun after step 0, or whose length is known now. Raises :class:`PolicyError`
    where ranks have run another one. A schedule that goes by sizes was made of those of one rank in the first case:
    they must be the same on all."""
    told, remedy = told_of(record), GIVE_THE_SAME
    if record.agreed is None and type(record.policy) is not SaveAll:
        told = f"{told}, of {record.sizes}"
        remedy += ". Sizes may differ where step 0 makes a call: the largest then count on all"
    agreed(record.agreement, told, remedy=remedy)


def told_of(record: Any) -> str:
    """What a loop is, for ranks to compare."""
    length = "unknown length" if record.n is None else f"{record.n} steps"
    return f"{record.name} of {length} under {record.policy!r}"


def goes_again(record: Any) -> None:
    """Another reverse pass comes to a loop. What is held beside it is what such passes begin with, all of which is
    known by now: of the loops after it, too, and of the code. Whether there is room has been asked when the trace ended
    (:func:`least_again`): nothing is refused now."""
    if record.besides is None or record.policy.room is None:
        return
    from pullback.memory.lending import held_now  # noqa: PLC0415 - for those who pass a number of bytes

    held = held_now(record.chain.store.ledger, record.chain.steps.enclosing)
    record.besides = min(besides_again(record, held), record.policy.room - least_beside(record))
    if record.agreed is not None:
        [record.besides] = agreed(record.agreement, told_of(record), (record.besides,))
    if shares_of(record) is not None:
        record.chain.steps.nest.part = None  # loops in the steps get their shares of what is free now


def takes_little(record: Any) -> bool:
    """Whether all tapes of a loop and what is held besides take so little of a number of bytes that neither its steps
    nor those of others will have to give way: it is save-all then."""
    policy, steps = record.policy, record.chain.steps
    if policy.room is None or record.n is None or record.agreement is not None:
        return False
    if steps.nest is not None and (steps.nest.loops or places_of(record) is not None):  # which share out the bytes
        return False
    every: int = record.n * sizes_of(record)["tape_bytes"]
    return bool(policy.affords(bytes_besides(record) + every, 0))


def decided(record: Any) -> Any:
    """What the policy of a loop makes of its sizes, where it decides within the run; save-all where it need not."""
    held, chain = bool(record.chain.start), record.chain
    policy: Any = SaveAll()
    if record.policy.looks:
        from pullback.choosing.auto import LoopSizes  # noqa: PLC0415 - for those who use such a policy

        site = site_here()
        name, reserved = f"{record.name} at {site_text(site)}", bytes_besides(record)
        sizes = LoopSizes(name, record.n, **sizes_of(record), reserved=reserved, start_held=held, site=site)
        policy, record.share = record.policy.decided(sizes, chain.store.ledger)
    around = chain.steps.enclosing
    replayed = around is not None and around.mode == REPLAYABLE and around.governor.replays
    if type(policy) is SaveAll and not held and not replayed:  # no step will run again
        chain.verifier.compares, record.surroundings = False, None
    return policy
