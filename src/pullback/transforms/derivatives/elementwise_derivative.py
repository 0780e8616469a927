"""``elementwise_grad``: the derivative of each element of the output in the element of the argument at its place."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.policies.base import PolicyOrAuto
from pullback.recording.handles import value
from pullback.transforms.derivatives.argnums import chosen, function_of_chosen, name_of
from pullback.transforms.derivatives.reverse import vjp
from pullback.travelling.made_functions import made
from pullback.words.call_sites import public
from pullback.words.errors import NotDifferentiableError
from pullback.words.specs import carries_derivative, spec_of

LEVELS = 42
"""Weights are plus and minus 2**-10 to 2**10: 42 numbers, each exact in float16."""


def elementwise_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    policy: PolicyOrAuto = None,
) -> Callable[..., Any]:
    """A function that returns the derivative of each element of the output of ``f`` in the element of the argument that
    it is made of. It is the pull of ones.

    Parameters
    ----------
    f
        Takes and returns arrays.
    argnums, argnames
        The argument, or several: as in :func:`value_and_grad`.
    policy
        What is kept between forward and reverse (default: the policy in force).

    Returns
    -------
    A function of the arguments of ``f``. Its result has the shape of the output, to which a smaller argument is
    broadcast first, and the dtype of the argument (a tuple for several numbers, a dict for several names).

    Raises
    ------
    NotDifferentiableError
        Where ``f`` is not elementwise: where the output has no shape to which the argument can be broadcast, and where
        an element of it depends on others, which a second pull, of weights, tells; and for a complex output.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> pb.elementwise_grad(np.square)(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    which = chosen(argnums, argnames)

    def derivative(*args: Any, **kwargs: Any) -> Any:
        function, args, kwargs, where = which.call(f, args, kwargs)
        for k in where:
            if not carries_derivative(args[k]):
                kind = spec_of(args[k]) if isinstance(args[k], np.ndarray | int) else type(args[k]).__name__
                raise NotDifferentiableError(
                    f"argument {k} of {name_of(f)} is {kind}; elementwise_grad is for floating arrays, convert "
                    "it or take jacobian"
                )
        out, pull = _pull_at(function, args, kwargs, where, policy)
        shape = np.shape(out)
        if any(np.shape(args[k]) != shape for k in where):
            pull.close()
            args = tuple(_broadcast(function, a, shape) if k in where else a for k, a in enumerate(args))
            out, pull = _pull_at(function, args, kwargs, where, policy)
        dtype = getattr(out, "dtype", np.dtype(float))
        if np.shape(out) != shape or dtype.kind != "f":
            result = f"{dtype}{list(np.shape(out))} for arguments of shape {shape}"
            raise NotDifferentiableError(
                f"elementwise_grad is for real elementwise functions, {name_of(f)} gave {result}; use jacobian"
            )
        slopes = pull(np.ones(shape, dtype))
        weights = _weights(shape, dtype)
        for k, slope, weighted in zip(where, slopes, pull(weights), strict=True):
            _require_diagonal(f, k, weights, value(slope), value(weighted))
        pull.close()
        return which.structured(slopes)

    call = public(derivative, like=f)
    return made("elementwise_grad", f, call, argnums=argnums, argnames=argnames, policy=policy)


def _pull_at(f: Any, args: tuple[Any, ...], kwargs: Any, where: Sequence[int], policy: Any) -> tuple[Any, Any]:
    """The output and the pull of a function of the chosen arguments alone."""
    out, pull = vjp(function_of_chosen(f, args, kwargs, where), *(args[k] for k in where), policy=policy)
    if not hasattr(out, "shape") and not isinstance(out, float):
        raise NotDifferentiableError(
            f"elementwise_grad is for functions that return an array, {name_of(f)} returned "
            f"{type(out).__name__}; use jacobian"
        )
    return out, pull


def _broadcast(f: Any, array: Any, shape: tuple[int, ...]) -> Any:
    """An array broadcast to a shape."""
    try:
        return np.broadcast_to(array, shape).copy()
    except ValueError:
        raise NotDifferentiableError(
            f"{name_of(f)} is not elementwise: it made an output of shape {shape} of an argument of shape "
            f"{np.shape(array)}, which cannot be broadcast to it; use jacobian, or vjp with the cotangent that you mean"
        ) from None


def _weights(shape: tuple[int, ...], dtype: Any) -> Any:
    """Signed powers of two, all different within each row of 42 neighbours. A product with one keeps every digit."""
    size = int(np.prod(shape, dtype=np.intp))
    rounds = np.tile(np.arange(LEVELS), (-(-size // LEVELS), 1))
    level = np.random.default_rng(0).permuted(rounds, axis=1).ravel()[:size]
    return (np.where(level % 2, -1.0, 1.0) * 2.0 ** (level // 2 - LEVELS // 4)).reshape(shape).astype(dtype)


def _require_diagonal(f: Any, number: int, weights: Any, slope: Any, weighted: Any) -> None:
    """Raise :class:`NotDifferentiableError` unless the cotangent of each element is its own weight times its slope."""
    with np.errstate(all="ignore"):
        expected = weights * slope
        gap = np.abs(weighted - expected)
        allowed = 1e-6 * np.abs(expected) + 2.0**12 * float(np.finfo(slope.dtype).smallest_subnormal)
        wrong = np.argwhere(np.isfinite(gap) & (gap > allowed))
    if len(wrong):
        place = tuple(map(int, wrong[0]))
        raise NotDifferentiableError(
            f"{name_of(f)} is not elementwise: element {place} of argument {number} reaches other elements of the "
            "output than its own; use jacobian, or vjp with the cotangent that you mean"
        )
