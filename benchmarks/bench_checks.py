"""What the checks of re-runs cost: a gradient with each value of ``verify``, and the hash beside a copy.

    python benchmarks/bench_checks.py [--quick] [--json PATH]

Figures to hold: ``verify="all"`` at most 1.1 times ``"off"`` for a wave of 256 x 256 under Binomial(20), and
``"state"`` at most 1.03 times; the hash reads memory no slower than a copy writes it.
"""

import sys
from functools import partial
from typing import Any

import numpy as np
from harness import Row, arguments, compare, one_thread, print_table, write_json

import pullback as pb
from pullback.words.digests import digest


def wave(n: int, n_steps: int) -> tuple[Any, Any]:
    """The energy of a wave's last state, and the speeds to differentiate by; the damping is read by every step."""
    rng = np.random.default_rng(0)
    start, damping = rng.random((n, n)), np.full((n, n), 0.999)

    def energy(c2: Any) -> Any:
        def body(_: int, state: Any) -> Any:
            before, u = state
            after = 2 * u - before
            after[1:-1, 1:-1] += c2[1:-1, 1:-1] * (
                u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
            )
            return u, after * damping

        return np.sum(pb.fori_loop(0, n_steps, body, (start, start))[1] ** 2)

    return energy, 0.1 + 0.05 * rng.random((n, n))


def small(n_steps: int) -> tuple[Any, Any]:
    """Three operations a step on four elements."""
    factor = np.full(4, 0.9)
    return lambda x: np.sum(pb.fori_loop(0, n_steps, lambda _, u: np.sin(u) * factor + 0.1, x)), np.ones(4)


def verified(f: Any, x: Any, policy: pb.MemoryPolicy, verify: str) -> Any:
    """A function that computes the gradient with these checks."""
    gradient = pb.grad(f, policy=policy)

    def call() -> Any:
        with pb.using(verify=verify):
            return gradient(x)

    return call


def check_rows(n_steps: int, rounds: int) -> list[Row]:
    """A gradient with each value of ``verify``."""
    rows: list[Row] = []
    programs = {"wave 256 x 256": wave(256, n_steps), "4 elements": small(10 * n_steps)}
    for program, (f, x) in programs.items():
        candidates = {verify: verified(f, x, pb.Binomial(20), verify) for verify in ("off", "state", "all")}
        rows += compare(candidates, rounds=rounds, labels={"program": program}).rows(operations=n_steps)
    return rows


def hash_rows(rounds: int) -> list[Row]:
    """The hash of an array, beside a copy of it."""
    rows: list[Row] = []
    for nbytes in (1 << 10, 1 << 15, 1 << 19, 1 << 22, 1 << 26):
        array = np.random.default_rng(1).random(nbytes // 8)
        timed = compare(
            {"copy": array.copy, "hash": partial(digest, array)}, rounds=rounds, labels={"bytes": nbytes}
        )
        rows += [
            row | {"GB_per_s": nbytes / row["us_per_op"] / 1e3} for row in timed.rows()
        ]  # fmt: skip
    return rows


def main() -> None:
    options = arguments("what the checks of re-runs cost")
    one_thread()
    n_steps, rounds = (20, 2) if options.quick else (100, 11)
    rows = check_rows(n_steps, rounds)
    print_table(rows)
    sys.stdout.flush()
    hashes = hash_rows(rounds)
    print_table(hashes)
    write_json(options.json, [*rows, *hashes])


if __name__ == "__main__":
    main()
