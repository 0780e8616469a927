"""Sums on clusters of threads and of processes: their bits, what the cluster holds, what they leave."""

import json
import os
import re
import runpy
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.optimize import minimize
from tests.scaling.summed import ITEMS, X, assert_same_bits, late_misfit, misfit, summed, what_is_in_force

import pullback as pb
from pullback.cli import commands

cloudpickle = pytest.importorskip("cloudpickle", reason="Dask is missing")
distributed = pytest.importorskip("distributed", reason="Dask is missing")
pullback_dask = pytest.importorskip("pullback_dask", reason="pullback-dask is not installed")

Client, LocalCluster, SumOverItems = distributed.Client, distributed.LocalCluster, pullback_dask.SumOverItems
batch_size, together = pullback_dask.batches.batch_size, pullback_dask.batches.together
term_of = pullback_dask.tasks.term_of
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # no worker could import it
pytestmark = pytest.mark.usefixtures("limited")


# ------------------------------------------------------------------------------------------------------------- the bits


@pytest.mark.parametrize("cluster", ["1 thread", "2 threads", "1 process", "2 processes"])
def test_every_cluster_gives_the_bits_of_the_tree(cluster, clusters):
    expected = summed(misfit, X, ITEMS)
    for batch in (None, 2, 8):
        with SumOverItems(late_misfit, ITEMS, policy=pb.Binomial(2), client=clusters(cluster), batch=batch) as total:
            assert_same_bits(total.value_and_grad(X), expected)
            assert_same_bits(total.value_and_grad(X), expected)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_every_number_of_items_gives_the_bits_of_the_tree(n, clusters):
    with SumOverItems(misfit, ITEMS[:n], client=clusters("2 threads")) as total:
        assert_same_bits(total.value_and_grad(X), summed(misfit, X, ITEMS[:n]))


def test_an_executor_of_dask_gives_the_same(clusters):
    found = pb.over_executor(clusters("2 processes").get_executor(), misfit, X, ITEMS)
    assert_same_bits(found, summed(misfit, X, ITEMS))


def test_the_size_of_a_batch_follows_from_the_number_of_items():
    assert [batch_size(n, None) for n in (1, 16, 1024, 1025, 2048, 2049, 10_000)] == [1, 1, 1, 2, 2, 4, 16]
    assert batch_size(10, 4) == 4
    for wrong in (0, 3, 12, True, 2.0):
        with pytest.raises(pb.PolicyError, match=r"batch= takes a power of two .*so that the bits stay, got"):
            batch_size(10, wrong)


def test_a_task_takes_as_many_batches_as_make_it_long_and_leave_some_for_each_thread():
    assert [together(16, 2, seconds) for seconds in (None, 0.3, 0.1, 0.001)] == [1, 1, 2, 2]
    assert [together(1024, 2, seconds) for seconds in (0.1, 0.01, 0.0)] == [2, 32, 128]
    assert [together(n, 1, 0.0) for n in (1, 7, 8, 15, 16, 63, 64)] == [1, 1, 2, 2, 4, 8, 16]
    assert together(1024, 0, 0.01) == 32  # workers are still to come


@pytest.fixture
def parts(monkeypatch):
    """How many parts each call has handed to the cluster: append 0 before a call."""
    counts, before = [], pullback_dask.runs.submitted

    def counted(client, name, *args, **options):
        if name == "part":
            counts[-1] += 1
        return before(client, name, *args, **options)

    monkeypatch.setattr(pullback_dask.runs, "submitted", counted)
    return counts


@pytest.mark.share(2, of=lambda n, fewer, load: "")
@pytest.mark.parametrize("load", [None, float])
@pytest.mark.parametrize(("n", "fewer"), [(7, 7), (8, 4), (9, 5), (16, 4), (23, 6)])
def test_later_calls_have_fewer_tasks_and_the_same_bits(n, fewer, load, clusters, parts, monkeypatch):
    monkeypatch.setattr(pullback_dask.batches, "LONG_ENOUGH", 1e9)
    items = np.linspace(-0.3, 0.9, n)
    for batch, counts in ((None, [n, fewer, fewer]), (1, [n, n, n])):
        parts.clear()
        with SumOverItems(misfit, items, client=clusters("1 thread"), load=load, batch=batch) as total:
            for _ in range(3):
                parts.append(0)
                assert_same_bits(total.value_and_grad(X), summed(misfit, X, items))
        assert parts == counts


def test_what_using_says_where_the_sum_is_made_is_in_force_on_the_workers(clusters):
    with pb.using(pb.Binomial(2), verify="state"):
        total = SumOverItems(what_is_in_force, [0, 1], client=clusters("2 processes"))
    with total:
        assert total.value_and_grad(np.ones(2))[0] == 4.0


def test_workers_of_a_machine_share_a_pool(clusters, tmp_path):
    def f(x, item):
        return np.sum(pb.fori_loop(0, 30, lambda k, u: np.sin(u) * 0.9 + x * item, x) ** 2)

    x, book = np.linspace(0.1, 1.0, 500), str(tmp_path / "mine.pool")
    pool = pb.BudgetPool("100 kB", book)  # of which save-all takes more than one worker's half
    with SumOverItems(f, ITEMS, policy=pool, client=clusters("2 processes")) as total:
        found = total.value_and_grad(x)
        expected = summed(f, x, ITEMS)
        assert (found[0], found[1].tobytes()) == (expected[0], expected[1].tobytes())
        books = total.client.run(lambda: [path.name for path in Path(book).parent.iterdir()])
    assert all("mine.pool" in names for names in books.values())


def test_batch_jobs_start_workers_with_the_environment(monkeypatch):
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    text = (Path(__file__).parents[3] / "docs" / "scale.md").read_text("utf-8")
    [lines] = re.findall(r"^(from dask_jobqueue .*?)^cluster.scale\(", text, re.MULTILINE | re.DOTALL)
    made = lines.replace("SLURMCluster(", 'SLURMCluster(scheduler_options={"dashboard_address": "127.0.0.1:0"}, ')
    assert made != lines
    names = {}
    exec(made, names)  # noqa: S102 - our own documentation
    with names["cluster"] as cluster, Client(cluster) as client:
        script = cluster.job_script()
        for name, value in pullback_dask.worker_environment().items():
            assert f"\nexport {name}={value}\n" in script
        assert script.index("export OMP_NUM_THREADS=1") < script.index("distributed.cli.dask_worker")
        assert "--nthreads 1" in script and "--nworkers 32" in script
        assert client.status == "running"
        SumOverItems(misfit, ITEMS, client=client).close()  # without workers: what is held waits for them


def test_a_task_does_not_see_what_another_did_to_its_items(clusters):
    def f(x, item):
        value = np.sum(x * item["scale"])
        item["scale"] += 1.0
        return value

    with SumOverItems(f, [{"scale": np.ones(2)}, {"scale": np.ones(2)}], client=clusters("2 threads")) as total:
        assert [total.value_and_grad(np.ones(2))[0] for _ in range(3)] == [4.0, 4.0, 4.0]


def test_an_optimiser_drives_it_in_two_lines(clusters):
    def f(x, item):
        return np.sum((x - item) ** 2)

    with SumOverItems(f, [1.0, 2.0, 6.0], client=clusters("2 threads")) as total:
        found = minimize(total.value_and_grad, np.zeros(4), jac=True, method="L-BFGS-B")
    np.testing.assert_allclose(found.x, 3.0, atol=1e-6)


# -------------------------------------------------------------------------------------------------------- what is where


class Watching(distributed.SchedulerPlugin):
    """Counts the parts and sums that are in the memory of the cluster at once."""

    name = "watching"

    def __init__(self):
        self.held, self.most, self.kinds = set(), 0, set()

    def transition(self, key, start, finish, *args, **kwargs):
        kind = str(key).partition("-")[0]
        self.kinds.add(kind)
        if kind in {"pullback.part", "pullback.sum"}:
            self.held.discard(key)
            if finish == "memory":
                self.held.add(key)
        self.most = max(self.most, len(self.held))


def test_the_cluster_holds_few_gradients():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
        SumOverItems(lambda x, item: np.sum(x * item), range(64), client=client) as total,
    ):
        watching = Watching()
        cluster.scheduler.add_plugin(watching)
        total.value_and_grad(np.ones(1000))
        # Two for each thread, log2(64) sums, and one that is being made; the sum of all takes the place of two.
        assert 2 < watching.most <= 12
        for _ in range(100):
            if not watching.held:
                break
            time.sleep(0.1)
        assert not watching.held
        total.close()
        for _ in range(100):
            if not cluster.scheduler.tasks:
                break
            time.sleep(0.1)
        assert not cluster.scheduler.tasks


def test_what_is_loaded_is_not_held(tmp_path):
    for k, item in enumerate(ITEMS):
        np.save(tmp_path / f"{k}.npy", item)
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        watching = Watching()
        cluster.scheduler.add_plugin(watching)
        names = [tmp_path / f"{k}.npy" for k in range(len(ITEMS))]
        with SumOverItems(misfit, names, client=client, load=lambda name: float(np.load(name))) as total:
            assert_same_bits(total.value_and_grad(X), summed(misfit, X, ITEMS))
        assert watching.kinds == {"pullback.term", "pullback.x", "pullback.part", "pullback.sum"}


def test_a_function_is_unpickled_once_for_a_worker():
    sent = cloudpickle.dumps(pb.scaling.Term.here(lambda x, item: x * item))
    assert term_of(sent) is term_of(bytes(bytearray(sent)))
    assert term_of(cloudpickle.dumps(pb.scaling.Term.here(misfit))) is not term_of(sent)


def test_bytes_that_move_are_counted(clusters):
    with SumOverItems(lambda x, item: np.sum(x * item), range(8), client=clusters("2 processes")) as total:
        before = total.moved_bytes
        total.value_and_grad(np.ones(10_000))
        assert before < 10_000
        assert 2 * 80_000 <= total.moved_bytes - before < 20 * 80_000


@pytest.mark.slow
def test_a_thousand_tasks_leave_a_worker_as_it_was():
    def state():
        import psutil  # noqa: PLC0415 - on the worker, as what follows

        from pullback.rules.forms import FORMS  # noqa: PLC0415

        return len(FORMS), psutil.Process().memory_info().rss

    @pb.primitive
    def halved(x):
        return x / 2.0

    @halved.vjp("x")
    def _(ct):
        return ct / 2.0

    def f(x, item):
        return np.sum(pb.fori_loop(0, 5, lambda k, u: np.sin(halved(u)) + x, x * item))

    with SumOverItems(f, np.linspace(0.0, 1.0, 100), policy=pb.Binomial(2), workers=1) as total:
        first = total.value_and_grad(np.ones(2000))
        [before] = total.client.run(state).values()
        for _ in range(10):
            again = total.value_and_grad(np.ones(2000))
        [after] = total.client.run(state).values()
    assert again[0] == first[0]
    assert after[0] == before[0]
    assert after[1] - before[1] < 8 * 2**20


# ---------------------------------------------------------------------------------------------------------- the cluster


def test_a_cluster_of_its_own_does_nothing_for_a_dashboard(clusters):
    def asked():
        from dask import config  # noqa: PLC0415 - on the worker

        return config.get("distributed.worker.profile.enabled"), config.get("distributed.admin.tick.interval")

    assert set(clusters("1 process").run(asked).values()) == {(False, "1s")}
    assert asked() == (True, "20ms")


def test_a_cluster_of_its_own_ends_with_it():
    with SumOverItems(misfit, ITEMS, workers=1) as total:
        assert_same_bits(total.value_and_grad(X), summed(misfit, X, ITEMS))
        [worker] = total.client.run(os.getpid).values()
        assert re.fullmatch(r"SumOverItems\(misfit, 11 items, client=<Client: .*processes=1 threads=1.*", repr(total))
    assert total.client.status == "closed"
    assert not Path(f"/proc/{worker}").exists() or not Path("/proc").exists()
    total.close()


def test_progress_is_told(clusters, capsys):
    told = []
    client = clusters("2 threads")
    with SumOverItems(misfit, ITEMS, client=client, batch=4, progress=lambda *n: told.append(n)) as total:
        total.value_and_grad(X)
    assert told[0] == (0, 11)
    assert told[-1] == (11, 11)
    assert told == sorted(told)
    with SumOverItems(misfit, ITEMS, client=client, progress=True) as total:
        assert_same_bits(total.value_and_grad(X), summed(misfit, X, ITEMS))
    with pytest.raises(pb.PolicyError, match=r"progress= takes True, False or a function .* got 'yes'"):
        SumOverItems(misfit, ITEMS, client=client, progress="yes")


def test_the_readme_runs(monkeypatch, tmp_path):
    text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    source = "".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    program = tmp_path / "program.py"
    program.write_text(source, "utf-8")
    found = runpy.run_path(str(program), run_name="__main__")
    assert found["found"].fun < found["value"]


@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_demo_runs_on_a_cluster_of_its_own(n):
    sizes = ["--grid", "30", "36", "--steps", "8", "--repeat", "1", "--json", "--quiet"]
    found = CliRunner().invoke(commands, ["demo", "wave", "--workers", str(n), *sizes])
    rows = json.loads(found.output)["rows"]
    assert [row["where"] for row in rows] == ["this process", "1 worker of Dask", "2 workers of Dask"][: 1 + n]
    assert all(row["same_bits"] for row in rows)
    assert rows[1]["moved_bytes"] > 0
