"""What second derivatives and Jacobians cost: a Hessian-vector product against a gradient, derivatives written anew in
each call against one that is kept, a dense Jacobian against autograd's, a pull of several seeds against one for each.

    python benchmarks/bench_derivatives.py [--quick] [--json PATH]

Figures to hold: ``hvp`` at most 4 times a gradient at 1e5 elements, and 10 times at 4 where it is called again and
again; the Jacobian of a 50-in 50-out map at most 0.5 times autograd's time. Eight seeds of a loop under
``Binomial(10)`` together at most 0.3 times as long as one by one. The functions of the products are Rosenbrock's
(slices and powers) and a damped sine (elementwise).
autograd takes part where it is installed.

At 1e5 elements an array is 0.8 MB, and glibc gives freed memory at the end of the heap back to the system from 1.6 MB
on, until a larger block has once been freed. A product frees more than twice what a gradient frees, so in a process
without larger arrays (``heap`` "small") its time is in large part that of getting the pages again; in one that has
freed a block of 16 MB ("large") it is not. Both are measured.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from harness import Comparison, arguments, compare, one_thread, print_table, write_json

import pullback as pb

SIZES = (4, 100_000)
WIDTH = 50
STATE, STEPS = 2_000, 200


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def damped_sine(x: Any) -> Any:
    return np.sum(np.sin(x) * np.exp(-x * x))


def network(numpy: Any, first: Any, second: Any) -> Callable[[Any], Any]:
    """Two layers and elementwise work, from ``WIDTH`` to ``WIDTH`` numbers, in somebody's NumPy."""

    def f(x: Any) -> Any:
        y = numpy.tanh(numpy.dot(first, x))
        z = numpy.sin(y) * x + y**2
        return numpy.dot(second, z) + numpy.exp(-z)

    return f


def products(f: Callable[[Any], Any], n: int, heap: str, rounds: int) -> Comparison:
    """A gradient and a Hessian-vector product, the latter checked against the difference of two gradients."""
    rng = np.random.default_rng(n)
    x, t = rng.normal(size=n), rng.normal(size=n)
    gradient, step = pb.grad(f), 1e-6
    difference = (gradient(x + step * t) - gradient(x - step * t)) / (2 * step)
    np.testing.assert_allclose(
        pb.hvp(f, (x,), (t,)), difference, rtol=1e-4, atol=1e-4 * float(np.abs(difference).max())
    )
    candidates = {"gradient": lambda: gradient(x), "hvp": lambda: pb.hvp(f, (x,), (t,))}
    return compare(candidates, rounds=rounds, labels={"f": f.__name__, "n": n, "heap": heap})


def potential(x: Any) -> Any:
    return 0.5 * np.dot(x, x) + x[0] * x[0] * x[1]


def written_anew(rounds: int) -> Comparison:
    """Derivatives of a function of a few operations as users write them in loops, after 600 calls."""
    x, t = np.array([1.0, 2.0, 0.5, 0.3]), np.array([0.0, 1.0, 0.5, 0.1])
    kept, width = pb.grad(potential), np.float64(0.7)
    candidates: dict[str, Callable[[], Any]] = {
        "kept gradient": lambda: kept(x),
        "plain": lambda: potential(x),
        "grad(f)(x)": lambda: pb.grad(potential)(x),
        "grad(lambda)(x)": lambda: pb.grad(lambda x: potential(width * x))(x),
        "value_and_grad(f)(x)": lambda: pb.value_and_grad(potential)(x),
        "hvp(f)": lambda: pb.hvp(potential, (x,), (t,)),
        "hvp(lambda)": lambda: pb.hvp(lambda x: potential(width * x), (x,), (t,)),
        "jvp(f)": lambda: pb.jvp(potential, (x,), (t,)),
        "jvp(kept)": lambda: pb.jvp(kept, (x,), (t,)),
        "jvp(grad(f))": lambda: pb.jvp(pb.grad(potential), (x,), (t,)),
        "jvp(lambda y: 1.0 * grad(f)(y))": lambda: pb.jvp(lambda y: 1.0 * pb.grad(potential)(y), (x,), (t,)),
        "vjp(f, x), pull": lambda: pb.vjp(potential, x)[1](1.0),
        "linearize(f, x), push": lambda: pb.linearize(potential, x)[1](t),
        "hessian(f)(x)": lambda: pb.hessian(potential)(x),
        "jacobian(f)(x)": lambda: pb.jacobian(np.cos)(x),
    }
    for candidate in candidates.values():
        for _ in range(600):
            candidate()
    return compare(candidates, rounds=rounds, labels={"f": "potential", "n": len(x)})


def jacobians(rounds: int) -> Comparison:
    """The same Jacobian by autograd and by us, in both directions."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, WIDTH, WIDTH)) / np.sqrt(WIDTH)
    x = rng.normal(size=WIDTH)
    candidates: dict[str, Callable[[], Any]] = {}
    try:
        theirs = import_module("autograd").jacobian(network(import_module("autograd.numpy"), first, second))
        candidates["autograd"] = lambda: theirs(x)
    except ImportError:
        print("autograd is not installed")
    ours = pb.jacobian(network(np, first, second))
    by_columns = pb.jacobian(network(np, first, second), mode="forward")
    candidates |= {"pullback": lambda: ours(x), "pullback, forward": lambda: by_columns(x)}
    expected = ours(x)
    for name, jacobian in candidates.items():
        np.testing.assert_allclose(jacobian(), expected, rtol=1e-9, atol=1e-12, err_msg=name)
    return compare(candidates, rounds=rounds, labels={"f": f"{WIDTH} to {WIDTH}"})


def seeds(rounds: int) -> Comparison:
    """Eight cotangents of the last state of a loop, pulled back one by one and together."""
    x = np.linspace(0.1, 1.0, STATE)
    step = lambda k, u: u + 0.01 * np.sin(u) * np.exp(-x * u)  # noqa: E731
    _, pull = pb.vjp(lambda u: pb.fori_loop(0, STEPS, step, u, policy=pb.Binomial(10)), x)
    given = list(np.random.default_rng(0).normal(size=(8, STATE)))
    for (one,), (other,) in zip(pull(given), map(pull, given), strict=True):
        np.testing.assert_array_equal(one, other)
    candidates = {"one by one": lambda: [pull(ct) for ct in given], "together": lambda: pull(given)}
    return compare(candidates, rounds=rounds, labels={"f": f"loop of {STEPS} steps, 8 seeds", "n": STATE})


def main() -> None:
    options = arguments("Hessian-vector products against gradients, a dense Jacobian against autograd's")
    one_thread()
    rounds = 3 if options.quick else 15
    rows: list[dict[str, Any]] = []
    for heap in ("small", "large"):
        if heap == "large":
            np.ones(2**21)
        for n in SIZES:
            rows += products(rosenbrock, n, heap, rounds).rows() + products(damped_sine, n, heap, rounds).rows()
    rows += written_anew(rounds).rows() + jacobians(rounds).rows() + seeds(3).rows()
    print_table(rows)
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
