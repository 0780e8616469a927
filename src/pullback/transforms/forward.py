"""Forward-mode transforms: ``jvp`` carries tangents along with the values and holds nothing; ``linearize`` records a
derivative once."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.loops.body import separate
from pullback.memory.in_force import Tracing, next_level
from pullback.recording.crossing import plain_array, present
from pullback.recording.handles import SHARED, Handle, freeze, kind_of, make, value
from pullback.recording.tape import FORWARD, Tape
from pullback.tracing.running import lowered, overlapping, run_function
from pullback.tracing.tracer import KINDS
from pullback.transforms.reverse import split_aux, vjp
from pullback.transforms.tangents import Tangent, Tangents
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import NotDifferentiableError, StructureError
from pullback.words.specs import carries_derivative, native, spec_of
from pullback.words.structures import flatten, map_leaves, matched, paths, unflatten


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False) -> Any:
    """``(out, out_tangent)``: the value of ``f(*primals)`` and its derivative along ``tangents``, J t.

    ``tangents`` has one structure per primal, with an array of the primal's shape and dtype at every leaf, or None for
    0. The tangent of the output has the structure, shapes and dtypes of the output; None at leaves that carry no
    derivative. One run of ``f``; nothing is held but the tangents of the values that are alive. With ``has_aux``, ``f``
    returns ``(out, aux)`` and the result is ``(out, out_tangent, aux)``. Raises :class:`StructureError` for a tangent
    of another structure, shape or dtype.

    Forward accumulation (Wengert, A simple automatic derivative evaluation program, Commun. ACM 7(8), 1964). For
    complex values the tangent is the change of the value itself: d f(z + h t) / dh at h = 0.
    """
    site = site_here(0)
    one_for_each(f"jvp at {site_text(site)}", primals, tangents)
    tape = Tape(next_level(), KINDS)
    tape.mode = FORWARD
    tape.tangents = tape.chain = Tangents(tape)
    given: list[Any] = []
    args = []
    for k, (primal, tangent) in enumerate(zip(primals, tangents, strict=True)):
        pairs, definition = _paired(k, primal, tangent, site)
        args.append(unflatten(definition, _entered(tape, pairs, given)))
    labelled = [(f"leaf {k} of the primals", handle._value) for k, handle in enumerate(given)]
    tape.overlapping = {given[k]._id: both for k, both in overlapping(labelled).items()}
    try:
        with Tracing(tape):
            out, aux = split_aux(run_function(f, args, {}, tape), has_aux=has_aux)
    finally:
        tape.close()
        tape.tangents = tape.chain = None  # a cycle with the tape
    leaves, definition = flatten(out)
    result = unflatten(definition, [lowered(leaf, tape) for leaf in leaves])
    sent = unflatten(definition, separate([_left(leaf, tape) for leaf in leaves]))
    return (result, sent, map_leaves(lambda leaf: lowered(leaf, tape), aux)) if has_aux else (result, sent)


def one_for_each(name: str, primals: Any, tangents: Any) -> None:
    """Raise :class:`StructureError` unless there is a tuple of primals and one of as many tangents."""
    for word, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            message = (
                f"{name} takes a tuple of {word}, one for each argument, got {type(given).__name__}; write "
                f"({word[:-1]},) for one"
            )
            raise StructureError(message)
    if len(primals) != len(tangents):
        message = f"{name} got {len(primals)} primals and {len(tangents)} tangents; give one for each"
        raise StructureError(message)


def _paired(number: int, primal: Any, tangent: Any, site: int) -> tuple[list[tuple[Any, Any]], Any]:
    """Each leaf of a primal with its tangent (None for 0, and at leaves that carry no derivative), and the primal's
    structure."""
    leaves, definition = flatten(primal)
    parts = [None] * len(leaves) if tangent is None else matched(tangent, definition)
    if parts is None:
        message = (
            f"the tangent of argument {number} at {site_text(site)} has structure {flatten(tangent)[1]}, the argument "
            f"has {definition}; give one leaf for each of its leaves, None for 0"
        )
        raise StructureError(message)
    if definition.is_leaf() and not carries_derivative(leaves[0]) and parts[0] is not None and np.any(value(parts[0])):
        message = (
            f"argument {number} at {site_text(site)} is {spec_of(leaves[0])}, which carries no derivative, and its "
            "tangent is not 0; pass the argument as a float or convert it with .astype(float), or give None for the "
            "tangent"
        )
        raise NotDifferentiableError(message)
    pairs = []
    for leaf, part, label in zip(leaves, parts, paths(primal), strict=True):
        wanted = part is not None and carries_derivative(leaf)
        pairs.append((leaf, checked_tangent(part, leaf, f"argument {number}{label}", site) if wanted else None))
    return pairs, definition


def _entered(tape: Tape, pairs: list[tuple[Any, Any]], given: list[Any]) -> list[Any]:
    """The leaves of a primal as handles with their tangents."""
    entered = []
    for leaf, tangent in pairs:
        if not carries_derivative(leaf):
            entered.append(leaf)
            continue
        value = present(leaf, None)
        if isinstance(value, Handle):
            value = freeze(value)  # safe from later writes
            tape.meet(value._tape)
        elif isinstance(value, np.ndarray) and type(value) is not np.ndarray:
            value = plain_array(value)
        value = native(value)
        ident: Any = None if tangent is None else Tangent(native(tangent))
        kind = kind_of(tape, leaf)
        kind = KINDS.buffer if tangent is None and kind is KINDS.tracer else kind
        handle = make(kind, value, ident, tape, SHARED)
        entered.append(handle)
        given.append(handle)
    return entered


def checked_tangent(part: Any, leaf: Any, label: str, site: int) -> Any:
    """A tangent leaf of its own memory; raises :class:`StructureError` for another shape, or a dtype that the leaf's
    cannot hold."""
    spec = spec_of(leaf)
    given: Any = present(part, None)
    given = given if isinstance(given, Handle) else plain_array(given)
    if (
        given.shape != spec.shape
        or (given.dtype.kind == "c" and spec.dtype.kind != "c")
        or given.dtype.kind not in "fciub"
    ):
        message = (
            f"the tangent of {label} at {site_text(site)} is {given.dtype}{list(given.shape)}, the argument is "
            f"{spec.dtype}{list(spec.shape)}; a tangent has the shape and dtype of its argument"
        )
        raise StructureError(message)
    if isinstance(given, Handle):
        traced: Any = given
        return freeze(traced) if traced.dtype == spec.dtype else traced.astype(spec.dtype)
    return np.array(given, dtype=spec.dtype) if spec.shape else spec.dtype.type(given)


def _left(leaf: Any, tape: Tape) -> Any:
    """The tangent of an output leaf, as the user gets it."""
    if not carries_derivative(leaf):
        return None
    if isinstance(leaf, Handle) and leaf._tape is tape:
        return np.zeros_like(leaf._value) if leaf._id is None else leaf._id.value
    return np.zeros_like(leaf)


def linearize(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``(out, f_jvp)``: the value of ``f(*primals)`` and the function from tangents of the primals to the tangent of
    the output.

    ``f`` runs once; ``f_jvp(*tangents)`` may be called again and again, and runs only the derivative. Tangents as those
    of :func:`jvp`. What one reverse pass needs, and the record of that pass, are held until ``f_jvp`` is dropped. With
    ``has_aux`` the result is ``(out, f_jvp, aux)``. The derivative is recorded as the pull of the pull (Christianson,
    Automatic Hessians by reverse accumulation, IMA J. Numer. Anal. 12, 1992, section 2).
    """
    site = site_here(0)
    out, pull, *aux = vjp(f, *primals, has_aux=has_aux)
    # The pull is linear: it may be recorded at any cotangent, but for 0, at which rules with a pole send 0.
    anywhere = map_leaves(lambda leaf: np.ones_like(leaf) if carries_derivative(leaf) else None, out)
    _, pushed = vjp(pull, anywhere)

    def f_jvp(*tangents: Any) -> Any:
        if len(tangents) != len(primals):
            message = f"the function linearized at {site_text(site)} takes {len(primals)} tangents, got {len(tangents)}"
            raise StructureError(message)
        seeds = []
        for k, (primal, tangent) in enumerate(zip(primals, tangents, strict=True)):
            pairs, definition = _paired(k, primal, tangent, site)
            seeds.append(unflatten(definition, [part for _, part in pairs]))
        return pushed(tuple(seeds))[0]

    return (out, f_jvp, *aux)
