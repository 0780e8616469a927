"""Where ``ReplayError`` is raised: what a re-run of a loop gives is compared, by digests, with what its first run
gave."""

from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from attrs import define, field

from pullback.loops.bodies.changes import in_another_order
from pullback.recording.handles import Handle, plain_value
from pullback.rules.forms import FORMS
from pullback.words.call_sites import site_text
from pullback.words.digests import hash_of_dense, is_memory, short_digest
from pullback.words.errors import ReplayError, say_where

MOST = 100_000
"""How many steps have digests at most. Of a longer loop every second has, or every fourth."""
SELDOM = 16
"""Steps from one digest to the next where all tapes are held."""


@define(eq=False)
class Verifier:
    """What the first run of a loop gave, step by step. ``name`` is that of the loop, for messages."""

    name: str
    compares: bool
    """Whether states and outputs are compared: a step may be run again, and ``verify`` is not ``"off"``."""
    compares_tapes: bool
    """Whether what step 0 reads is compared, too: ``verify`` is ``"all"``."""
    n_seen: int = field(default=0, init=False)
    """How many steps the first run has come through."""
    stride: int = field(default=1, init=False)
    most: int = field(default=MOST, init=False)
    """How many steps have digests."""
    digests: "array[int]" = field(factory=lambda: array("Q"), init=False)
    """Those of the leaves of the state and of the output after every ``stride``-th step, one step after the other."""
    n_leaves: int = field(default=0, init=False)
    expected: "dict[int, array[int]]" = field(factory=dict, init=False)
    """The digests of the state that a step was recorded from, by step, where not every step has digests: when the step
    before is run again, it must give this state."""
    first_tape: list[int] = field(factory=list, init=False)
    """Digests of the records of step 0."""
    suspects: Callable[[], str] = field(default=lambda: "", init=False)
    """What is known to have changed, for messages."""
    drawn_beside: Callable[[], str] = field(default=lambda: "", init=False)
    """Whether threads may have drawn each other's random numbers, for messages."""

    def after(self, step: int, state: list[Any], ys: list[Any]) -> None:
        """``step`` has run: for the first time, or again, when it must have given the same."""
        if not self.compares:
            return
        if step >= self.n_seen:
            self._note(step, state, ys)
        elif (step + 1) % self.stride == 0:
            if len(state) == 1 and not ys and self.gave_alone(step, state[0]):
                return
            at = ((step + 1) // self.stride - 1) * self.n_leaves
            self._compare(self.digests[at : at + self.n_leaves], step, [*state, *ys], len(state))
        elif step + 1 in self.expected:
            self._compare(self.expected.pop(step + 1), step, state, len(state))

    def notes_alone(self, step: int, stop: int, leaf: Any) -> Callable[[Any], None] | None:
        """What is told of the state after each of these steps, where it is one C-contiguous array of the dtype of
        ``leaf``; None where :meth:`after` has to be told."""
        first = self.compares and step == self.n_seen and self.stride == 1
        if not first or len(self.digests) + stop - step > self.most or not is_memory(leaf.dtype):
            return None
        self.n_leaves, append = 1, self.digests.append

        def note(leaf: Any) -> None:
            append(hash_of_dense(leaf))
            self.n_seen += 1

        return note

    def gave_alone(self, step: int, leaf: Any) -> bool:
        """Whether a step that is run again is found, at the price of one digest, to have given this state, one array.
        False says nothing: then :meth:`after` compares."""
        if type(leaf) is not np.ndarray or self.stride > 1 or self.n_leaves > 1 or step >= self.n_seen:
            return False
        return short_digest(leaf) == self.digests[step]

    def looks_seldom(self) -> None:
        """Take digests of a few states only, from now on: no step will be run again, unless others need the bytes that
        its tape takes. Step 0 may have run already."""
        self.stride = max(self.stride, SELDOM)
        del self.digests[:]

    def starts(self, step: int, state: list[Any]) -> None:
        """A step that will be reversed starts from ``state``."""
        if self.compares and self.stride > 1 and step % self.stride:
            self.expected[step] = digests(state)

    def recorded(self, step: int, records: list[Any]) -> None:
        """Compare the tape of step 0 with the one before, record by record: what it reads may not show in the
        state."""
        if step == 0 and self.compares_tapes:
            found = [record_digest(record) for record in records]
            self.first_tape = self.first_tape or found
            if found != self.first_tape:
                pairs = zip(found, self.first_tape, strict=False)
                k = next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(found), len(self.first_tape)) - 1)
                what = f"{FORMS[records[k][0]].name} at {site_text(records[k][-1])}"
                raise self.error(f"re-running step 0 of the loop, {what} read other values than in the first run")

    def require(self, wanted: "array[int]", leaves: list[Any], happened: str, where: str) -> None:
        """Raise :class:`ReplayError` where leaves have not the digests ``wanted``; it says what ``happened``, and
        ``where``."""
        wrong = [k for k, (a, b) in enumerate(zip(wanted, digests(leaves), strict=True)) if a != b]
        if wrong:
            raise self.error(
                f"{happened}, in leaf {', '.join(map(str, wrong))} of {where}", in_another_order(leaves, wanted, wrong)
            )

    def error(self, happened: str, why: str = "") -> ReplayError:
        """The error for a re-run that gave something else, and ``why``, where that is known."""
        why = why or (
            f"{self.drawn_beside()}The body reads something that changed in between: {self.suspects()}an array or "
            "object changed from outside, a global counter, a random generator that the loop cannot reach. Make it "
            "part of the state, or pass the array as an argument"
        )
        return ReplayError(f"{self.name}: {happened}. {why}")

    def _note(self, step: int, state: list[Any], ys: list[Any]) -> None:
        self.n_seen = step + 1
        if self.n_seen % self.stride:
            return
        if len(state) == 1 and not ys and type(state[0]) is np.ndarray:
            self.n_leaves = 1
            self.digests.append(short_digest(state[0]))
        else:
            found = digests([*state, *ys])
            self.n_leaves = len(found)
            self.digests.extend(found)
        if len(self.digests) > self.most * self.n_leaves:
            n, self.stride = self.n_leaves, 2 * self.stride
            kept = array("Q")
            for at in range(n, len(self.digests) - n + 1, 2 * n):
                kept.extend(self.digests[at : at + n])
            self.digests = kept

    def _compare(self, wanted: "array[int]", step: int, leaves: list[Any], n_state: int) -> None:
        if (found := digests(leaves)) == wanted:
            return
        wrong = [k for k, (a, b) in enumerate(zip(found, wanted, strict=True)) if a != b]
        carry, ys = [str(k) for k in wrong if k < n_state], [str(k - n_state) for k in wrong if k >= n_state]
        raise self.error(
            f"re-running the loop reached step {step + 1} with other bytes than the first run, in leaf "
            f"{', '.join(carry)} of the carry"
            if carry
            else f"re-running the loop, step {step} gave other bytes than in the first run, in leaf {', '.join(ys)} of "
            "its output",
            in_another_order(leaves, wanted, wrong),
        )


def digests(leaves: list[Any]) -> "array[int]":
    """The digests of the values of leaves, under whatever traces."""
    return array("Q", [short_digest(plain_value(leaf) if isinstance(leaf, Handle) else leaf) for leaf in leaves])


def record_digest(record: Any) -> int:
    """A hash of what a record is and holds: the operation, what it was applied to, the values that its rule will read;
    of a loop, what its step 0 read."""
    found = [short_digest(x) if isinstance(x, np.ndarray) else repr(x) for x in _told(record)]
    if FORMS[record[0]].steps and hasattr(record[2], "chain"):
        found += record[2].chain.verifier.first_tape
    return hash(tuple(found))


def first_difference(records: list[Any], others: list[Any]) -> str:
    """The first operation that read other values in one of two runs of a step than in the other, and by how much; empty
    where none did."""
    for record, other in zip(filter(None, records), filter(None, others), strict=False):
        for x, y in zip(_told(record), _told(other), strict=False):
            if not isinstance(x, str) and np.shape(x) == np.shape(y) and short_digest(x) != short_digest(y):
                with np.errstate(all="ignore"):
                    size = float(np.max(np.abs(np.subtract(x, y))))
                what = f"{FORMS[record[0]].name} at {site_text(record[-1])}"
                return f"{what} reads other values each time that the step is run, by up to {size:.3g}"
    return ""


def _told(record: Any) -> Iterator[Any]:
    """What a record is told by: its numbers, texts and arrays."""
    for value in record[:-1]:
        for part in value if type(value) is tuple else (value,):
            plain = plain_value(part)
            if isinstance(plain, np.ndarray | int | float | complex | str | np.generic):
                yield plain


def trial(chain: Any, k: int) -> Any:
    """All that step ``k`` does from the live state, by digests, or the kind of error that it raises."""
    try:
        return _tried(chain, k)[1]
    except BaseException as error:  # noqa: BLE001 - what a step does from another state may be anything
        return type(error)


def _tried(chain: Any, k: int) -> tuple[list[Any], list[int]]:
    """The records of step ``k`` from the live state, and the digests of these and of the state after it. The random
    states are put back. No stage records it: that tells of what the reverse reads alone."""
    steps, after, n_forward = chain.steps, chain.randomness.save(), chain.store.ledger.n_forward
    staging, steps.staging, steps.verifier = steps.staging, None, Verifier(steps.name, False, False)
    try:
        step, state = steps.recorded(k, chain.state)
        found = [*(record_digest(record) for record in step.tape.records if record), *digests(state)]
        step.release()
        return step.tape.records, found
    finally:
        steps.staging, steps.verifier, chain.store.ledger.n_forward = staging, chain.verifier, n_forward
        chain.randomness.restore(after)


def say_unrepeated(error: ReplayError, chain: Any) -> None:
    """Say in the error what two runs of step 0 from the live state do not do alike, if the step can be run."""
    if chain.steps.collective:  # others would have to take part
        return
    with suppress(Exception):  # another error is on its way, to which this adds
        if why := first_difference(_tried(chain, 0)[0], _tried(chain, 0)[0]):
            say_where(error, why)
