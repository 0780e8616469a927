"""Programs that look at a run by nodes of their own: autograd's ``Node`` and ``trace``, apart from differentiation.

A value of the run is an :class:`Observed` array: NumPy hands it each of its calls, which is carried out on the values
behind, and the program's node is made of it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

import pullback as pb


class Node:
    """What a program derives its nodes from: ``__init__`` makes that of a call, ``initialize_root`` an input's."""

    def __init__(self, value: Any, fun: Any, args: Any, kwargs: Any, parent_argnums: Any, parents: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__} needs __init__(value, fun, args, kwargs, parent_argnums, parents)"
        )

    def initialize_root(self, *args: Any, **kwargs: Any) -> None:
        """The node of an input; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__} needs initialize_root")

    @classmethod
    def new_root(cls, *args: Any, **kwargs: Any) -> "Node":
        """The node of an input."""
        root = cls.__new__(cls)
        root.initialize_root(*args, **kwargs)
        return root


class Observed(NDArrayOperatorsMixin):
    """A value of a run that is looked at, and its node."""

    def __init__(self, value: Any, node: Any) -> None:
        self._value, self._node = value, node

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return noted(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return noted(func, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        return noted(_item, (self, index), {})

    def __bool__(self) -> bool:
        return bool(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._value, name)
        if not callable(found):
            return noted(np.transpose, (self,), {}) if name == "T" else found
        return lambda *args, **kwargs: noted(_method(name), (self, *args), kwargs)


def _item(x: Any, index: Any) -> Any:
    return x[index]


def _method(name: str) -> Callable[..., Any]:
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, name)(*args, **kwargs)

    call.__name__ = name
    return call


def noted(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The value of a call and its node. Observed values inside of lists or by keyword are taken as plain ones."""
    argnums = [k for k, a in enumerate(args) if isinstance(a, Observed)]
    parents = [node_of(args[k]) for k in argnums]
    plain, named = pb.map_leaves(_behind, (args, kwargs))
    value = fun(*plain, **named)
    if not parents:
        return value
    return Observed(value, type(parents[0])(value, fun, plain, named, argnums, parents))


def node_of(x: Observed) -> Any:
    """The program's node of a value."""
    return vars(x)["_node"]


def _behind(x: Any) -> Any:
    return vars(x)["_value"] if isinstance(x, Observed) else x


def trace(start_node: Any, fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """``(value, node)`` of ``fun(x)``, a node of ``start_node``'s class made for each of NumPy's calls on the way; the
    node is None where the value does not depend on ``x``.

    Operators of :mod:`pullback_autograd` inside of ``fun`` are not looked into.
    """
    out = fun(Observed(x, start_node))
    return _behind(out), node_of(out) if isinstance(out, Observed) else None


__all__ = ["Node", "Observed", "trace"]
