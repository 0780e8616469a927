"""A program of its own: gradients in processes that are killed, and what came of them.

``python killed_runs.py PROGRAM KILLS [KILLS ...]``: for each list of moments (``3,17``) one run, which is killed at
these, each time by SIGKILL, and then goes on to its end. A moment is the start of a step, or a file that is
synchronised, replaced or removed. Prints a list in JSON: for each run what :func:`run` gives.
"""

import json
import mmap
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

import pullback as pb
from pullback.stores import Disk, Stored

STEPS, MOMENTS, KILL_AT = range(3)
COSTS = {"write_cost": 0.1, "read_cost": 0.1}
TIERED = pb.Tiered(2, 4, **COSTS)
N = 30
MEMORY = "/dev/shm"  # noqa: S108 - a folder of its own is made in it
"""Where files are in memory, on many machines: what is tested is not the disk."""


def counted(counts):
    """Each ``send`` is a moment, said to be the start of a step or not. What a generator holds is no part of what a
    body reads."""
    while True:
        is_step = yield
        counts[STEPS] += is_step
        counts[MOMENTS] += 1
        if counts[MOMENTS] == counts[KILL_AT]:
            os.kill(os.getpid(), signal.SIGKILL)


COUNTS = np.frombuffer(mmap.mmap(-1, 3 * 8), np.int64)  # shared by the processes
MOMENT, ONE_AT_A_TIME = counted(COUNTS), threading.Lock()
next(MOMENT)


def moment(*, is_step):
    with ONE_AT_A_TIME:  # files are written in the background
        MOMENT.send(is_step)


def one_loop(x, policy):
    def body(k, u):
        moment(is_step=True)
        return u + 0.1 * np.sin(u * k)

    return np.sum(pb.fori_loop(0, N, body, x * 2, policy=policy, staging="off") ** 2)


def all_kinds(x, policy):
    """Several leaves, other strides, random numbers, inputs and outputs of steps, captured values, two loops."""
    rng, sine, rows = np.random.default_rng(5), np.sin(x), np.linspace(0, 1, 3 * N).reshape(N, 3)

    def body(k, state):
        moment(is_step=True)
        u, m, n = state
        return u + 0.01 * np.sum(m * sine, 0) + 0.01 * rng.normal(size=3), (m + 0.1 * u).T.copy(order="K"), n + 1

    def step(u, row):
        moment(is_step=True)
        given, weights = row
        u = u * np.cos(given) + weights * 0.1 + np.mean(sine)
        return u, (u * given, np.sum(u))

    u, m, _ = pb.fori_loop(3, 3 + N, body, (x * 2, np.outer(x, x)[::-1].T, 0), policy=policy)
    noise = rng.normal()
    last, (vectors, numbers) = pb.scan(step, u, (rows, rows * x), policy=policy)
    return np.sum(last**2) + np.sum(vectors * rows[::-1]) + np.sum(numbers[::2]) + noise * np.sum(m)


def in_marked_steps(x, policy):
    """Loops in marked steps, and code in a checkpoint: both run again, and the loops do not."""

    def body(k, u):
        moment(is_step=True)
        return u + 0.1 * np.sin(u * k)

    u = pb.checkpoint(lambda x: np.sin(x) * x)(x)
    for _ in pb.steps(2):
        u = pb.fori_loop(0, N, body, u * 1.1, policy=policy)
    return np.sum(u**2)


def from_another_directory(x, policy):
    """The policy names a relative directory, and the program goes elsewhere before its second loop and its reverse.
    Beside it a process is forked off that has a gradient of its own."""
    u = np.sqrt(one_loop(x, policy))
    Path("elsewhere").mkdir(exist_ok=True)
    os.chdir("elsewhere")
    child = os.fork()
    if child == 0:
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, lambda k, u: np.cos(u), x, policy=pb.Binomial(2))))(np.ones(3))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return one_loop(x * u, policy)


PROGRAMS = {
    "one loop": (one_loop, TIERED),
    "all kinds": (all_kinds, TIERED),
    "every snapshot on disk": (all_kinds, Stored(pb.Binomial(4), memory=Disk())),
    "in marked steps": (in_marked_steps, TIERED),
    "from another directory": (from_another_directory, pb.Tiered(2, 4, directory="snapshots", **COSTS)),
    "records a period": (all_kinds, pb.Periodic(5, tier="disk")),
}


def gradient(name):
    """The bits of a gradient."""
    program, policy = PROGRAMS[name]
    return pb.grad(lambda x: program(x, policy))(np.linspace(0.1, 1, 3)).tobytes()


def run(name, kills):
    """``[bits of the gradient, steps that were run in all, how often it was killed, files that are left, moments of the
    last process]``"""
    COUNTS[:] = 0
    n_killed = steps = 0
    with tempfile.TemporaryDirectory(dir=MEMORY if Path(MEMORY).is_dir() else None) as around:
        directory, answer = Path(around) / "journal", Path(around) / "answer"
        for moment in [*kills, 0]:
            COUNTS[MOMENTS], COUNTS[KILL_AT] = 0, moment
            child = os.fork()
            if child == 0:
                os.chdir(around)
                with pb.resume(directory):
                    answer.write_bytes(gradient(name))
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            n_killed += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            if answer.exists() and not steps:
                steps = int(COUNTS[STEPS])
        left = sorted(map(str, directory.iterdir()))
        return [answer.read_bytes().hex(), steps, n_killed, left, int(COUNTS[MOMENTS])]


def watch(module, name, *, carries_out):
    """Calls of a function are moments."""
    function = getattr(module, name)

    def call(*args, **kwargs):
        moment(is_step=False)
        return function(*args, **kwargs) if carries_out else None

    setattr(module, name, call)


if __name__ == "__main__":
    watch(os, "fsync", carries_out=False)  # which takes long, and is for when the power fails
    watch(os, "replace", carries_out=True)
    watch(os, "unlink", carries_out=True)
    found = [run(sys.argv[1], [int(k) for k in kills.split(",") if k]) for kills in sys.argv[2:]]
    sys.stdout.write(json.dumps(found))
