"""The bytes of a loop: what it holds beside snapshots and tapes, and what it needs while it runs.

A ``record`` here is a :class:`~pullback.loops.functions.loop_record.LoopRecord` whose first step has run.
"""

from collections.abc import Collection, Sequence
from typing import Any

from attrs import evolve

from pullback.loops.stepping.held_steps import StepTape
from pullback.memory.ledger import Item, value_items
from pullback.memory.reverse_sweep import Sweep
from pullback.memory.working_bytes import BUFFER_BYTES, TAPE_BYTES, Needed, parts_of_keys
from pullback.recording.tape import CLOSED, REPLAYABLE


def variable_bytes(record: Any, known: Collection[Any]) -> int:
    """What variables of the program have, and nobody books: beside the buffers ``known``."""
    tape = record.chain.steps.enclosing
    if tape is None or tape.mode != REPLAYABLE:
        return 0
    return int(tape.governor.bytes_beside(known, len(tape.records)))


def places_of(record: Any) -> Any:
    """The nest of the step that this loop is in, where both go by the same number of bytes; else None."""
    tape = record.chain.steps.enclosing
    return None if tape is None or record.own or record.policy.room is None else tape.nest


def follows(record: Any) -> bool:
    """Whether the loop stands in the program itself, after others and before others: in no step."""
    return record.journal is None and in_program(record.chain.steps.enclosing)


def in_program(tape: Any) -> bool:
    """Whether what is recorded on this tape now stands in the program itself."""
    if tape is None or tape.captures is not None or tape.mode == CLOSED:
        return False
    return not (tape.mode == REPLAYABLE and tape.governor.replays)


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


def sizes_of(record: Any) -> dict[str, int]:
    """Bytes of a state and a tape, with what Python takes for the records of this."""
    sizes: dict[str, int] = record.agreed or record.needed.with_records(record.sizes)
    return sizes


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
            held += variable_bytes(record, known)
        record.working = working_bytes(record)
        record.besides = held + record.working + (record.needed.of_state if record.chain.start else 0)
    besides: int = record.besides
    return besides


def least_again(record: Any, held: int) -> int:
    """The bytes that another reverse pass through a loop can do with, where so many are held by all that such passes
    begin with; 0 where ranks have to agree on them."""
    if record.besides is None or record.agreed is not None or not (record.bound or record.policy.room is not None):
        return 0
    return besides_again(record, held) + int(record.least_beside)


def besides_again(record: Any, held: int) -> int:
    """What is held beside its snapshots and tapes in another reverse pass, where such passes begin with ``held``."""
    from pullback.memory.lending import beyond_result  # noqa: PLC0415 - for those who pass a number of bytes

    more = held - record.besides + record.working
    return int(record.besides + beyond_result(more, sizes_of(record)["state_bytes"] + record.stacked))


def least_beside(record: Any) -> int:
    """The bytes that the snapshots and tapes of a loop can do with."""
    shares, sizes, policy, start_held = shares_of(record), sizes_of(record), record.policy, bool(record.chain.start)
    if policy.room is None:
        return int(policy.least(record.n, **sizes)) - start_held * sizes["state_bytes"]
    return int(policy.reserving(0, start_held=start_held).least(record.n, **(shares.least(sizes) if shares else sizes)))


def shares_of(record: Any) -> Any:
    """What loops in the steps of a loop get of its bytes, where it has them of no loop around it."""
    nest = record.chain.steps.nest
    return None if nest is None or not nest.loops or places_of(record) is not None else nest.shares(record)


def kept_items(record: Any) -> list[Item]:
    """What is kept, as one item: entries are not booked one by one then, and what follows may have to know. Loops in
    the steps have such items of their own."""
    nest, entries = record.chain.steps.nest, record.chain.store.entries
    each = record.inner if nest is None or not nest.loops else nest.held
    tapes = sum(kind == "tape" for kind, _, _ in entries) + (record.chain.work is not None)
    return [(("kept", id(record)), max(0, record.kept_bytes - tapes * each), "saved")]


def book_kept(record: Any) -> None:
    """Where entries are not booked one by one, they are as one item: so it stays where somebody hears the ledger
    since. A forecast has none."""
    ledger = record.chain.store.ledger
    if not ledger.heard or any(key == ("kept", id(record)) for key, _, _ in getattr(record, "booked", ())):
        ledger.release(record.booked)
        record.booked = kept_items(record)
        ledger.hold(record.booked)


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
