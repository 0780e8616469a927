"""Many steps in a row that do what the last one did: only the values are new.

What is checked of a single step before and after it is checked here once for all of them, except what a step itself
could change. A step that does anything else is finished as a single one, and ends the row.
"""

import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from threading import get_ident
from typing import Any

import numpy as np
from attrs import define

from pullback.loops.bodies.proofs import FEWEST
from pullback.loops.stepping.called_bodies import gives_back, returned_on
from pullback.loops.stepping.held_steps import StagedStep
from pullback.loops.stepping.proved_steps import Proved, recorded_on, telling
from pullback.loops.stepping.rerun import writable
from pullback.loops.stepping.rows import rows_of
from pullback.loops.stepping.staged_steps import StagedSteps, carrying
from pullback.memory.store import Store
from pullback.recording.tape import NOTHING_KEPT
from pullback.recording.traps import TRAPPED
from pullback.scheduling.machine.actions import MEMORY
from pullback.staging.generated.generated import say_line, usable, warn
from pullback.staging.generated.stages import slot_items
from pullback.staging.shadow.operations import Result, enters_as, standing
from pullback.staging.shadow.quick_operators import KnownStep
from pullback.words.undocumented import error_state, quiet, under_error_state

_QUIET: Any = nullcontext()
FEW = 6
"""Steps in a row that prove it."""


@define(eq=False)
class Going:
    """What has been asked of the steps that go straight on, and need not be asked again while it holds."""

    entered: Any
    run: Any
    known: list[KnownStep]
    """The list of operations that they do, before the others."""
    results: list[Result | None]
    """What kinds of leaves enter; None for those without derivative."""
    kinds: list[Result]
    """What kinds of leaves the state has."""
    rows: list[Result]
    """What kinds of rows do."""
    errors: Any
    """NumPy's error state."""

    @property
    def active(self) -> list[bool] | None:
        """Which leaves enter; None for all of them."""
        return [result is not None for result in self.results] if None in self.results else None

    def holds(self, staged: StagedSteps, state: list[Any]) -> bool:
        """Whether it still does, for steps from ``state`` on."""
        if (
            staged.entered is not self.entered
            or staged.run is None
            or staged.run[0] is not self.run
            or self.run.following is not self.known[0]
            or error_state() is not self.errors
            or TRAPPED.get()
            or self.run.tape.thread != get_ident()
        ):
            return False
        if state is staged.state:
            return True
        for result, leaf in zip(self.kinds, state, strict=True):  # noqa: SIM110 - every step comes here
            if not enters_as(result, leaf):
                return False
        return True


def _going(staged: StagedSteps, k: int, state: list[Any]) -> Going | None:
    steps = staged.steps
    if staged.run is None or not staged.takes(k) or staged.run[0].tape.thread != get_ident():
        return None
    if state is not staged.state and not staged.enters_again(state, steps.row(k)):
        return None
    variants, results, x_results = staged.entered
    run = staged.run[0]
    known = run.following
    kinds: list[Any] = [result or standing(leaf) for result, leaf in zip(results, state, strict=True)]
    if known is None or known.stops or None in kinds:
        return None
    others = [stage.known for stage in variants.stages if stage.known is not known]
    rows = [result for result in x_results if result is not None]
    return Going(staged.entered, run, [known, *others], results, kinds, rows, error_state())


def straight(
    staged: StagedSteps, k: int, stop: int, state: list[Any], take: Callable[[Any], None], more: Any = None
) -> tuple[int, list[Any]]:
    """Record steps from ``k`` on, up to ``stop``, as far as they do what the last step did; ``take`` gets each. The
    step reached, and the state there; ``state`` may be emptied. ``more``, if given, says of each but the first whether
    there is one."""
    steps = staged.steps
    if k >= stop or k < staged.first or staged.run is None:
        return k, state
    if steps.ledger.heard and steps.ledger.separates:
        return k, state
    going = staged.going
    if going is None or not going.holds(staged, state):
        going = staged.going = _going(staged, k, state)
        if going is None:
            return k, state
    run, within = staged.run
    before = (run.values, run.constants) if state is staged.state else None
    staged.run, whole, parts = None, False, None
    computes = partial(staged.begun, run, keeps=True)
    if run.pool is None:
        run.begin(going.known, (*going.results, *going.rows), computes)
    else:
        _reopen(run, going.known, computes)
    try:
        with within:
            k, state, left = _while_alike(staged, run, k, stop, state, take, before, more)
            if left is not None:
                parts = staged.returned(run, *steps.leaves_of(k + steps.lower, *left))
                left = None
        if parts is None:
            staged.run, whole = (run, within), True
        else:
            whole = run.following is not None
            step, state = staged.settled(k, state, run, parts, keeps=True)
            if whole:
                staged.run = run, within
            take(step)
            k += 1
    except BaseException:
        whole = False
        run.failed()
        raise
    finally:
        if not whole or parts is not None or not _stays_open(run):
            run.end(whole=whole)
    return k, state


def _reopen(run: Any, known: list[KnownStep], computes: Any) -> None:
    """A step begins in a run that has stayed open: it follows the same list, on the same handles."""
    run.tape.shadow, run.tape.kept = run, NOTHING_KEPT
    run.errors, run.filters, run.computes = error_state(), warnings.filters, computes
    run.known, run.at, run.constants, run.captured, run.values = known, 0, [], [], []


def _stays_open(run: Any) -> bool:
    """Whether a run whose steps were all alike can wait for the next as it is: its pool is still there then. Nobody has
    kept one of its handles."""
    run.stands, run.outer, run.computes = {}, [], None
    if run.alone or run.pool is None or not run.pool.serves_again(run.written):
        return False
    run.tape.shadow = None  # or the two would keep each other alive
    return True


def _while_alike(
    staged: StagedSteps, run: Any, k: int, stop: int, state: list[Any], take: Any, before: Any, more: Any
) -> tuple[int, list[Any], Any]:
    """The same, and what the body has returned from a step that differs; None where all are alike. ``before`` are the
    captured values and the plain operands of the last step, where that was the one before."""
    steps, pool = staged.steps, run.pool
    stage, work = staged.work_of(run.following)
    ending, last, generated = pool.ending, len(run.following.operations) - 1, usable(stage.record)
    told, function, places = under_error_state(warn), generated.function, work.of(stage.record)
    lower, compares, n, active = steps.lower, steps.verifier.compares, len(state), staged.going.active
    if not pool.is_bound or not stage.repeats:
        row, values = steps.entered(k, pool.entering[n if active is None else sum(active) :])
        return k, state, steps.called(k + lower, run.entered([*writable(state), *values], run.entering)[:n], row)
    proof = staged.proving(before) if _pays(staged, stop - k) else None
    starting, kind, carried = pool.starting, None, carrying(stage)  # one more who holds a handle would be seen
    while True:
        carry, y = returned_on(starting, steps, run, proof, k, state, active)
        plain = gives_back(steps, carry, y, ending)
        if plain is None or run.following is not stage.known or run.at != last:
            return k, state, (carry, y)
        run.constants += plain
        carry = y = plain = None
        run.at += 1
        if kind is None or run.captured != kind.captured:
            staged.require_captures(run.captured, k)
            kind = staged.kind_of(stage, work, run.captured, n)
        try:
            with told:
                returned, slots = function(run.inputs, run.values, run.constants, *places)
        except Exception as error:
            say_line(error, generated)
            raise
        after, ys = steps.taken(k, n, returned)
        after = list(after) if carried is None else carried(state, after)
        if compares:
            steps.verifier.after(k, after, list(ys))
        state.clear()  # of what nobody else has, nothing stays
        run.inputs = []
        staged.state = state = after
        take(StagedStep(kind, slots, k, slot_items(stage.booked, slots) if steps.ledger.heard else ()))
        k += 1
        if more is not None and k < stop and not more(k, state):
            return k, state, None
        if proof is not None and k < stop and proof.repeats(k - 1 + lower, run.values, run.constants):
            staged.proved = Proved(kind, run.values, proof, staged.going)
            k, state = recorded_on(staged.proved, steps, k, stop, state, take, told, more)
            staged.state = state
        if k == stop or (more is not None and not more(k, state)) or not _begins_again(run, state):
            return k, state, None


def _pays(staged: StagedSteps, n_steps: int) -> bool:
    """Whether to prove that the body may rest: it serves the rows that follow a short one, too."""
    if n_steps >= FEWEST:
        return True
    return n_steps >= FEW and staged.proved is None and (staged.steps.outputs.n or 0) >= FEWEST


def keep(chain: Any, k: int, stop: int) -> int:
    """Record the steps of a chain from ``k`` up to ``stop``, which is returned, and put their tapes in memory."""
    staging, n = chain.steps.staging, chain.steps.outputs.n
    if k < stop and n is not None and staging is not None and staging.lends and not chain.passes:
        from pullback.memory.lending import ends_of_parts  # noqa: PLC0415 - for those who have several loops

        for end in ends_of_parts(k, n)[1:]:
            _keep(chain, k, min(end, stop))
            k = end
    elif k < stop:
        _keep(chain, k, stop)
    return stop


def _keep(chain: Any, k: int, stop: int) -> None:
    """Record steps whose tapes may lie in one array."""
    store, staging = chain.store, chain.steps.staging
    separates = store.ledger.heard and store.ledger.separates
    chain.verifier.starts(k, chain.state)
    while k < stop:
        if staging is not None and chain.probe is None:
            first, kept, proved = k, list[Any](), staging.proved
            if proved is not None and not separates and proved.stands() and proved.enters(chain.state):
                k, chain.state = recorded_on(
                    proved, chain.steps, k, stop, chain.state, kept.append, telling() or _QUIET
                )
            else:
                k, chain.state = straight(staging, k, stop, chain.state, kept.append)
            chain.owned = chain.owned and not kept
            store.put_tapes(first, kept)
            store.ledger.n_forward += k - first
        if k < stop:
            store.put_tapes(k, [chain.on_tracers(k)])
            k += 1


def keep_while(chain: Any, most: float) -> int:
    """Record the steps of a chain of unknown length, but no more than the first ``most``, and put their tapes in
    memory; how many there were."""
    store, staging, stop, k = chain.store, chain.steps.staging, int(min(most, sys.maxsize)), 0
    while k < stop and chain.goes_on(k):
        store.put_tapes(k, [chain.on_tracers(k)])
        k += 1
        if staging is not None and k < stop and chain.goes_on(k):
            first, kept = k, list[Any]()
            k, chain.state = straight(staging, k, stop, chain.state, kept.append, chain.goes_on)
            chain.owned = chain.owned and not kept
            store.put_tapes(first, kept)
            store.ledger.n_forward += k - first
    return k


def back(chain: Any, k: int, first: int) -> None:
    """Reverse the steps of a chain from ``k`` down to ``first``, whose tapes are in memory."""
    store, passes = chain.store, chain.passes
    with quiet():  # as every sweep is
        while k >= first:
            chain.work = store.take_out("tape", k, MEMORY)
            chain.reverse(k)
            k -= 1
            if len(passes) == 1 and passes[0].after is not None and not store.ledger.separates:
                k = straight_back(store, k, first, passes[0])


def straight_back(store: Store, k: int, first: int, one: Any) -> int:
    """Reverse steps from ``k`` down to ``first``, as far as they are of the kind that the pass has reversed last,
    whose cotangents are seeds as they are. The next step to reverse."""
    entries, booked, kind = store.entries, store.booked, one.after
    if one.outer is not None or not kind.goes_on:
        return k
    rows = rows_of(one, kind)
    if rows is None:
        return k
    beside = bool(rows.y_cts or rows.x_cts)
    sums, ids = one.sums, kind.ids
    function, places = kind.own
    buffers, fresh = places
    totals: list[Any] | None = None
    cts = kind.packed(one.cts)
    while k >= first:
        key = "tape", k, MEMORY
        step = entries.pop(key, None)
        if type(step) is not StagedStep or step.kind.family is not kind.family:
            if step is not None:
                entries[key] = step
            break
        if booked:
            store.ledger.release(booked.pop(key, ()))
        try:
            if beside:
                cts, gathered = function(step.slots, rows.seeds(k, cts), buffers, fresh)
                cts = rows.left(k, cts)
            else:
                cts, gathered = function(step.slots, cts, buffers, fresh)
        except Exception as error:
            kind.say_step(error, kind.stage.reverse_own, k)
            raise
        if totals is None:
            for ident, ct in zip(ids, gathered, strict=True):
                sums.gather(ident, ct)
            totals = sums.totals(ids)
        else:
            for total, ct in zip(totals, gathered):  # noqa: B905 - there are as many
                np.add(total, ct, total)
        k -= 1
    one.cts = kind.of_leaves(cts)
    return k


def _begins_again(run: Any, inputs: list[Any]) -> bool:
    """Whether the next step begins, in the same block and on the same handles: not where somebody has kept one."""
    run.stands, run.outer = {}, []
    if not run.pool.serves_again(run.written):
        return False
    run.at, run.tape.kept, run.inputs = 0, NOTHING_KEPT, inputs
    run.captured, run.values, run.constants = [], [], []
    return True
