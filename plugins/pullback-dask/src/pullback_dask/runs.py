"""One sum at one ``x``: which tasks it is made of, and when they are handed to the cluster."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any
from uuid import uuid4

import dask
from attrs import define, field
from distributed import Client, Future, wait

from pullback.scaling import in_order, tree_sum
from pullback_dask.batches import together
from pullback_dask.progress import Tell
from pullback_dask.tasks import TimedPart, added, batch_part, held

FEWEST, RECOUNT_SECONDS = 4, 5.0
"""Tasks under way while there are hardly any workers; how often these are counted."""
UNWARNED = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
"""Dask warns of data within tasks. Here these are the recipe by which a dead worker's tasks begin again."""


def new_key(name: str) -> str:
    """A key of its own. One made of the content would tie calls together: what one of them lets go of, another one may
    just have asked for."""
    return f"pullback.{name}-{uuid4().hex}"


def submitted(client: Client, name: str, function: Any, *args: Any, priority: int = 0) -> Future[Any]:
    """A task."""
    with dask.config.set(UNWARNED):
        return client.submit(function, *args, key=new_key(name), pure=False, priority=priority)


def all_held(client: Client, name: str, sent: Sequence[bytes]) -> list[Future[Any]]:
    """Tasks whose results are what was sent, handed over in one message."""
    with dask.config.set(UNWARNED):
        found: list[Future[Any]] = client.map(held, sent, key=[new_key(name) for _ in sent], pure=False)
    return found


@define(eq=False)
class Run:
    """The tasks of one sum. No more than ``window()`` parts are under way or wait for those before them, and a part is
    asked for only when the last sum before it is there: beside them the cluster holds ``log2(n)`` sums, and one for
    each of those being added."""

    client: Client
    term: Future[Any]
    x: Future[Any]
    batches: Sequence[Any]
    """Futures of bytes, or bytes."""
    batch: int
    n_items: int
    tell: Tell
    batch_seconds: float | None
    """What a batch took in the last sum, where a task may take several; else None."""
    n_done: int = 0
    last_sum: Future[Any] | None = None
    n_threads: int = 0
    counted_at: float = -RECOUNT_SECONDS
    sizes: dict[Future[Any], int] = field(factory=dict)
    """How many items a part has that is under way."""

    def total(self) -> TimedPart:
        """Value and gradient."""
        with closing(in_order(self.parts(), self.window, self.any_done)) as parts:
            total = tree_sum(parts, self.added)
        return total.result()  # type: ignore[no-any-return]

    def parts(self) -> Iterator[Future[Any]]:
        """One for each batch, or for several, handed to the cluster when it is taken."""
        self.window()  # which counts the threads
        several = together(len(self.batches), self.n_threads, self.batch_seconds)
        for k in range(0, len(self.batches), several):
            if self.last_sum is not None:
                wait(self.last_sum)
                self.last_sum = None
            items, first = self.batches[k : k + several], k * self.batch
            part = submitted(self.client, "part", batch_part, self.term, self.x, first, *items)
            self.sizes[part] = min(several * self.batch, self.n_items - first)
            yield part
            del part  # who holds it holds its result

    def window(self) -> int:
        """Two parts for each thread of the cluster, whose workers may come and go."""
        now = time.monotonic()
        if now - self.counted_at > RECOUNT_SECONDS:
            self.counted_at, self.n_threads = now, sum(self.client.nthreads().values())
        return max(FEWEST, 2 * self.n_threads)

    def any_done(self, under_way: set[Future[Any]]) -> set[Future[Any]]:
        """Those parts that are done, at least one; the error of any of them is raised."""
        done: set[Future[Any]] = wait(list(under_way), return_when="FIRST_COMPLETED").done
        for part in done:
            if part.status == "error":
                part.result()
            self.n_done += self.sizes.pop(part)
        self.tell(self.n_done, self.n_items)
        return done

    def added(self, left: Future[Any], right: Future[Any]) -> Future[Any]:
        """The sum of two, before any part that has not begun, so that these two are let go."""
        self.last_sum = submitted(self.client, "sum", added, left, right, priority=1)
        return self.last_sum
