"""How a chain of steps ends other than by its schedule: it is held whole, or it is left by ``break`` though its policy
has planned for more steps and takes no other length afterwards. Also how code between loops ends where one number of
bytes is the limit of the whole program."""

from functools import partial
from typing import Any

from pullback.memory.executor import carry_out, run_forward
from pullback.memory.ledger import mib, record_items, value_items
from pullback.memory.working_bytes import Lifetimes, books_of, freed_by
from pullback.policies.save_all import SaveAll
from pullback.programs.exact_budget.foreseen import WatchedRecords
from pullback.programs.plain.first_steps import anew, least_again, lend
from pullback.programs.plain.stored_tapes import TapeInPlace, all_taken_back, release_tapes
from pullback.programs.replay.measured_chains import measure
from pullback.programs.replay.replayer import Replayer
from pullback.recording.tape import RECORDING, Tape
from pullback.rules.forms import FORMS, is_collective
from pullback.scheduling.machine.actions import MEMORY, Advance, EndForward, Record, Save
from pullback.scheduling.machine.machine import Machine
from pullback.words.call_sites import site_text
from pullback.words.errors import BudgetError, PullbackError, ScheduleError

_WARN_BYTES = 1 << 16


def hold_whole(chain: Any) -> None:
    """Every record of a :class:`~pullback.programs.plain.plain_chain.PlainChain` gets back the values that it holds."""
    if chain.schedule is not None:
        chain.finish()
    chain.ended, chain.tape.governor.lifetimes = True, None
    all_taken_back(chain)
    for step in chain.work_items:
        chain.put_back(step)
    dropped = [k for k in range(len(chain.cuts) - 1) if k not in chain.work_items]
    if dropped and chain.schedule is not None:
        first = max((k for k in chain.store.of("state") if k <= dropped[0]), default=0)
        start = chain.store.found("state", first) or chain.snapshots.initial
        assert start is not None  # every policy that drops a step keeps a state at or before it
        replayer = Replayer(chain.recipes, chain.needs, dict(start.values), first)
        for k in range(first, dropped[-1] + 1):
            replayer.run(k, chain.tape.records if k in dropped else None)
    chain.close(held=True)
    if not chain.marked:
        chain.ledger.stretch_is_plain()


def tell_length(chain: Any, n: int) -> None:
    """The user's loop has ended after ``n`` steps: what its schedule has under way ends, and hears it."""
    pending, chain.pending = chain.pending, None
    if type(pending) is Advance and n > chain.machine.cursor:
        chain.machine.apply(Advance(chain.machine.cursor, min(n, pending.stop)))
    elif type(pending) is Record and n > chain.machine.cursor:
        chain.machine.apply(pending)
    if chain.n is None or n < chain.n:
        chain.schedule.finalize(n)
        chain.machine.finalize(n)


def late(chain: Any, action: Any, last: int | None) -> None:
    """An action between the end of the user's loop and EndForward; the last step's records still hold their
    values."""
    if type(action) is Record and action.step == last and last in chain.work_items:
        chain.machine.apply(action)
        chain.work = last
        return
    carry_out(action, chain.machine, chain)


def planned_again(chain: Any, n: int) -> bool:
    """Whether the ``n`` steps of a chain can be reversed after all: all of them are kept, or the policy plans for
    ``n`` steps, which are executed again from the initial state."""
    start = chain.store.found("state", 0) or chain.snapshots.initial
    chain.n, chain.pending = n, None
    if len(chain.work_items) == n:
        _keep_all(chain, n)
        return True
    if start is None:
        return False
    values = dict(start.values)
    release_tapes(chain)
    chain.snapshots.begin_again()
    for step in list(chain.work_items):
        chain.drop(step)
    chain.work, chain.machine = None, Machine(n)
    chain.replayer = chain.replaying(values, 0)
    anew(chain)
    run_forward(chain.schedule, chain.machine, chain)
    lend(chain)
    return True


def _keep_all(chain: Any, n: int) -> None:
    """The records of every step hold their values: as save-all leaves them, with the initial state where others may
    need what they hold."""
    start, policy = chain.store.found("state", 0), chain.governing
    chain.snapshots.begin_again()
    chain.schedule, chain.machine = SaveAll().schedule(n), Machine(n)
    lends = start is not None and getattr(policy, "begun", None) is not None
    if lends:
        start.book()
        chain.machine.apply(Save("state", 0))
        chain.store.put("state", 0, MEMORY, start)
    for action in chain.schedule:
        chain.machine.apply(action)
        if type(action) is Save:
            chain.store.put("tape", action.step, MEMORY, TapeInPlace(action.step))
        elif type(action) is EndForward:
            break
    chain.work = n - 1
    if lends:
        chain.schedule = policy.rest(n, 0, [0], policy.splits(n, **chain.sizes), in_work=chain.machine.tape is not None)
        lend(chain)


def stands_between(governor: Any, record: tuple[Any, ...]) -> bool:
    """Whether a record is executed again by nothing, since others would have to take part: that of a call of a
    collective primitive outside marked steps, where it ends a stretch as a loop does, and wherever values are kept one
    by one."""
    if governor.left:
        leave(governor)
    if not is_collective(record):
        return False
    if not governor.within:
        talks = governor.talks or not (governor.marked or governor.keeps or governor.binds)
        governor.mark()
        governor.talks = talks
    return not governor.within or not governor.active.replays


def marked(governor: Any) -> None:
    """A mark has come, which may be no call that meets calls of others."""
    governor.talks = False
    if governor.left:
        leave(governor)


def leave(governor: Any) -> None:
    """The chain that ``break`` has left ends. An error leaves it in the same way, and then the program does not go on:
    ranks agree on nothing at its end that they do not come to."""
    governor.left = False
    governor.end()


def unmarked(governor: Any) -> str:
    """What is told of a program without marks, whose policy must know how many steps there are."""
    return (
        f"{governor.policy!r} needs a known number of steps and the program marks none, so everything is held; "
        "mark the loop with pullback.steps(n)"
    )


def held_whole(governor: Any) -> str:
    """What is warned of where a program has no marks but such calls."""
    return (
        f"{governor.policy!r} governs steps, and this program marks none and calls a collective primitive: what others "
        "take part in is run again by steps alone, so everything is held; mark the loop with pullback.steps(n), or use "
        "pullback.fori_loop"
    )


def large_constants(governor: Any) -> list[str]:
    """What is to be warned of where the plain arrays that steps read outgrow their snapshots."""
    constants = sum(constant.nbytes for constant in governor.constants.values())
    snapshots = governor.ledger.now.get("snapshot", 0)
    if constants <= max(snapshots, _WARN_BYTES):
        return []
    message = (
        f"{governor.policy!r} holds {mib(constants)} of plain arrays that the steps read, more than its snapshots "
        f"({mib(snapshots)}); the last was read at {site_text(governor.constant_site)}. Use pullback.fori_loop or "
        "scan for the loop: they compute such arrays again and hold none"
    )
    return [message]


def end_stretch(governor: Any, *, last: bool = False) -> None:
    """The code before, between or after loops that is under way ends here: it becomes save-all where nothing of it had
    to be given up, and nothing of it may have to be: for code that follows, and after the ``last`` for loops before it,
    where a pull keeps what records hold."""
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
        stands_alone = last and not (governor.repeatable and governor.ledger.lenders)
        gives = _gives(chain)
        if (chain.schedule is not None or not stands_alone) and not chain.policy.affords(gives, 0):
            governor.end()  # as long as it is steps, it can give up some of them
            return
        least = _least(chain)
        if governor.repeatable:
            least = max(least, _another_pass(governor, whole=chain))
        if least > governor.policy.room and gives > 0:  # by its steps it may do with less
            chain.recipes.whole = least
            governor.end()
            return
        governor.floor = max(governor.floor, least)
    except Exception:
        chain.ended = True
        raise
    governor.hold()


def _gives(chain: Any) -> int:
    """What the steps could give up of what they hold: that beyond what they begin with."""
    records, first = chain.tape.records, chain.cuts[0]
    before = {*chain.ledger.held, *(key for key, _, _ in record_items(records[:first]))}
    held = {key: nbytes for key, nbytes, _ in record_items(records[first:]) if key not in before}
    begins = sum(nbytes for key, nbytes in chain.snapshots.filled.items() if key not in before)
    return sum(held.values()) - int(begins)


def end_rest(governor: Any) -> None:
    """Code that has become save-all before its end ends here."""
    chain, governor.rest = governor.rest, None
    governor.floor = max(governor.floor, _least(chain))
    governor.lifetimes = None


def proceed(chain: Any, k: int) -> None:
    """Step ``k`` of the user's run begins. What the policy then says ends the chain, and is raised again when the trace
    ends: a program that catches errors of its own, as those of a step it rejects, may catch this one."""
    try:
        chain.proceed(k)
    except PullbackError as error:
        governor = chain.tape.governor
        governor.refused = governor.refused or error
        governor.active = governor.unmarked = governor.following = None
        governor.cuts_itself = False
        raise


def watched_whole(governor: Any) -> Lifetimes | None:
    """The values of a checkpoint that begins, where it goes by ``Keep``: what is not held of it is computed again at
    once."""
    if governor.active.replays or governor.lifetimes is not None:
        return None
    governor.lifetimes = watched = Lifetimes(asks=partial(_make_room, governor))
    return watched


def _make_room(governor: Any, nbytes: int) -> float:
    """Loops before give up what they can where so much is not free; what is free then."""
    from pullback.memory.lending import make_room  # noqa: PLC0415 - for those who have several loops

    return make_room(governor.ledger, governor.policy.room, governor.tape.records, nbytes)


def require_held(governor: Any, watched: Lifetimes | None) -> None:
    """A checkpoint under a policy of its own has ended. Raises :class:`BudgetError` where what is held, with what is
    computed again and its cotangents, exceeds the bytes."""
    ledger, policy = governor.ledger, governor.policy
    needed = 0
    if watched is not None:
        needed, governor.lifetimes = watched.computed_again, None
    _make_room(governor, needed)
    held = ledger.total + sum(ledger.plain_bytes(governor.tape.records).values()) + needed
    if held > policy.room:
        raise BudgetError(
            f"{policy!r} is too little for a checkpoint that goes by a policy of its own: {held:,} bytes are held when "
            f"it has ended, and when it is reversed. Allow at least {held:,} bytes, or give the checkpoint no policy.",
            held,
        )


def require_floor(governor: Any) -> None:
    """The trace has ended. Raises :class:`BudgetError` where code that became save-all, or that cuts itself into steps,
    needs more than there is."""
    from pullback.memory.lending import foresee_waiting  # noqa: PLC0415 - for those who have several loops

    room = governor.policy.room
    measure(governor)
    again = _another_pass(governor) if governor.repeatable else 0
    floor = max(governor.floor, again, foresee_waiting(governor.ledger, room))
    if floor > room:
        raise _too_little(governor.policy, floor)


def _too_little(policy: Any, least: int) -> BudgetError:
    return BudgetError(
        f"{policy!r} is too little for the code outside loop functions: what is held when it is reversed, and its "
        f"cotangents, take {least:,} bytes. Allow at least {least:,} bytes.",
        least,
    )


def _another_pass(governor: Any, whole: Any = None) -> int:
    """What another reverse pass takes at least, where the chain ``whole`` is held whole: beside each loop is held what
    all of them begin with, and what the records hold that are no steps."""
    every = governor.tape.records
    records, chains = list(every), [each for each in governor.chains if each.replays and each is not whole]
    for chain in reversed(chains):
        records[chain.cuts[0] : chain.cuts[-1]] = [None] * (chain.cuts[-1] - chain.cuts[0])
    loops = {place: record[2] for place, record in enumerate(records) if record is not None and FORMS[record[0]].steps}
    begins = [item for loop in loops.values() for item in loop.booked]
    begins += [item for chain in chains if chain.snapshots.initial for item in chain.snapshots.initial.items]
    kept = {key: nbytes for key, nbytes, _ in (*begins, *value_items(governor.constants.values(), "constant"))}
    held = sum(kept.values()) + sum(n for key, n, _ in record_items(records) if key not in kept)
    again = [loop.least_again(held + _waiting(governor, loop, place + 1)) for place, loop in loops.items()]
    for chain in chains:  # what is measured counts the cotangents that wait
        waiting = 0 if chain.recipes.most is not None else _waiting(governor, chain, chain.cuts[-1])
        again.append(least_again(chain, held + waiting))
    return max(again, default=0)


def _waiting(governor: Any, steps: Any, place: int) -> int:
    """What cotangents take that wait while steps are reversed, since what comes from record ``place`` on reads what
    they stand for."""
    if steps.variables is None:
        return 0
    return int(steps.variables.waiting(governor.tape.records[place:], governor.sent_from(place)))


def _least(chain: Any) -> int:
    """What is held when a stretch that is save-all is reversed, and its cotangents, or what its variables had at once
    where that is more: loops before it give up what they can. Nothing where its plan has seen to that."""
    from pullback.memory.lending import make_room  # noqa: PLC0415 - for those who have several loops

    lifetimes, records, ledger = chain.tape.governor.lifetimes, chain.tape.records, chain.ledger
    if lifetimes is None:
        return 0
    freed: dict[int, int] = {}
    if not chain.repeatable:
        loops = [record[2] for record in records if record is not None and FORMS[record[0]].steps]
        freed = freed_by(records, chain.cuts[0], {*ledger.held, *(key for loop in loops for key in loop.kept)})
    watched, lies_in = dict(lifetimes.watched), dict(lifetimes.lies_in)
    needed = lifetimes.needed(records, chain.cuts[0], freed=freed, margin=False).at_work
    lifetimes.watched, lifetimes.lies_in = watched, lies_in  # the schedule of its steps may follow from these
    make_room(ledger, chain.policy.room, records, needed)
    least: int = needed + ledger.total + sum(ledger.plain_bytes(records).values()) + books_of(records)
    return least


def left_alone(tape: Tape) -> bool:
    """Whether a policy that binds leaves the trace to itself, as far as it does no more than is known of it."""
    return type(tape.records) is WatchedRecords and tape.mode == RECORDING


def next_of(schedule: Any) -> Any:
    """The next action of the first run; raises :class:`ScheduleError` where there is none."""
    for action in schedule:
        return action
    raise ScheduleError(f"{schedule!r} ended before EndForward; yield what becomes of every step, then EndForward()")
