"""The best schedule of a graph of unequal operations within a number of bytes: :func:`optimal_graph`."""

from collections.abc import Sequence
from typing import Any, Final

from attrs import frozen

from pullback.scheduling.graphs.graph_blocks import best_of_blocks, least_peak_of_blocks
from pullback.scheduling.graphs.graph_machine import COMPUTE, PULL, SEED, GraphMachine, Operations, Step
from pullback.scheduling.graphs.graph_program import best_of_program
from pullback.scheduling.graphs.graph_search import best_of_all
from pullback.scheduling.graphs.summary import summary
from pullback.words.byte_sizes import as_bytes
from pullback.words.errors import BudgetError, PolicyError

METHODS: Final = ("auto", "exact", "blocks", "milp")
SECONDS: Final = 60.0
"""The time that ``"milp"`` gets: it gives the best that it has found by then."""
MOST_STATES: Final = 200_000
FEW_STATES: Final = 5_000
"""States that the search may meet for ``"auto"``: a second or two."""
SMALL: Final = 30
"""Operations up to which ``"auto"`` searches."""


@frozen
class GraphSchedule:
    """What to do, in order; its machine has carried it out. Prints as a small table.

    Attributes
    ----------
    graph
        The operations, with their costs and sizes.
    steps
        What is done, in its order.
    max_bytes
        The most that may be held.
    cost
        That of all steps together.
    peak_bytes
        The most that is held.
    exact
        Whether the cost is the least of all schedules.

    Example
    -------
    >>> from pullback.schedules import optimal_graph
    >>> chain = {"pi": [[0], [], []], "po": [[], [0], [1]], "si": [[], [], []], "so": [[], [1], [2]]}
    >>> optimal_graph(isz=[2, 2], sz=[1, 1, 1], fc=[6, 3, 3], bc=[7, 8, 6], **chain, max_bytes=7).exact
    True
    """

    graph: Operations
    steps: tuple[Step, ...]
    max_bytes: int
    cost: float
    peak_bytes: int
    exact: bool

    @property
    def n_forward(self) -> int:
        """How many operations are computed, those that are computed again too."""
        return sum(step.name == COMPUTE for step in self.steps)

    def __str__(self) -> str:
        return summary(self, self.graph, f"graph of {self.graph.n} operations", "an operation")


def save_all_of(graph: Operations) -> list[Step]:
    """Every operation once."""
    n = graph.n
    return [*(Step(COMPUTE, v) for v in range(n)), Step(SEED, n - 1), *(Step(PULL, v) for v in reversed(range(n)))]


def optimal_graph(
    *,
    isz: Sequence[int],
    sz: Sequence[int],
    fc: Sequence[float],
    bc: Sequence[float],
    pi: Sequence[Sequence[int]],
    po: Sequence[Sequence[int]],
    si: Sequence[Sequence[int]],
    so: Sequence[Sequence[int]],
    max_bytes: Any,
    method: str = "auto",
) -> GraphSchedule:
    """The cheapest schedule of a graph of operations, in topological order, that takes no more than ``max_bytes``.

    The last operation is the result. A cotangent is as large as its value; those of the inputs stay.

    Parameters
    ----------
    isz
        Bytes of the inputs, which stay.
    sz
        Bytes that an operation makes.
    fc, bc
        Costs of an operation, and of its pullback.
    pi, po
        The inputs and the operations that an operation reads.
    si, so
        The inputs and the operations whose values its pullback reads.
    max_bytes
        A number or text (``"200 MB"``).
    method
        ``"exact"`` looks at every schedule: up to about 20 operations. ``"blocks"`` cuts the graph into blocks and
        mends the best schedule of their chain: for hundreds. On the small graphs of the tests that is 1.005 times the
        least cost on average and 1.11 at most; for a fifth of their budgets, those near the least feasible, it finds
        nothing. ``"milp"`` solves a mixed-integer program of about 2 n^3 variables with SciPy for a minute at most: the
        least cost where first computations and pullbacks keep to the order of the operations. ``"auto"`` searches as
        long as that is quick.

    Returns
    -------
    A :class:`GraphSchedule`.

    Raises
    ------
    BudgetError
        With ``minimum_bytes``, where nothing fits.
    PolicyError
        For lists that do not agree, and where a search would take too long.

    Example
    -------
    >>> from pullback.schedules import optimal_graph
    >>> chain = {"pi": [[0], [], []], "po": [[], [0], [1]], "si": [[], [], []], "so": [[], [1], [2]]}
    >>> print(optimal_graph(isz=[2, 2], sz=[1, 1, 1], fc=[6, 3, 3], bc=[7, 8, 6], **chain, max_bytes=7))
    schedule of a graph of 3 operations within 7 bytes
      cost        42  (1.27 of save-all)
      n_forward   5  (1.67 an operation)
      peak_bytes  7
      exact       True
    """
    if method not in METHODS:
        raise PolicyError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}.")
    graph = Operations(isz=isz, sz=sz, fc=fc, bc=bc, pi=pi, po=po, si=si, so=so)
    limit = as_bytes(max_bytes, "max_bytes")
    found = _found(graph, limit, method)
    if found is None:
        least = _least_bytes(graph, limit, method)
        raise BudgetError(
            f"max_bytes={max_bytes!r} is too little for this graph of {graph.n} operations: no schedule was found. "
            f"Allow at least {least:,} bytes.",
            least,
        )
    steps, exact = found
    machine = GraphMachine(graph, limit).carry_out(steps)
    return GraphSchedule(graph, tuple(steps), limit, machine.cost, machine.peak_bytes, exact)


def _found(graph: Operations, limit: int, method: str) -> tuple[list[Step], bool] | None:
    """The steps and whether they are the best, or None where nothing fits."""
    if GraphMachine(graph).carry_out(save_all_of(graph)).peak_bytes <= limit:
        return save_all_of(graph), True
    if method == "exact" or (method == "auto" and graph.n <= SMALL):
        searched = best_of_all(graph, limit, MOST_STATES if method == "exact" else FEW_STATES)
        if searched.complete:
            return None if searched.done is None else ([step for move in searched.done for step in move], True)
        if method == "exact":
            raise PolicyError(
                f"the schedules of this graph of {graph.n} operations are too many to look at all: more than "
                f'{MOST_STATES:,} states. Pass method="blocks".'
            )
    if method == "milp":
        return best_of_program(graph, limit, SECONDS)
    steps = best_of_blocks(graph, limit)
    return None if steps is None else (steps, False)


def _least_bytes(graph: Operations, limit: int, method: str) -> int:
    """The least of all where the search is quick, or else the least that is found."""
    most = GraphMachine(graph).carry_out(save_all_of(graph)).peak_bytes
    least = min(most, least_peak_of_blocks(graph))
    if method in ("blocks", "milp") or graph.n > SMALL:
        return least
    low = limit  # too little
    while least - low > 1:
        middle = (low + least) // 2
        if best_of_all(graph, middle, FEW_STATES).done is None:
            low = middle
        else:
            least = middle
    return least
