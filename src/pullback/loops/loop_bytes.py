"""The bytes of a loop: what it holds beside snapshots and tapes, and which schedule follows from the bytes of its first
step.

A ``record`` here is a :class:`~pullback.loops.loop_record.LoopRecord` whose first step has run.
"""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from attrs import evolve

from pullback.choosing.agreement import GIVE_THE_SAME, agreed, least
from pullback.loop_steps.held_steps import StepTape
from pullback.memory.in_force import planned
from pullback.memory.ledger import Item, value_items
from pullback.memory.reverse_sweep import Sweep
from pullback.memory.store import ByReference
from pullback.memory.working_bytes import BUFFER_BYTES, TAPE_BYTES, Needed, parts_of_keys
from pullback.policies.save_all import SaveAll
from pullback.recording.tape import CLOSED, REPLAYABLE
from pullback.scheduling.actions import MEMORY
from pullback.words.call_sites import site_here, site_text


def first_step(record: Any) -> Any:
    """Step 0 of a loop that begins, on tracers. Where its policy says a number of bytes, loops in its steps will be
    told what they get."""
    record.waiting = [] if in_program(record.chain.steps.enclosing) else None
    record.others = _variable_bytes(record, ())
    chain, room, lenders = record.chain, record.policy.room, record.chain.store.ledger.lenders
    if room is not None and lenders and _follows(record):
        from pullback.memory.lending import room_beside  # noqa: PLC0415 - for those who have several loops

        records = chain.steps.enclosing.records
        chain.steps.lifetimes.asks = partial(room_beside, chain.store.ledger, room, records, record.others)
    if room is None or planned() is not None or record.agreement is not None:  # step 0 is not run once more there
        return chain.probe_first()
    from pullback.memory.nested_loops import Nest  # noqa: PLC0415 - for those who pass a number of bytes

    places = _places(record)
    room = room - chain.store.ledger.total if places is None else places.room
    chain.steps.nest = Nest(max(0, room), record.n)
    if lenders and _follows(record):
        chain.steps.nest.ledger = chain.store.ledger
    return chain.steps.nest.first_step(record)


def _variable_bytes(record: Any, known: Collection[Any]) -> int:
    """What variables of the program have, and nobody books: beside the buffers ``known``."""
    tape = record.chain.steps.enclosing
    if tape is None or tape.mode != REPLAYABLE:
        return 0
    return int(tape.governor.bytes_beside(known, len(tape.records)))


def _places(record: Any) -> Any:
    """The nest of the step that this loop is in, where both go by the same number of bytes; else None."""
    tape = record.chain.steps.enclosing
    return None if tape is None or record.own or record.policy.room is None else tape.nest


def _follows(record: Any) -> bool:
    """Whether the loop stands in the program itself, after others and before others: in no step."""
    return record.journal is None and in_program(record.chain.steps.enclosing)


def in_program(tape: Any) -> bool:
    """Whether what is recorded on this tape now stands in the program itself."""
    if tape is None or tape.captures is not None or tape.mode == CLOSED:
        return False
    return not (tape.mode == REPLAYABLE and tape.governor.replays)


def begins(record: Any, schedule: Any) -> None:
    """Tell who shows how far the loop is what there is to do; its first step is over where it runs the first time."""
    sizes = sizes_of(record) if record.policy.counts_bytes else record.sizes
    record.chain.store.ledger.begins(record.n, schedule, sizes, int(record.fresh))


def go_forward(record: Any) -> int | None:
    """Carry out the forward part of the schedule of a loop; where all tapes are held, and nobody asks for the report,
    as save-all does, without its actions. The length."""
    chain, machine, schedule = record.chain, record.machine, record.schedule
    held = getattr(schedule, "held", "") if machine.n is not None else getattr(schedule, "n_whole", 0)
    if held and not chain.store.ledger.heard and isinstance(chain.store.tier(MEMORY), ByReference):
        from pullback.loops.whole_loops import goes_whole  # noqa: PLC0415 - for those who pass a number of bytes

        if goes_whole(schedule, machine, chain):
            return int(machine.n)
    chain.go_forward(schedule, machine)
    reached: int | None = machine.n
    return reached


def ended(record: Any, before: int) -> None:
    """The forward pass of a loop is over, which began with so many bytes held: the loop around learns of it, and those
    that follow may need what it holds."""
    _book_kept(record)
    places = _places(record)
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

        told, tape = partial(_book_kept, run), record.chain.steps.enclosing
        place, sizes = 0 if tape is None else len(tape.records) + 1, sizes_of(record)
        lender = Lender(run, chain, sizes, told, tape, record.variables, place, _shares(record), record.stacked)
        chain.store.ledger.lenders.append(lender)


def needed_by(steps: Any, step: StepTape, reached: Collection[int]) -> Needed:
    """What step 0 needed, whose values were watched. All tapes share the copies of the arrays that the body has
    ``reached``."""
    lifetimes, steps.lifetimes, steps.outputs.comes = steps.lifetimes, None, bool
    ends = {part[0] for part in (*step.left, *step.ys) if part is not None}
    needed: Needed = lifetimes.needed(step.tape.records, step.tape.n_inputs, ends)
    if step.governor is not None:
        needed = needed.computing_again(lifetimes.sizes.values(), step.tape.records)
    copies = lasting_copies(steps, reached)
    booked, parts = sum(nbytes for key, nbytes, _ in step.items if key in copies), parts_of_keys(step.tape.records)
    shared = sum(nbytes for key, nbytes in parts.items() if key in copies)
    of_tape = sum(parts.values()) - shared + TAPE_BYTES + BUFFER_BYTES * len(step.items)
    return evolve(needed, lasting=booked + shared, of_tape=of_tape, n_leaves=len(step.entered))


def lasting_copies(steps: Any, reached: Collection[int]) -> set[int]:
    """The ``id`` of copies of plain arrays that the body has ``reached``: all tapes hold the same."""
    return {id(copy) for key, copy in steps.constants.items() if type(key) is tuple and key[0] in reached}


def shared_buffers(steps: Any, reached: Collection[int], captured: Collection[Any]) -> set[Any]:
    """The ``id`` of what all tapes share now: what the body has ``captured``, and these copies."""
    return {*captured, *lasting_copies(steps, reached)}


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
    if _places(record) is not None or (steps.nest is not None and steps.nest.loops):
        from pullback.memory.nested_loops import schedule_of  # noqa: PLC0415 - for those who nest loops

        lends = policy.room is not None and ledger is None and record.fresh and _follows(record)
        return schedule_of(record, policy, n, sizes, besides, working_bytes(record), lends=lends)
    needed, extra = record.needed, record.needed.staging_bytes
    held = besides + sum(sizes.values()) + (sizes["state_bytes"] if n is None else 0)
    if not policy.affords(extra, held):
        extra, free = 0, needed.at_work - captured_bytes(record)
        room = 0 if policy.room is None or chain.store.ledger.lenders else policy.room - held
        if steps.staging and not steps.staging.made_of_first_steps(needed, chain.state_bytes, room, free):
            steps.staging = None
    besides += extra
    if policy.room is not None and ledger is None and not _follows(record) and record.fresh:
        from pullback.memory.nested_loops import beside_marked_steps  # noqa: PLC0415 - for those who nest loops

        besides = beside_marked_steps(record, policy.room, n, sizes, besides)
    if policy.room is not None and (ledger is not None or _follows(record)):
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
    follows = _follows(record)
    freed = _lent(record, policy, n, None, besides) if follows else 0
    more, other = agreed(record.agreement, told_of(record), (-freed, int(not follows)))
    record.besides = besides = besides + more
    return policy if other else policy.lending(record.chain.store.ledger.total), besides


def sizes_of(record: Any) -> dict[str, int]:
    """Bytes of a state and a tape, with what Python takes for the records of this."""
    sizes: dict[str, int] = record.agreed or record.needed.with_records(record.sizes)
    return sizes


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


def working_bytes(record: Any) -> int:
    """What a loop takes while it runs: cotangents of one seed, what a step needs, its result."""
    steps, cts = record.chain.steps, captured_bytes(record)
    cts += sum(getattr(x, "nbytes", 0) for x in steps.xs or ())
    record.stacked = sum(getattr(stack, "nbytes", 0) for stack in steps.outputs.stacks)
    cts += 2 * record.stacked  # somebody may hold the outputs, too
    inner = 0 if steps.nest is None else steps.nest.working
    working: int = cts + inner + record.needed.lasting + record.needed.beside(record.sizes["state_bytes"])
    return working


def captured_bytes(record: Any) -> int:
    """What the cotangents of the captured values take."""
    specs = ((record.chain.steps.captured_specs or {}).get(i) for i in record.chain.steps.reads)
    return sum(spec.nbytes for spec in specs if spec is not None)


def bytes_besides(record: Any) -> int:
    """What is held already, by what came before, at most what the cotangents of a seed will take, what a step needs
    while it runs, and the result of the loop with its stacked outputs; as it was when this was first asked."""
    if record.besides is None:
        steps, ledger = record.chain.steps, record.chain.store.ledger
        records = () if steps.enclosing is None else steps.enclosing.records
        held = ledger.total + sum(ledger.plain_bytes(records).values())
        held -= steps.nest.held if steps.nest is not None else 0
        captured = value_items(steps.captured_values.values(), "snapshot")
        held += sum(nbytes for key, nbytes, _ in captured if key not in ledger.held)
        if steps.enclosing is not None and steps.enclosing.mode == REPLAYABLE:
            begins = value_items([*record.chain.state, *record.chain.start, *(steps.xs or ())], "snapshot")
            known = {key for key, _, _ in (*captured, *begins)}
            record.variables = steps.enclosing.governor.variables(known, record.kept, len(records))
            held += _variable_bytes(record, known)
        record.working = working_bytes(record)
        record.besides = held + record.working + (record.needed.of_state if record.chain.start else 0)
    besides: int = record.besides
    return besides


def goes_again(record: Any) -> None:
    """Another reverse pass comes to a loop. What is held beside it is what such passes begin with, all of which is
    known by now: of the loops after it, too, and of the code. Whether there is room has been asked when the trace ended
    (:func:`least_again`): nothing is refused now."""
    if record.besides is None or record.policy.room is None:
        return
    from pullback.memory.lending import held_now  # noqa: PLC0415 - for those who pass a number of bytes

    held = held_now(record.chain.store.ledger, record.chain.steps.enclosing)
    record.besides = min(_besides_again(record, held), record.policy.room - least_beside(record))
    if record.agreed is not None:
        [record.besides] = agreed(record.agreement, told_of(record), (record.besides,))
    if _shares(record) is not None:
        record.chain.steps.nest.part = None  # loops in the steps get their shares of what is free now


def least_again(record: Any, held: int) -> int:
    """The bytes that another reverse pass through a loop can do with, where so many are held by all that such passes
    begin with; 0 where ranks have to agree on them."""
    if record.besides is None or record.agreed is not None or not (record.bound or record.policy.room is not None):
        return 0
    return _besides_again(record, held) + int(record.least_beside)


def _besides_again(record: Any, held: int) -> int:
    from pullback.memory.lending import beyond_result  # noqa: PLC0415 - for those who pass a number of bytes

    more = held - record.besides + record.working
    return int(record.besides + beyond_result(more, sizes_of(record)["state_bytes"] + record.stacked))


def least_beside(record: Any) -> int:
    """The bytes that the snapshots and tapes of a loop can do with."""
    shares, sizes, policy, start_held = _shares(record), sizes_of(record), record.policy, bool(record.chain.start)
    if policy.room is None:
        return int(policy.least(record.n, **sizes)) - start_held * sizes["state_bytes"]
    return int(policy.reserving(0, start_held=start_held).least(record.n, **(shares.least(sizes) if shares else sizes)))


def _shares(record: Any) -> Any:
    """What loops in the steps of a loop get of its bytes, where it has them of no loop around it."""
    nest = record.chain.steps.nest
    return None if nest is None or not nest.loops or _places(record) is not None else nest.shares(record)


def kept_items(record: Any) -> list[Item]:
    """What is kept, as one item: entries are not booked one by one then, and what follows may have to know. Loops in
    the steps have such items of their own."""
    nest, entries = record.chain.steps.nest, record.chain.store.entries
    each = record.inner if nest is None or not nest.loops else nest.held
    tapes = sum(kind == "tape" for kind, _, _ in entries) + (record.chain.work is not None)
    return [(("kept", id(record)), max(0, record.kept_bytes - tapes * each), "saved")]


def _book_kept(record: Any) -> None:
    """Where entries are not booked one by one, they are as one item: so it stays where somebody hears the ledger
    since. A forecast has none."""
    ledger = record.chain.store.ledger
    if not ledger.heard or any(key == ("kept", id(record)) for key, _, _ in getattr(record, "booked", ())):
        ledger.release(record.booked)
        record.booked = kept_items(record)
        ledger.hold(record.booked)


def takes_little(record: Any) -> bool:
    """Whether all tapes of a loop and what is held besides take so little of a number of bytes that neither its steps
    nor those of others will have to give way: it is save-all then."""
    policy, steps = record.policy, record.chain.steps
    if policy.room is None or record.n is None or record.agreement is not None:
        return False
    if steps.nest is not None and (steps.nest.loops or _places(record) is not None):  # which share out the bytes
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


def own_items(record: Any, n_seeds: int = 1) -> list[Item]:
    """The cotangents of each seed that live from one step of the loop to the next, at their primals' sizes."""
    return [
        (("cotangent", id(record), seed, k), nbytes, "cotangent")
        for seed in range(n_seeds)
        for k, nbytes in enumerate(record.ct_bytes)
    ]


def waiting_items(record: Any, seeds: Sequence[Any], sweeps: Sequence[Sweep]) -> list[Item]:
    """The cotangents that what follows the loop has sent past it: each array once, without those that records hold
    and those of the loop's results. In a step they are part of what the step needs while it runs."""
    if record.waiting is None or not record.chain.store.ledger.books:
        return []
    from pullback.memory.lending import cotangent_items  # noqa: PLC0415 - where somebody hears of it

    return cotangent_items((sweep.cts for sweep in sweeps), record.chain.steps.enclosing.records, seeds)
