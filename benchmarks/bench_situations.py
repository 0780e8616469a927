"""What each policy costs on one problem: the table "What it costs" of ``docs/policies.md``.

    python benchmarks/bench_situations.py [--quick] [--only PART ...] [--json PATH]

A heat equation, 100 x 100, 4000 steps, whose state and tape take 80 kB each, as a loop function, under ``pb.steps`` and
as plain code. ``held_MB`` and ``n_forward`` are those of ``pull.report``; ``x save-all`` is the least CPU time of a
gradient over that under save-all of the same form, taken in turn in one process.
"""

from typing import Any

import numpy as np
from harness import Row, compare, measure_parts

import pullback as pb

Policies = dict[str, Any]


def step(u: Any, c: Any) -> Any:
    near = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    u[1:-1, 1:-1] += c * (near - 4.0 * u[1:-1, 1:-1])
    return u


def looped(u: Any, c: Any, n: int) -> Any:
    return np.sum(pb.fori_loop(0, n, lambda _, u: step(u, c), u) ** 2)


def marked(u: Any, c: Any, n: int) -> Any:
    u = u * 1.0  # which the steps write to
    for _ in pb.steps(n):
        u = step(u, c)
    return np.sum(u**2)


def plain(u: Any, c: Any, n: int) -> Any:
    u = u * 1.0
    for _ in range(n):
        u = step(u, c)
    return np.sum(u**2)


def rows_of(form: Any, policies: Policies, *, quick: bool) -> list[Row]:
    """A row for each policy, the first of which the others are divided by."""
    size, n = (20, 100) if quick else (100, 4000)
    u, c = np.linspace(0, 1, size * size).reshape(size, size) ** 2, 0.1
    made = {}
    for name, policy in policies.items():
        gradient = pb.value_and_grad(form, (0, 1), policy=policy)
        made[name] = lambda gradient=gradient: gradient(u, c, n)
    times = compare(made, rounds=2 if quick else 3)
    rows: list[Row] = []
    for name, policy in policies.items():
        _, pull = pb.vjp(lambda u, c: form(u, c, n), u, c, policy=policy)
        pull(1.0)
        report = pull.report
        pull.close()
        rows.append(
            {"form": form.__name__, "policy": name, "held_MB": report.peak_bytes / 1e6, "n_forward": report.n_forward}
            | {"ms": times[name].seconds * 1e3, "x save-all": times.ratio(name)}
        )
    return rows


def share(megabytes: float, *, quick: bool) -> pb.MemoryPolicy:
    """A number of bytes, or as much of the small problem of ``--quick``."""
    return pb.Budget(round(megabytes * 1e6 * (0.02 if quick else 1.0)))


def loop_rows(*, quick: bool) -> list[Row]:
    """A loop function."""
    policies = {
        "SaveAll()": pb.SaveAll(),
        '"auto"': "auto",
        'Budget("1 GB")': share(1000, quick=quick),
        'Budget("100 MB")': share(100, quick=quick),
        'Budget("10 MB")': share(10, quick=quick),
        "Recompute()": pb.Recompute(),
        "Mixed(300)": pb.Mixed(300),
        "Binomial(20)": pb.Binomial(20),
        "Tiered(20, None, write_cost=0.5, read_cost=0.5)": pb.Tiered(20, None, write_cost=0.5, read_cost=0.5),
    }
    return rows_of(looped, policies, quick=quick)


def marked_rows(*, quick: bool) -> list[Row]:
    """The same steps under ``pb.steps``."""
    policies = {
        "SaveAll()": pb.SaveAll(),
        '"auto"': "auto",
        "Recompute()": pb.Recompute(),
        'Budget("100 MB")': share(100, quick=quick),
    }
    return rows_of(marked, policies, quick=quick)


def plain_rows(*, quick: bool) -> list[Row]:
    """Code without marks."""
    policies = {
        "SaveAll()": pb.SaveAll(),
        '"auto"': "auto",
        "Recompute()": pb.Recompute(),
        'Budget("10.2 MB")': share(30 if quick else 10.2, quick=quick),
        'Budget("100 MB")': share(100, quick=quick),
    }
    return rows_of(plain, policies, quick=quick)


if __name__ == "__main__":
    measure_parts(
        "what each policy costs on one problem", {"loop": loop_rows, "steps": marked_rows, "plain": plain_rows}
    )
