"""autograd's way to declare a primitive: ``@primitive`` and ``defvjp`` with makers
``(ans, *args, **kwargs) -> (g -> cotangent)``.

A maker names nothing that it reads, so a record keeps all arguments and the value, as autograd's does.
``pullback.primitive`` says what is kept and is what new programs use.
"""

from collections.abc import Callable, Iterable
from functools import update_wrapper
from itertools import count
from typing import Any, NoReturn

import numpy as np
from attrs import frozen

import pullback as pb
from pullback_autograd.misc.flatten import leaves_of


@frozen(eq=False)
class Call:
    """What of a call is no array: the other arguments, where the arrays stand among them, and the keywords."""

    given: tuple[Any, ...]
    places: tuple[int, ...]
    kwargs: dict[str, Any]

    def arguments(self, arrays: Iterable[Any]) -> list[Any]:
        """The positional arguments, with these arrays at their places."""
        whole = list(self.given)
        for place, array in zip(self.places, arrays, strict=True):
            whole[place] = array
        return whole


class DeclaredFunction:
    """A function whose derivative is declared with :func:`defvjp`; ``fun`` is the function itself."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun
        self.makers: dict[int, Callable[..., Any] | None] = {}
        """For each argument ``(ans, args, kwargs) -> (g -> cotangent)``; None where the derivative is zero."""
        self.any_maker: Callable[..., Any] | None = None
        """The same for an argument that ``makers`` does not list, its number first."""
        name = str(getattr(fun, "__name__", type(fun).__name__))
        self.primitive = pb.primitive(
            self._forward, name=name, operands=(), family="args", params=("call",), vjps={"args": self._pull}
        )  # fmt: skip
        update_wrapper(self, fun)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(a, pb.Tracer) for a in args):
            self._refuse_inside(args, kwargs)
            return self.fun(*args, **kwargs)
        self._refuse_inside(tuple(a for a in args if not isinstance(a, pb.Tracer)), kwargs)
        for number, argument in enumerate(args):
            if isinstance(argument, pb.Tracer) and number not in self.makers and self.any_maker is None:
                message = (
                    f"{self.primitive.name} has no derivative with respect to argument {number}: declare it with "
                    "defvjp (None for zero), or pass getval(x)"
                )
                raise pb.MissingRuleError(message)
        places = tuple(
            k for k, a in enumerate(args) if isinstance(a, pb.Tracer | np.ndarray | np.inexact | float | complex)
        )
        given = tuple(None if k in places else a for k, a in enumerate(args))
        return self.primitive(*(args[k] for k in places), call=Call(given, places, kwargs))

    def _refuse_inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A tracer in a structure or a keyword would be traced through the function instead of its declared
        derivative."""
        if any(isinstance(leaf, pb.Tracer) for leaf in leaves_of((args, kwargs))):
            message = (
                f"{self.primitive.name} got a tracer inside a structure or by keyword; pass arrays one by one "
                "and by position"
            )
            raise pb.ConversionError(message)

    def _forward(self, *arrays: Any, call: Call) -> Any:
        out = self.fun(*call.arguments(arrays), **call.kwargs)
        several = isinstance(out, tuple | list | dict)
        if several or (isinstance(out, pb.Tracer) and not any(isinstance(a, pb.Tracer) for a in arrays)):
            what = f"a {type(out).__name__}" if several else "a tracer from outside"
            message = (
                f"{self.primitive.name} returned {what}; return one array, or declare it with "
                "pullback.primitive(outputs=...)"
            )
            raise pb.NotDifferentiableError(message)
        return out

    def _pull(self, ct: Any, index: int, args: Any, out: Any, call: Call) -> Any:
        number = call.places[index]
        arguments = call.arguments(args)
        if number in self.makers:
            maker = self.makers[number]
            return np.zeros_like(args[index]) if maker is None else maker(out, arguments, call.kwargs)(ct)
        maker = self.any_maker
        assert maker is not None, "refused when called"
        return maker(number, out, arguments, call.kwargs)(ct)


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


def _declared(fun: Any) -> DeclaredFunction:
    if not isinstance(fun, DeclaredFunction):
        message = (
            f"defvjp is for functions made with @primitive, got {getattr(fun, '__name__', fun)}; "
            "wrap it, or replace a rule in a scope: pullback.registry.replaced(...)"
        )
        raise pb.NotDifferentiableError(message)
    return fun


def defvjp(fun: Any, *vjpmakers: Callable[..., Any] | None, argnums: Iterable[int] | None = None) -> None:
    """One maker ``(ans, *args, **kwargs) -> (g -> cotangent)`` per argument, or per number in ``argnums``; None is a
    zero derivative."""
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
    _declared(fun)


def defjvp_argnum(fun: Any, jvpmaker: Any) -> None:
    """As :func:`defjvp`."""
    _declared(fun)


def defjvp_argnums(fun: Any, jvpmaker: Any) -> None:
    """As :func:`defjvp`."""
    _declared(fun)


def def_linear(fun: Any) -> None:
    """As :func:`defjvp`."""
    _declared(fun)


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
Box, VSpace = Refused("Box", _STRUCTURES), Refused("VSpace", _STRUCTURES)
vspace = Refused("vspace", "ask np.shape and np.result_type, or use zeros_like and ones_like")
SparseObject = Refused(
    "SparseObject", "declare the function with pullback.primitive; what is read by index is accumulated sparsely anyway"
)
JVPNode, VJPNode = (
    Refused("JVPNode", "look at pullback.record(f, *args)"),
    Refused("VJPNode", "look at pullback.record(f, *args)"),
)
register_notrace = Refused("register_notrace", "wrap the function with notrace_primitive")

__all__ = [
    "Box",
    "JVPNode",
    "SparseObject",
    "VJPNode",
    "VSpace",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "notrace_primitive",
    "primitive",
    "register_notrace",
    "vspace",
]
