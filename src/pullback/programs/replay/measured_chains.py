"""What code that is cut by itself takes while it is reversed, once the trace has ended: every value and every cotangent
is known by then."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pullback.memory.ledger import record_items, value_items
from pullback.memory.working_bytes import books_of
from pullback.programs.replay.step_recipes import BOOK_BYTES
from pullback.programs.replay.sweep_bytes import SweepBytes
from pullback.rules.forms import FORMS


def measure(governor: Any) -> None:
    """Tell each chain that gives up what it holds, and what it holds at the end, what its reverse pass takes at
    least."""
    records, cutter = governor.tape.records, governor.cutter
    handles = [reference() for reference in list(cutter.watched.values())]
    waiting = {handle._id for handle in handles if handle is not None and handle._id is not None}
    stop = len(records)
    for chain in governor.chains[::-1]:
        for record in records[chain.cuts[-1] : stop]:
            if record is not None:
                waiting.update(FORMS[record[0]].ids(record))
        stop = chain.cuts[0]
        if chain.recipes.told_at_end:
            _measure_one(governor, chain, waiting)
        if chain.replays:
            waiting |= chain.recipes.read_before()


def _measure_one(governor: Any, chain: Any, waiting: set[int]) -> None:
    """Tell one chain, to which the cotangents ``waiting`` come."""
    recipes, first = chain.recipes, chain.cuts[0]
    if any(recipe is not None and recipe.whole for pattern in set(recipes.patterns) for recipe in pattern.recipes):
        return
    start = chain.store.found("state", 0) or chain.snapshots.initial
    before = {} if chain.variables is None else dict(chain.variables.ids)
    before |= {} if start is None else {i: getattr(v, "nbytes", 0) for i, v in start.values.items() if i < first}
    sweep = SweepBytes(recipes, chain.needs, recipes.sizes, before)
    comes = {i: sweep.nbytes(i) for i in waiting if i < chain.cuts[-1]}
    recipes.most, back = sweep.most(comes)
    if chain.repeatable:  # what the pull before has returned may be held
        recipes.most += sum(before.get(i, 0) for i in range(governor.tape.n_inputs))
    lender = next((each for each in governor.ledger.lenders if each.run is chain), None)
    if lender is not None:
        first = 0 if start is None else sum(nbytes for _, nbytes, _ in value_items(start.values.values(), "snapshot"))
        lender.sizes = {**lender.sizes, "state_bytes": min(lender.sizes["state_bytes"], sweep.state + first)}
        least = recipes.most + _beside(governor, chain, lender)
        if recipes.whole is not None and governor.policy.room < recipes.whole:  # of this it would be held whole
            least = min(least, recipes.whole)
        lender.takes_all(least)
        if lender.least > governor.policy.room:
            _hold(governor, chain, lender, back)


def _hold(governor: Any, chain: Any, lender: Any, back: Sequence[int]) -> None:
    """Where all steps of a chain are held and it takes less so, it becomes save-all."""
    if len(chain.work_items) < len(back):
        return
    held, nbytes, most = set[Any](), 0, 0
    for step, needed in enumerate(back):
        most = max(most, nbytes + needed)
        for key, size, _ in chain.work_items[step]:
            nbytes += size if key not in held else 0
            held.add(key)
    most = nbytes + max(back) if chain.repeatable else most
    whole = most + _beside(governor, chain, lender)
    if whole < lender.least:
        governor.floor = max(governor.floor, whole)
        chain.hold_all()
        governor.ledger.n_forward -= len(chain.cuts) - 1
        governor.chains.remove(chain)


def _beside(governor: Any, chain: Any, lender: Any) -> int:
    """What is held when the reverse comes to a chain, beside what it can give up: its first snapshot is no part of
    that."""
    ledger, records, store = governor.ledger, governor.tape.records, chain.store
    own = Counter(key for items in chain.work_items.values() for key, _, _ in items)
    own.update(key for snapshot in store.of("state").values() for key, _, _ in snapshot.items)
    start = store.found("state", 0)
    stays = {key for key, _, _ in start.items} if start is not None else set()
    gives = sum(ledger.held[k][1] for k, n in own.items() if k not in stays and ledger.held.get(k, (0,))[0] == n)
    plain = [*records[: chain.cuts[0]], *(records[chain.cuts[-1] :] if chain.repeatable else ())]
    held = sum(nbytes for key, nbytes, _ in record_items(plain) if key not in ledger.held)
    outs = governor.bytes_beside((), len(records))
    later = ledger.lenders[ledger.lenders.index(lender) + 1 :]
    total = ledger.total - sum(each.own for each in later)
    return int(total - gives + held + outs + books_of(plain, _books(chain)))


def _books(chain: Any) -> int:
    """What Python takes for the recipes of a chain, and for its steps while the way back is gone."""
    return int((chain.recipes.nbytes + BOOK_BYTES * len(chain.cuts) * 2 // 3) * 9 // 8)
