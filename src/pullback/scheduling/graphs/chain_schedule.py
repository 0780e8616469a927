"""The best schedule of a chain of unequal stages within a number of bytes: :func:`optimal_chain`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

from pullback.scheduling.graphs.chain_machine import BWD, FWD, LOSS, TAPE, Chain, ChainMachine, Stage
from pullback.scheduling.graphs.chain_search import best_chain_of_all
from pullback.scheduling.graphs.chain_table import chain_table
from pullback.scheduling.graphs.summary import summary
from pullback.words.byte_sizes import as_bytes
from pullback.words.errors import BudgetError, PolicyError

MOST_STATES = 300_000
SLOTS = 1_000


@frozen
class ChainSchedule:
    """What to do, in order; its machine has carried it out. Prints as a small table.

    Attributes
    ----------
    chain
        The stages, with their costs and sizes.
    steps
        What is done, in its order.
    max_bytes
        The most that may be held.
    cost
        That of all steps together.
    peak_bytes
        The most that is held.
    exact
        Whether the cost is the least, of all schedules or of the persistent ones as asked; not where sizes
        were rounded.

    Example
    -------
    >>> from pullback.schedules import optimal_chain
    >>> optimal_chain(a=[5, 4, 5], abar=[8, 10], uf=[5, 5], ub=[9, 8], max_bytes=24).n_forward
    3
    """

    chain: Chain
    steps: tuple[Stage, ...]
    max_bytes: int
    cost: float
    peak_bytes: int
    exact: bool

    @property
    def n_forward(self) -> int:
        """How many stages are run forward, with a tape or without."""
        return sum(step.name in (FWD, TAPE) for step in self.steps)

    def __str__(self) -> str:
        return summary(self, self.chain, f"chain of {self.chain.n} stages", "a stage")


def save_all_of(chain: Chain) -> list[Stage]:
    """Every stage once."""
    stages = range(1, chain.n + 1)
    return [*(Stage(TAPE, i) for i in stages), Stage(LOSS, chain.n), *(Stage(BWD, i) for i in reversed(stages))]


def optimal_chain(
    *,
    a: Sequence[int],
    abar: Sequence[int],
    uf: Sequence[float],
    ub: Sequence[float],
    of: Sequence[int] | None = None,
    ob: Sequence[int] | None = None,
    max_bytes: Any,
    persistent: bool = True,
) -> ChainSchedule:
    """The cheapest schedule of a chain of unequal stages that takes no more than ``max_bytes``.

    Stage i = 1 .. L makes x_i from x_(i-1).

    Parameters
    ----------
    a
        Bytes of x_0 .. x_L, and of their cotangents. The other lists begin with stage 1.
    abar
        Bytes of the tape of a stage, x_i among them.
    uf, ub
        Costs of a stage, forward and back, in any unit.
    of, ob
        Bytes that a stage takes besides while it runs forward, or back (default: 0).
    max_bytes
        A number or text (``"200 MB"``).
    persistent
        What is kept stays until it is used. That is a table of L^2 columns, made in O(L^3) array operations of up to
        1,000 units; where the greatest common divisor of the sizes is more than 1,000 times in ``max_bytes``, sizes are
        rounded up to a thousandth of it, so that the bytes hold. False looks at every schedule, for chains of about ten
        stages.

    Returns
    -------
    A :class:`ChainSchedule`.

    Raises
    ------
    BudgetError
        With ``minimum_bytes``, where nothing fits.
    PolicyError
        For lists that do not agree, and where a search would take too long.

    Example
    -------
    >>> from pullback.schedules import optimal_chain
    >>> print(optimal_chain(a=[5, 4, 5], abar=[8, 10], uf=[5, 5], ub=[9, 8], max_bytes=24))
    schedule of a chain of 2 stages within 24 bytes
      cost        32  (1.19 of save-all)
      n_forward   3  (1.50 a stage)
      peak_bytes  24
      exact       True
    """
    zeros = (0,) * len(abar)
    chain = Chain(a=a, abar=abar, uf=uf, ub=ub, of=zeros if of is None else of, ob=zeros if ob is None else ob)
    limit = as_bytes(max_bytes, "max_bytes")
    found = _of_table(chain, limit) if persistent else _of_search(chain, limit)
    if found is None:
        least = _least_bytes(chain)
        raise BudgetError(
            f"max_bytes={max_bytes!r} is too little for this chain of {chain.n} stages. Allow at least {least:,} "
            "bytes.",
            least,
        )
    steps, exact = found
    machine = ChainMachine(chain, limit).carry_out(steps)
    return ChainSchedule(chain, tuple(steps), limit, machine.cost, machine.peak_bytes, exact)


def _of_table(chain: Chain, limit: int) -> tuple[list[Stage], bool] | None:
    whole = ChainMachine(chain).carry_out(save_all_of(chain)).peak_bytes
    if whole <= limit:
        return save_all_of(chain), True
    table = chain_table(chain, limit, SLOTS)
    if chain.a[0] > limit or not np.isfinite(table.cost()[table.units]):
        return None
    return table.steps(table.units), table.exact


def _of_search(chain: Chain, limit: int) -> tuple[list[Stage], bool] | None:
    found = best_chain_of_all(chain, limit, MOST_STATES)
    if not found.complete:
        raise PolicyError(
            f"the schedules of this chain of {chain.n} stages are too many to look at all: more than {MOST_STATES:,} "
            "states. Leave persistent=False out."
        )
    return None if found.done is None else ([step for move in found.done for step in move], True)


def _least_bytes(chain: Chain) -> int:
    """The least for which the table has a schedule: that of any schedule where the sizes are not rounded."""
    limit = ChainMachine(chain).carry_out(save_all_of(chain)).peak_bytes
    table = chain_table(chain, limit, SLOTS)
    fits = np.isfinite(table.cost())
    if not fits.any():
        return limit
    least = chain.a[0] + int(fits.argmax()) * table.unit
    while least < limit and _of_table(chain, least) is None:  # rounded otherwise, it may not fit
        least += table.unit
    return min(least, limit)
