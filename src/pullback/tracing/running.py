"""Opening and closing a trace: inputs become handles, the user's function runs, outputs become values again."""

from collections.abc import Callable, Sequence
from sys import _getframe
from typing import Any, NamedTuple

import numpy as np
from attrs import define, frozen

from pullback.memory.in_force import InForce, Tracing, agreed_at_end, agreement_in_force, next_level
from pullback.memory.reverse_sweep import Releasing
from pullback.recording.copies import overlaps_itself
from pullback.recording.crossing import entered
from pullback.recording.handles import SHARED, Handle, kind_of, make, resolve, tape_of
from pullback.recording.recorder import INPUT
from pullback.recording.refusals import advice
from pullback.recording.tape import CAPTURED, CLOSED, REPLAYABLE, Tape
from pullback.recording.traps import TRAPPED, sentinel
from pullback.tracing.results_into_operands import objects_held
from pullback.tracing.tracer import KINDS
from pullback.words.call_sites import find_site, site_text, warn_user
from pullback.words.digests import digest
from pullback.words.errors import (
    ConstantChangedError,
    NotDifferentiableError,
    PullbackError,
    RefusalWarning,
    StructureError,
    say_where,
)
from pullback.words.foreign_operands import ORDINARY, foreign_argument
from pullback.words.specs import ArraySpec, carries_derivative, native, shared_spec, spec_of
from pullback.words.structures import flatten, map_leaves, paths, unflatten


@frozen
class Input:
    """One differentiated leaf of the arguments: where it is, what it is, and a digest of the user's array."""

    label: str
    spec: ArraySpec
    leaf: Any
    before: bytes | None


@define(eq=False)
class Traced:
    """A finished trace: its tape, its inputs, and what the function returned."""

    tape: Tape
    inputs: list[Input]
    places: list[list[int | None]]
    """The input number of each leaf of each differentiated argument; None for a leaf that carries no derivative."""
    definitions: list[Any]
    out: Any
    governor: Any
    """What governs the records under a policy that may drop values; else None."""

    def agrees(self, *, always: bool = True) -> Any:
        """The block of a reverse pass, at whose end ranks learn whether all went well; unless ``always``, of errors
        alone."""
        return agreed_at_end(self.tape, self.tape.agreement, always=always)

    @property
    def site(self) -> int:
        """The call site that asked for the derivative."""
        # The records of inputs are never dropped.
        return int(self.tape.records[0][-1]) if self.inputs else 0  # type: ignore[index]

    @property
    def called_at(self) -> str:
        """The user's line that asked for the derivative."""
        return site_text(self.site)

    def require_unchanged(self) -> None:
        """Raise :class:`ConstantChangedError` where the user changed an argument since the forward pass read it."""
        for given in self.inputs:
            if given.before is not None and digest(given.leaf) != given.before:
                raise ConstantChangedError(
                    f"the array given as {given.label} ({given.spec}) was changed between the forward pass (at "
                    f"{self.called_at}) and the reverse pass, which reads it; differentiate at a copy, f(x.copy()), or "
                    "change it afterwards"
                )

    def structured(self, leaves: Sequence[Any]) -> list[Any]:
        """One structure per differentiated argument, from the values of all inputs; None where a leaf carries no
        derivative."""
        return [
            unflatten(definition, [None if place is None else leaves[place] for place in places])
            for definition, places in zip(self.definitions, self.places, strict=True)
        ]


Called = tuple[Callable[..., Any], tuple[Any, ...], Any]
"""The user's function, its arguments by position and those by keyword."""


class Purpose(NamedTuple):
    """What a trace is made for, as the transform knows that asks for it."""

    allow_int: bool = False
    """Whether an integer or boolean argument is let in."""
    repeatable: bool = False
    """Whether it may be reversed more than once."""
    joins: bool = False
    """Whether a sweep alone looks at the records, so that a loop of adopted code may be one."""
    unwritten: bool = False
    """Whether the function is proved to write to none of the arguments, so that none is compared afterwards."""


def run_traced(
    call: Called, argnums: Sequence[int], purpose: Purpose, *, policy: Any, ledger: Any, governor: Any = None
) -> Traced:
    """Call the function with tracers for the leaves of the arguments at ``argnums``; the trace has ended when this
    returns.

    ``governor`` governs the records under a policy that may drop values. Raises :class:`NotDifferentiableError` for an
    integer or boolean argument that is not let in.
    """
    f, args, kwargs = call
    tape = Tape(next_level(), KINDS)
    tape.ledger, tape.repeatable, tape.agreement = ledger, purpose.repeatable, agreement_in_force()
    tape.joins = purpose.joins
    tape.objects = objects_held() if governor is None else 0
    if governor is not None:
        tape.mode = REPLAYABLE
        tape.governor = governor
        tape.trap = sentinel() if TRAPPED.get() else None
        governor.open(tape)
    inputs: list[Input] = []
    places, definitions, traced_args = [], [], list(args)
    for number in argnums:
        leaves, definition = flatten(args[number])
        handles, where = _open_leaves(
            tape, leaves, f"argument {number}", args[number], inputs, unwritten=purpose.unwritten
        )
        if leaves and not purpose.allow_int and all(place is None for place in where):
            raise NotDifferentiableError(_integer_argument(number, leaves[0], f))
        places.append(where)
        definitions.append(definition)
        traced_args[number] = unflatten(definition, handles)
    tape.n_inputs = len(tape.records)
    first = inputs[0].leaf if inputs else None
    if len(inputs) > 1 or len(args) > 1 or kwargs or (type(first) is np.ndarray and not first.flags.forc):
        others = {f"argument {k}": arg for k, arg in enumerate(args) if k not in argnums} | kwargs
        rest = [(label, leaf) for label in others for leaf in flatten(others[label])[0]]
        tape.overlapping = overlapping([(given.label, given.leaf) for given in inputs], rest)
    try:
        with Releasing(tape):
            try:
                with agreed_at_end(tape), Tracing(tape), InForce(policy):
                    out = run_function(f, traced_args, kwargs, tape)
            finally:
                _end(tape)
    finally:
        governor = released_governor(tape)
    return Traced(tape, inputs, places, definitions, out, governor)


def _end(tape: Tape) -> None:
    if tape.mode == CAPTURED and tape.inner.shadow is not None:  # type: ignore[union-attr]
        tape.inner.shadow.over()  # type: ignore[union-attr]  # an error came in a marked step that was followed
    tape.close()


def released_governor(tape: Tape) -> Any:
    """What governs the records of a trace that has ended, which a ``checkpoint`` may have brought; the trace lets go of
    it, or the two would keep each other alive."""
    governor: Any = tape.governor
    del tape.governor
    return governor


def run_function(f: Callable[..., Any], args: list[Any], kwargs: Any, tape: Tape) -> Any:
    """What ``f`` returns, views derived; a refusal that NumPy has wrapped (a tracer written into a plain array) is
    raised itself, and what Python, NumPy or SciPy refuse by themselves is told with a rewrite.

    Raises :class:`NotDifferentiableError` where ``f`` returns None, as a function without a ``return`` does.
    """
    try:
        out = f(*args, **kwargs)
        if tape.mode == CAPTURED:  # the code after the last mark is followed still
            tape.inner.shadow.surrender()  # type: ignore[union-attr]  # then there is one
        out = _finished(out, tape) if isinstance(out, Handle) else map_leaves(lambda x: _finished(x, tape), out)
        if tape.governor is not None:
            tape.governor.finish()
    except Exception as error:
        tell(f, error, tape)
        raise
    if tape.refused:
        warn_of_refused(tape)
    return something(f, out)


def _finished(leaf: Any, tape: Tape) -> Any:
    """A leaf of what is returned, views derived. Raises :class:`TracerError` for a tracer whose trace has ended, on
    which nothing here depends."""
    if not isinstance(leaf, Handle):
        return leaf
    if leaf._tape is tape:
        return resolve(leaf)
    if leaf._tape.mode == CLOSED:
        tape_of((leaf,), "what is returned")
    return leaf


def something(f: Any, out: Any) -> Any:
    """What ``f`` has returned. Raises :class:`NotDifferentiableError` for None."""
    if out is None:
        raise NotDifferentiableError(
            f"{getattr(f, '__name__', f)} returned None, so there is nothing to differentiate; is its return missing?"
        )
    return out


def tell(f: Any, error: Exception, tape: Tape) -> None:
    """Tell a rewrite with what ``f`` has raised, and is being handled, and what its trace had refused before; a refusal
    that NumPy has wrapped is raised itself."""
    if not callable(f):
        raise StructureError(
            f"what is to be differentiated is of type {type(f).__name__}; give the function itself: grad(f)(x), "
            "not grad(f(x))"
        ) from None
    refused = error.__cause__ or error.__context__
    if isinstance(refused, PullbackError) and type(error) in (ValueError, TypeError):
        raise refused.with_traceback(error.__traceback__) from None
    if isinstance(error, PullbackError):
        return
    text = advice(error, _innermost(error))
    if text is not None:
        say_where(error, text)
    if tape.refused:
        say_where(error, f"before that the program caught an error of pullback, and went on: {tape.refused}")
        tape.refused = ""


def warn_of_refused(tape: Tape) -> None:
    """Warn that a conversion was refused in a trace, and that the program caught the error."""
    said, tape.refused = tape.refused, ""
    warn_user(f"the program caught an error of pullback, and went on: {said}", RefusalWarning)


def _innermost(error: Exception) -> Any:
    """The frame that raised an error."""
    where = error.__traceback__
    assert where is not None  # it has been raised
    while where.tb_next is not None and not where.tb_next.tb_frame.f_code.co_filename.endswith(".pyx"):
        where = where.tb_next
    return where.tb_frame


def _open_leaves(
    tape: Tape, leaves: list[Any], label: str, argument: Any, inputs: list[Input], *, unwritten: bool
) -> tuple[list[Any], list[int | None]]:
    """Handles for the leaves that carry derivatives, the others as they are, and each leaf's input number."""
    handles: list[Any] = []
    where: list[int | None] = []
    labels: list[str] | None = None
    for k, leaf in enumerate(leaves):
        foreign = None if type(leaf) in ORDINARY or isinstance(leaf, Handle) else foreign_argument(leaf)
        if foreign is not None:
            name = label + paths(argument)[k] if len(leaves) > 1 else label
            raise NotDifferentiableError(f"{name} of type {foreign}")
        if not carries_derivative(leaf):
            handles.append(leaf)
            where.append(None)
            continue
        if len(leaves) > 1 and labels is None:
            labels = [label + path for path in paths(argument)]
        before = digest(leaf) if isinstance(leaf, np.ndarray) and not unwritten else None
        name = labels[k] if labels else label
        try:
            handle = open_input(tape, leaf)
        except NotDifferentiableError as error:
            raise NotDifferentiableError(f"{name}: {error.args[0]}") from None
        where.append(len(inputs))
        handles.append(handle)
        handle._spec = shared_spec(handle._value)
        inputs.append(Input(name, handle._spec or spec_of(handle._value), leaf, before))
    return handles, where


def overlapping(inputs: Sequence[tuple[str, Any]], others: Sequence[tuple[str, Any]] = ()) -> dict[Any, str]:
    """The inputs that share memory with another input or another argument, by number, to the words for both; and so the
    arrays of these other arguments, by ``("array", id)``.

    NumPy would see a write to one in the other; two handles would not.
    """
    arrays = [(label, leaf) for label, leaf in (*inputs, *others) if isinstance(leaf, np.ndarray)]
    found: dict[Any, str] = {
        k: f"elements of {label}"
        for k, (label, leaf) in enumerate(inputs)
        if type(leaf) is np.ndarray and not leaf.flags.forc and overlaps_itself(leaf)
    }
    for k, (label, leaf) in enumerate(inputs):
        for other, array in arrays if isinstance(leaf, np.ndarray) else ():
            if other != label and np.may_share_memory(leaf, array) and np.shares_memory(leaf, array):
                found[k] = found["array", id(array)] = f"{label} and {other}"
    return found


def open_input(tape: Tape, leaf: Any) -> Any:
    """A handle for a value that enters a trace."""
    ident = len(tape.records)
    tape.records.append((INPUT.opcode, find_site(tape, _getframe(1))))
    if type(leaf) is not float:
        if type(leaf) is not np.ndarray and isinstance(leaf, Handle | np.ndarray):
            leaf = entered(leaf, tape)
        leaf = native(leaf)
    handle = make(kind_of(tape, leaf), leaf, ident, tape, SHARED)
    if tape.mode == REPLAYABLE:
        tape.governor.watch(handle)
    return handle


def _integer_argument(number: int, leaf: Any, f: Any) -> str:
    kind = getattr(leaf, "dtype", type(leaf).__name__)
    which = f"argument {number} of {getattr(f, '__name__', f)}"
    if not hasattr(leaf, "dtype") and not isinstance(leaf, int):
        return f"{which} has type {kind}, which carries no derivative; pass a float, or choose another argnums"
    if np.ndim(leaf) == 0:
        return f"{which} has dtype {kind}, which carries no derivative; pass {leaf!r} as a float"
    remedy = "convert it with .astype(float), choose another argnums, or pass allow_int=True to get None"
    return f"{which} has dtype {kind}, which carries no derivative; {remedy}"


def lowered(leaf: Any, tape: Tape) -> Any:
    """A handle of the ended trace as the value it stood for, owning its memory; other leaves as they are."""
    if not isinstance(leaf, Handle) or leaf._tape is not tape:
        return leaf
    plain = leaf._value
    return plain.copy(order="K") if isinstance(plain, np.ndarray) else plain
