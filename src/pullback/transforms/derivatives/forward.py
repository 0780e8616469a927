"""Forward mode: ``jvp``, which computes tangents along with the values and holds nothing, and ``linearize``, which
records the derivative to apply it again and again."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from threading import RLock
from typing import Any, ClassVar

import numpy as np

from pullback.memory.in_force import (
    Tracing,
    agreed_at_end,
    depth,
    next_level,
    planned,
    saves_all,
    staging_in_force,
    watchers,
)
from pullback.recording.copies import separate
from pullback.recording.crossing import entered, present
from pullback.recording.handles import SHARED, Handle, freeze, kind_of, make, value
from pullback.recording.tape import FORWARD, Tape
from pullback.staging.calls.known_functions import gradient_of, staged_of
from pullback.tracing.running import lowered, overlapping, run_function
from pullback.tracing.tracer import KINDS
from pullback.transforms.derivatives.called_again import tangent_by_caller, tangent_called
from pullback.transforms.derivatives.jacobian_blocks import Leaves, leaves_of
from pullback.transforms.derivatives.pulls import ENOUGH, Pull
from pullback.transforms.derivatives.reverse import split_aux, vjp
from pullback.transforms.derivatives.tangents import Tangent, Tangents
from pullback.travelling.made_functions import made_here
from pullback.words.call_sites import public, site_here, site_text
from pullback.words.errors import NotDifferentiableError, StructureError
from pullback.words.foreign_operands import foreign_argument, plain_array
from pullback.words.specs import ArraySpec, carries_derivative, fits, native, spec_of
from pullback.words.structures import flatten, map_leaves, matched, paths, unflatten

_ROOM = "pullback.staging.pulls.repeated_pushes"
FEW_ALONE = 8
"""Calls of a map with one direction each, after which its derivative is recorded."""
RECORDED_BYTES = 2**24
"""What a pull may hold that is kept beside the record of its derivative."""
_STAYS = (
    "what linearize returns holds the record of one run, which cannot go to another process; send the function and the "
    "point there, and call linearize or jvp on that side"
)
NO_ARRAY = ArraySpec((-1,), np.dtype(bool))
"""The spec of a primal that is no array with a derivative: no tangent is of this kind."""


@partial(public, first=[tangent_by_caller])
def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False) -> Any:
    """``(out, out_tangent)``: the value of ``f(*primals)`` and its derivative along ``tangents``, J t.

    One run of ``f``; nothing is held but the tangents of the values that are alive. For complex values the tangent is
    the change of the value itself: d f(z + h t) / dh at h = 0.

    Parameters
    ----------
    f
        Returns an array or a structure of arrays, or ``(out, aux)`` with ``has_aux``.
    primals
        A sequence of its arguments.
    tangents
        One structure per primal, with an array of the primal's shape and dtype at every leaf, or None for 0.
    has_aux
        The result is ``(out, out_tangent, aux)``.

    Returns
    -------
    The tangent of the output has its structure, shapes and dtypes; None at leaves that carry no derivative.

    Raises
    ------
    StructureError
        For a tangent of another structure, shape or dtype.

    Source: forward accumulation (Wengert, A simple automatic derivative evaluation program, Commun. ACM 7(8), 1964).

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> pb.jvp(lambda x: x**3, (np.array([2.0]),), (np.array([1.0]),))
    (array([8.]), array([12.]))
    """
    staged = None if has_aux else staged_of(f)
    owner = None if has_aux else staged or gradient_of(f)
    tuples = type(primals) is type(tangents) is tuple and len(primals) == len(tangents)
    if tuples and not has_aux and (staged is None or depth()):
        given = tangent_called(jvp, f, primals, tangents)
        if given is not None:
            return given
    if owner is not None and tuples:
        warm = owner.warm
        if warm is None:
            from pullback.staging.calls.shortcut_making import warm_of  # noqa: PLC0415 - as below

            warm = owner.warm = warm_of(owner)
        by_shortcut = warm.tangent(f, primals, tangents, (Tangents, Tangent), lambda: jvp(f, primals, tangents))
        if by_shortcut is not None:
            return by_shortcut[0]
    if staged is not None and type(primals) is type(tangents) is tuple:
        # Imported here as in reverse.py: few programs stage functions.
        from pullback.staging.calls.derivative_calls import pushed_at_once  # noqa: PLC0415

        at_once = pushed_at_once(staged, primals, tangents, (Tangents, Tangent))
        if at_once is not None:
            return at_once[0] if at_once[1] is None else _told(*at_once)
    site = site_here()
    if not (type(primals) is type(tangents) is tuple and len(primals) == len(tangents)):
        one_for_each(f"jvp at {site_text(site)}", primals, tangents)
    tape = _forward_tape()
    args, inputs = [], []
    for k, (primal, tangent) in enumerate(zip(primals, tangents, strict=True)):
        pairs, definition = _paired(k, primal, tangent, site)
        leaves = [_entered(tape, leaf, part) if carries_derivative(leaf) else leaf for leaf, part in pairs]
        args.append(unflatten(definition, leaves))
        inputs += [leaf for leaf in leaves if isinstance(leaf, Handle)]
    labelled = [(f"leaf {k} of the primals", handle._value) for k, handle in enumerate(inputs)]
    tape.overlapping = {inputs[k]._id: both for k, both in overlapping(labelled).items() if isinstance(k, int)}
    try:
        with agreed_at_end(tape), Tracing(tape):
            out, aux = split_aux(run_function(f, args, {}, tape), has_aux=has_aux)
    finally:
        tape.close()
        tape.tangents = None  # a cycle with the tape
    return (*_told(out, tape), *([map_leaves(lambda leaf: lowered(leaf, tape), aux)] if has_aux else []))


def _forward_tape() -> Tape:
    tape = Tape(next_level(), KINDS)
    tape.mode = FORWARD
    tape.tangents = Tangents(tape)
    return tape


def tangents_within(
    f: Callable[..., Any], arguments: Callable[[list[Any]], list[Any]], leaves: Sequence[Any], tangents: Sequence[Any]
) -> list[Any]:
    """The tangents of the leaves of ``f`` that carry derivatives, None where there is none, in the trace around, whose
    values the ``leaves`` and their ``tangents`` are. The ``arguments`` of ``f`` are made of the leaves."""
    tape = _forward_tape()
    try:
        with Tracing(tape):
            out = f(*arguments([_entered(tape, x, t) for x, t in zip(leaves, tangents, strict=True)]))
    finally:
        tape.close()
        tape.tangents = None  # as in jvp
    found = [leaf for leaf in flatten(out)[0] if carries_derivative(leaf)]
    return [x._id.value if isinstance(x, Handle) and x._tape is tape and x._id is not None else None for x in found]


def _told(out: Any, tape: Tape) -> tuple[Any, Any]:
    """What a function has returned in a trace that has ended, and its tangent."""
    leaves, definition = flatten(out)
    result = unflatten(definition, [lowered(leaf, tape) for leaf in leaves])
    return result, unflatten(definition, separate([_tangent_of(leaf, tape) for leaf in leaves]))


def one_for_each(name: str, primals: Any, tangents: Any) -> None:
    """Raise :class:`StructureError` unless there is a tuple of primals and one of as many tangents."""
    for word, values in (("primals", primals), ("tangents", tangents)):
        if not isinstance(values, tuple | list):
            raise StructureError(
                f"{name} takes a tuple of {word}, one for each argument, got {type(values).__name__}; write "
                f"({word[:-1]},) for one"
            )
    if len(primals) != len(tangents):
        raise StructureError(f"{name} got {len(primals)} primals and {len(tangents)} tangents; give one for each")


def _paired(number: int, primal: Any, tangent: Any, site: int) -> tuple[list[tuple[Any, Any]], Any]:
    """Each leaf of a primal with its tangent (None for 0, and at leaves that carry no derivative), and the primal's
    structure."""
    leaves, definition = flatten(primal)
    parts = [None] * len(leaves) if tangent is None else matched(tangent, definition)
    if parts is None:
        raise StructureError(
            f"the tangent of argument {number} at {site_text(site)} has structure {flatten(tangent)[1]}, the argument "
            f"has {definition}; give one leaf for each of its leaves, None for 0"
        )
    for at, leaf in enumerate(leaves):
        foreign = None if isinstance(leaf, Handle) else foreign_argument(leaf)
        if foreign is not None:
            raise NotDifferentiableError(f"argument {number}{paths(primal)[at]} at {site_text(site)} of type {foreign}")
    if definition.is_leaf() and not carries_derivative(leaves[0]) and parts[0] is not None and np.any(value(parts[0])):
        raise NotDifferentiableError(
            f"argument {number} at {site_text(site)} is {spec_of(leaves[0])}, which carries no derivative, and its "
            "tangent is not 0; pass the argument as a float or convert it with .astype(float), or give None for the "
            "tangent"
        )
    pairs = []
    for at, (leaf, part) in enumerate(zip(leaves, parts, strict=True)):
        counts = part is not None and carries_derivative(leaf)
        pairs.append((leaf, _checked_tangent(part, leaf, (number, primal, at), site) if counts else None))
    return pairs, definition


def _entered(tape: Tape, leaf: Any, tangent: Any) -> Any:
    """A leaf of a primal as a handle with its tangent; None stands for the tangent 0."""
    primal = native(entered(leaf, tape))
    ident: Any = None if tangent is None else Tangent(native(tangent))
    kind = kind_of(tape, leaf)
    kind = KINDS.buffer if tangent is None and kind is KINDS.tracer else kind
    return make(kind, primal, ident, tape, SHARED)


def _checked_tangent(part: Any, leaf: Any, place: tuple[int, Any, int], site: int) -> Any:
    """A copy of a tangent leaf in the dtype of its primal; raises :class:`StructureError` for another shape, and for a
    dtype that the primal's cannot hold."""
    spec = spec_of(leaf)
    tangent: Any = present(part, None)
    tangent = tangent if isinstance(tangent, Handle) else plain_array(tangent)
    kind = tangent.dtype.kind
    if tangent.shape != spec.shape or (kind == "c" and spec.dtype.kind != "c") or kind not in "fciub":
        number, primal, at = place
        raise StructureError(
            f"the tangent of argument {number}{paths(primal)[at]} at {site_text(site)} is "
            f"{tangent.dtype}{list(tangent.shape)}, the argument is {spec.dtype}{list(spec.shape)}; a tangent has "
            "the shape and dtype of its argument"
        )
    if isinstance(tangent, Handle):
        traced: Any = tangent
        return freeze(traced) if traced.dtype == spec.dtype else traced.astype(spec.dtype)
    return _own(tangent, spec.dtype) if spec.shape else spec.dtype.type(tangent)


def _own(tangent: Any, dtype: Any = None) -> Any:
    order: Any = "C" if 0 in tangent.strides else "K"  # the order of what is broadcast is that of nothing
    return np.array(tangent, dtype=dtype, order=order)


def _tangent_of(leaf: Any, tape: Tape) -> Any:
    """The tangent of an output leaf, as the user gets it."""
    if not carries_derivative(leaf):
        return None
    if isinstance(leaf, Handle) and leaf._tape is tape:
        return np.zeros_like(leaf._value) if leaf._id is None else leaf._id.value
    return np.zeros_like(leaf)


class LinearMap:
    """A map from directions, each with a part for every input of a pull (None for 0), to tangents of its outputs.

    One thread is served at a time; others wait for it.
    """

    n_made: ClassVar[int] = 0
    """How many there were: after so many it pays to know what one direction alone needs."""

    def __init__(self, pull: Pull, outs: Leaves, policy: Any = None) -> None:
        self._pull: Any = pull
        self._outs, self._policy, self._lock = outs, policy, RLock()
        self._pushed: Any = None
        self._repeated: Any = None
        self._n_alone = 0
        LinearMap.n_made += 1
        plain = not (pull.conj or pull.tape.collective)
        self._may_repeat = _alone() and plain and (policy is not None or saves_all())
        if _ROOM in sys.modules:
            self._look()
        if self._repeated is not None and self._repeated.is_known:
            self._repeated.hold()
        else:
            self._record()
            may_repeat = self._may_repeat or self._repeated is not None
            if not may_repeat or pull.report.live_bytes > RECORDED_BYTES:
                self._pull = self._repeated = None
                self._may_repeat = False

    def _look(self) -> None:
        if self._may_repeat and staging_in_force() != "off":
            # As in pulls.py: few programs ask for many directions.
            from pullback.staging.pulls.repeated_pushes import repeated_pushes  # noqa: PLC0415

            self._repeated = repeated_pushes(self._pull.traced, self._outs.values)
            self._may_repeat = False

    def _record(self) -> None:
        if self._repeated is not None:
            self._repeated.release()
        # The pull is linear: it may be recorded at any cotangent, but for 0, at which rules with a pole send 0.
        ones = self._outs.structured([np.ones(spec.shape, spec.dtype)[()] for spec in self._outs.specs])
        _, self._pushed = vjp(self._pull, ones, policy=self._policy)

    def each(self, several: Sequence[list[Any]]) -> list[list[Any]]:
        """The tangents of the outputs that carry derivatives, for each direction."""
        with self._lock:
            if self._may_go_together(len(several)) and staging_in_force() != "off" and _alone():
                self._look()
                if self._repeated is not None and not any(isinstance(part, Handle) for one in several for part in one):
                    found = self._repeated.of(several, ENOUGH, lambda drawn: self._swept(drawn, generated=False))
                    if found is not None:
                        return found  # type: ignore[no-any-return]
            return self._swept(several, generated=True)

    def _may_go_together(self, n: int) -> bool:
        """Whether a function for directions is asked for, or made: for one alone in maps of which there are many, for
        the first calls of each; where more come, a recorded derivative costs less."""
        if n > 1:
            return True
        self._n_alone += 1
        first = self._n_alone == 1 or (self._pushed is None and self._n_alone <= FEW_ALONE)
        return first and LinearMap.n_made > ENOUGH

    def _swept(self, several: Sequence[list[Any]], *, generated: bool) -> list[list[Any]]:
        if self._pushed is None:
            self._record()
        found: list[list[Any]] = self._pushed.each(self._pushed.out_leaves, several, free=False, generated=generated)
        return found

    @property
    def nbytes(self) -> int:
        """About what one direction holds."""
        return int((self._pushed or self._pull).seed_bytes)


def _alone() -> bool:
    """Whether no trace is open, and nobody hears of what is held."""
    return not depth() and not watchers() and planned() is None


@public
def linearize(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``(out, f_jvp)``: the value of ``f(*primals)`` and the function from tangents of the primals to the tangent of
    the output.

    ``f`` runs once. What one reverse pass needs, and the record of that pass, are held until ``f_jvp`` is dropped.

    Parameters
    ----------
    f
        Returns an array or a structure of arrays, or ``(out, aux)`` with ``has_aux``.
    *primals
        Its arguments.
    has_aux
        The result is ``(out, f_jvp, aux)``.

    Returns
    -------
    ``f_jvp(*tangents)``, with tangents as those of :func:`jvp`, may be called again and again, and runs only the
    derivative. ``f_jvp([(t, ...), (u, ...)])`` takes a list with a tuple of tangents for each of many directions, and
    gives a list of the tangents of the output, each with the bits that a call of its own would give it, in less time.

    Raises
    ------
    StructureError
        By ``f_jvp``, for a tangent of another structure, shape or dtype.

    Source: the derivative is recorded as the pull of the pull (Christianson, Automatic Hessians by reverse
    accumulation, IMA J. Numer. Anal. 12, 1992, section 2).

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> out, f_jvp = pb.linearize(np.sin, np.array([0.0, 1.0]))
    >>> f_jvp(np.array([1.0, 0.0]))
    array([1., 0.])
    """
    site = site_here()
    out, pull, *aux = vjp(f, *primals, has_aux=has_aux)
    outs = leaves_of(unflatten(pull.out_definition, pull.out_leaves))
    linear = LinearMap(pull, outs)
    one = flatten(primals[0])[1] if len(primals) == 1 else None
    arrays = (type(x) is np.ndarray and x.ndim > 0 and carries_derivative(x) for x in primals)
    whole = [spec_of(x) if is_array else NO_ARRAY for x, is_array in zip(primals, arrays, strict=True)]

    @public
    def f_jvp(*tangents: Any) -> Any:
        first = tangents[0] if len(tangents) == 1 else None
        if type(first) is list and (one is None or one.type is not list or matched(first, one) is None):
            return [outs.structured(answer) for answer in linear.each([direction(one) for one in first])]
        return outs.structured(linear.each([direction(tangents)])[0])

    def direction(tangents: Any) -> list[Any]:
        if type(tangents) is not tuple or len(tangents) != len(primals):
            given = f"{len(tangents)}" if type(tangents) is tuple else f"a list with {type(tangents).__name__} in it"
            raise StructureError(
                f"the function linearized at {site_text(site)} takes {len(primals)} tangents, or a list of tuples "
                f"with {len(primals)} each, got {given}"
            )
        parts: list[Any] = []
        for k, (primal, tangent) in enumerate(zip(primals, tangents, strict=True)):
            if fits(tangent, whole[k]):
                parts.append(_own(tangent))
            else:
                pairs, _ = _paired(k, primal, tangent, site)
                parts += [part for leaf, part in pairs if carries_derivative(leaf)]
        return parts

    return (out, made_here(f_jvp, _STAYS), *aux)
