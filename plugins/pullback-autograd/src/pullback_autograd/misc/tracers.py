"""``const_graph``: what autograd gives to programs whose graph is always the same."""

from collections.abc import Callable
from functools import partial
from typing import Any


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """``fun`` with these first arguments; it runs at each call, so that its graph need not be constant.

    A function whose graph is constant is made faster by ``pullback.staged``.
    """
    return partial(fun, *args, **kwargs)


__all__ = ["const_graph"]
