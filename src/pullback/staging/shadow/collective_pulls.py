"""The pull of a call that meets calls of others, as one statement of a reverse function.

Its rules make such calls themselves, so while functions are compared none is tried: each gives drawn cotangents of the
kinds that it will give, the same for all functions, and what it is handed has to be the same, in the same order.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np
from attrs import define, field

from pullback.memory.reverse_sweep import Sweep, unreached
from pullback.rules.cotangent_sums import send
from pullback.rules.forms import FORMS, PULLS, Form, special_form
from pullback.rules.nan_masking import MASKED_PULLS
from pullback.words.digests import digest

_TOLD: Final[ContextVar[list[Any] | None]] = ContextVar("pullback_told", default=None)
"""What pulls are handed that are tried; None where they are made."""


class UnlikeError(Exception):
    """Functions that are compared send different things."""


@define(eq=False)
class ComparedPull:
    """Functions that pull the same back are compared: of each what it hands to such pulls."""

    first: list[Any] | None = field(default=None, init=False)
    """What the first of them has handed on."""

    @contextmanager
    def run(self) -> Iterator[None]:
        """The block in which one of them runs: nothing is sent there. Raises :class:`UnlikeError` where it hands
        on something else than the first, or in another order."""
        told: list[Any] = []
        token = _TOLD.set(told)
        try:
            yield
        finally:
            _TOLD.reset(token)
        if self.first is None:
            self.first = told
        elif told != self.first:
            raise UnlikeError("what the reverse pass sends: other bytes than were recorded")


class CollectivePull:
    """The pull of one record: from its cotangent, or None, and the values that it holds, the cotangents of its
    operands, each in an array of its own."""

    __pullback_ordered__ = True  # its calls are made in their order, once each (``has_effect``)

    def __init__(self, number: int, record: tuple[Any, ...], *, masks: bool) -> None:
        form: Form = FORMS[record[0]]
        self.first = 1 + len(form.active)
        self.number, self.form, self.rest = number, form, record[self.first + len(form.saved) :]
        self.pull = (MASKED_PULLS if masks else PULLS)[form.opcode]
        self.specs = [self.rest[form.first_spec - self.first - len(form.saved) + k] for k in range(len(form.specs))]
        self.__name__ = f"pull_{form.name}"

    def __call__(self, ct: Any, *held: Any) -> tuple[Any, ...]:
        n = len(self.form.active)
        record = (self.form.opcode, *range(n), *held, *self.rest)
        if ct is None:
            ct = unreached(record)
        told = _TOLD.get()
        if told is not None:
            told.append((self.number, *map(digest, (ct, *held))))
            return self._drawn()
        cts: list[Any] = [None] * n
        self.pull(record, ct, cts, Sweep(cts))
        return tuple(_own(g, (ct, *held)) for g in cts)

    def _drawn(self) -> tuple[Any, ...]:
        random = np.random.default_rng(self.number)
        specs = [self.specs[self.form.specs.index(position)] for position in self.form.active]
        if None in specs:
            raise UnlikeError(f"{self.form.name} has an operand that is no array")
        return tuple(draw(random, spec) for spec in specs)


def _own(g: Any, given: tuple[Any, ...]) -> Any:
    """A cotangent that shares memory with nothing that the function was given."""
    shares = isinstance(g, np.ndarray) and any(isinstance(x, np.ndarray) and np.may_share_memory(g, x) for x in given)
    return g.copy() if shares else g


def draw(random: np.random.Generator, spec: Any) -> Any:
    """A drawn cotangent."""
    drawn = np.asarray(random.standard_normal(spec.shape))
    if spec.dtype.kind == "c":
        drawn = drawn + 1j * random.standard_normal(spec.shape)
    return drawn.astype(spec.dtype)[()]


def is_taken_part_in(record: Any) -> bool:
    """Whether a record is such a call."""
    return bool(FORMS[record[0]].primitive.collective)


def tried(number: int, record: Any, *, masks: bool) -> tuple[Any, ...]:
    """What stands in the place of a record of such a call in a sweep that is only tried."""
    return (TRIED.opcode, CollectivePull(number, record, masks=masks), record, record[-1])


def _pull_tried(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    _, pull, original, _ = record
    for ident, g in zip(original[1 : pull.first], pull(ct, *pull.form.saved_values(original)), strict=True):
        send(cts, ident, g, sweep)


TRIED = special_form("tried", _pull_tried, n_ids=0, unreached=lambda record: unreached(record[2]))
