"""A sum over shots on workers of Dask beside one process, and what Dask costs.

    python benchmarks/bench_dask.py [--quick] [--json PATH] [--only shots tasks memory killed]

Figures to hold. 16 shots, 128 x 128, 200 steps, ``Binomial(10)``, with ``staging="off"``: two workers at least 1.8
times as fast as one, and 1.5 times as fast as the loop in this process; what they are as staged steps is stated. What a
task costs that computes nothing is stated; 10^4 small items in under 60 s. 64 gradients of 8 MB: at most 12 in the
memory of the cluster. A worker killed after 5 of 16 shots: the same bits, in at most twice the time.

``2 plain processes`` is what the machine gives to the loop divided by two: half of the shots in each, without Dask.

Wall time, the least of several rounds, in turn: two workers need two free cores, and what else the machine does is in
every number. ``cores`` says how many the processes got meanwhile: with less than two of them the seconds of two workers
say little. Then ``busiest s`` tells more, the least CPU time of the process that computed most: what the wall time
would be at best.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import psutil
from attrs import define, evolve, field
from distributed import SchedulerPlugin
from harness import Row, measure_parts

import pullback as pb
from pullback.demos.wave_data import make_survey
from pullback.demos.wave_shots import SHOTS, SHOTS_POLICY, misfit_of_shot, shots_of
from pullback.scaling import Term, plus, tree_sum
from pullback_dask import SumOverItems, worker_environment
from pullback_dask.clusters import set_for_now


def same(one: Any, other: Any) -> bool:
    """Whether two values and gradients have the same bits."""
    return bool(one[0] == other[0]) and np.array_equal(one[1], other[1])


def cpu_seconds(pids: list[int]) -> Any:
    """What each of these processes has computed so far."""
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return np.array([one.user + one.system for one in times])


@define(eq=False)
class Timed:
    """The fastest run of a candidate."""

    run: Callable[[], Any]
    pids: list[int]
    seconds: float = float("inf")
    cores: float = 0.0
    busiest: float = float("inf")
    result: Any = None

    def again(self) -> None:
        """Once more."""
        before, start = cpu_seconds(self.pids), time.perf_counter()
        self.result = self.run()
        seconds, computed = time.perf_counter() - start, cpu_seconds(self.pids) - before
        self.busiest = min(self.busiest, max(computed, default=0.0))
        if seconds < self.seconds:
            self.seconds, self.cores = seconds, sum(computed) / seconds


def looped(term: Term, c: Any, items: list[Any]) -> Any:
    """The sum in this process."""
    return tree_sum(map(partial(term, c), items, range(len(items))), plus)


@contextmanager
def divided(term: Term, c: Any, items: list[Any]) -> Iterator[Timed]:
    """The sum by two processes that each compute one half."""
    others = multiprocessing.active_children()
    halves = items[: len(items) // 2], items[len(items) // 2 :]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:

        def run() -> Any:
            return plus(*(part.result() for part in [pool.submit(looped, term, c, half) for half in halves]))

        with set_for_now(worker_environment()):
            run()
        yield Timed(run, [child.pid or 0 for child in multiprocessing.active_children() if child not in others])


def shots(*, quick: bool) -> list[Row]:
    """The loop in this process, two processes that divide it, one worker, two workers; steps as they are written, and
    staged."""
    settings = evolve(SHOTS, shape=(48, 48), n_steps=40, n_shots=4) if quick else SHOTS
    survey = make_survey(settings)
    items, c, rows = shots_of(survey.problem), survey.initial_velocity, []
    for staging in ("off", "auto"):
        with (
            pb.using(staging=staging),
            SumOverItems(misfit_of_shot, items, policy=SHOTS_POLICY, workers=1) as one,
            SumOverItems(misfit_of_shot, items, policy=SHOTS_POLICY, workers=2) as two,
            divided(term := Term.here(misfit_of_shot, SHOTS_POLICY), c, items) as halves,
        ):
            alone = Timed(partial(looped, term, c, items), [os.getpid()])
            candidates = {"loop in this process": alone, "2 plain processes": halves}
            for name, total in (("1 worker", one), ("2 workers", two)):
                pids = list(total.client.run(os.getpid).values())
                candidates[name] = Timed(partial(total.value_and_grad, c), pids)
            for _ in range(2 if quick else 9):
                for timed in candidates.values():
                    timed.again()
        rows += [
            {
                "staging": staging,
                "candidate": name,
                "seconds": timed.seconds,
                "faster than loop": alone.seconds / timed.seconds,
                "faster than 1 worker": candidates["1 worker"].seconds / timed.seconds,
                "of 2 processes": halves.seconds / timed.seconds,
                "cores": timed.cores,
                "busiest s": timed.busiest,
                "1 worker / busiest": candidates["1 worker"].busiest / timed.busiest,
                "same bits": str(same(timed.result, alone.result)),
            }
            for name, timed in candidates.items()
        ]
    return rows


def tasks(*, quick: bool) -> list[Row]:
    """Items that compute nothing, each a task; and many small ones in batches."""
    rows = []
    for n, batch in ((40, 1), (100, None)) if quick else ((400, 1), (10_000, None)):
        with SumOverItems(lambda x, item: x * item, np.arange(float(n)), batch=batch, workers=2) as total:
            pids = [os.getpid(), *total.client.run(os.getpid).values()]
            timed = Timed(partial(total.value_and_grad, 1.0), pids)
            for _ in range(4):
                timed.again()
            rows.append({
                "items": n,
                "batch": total.batch,
                "seconds": timed.seconds,
                "ms per part": 1e3 * timed.seconds / -(-n // total.batch),
                "cpu ms per part": 1e3 * timed.seconds * timed.cores / -(-n // total.batch),
                "cores": timed.cores,
            })
    return rows


@define(eq=False, slots=False)
class Watching(SchedulerPlugin):
    """The most parts and sums that were in the memory of the cluster at once; copies on other workers count."""

    scheduler: Any
    held: set[Any] = field(factory=set)
    most: int = 0
    most_copies: int = 0
    most_bytes: int = 0
    name = "watching"

    def transition(self, key: Any, start: Any, finish: Any, *_args: Any, **_kwargs: Any) -> None:  # noqa: ARG002
        if str(key).startswith(("pullback.part", "pullback.sum")):
            self.held.discard(key)
            if finish == "memory":
                self.held.add(key)
            copies = [len(self.scheduler.tasks[k].who_has or ()) for k in self.held]
            sizes = [self.scheduler.tasks[k].nbytes for k in self.held]
            self.most = max(self.most, len(copies))
            self.most_copies = max(self.most_copies, sum(copies))
            self.most_bytes = max(self.most_bytes, sum(n * size for n, size in zip(copies, sizes, strict=True)))


def memory(*, quick: bool) -> list[Row]:
    """64 gradients: how many are in the memory of the cluster at once."""
    size = 10_000 if quick else 1_000_000
    with SumOverItems(lambda x, item: np.sum(np.sin(x * item)), range(64), workers=2) as total:
        cluster: Any = total.client.cluster
        watching = Watching(cluster.scheduler)
        cluster.scheduler.add_plugin(watching)
        for _ in range(3):
            total.value_and_grad(np.ones(size))
        moved = total.moved_bytes
        return [
            {
                "gradients": 64,
                "MB each": 8e-6 * size,
                "most held": watching.most,
                "with copies": watching.most_copies,
                "MB held": watching.most_bytes / 1e6,
                "MB moved, 3 sums": moved / 1e6,
            }
        ]


def killed(*, quick: bool) -> list[Row]:
    """The time of a sum in which a worker is killed after 5 of its items, beside one in which none is."""
    settings = evolve(SHOTS, shape=(48, 48), n_steps=40) if quick else SHOTS
    survey = make_survey(settings)
    items, c, rows = shots_of(survey.problem), survey.initial_velocity, []
    for number in range(1 if quick else 3):
        victim: list[int] = []

        def kill(done: int, _items: int, victim: list[int] = victim) -> None:
            if victim and done >= 5:
                os.kill(victim.pop(), signal.SIGKILL)

        with (
            pb.using(staging="off"),
            SumOverItems(misfit_of_shot, items, policy=SHOTS_POLICY, workers=2, progress=kill) as total,
        ):
            undisturbed = Timed(partial(total.value_and_grad, c), [])
            for _ in range(3):
                undisturbed.again()
            victim += list(total.client.run(os.getpid).values())[:1]
            disturbed = Timed(partial(total.value_and_grad, c), [])
            disturbed.again()
        rows.append({
            "run": number,
            "seconds": undisturbed.seconds,
            "seconds, one killed": disturbed.seconds,
            "ratio": disturbed.seconds / undisturbed.seconds,
            "same bits": str(same(disturbed.result, undisturbed.result)),
        })
    return rows


if __name__ == "__main__":
    measure_parts(
        "a sum over shots on workers of Dask",
        {"shots": shots, "tasks": tasks, "memory": memory, "killed": killed},
    )
