"""The communications as primitives: each has the adjoint of another one as its rule, so that derivatives of any order
communicate on every rank alike.

``via`` is what a primitive communicates over: the route of rows, or the channel and the division.
"""

from typing import Any

import numpy as np
from attrs import frozen

import pullback as pb
from pullback_mpi import collectives
from pullback_mpi.channel import Channel
from pullback_mpi.exchanges import ADJOINTS, UnderWay
from pullback_mpi.grid import Grid


@frozen(eq=False)
class Division:
    """What the primitives that all ranks take part in communicate over."""

    channel: Channel
    grid: Grid
    under_way: UnderWay


def communication(forward: Any) -> pb.Primitive:
    """A primitive of one operand, in which it is linear; its name is that of the function."""
    name = f"mpi_{forward.__name__}"
    made: pb.Primitive = pb.primitive(forward, name=name, collective=True, guarded=False, linear=("x",))
    return made


# ------------------------------------------------------------------------------------------------------------ exchanges
@communication
def swap(x: Any, *, via: Any, kind: Any) -> Any:
    """Rows of the neighbours, for rows of this rank."""
    return via.begun(kind, x).arrived()


@communication
def start(x: Any, *, via: Any, kind: Any, which: Any, division: Any) -> Any:
    """Rows are on their way to the neighbours; the token stands for those that are to come. ``which`` exchange it is of
    those under way tells one that goes back from another."""
    return division.under_way.put(via.begun(kind, x, which))


@communication
def finish(x: Any, *, via: Any, kind: Any, which: Any, division: Any) -> Any:
    """The rows that a token stands for."""
    return division.under_way.take(x).arrived()


@swap.vjp("x")
def _(ct: Any, via: Any, kind: Any) -> Any:
    return swap(ct, via=via, kind=ADJOINTS[kind])


@start.vjp("x")
def _(ct: Any, via: Any, kind: Any, which: Any, division: Any) -> Any:
    return finish(ct, via=via, kind=ADJOINTS[kind], which=which, division=division)


@finish.vjp("x")
def _(ct: Any, via: Any, kind: Any, which: Any, division: Any) -> Any:
    return start(ct, via=via, kind=ADJOINTS[kind], which=which, division=division)


# ---------------------------------------------------------------------------------------------------------- collectives
@communication
def total(x: Any, *, via: Any) -> Any:
    """The sum over the ranks, on each."""
    return collectives.total(via.channel, x)


@communication
def shared(x: Any, *, via: Any) -> Any:
    """What every rank holds, as a value of each."""
    return collectives.shared(via.channel, x)


@communication
def gather(x: Any, *, via: Any, root: Any) -> Any:
    """The whole that the parts make."""
    return collectives.gather(via.channel, via.grid, x, root)


@communication
def scatter(x: Any, *, via: Any, root: Any, part: Any) -> Any:
    """The part of each rank of a whole."""
    return collectives.scatter(via.channel, via.grid, x, root, part)


@communication
def spread(x: Any, *, via: Any, root: Any) -> Any:
    """What the root has, as a value of each."""
    return collectives.bcast(via.channel, x, root)


@communication
def collect(x: Any, *, via: Any, root: Any, like: Any) -> Any:
    """The sum over the ranks on the root, elsewhere zeros of a shape of its own."""
    found = collectives.total(via.channel, x)
    return found if via.channel.rank == root else np.zeros(like, np.asarray(found).dtype)[()]


@total.vjp("x")
def _(ct: Any, via: Any) -> Any:
    return shared(ct, via=via)


@shared.vjp("x")
def _(ct: Any, via: Any) -> Any:
    return total(ct, via=via)


@scatter.vjp("x")
def _(ct: Any, via: Any, root: Any, x_spec: Any) -> Any:
    whole = gather(ct, via=via, root=root)
    return whole if root is None or root == via.channel.rank else np.zeros_like(whole, shape=x_spec.shape)


@gather.vjp("x")
def _(ct: Any, via: Any, root: Any, x_spec: Any) -> Any:
    return scatter(ct, via=via, root=root, part=x_spec.shape)


@spread.vjp("x")
def _(ct: Any, via: Any, root: Any, x_spec: Any) -> Any:
    return collect(ct, via=via, root=root, like=x_spec.shape)


@collect.vjp("x")
def _(ct: Any, via: Any, root: Any, like: Any) -> Any:
    return spread(ct, via=via, root=root)


PRIMITIVES = (swap, start, finish, total, shared, gather, scatter, spread, collect)
