"""Reading and writing rows in a loop is linear: the cost of a row does not depend on how many there are.

    python benchmarks/bench_rows.py [--quick] [--json PATH]

Figure to hold: microseconds per row equal at 1000 and at 40 000 rows, for ``sum(x[i] * x[i + 1])`` and for
``o[k] = f(o[k - 1])``.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from harness import arguments, compare, one_thread, peak_bytes, print_table, write_json

import pullback as pb

WIDTH = 16


def reading(x: Any) -> Any:
    """Every row times the next."""
    total = 0.0
    for i in range(len(x) - 1):
        total = total + np.sum(x[i] * x[i + 1])
    return total


def writing(x: Any) -> Any:
    """Every row from the one before it, in one array."""
    o = np.zeros_like(x)
    o[0] = x[0]
    for k in range(1, len(x)):
        o[k] = 0.5 * np.sin(o[k - 1]) + x[k]
    return np.sum(o * o)


def adding(x: Any) -> Any:
    """Every row is added to the next, in place."""
    o = x * 1.0
    for k in range(1, len(x)):
        o[k] += 0.5 * o[k - 1]
    return np.sum(o * o)


def main() -> None:
    options = arguments("microseconds per row of loops that read and write rows")
    one_thread()
    sizes = (500, 5_000) if options.quick else (1_000, 40_000)
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for program in (reading, writing, adding):
        gradient: Callable[[Any], Any] = pb.grad(program)
        arrays = {n: rng.normal(size=(n, WIDTH)) for n in sizes}
        timed = compare(
            {str(n): partial(gradient, x) for n, x in arrays.items()},
            rounds=2 if options.quick else 5,
        )
        first = timed[str(sizes[0])].seconds / sizes[0]
        rows += [
            {
                "program": program.__name__,
                "rows": n,
                "us_per_row": timed[str(n)].seconds / n * 1e6,
                f"x {sizes[0]} rows": timed[str(n)].seconds / n / first,
                "peak_bytes_per_row": peak_bytes(partial(gradient, x)) / n,
            }
            for n, x in arrays.items()
        ]
    print_table(rows)
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
