"""A sum over items on a cluster of Dask: its value and its gradient, added up on the workers."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, Self

from distributed import Client, Future

import pullback as pb
from pullback.scaling import Term, explained
from pullback_dask.batches import batch_size, pickled, pickled_batches
from pullback_dask.clusters import local_client, moved_by, require_open
from pullback_dask.environment import settings_of_worker, warn_of
from pullback_dask.progress import Progress, checked, shown
from pullback_dask.runs import Run, all_held, submitted
from pullback_dask.tasks import held

ENGINES = ("distributed", "concurrent", "asyncio")
"""Packages whose errors say that the cluster failed, not the function."""


class SumOverItems:
    """Value and gradient of the sum of ``f(x, item)`` over the items, on the workers of a cluster of Dask.

    ``total.value_and_grad(x)`` returns ``(value, gradient)``, as often as it is called. The parts are added on the
    workers, in a fixed pairwise tree (``pullback.scaling.tree_sum``): the bits are the same for every number of workers
    and threads, every batch, whatever is finished first and whichever worker dies. One gradient comes to the caller,
    and the cluster holds no more than two for each thread and ``log2(n)``.

    Parameters
    ----------
    f
        A function of ``x`` and one item that returns a real scalar. Any function can be sent; what it imports must be
        on the workers.
    items
        Any iterable, taken up at once. The scheduler keeps the items, pickled, so that those of a dead worker go to
        another one. Where they are too large for that, give names of files, and ``load``.
    policy
        Of the gradient of each item, by default the one in force, as is all else that ``using`` says where the sum is
        made. A limit in bytes is one for each thread of a worker.
    client
        A ``distributed.Client``, which stays open, such as that of a cluster of ``dask_jobqueue``. None: a local
        cluster, which ``close()`` ends.
    load
        ``f`` gets ``load(item)``, called by the worker for every item in every call; nothing of it is kept.
    batch
        How many items a task has, a power of two. By default as many as make 1,024 tasks at most; from the second
        call on as many as took 0.2 seconds in the call before, as long as there are four tasks for each thread.
    progress
        True for a bar, or a function ``progress(n_done, n_items)``.
    workers
        How many processes the local cluster has, with one thread each; by default one for each processor.

    Raises
    ------
    ``value_and_grad`` raises the error of ``f`` as soon as one item fails, of its own class, with the number of the
    item and the line; what has not begun is cancelled. :class:`pullback.WorkerError` where something cannot be pickled,
    several workers die of one task, or the client is closed.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback_dask import SumOverItems
    >>> def misfit(x, shot):
    ...     return np.sum((x - shot)**2)
    >>> with SumOverItems(misfit, [1.0, 2.0, 3.0], workers=1) as total:  # doctest: +SKIP
    ...     total.value_and_grad(np.zeros(2))
    (np.float64(28.0), array([-12., -12.]))
    """

    def __init__(
        self,
        f: Callable[[Any, Any], Any],
        items: Iterable[Any],
        *,
        policy: Any = None,
        client: Client | None = None,
        load: Callable[[Any], Any] | None = None,
        batch: int | None = None,
        progress: Progress = False,
        workers: int | None = None,
    ) -> None:
        given = list(items)
        if not given:
            raise pb.PullbackError("there are no items, and so no sum: give at least one")
        self.n_items, self.batch, self.is_fixed = len(given), batch_size(len(given), batch), batch is not None
        self.seconds: float | None = None
        """What all items took in the last sum."""
        self.term, self.progress = Term.here(f, policy, load), checked(progress)
        term = pickled(self.term, f=f, policy=self.term.settings[0], load=load)
        batches = list(pickled_batches(given, self.batch))
        self.sent_bytes, self.has_warned = 0, False
        self.until: ExitStack = ExitStack()
        """What ends with the sum: the local cluster."""
        with ExitStack() as on_error:
            on_error.callback(self.close)
            self.client = local_client(workers, self.until) if client is None else client
            require_open(self.client)
            self.moved_before: int = sum(self.client.run(moved_by).values())
            self.held_term: Future[Any] | None = self.hold("term", term)
            # What a name of a file stands for is not held; the name goes with its task.
            self.batches: Sequence[Any] = batches if load else all_held(self.client, "items", batches)
            self.sent_bytes += 0 if load else sum(map(len, batches))
            self.warn_of_workers()
            on_error.pop_all()

    def value_and_grad(self, x: Any) -> tuple[Any, Any]:
        """``(value, gradient)`` of the sum.

        Parameters
        ----------
        x
            Where: an array or any structure of arrays.

        Returns
        -------
        The value, a scalar, and the gradient, of the structure of ``x``. SciPy's ``minimize`` takes this method with
        ``jac=True``.

        Raises
        ------
        What ``f`` raises
            With the number of the item and the user's line.
        WorkerError
            Where ``x`` cannot be pickled, several workers die of one task, or the sum or its client is closed.
        """
        if self.held_term is None:
            raise pb.WorkerError("the sum is closed: make it anew")
        require_open(self.client)
        self.warn_of_workers()
        sent = pickled(x, x=x)
        try:
            with self.client.as_current(), shown(self.progress, self.n_items) as tell:
                held_x = self.hold("x", sent)
                of_batch = None if self.is_fixed or self.seconds is None else self.seconds / len(self.batches)
                run = Run(self.client, self.held_term, held_x, self.batches, self.batch, self.n_items, tell, of_batch)
                total, self.seconds = run.total()
                return total  # type: ignore[no-any-return]
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in ENGINES:
                raise
            raise explained(error, {}) from error

    @property
    def moved_bytes(self) -> int:
        """What was sent since the sum was made: by the caller, and by the workers that are alive to each other and
        back, as the parts of other work of theirs."""
        moved: int = sum(self.client.run(moved_by).values())
        return self.sent_bytes + moved - self.moved_before

    def close(self) -> None:
        """Let go of what the workers hold for this sum, and end the cluster if it is its own. May be called twice."""
        self.held_term, self.batches = None, ()
        self.until.close()

    def hold(self, name: str, sent: bytes) -> Future[Any]:
        """A task whose result is what was sent."""
        self.sent_bytes += len(sent)
        return submitted(self.client, name, held, sent)

    def warn_of_workers(self) -> None:
        """Once, when there are workers."""
        if not self.has_warned and (settings := self.client.run(settings_of_worker)):
            self.has_warned = True
            warn_of(settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        name = getattr(self.term.f, "__qualname__", repr(self.term.f))
        policy = self.term.settings[0]
        return (
            f"SumOverItems({name}, {self.n_items} items"
            + (f", batch={self.batch}" if self.batch > 1 else "")
            + ("" if policy is None else f", policy={policy!r}")
            + f", client={self.client!r})"
        )
