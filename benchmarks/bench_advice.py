"""What ``policy="auto"`` costs beside save-all where everything fits, and how near ``plan`` comes in seconds.

    python benchmarks/bench_advice.py [--quick] [--json PATH]

Figures to hold: a gradient under ``"auto"`` takes at most 1.03 times the time of that under ``SaveAll()`` on a loop;
the seconds that ``pb.plan(f, x, budget=...)`` and ``pb.plan(f, x, policy=...)`` forecast are within a factor of 2 of
those that are measured.
"""

import sys
import time
from typing import Any

import numpy as np
from harness import arguments, one_thread, print_table, write_json

import pullback as pb


def heat(u0: Any) -> Any:
    def body(_: int, u: Any) -> Any:
        u = u.copy()
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        return u + 0.001 * np.sin(u)

    return np.sum(pb.fori_loop(0, 400, body, u0) ** 2)


def marked(u0: Any) -> Any:
    u = u0
    for _ in pb.steps(400):
        u = u + 0.1 * np.sin(u) * np.exp(-u)
    return np.sum(u**2)


def seconds(call: Any) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def auto_ratio(f: Any, x: Any, rounds: int) -> float:
    """Of the least seconds, taken in turn."""
    plain, auto = pb.grad(f, policy=pb.SaveAll()), pb.grad(f, policy="auto")
    for gradient in (plain, auto):
        gradient(x)
    pairs = [(seconds(lambda: auto(x)), seconds(lambda: plain(x))) for _ in range(rounds)]
    return min(a for a, _ in pairs) / min(b for _, b in pairs)


def forecast_ratio(x: Any, **asked: Any) -> tuple[str, float]:
    """The seconds that are forecast, of those that the named policy takes (the least of three)."""
    advice = pb.plan(heat, x, **asked)

    def run() -> None:
        out, pull = pb.vjp(heat, x, policy=advice.policy)
        pull(np.ones_like(out))
        pull.close()

    return repr(advice.policy), (advice.seconds or 0.0) / min(seconds(run) for _ in range(3))


def main() -> None:
    options = arguments("what advice costs, and how true it is")
    one_thread()
    side, rounds = (60, 9) if options.quick else (100, 25)
    x = np.random.default_rng(0).random((side, side))
    rows: list[dict[str, Any]] = [
        {"figure": f"auto / SaveAll, {f.__name__}", "ratio": auto_ratio(f, x, rounds)} for f in (heat, marked)
    ]
    worst = max(row["ratio"] for row in rows)
    found = [forecast_ratio(x, budget=budget) for budget in ("100 MB", "3 MB", "1 MB")]
    found += [forecast_ratio(x, policy=policy) for policy in (pb.Binomial(5), pb.Recompute(), pb.Mixed(20))]
    rows += [{"figure": f"seconds forecast / measured, {name}", "ratio": ratio} for name, ratio in found]
    print_table(rows)
    write_json(options.json, rows)
    sys.exit(worst > 1.03 or any(not 0.5 < ratio < 2 for _, ratio in found))


if __name__ == "__main__":
    main()
