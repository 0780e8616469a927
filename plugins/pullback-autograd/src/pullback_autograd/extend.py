"""autograd's way to declare a primitive: ``@primitive`` and ``defvjp`` with makers
``(ans, *args, **kwargs) -> (g -> cotangent)``.

A maker names nothing that it reads, so a record keeps all arguments and the value, as autograd's does.
``pullback.primitive`` says what is kept and is what new programs use.
"""

from collections.abc import Callable, Iterable
from functools import update_wrapper
from itertools import count
from types import MethodType
from typing import Any, NoReturn

import numpy as np
from attrs import field, frozen

import pullback as pb
from pullback_autograd.misc.packed import Packing, holds_tracer
from pullback_autograd.vector_spaces import VSpace, vspace


def _returning() -> Callable[..., Any]:
    """What makes of one array what the function returned (or its cotangent); the forward tells it the packing.

    It is a function because of a call's parameters functions alone are handed over as they are, not copied.
    """
    known: list[Packing] = []

    def whole(array: Any = None, packing: Packing | None = None) -> Any:
        if packing is not None:
            known[:] = [packing]
        return known[0].unpack(array) if known and array is not None else array

    return whole


@frozen(eq=False)
class Call:
    """What of a call is no array: the other arguments, where the arrays stand among them, and the keywords."""

    given: tuple[Any, ...]
    places: tuple[int, ...]
    packings: tuple[Packing | None, ...]
    """How the structure of each place stands in the array, None for an array."""
    kwargs: dict[str, Any]
    returned: Callable[..., Any] = field(factory=_returning)

    def arguments(self, arrays: Iterable[Any]) -> list[Any]:
        """The positional arguments, with these arrays at their places."""
        whole = list(self.given)
        for place, packing, array in zip(self.places, self.packings, arrays, strict=True):
            whole[place] = array if packing is None else packing.unpack(array)
        return whole


class UndeclaredError(pb.MissingRuleError, NotImplementedError):
    """A missing rule, under the name by which autograd's programs catch it."""


class DeclaredFunction:
    """A function whose derivative is declared with :func:`defvjp`; ``fun`` is the function itself."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun
        self.makers: dict[int, Callable[..., Any] | None] = {}
        """The function ``(ans, args, kwargs) -> (g -> cotangent)`` of each argument; None where the derivative is
        zero."""
        self.any_maker: Callable[..., Any] | None = None
        """The same for an argument that ``makers`` does not list, its number first."""
        name = str(getattr(fun, "__name__", type(fun).__name__))
        self.primitive = pb.primitive(
            self._forward, name=name, operands=(), family="args", params=("call",), vjps={"args": self._pull}
        )  # fmt: skip
        update_wrapper(self, fun)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        traced = [number for number, argument in enumerate(args) if self._is_traced(number, argument)]
        if holds_tracer(kwargs):
            message = f"{self.primitive.name} got a tracer by keyword; pass what is differentiated by position"
            raise pb.ConversionError(message)
        if not traced:
            return self.fun(*args, **kwargs)
        for number in traced:
            if not self._has_maker(number):
                message = (
                    f"{self.primitive.name} has no derivative with respect to argument {number}: declare it with "
                    "defvjp (None for zero), or pass getval(x)"
                )
                raise UndeclaredError(message)
        packings = {k: Packing(args[k]) for k in traced if not isinstance(args[k], pb.Tracer)}
        places = tuple(k for k, a in enumerate(args) if k in traced or isinstance(a, np.ndarray | np.inexact | float))
        given = tuple(None if k in places else a for k, a in enumerate(args))
        call = Call(given, places, tuple(map(packings.get, places)), kwargs)
        arrays = (packings[k].pack(args[k]) if k in packings else args[k] for k in places)
        return call.returned(self.primitive(*arrays, call=call))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def _has_maker(self, number: int) -> bool:
        return number in self.makers or self.any_maker is not None

    def _is_traced(self, number: int, argument: Any) -> bool:
        """True for a tracer, and for a structure with one inside if there is a maker for it; without a maker the
        function is traced from within, as autograd does with what is no box."""
        return isinstance(argument, pb.Tracer) or (
            isinstance(argument, list | tuple | dict) and self._has_maker(number) and holds_tracer(argument)
        )

    def _forward(self, *arrays: Any, call: Call) -> Any:
        out = self.fun(*call.arguments(arrays), **call.kwargs)
        if holds_tracer(out) and not any(map(holds_tracer, arrays)):
            message = (
                f"{self.primitive.name} returned a tracer from outside; pass what it closes over as an argument, by "
                "position"
            )
            raise pb.NotDifferentiableError(message)
        if not isinstance(out, list | tuple | dict):
            return out
        packing = Packing(out)
        call.returned(packing=packing)
        return packing.pack(out)

    def _pull(self, ct: Any, index: int, args: Any, out: Any, call: Call) -> Any:
        number, packing = call.places[index], call.packings[index]
        arguments, ans, g = call.arguments(args), call.returned(out), call.returned(ct)
        if number in self.makers:
            maker = self.makers[number]
            if maker is None:
                return np.zeros_like(args[index])
            pulled = maker(ans, arguments, call.kwargs)(g)
        else:
            assert self.any_maker is not None, "refused when called"
            pulled = self.any_maker(number, ans, arguments, call.kwargs)(g)
        return pulled if packing is None else packing.pack(pulled)

    # autograd's old way to declare rules, one argument at a time
    def defgrad(self, gradfun: Callable[..., Any], argnum: int = 0) -> None:
        """:func:`defvjp` for one argument."""
        defvjp(self, gradfun, argnums=(argnum,))

    def defvjp(self, vjpmaker: Callable[..., Any], argnum: int = 0) -> None:
        """A rule ``(g, ans, vs, gvs, *args) -> cotangent`` for one argument; ``vs`` and ``gvs`` are the vector spaces
        of the argument and of ``g``."""

        def maker(ans: Any, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
            return lambda g: vjpmaker(g, ans, vspace(args[argnum]), vspace(g), *args, **kwargs)

        defvjp(self, maker, argnums=(argnum,))

    def defvjp_is_zero(self, argnums: Iterable[int] = (0,)) -> None:
        """A zero derivative in these arguments."""
        self.makers.update(dict.fromkeys(argnums))


def primitive(f_raw: Callable[..., Any]) -> DeclaredFunction:
    """``f_raw`` with a derivative of its own, to be declared by :func:`defvjp`; it runs on plain arrays."""
    return DeclaredFunction(f_raw)


def notrace_primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """``f_raw`` on the values behind the tracers: no derivative."""

    def plainly(*args: Any, **kwargs: Any) -> Any:
        return f_raw(
            *(pb.map_leaves(pb.value, a) for a in args),
            **{name: pb.map_leaves(pb.value, a) for name, a in kwargs.items()},
        )

    return update_wrapper(plainly, f_raw)


_declared_for: dict[Any, DeclaredFunction] = {}


def replaced(found: Any) -> Any:
    """What a namespace gives for one of NumPy's objects: itself, or the function with the rules that the program has
    declared for it."""
    return _declared_for.get(found, found) if _declared_for and callable(found) else found


def forget(fun: Any) -> None:
    """Takes back the rules that were declared for a function which was not made with :func:`primitive`."""
    _declared_for.pop(getattr(fun, "__wrapped__", fun), None)


def _declared(fun: Any) -> DeclaredFunction:
    """``fun`` if it was made with :func:`primitive`; for a plain function the one that :func:`replaced` gives."""
    if isinstance(fun, DeclaredFunction):
        return fun
    plain = getattr(fun, "__wrapped__", fun)  # of the namespace's functions NumPy's own
    return _declared_for.setdefault(plain, DeclaredFunction(plain))


def defvjp(fun: Any, *vjpmakers: Callable[..., Any] | None, argnums: Iterable[int] | None = None) -> None:
    """One maker ``(ans, *args, **kwargs) -> (g -> cotangent)`` per argument, or per number in ``argnums``; None is a
    zero derivative.

    For one of NumPy's functions the rules hold where the program calls it by ``autograd.numpy``; NumPy and pullback
    stay as they are. For any other function without ``@primitive`` they have no effect, as in autograd: it is traced
    from within.
    """
    declared = _declared(fun)
    for number, maker in zip(count() if argnums is None else argnums, vjpmakers, strict=False):
        declared.makers[number] = None if maker is None else _spread(maker)


def _spread(maker: Callable[..., Any]) -> Callable[..., Any]:
    return lambda ans, args, kwargs: maker(ans, *args, **kwargs)


def defvjp_argnum(fun: Any, vjpmaker: Callable[..., Any]) -> None:
    """One maker ``(argnum, ans, args, kwargs) -> (g -> cotangent)`` for every argument."""
    _declared(fun).any_maker = vjpmaker


def defvjp_argnums(fun: Any, vjpmaker: Callable[..., Any]) -> None:
    """One maker ``(argnums, ans, args, kwargs) -> (g -> cotangents)``; it is asked for one argument at a time."""

    def of_one(number: int, ans: Any, args: Any, kwargs: Any) -> Callable[[Any], Any]:
        pull = vjpmaker((number,), ans, args, kwargs)
        return lambda g: next(iter(pull(g)))

    _declared(fun).any_maker = of_one


def defjvp(fun: Any, *jvpfuns: Any, argnums: Iterable[int] | None = None) -> None:
    """Accepted and not used: tangents come from the pull of the pull, so a rule for them cannot disagree with the
    other one."""


def defjvp_argnum(fun: Any, jvpmaker: Any) -> None:
    """As :func:`defjvp`."""


def defjvp_argnums(fun: Any, jvpmaker: Any) -> None:
    """As :func:`defjvp`."""


def def_linear(fun: Any) -> None:
    """As :func:`defjvp`."""


@frozen
class Refused:
    """A name of autograd's inside that has no counterpart: any use of it raises :class:`NotDifferentiableError`."""

    name: str
    instead: str

    def _refuse(self) -> NoReturn:
        raise pb.NotDifferentiableError(f"autograd.extend.{self.name} has no counterpart in pullback: {self.instead}")

    def __call__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        self._refuse()

    def __mro_entries__(self, _bases: tuple[Any, ...]) -> NoReturn:
        self._refuse()

    def register(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Raises: types are not registered."""
        self._refuse()


_STRUCTURES = "lists, tuples, dicts, named tuples, dataclasses and attrs classes are differentiated as they are"
Box = Refused("Box", _STRUCTURES)
SparseObject = Refused(
    "SparseObject", "declare the function with pullback.primitive; what is read by index is accumulated sparsely anyway"
)
JVPNode, VJPNode = (
    Refused("JVPNode", "look at pullback.record(f, *args)"),
    Refused("VJPNode", "look at pullback.record(f, *args)"),
)
register_notrace = Refused("register_notrace", "wrap the function with notrace_primitive")

__all__ = [
    "Box", "JVPNode", "SparseObject", "VJPNode", "VSpace", "def_linear", "defjvp", "defjvp_argnum", "defjvp_argnums",
    "defvjp", "defvjp_argnum", "defvjp_argnums", "notrace_primitive", "primitive", "register_notrace", "vspace",
]  # fmt: skip
