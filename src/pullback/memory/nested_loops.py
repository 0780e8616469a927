"""Loops in the steps of a loop under one number of bytes: how much each gets, and what the outer loop's plan is told of
it.

A ``record`` here is a :class:`~pullback.loops.functions.loop_record.LoopRecord` whose first step has run.
"""

from typing import Any

from attrs import define, evolve, field, frozen

from pullback.memory.ledger import record_items, value_items
from pullback.memory.lending import give_all
from pullback.memory.working_bytes import OBJECTS_BYTES
from pullback.policies.nested_budgets import NestedLoop
from pullback.recording.tape import CLOSED


class TooLargeError(BaseException):
    """In step 0 loops have got all that they can use, and another one finds too little: the step is to be run again.
    For :meth:`Nest.first_step` alone."""

    nest: "Nest"


@define(eq=False)
class Nest:
    """What the loops in the steps of a loop get of its bytes."""

    limit: int
    """The bytes of the loop, for all its steps."""
    n: int | None
    """Its steps; None: unknown."""
    loops: list[Any] = field(factory=list, init=False)
    """The loops of step 0 (:class:`~pullback.policies.nested_budgets.NestedLoop`)."""
    held: int = field(default=0, init=False)
    """What they hold when the step is over."""
    working: int = field(default=0, init=False)
    """What one of them takes while it runs."""
    staging: int = field(default=0, init=False)
    """What functions of its steps take while they run."""
    stages: bool = field(default=False, init=False)
    """Whether they make such functions: not before it is known that there is room."""
    whole: bool = field(default=False, init=False)
    """Whether one of them has got all that it can use."""
    least: bool = field(default=False, init=False)
    """Whether they get the least."""
    part: int | None = field(default=None, init=False)
    """The share of each, as decided after step 0."""
    ledger: Any = field(default=None, init=False)
    """The ledger of loops that came before, and may have room."""

    def places(self) -> "Places":
        """Places for the tape of a step."""
        return Places(self)

    def shares(self, record: Any) -> "Shares":
        """The shares of the loops, for the record of the loop around them."""
        return Shares(record)

    def first_step(self, record: Any) -> Any:
        """Step 0 on tracers, once more where the loops in it turn out to be too large to be kept whole."""
        steps, chain = record.chain.steps, record.chain
        try:
            return chain.probe_first()
        except TooLargeError as error:
            if error.nest is not self:
                raise
        chain.randomness.restore(chain.start_random)
        self.loops, self.held, self.working, self.staging = [], 0, 0, 0
        self.least, self.whole = True, False
        steps.lifetimes = type(steps.lifetimes)(asks=steps.lifetimes.asks, apart=steps.lifetimes.apart)
        return chain.probe_first()

    def _fits(self, tape: int) -> bool:
        """Whether the tapes of all steps do, each of so many bytes."""
        return self.n is not None and self.n * tape + self.working <= self.limit

    def ended(self, record: Any, before: int) -> None:
        """The forward pass of a loop in a step is over, which began with so many bytes held."""
        if self.part is None and self.loops:
            ledger = record.chain.store.ledger
            self.held += ledger.total + ledger.lent_bytes - before
            if self.loops[-1].n is None:
                self.loops[-1] = evolve(self.loops[-1], length=max(1, record.n))

    def first(self, loop: Any, held: int) -> int:
        """The bytes of the next loop of step 0, whose tape has come to hold so many."""
        self.loops.append(loop)
        if self.ledger is not None:
            self.limit, self.ledger = self.limit + give_all(self.ledger), None
        if not self.least and self._fits(held + sum(each.all for each in self.loops)):
            self.whole = True
            return int(loop.all)
        if self.whole:
            error = TooLargeError()
            error.nest = self
            raise error
        self.least = True
        return int(loop.least)


@define(eq=False)
class Places:
    """The loops in one step, in their order."""

    nest: Nest
    place: int = field(default=0, init=False)

    @property
    def room(self) -> int:
        """What the next one may hold."""
        nest, place = self.nest, self.place
        if nest.part is None:
            return nest.limit // nest.n if nest.n else 0
        return int(nest.loops[place].share(nest.part)) if place < len(nest.loops) else 0

    def bytes_for(self, loop: Any, held: int) -> int:
        """What the next one gets."""
        given = self.room
        self.place += 1
        return self.nest.first(loop, held) if self.nest.part is None else max(given, int(loop.least))


def schedule_of(
    record: Any, policy: Any, n: int | None, sizes: dict[str, int], besides: int, working: int, *, lends: bool
) -> Any:
    """The schedule of a loop that is in the step of another, or has others in its own; ``besides`` is for the outermost
    one, which reserves what those within need while they run, and which ``lends`` to those that follow it."""
    steps, start_held = record.chain.steps, bool(record.chain.start)
    nest, loop = steps.nest, _as_nested(record, n, sizes)
    if steps.enclosing is not None and steps.enclosing.nest is not None and not record.own:
        policy, lends = policy.parted(_share(record, loop, working) - loop.holds), False
    else:
        extra = record.needed.staging_bytes + nest.staging
        if policy.affords(extra, besides + sizes["state_bytes"] + loop.tape_bytes(0)):
            besides += extra
            nest.stages = True
        else:
            steps.staging = None
        policy = policy.reserving(besides, start_held=start_held)
    policy, in_step_0 = evolve(policy, start_held=start_held, spares=False), nest.held
    if nest.loops:
        sizes = {**sizes, "tape_bytes": _divided(record, evolve(loop, holds=0), policy.room)}
    if lends:
        policy = policy.lending(record.chain.store.ledger.total - (in_step_0 if record.chain.probe is not None else 0))
    return policy.schedule(n, **sizes)


def _as_nested(record: Any, n: int | None, sizes: dict[str, int]) -> Any:
    """A loop as part of a nest."""
    steps = record.chain.steps
    tape, held, nest = steps.enclosing, OBJECTS_BYTES, steps.nest
    if tape is not None:
        shared = value_items((value for _, value in (tape.captures or {}).values()), "snapshot")
        known = {key for key, _, _ in (*record_items(tape.records), *shared)}
        items = value_items((*steps.captured_values.values(), *(steps.xs or ())), "snapshot")
        held += sum(nbytes for key, nbytes, _ in items if key not in known)
    own = max(0, sizes["tape_bytes"] - nest.held)
    return NestedLoop(
        n, state_bytes=sizes["state_bytes"], own_bytes=own, loops=nest.loops, start_held=bool(record.chain.start),
        holds=held,
    )  # fmt: skip


def _share(record: Any, loop: Any, working: int) -> int:
    """What a loop in a step gets; in step 0 the loop around learns of it."""
    steps = record.chain.steps
    tape, nest, own = steps.enclosing, steps.enclosing.nest.nest, steps.nest
    if record.share_bytes is None:
        if nest.part is None:
            nest.working = max(nest.working, working)
            nest.staging = max(nest.staging, record.needed.staging_bytes + own.staging)
        held = sum(nbytes for _, nbytes, _ in record_items(tape.records))
        record.share_bytes = tape.nest.bytes_for(loop, held)
    own.stages = nest.stages
    if not nest.stages:
        steps.staging = None
    given: int = record.share_bytes
    return given


def _divided(record: Any, loop: Any, room: int) -> int:
    """The bytes of the tape of a step, of which the loops in it get their shares."""
    chain, nest = record.chain, record.chain.steps.nest
    if nest.part is None:
        found = loop.best(room)
        nest.part = 0 if found is None else found[1]
        tape: int = loop.tape_bytes(nest.part)
        inner = tape - loop.own_bytes
        if record.n is not None and record.n * tape <= room and _other_in_step_0(loop, nest):
            chain.drop_probe()  # it would be kept
        record.sizes["tape_bytes"] += inner - nest.held
        nest.held = inner
    return int(loop.tape_bytes(nest.part))


@frozen
class Shares:
    """What loops in the steps of a loop get, where it has its bytes of no other."""

    record: Any

    def least(self, sizes: dict[str, int]) -> dict[str, int]:
        """The sizes of the loop where they get the least."""
        nest = self.record.chain.steps.nest
        inner = sum(int(loop.least) for loop in nest.loops)
        return {**sizes, "tape_bytes": max(0, sizes["tape_bytes"] - nest.held) + inner}

    def anew(self, n: int, sizes: dict[str, int], room: int) -> dict[str, int]:
        """The sizes where they share this room from now on: the loop holds no tape."""
        loop = evolve(_as_nested(self.record, n, sizes), holds=0)
        self.record.chain.steps.nest.part = None
        return {**sizes, "tape_bytes": _divided(self.record, loop, room)}


def _other_in_step_0(loop: Any, nest: Nest) -> bool:
    """Whether the loops in step 0 hold more than their share, or so little that to run them once more is cheaper."""
    if not nest.least:
        return int(loop.parts) != nest.part
    least, most = (sum(each.best(each.share(part))[0] for each in loop.loops) for part in (0, nest.part))
    saved: float = least - most
    return saved > float(loop.once_within)


def beside_marked_steps(record: Any, room: int, n: int | None, sizes: dict[str, int], besides: int) -> int:
    """What a loop in marked steps has to leave free of the bytes: it gets all that it can use where that takes at most
    half of what is free for all steps, else the least, so that more bytes do not make the steps larger than the loop
    around them can bear. Where the steps are run again there is room, since that loop has counted with it."""
    tape = record.chain.steps.enclosing
    again = tape is not None and tape.captures is None and tape.mode == CLOSED
    governor = getattr(tape, "governor", None)
    if not again and (record.own or record.journal is not None or governor is None or not governor.within):
        return besides
    held = bool(record.chain.start)
    loop = NestedLoop(n, state_bytes=sizes["state_bytes"], own_bytes=sizes["tape_bytes"], start_held=held)
    n_steps = None if again or governor is None else governor.active.n
    whole = n_steps is not None and 2 * n_steps * loop.all <= room - besides
    left = room - int(loop.all if whole else loop.least)
    return left if again else max(besides, left)
