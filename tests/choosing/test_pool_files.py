"""A pool that processes share: what one holds the others have not, until it gives it back or is killed."""

import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from tests.programs.loops_and_marks import looped

import pullback as pb
from pullback.choosing import budget_pool, pool_files
from pullback.choosing.budget_pool import Asked

X = np.linspace(0.1, 2.0, 100)


class Other:
    """Another process with the pool of ``path``, which does what it is told, a line each, and answers."""

    SCRIPT = """
        import sys, threading
        import pullback as pb
        from pullback.choosing.budget_pool import Asked

        pool, taken = pb.BudgetPool(int(sys.argv[2]), sys.argv[1]), []
        print("ready", flush=True)
        for line in sys.stdin:
            what, *numbers = line.split()
            if what == "take":
                try:
                    share = pool.shares.take(Asked("its loop", *map(int, numbers)), pool, 10**9, 20.0)
                    taken.append(share[0])
                    print("has", share[1], flush=True)
                except pb.BudgetError as error:
                    print("refused", error, flush=True)
            elif what == "close":
                taken.pop().close()
                print("closed", flush=True)
    """

    def __init__(self, path, max_bytes=1000):
        command = [sys.executable, "-c", dedent(self.SCRIPT), str(path), str(max_bytes)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.answer() == "ready"

    def tell(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().strip()

    def asked(self, line):
        self.tell(line)
        return self.answer()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pool [1]"  # which is no pattern


@pytest.fixture
def other(path):
    made = Other(path)
    yield made
    made.kill()


def take(pool, least, most, timeout=20.0):
    return pool.shares.take(Asked("my loop", least, most), pool, 10**9, timeout)


def others_active(pool):
    with pool.shares.turn() as others:
        return sum(one.n_active for one in others)


def test_what_one_holds_the_others_have_not(path, other):
    pool = pb.BudgetPool(1000, path)
    assert other.asked("take 600 600") == "has 600"
    assert pool.held_bytes == 600
    with pytest.raises(pb.BudgetError, match=r"400 are free; waited.*Held: another process 600"):
        take(pool, 500, 500, timeout=0.1)
    share, total = take(pool, 100, 900)
    assert total == 200  # half of what is free
    assert other.asked("close") == "closed"
    assert pool.held_bytes == 200
    share.close()
    assert pool.held_bytes == 0


def test_who_waits_goes_on_when_another_gives_back(path, other):
    pool = pb.BudgetPool(1000, path)
    assert other.asked("take 600 600") == "has 600"
    done = threading.Timer(0.2, other.tell, ["close"])
    done.start()
    share, total = take(pool, 900, 900)
    assert total == 900
    share.close()
    done.join()


def test_a_process_that_is_killed_gives_its_share_back(path, other):
    pool = pb.BudgetPool(1000, path)
    assert other.asked("take 600 600") == "has 600"
    assert len(list(path.parent.glob("*.*-*"))) == 2
    killing = threading.Timer(0.2, other.process.kill)
    killing.start()
    share, total = take(pool, 900, 900)
    assert total == 900
    assert len(list(path.parent.glob("*.*-*"))) == 1  # what it left is gone, too
    share.close()
    killing.join()


def test_no_two_processes_wait_for_each_other(path, other):
    pool = pb.BudgetPool(1000, path)
    mine, _ = take(pool, 400, 400)
    assert other.asked("take 500 500") == "has 500"
    other.tell("take 900 900")  # for the same gradient: it waits, and holds a share
    while others_active(pool):
        time.sleep(0.01)
    with pytest.raises(pb.BudgetError, match="nobody will give any back who does not wait for more"):
        take(pool, 700, 700)
    mine.close()
    assert other.answer() == "has 900"


def test_different_numbers_share_the_least(path, other):
    pool = pb.BudgetPool(5000, path)
    share, total = take(pool, 100, 5000)
    assert total == 500
    other.kill()
    share.close()
    share, total = take(pool, 100, 5000)
    assert total == 2500
    share.close()


def test_pools_of_one_path_are_one_in_a_process(path):
    pool = pb.BudgetPool(10**7, path)
    again = pickle.loads(pickle.dumps(pool.share("1 MB", timeout=3.0)))  # noqa: S301 - what was dumped just now
    assert again.shares is pool.shares
    assert (again.most, again.timeout, again.max_bytes, again.path) == (10**6, 3.0, pool.max_bytes, path)
    _, pull = pb.vjp(looped, X, policy=pool)
    assert again.held_bytes == pool.held_bytes > 0
    np.testing.assert_array_equal(pb.grad(looped, policy=again)(X), pull(1.0)[0])
    pull.close()
    assert pool.held_bytes == 0


def test_nothing_is_left_beside_the_lock_file(path):
    pool = pb.BudgetPool(10**7, path)
    pb.grad(looped, policy=pool)(X)
    del pool
    assert list(path.parent.iterdir()) == [path]


def test_a_process_that_is_forked_off_has_a_holding_of_its_own(path):
    pool = pb.BudgetPool(1000, path)
    share, _ = take(pool, 300, 300)
    script = f"""
        import os
        import pullback as pb
        from pullback.choosing.budget_pool import Asked
        pool = pb.BudgetPool(1000, {str(path)!r})
        one, _ = pool.shares.take(Asked("one", 100, 100), pool, 10**9, 1.0)
        child = os.fork()
        if not child:  # what it took over counts twice: both have it
            print(pool.held_bytes, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(pool.held_bytes)
        one.close()
        print(pool.held_bytes)
    """
    done = subprocess.run([sys.executable, "-c", dedent(script)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["500", "400", "300"]
    share.close()


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(pb.PolicyError, match=r"BudgetPool\(path='.*nowhere/pool'\): .*Name a file in a directory"):
        pb.BudgetPool(1000, tmp_path / "nowhere" / "pool")


def test_a_system_without_such_locks_is_named(path, monkeypatch):
    monkeypatch.setattr(pool_files, "flock", None)
    with pytest.raises(pb.PolicyError, match=r"fcntl, which this system has not; leave path out"):
        pb.BudgetPool(1000, path)


LAID = {
    "version 2": {
        "proc/self/cgroup": "0::/user/job\n",
        "sys/fs/cgroup/user/job/memory.max": "max\n",
        "sys/fs/cgroup/user/memory.max": "5000\n",
    },
    "version 1": {
        "proc/self/cgroup": "5:cpu:/x\n4:memory,hugetlb:/docker/3f\n0::/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "5000\n",
        "sys/fs/cgroup/memory/docker/3f/memory.limit_in_bytes": "7000\n",
    },
}


@pytest.mark.parametrize("version", LAID)
def test_a_control_group_is_a_limit(version, tmp_path, monkeypatch):
    for name, text in LAID[version].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    limit = budget_pool.limit_of_groups
    assert limit(tmp_path) == 5000
    monkeypatch.setattr(budget_pool, "limit_of_groups", lambda: limit(tmp_path))
    assert pb.BudgetPool("1 GB").max_bytes == 5000
    assert pb.BudgetPool("1 GB", tmp_path / "pool").max_bytes == 5000
    assert pb.BudgetPool(4000).max_bytes == 4000
    assert limit(Path(tmp_path / "empty")) is None
