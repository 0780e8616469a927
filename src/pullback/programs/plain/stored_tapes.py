"""The tapes of recorded steps, in the store: in memory they stay where they were recorded, elsewhere they go as entries
that can be taken apart."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from attrs import define, evolve, field

from pullback.memory.entry_parts import Taken, put_in
from pullback.memory.ledger import Item, record_items
from pullback.memory.reverse_sweep import release_records
from pullback.memory.store import ByReference, Store


class TapeInPlace(NamedTuple):
    """The tape of a step: its records stay where they are, and are booked there."""

    step: int
    items: tuple[Item, ...] = ()


@define(eq=False)
class StoredTape:
    """The records of a step, which stand on the tape no more."""

    step: int
    records: list[Any]
    constants: frozenset[Any]
    """The buffers (by ``id``) that are held beside the tape anyway."""
    items: Sequence[Item] = field(default=())
    never_changes: ClassVar[bool] = True
    """An array that a record holds stands for one value for good: who writes to it copies first."""

    def __attrs_post_init__(self) -> None:
        self.items = record_items(self.records)

    def split(self) -> tuple["StoredTape", list[Any]]:
        """What stays in memory, and the arrays."""
        taken = Taken(self.constants)
        shells = [None if record is None else taken.out(record) for record in self.records]
        return evolve(self, records=shells), taken.arrays

    def joined(self, arrays: list[Any]) -> "StoredTape":
        """The tape, with these arrays again."""
        return evolve(self, records=put_in(self.records, arrays))

    def release(self) -> None:
        """Dropped unreversed."""
        release_records(self.records)


def put_tape(chain: Any, step: int, tier: str) -> None:
    """Store the tape of a step of a :class:`~pullback.programs.plain.plain_chain.PlainChain`; what goes elsewhere
    stands on the tape for as long as some tier in memory has it."""
    store = chain.store
    if _stays(store, tier):
        store.put("tape", step, tier, TapeInPlace(step))
        return
    chain.put_back(step)
    records = chain.tape.records[chain.cuts[step] : chain.cuts[step + 1]]
    constants = frozenset(key for key, _, reason in record_items(records) if reason == "constant")
    store.put("tape", step, tier, StoredTape(step, records, constants))
    if not stands(chain, step):
        chain.let_go(step)


def get_tape(chain: Any, step: int, tier: str) -> None:
    """The tape stands where it was recorded, and is booked."""
    tape = chain.store.get("tape", step, tier)
    if type(tape) is StoredTape and step not in chain.work_items:
        chain.tape.records[chain.cuts[step] : chain.cuts[step + 1]] = tape.records
        chain.book(step)


def transfer_tape(chain: Any, step: int, source: str, target: str) -> None:
    """Copy it from one tier to another."""
    there = stands(chain, step)
    get_tape(chain, step, source)
    put_tape(chain, step, target)
    if not there and not stands(chain, step) and step in chain.work_items:
        chain.let_go(step)


def drop_tape(chain: Any, step: int, tier: str) -> None:
    """A tier has it no more."""
    store = chain.store
    tape = store.look("tape", step, tier)
    store.drop("tape", step, tier)
    if chain.work == step or store.holds("tape", step):
        return
    if step in chain.work_items:
        chain.drop(step)
    elif type(tape) is StoredTape:
        tape.release()


def release_tapes(chain: Any) -> None:
    """Release the tapes that are stored elsewhere alone: they will not be reversed."""
    for step, tape in chain.store.of("tape").items():
        if type(tape) is StoredTape and step not in chain.work_items:
            tape.release()


def all_taken_back(chain: Any) -> None:
    """Every tape stands where it was recorded."""
    for kind, step, tier in list(chain.store.entries):
        if kind == "tape":
            get_tape(chain, step, tier)


def stands(chain: Any, step: int) -> bool:
    """Whether a tier in memory has the tape, where it was recorded."""
    store = chain.store
    return any(
        ("tape", step, tier) in store.entries and type(store.look("tape", step, tier)) is TapeInPlace
        for tier in store.tiers
    )


def _stays(store: Store, tier: str) -> bool:
    return tier not in store.tiers or isinstance(store.tier(tier), ByReference)
