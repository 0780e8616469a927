"""``name``: marks an intermediate value, so that a reverse pass can hand out its cotangent, its adjoint field."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np
from attrs import define, field

from pullback.memory.in_force import advancing, innermost
from pullback.recording.crossing import present
from pullback.recording.handles import FROZEN, SHARED, Handle, activate, freeze, kind_of, make, resolve, tape_of
from pullback.recording.tape import (
    CAPTURED,
    DEFERRED,
    FORWARD,
    PAUSED,
    RECORDING,
    REPLAYABLE,
    Marks,
    Tape,
    marks_of,
)
from pullback.rules.cotangent_sums import send
from pullback.rules.declaration import Primitive
from pullback.rules.forms import Form, new_form
from pullback.words.call_sites import site_here
from pullback.words.errors import StructureError
from pullback.words.specs import ArraySpec, carries_derivative, spec_of
from pullback.words.structures import map_leaves


def name(u: Any, tag: str, *, step: Any = None) -> Any:
    """``u``, whose cotangent a reverse pass hands out by ``tag``: ``u = pb.name(u, "u")``. Its values and bits
    are those of ``u``.

    Use what is returned: what is computed from ``u`` before the mark is not counted. Inside a trace a plain floating
    array becomes a traced one. Outside of traces, and in forward mode, ``u`` is returned as it is.

    Parameters
    ----------
    u
        A tracer or an array; a structure is marked leaf by leaf.
    tag
        After ``pull(ct)``, ``pull.adjoint(tag)`` is the derivative of the output by the marked value.
        ``on_adjoint={tag: fn}``, given to ``pull`` or to ``grad``, calls ``fn(step, ct)`` for each value so marked, the
        last first, and stores nothing; ``ct`` is not to be written. Values on which the output does not depend are
        passed over. The tag is a label, too, by which ``pullback.Keep(tag)`` keeps the value, and ``pullback.saved``
        shows it. Under a policy steps of ``pb.steps`` share what re-executes them where they do the same, labels
        or not: a label of each step's own (``f"step {k}"``) takes about 0.4 kB a step, one label for all takes none;
        which step it was, ``step`` tells. Steps that mark values are staged as others are; where somebody hears of
        their cotangents each is swept.
    step
        The number that ``fn`` is told. Default: in a loop function the number that its body gets (counted from 0 in
        ``scan`` and ``while_loop``; a tuple, the outermost loop first, in nested ones), and elsewhere, ``pb.steps``
        included, how many values were marked so before.

    Returns
    -------
    The same structure.

    Raises
    ------
    StructureError
        For a tag that is no text.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> out, pull = pb.vjp(lambda x: np.sum(pb.name(2 * x, "twice") ** 2), np.array([1.0, 2.0]))
    >>> _ = pull(1.0)
    >>> pull.adjoint("twice")
    array([4., 8.])
    """
    if not isinstance(tag, str):
        raise StructureError(f"name(u, tag) takes a string as the tag, got {type(tag).__name__}")
    return _marked(u, tag, step) if isinstance(u, Handle) else map_leaves(lambda leaf: _marked(leaf, tag, step), u)


def _marked(leaf: Any, tag: str, step: Any) -> Any:
    if not carries_derivative(leaf):
        return leaf
    shadow = _followed_by(leaf._tape) if isinstance(leaf, Handle) else None
    if shadow is not None:
        if shadow.mark(leaf, (tag, step), _record):
            if not shadow.marks:
                _told_outside(leaf._tape, tag)
            return leaf
        shadow.why = shadow.why or f"name marks a view, or what depends on no input, as {tag!r}"
    if isinstance(leaf, Handle):
        tape: Tape | None = tape_of((leaf,), "name")
    elif (left := advancing()) is not None:  # a step that only advances marks nothing, in no trace; its tag is known
        marks_of(left).in_loops.add(tag)
        _told_outside(left, tag)
        return leaf
    else:
        tape = innermost()
    if tape is None or tape.mode == PAUSED:
        return leaf
    if isinstance(leaf, Handle):
        leaf = resolve(present(leaf, tape))
        if isinstance(leaf._value, Handle):
            leaf._value = _marked(
                freeze(leaf._value), tag, step
            )  # for the trace outside it is an intermediate value, too
    if tape.mode == FORWARD:
        return tape.tangents.mark(leaf, tag)
    if tape.mode not in (RECORDING, REPLAYABLE):
        return leaf
    if not isinstance(leaf, Handle):
        kind = kind_of(tape, leaf)
        leaf = make(tape.kinds.buffer if kind is tape.kinds.tracer else kind, leaf, None, tape, SHARED)
    stands = tape.stands if leaf._flag == FROZEN and tape.stands else {}
    stood = stands.get(leaf._id)
    _record(leaf, (tag, step))
    if stood is not None:  # a staged function holds the leaf in the place of its caller's handle, which is re-pointed
        activate(stood, leaf._id)
        stands[leaf._id] = stood
    return leaf


def _followed_by(tape: Any) -> Any:
    """The shadow run that is asked of a mark on a handle of this trace; None where there is none."""
    if tape.mode == CAPTURED and tape.inner.mode == DEFERRED and tape.inner.shadow.marks:
        return tape.inner.shadow
    return tape.shadow if tape.mode == DEFERRED else None


def _record(handle: Any, told: tuple[str, Any]) -> None:
    """Append the record of a mark and re-point the handle to it, as a write would: its views derive themselves
    again."""
    tape, (tag, _) = handle._tape, told
    ident = len(tape.records)
    ids = () if handle._id is None else (handle._id,)
    form = PASSED if ids else BEGUN
    record = (form.opcode, *ids, told, ident, site_here())
    marks_of(tape).note(tag, spec_of(handle._value), ident)
    _told_outside(tape, tag)
    if tape.mode == REPLAYABLE:
        tape.governor.before_record(record, (handle, told), (handle._value, told), {})
    tape.records.append(record)
    activate(handle, ident)


def _told_outside(tape: Tape, tag: str) -> None:
    """The traces around know the tags of what is marked in the steps of their loops."""
    outer = tape.enclosing
    while outer is not None:
        marks_of(outer).in_loops.add(tag)
        outer = outer.enclosing


def _pull_named(record: tuple[Any, ...], ct: Any, cts: Any, run: Any) -> None:
    """Tell the cotangent to who asked for it, and pass it on."""
    _tell(record, ct, run)
    _pass_on(record, ct, run)


def _pull_named_of_several(record: tuple[Any, ...], given: Any, runs: Any) -> None:
    """Tell the cotangents of several seeds, in one list, and pass them on."""
    some = next(ct for ct in given if ct is not None)
    _tell(record, [np.zeros_like(some) if ct is None else ct for ct in given], runs[0])
    for ct, run in zip(given, runs, strict=True):
        if ct is not None:
            _pass_on(record, ct, run)


def _pass_on(record: tuple[Any, ...], ct: Any, run: Any) -> None:
    for i in record[1:-3]:
        send(run.cts, i, ct, run)


def _tell(record: tuple[Any, ...], ct: Any, run: Any) -> None:
    (tag, step), ident, _ = record[-3:]
    if run.told is not None:
        run.told(tag, run.step if step is None else step, ident if run.step is None else None, ct)


TOLD: Final = "told"
"""The operand that is the tag and the number of a mark. So a record holds it as it does any plain value, and steps that
differ in nothing else do the same."""


def _form(n_ids: int) -> Form:
    prim = Primitive(name="name", forward=lambda x, told: x, operands=("x", TOLD), view=True, guarded=False)

    def build(opcode: int) -> tuple[Form, Any]:
        ids = tuple(range(n_ids))
        return Form(opcode, prim, ids, 1, (), (TOLD,), exact=True, own=-2, passes=True), _pull_named

    return new_form(build, together=_pull_named_of_several)


PASSED = _form(1)
"""A mark on a value that depends on the inputs."""
BEGUN = _form(0)
"""A mark on a value that does not: from here on it counts as one that does."""


@define(eq=False)
class Adjoints:
    """What one reverse pass tells of marked values: the tags in ``on_adjoint`` to their functions, the others it keeps,
    where it keeps any.

    ``given`` turns a cotangent into what the user gets. Of several seeds, ``several`` of them, a list with one for each
    is told.
    """

    marks: Marks
    on_adjoint: Mapping[str, Callable[[Any, Any], Any]]
    keeps: bool
    given: Callable[[Any], Any]
    several: int | None = None
    kept: dict[tuple[str, int], Any] = field(factory=dict)

    def __call__(self, tag: str, step: Any, ident: int | None, ct: Any) -> None:
        """A cotangent is complete: of the value with this id, None in a loop function."""
        tell = self.on_adjoint.get(tag)
        place = None if ident is None else bisect_left(self.marks.places[tag], ident)
        if tell is not None:
            told = self.given(_shown(ct)) if self.several is None else [self.given(_shown(each)) for each in ct]
            tell(place if step is None else step, told)
        elif self.keeps and place is not None:
            self.kept[tag, place] = ct

    def of(self, tag: str) -> Any:
        """The cotangent of the one value so marked, or a list in forward order; zeros where the output does not
        depend on it."""
        require_marked((tag,), self.marks)
        if tag in self.on_adjoint or tag in self.marks.in_loops:
            why = "went to on_adjoint" if tag in self.on_adjoint else "belong to the steps of a loop and are not stored"
            raise StructureError(
                f"the cotangents of {tag!r} {why}; pull(ct, on_adjoint={{{tag!r}: fn}}) calls fn(step, ct), "
                "which may keep what it needs"
            )
        found = [self._leaf(tag, place, spec) for place, spec in enumerate(self.marks.specs[tag])]
        return found[0] if len(found) == 1 else found

    def _leaf(self, tag: str, place: int, spec: ArraySpec) -> Any:
        kept = self.kept.get((tag, place))
        if self.several is None:
            return self._own(kept, spec)
        return [self._own(ct, spec) for ct in kept or [None] * self.several]

    def _own(self, ct: Any, spec: ArraySpec) -> Any:
        """A cotangent in memory of its own, zeros where there is none."""
        if ct is None:
            ct = np.zeros(spec.shape, spec.dtype)
        return self.given(
            freeze(ct) if isinstance(ct, Handle) else np.array(ct)[()] if not spec.shape else ct.copy(order="K")
        )


def adjoints(
    tape: Tape, on_adjoint: Mapping[str, Any] | None, *, keeps: bool, given: Callable[[Any], Any], several: int | None
) -> Adjoints:
    """Who is to be told of the marked values of a tape. Raises :class:`StructureError` for an unknown tag."""
    marks = tape.marks or Marks()
    require_marked(on_adjoint or (), marks)
    return Adjoints(marks, on_adjoint or {}, keeps, given, several)


def require_marked(tags: Iterable[str], marks: Marks) -> None:
    """Raise :class:`StructureError` for a tag that the program has not marked."""
    known = sorted({*marks.specs, *marks.in_loops})
    for tag in tags:
        if tag not in known:
            others = f"marked are {', '.join(map(repr, known))}" if known else "none is marked at all"
            raise StructureError(
                f"no value is marked as {tag!r}; {others}. Mark it where it is computed, u = pullback.name(u, {tag!r})"
            )


def _shown(ct: Any) -> Any:
    """A cotangent that may be kept and not written: the sweep goes on with it, and leaves an array alone that
    somebody else holds."""
    if isinstance(ct, np.ndarray):
        ct = ct.view()
        ct.flags.writeable = False
    return freeze(ct) if isinstance(ct, Handle) else ct
