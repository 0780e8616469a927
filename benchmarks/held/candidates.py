"""The programs and, for each, how a candidate makes its gradient within a number of bytes."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from attrs import field, frozen
from bench_wave import misfit_of, problem_of
from references import wave_adjoint

import pullback as pb
from held.nests import bytes_of, nest_for
from pullback.memory.in_force import watching

Gradient = Callable[[], Any]
SHORT = 20
"""Steps of a gradient that loads what is needed."""
LINKS = 96
"""Steps of the chain, which pycograd records whole."""


@frozen
class Candidate:
    """A gradient, and what is known of it."""

    gradient: Gradient
    """It returns a NumPy array."""
    predicted_bytes: float
    """By a plan; where there is none, by the sizes of a state and of a tape."""
    n_forward: Callable[[], int | None]
    """The forward steps that a gradient has run."""
    note: str = ""
    warm: Callable[[], Any] = lambda: None
    """A short gradient, that loads what is needed."""
    in_numpy: bool = field(default=False, kw_only=True)
    """Whether its arrays are NumPy's, so that ``tracemalloc`` sees them."""


@frozen
class Program:
    """A loop of steps; every candidate makes the gradient of the same."""

    text: str
    loop: Callable[[int, Any], Callable[[Any], Any]]
    """``f`` of a number of steps and a policy."""
    x: Any
    n_steps: int
    forward: Gradient
    others: dict[str, Callable[[int], Candidate]] = field(factory=dict)
    """What is not ours, by name, within a number of bytes."""

    def candidate(self, name: str, max_bytes: int) -> Candidate:
        """One of them, within a number of bytes."""
        return self.others[name](max_bytes) if name in self.others else self.ours(self.policy(name, max_bytes))

    def policy(self, name: str, max_bytes: int) -> Any:
        """The policy of a name; of those with a number of snapshots the one with the most that ``plan`` finds to
        fit."""
        if name in ("SaveAll", "Recompute"):
            return getattr(pb, name)()
        if name in ("auto", "Budget"):
            return name if name == "auto" else pb.Budget(max_bytes)
        advice = pb.plan(self.loop(self.n_steps, None), self.x, budget=max_bytes)
        return next(plan.policy for plan in (advice, *advice.others) if type(plan.policy).__name__ == name)

    def ours(self, policy: Any) -> Candidate:
        """The gradient under a policy."""
        planned = pb.plan(self.loop(self.n_steps, policy), self.x)
        note = ", ".join([repr(policy), *(repr(choice.policy) for choice in planned.choices)])
        reports: list[Any] = []

        def gradient(n: int = self.n_steps) -> Any:
            with watching(reports.append):
                return pb.grad(self.loop(n, policy))(self.x)

        return Candidate(
            gradient, planned.peak_bytes, lambda: reports[-1].n_forward, note, partial(gradient, SHORT), in_numpy=True
        )


def wave(*, quick: bool) -> Program:
    """The wave equation, 256 x 256, 4000 steps."""
    n, n_steps = (48, 60) if quick else (256, 4000)
    c, problem = problem_of(n, n_steps)
    state_bytes, tape_bytes = 2 * c.nbytes, (n - 2) ** 2 * c.itemsize

    def loop(n_steps: int, policy: Any) -> Callable[[Any], Any]:
        return misfit_of(problem_of(n, n_steps)[1] if n_steps != problem.n_steps else problem, policy)

    def nested_torch(max_bytes: int) -> Candidate:
        import torch  # noqa: PLC0415  a peer
        from references import wave_torch  # noqa: PLC0415

        torch.set_num_threads(1)
        nest = nest_for(n_steps, max_bytes, state_bytes, tape_bytes)
        gradient, ran = wave_torch.nested(problem, nest)
        short, _ = wave_torch.nested(problem_of(n, SHORT)[1], (2, SHORT // 2))

        def once() -> Any:
            ran.clear()
            return gradient(c)[1]

        return Candidate(
            once, bytes_of(nest, state_bytes, tape_bytes), lambda: len(ran),
            f"nest {nest}", lambda: short(c),
        )  # fmt: skip

    def by_jax(max_bytes: int, kind: str) -> Candidate:
        from references import wave_jax  # noqa: PLC0415  a peer

        snapshots, nest = min(max_bytes // state_bytes, n_steps), nest_for(n_steps, max_bytes, state_bytes, tape_bytes)
        if kind == "equinox":
            scan, note = wave_jax.checkpointed_scan(snapshots), f"{snapshots} checkpoints"
            held = snapshots * state_bytes + tape_bytes
        else:
            scan, note, held = wave_jax.nested_scan(nest), f"nest {nest}", bytes_of(nest, state_bytes, tape_bytes)
        gradient = wave_jax.gradient_by(scan, problem)
        return Candidate(lambda: np.asarray(gradient(c)[1]), held, lambda: wave_jax.steps_run(scan, n_steps), note)

    jaxes: dict[str, Any] = {kind: partial(by_jax, kind=kind) for kind in ("jax", "equinox")}
    others = {"torch": nested_torch, **jaxes}
    text = f"wave {n} x {n}, {n_steps} steps"
    return Program(text, loop, c, n_steps, lambda: wave_adjoint.misfit_only(c, problem), others)


def heat(*, quick: bool) -> Program:
    """A heat inversion, 200 x 200, 1000 steps: state and tape are of one size."""
    n, n_steps = (40, 50) if quick else (200, 1000)
    start = np.zeros((n, n))
    start[n // 2, n // 2] = 1.0

    def loop(n_steps: int, policy: Any) -> Callable[[Any], Any]:
        def f(c: Any) -> Any:
            field = 0.2 * c

            def step(_: int, u: Any) -> Any:
                around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
                return u + field * (around - 4 * u)

            return np.sum(pb.fori_loop(0, n_steps, step, start, policy=policy) ** 2)

        return f

    x = np.ones((n, n))
    return Program(f"heat {n} x {n}, {n_steps} steps", loop, x, n_steps, lambda: loop(n_steps, None)(x))


def chain(*, quick: bool) -> Program:
    """A chain of products and ``tanh``, short enough to be recorded whole: what pycograd runs."""
    rows, width, n_steps = (50, 64, 12) if quick else (250, 256, LINKS)
    w = np.random.default_rng(0).normal(size=(width, width)) / np.sqrt(width)
    x = np.random.default_rng(1).normal(size=(rows, width))

    def loop(n_steps: int, policy: Any) -> Callable[[Any], Any]:
        return lambda x: np.sum(pb.fori_loop(0, n_steps, lambda _, u: np.tanh(u @ w), x, policy=policy) ** 2)

    def spilled(max_bytes: int) -> Candidate:
        import pycograd  # noqa: PLC0415  a peer
        from pycograd.remat import apply_remat_plan  # noqa: PLC0415

        def unrolled(x: Any) -> Any:
            for _ in range(n_steps):
                x = np.tanh(x @ w)
            return np.sum(x * x)

        sys.setrecursionlimit(100_000)  # what it computes again it asks for from call to call
        graph = pycograd.optimize(pycograd.value_and_grad(pycograd.capture(unrolled, x)))
        plan = graph.plan_remat(max_bytes)
        planned = apply_remat_plan(graph, plan)
        return Candidate(
            lambda: planned.eval_scheduled(x)[0][1][0], plan.planned_peak, lambda: None,
            "" if plan.feasible else "infeasible by its own plan", in_numpy=True,
        )  # fmt: skip

    return Program(
        f"chain of {n_steps}, {x.nbytes / 1e6:.3g} MB each", loop, x, n_steps, lambda: loop(n_steps, None)(x),
        {"pycograd": spilled},
    )  # fmt: skip


PROGRAMS: dict[str, Callable[..., Program]] = {"wave": wave, "heat": heat, "chain": chain}
