"""What making a stage takes."""

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from harness import Row

import pullback as pb
from pullback.staging.generated import shelf, stages
from staged.loops import POLICIES
from staged.ways import US, row

WORK = "making the stage of 100 operations"


def hundred(u: Any, c: Any) -> Any:
    """100 operations: 33 times a sine, a product and a sum, and a product."""
    for _ in range(33):
        u = np.sin(u)
        u = u * c
        u = u + 0.5
    return u * c


def looped(u: Any, c: Any) -> Any:
    return np.sum(pb.fori_loop(0, 50, lambda _, u: hundred(u, c), u))


def called(u: Any, c: Any) -> Any:
    return np.sum(hundred(u, c))


def making_rows(*, quick: bool) -> list[Row]:
    """The stage of operations on 4 elements; ``x`` is in milliseconds."""
    operands = np.linspace(0.1, 0.4, 4), np.array([1.1, 0.9, 1.2, 0.8])
    made: dict[tuple[str, str], Callable[[], Any]] = {}
    for name, policy in POLICIES.items():
        made[f"a step of fori_loop, {name}", US] = partial(pb.grad, looped, (0, 1), policy=policy)
    made["a function", f"{US}, @pb.staged"] = lambda: pb.grad(pb.staged(called), (0, 1))
    rows = []
    for (what, candidate), gradient_of in made.items():
        seconds = min(making_seconds(gradient_of(), operands) for _ in range(2 if quick else 15))
        rows.append(row(f"{WORK}, {what}", candidate, seconds * 1e6, seconds * 1e3, "ms"))
    return rows


def making_seconds(gradient: Callable[..., Any], operands: tuple[Any, ...]) -> float:
    """CPU seconds in which a gradient of which nothing is known makes its stage, when its second step, or call, has
    come."""
    taken, make = [], stages.stage_of

    def timed(*args: Any) -> Any:
        start = time.process_time()
        stage = make(*args)
        taken.append(time.process_time() - start)
        return stage

    shelf.forget()
    gc.collect()
    with patch.object(shelf, "stage_of", timed):
        for _ in range(3):
            gradient(*operands)
    return sum(taken)
