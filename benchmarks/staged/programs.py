"""Programs without a loop function, eager and ``@pb.staged``: a chain, an elementwise expression, a mixture, a
network."""

import time
from functools import partial
from itertools import pairwise
from typing import Any

import bench_elementwise
import bench_overhead
import numpy as np
from harness import Row, compare
from references import chain, elementwise, mlp_adjoint

import pullback as pb
from staged.ways import NOT_BUILT, US, Call, accepts, agreement, compared, installed, row, rows_of, staged

STAGED, AGAIN = f"{US}, @pb.staged", f"{US}, after 400 calls"


def chain_rows(*, quick: bool) -> list[Row]:
    """999 operations on 4 elements, called again and again: by everybody who is installed, eager and staged."""
    rows: list[Row] = []
    for kind, (a, b) in bench_overhead.OPERANDS.items():
        work = f"chain, {kind} operands"
        made = bench_overhead.candidates(kind)
        program = staged(chain.program)
        if program is not None:
            gradient = pb.grad(program, argnums=(0, 1, 2) if kind == "traced" else (0,))
            made[STAGED] = partial(gradient, bench_overhead.X, a, b)
            made[AGAIN] = called_often(chain.program, (0, 1, 2) if kind == "traced" else (0,), (bench_overhead.X, a, b))
            agreement(work, made[STAGED](), made[US](), 0.0)
        timed = compare(made, rounds=3 if quick else 15)
        rows += rows_of(work, timed, operations=bench_overhead.OPERATIONS)
        for peer in bench_overhead.OTHERS:
            missing = "" if peer in made else installed(peer)
            us = timed[US].seconds / bench_overhead.OPERATIONS * 1e6
            rows.append(row(work, US, us, None if missing else timed.ratio(US, peer), peer, missing))
        if program is None:
            rows.append(row(work, STAGED, over="hand", note=NOT_BUILT))
    return rows


def called_often(program: Any, argnums: tuple[int, ...], args: tuple[Any, ...]) -> Call:
    """The gradient of a function that no decorator stages, after as many calls as it takes until it stages itself."""
    gradient = pb.grad(program, argnums=argnums)
    for _ in range(400):
        gradient(*args)
    return partial(gradient, *args)


def elementwise_rows(*, quick: bool) -> list[Row]:
    """The expression at sizes within and beyond the caches, eager and staged, which is in blocks."""
    rows: list[Row] = []
    for n in (1_000, 10_000) if quick else (100_000, 1_000_000, 10_000_000):
        rounds = 2 if quick else 15 if n < 10_000_000 else 5
        for kind in ("scalar", "traced"):
            work = f"elementwise, {power(n)} elements, {kind} operands"
            made = bench_elementwise.candidates(kind, n)
            program = staged(elementwise.program)
            if program is not None:
                gradient = pb.value_and_grad(program, argnums=(0, 1, 2) if kind == "traced" else 0)
                made[STAGED] = partial(gradient, *bench_elementwise.operands(kind, n))
                agreement(work, made[STAGED](), made[US](), 0.0)
            rows += rows_of(work, compare(made, rounds=rounds))
            if program is None:
                rows.append(row(work, STAGED, over="hand", note=NOT_BUILT))
    return [*rows, *thread_rows(10_000 if quick else 10_000_000, 2 if quick else 5)]


def power(n: int) -> str:
    """A power of ten, briefly."""
    return f"1e{len(str(n)) - 1}"


def thread_rows(n: int, rounds: int) -> list[Row]:
    """Two threads over one by the clock on the wall, which two free processors must be had for."""
    work, two = f"elementwise, {power(n)} elements, in blocks, wall time", "two threads"
    program = staged(elementwise.program)
    if program is None or not accepts(pb.using, "threads"):
        return [row(work, two, over="one thread", note=NOT_BUILT)]
    gradient, operands = pb.value_and_grad(program), bench_elementwise.operands("scalar", n)

    def call(threads: int) -> Any:
        with pb.using(threads=threads):
            return gradient(*operands)

    made = {"one thread": partial(call, 1), two: partial(call, 2)}
    return compared(work, made, rounds, clock=time.perf_counter)


def mixture_rows(*, quick: bool) -> list[Row]:
    """ADBench's Gaussian mixture over torch eager, both as one product."""
    work = "GMM d 10, K 25, n 1000"
    if missing := installed("torch") or installed("autograd"):
        return [row(work, US, over="torch", note=missing)]
    import bench_adbench  # noqa: PLC0415  it needs torch
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    made = bench_adbench.candidates(bench_adbench.drawn_mixture(10, 25, 50 if quick else 1000), "one product")
    return rows_of(work, compare(made, rounds=2 if quick else 15))


def network_rows(*, quick: bool) -> list[Row]:
    """A network in float32, 784 inputs, layers of 256 and 128, 10 classes, on a batch of 128."""
    widths, batch = ((16, 8, 8, 10) if quick else (784, 256, 128, 10)), 128
    rng = np.random.default_rng(0)
    params: list[Any] = []
    for before, after in pairwise(widths):
        params += [rng.normal(size=(before, after)) / np.sqrt(before), 0.1 * rng.normal(size=after)]
    given = tuple(p.astype(np.float32) for p in params)
    images = rng.normal(size=(batch, widths[0])).astype(np.float32)
    labels = rng.integers(10, size=batch)
    made: dict[str, Call] = {"hand": partial(mlp_adjoint.value_and_gradient, given, images, labels)}
    made[US] = partial(pb.value_and_grad(mlp_adjoint.loss), given, images, labels)
    work, program = f"MLP float32, batch {batch}", staged(mlp_adjoint.loss)
    if program is not None:
        made[STAGED] = partial(pb.value_and_grad(program), given, images, labels)
    rows = compared(work, made, 2 if quick else 25)
    return rows if program is not None else [*rows, row(work, STAGED, over="hand", note=NOT_BUILT)]
