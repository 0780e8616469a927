"""A sum over items by any executor of the standard library's form."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import closing
from functools import partial
from typing import Any

from attrs import define, field

from pullback.memory.in_force import policy_in_force
from pullback.policies.base import PolicyOrAuto
from pullback.scaling.terms import Failed, Part, Term, plus
from pullback.scaling.transport import explained
from pullback.scaling.trees import tree_sum
from pullback.words.call_sites import public
from pullback.words.errors import PolicyError, WorkerError

WINDOW = 16
"""Tasks under way at once where the executor does not tell how many workers it has."""


@public
def over_executor(
    executor: Executor,
    f: Callable[[Any, Any], Any],
    x: Any,
    items: Iterable[Any],
    *,
    policy: PolicyOrAuto = None,
    window: int | None = None,
) -> tuple[Any, Any]:
    """``(value, gradient)`` of the sum of ``f(x, item)`` over the items, each item a task of the executor.

    Parameters
    ----------
    executor
        Any ``concurrent.futures.Executor``: of threads, of processes, loky's, ``client.get_executor()`` of Dask,
        ``MPIPoolExecutor`` of mpi4py.
    f
        A function of ``x`` and one item that returns a real scalar. For processes it must be one that their executor
        can send: the standard library's sends functions at the top of a module, loky's and Dask's any.
    x
        An array or any structure of arrays; the gradient has the same structure. It is sent with every item.
    items
        Any iterable; taken one by one, when their turn comes.
    policy
        Of the gradient of each item, by default the one in force, as is all else that ``using`` says. A limit in bytes
        is one for each gradient, so workers of one machine need theirs each; threads may share a ``BudgetPool``.
    window
        How many items may be on their way at once, by default two for each worker. The calling process holds that many
        gradients and ``log2(n) + 1`` sums at most.

    Returns
    -------
    The same bits for every executor, number of workers and window, and whatever is finished first: the parts are added
    in a fixed tree (:func:`pullback.scaling.tree_sum`), not from left to right.

    Raises
    ------
    The error of ``f``, of its own class, with the number of the item and the line where it was raised, as soon as one
    item fails; what has not begun is cancelled. :class:`WorkerError` where something cannot be pickled, a worker dies
    or the executor is closed; :class:`PullbackError` where there are no items.

    Examples
    --------
    >>> import numpy as np
    >>> import pullback as pb
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> def misfit(x, shot):
    ...     return np.sum((x - shot)**2)
    >>> with ThreadPoolExecutor(2) as pool:
    ...     pb.over_executor(pool, misfit, np.zeros(2), [1.0, 2.0, 3.0])
    (np.float64(28.0), array([-12., -12.]))
    """
    if not isinstance(executor, Executor):
        hint = "its get_executor()" if hasattr(executor, "get_executor") else "one, such as ThreadPoolExecutor(2)"
        raise WorkerError(f"executor= takes a concurrent.futures.Executor, got {type(executor).__name__}; pass {hint}")
    tasks = Tasks(executor, Term.here(f, policy), x, iter(items), _window(executor, window))
    with closing(tasks.parts()) as parts:
        return tree_sum(parts, partial(plus, in_place=True))


def _window(executor: Executor, window: int | None) -> int:
    if window is None:
        # What loky's, mpi4py's and the standard library's pools call it.
        workers = getattr(executor, "num_workers", None) or getattr(executor, "_max_workers", None)
        return 2 * workers if isinstance(workers, int) else WINDOW
    if not isinstance(window, int) or isinstance(window, bool) or window < 1:
        raise PolicyError(f"window= takes a whole number from 1 on, got {window!r}")
    return window


@define(eq=False)
class Tasks:
    """The items on their way, in order. Not more than ``window`` of them: what is done waits for those before it."""

    executor: Executor
    term: Term
    x: Any
    items: Iterator[Any]
    window: int
    waiting: deque[tuple[int, Any, Future[Any]]] = field(factory=deque)
    """Number, item and future. The item serves to say what could not be sent."""
    unseen: dict[Future[Any], tuple[int, Any]] = field(factory=dict)
    """Those of them of which it is not known how they ended."""
    n: int = 0

    def parts(self) -> Generator[Part, None, None]:
        """The parts in the order of the items. When the generator is closed, what has not begun is cancelled."""
        try:
            while self._fill():
                self._wait_for_first()
                yield self._part(*self.waiting.popleft())
        finally:
            for _, _, future in self.waiting:
                future.cancel()

    def _fill(self) -> bool:
        """Send items until the window is full; whether any are on their way."""
        while len(self.waiting) < self.window:
            try:
                item = next(self.items)
            except StopIteration:
                break
            try:
                future = self.executor.submit(self.term.part_or_error, self.x, item, self.n)
            except Exception as error:
                raise self._explained(error, self.n, item) from error
            self.waiting.append((self.n, item, future))
            self.unseen[future] = self.n, item
            self.n += 1
        return bool(self.waiting)

    def _wait_for_first(self) -> None:
        """Until the first is done; an error of any other, which comes sooner, is raised at once."""
        while self.waiting[0][2] in self.unseen:
            for future in wait(self.unseen, return_when=FIRST_COMPLETED).done:
                self._part(*self.unseen.pop(future), future)

    def _part(self, number: int, item: Any, future: Future[Any]) -> Part:
        try:
            part = future.result()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise self._explained(error, number, item) from error
        if isinstance(part, Failed):
            raise part.raised()
        return part  # type: ignore[no-any-return]

    def _explained(self, error: BaseException, number: int, item: Any) -> WorkerError:
        policy = policy_in_force(self.term.settings[0])
        return explained(error, {"f": self.term.f, "policy": policy, "x": self.x, f"item {number}": item})
