"""Small functions that programs take from ``autograd.util``."""

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pullback_autograd.test_util import check_grads


def subvals(x: Iterable[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """``x`` as a tuple with other values at some places."""
    values = list(x)
    for place, value in ivs:
        values[place] = value
    return tuple(values)


def subval(x: Iterable[Any], i: int, v: Any) -> tuple[Any, ...]:
    """``x`` as a tuple with ``v`` at place ``i``."""
    return subvals(x, [(i, v)])


def func(f: Any) -> Any:
    """``f``."""
    return f


def toposort(end_node: Any, parents: Callable[[Any], Any] = operator.attrgetter("parents")) -> Iterator[Any]:
    """The nodes below ``end_node``, each after all that read it."""
    readers: dict[Any, int] = {}
    stack = [end_node]
    while stack:
        node = stack.pop()
        readers[node] = readers.get(node, 0) + 1
        if readers[node] == 1:
            stack.extend(parents(node))
    ready = [end_node]
    while ready:
        node = ready.pop()
        yield node
        for parent in parents(node):
            readers[parent] -= 1
            if not readers[parent]:
                ready.append(parent)


def quick_grad_check(
    fun: Callable[..., Any], arg0: Any, extra_args: Any = (), kwargs: Any = None, **_tolerances: Any
) -> None:
    """Raises :class:`CheckError` unless the gradient in the first argument equals a numeric one."""
    check_grads(lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)


__all__ = ["func", "quick_grad_check", "subval", "subvals", "toposort"]
