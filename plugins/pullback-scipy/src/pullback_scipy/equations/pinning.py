"""Solutions that SciPy finds, with the derivative of the equation that they solve: the way to them is not recorded."""

from collections.abc import Callable
from copy import copy
from functools import update_wrapper
from typing import Any

import numpy as np
from scipy.sparse import linalg

import pullback as pb

DENSE = 400
"""Unknowns up to which the matrix of a linear system is formed; beyond, GMRES needs products only."""


def pinned(plain: Callable[[], Any], formula: Callable[[], Any]) -> Any:
    """What ``plain()`` gives on plain values, with the derivative of ``formula()``, which equals it but for rounding or
    for the tolerance of a method."""
    return pb.custom_root(lambda x: x - formula(), 0.0, lambda f, guess: plain(), lambda g, y: y)


def solved(g: Callable[[Any], Any], y: Any) -> Any:
    """The v with g(v) = y, for a linear function of an array."""
    y = np.asarray(y)
    if y.ndim == 0:
        return y / g(np.ones_like(y))
    flat, n = y.reshape(-1), y.size

    def product(v: Any) -> Any:
        return np.asarray(g(v.reshape(y.shape))).reshape(-1)

    if n <= DENSE:
        matrix = np.stack([product(e) for e in np.eye(n, dtype=y.dtype)], axis=1) if n else np.zeros((0, 0))
        try:
            return np.linalg.solve(matrix, flat).reshape(y.shape)
        except np.linalg.LinAlgError:
            raise pb.NotDifferentiableError(
                "the derivative of the equations is singular at their solution, which then has none: the solution is "
                "not isolated, or it is a multiple root; change the equations so that each unknown is determined"
            ) from None
    x, info = linalg.gmres(linalg.LinearOperator((n, n), product, dtype=y.dtype), flat, rtol=1e-12, atol=0, restart=100)
    if info:
        raise pb.ConvergenceError(
            f"the linear system of {n} unknowns, which the derivative of a solution solves, did not converge by GMRES "
            "(rtol = 1e-12); write pullback.custom_root with a solver of your own (docs/implicit.md)",
            float(np.max(np.abs(product(x) - flat))),
        )
    return x.reshape(y.shape)


def separate(g: Callable[[Any], Any], y: Any) -> Any:
    """As :func:`solved`, for a function that works element by element."""
    return y / g(np.ones_like(y))


def plainly(f: Any) -> Any:
    """The function ``f`` on plain values, with its signature, of which SciPy asks how many parameters there are."""
    if f is None or not callable(f):
        return None
    return update_wrapper(lambda *args, **kwargs: plain(f(*args, **kwargs)), f)


def plain(x: Any) -> Any:
    """The plain values of a structure."""
    return pb.map_leaves(pb.value, x)


class Underived:
    """What stands for a part of a traced result that has no derivative: whatever is done with it raises."""

    def __init__(self, message: str) -> None:
        self.__message = message

    def __refuse(self, *_: Any, **__: Any) -> Any:
        raise pb.NotDifferentiableError(self.__message)

    __call__ = __getitem__ = __iter__ = __len__ = __array__ = __refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = __neg__ = __refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__refuse()


def result(found: Any, without: tuple[str, ...] = (), instead: str = "", **changed: Any) -> Any:
    """A copy of SciPy's result with other entries; those ``without`` a derivative raise where they are used."""
    made = copy(found)
    made.update(changed)
    for name in without:
        if made.get(name) is not None:
            made[name] = Underived(
                f"the entry {name!r} of this result has no derivative here; {instead}, or take it from a call of "
                "pullback.value(...) of what is traced"
            )
    return made


def refuse_option(title: str, name: str, instead: str) -> None:
    """Raise :class:`pullback.NotDifferentiableError` for an option without a derivative."""
    raise pb.NotDifferentiableError(f"{title}: with {name} there is no derivative here; {instead}")
