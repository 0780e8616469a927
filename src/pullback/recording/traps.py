"""``trap``: the first NaN or infinity that a primitive produces raises, and says which primitive, where, and in which
step.

While a trap is in force no trace takes the fast way (``Tape.mode`` is never ``RECORDING``): every call passes
``recorder.finish``, every write ``writes.write_region``, every pull :class:`WatchedPulls`, and loop bodies run on
tracers even where they are only advanced. Where no trap is in force, nothing of this runs. What is looked at is never
changed, so the gradient has the same bits.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np
from attrs import define, field

from pullback.recording.handles import plain_value
from pullback.recording.tape import Tape
from pullback.rules.forms import FORMS, Form
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import NonFiniteError, PolicyError
from pullback.words.specs import spec_of

FAULTS: Mapping[str, Callable[[Any], Any]] = {"nan": np.isnan, "inf": np.isinf}
WORDS = {"nan": "NaN", "inf": "inf"}
TRAPPED: ContextVar[tuple[Any, ...]] = ContextVar("pullback_trap", default=())
"""What the traps in force in this context look for, and who hears of every cotangent; empty where there is nobody."""


@contextmanager
def trap(*kinds: str) -> Iterator[None]:
    """Within the block the first NaN or infinity that a primitive produces raises :class:`NonFiniteError`.

    In force for the traces opened in the block, under every policy and in loop functions, and for the pulls called in
    it. A primitive *produces* a NaN when its result has one and no operand has; a pull, when a cotangent it sends has
    one and the one it got has none. What arrives in an argument or a constant is not produced. Blocks nest and add up.
    Gradients keep their bits; loop bodies run on tracers, which takes time.

    Parameters
    ----------
    *kinds
        ``"nan"``, ``"inf"``, or both.

    Returns
    -------
    A context manager.

    Raises
    ------
    NonFiniteError
        At the operation, with its line.
    PolicyError
        For any other word.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> with np.errstate(invalid="ignore"), pb.trap("nan"):
    ...     pb.grad(lambda x: np.log(x - 1) * 0.0)(0.5)
    Traceback (most recent call last):
    ...
    pullback.NonFiniteError: ...
    """
    wrong = [kind for kind in kinds if kind not in FAULTS]
    if wrong or not kinds:
        given = ", ".join(map(repr, wrong)) or "nothing"
        raise PolicyError(f"trap takes 'nan', 'inf' or both, got {given}; write trap('nan') or trap('nan', 'inf')")
    around = TRAPPED.get()
    token = TRAPPED.set((*(kind for kind in FAULTS if kind in kinds or kind in around), *_hearers(around)))
    try:
        yield
    finally:
        TRAPPED.reset(token)


class Hearer(Protocol):
    """Who hears of the cotangents of every sweep, also of those within it: of the steps of a loop function."""

    def begins(self, tape: Tape, step: Any) -> None:
        """A sweep of records begins; ``step`` is the number of the step of a loop function, a tuple of them in nested
        ones, None where it is none."""

    def hears(self, ident: int, ct: Any) -> None:
        """The cotangent of a record is complete; it is not to be kept, since the pull that follows may write to it."""

    def ends(self) -> None:
        """The sweep that began last is over."""


@contextmanager
def hearing(hearer: Hearer) -> Iterator[None]:
    """Within the block ``hearer`` hears of the cotangents of every record that is pulled, and of every input. As with a
    trap, nothing goes the fast way, and the bits are the same."""
    token = TRAPPED.set((*TRAPPED.get(), hearer))
    try:
        yield
    finally:
        TRAPPED.reset(token)


def _hearers(watched: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(each for each in watched if not isinstance(each, str))


def _kinds(watched: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(each for each in watched if isinstance(each, str))


def sentinel(place: str = "", around: "Sentinel | None" = None) -> "Sentinel":
    """What looks at the values of a trace that begins while a trap is in force. ``place`` says which step it is."""
    outer = around.where_now() if around is not None else ""
    return Sentinel(_kinds(TRAPPED.get()), ", ".join(filter(None, (outer, place))))


def unsound(value: Any, kind: str) -> Any:
    """Which elements are NaN (or infinite); None where none is, and for what is no floating or complex number."""
    plain = plain_value(value)
    if not isinstance(plain, np.ndarray | np.generic | float | complex) or np.asarray(plain).dtype.kind not in "fc":
        return None
    found = FAULTS[kind](plain)
    return found if np.any(found) else None


def any_unsound(values: Iterable[Any], kind: str) -> bool:
    """Whether any of the values has such an element; structures are looked into one level deep."""
    parts = (part for value in values for part in (value if isinstance(value, tuple | list) else (value,)))
    return any(unsound(part, kind) is not None for part in parts)


def fresh(after: Any, before: Iterable[Any], kind: str, *, elementwise: bool) -> Any:
    """The unsound elements of ``after`` that ``before`` does not account for: element by element where the operation is
    so, else only where ``before`` is sound everywhere."""
    found = unsound(after, kind)
    if found is None:
        return None
    given = [mask for mask in (unsound(value, kind) for value in before) if mask is not None]
    if not elementwise:
        return None if given else found
    for mask in given:
        found = found & ~np.broadcast_to(mask, np.shape(found))
    return found if np.any(found) else None


@define(eq=False)
class Sentinel:
    """Looks at what the primitives of one trace give. ``place`` is the step that the trace is, of a loop function."""

    kinds: tuple[str, ...]
    place: str = ""
    only: Any = None
    """The mask of a ufunc's ``where=``, while the ufunc runs on all elements."""
    cuts: list[int] = field(factory=list)
    """The records at which the steps of ``pullback.steps`` begin, and where each loop of them ends."""
    steps: list[int | None] = field(factory=list)
    """The number of the step that begins there; None after a loop."""

    # Where the program is.
    def numbered(self, items: Iterable[Any], tape: Tape) -> Iterator[Any]:
        """The items of ``pullback.steps``, counted; steps inside steps belong to the outermost."""
        if self.steps and self.steps[-1] is not None:
            for item in items:  # no ``yield from``, which would close a generator of the user's that is left by break
                yield item
            return
        try:
            for k, item in enumerate(items):
                self._begin(tape, k)
                yield item
        finally:
            self._begin(tape, None)

    def _begin(self, tape: Tape, step: int | None) -> None:
        self.cuts.append(len(tape.records))
        self.steps.append(step)

    def where(self, ident: int) -> str:
        """The step in which a record was made: ``step 4 of scan``; empty outside all steps."""
        k = bisect_right(self.cuts, ident) - 1
        step = self.steps[k] if k >= 0 else None
        return ", ".join(filter(None, (self.place, "" if step is None else f"step {step} of pullback.steps")))

    def where_now(self) -> str:
        """The step under way."""
        return self.where(self.cuts[-1] if self.cuts else 0)

    # The forward pass.
    def look(self, prim: Any, values: tuple[Any, ...], out: Any, params: Mapping[str, Any]) -> None:
        """Raise where the result of a call is unsound and its operands are not."""
        outs = tuple(out) if prim.outputs else (out,)
        for kind in self.kinds:
            for place, result in enumerate(outs):
                found = None
                if prim.elementwise or not any_unsound((*values, *params.values()), kind):
                    found = fresh(result, values, kind, elementwise=prim.elementwise)
                if found is not None and self.only is not None:
                    found = found & np.broadcast_to(self.only, np.shape(found))
                if found is None or not np.any(found):
                    continue
                which = f"output {prim.outputs[place]!r}" if prim.outputs else "its result"
                given = [
                    described(prim.name_of(k), value, found if prim.elementwise else None)
                    for k, value in enumerate(values)
                ]
                self._refuse(prim.name.removeprefix("operator_"), which, kind, found, given)

    def wrote(self, name: str, before: list[Any], root: Any, value: Any) -> None:
        """Raise where a write has left unsound elements that were in neither array; ``before`` is :meth:`seen` of
        the array."""
        for kind, was in zip(self.kinds, before, strict=True):
            found = unsound(root, kind)
            if found is None or unsound(value, kind) is not None:
                continue
            found = found if was is None else found & ~was
            if np.any(found):
                self._refuse(name, "the array", kind, found, [described("the value", value, None)])

    def seen(self, value: Any) -> list[Any]:
        """The unsound elements of a value, for each kind."""
        return [unsound(value, kind) for kind in self.kinds]

    def _refuse(self, name: str, which: str, kind: str, found: Any, given: list[str]) -> None:
        step = self.where_now()
        raise NonFiniteError(
            f"forward: {name}, called at {site_text(site_here())}{f' in {step}' if step else ''}, produced "
            f"{counted(found, kind, which)}, from {', '.join(given)}; keep its operands where the result is finite, as "
            "in np.where(ok, x, 1.0) before the call"
        )


def counted(found: Any, kind: str, which: str) -> str:
    """How many elements, of what shape, and the first:
    ``2 NaN among the 6 elements of its result, shape (2, 3), the first at (0, 1)``."""
    shape = np.shape(found)
    if not shape:
        return f"{WORDS[kind]} as {which}, shape ()"
    count = int(np.count_nonzero(found))
    return (
        f"{count} {WORDS[kind]} among the {np.size(found)} elements of {which}, shape {shape}, the first at index "
        f"{first(found)}"
    )


def first(found: Any) -> tuple[int, ...]:
    """The index of the first element that is true."""
    return tuple(map(int, np.unravel_index(int(np.argmax(found)), np.shape(found))))


def described(name: str, value: Any, found: Any) -> str:
    """An operand by name and spec, with its element at the first fault where it is given:
    ``x (float64[3], there -1.0)``."""
    plain = plain_value(value)
    if not isinstance(plain, np.ndarray | np.generic | int | float | complex):
        return f"{name} ({type(plain).__name__})"
    there = (
        ""
        if found is None
        else f", there {np.broadcast_to(plain, np.shape(found))[first(found)] if np.shape(found) else plain}"
    )
    return f"{name} ({spec_of(plain) if np.ndim(plain) else np.asarray(plain).dtype}{there})"


class WatchedPulls:
    """The table of pulls while a trap is in force: each is run, and the cotangents it has sent are looked at. Hearers
    are told of the cotangent that comes."""

    def __init__(self, tape: Tape, one: Any, pulls: Any) -> None:
        watched = TRAPPED.get()
        self._kinds, self._hearers = _kinds(watched), _hearers(watched)
        self._tape, self._place, self._pulls = tape, one.place, pulls
        self._idents = {id(record): k for k, record in enumerate(tape.records)} if self._hearers else {}
        for hearer in self._hearers:
            hearer.begins(tape, one.step)

    def ends(self, start: int, cts: list[Any]) -> None:
        """The sweep is over: what enters has its cotangents where it went to the first record."""
        for hearer in self._hearers:
            for k in range(start if start <= self._tape.n_inputs else 0):
                hearer.hears(k, cts[k])
            hearer.ends()

    def __getitem__(self, opcode: int) -> Callable[..., None]:
        return self._pull

    def _pull(self, record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
        for hearer in self._hearers:
            hearer.hears(self._idents[id(record)], ct)
        form = FORMS[record[0]]
        ids = dict.fromkeys(form.ids(record))
        got = [_parts_unsound(ct, kind) for kind in self._kinds]  # now: the pull may write into the cotangent
        had = [{i: unsound(cts[i], kind) for i in ids} for kind in self._kinds]
        self._pulls[record[0]](record, ct, cts, sweep)
        for kind, given, before in zip(self._kinds, got, had, strict=True):
            for place, i in enumerate(form.ids(record)):
                found = unsound(cts[i], kind)
                if found is not None and before[i] is not None:
                    found = found & ~before[i]
                if (
                    found is not None
                    and given is not None
                    and not (form.primitive.elementwise and np.shape(given) == np.shape(found))
                ):
                    continue  # what arrived unsound is passed on
                found = found if given is None or found is None else found & ~given
                if found is not None and np.any(found):
                    self._refuse(record, form, place, kind, found)

    def _refuse(self, record: tuple[Any, ...], form: Form, place: int, kind: str, found: Any) -> None:
        ident = next(k for k, other in enumerate(self._tape.records) if other is record)
        steps = self._tape.trap.where(ident) if self._tape.trap is not None else ""
        step = steps or self._place
        operand = form.primitive.name_of(form.active[place]) if form.execute is None and not form.wide else "array"
        raise NonFiniteError(
            f"reverse: the pull of {form.name}, called at {site_text(record[-1])}{f' in {step}' if step else ''}, "
            f"produced {counted(found, kind, f'the cotangent of operand {operand!r}')}, from a cotangent that has "
            "none; there the derivative is not finite: keep the operand away, as in np.where(ok, x, 1.0) before the "
            "call"
        )


def _parts_unsound(ct: Any, kind: str) -> Any:
    """As :func:`unsound`; for the cotangents of several outputs, whether any has such an element."""
    if isinstance(ct, list | tuple):
        return np.True_ if any_unsound(ct, kind) else None
    return unsound(ct, kind)
