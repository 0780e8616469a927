"""Handles without values: what a body is called on where its step is compared with one that is known."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from attrs import field, frozen

from pullback.recording.crossing import present
from pullback.recording.handles import Handle, Kinds
from pullback.recording.recorder import call
from pullback.recording.tape import CLOSED, Tape
from pullback.rules.catalogue import registry
from pullback.rules.declaration import Primitive
from pullback.staging.operations import Constant, Operation
from pullback.tracing.tracer import KINDS, Buffer, Tracer, View, Weak
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import TracerError
from pullback.words.structures import LEAVES


class Valueless:
    """What they answer from the spec alone; asked for more, they have the value computed (``_value``) or become
    ordinary."""

    __slots__ = ()

    @property
    def _value(self: Any) -> Any:
        return self._tape.shadow.value(self)

    @property
    def shape(self: Any) -> tuple[int, ...]:
        """Extents of the axes."""
        shape: tuple[int, ...] = self._spec.shape
        return shape

    @shape.setter
    def shape(self: Any, shape: Any) -> None:
        self._tape.shadow.surrender()
        self.shape = shape

    @property
    def dtype(self: Any) -> Any:
        """The dtype."""
        return self._spec.dtype

    @property
    def flat(self: Any) -> Any:
        """The elements in C order."""
        self._tape.shadow.surrender()
        return self.flat

    @flat.setter
    def flat(self: Any, new: Any) -> None:
        self._tape.shadow.surrender()
        self.flat = new

    def __len__(self: Any) -> int:
        if not self._spec.shape:
            raise TypeError("len() of unsized object")
        return int(self._spec.shape[0])


EAGER: Final = ((None, None, None, None, None, None, None),)
"""What the operators compare with where nothing is known."""


@frozen
class Known:
    """A list of operations that a step may turn out to be, with what the operators compare with."""

    operations: list[Operation]
    quick: tuple[Any, ...] = field(init=False, repr=False)
    ends: tuple[Any, ...] = field(init=False, repr=False)
    """The numbers of the values that it returns."""

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "ends", self.operations[-1].operands)
        object.__setattr__(self, "quick", tuple(map(_quick_entry, self.operations)))


def _quick_entry(op: Operation) -> tuple[Any, ...]:
    """``(primitive, first operand, second, number, spec, result, class)`` of an operation that gives one handle; the
    second is a number, the type of a Python number, or None."""
    if type(op.what) is not Primitive or len(op.makes) != 1 or op.several or len(op.operands) > 2:
        return EAGER[0]
    ends = [o.type if type(o) is Constant and o.type in (float, int) else o for o in op.operands]
    if any(type(end) is Constant for end in ends) or op.params:
        return EAGER[0]
    (result,) = op.results
    return op.what, ends[0], ends[1] if len(ends) > 1 else None, op.makes[0], result.spec, result, CLASSES[result.kind]


def _binary(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An operator and its reflection, which compare at once in the common case: two handles, or one and a number."""
    key = f"operator_{name}"

    def operator(self: Any, other: Any) -> Any:
        run = self._tape.shadow
        prim, first, second, number, spec, result, made = run.quick[run.at]
        if prim is not None and prim.name == key and first == self._id and type(self) is not ValuelessView:
            kind = type(other)
            if kind is second:
                run.constants.append(other)
            elif kind is not ValuelessTracer or other._id != second or other._tape is not self._tape:
                return run.call(_primitive(key), (self, other), {})
            run.at += 1
            handle = made()
            handle._tape, handle._id, handle._spec, handle._flag = self._tape, number, spec, result
            run.made.append(handle)
            return handle
        return meets(key, self, other)

    def reflected(self: Any, other: Any) -> Any:
        run = self._tape.shadow
        prim, first, second, number, spec, result, made = run.quick[run.at]
        if (
            prim is not None and prim.name == key and first is type(other) and second == self._id
            and type(self) is not ValuelessView
        ):  # fmt: skip
            run.constants.append(other)
            run.at += 1
            handle = made()
            handle._tape, handle._id, handle._spec, handle._flag = self._tape, number, spec, result
            run.made.append(handle)
            return handle
        if isinstance(other, Handle) and other._tape is not self._tape:
            other = present(other, self._tape)
            if isinstance(other, Handle) and other._tape is self._tape:
                return operator(other, self)
        return meets(key, other, self)

    return operator, reflected


def meets(key: str, x: Any, y: Any) -> Any:
    """An operator in any other case: as an ordinary tracer has it."""
    return call(_primitive(key), (x, y), {})


@cache
def _primitive(key: str) -> Any:
    return registry.named(key)


class ValuelessTracer(Valueless, Tracer):
    """A traced array."""

    __slots__ = ()

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("subtract")
    __mul__, __rmul__ = _binary("multiply")
    __truediv__, __rtruediv__ = _binary("divide")


class ValuelessView(Valueless, View):
    """A view of another."""

    __slots__ = ()


class ValuelessBuffer(Valueless, Buffer):
    """An array that depends on nothing yet."""

    __slots__ = ()


class ValuelessWeak(Valueless, Weak):
    """Over a Python number."""

    __slots__ = ()


VALUELESS: Final = Kinds(ValuelessTracer, ValuelessView, ValuelessBuffer, ValuelessWeak)
CLASSES: Final[dict[str, Any]] = {
    "tracer": ValuelessTracer, "view": ValuelessView, "buffer": ValuelessBuffer, "weak": ValuelessWeak,
    "plain": ValuelessTracer,
}  # fmt: skip
KIND_OF: Final = frozenset(CLASSES.values())
LEAVES.update(KIND_OF)
_NAMES = {Tracer: "tracer", View: "view", Buffer: "buffer", Weak: "weak"}


def kind_name(handle: Any) -> str:
    """The kind of an ordinary handle."""
    return _NAMES[type(handle)]


class _Ended:
    """The shadow of a step that is over."""

    def __getattr__(self, name: str) -> Any:
        raise TracerError(
            f"a value of a step that has ended is used (at {site_text(site_here())}): it leaked out of the body, "
            "through a global, an attribute or a generator. Return it, or keep pullback.value(x)"
        )


ENDED: Final = Tape(0, KINDS)
ENDED.mode = CLOSED
ENDED.shadow = _Ended()  # type: ignore[assignment]  # whatever is asked of it is refused
