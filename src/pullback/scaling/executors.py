"""A sum over items by any executor of the standard library's form."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import closing
from functools import partial
from typing import Any

from attrs import define, field

from pullback.policies.base import PolicyOrAuto
from pullback.scaling.in_order import in_order
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
        is one for each gradient, so workers of one machine need theirs each; threads may share a ``BudgetPool``,
        processes one with a ``path``.
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
    tasks, at_once = Tasks(executor, Term.here(f, policy), x, items), _window(executor, window)
    with closing(in_order(tasks.futures(), lambda: at_once, tasks.any_done)) as futures:
        return tree_sum(map(tasks.part, futures), partial(plus, in_place=True))


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
    """The items as futures of the executor, and these as parts."""

    executor: Executor
    term: Term
    x: Any
    items: Iterable[Any]
    sent: dict[Future[Any], tuple[int, Any]] = field(factory=dict)
    """The number and the item of each that is under way. The item serves to say what could not be sent."""

    def futures(self) -> Iterator[Future[Any]]:
        """One for each item, sent when it is taken."""
        for number, item in enumerate(self.items):
            try:
                future = self.executor.submit(self.term.part_or_error, self.x, item, number)
            except Exception as error:
                raise self._explained(error, number, item) from error
            self.sent[future] = number, item
            yield future
            del future

    def any_done(self, under_way: set[Future[Any]]) -> set[Future[Any]]:
        """The futures that are done, at least one; the error of any of them is raised."""
        done = wait(under_way, return_when=FIRST_COMPLETED).done
        for future in done:
            self.part(future)
            del self.sent[future]
        return done

    def part(self, future: Future[Any]) -> Part:
        """What became of a future that is done."""
        try:
            part = future.result()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            raise self._explained(error, *self.sent[future]) from error
        if isinstance(part, Failed):
            raise part.raised()
        return part  # type: ignore[no-any-return]

    def _explained(self, error: BaseException, number: int, item: Any) -> WorkerError:
        sent = {"f": self.term.f, "policy": self.term.settings[0], "x": self.x, f"item {number}": item}
        return explained(error, sent)
