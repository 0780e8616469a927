"""What recording costs when arrays are tiny: 999 operations on 4 elements, forward and backward, everything saved,
source lines on.

    python benchmarks/bench_overhead.py [--quick] [--json PATH]

Figures to hold: at most 3 times handwritten NumPy, 0.4 times torch eager, 0.22 times autograd; the user calls
``np.sin``. torch and autograd take part where they are installed.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from harness import arguments, compare, one_thread, print_table, write_json
from references import chain

import pullback as pb

OPERATIONS = 999
X = np.array([0.1, 0.2, 0.3, 0.4])
A = np.array([1.1, 0.9, 1.2, 0.8])
B = np.array([0.3, -0.2, 0.1, 0.4])
OPERANDS: dict[str, tuple[Any, Any]] = {"const": (A, B), "traced": (A, B), "scalar": (1.1, 0.3)}

Gradient = Callable[[], Sequence[Any]]


def by_hand(kind: str, a: Any, b: Any) -> Gradient:
    if kind == "traced":
        return lambda: chain.traced_operands(X, a, b)[1:]
    return lambda: chain.constant_operands(X, a, b)[1:]


def by_us(kind: str, a: Any, b: Any) -> Gradient:
    gradient = pb.grad(chain.program, argnums=(0, 1, 2) if kind == "traced" else (0,))
    return lambda: gradient(X, a, b)


def by_autograd(kind: str, a: Any, b: Any) -> Gradient:
    anp, autograd = import_module("autograd.numpy"), import_module("autograd")

    def program(x: Any, a: Any, b: Any) -> Any:
        for _ in range(OPERATIONS // 3):
            x = anp.sin(x)
            x = x * a
            x = x + b
        return anp.sum(x)

    gradient = autograd.grad(program, (0, 1, 2) if kind == "traced" else (0,))
    return lambda: gradient(X, a, b)


def by_torch(kind: str, a: Any, b: Any) -> Gradient:
    torch = import_module("torch")
    torch.set_num_threads(1)
    traced = kind == "traced"
    a, b = (torch.tensor(v) if isinstance(v, np.ndarray) else v for v in (a, b))

    def gradient() -> Sequence[Any]:
        x = start = torch.tensor(X, requires_grad=True)
        scale, shift = (a.clone().requires_grad_(), b.clone().requires_grad_()) if traced else (a, b)
        for _ in range(OPERATIONS // 3):
            x = torch.sin(x)
            x = x * scale
            x = x + shift
        x.sum().backward()
        return [start.grad.numpy(), *((scale.grad.numpy(), shift.grad.numpy()) if traced else ())]

    return gradient


OTHERS = {"torch": by_torch, "autograd": by_autograd}


def candidates(kind: str) -> dict[str, Gradient]:
    """Everybody's gradient of the chain, each checked against the handwritten one."""
    a, b = OPERANDS[kind]
    made = {"hand": by_hand(kind, a, b), "pullback": by_us(kind, a, b)}
    for name, build in OTHERS.items():
        try:
            made[name] = build(kind, a, b)
        except ImportError:
            print(f"{name} is not installed")
    expected = made["hand"]()
    for name, gradient in made.items():
        for got, right in zip(gradient(), expected, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-12, err_msg=name)
    return made


def main() -> None:
    options = arguments("overhead per operation of a chain of sin, multiply, add on 4 elements")
    one_thread()
    rows = []
    for kind in OPERANDS:
        others = candidates(kind)
        timed = compare(others, rounds=3 if options.quick else 25, labels={"operands": kind})
        rows += timed.rows(operations=OPERATIONS, against=[name for name in OTHERS if name in others])
    print_table(rows)
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
