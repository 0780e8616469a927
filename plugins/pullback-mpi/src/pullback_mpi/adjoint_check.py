"""The dot-product test of a divided program: its adjoint is that of its tangent, over all ranks together."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback as pb
from pullback_mpi.channel import Channel
from pullback_mpi.collectives import bcast, total

TOLERANCE = 1e4
"""The difference that the two products may have: so many times the precision of the least precise array, of the sum of
the sizes of what is added up."""


def dot_products(
    channel: Channel, f: Callable[..., Any], args: Sequence[Any], replicated: Sequence[int], *, replicated_out: bool
) -> tuple[float, float, float]:
    """``<ct, J t>`` and ``<J' ct, t>`` for random t and ct, and what they may differ by: the same on every rank."""
    tangents = tuple(_drawn(x, k, None if k in replicated else channel.rank) for k, x in enumerate(args))
    out, tangent = pb.jvp(f, tuple(args), tangents)
    ct = _drawn(out, len(args), None if replicated_out else channel.rank)
    _, pull = pb.vjp(f, *args)
    gradients = pull(ct)
    forward, size = _product(channel, ct, tangent, replicated=replicated_out)
    reverse = 0.0
    for k, (g, t) in enumerate(zip(gradients, tangents, strict=True)):
        product, more = _product(channel, g, t, replicated=k in replicated)
        reverse, size = reverse + product, size + more
    precision = max((np.finfo(np.asarray(leaf).dtype).eps for leaf in _leaves((ct, gradients))), default=0.0)
    return forward, reverse, TOLERANCE * float(precision) * size


def require_equal(forward: float, reverse: float, apart: float) -> None:
    """Nothing where the two products are; else CheckError."""
    if not abs(forward - reverse) <= apart:
        raise pb.CheckError(
            f"check_adjoint: <ct, J t> is {forward!r} and <J' ct, t> is {reverse!r} over all ranks. Is an argument or "
            "the output replicated, and not said to be? Is a replicated value used without shared?"
        )


def _drawn(x: Any, place: int, rank: int | None) -> Any:
    """Random numbers in the places of an argument's floating leaves; the same on every rank where none is given."""
    rng = np.random.default_rng((place, 0 if rank is None else rank + 1))

    def drawn(leaf: Any) -> Any:
        array = np.asarray(leaf)
        if array.dtype.kind not in "fc":
            return None
        values = rng.standard_normal(array.shape)
        if array.dtype.kind == "c":
            values = values + 1j * rng.standard_normal(array.shape)
        return values.astype(array.dtype)[()]

    return pb.map_leaves(drawn, x)


def _product(channel: Channel, a: Any, b: Any, *, replicated: bool) -> tuple[float, float]:
    """The real part of the sum of products of leaves, and the sum of their sizes: over the ranks, or once."""
    found = np.zeros(2)
    for leaf, other in zip(_leaves(a), _leaves(b), strict=True):
        products = np.real(np.asarray(leaf, np.complex128) * np.asarray(other))
        found += np.sum(products), np.sum(np.abs(products))
    found = bcast(channel, found, 0) if replicated else total(channel, found)
    return float(found[0]), float(found[1])


def _leaves(tree: Any) -> list[Any]:
    """The leaves of a structure that are numbers."""
    found: list[Any] = []
    pb.map_leaves(found.append, tree)
    return [leaf for leaf in found if leaf is not None]
