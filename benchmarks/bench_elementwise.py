"""Large arrays: ``y = sum(tanh(a x + b) exp(-x x) + sqrt(1 + x x))`` and its gradient, in time and in arrays held at
the peak.

    python benchmarks/bench_elementwise.py [--quick] [--json PATH]

Figures to hold: at most 1.35 times the plain handwritten version, peak arrays not above its own. The version tuned with
``out=`` and autograd stand beside them. Peaks are tracemalloc's, in arrays of the size of ``x``, results included.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from harness import arguments, compare, one_thread, peak_bytes, print_table, write_json
from references import elementwise

import pullback as pb


def operands(kind: str, n: int) -> tuple[Any, Any, Any]:
    """``(x, a, b)``; ``a`` and ``b`` are arrays that are differentiated too, or Python scalars that are not."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=n)
    return (x, rng.normal(size=n), rng.normal(size=n)) if kind == "traced" else (x, 0.7, 0.3)


def candidates(kind: str, n: int) -> dict[str, Callable[[], Any]]:
    """The value and gradients by hand, by hand in place, and by us, checked against each other."""
    x, a, b = operands(kind, n)
    ours = pb.value_and_grad(elementwise.program, argnums=(0, 1, 2) if kind == "traced" else 0)
    plain, tuned = (getattr(elementwise, f"{kind}_operands{suffix}") for suffix in ("", "_tuned"))
    value, *expected = plain(x, a, b)
    got_value, got = ours(x, a, b)
    np.testing.assert_allclose(got_value, value, rtol=1e-10)
    for g, right in zip(got if kind == "traced" else (got,), expected, strict=True):
        np.testing.assert_allclose(g, right, rtol=1e-9, atol=1e-12)
    return {"hand": lambda: plain(x, a, b), "pullback": lambda: ours(x, a, b), "hand, out=": lambda: tuned(x, a, b)}


def main() -> None:
    options = arguments("time and peak arrays of an elementwise expression with its gradient")
    one_thread()
    rows = []
    for n in (10_000, 100_000) if options.quick else (100_000, 1_000_000):
        for kind in ("scalar", "traced"):
            made = candidates(kind, n)
            timed = compare(made, rounds=3 if options.quick else 15, labels={"n": n, "operands": kind})
            rows += [
                {**row, "peak_arrays": round(peak_bytes(made[row["candidate"]]) / (8 * n), 2)} for row in timed.rows()
            ]
    print_table(rows)
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
