"""Lorenz-96, 40 variables, 1000 steps of Runge-Kutta with ``np.roll``: gradients against an adjoint by hand.

    python benchmarks/bench_lorenz.py [--quick] [--json PATH]

Figure to hold: a gradient at most 2.5 times the handwritten adjoint that keeps its stages. Arrays have 40 elements:
what is measured is the price of an operation, not of arithmetic. The second table says where the time goes.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Row, arguments, compare, one_thread, print_table, write_json
from references import lorenz_adjoint, schedules

import pullback as pb
from pullback.demos.assimilation_model import Lorenz96

MODEL = Lorenz96()


def misfit(mark: Callable[[int], Any], n_steps: int) -> Callable[[Any], Any]:
    """Half the squares of the last state, by a Python loop."""
    return lambda x: 0.5 * np.sum(MODEL.run(x, mark(n_steps)) ** 2)


def misfit_by_loop(n_steps: int, policy: pb.MemoryPolicy) -> Callable[[Any], Any]:
    """The same by ``fori_loop`` under a policy."""
    return lambda x: 0.5 * np.sum(pb.fori_loop(0, n_steps, lambda k, x: MODEL.step(x), x, policy=policy) ** 2)


def by_hand(x: Any, n_steps: int) -> Any:
    """The gradient by the adjoint that keeps its stages. The last state is the seed: one forward run and one
    reverse."""
    kept = []
    for _ in range(n_steps):
        x, stages = lorenz_adjoint.kept_step(x, MODEL.forcing, MODEL.dt)
        kept.append(stages)
    ct = x
    for stages in reversed(kept):
        ct = lorenz_adjoint.step_adjoint(stages, ct, MODEL.dt)
    return ct


def from_states(x: Any, n_steps: int) -> Any:
    """The gradient by the adjoint that keeps states and computes the stages again."""
    states = []
    for _ in range(n_steps):
        states.append(x)
        x = lorenz_adjoint.step(x, MODEL.forcing, MODEL.dt)
    ct = x
    for state in reversed(states):
        ct = lorenz_adjoint.step_adjoint((state, *lorenz_adjoint.stages(state, MODEL.forcing, MODEL.dt)), ct, MODEL.dt)
    return ct


def by_schedule(x: Any, n_steps: int, policy: pb.MemoryPolicy) -> Any:
    """The gradient by the handwritten adjoint on a policy's own schedule."""
    forcing, dt = MODEL.forcing, MODEL.dt

    def advance(start: int, stop: int, x: Any) -> Any:
        for _ in range(start, stop):
            x = lorenz_adjoint.step(x, forcing, dt)
        return x

    return schedules.follow(
        schedules.prepared(policy.schedule(n_steps)),
        n_steps,
        x,
        advance,
        lambda _, x: lorenz_adjoint.kept_step(x, forcing, dt),
        lambda last: last,
        lambda _, kept, ct: lorenz_adjoint.step_adjoint(kept, ct, dt),
    )[1]


def time_rows(n_steps: int, rounds: int) -> list[Row]:
    """Every way to write the gradient, against the handwritten adjoints."""
    x = MODEL.run(8.0 + np.random.default_rng(0).standard_normal(MODEL.size), range(200))
    save_all, binomial = pb.SaveAll(), pb.Binomial(20)
    plain = pb.grad(misfit(range, n_steps))
    loop, bounded = (pb.grad(misfit_by_loop(n_steps, policy)) for policy in (save_all, binomial))
    candidates = {
        "hand": lambda: by_hand(x, n_steps),
        "hand, from states": lambda: from_states(x, n_steps),
        "hand, on the schedule of Binomial(20)": lambda: by_schedule(x, n_steps, binomial),
        "pullback, Python loop": lambda: plain(x),
        "pullback, fori_loop": lambda: loop(x),
        "pullback, fori_loop, Binomial(20)": lambda: bounded(x),
        "forward only": lambda: MODEL.run(x, range(n_steps)),
    }
    few = min(n_steps, 20)  # over 1000 steps of a chaotic model every gradient is round-off times e^80
    short = pb.grad(misfit(range, few))(x)
    np.testing.assert_allclose(short, by_hand(x, few), rtol=1e-10)
    np.testing.assert_allclose(by_schedule(x, few, binomial), by_hand(x, few), rtol=1e-14)
    assert np.array_equal(loop(x), bounded(x))
    timed = compare(candidates, rounds=rounds, labels={"steps": n_steps})
    return timed.rows(operations=n_steps, against=["hand, on the schedule of Binomial(20)"])


def part_rows(rounds: int) -> list[Row]:
    """Where the time goes: one step of the model, its record, its reverse, and what the same NumPy calls take by
    themselves."""
    x = MODEL.run(8.0 + np.random.default_rng(0).standard_normal(MODEL.size), range(200))
    n = 50
    ct = np.ones(MODEL.size)
    _, pull = pb.vjp(lambda x: MODEL.run(x, range(n)), x)
    kept = lorenz_adjoint.kept_step(x, MODEL.forcing, MODEL.dt)[1]

    def forward_and_record() -> None:
        pb.vjp(lambda x: MODEL.run(x, range(n)), x)[1].close()

    candidates = {
        "step, plain NumPy": lambda: MODEL.run(x, range(n)),
        "step, recorded": forward_and_record,
        "reverse of a step": lambda: pull(ct),
        "reverse of a step, by hand": lambda: [lorenz_adjoint.step_adjoint(kept, ct, MODEL.dt) for _ in range(n)],
        "its 12 calls of np.roll": lambda: [np.roll(x, 1) for _ in range(12 * n)],
        "its 28 elementwise operations": lambda: [x + x for _ in range(28 * n)],
    }
    return compare(candidates, rounds=rounds, labels={"part": "of a step"}).rows(operations=n)


def main() -> None:
    options = arguments("Lorenz-96 by np.roll against handwritten adjoints")
    one_thread()
    n_steps, rounds = (50, 2) if options.quick else (1000, 5)
    rows = time_rows(n_steps, rounds)
    print_table(rows)
    sys.stdout.flush()
    parts = part_rows(rounds)
    print_table(parts)
    write_json(options.json, [*rows, *parts])


if __name__ == "__main__":
    main()
