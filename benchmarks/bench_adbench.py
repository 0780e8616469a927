"""ADBench's Gaussian mixture against torch eager and autograd, and the sparse Jacobian of its bundle adjustment at
several sizes.

    python benchmarks/bench_adbench.py [--quick] [--json PATH]

Figures to hold: the gradient of a Gaussian mixture (d = 10, K = 25, n = 1000) at most 1.2 times torch eager and at most
0.4 times autograd, all three from the same formula, which is taken in two forms (``references/mixture.py``); the
Jacobian of a bundle adjustment in time proportional to its nonzeros. The inputs are drawn, not ADBench's.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import autograd.numpy as anp
import numpy as np
import torch
from adbench.reading import Bundle, Mixture
from autograd import value_and_grad as autograd_value_and_grad
from autograd.tracer import getval
from harness import Row, arguments, compare, one_thread, print_table, write_json
from references import mixture

import pullback as pb
from adbench import ba, gmm


def drawn_mixture(d: int, k: int, n: int) -> Mixture:
    """A mixture with normal parameters and points."""
    rng = np.random.default_rng(0)
    return Mixture(
        rng.normal(size=k),
        rng.normal(size=(k, d)),
        rng.normal(size=(k, d * (d + 1) // 2)),
        rng.normal(size=(n, d)),
        1.0,
        0,
    )


def log_sum_exp_by(xp: Any, plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What ``references/mixture.py`` asks for; the greatest term is a constant, and ``plain`` gives the value behind
    a traced array."""

    def log_sum_exp(terms: Any) -> Any:
        top = np.max(plain(terms), axis=0)
        return xp.log(xp.sum(xp.exp(terms - top), axis=0)) + top

    return log_sum_exp


def by_torch(
    formula: Callable[..., Any], params: tuple[Any, ...], fixed: tuple[Any, ...], prior: tuple[float, int]
) -> Callable[[], Any]:
    """Value and gradient by torch, eagerly, with its own ``logsumexp``."""
    leaves = [torch.tensor(value, requires_grad=True) for value in params]
    given = [torch.tensor(value) for value in fixed]

    def value_and_gradient() -> Any:
        value = formula(torch, lambda terms: torch.logsumexp(terms, 0), leaves, *given, *prior)
        return value.detach(), torch.autograd.grad(value, leaves)

    return value_and_gradient


def candidates(problem: Mixture, form: str) -> dict[str, Callable[[], Any]]:
    """Value and gradient of one form by each library, and by hand; they agree, but for the constants that the
    references leave out."""
    (n, d), k = problem.x.shape, problem.alphas.size
    params = (problem.alphas, problem.means, problem.icf)
    formula = mixture.published if form == "published" else mixture.one_product
    fixed = (problem.x if form == "published" else mixture.with_ones(problem.x), gmm.factor_places(d), np.zeros((k, 1)))
    prior = (problem.gamma, problem.m)
    by_autograd = autograd_value_and_grad(lambda p: formula(anp, log_sum_exp_by(anp, getval), p, *fixed, *prior))
    ours = pb.value_and_grad(lambda p: formula(np, log_sum_exp_by(np, pb.value), p, *fixed, *prior))
    found: dict[str, Any] = {
        "torch": by_torch(formula, params, fixed, prior),
        "autograd": lambda: by_autograd(params),
        "pullback": lambda: ours(params),
    }
    if form != "published":
        found |= {
            "pullback": lambda: gmm.value_and_gradient(problem),
            "hand": lambda: mixture.one_product_by_hand(params, *fixed, *prior),
        }
    expected, slopes = gmm.value_and_gradient(problem)
    left_out = {"pullback": 0.0} if form != "published" else {}
    for name, function in found.items():
        value, gradient = function()
        without = left_out.get(name, gmm.constant(n, d, k, *prior))
        np.testing.assert_allclose(float(value) - without, expected, rtol=1e-10)
        for got, wanted in zip(gradient, slopes, strict=True):
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-7, atol=1e-8 * float(np.abs(wanted).max()))
    return found


def mixture_rows(d: int, k: int, n: int, rounds: int) -> list[Row]:
    """Value and gradient of both forms by each library; the value alone by NumPy stands beside them."""
    problem = drawn_mixture(d, k, n)
    params = (problem.alphas, problem.means, problem.icf)
    rows: list[Row] = []
    for form in ("one product", "published"):
        made = candidates(problem, form)
        if form != "published":
            made["value only, NumPy"] = lambda: gmm.objective(params, problem.x, problem.gamma, problem.m)
        rows += compare(made, rounds=rounds, labels={"formula": form, "d": d, "k": k, "n": n}).rows(
            against=("autograd",)
        )
    return rows


def drawn_bundle(cameras: int, points: int, observations: int) -> Bundle:
    """Cameras that look at points in front of them."""
    rng = np.random.default_rng(0)
    looking = np.concatenate(
        [0.1 * rng.normal(size=(cameras, 6)), np.tile([500.0, 1.0, 2.0, 0.05, 0.02], (cameras, 1))], axis=1
    )
    places = rng.normal(size=(points, 3)) + np.array([0.0, 0.0, 8.0])
    observed = np.stack([rng.integers(cameras, size=observations), rng.integers(points, size=observations)], axis=1)
    return Bundle(looking, places, rng.normal(size=observations), observed, 100.0 * rng.normal(size=(observations, 2)))


def bundle_rows(sizes: tuple[int, ...], rounds: int) -> list[Row]:
    """The whole sparse Jacobian at several sizes: nanoseconds for each of its nonzeros."""

    def whole(problem: Bundle) -> Any:
        _, blocks, of_weights = ba.value_and_jacobian(problem)
        return ba.compressed_rows(problem, blocks, of_weights)

    rows: list[Row] = []
    for size in sizes:
        problem = drawn_bundle(max(2, size // 600), size // 4, size)
        timed = compare(
            {"residuals": partial(ba.objective, problem), "Jacobian": partial(whole, problem)}, rounds=rounds
        )
        nonzeros = 31 * size
        cost = timed["Jacobian"].seconds / nonzeros * 1e9
        rows.append({
            "what": "sparse Jacobian", "observations": size, "nonzeros": nonzeros, "ns_per_nonzero": cost,
            "x residuals": timed.ratio("Jacobian"), "x smallest": cost / rows[0]["ns_per_nonzero"] if rows else 1.0,
        })  # fmt: skip
    return rows


def main() -> None:
    options = arguments("ADBench's Gaussian mixture and bundle adjustment")
    one_thread()
    torch.set_num_threads(1)
    rounds = 3 if options.quick else 15
    mixtures = mixture_rows(10, 25, 1000, rounds)
    print_table(mixtures)
    bundles = bundle_rows(
        (2_000, 8_000) if options.quick else (2_000, 8_000, 32_000, 128_000), 2 if options.quick else 7
    )
    print_table(bundles)
    write_json(options.json, [*mixtures, *bundles])


if __name__ == "__main__":
    main()
