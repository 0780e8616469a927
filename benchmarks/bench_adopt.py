"""What adoption costs: a copy without a trace beside its original, operations on buffers that depend on nothing beside
plain NumPy's, and the gradient of a loop over items beside its forward: item by item, as a whole, compiled by numba;
under save-all, and in marked steps and the body of a loop function under a policy.

    python benchmarks/bench_adopt.py [--quick] [--json PATH]

Figures to hold: a forward without a trace within 3 % of the original at 1e4 elements, scalar programs 1.3 times; an
operation on such a buffer at most 1.5 us above the plain one.
"""

import sys
import tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from harness import arguments, compare, one_thread, print_table, write_json

import pullback as pb

FROM_1 = slice(1, None)
PROGRAM = """
import math
import numpy as np
import pullback as pb


def wave(c, n=10_000, steps=20):
    dx = 1.0 / (n - 1)
    u, v, x = np.zeros(n), np.ones(n), np.arange(n) * dx
    for k in range(steps):
        un = u.copy()
        u[1:-1] = un[1:-1] + c * 0.1 * (un[2:] - 2 * un[1:-1] + un[:-2])
        v = np.maximum(v, u) * 0.5 + np.sqrt(x)
        u[0] = math.sin(0.1 * k)
    return np.sum(u * v)


def orbit(c, n=5000):
    x, y, s = 0.1, 0.2, 0.0
    for k in range(n):
        dx = y - x * c
        dy = x * (1 - x) - y
        x += 0.01 * dx
        y += 0.01 * dy
        s = s + math.sqrt(abs(x))
    return s


def sweeps(c, n=40):
    u = np.zeros((n, n))
    u[n // 2, n // 2] = c
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            u[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) / 4.0 + 0.1 * c
    return u.sum()


def relax(u, c):
    n = len(u)
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            u[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + c * u[i, j]) / (4.0 + c)


def marked(u, c, steps=10):
    u = u * 1.0
    for k in pb.steps(steps):
        relax(u, c)
    return np.sum(u * u)


def body(u, c, steps=10):
    def step(k, u):
        u = u * 1.0
        relax(u, c)
        return u
    return np.sum(pb.fori_loop(0, steps, step, u) ** 2)
"""
U = np.random.default_rng(0).uniform(size=(20, 20))


def forwards(rounds: int) -> list[dict[str, Any]]:
    """Each program of the original and of the copy, without a trace."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "bench_adopted.py").write_text(PROGRAM)
        sys.path.insert(0, folder)
        original: Any = __import__("bench_adopted")
        copy: Any = pb.adopt("bench_adopted")
        for name in ("wave", "orbit", "sweeps"):
            plain, adopted = getattr(original, name), getattr(copy, name)
            found = compare(
                {"original": partial(plain, 0.3), "adopted": partial(adopted, 0.3)},
                rounds=rounds,
                labels={"program": name},
            )
            rows += found.rows()
    return rows


def loops(rounds: int) -> list[dict[str, Any]]:
    """Gradients of loops over items beside the original's forward."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench_loops.py"
        path.write_text(PROGRAM)
        copy: Any = pb.adopt(path)
        policy = pb.Binomial(3)
        return [
            *_ways(copy.sweeps, pb.grad(copy.sweeps), (0.3,), rounds, "sweeps"),
            *_ways(copy.marked, pb.grad(copy.marked, policy=policy), (U, 0.3), rounds, f"marked steps, {policy}"),
            *_ways(copy.body, pb.grad(copy.body, policy=policy), (U, 0.3), rounds, f"fori_loop, {policy}"),
        ]


def _ways(forward: Any, gradient: Any, given: tuple[Any, ...], rounds: int, name: str) -> list[dict[str, Any]]:
    def under(staging: str) -> Any:
        with pb.using(staging=staging):
            return gradient(*given)

    candidates: dict[str, Any] = {"forward": lambda: forward(*given), "item by item": lambda: under("off")}
    candidates["as a whole"] = lambda: under("auto")
    if find_spec("numba") is not None:
        candidates["compiled"] = lambda: under("numba")
    return compare(candidates, rounds=rounds, labels={"program": name}).rows()


def buffers(rounds: int) -> list[dict[str, Any]]:
    """Operations on plain arrays of ten elements and on buffers of a trace."""
    rows: list[dict[str, Any]] = []
    a, b = np.zeros(10), np.ones(10)

    def within(c: Any) -> Any:
        u, v = np.zeros(10, like=c), np.ones(10, like=c)
        pairs: dict[str, Any] = {
            "u + v": (lambda: a + b, lambda: u + v),
            "u * 2.0": (lambda: a * 2.0, lambda: u * 2.0),
            "u[1:]": (lambda: a[1:], lambda: u[1:]),
            "u[3]": (lambda: a[3], lambda: u[3]),
            "np.sin(u)": (lambda: np.sin(a), lambda: np.sin(u)),
            "u[1:] + v[1:]": (lambda: a[1:] + b[1:], lambda: u[1:] + v[1:]),
            "u.sum()": (a.sum, u.sum),
            "u @ v": (lambda: a @ b, lambda: u @ v),
            "np.where(u > 0, u, v)": (lambda: np.where(a > 0, a, b), lambda: np.where(u > 0, u, v)),
            "u.reshape(2, 5)": (lambda: a.reshape(2, 5), lambda: u.reshape(2, 5)),
            "u[1:] = v[1:]": (lambda: a.__setitem__(FROM_1, b[1:]), lambda: u.__setitem__(FROM_1, v[1:])),
        }
        for name, (plain, buffer) in pairs.items():
            rows.extend(compare({"plain": plain, "buffer": buffer}, rounds=rounds, labels={"program": name}).rows())
        return c * 1.0

    pb.grad(within)(1.0)
    return rows


def main() -> None:
    """All tables."""
    options = arguments(__doc__ or "")
    one_thread()
    rounds = 3 if options.quick else 11
    rows = []
    for part in (forwards, buffers, loops):
        found = part(rounds)
        print_table(found)
        rows += found
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
