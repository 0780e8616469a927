"""Forward mode: with each call in a forward trace the tangent of the result is computed from those of the operands;
nothing is recorded.

A handle of a forward trace has a :class:`Tangent` in the place of an id. Writes go to the tangent as they go to the
value, through the same view functions. A tangent is computed by the first of these that there is: the primitive's own
JVP rule; for an elementwise primitive its VJP rule, since a diagonal Jacobian is its own transpose; for a linear one
its forward; the transpose of its VJP rule.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import define

from pullback.policies.save_all import SaveAll
from pullback.recording.handles import FREE, Handle, activate, freeze, kind_of, layout_of, make, over, resolve
from pullback.recording.recorder import NO_PARAMS, finish
from pullback.recording.regions import Region
from pullback.recording.results import in_form_of, inactive, looks_at, wrap
from pullback.recording.tape import Tape
from pullback.recording.writes import blank
from pullback.rules.cotangent_sums import added, alone, takes
from pullback.rules.declaration import Primitive
from pullback.rules.forms import rules_for
from pullback.rules.guarded_calls import guarded_rule
from pullback.rules.rule_names import Rule, meaning, read, read_spec
from pullback.rules.unbroadcast import project
from pullback.transforms.derivatives.generated_pushes import make_push
from pullback.transforms.derivatives.reverse import vjp
from pullback.words.call_sites import site_here
from pullback.words.errors import NotDifferentiableError
from pullback.words.specs import ArraySpec, carries_derivative, shared_spec, spec_of


class Tangent:
    """The tangent of one value; two of them are equal only if they are the same."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@define(eq=False)
class Tangents:
    """What a forward trace does at every call and every write: its ``Tape.tangents``."""

    tape: Tape

    def quick(self, prim: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
        """The handle of the result of a plain call, by the generated push of the primitive; None for any other call."""
        try:
            push = prim.forms["push"]
        except KeyError:
            push = prim.forms["push"] = make_push(prim, _classes(self.tape))
        return None if push is None else push(self.tape, params, *operands)

    def still(self, value: Any) -> Tangent:
        """The tangent of a value that moves with none of the inputs, where one is asked for in any case."""
        return Tangent(np.zeros(np.shape(value), dtype_of(value))[()])

    # Other forward traces ask for the tag (see ``influence``).
    def mark(self, leaf: Any, tag: str) -> Any:  # noqa: ARG002
        """A value marked by ``name``: tangents have no use for it."""
        return leaf

    def push(
        self,
        prim: Primitive,
        operands: tuple[Any, ...],
        values: tuple[Any, ...],
        out: Any,
        residuals: Mapping[str, Any],
        params: Mapping[str, Any],
        active: tuple[int, ...],
    ) -> Any:
        """The handle, or handles, of a result, with their tangents."""
        given = {k: operands[k]._id.value for k in active if prim.rule_name(k) not in prim.nondiff}
        opaque = "out" in prim.opaque
        if not given or not (prim.outputs or opaque or carries_derivative(out)):
            return inactive(self.tape, prim, operands, out, params)
        call = RuleCall(prim, values, out, residuals, params)
        if opaque:
            pending: Any = Tangent(Pending(call, given))
            return make(self.tape.kinds.tracer, out, pending, self.tape)
        if prim.outputs:
            tangents = call.transposed(given)
            known = (*given.values(), *tangents)
            handles = [
                self._output(value, t, known[: len(given) + k])
                for k, (value, t) in enumerate(zip(out, tangents, strict=True))
            ]
            return in_form_of(out, handles)
        tangent = call.tangent(given)
        if not (prim.view and looks_at(out, values[0])):  # a reshape may copy where that of the tangent does not
            tangent = owned(tangent, tuple(given.values()))
        ident: Any = Tangent(tangent)
        return wrap(self.tape, prim, operands, params, out, ident, FREE)

    def _output(self, value: Any, tangent: Any, known: tuple[Any, ...]) -> Any:
        if not carries_derivative(value):
            return value
        ident: Any = Tangent(owned(tangent, known))
        return make(kind_of(self.tape, value), value, ident, self.tape)

    def joined(self, p: Any, g: Any) -> Any:
        """``p + g`` for cotangents that are values here, where nobody but the sweep holds ``p``: in place, as
        ``cotangent_sums.join``, where nobody else can see its value and its tangent either."""
        tracer = self.tape.kinds.tracer
        if type(p) is tracer and type(g) is tracer and p._tape is self.tape is g._tape and p._flag == FREE:
            value, tangent, more = p._value, p._id.value, g._id.value
            both = type(more) is np.ndarray and type(g._value) is np.ndarray and alone(value) and alone(tangent)
            if both and takes(value, g._value) and takes(tangent, more):
                np.add(value, g._value, out=value)
                np.add(tangent, more, out=tangent)
                return p
        return p + g

    def write(self, root: Any, region: Region, value: Any, *, add: bool, copied: bool) -> None:
        """The tangent of a root after a write: the region takes the tangent of what was written, or 0."""
        before = None if root._id is None else root._id.value
        new = None if value is None else value._id.value
        if before is None or copied or not writable(before, root._value):
            buffer = _buffer_for(root._value, before)
        else:
            buffer = before
        if isinstance(new, Handle) and not isinstance(buffer, Handle):
            buffer = over(buffer, new._tape)
        if new is not None and dtype_of(new).kind == "c" and buffer.dtype.kind != "c":
            new = new.real
        if add and new is not None:
            region.add(buffer, new)
        elif not add:
            region.write(buffer, 0 if new is None else new)
        activate(root, Tangent(buffer))

    # As Influence.solution.
    def solution(self, leaves: list[Any], given: list[Any], matvec: Any, solve: Any) -> list[Tangent]:  # noqa: ARG002
        """The tangents of the leaves of an implicit solution, given those of its equation: ``solve`` solves with the
        derivative of that."""
        found = solve([np.zeros_like(leaf) if t is None else -t for leaf, t in zip(leaves, given, strict=True)])
        return [Tangent(fitted(t, spec_of(leaf))) for leaf, t in zip(leaves, found, strict=True)]


def _classes(tape: Tape) -> dict[str, Any]:
    """What the text of a push names."""
    kinds = tape.kinds
    return {
        "Tracer": kinds.tracer, "View": kinds.view, "handles": frozenset((kinds.tracer, kinds.view)),
        "Tangent": Tangent, "made": make, "resolve": resolve, "fitted": fitted, "shared_spec": shared_spec,
        "finish": finish, "none": NO_PARAMS, "looks_at": looks_at, "wrap": wrap, "free": FREE,
    }  # fmt: skip


def writable(tangent: Any, value: Any) -> bool:
    """Whether a tangent is a buffer that views of the value are views of too."""
    tangent, value = map(layout_of, (tangent, value))
    return bool(
        type(tangent) is np.ndarray and tangent.flags.writeable and tangent.strides == getattr(value, "strides", None)
    )


def _buffer_for(value: Any, before: Any) -> Any:
    """The tangent ``before`` (None for 0) in a buffer with the strides of the value, of whatever outer trace one of
    them is of."""
    buffer: Any = blank(layout_of(value))
    outer = [x for x in (value, before) if isinstance(x, Handle)]
    if outer:
        tape = max(outer, key=lambda x: x._tape.level)._tape
        buffer = over(buffer, tape)
    if before is not None:
        buffer[...] = before
    return buffer


def owned(tangent: Any, given: tuple[Any, ...]) -> Any:
    """A tangent that no other value has: a copy where a rule has handed on what it was given, or a view."""
    if isinstance(tangent, Handle):
        return (
            freeze(tangent)
            if any(tangent is t for t in given) or type(tangent) is tangent._tape.kinds.view
            else tangent
        )
    if type(tangent) is np.ndarray and (tangent.base is not None or any(tangent is t for t in given)):
        return tangent.copy(order="K")
    return tangent


def _array(value: Any) -> Any:
    return value if hasattr(value, "dtype") else np.asarray(value)


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of an array, a tracer or a Python number; of a tracer without asking for its value."""
    return value.shape if hasattr(value, "shape") else np.shape(value)


def dtype_of(value: Any) -> Any:
    """The dtype of an array, a tracer or a Python number."""
    return value.dtype if hasattr(value, "dtype") else np.dtype(type(value))


def _as_cotangent(tangent: Any, spec: ArraySpec) -> Any:
    """A tangent of an operand as a rule wants its cotangent: of the shape of the output, and complex where that is."""
    if shape_of(tangent) != spec.shape:
        tangent = np.broadcast_to(tangent, spec.shape)
    wide = np.promote_types(dtype_of(tangent), spec.dtype)
    return tangent if dtype_of(tangent) == wide else _array(tangent).astype(wide)


def fitted(tangent: Any, spec: ArraySpec) -> Any:
    """A tangent with the shape, dtype and realness of the value whose it is."""
    if shape_of(tangent) != spec.shape:
        tangent = np.broadcast_to(tangent, spec.shape)
    if dtype_of(tangent).kind == "c" and spec.dtype.kind != "c":
        tangent = tangent.real
    if dtype_of(tangent) == spec.dtype:
        return tangent
    return tangent.astype(spec.dtype) if hasattr(tangent, "astype") else spec.dtype.type(tangent)


@define(eq=False)
class Pending:
    """The tangent of an opaque value, which has the form of its cotangent: not known before somebody who uses the
    value sends one."""

    call: "RuleCall"
    given: Mapping[int, Any]

    def like(self, ct: Any) -> Any:
        """The tangent, in the form of a cotangent of the value."""
        return self.call.transposed(self.given, like=ct)


@define(eq=False)
class RuleCall:
    """One call of a primitive: its values by the names that rules read."""

    prim: Primitive
    values: tuple[Any, ...]
    out: Any
    residuals: Mapping[str, Any]
    params: Mapping[str, Any]

    def read(self, name: str, needed: frozenset[str], index: int) -> Any:
        """What a rule gets for one of its parameters."""
        prim, values = self.prim, self.values
        return meaning(
            prim,
            name,
            needed=needed,
            index=index,
            param=self.params.__getitem__,
            spec=lambda name: read_spec(prim, name, values, self.out),
            value=lambda name: read(prim, name, values.__getitem__, len(values), self.out, self.residuals),
        )

    def apply(self, rule: Rule, first: Any, needed: frozenset[str] = frozenset(), index: int = 0) -> Any:
        """A rule's answer to a cotangent or tangent."""
        fn = guarded_rule(self.prim, rule) if self.prim.guarded else rule.fn
        return fn(first, *(self.read(name, needed, index) for name in rule.reads))

    def tangent(self, given: Mapping[int, Any]) -> Any:
        """The tangent of the one output, from those of the operands at the given positions."""
        if self.prim.view:  # the same view of the tangent, so that writes through it reach the whole
            return self._forward(given)
        spec = shared_spec(self.out)
        assert spec is not None  # the result carries a derivative
        prim, parts, rest, together = self.prim, [], {}, {}
        for k, t in given.items():
            name = prim.rule_name(k)
            if isinstance(t, Pending):
                rest[k] = t
            elif name in prim.jvps:
                parts.append(self.apply(prim.jvps[name], t, index=k - len(prim.operands)))
            elif prim.elementwise and len(prim.rules.get(name, ())) and not prim.rules[name][0].joint:
                parts.append(self.apply(prim.rules[name][0], _as_cotangent(t, spec)))
            elif name in prim.linear:
                together[k] = t
            elif name in prim.bilinear:
                parts.append(self._forward({k: t}))
            else:
                rest[k] = t
        if together:
            zeros = {
                k: np.zeros_like(v)
                for k, v in enumerate(self.values)
                if prim.rule_name(k) in prim.linear and k not in together
            }
            parts.append(self._forward(zeros | together))
        if rest:
            parts.append(self.transposed(rest))
        parts[:] = [fitted(part, spec) for part in parts]  # a second list would keep the sum from being in place
        return added(parts)

    def _forward(self, instead: Mapping[int, Any]) -> Any:
        """The forward, with tangents in the place of the operands at some positions."""
        return self.prim(*(instead.get(k, value) for k, value in enumerate(self.values)), **self.params)

    def transposed(self, given: Mapping[int, Any], like: Any = None) -> Any:
        """J t as the transpose of the VJP rules, which are linear in the cotangent: the pull of ``ct -> J' ct`` at t.
        ``like`` is a cotangent of an opaque output."""
        prim = self.prim
        active = tuple(given)
        held = frozenset(range(len(self.values)) if prim.residuals and not self.residuals else ())
        rules = rules_for(prim, active, held, site_here())
        specs = {k: shared_spec(self.values[k]) for k in active}

        def send(ct: Any) -> list[Any]:
            sent: dict[int, Any] = {}
            for rule, positions in rules:
                if rule.joint:
                    needed = frozenset(prim.rule_name(p) for p in positions)
                    gs = self.apply(rule, ct, needed)
                    sent |= {p: gs[rule.operands.index(prim.rule_name(p))] for p in positions}
                else:
                    sent |= {p: self.apply(rule, ct, index=p - len(prim.operands)) for p in positions}
            return [sent[k] if spec is None else project(_array(sent[k]), spec) for k, spec in specs.items()]

        outs = (like,) if like is not None else tuple(self.out) if prim.outputs else (self.out,)

        def recorded(at: Callable[[Any], Any]) -> Any:
            cts = [at(v) if carries_derivative(v) else None for v in outs]
            return vjp(
                lambda *given: send(self._cotangents(cts, given)),
                *(ct for ct in cts if ct is not None),
                policy=SaveAll(),
            )

        try:
            sample, pull = recorded(np.ones_like)  # not at 0, where rules with a pole send 0
        except NotDifferentiableError:  # unless only some cotangents are allowed, as for a basis of a null space
            sample, pull = recorded(np.zeros_like)
        seeds = [t.like(ct) if isinstance(t, Pending) else t for t, ct in zip(given.values(), sample, strict=True)]
        found = iter(pull(seeds))
        tangents = [next(found) if carries_derivative(v) else None for v in outs]
        return tangents if prim.outputs else tangents[0]

    def _cotangents(self, like: list[Any], cts: tuple[Any, ...]) -> Any:
        given = iter(cts)
        filled = tuple(None if one is None else next(given) for one in like)
        return filled if len(like) > 1 or self.prim.outputs else filled[0]
