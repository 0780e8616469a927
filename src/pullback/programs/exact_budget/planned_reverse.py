"""The reverse pass of a program within a number of bytes: what is computed again, and when, is planned before it."""

from array import array
from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain
from typing import Any, Final

from attrs import define, field

from pullback.memory.ledger import value_items
from pullback.memory.lending import give_all, gives
from pullback.memory.reverse_sweep import Sweep, sweep
from pullback.memory.temporaries import on_the_way
from pullback.programs.exact_budget.graph_replayer import GraphReplayer
from pullback.programs.exact_budget.on_demand import on_demand
from pullback.recording.handles import plain_value
from pullback.recording.results import COMPONENT
from pullback.rules.forms import FORMS, is_collective
from pullback.rules.rule_names import positions
from pullback.scheduling.graphs.fixed_order import (
    COMPUTE,
    DROP,
    EVENT,
    KINDS,
    Event,
    FixedOrder,
    best_of_order,
    drops_of,
)
from pullback.words.errors import BudgetError

SMALL: Final = 40
"""Values up to which the best way is searched for."""
MOST_MET: Final = 5_000
"""States that the search may meet: about a second."""
STATE_BYTES: Final = 3_000
"""Bytes that the search takes for each of them: it has to make do with what is free before the reverse."""

MOST_KNOWN: Final = 32
"""Plans that are kept."""
LONGEST_KNOWN: Final = 4_096
"""Steps of a plan that is kept: 32 kB."""
_WAYS: Final[dict[bytes, tuple[Sequence[int] | None, bool]]] = {}
"""The plans, each by a digest of all that it follows from."""


@define(eq=False)
class PlannedReverse:
    """One reverse pass of a :class:`~pullback.programs.exact_budget.graph_chain.GraphChain`, for all seeds at once."""

    chain: Any
    sweeps: Sequence[Sweep]
    nodes: list[int] = field(factory=list)
    """The values of the problem, by their ids."""
    pulled: list[int] = field(factory=list)
    """The records of the events."""

    def carry_out(self) -> None:
        """Plan, and go by it; raises :class:`BudgetError` where no plan fits."""
        graph = self.chain
        problem, way = self._planned()
        if way is None and any(map(gives, graph.ledger.lenders)):
            give_all(graph.ledger)
            problem, way = self._planned()
        if way is None or graph.floor > graph.policy.max_bytes:
            raise self._refused(problem)
        del problem
        self._go(way)

    # What there is to plan.
    def _planned(self) -> tuple[FixedOrder, Sequence[int] | None]:
        problem = self.problem()
        resident = sum(1 << v for v, ident in enumerate(self.nodes) if ident in self.chain.kept)
        way, self.chain.optimal = known_way(problem, resident)
        return problem, way

    def problem(self) -> FixedOrder:
        """Values, events, bytes."""
        graph, steps = self.chain, self._cotangents()
        saved = {p: self._needs(p) for p, _, _ in steps}
        found, todo = set[int](), [ident for needs in saved.values() for ident in needs]
        while todo:
            ident = todo.pop()
            if ident not in found:
                found.add(ident)
                todo += graph.reads(ident)
        for ident in set(graph.kept) - found:
            graph.drop(ident)  # no cotangent reaches what reads it
        self.nodes = sorted(found)
        self.pulled = [p for p, _, _ in steps]
        place = {ident: v for v, ident in enumerate(self.nodes)}
        sizes = graph.live.sizes
        held = sum({k: n for ident in graph.kept for k, n, _ in graph.items[ident]}.values())
        fixed = graph.live.total - held + graph.others
        lives = sum(1 << place[i] for i in graph.kept if self._stays(i))
        events = []
        for p, before, during in steps:
            needs, record, gone = sum(1 << place[i] for i in saved[p]), graph.tape.records[p], 0
            if record is not None and FORMS[record[0]].steps:
                gone, taken = freed_and_taken(record[2], graph.ledger)
                during = max(before, before + taken)  # noqa: PLW2901 - it knows better
            events.append(Event(needs, 0, lives, fixed + before, fixed + during))
            fixed -= gone  # when it has been reversed
        reads = [sum(1 << place[u] for u in graph.reads(ident)) for ident in self.nodes]
        return FixedOrder(
            [sizes[ident] for ident in self.nodes], [graph.costs[ident] for ident in self.nodes], reads,
            [self._extra(ident) for ident in self.nodes], events, graph.policy.max_bytes,
        )  # fmt: skip

    def _stays(self, ident: int) -> bool:
        """Whether a value that is held is there in any case: a handle has it, or a loop begins with it."""
        graph = self.chain
        booked = (graph.ledger.held.get(key) for key, _, _ in graph.items[ident])
        return graph.live.alive(graph.kept[ident]) or any(item is not None and item[0] > 1 for item in booked)

    def _needs(self, p: int) -> list[int]:
        """The nodes whose values a record holds."""
        graph, recipe = self.chain, self.chain.recipes.get(p)
        if recipe is None or graph.tape.records[p] is not None:
            return []
        ids = {graph.root(ident) for ident in _held(recipe, p, graph)}
        return sorted(ident for ident in ids if ident not in graph.pinned)

    def _cotangents(self) -> list[tuple[int, int, int]]:
        """The records that are pulled back, the last first: each with the bytes of cotangents before it, and while
        it is pulled back, with what its rule makes on the way and the copies that the record holds."""
        graph, found = self.chain, []
        sizes, n = graph.live.sizes, len(self.sweeps)
        copied: dict[int, list[int]] = {}
        for p, ident in graph.twins:
            copied.setdefault(p, []).append(ident)
        live = {i: sizes.get(i, 8) for one in self.sweeps for i, ct in enumerate(one.cts) if ct is not None}
        for p in range(graph.cuts[1] - 1, graph.start - 1, -1):
            record = graph.tape.records[p] or graph.recipes.record_of(p)
            if record is None or (p not in live and not is_collective(record)):
                continue
            live.setdefault(p, sizes.get(p, 8))
            ids = [i for i in FORMS[record[0]].ids(record) if i is not None]
            known = [sizes.get(i, live[p]) for i in ids]
            new = {i: nbytes for i, nbytes in zip(ids, known, strict=True) if i not in live}
            joined = len(ids) - len(new)  # another lies beside a cotangent first, and their sum beside both
            added = max(0, joined - (len(ids) > 1))
            few = on_the_way(record, masks=graph.tape.masks)[1] + 2 * bool(joined)
            temporary = int(min(on_the_way(record)[1] + added, few) * max((live[p], *known)))
            temporary += sum(sizes[ident] for ident in copied.get(p, ()))
            before = n * sum(live.values())
            found.append((p, before, before + n * sum(new.values()) + temporary))
            nbytes = live.pop(p)
            live |= new
            if record[0] == COMPONENT.opcode and not new:  # one of several outputs: their cotangents wait for all
                live[ids[0]] += nbytes
        return found

    def _extra(self, ident: int) -> int:
        """What an operation makes on the way beside its result."""
        graph = self.chain
        record = graph.recipes.record_of(ident)
        sizes = graph.live.sizes
        most = max(sizes.get(i, 0) for i in (ident, *FORMS[record[0]].ids(record)) if i is not None)
        return int(max(0, int(most * on_the_way(record)[0]) - sizes[ident]))

    def _refused(self, problem: FixedOrder) -> BudgetError:
        graph = self.chain
        least = max(least_bytes(problem), graph.floor)
        return BudgetError(
            f"{graph.policy!r} is too little for this program: of its {len(problem.sizes)} values that can be computed "
            f"again the largest takes {max(problem.sizes, default=0):,} bytes. Allow at least {least:,} bytes.",
            least,
        )

    # Going by it.
    def _go(self, way: Sequence[int]) -> None:
        graph, ledger = self.chain, self.chain.ledger
        replayer = GraphReplayer.of(graph)
        booked: dict[int, Any] = {}
        reached = graph.cuts[1]
        for number, step in enumerate(way):
            k, what = divmod(step, KINDS)
            if what == EVENT:
                p = self.pulled[k]
                self._pull(replayer, p, reached)
                reached = p
                continue
            ident = self.nodes[k]
            if what == COMPUTE:
                then, what = divmod(way[number + 1], KINDS)  # no way ends with a value that nobody reads
                passing = self.nodes[then] if what == DROP else None
                value = replayer.compute(ident, passing)
                graph.again += 1
                booked[ident] = items = value_items((plain_value(value),), "saved")
                ledger.hold(items)
                del value
            else:
                replayer.release(ident)
                if ident in graph.kept:
                    graph.drop(ident)
                else:
                    ledger.release(booked.pop(ident))
        self._pull(replayer, graph.start, reached, nothing=True)
        for items in booked.values():
            ledger.release(items)

    def _pull(self, replayer: GraphReplayer, p: int, reached: int, *, nothing: bool = False) -> None:
        """Pull back through record ``p``; what lies between it and the one ``reached`` before has no cotangent."""
        graph, records = self.chain, self.chain.tape.records
        made = not nothing and records[p] is None
        if made:
            replayer.put_back(p)
        sweep(graph.tape, p, reached, self.sweeps)
        if made:
            records[p] = None


def freed_and_taken(loop: Any, ledger: Any) -> tuple[int, int]:
    """What a loop lets go of when it has been reversed, and what it takes meanwhile at least beyond what it holds and
    the cotangents of its results."""
    state, tape = loop.sizes["state_bytes"], loop.sizes["tape_bytes"]
    working = max(0, loop.working - state)
    for lender in ledger.lenders:
        if lender.run is loop:
            return lender.own, working + lender.takes
    if not loop.fresh:  # it runs again, within what is free then
        return 0, working + loop.least_beside
    own = max(0, loop.kept_bytes - state * bool(loop.chain.start and loop.chain.store.holds("state", 0)))
    policy = getattr(loop.schedule, "policy", None)
    if policy is None or policy.room is None or own >= loop.n * tape:
        return own, working
    return own, working + max(0, min(policy.room, state + loop.n * tape) - own)


def _held(recipe: Any, p: int, graph: Any) -> set[int]:
    """Codes of the values that a record holds, and ``p`` for its own."""
    form, arity = recipe.form, len(recipe.arguments)
    found: set[int] = set()
    for name in form.saved:
        places = positions(form.primitive, name, arity)
        found |= {
            graph.recipes.ident(recipe.arguments[k], graph.start) for k in places if type(recipe.arguments[k]) is int
        }
        if not places:
            found.add(p)
    return found


def known_way(problem: FixedOrder, resident: int) -> tuple[Sequence[int] | None, bool]:
    """:func:`best_way`, once for equal problems: a program that is run again is planned once."""
    parts = problem.sizes, problem.costs, problem.extras, problem.max_bytes
    digest = blake2b(repr(parts).encode(), digest_size=16)
    for mask in (*problem.reads, resident):  # in hexadecimal: Python writes no decimal number of so many digits
        digest.update(b"%x," % mask)
    for e in problem.events:
        digest.update(b"%x,%x,%x,%x,%x," % (e.needs, e.makes, e.lives, e.before, e.during))
    key = digest.digest()
    found = _WAYS.get(key)
    if found is None:
        found = best_way(problem, resident)
        if found[0] is not None and len(found[0]) <= LONGEST_KNOWN:
            if len(_WAYS) >= MOST_KNOWN:
                _WAYS.pop(next(iter(_WAYS)), None)
            _WAYS[key] = found
    return found


def best_way(problem: FixedOrder, resident: int) -> tuple[Sequence[int] | None, bool]:
    """The cheapest that is found, and whether there is none cheaper: of few values a search tells it."""
    best: Any = None
    least = float("inf")
    for cost, way in on_demand(problem, resident):
        if cost < least:
            best, least = way, cost
    if best is not None and least <= problem.bound((resident & problem.useful[0], 0)):
        return best, True
    if len(problem.sizes) > SMALL or not problem.events:
        return best, False
    free = problem.max_bytes - problem.bytes_of(resident | problem.events[0].lives) - problem.events[0].before
    searched = best_of_order(problem, resident, min(MOST_MET, free // STATE_BYTES), least)
    if searched.done is not None:
        first = drops_of(resident & ~problem.useful[0])
        best = array("q", chain(first, chain.from_iterable(searched.done)))
    return best, searched.complete


def least_bytes(problem: FixedOrder) -> int:
    """Bytes that are enough, whatever is held at first, and more than those of the problem."""
    low = high = problem.max_bytes
    while not _fits(problem, high):
        low, high = high, 2 * high
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(problem, middle) else (middle, high)
    return high


def _fits(problem: FixedOrder, max_bytes: int) -> bool:
    """Whether a way is found with nothing resident: what others hold may not be among what is held then."""
    events = []
    for event in problem.events:
        lives = problem.bytes_of(event.lives)
        events.append(Event(event.needs, 0, 0, event.before + lives, event.during + lives))
    other = FixedOrder(problem.sizes, problem.costs, problem.reads, problem.extras, events, max_bytes)
    return any(True for _ in on_demand(other, 0))
