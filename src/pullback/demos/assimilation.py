"""The assimilation demo: 4D-Var on Lorenz-96, cycled; by the gradient of the cost, and incrementally by its
linearisation.

The model and the cost are ordinary NumPy (:mod:`pullback.demos.assimilation_model`). Strong-constraint 4D-Var hands
cost and gradient to L-BFGS; incremental 4D-Var (Courtier, Thepaut and Hollingsworth, Q. J. R. Meteorol. Soc. 120, 1994)
solves the Gauss-Newton system by conjugate gradients, each of which asks for one product with the linearised model and
one with its adjoint.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from pullback.demos.assimilation_model import Lorenz96, Window, circulant_root
from pullback.demos.pictures import draw_assimilation
from pullback.instruments.watching.parts import Tell, silent
from pullback.policies.base import MemoryPolicy
from pullback.policies.save_all import SaveAll
from pullback.programs.marks.step_marks import steps
from pullback.transforms.derivatives.forward import linearize
from pullback.transforms.derivatives.reverse import vjp
from pullback.words.optional_libraries import optional_library

Minimum = tuple[NDArray[Any], int, int, int]
"""The control variable at the minimum, gradients or products taken, bytes held by one pull, bytes held after it was
closed."""

PICTURE = "assimilation.png"
METHODS = ("strong constraint, L-BFGS", "incremental, Gauss-Newton")


@frozen
class AssimilationSettings:
    """The experiment: a twin, whose truth is a run of the same model."""

    model: Lorenz96 = field(factory=Lorenz96)
    cycles: int = 100
    every: int = 5
    """Steps between two observations."""
    times: int = 2
    """Observation times in a window."""
    observation_error: float = 0.5
    background_error: float = 0.4
    """Standard deviation of the fixed background error covariance."""
    correlation_length: float = 1.0
    """The correlation length of background errors, in grid points."""
    seed: int = 0
    outer: int = 3
    """Linearisations in a window, of the incremental method."""
    inner: int = 10
    """Conjugate gradients for each."""
    iterations: int = 20
    """L-BFGS iterations in a window, of the strong-constraint method."""
    policy: MemoryPolicy = field(factory=SaveAll)


@frozen(eq=False)
class Cycled:
    """One method, cycled. Element ``k`` of each array belongs to window ``k``: errors of all variables at its
    observation times."""

    method: str
    background_rmse: NDArray[np.float64]
    analysis_rmse: NDArray[np.float64]
    n_products: int
    """Gradients, or products with the linearised model and its adjoint, in all windows."""
    live_bytes: tuple[int, ...]
    """What a pull held, window by window."""
    bytes_left: tuple[int, ...]
    """What was held after each window."""

    @property
    def flat(self) -> bool:
        """Every window held the same, and left nothing."""
        return len(set(self.live_bytes)) == 1 and not any(self.bytes_left)

    def __str__(self) -> str:
        held = f"{self.live_bytes[0]:,} B" if self.flat else f"{min(self.live_bytes):,} to {max(self.live_bytes):,} B"
        left = f"{max(self.bytes_left):,} B"
        return (
            f"{self.method:26}  background {np.mean(self.background_rmse):.3f}  analysis "
            f"{np.mean(self.analysis_rmse):.3f}  {self.n_products:5} products  held in each cycle {held}, after it "
            f"{left}"
        )


@frozen(eq=False)
class AssimilationReport:
    """What the demo found; prints as one line for each method."""

    settings: AssimilationSettings
    runs: tuple[Cycled, ...]
    free_rmse: NDArray[np.float64]
    """The error of a run without observations, from the same first background."""
    picture: Path | None = None

    def __str__(self) -> str:
        s = self.settings
        title = (
            f"4D-Var on Lorenz-96: {s.model.size} variables, {s.cycles} windows of {s.times * s.every} steps\n"
            f"every second variable observed every {s.every} steps with error {s.observation_error:g}; "
            "root mean square errors of all variables then, mean of all windows"
        )
        lines = [
            title,
            "",
            *map(str, self.runs),
            f"without observations        error      {np.mean(self.free_rmse):.3f}",
        ]
        return "\n".join([*lines, *([f"picture: {self.picture}"] if self.picture is not None else [])])


def strong_constraint(window: Window, settings: AssimilationSettings) -> Minimum:
    """The minimum of the cost by L-BFGS from the background; ``PullbackError`` where scipy is missing."""
    optimize = optional_library("scipy.optimize", "4D-Var uses scipy.optimize.minimize")
    held = left = 0

    def objective(v: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        nonlocal held, left
        value, pull = vjp(window.cost, v, policy=settings.policy)
        (gradient,) = pull(1.0)
        held = pull.report.live_bytes
        pull.close()
        left += pull.report.live_bytes
        return float(value), gradient

    optimum = optimize.minimize(
        objective, np.zeros(settings.model.size), jac=True, method="L-BFGS-B", options={"maxiter": settings.iterations}
    )
    return optimum.x, int(optimum.nfev), held, left


def incremental(window: Window, settings: AssimilationSettings) -> Minimum:
    """The minimum of the cost by Gauss-Newton: ``outer`` linearisations, ``inner`` conjugate gradients on each."""
    v, n_products, held, left = np.zeros(settings.model.size), 0, 0, 0
    for _ in range(settings.outer):
        departures, push = linearize(window.departures, v)
        _, pull = vjp(window.departures, v, policy=settings.policy)

        def hessian(p: NDArray[Any], push: Any = push, pull: Any = pull) -> NDArray[Any]:
            return p + pull(push(p))[0]  # type: ignore[no-any-return]  # (I + G'G) p

        step, n = conjugate_gradients(hessian, -(v + pull(departures)[0]), settings.inner)
        v = v + step
        n_products += 2 * n + 1
        held = pull.report.live_bytes
        pull.close()
        left += pull.report.live_bytes
    return v, n_products, held, left


def conjugate_gradients(
    product: Callable[[NDArray[Any]], NDArray[Any]], b: NDArray[Any], iterations: int, tolerance: float = 1e-3
) -> tuple[NDArray[Any], int]:
    """``(x, iterations)`` with ``product(x)`` near ``b`` (Hestenes and Stiefel 1952), until the residual has fallen
    by ``tolerance``."""
    x, r = np.zeros_like(b), b.copy()
    p, rr = r.copy(), float(np.sum(r * r))
    first = rr
    for k in range(iterations):
        if rr <= tolerance**2 * first:
            return x, k
        hp = product(p)
        alpha = rr / float(np.sum(p * hp))
        x += alpha * p
        r -= alpha * hp
        rr, before = float(np.sum(r * r)), rr
        p = r + (rr / before) * p
    return x, iterations


@frozen(eq=False)
class Twin:
    """The truth at the observation times and what is seen of it, both ``(cycles, times, variables)``, and the first
    background."""

    truth: NDArray[Any]
    observations: NDArray[Any]
    first: NDArray[Any]


def make_twin(settings: AssimilationSettings) -> Twin:
    """The truth, a run of the model after 1000 steps of spin-up, seen with random errors."""
    model, rng = settings.model, np.random.default_rng(settings.seed)
    x = model.run(model.forcing + rng.standard_normal(model.size), range(1000))
    first = x + settings.background_error * rng.standard_normal(model.size)
    truth = []
    for _ in range(settings.cycles):
        states = forecast(x, settings)
        truth.append(states)
        x = states[-1]
    exact = np.stack(truth)
    visible = exact[..., ::2]
    return Twin(exact, visible + settings.observation_error * rng.standard_normal(visible.shape), first)


def forecast(x: NDArray[Any], settings: AssimilationSettings) -> NDArray[Any]:
    """The states at the observation times of a window that begins with ``x``; the last is the end of the window."""
    states = []
    for _ in range(settings.times):
        x = settings.model.run(x, range(settings.every))
        states.append(x)
    return np.stack(states)


def cycle(method: str, twin: Twin, settings: AssimilationSettings, tell: Tell, done: int) -> Cycled:
    """One method over all windows: the analysis, forecast to the end of its window, is the next background."""
    analyse = strong_constraint if method == METHODS[0] else incremental
    weights = circulant_root(settings.model.size, settings.background_error, settings.correlation_length, 4)
    background, errors, pull_bytes, n_products = twin.first, [], [], 0
    for k in range(settings.cycles):
        window = Window(
            settings.model, background, twin.observations[k], slice(None, None, 2), settings.every,
            settings.observation_error, weights,
            steps,
        )  # fmt: skip
        v, products, held, left = analyse(window, settings)
        guessed, analysed = forecast(background, settings), forecast(window.start(v), settings)
        errors.append((rmse(guessed, twin.truth[k]), rmse(analysed, twin.truth[k])))
        pull_bytes.append((held, left))
        n_products += products
        background = analysed[-1]
        tell(
            f"{method}: window {k + 1}, error {errors[-1][0]:.2f} -> {errors[-1][1]:.2f}",
            done + k + 1,
            len(METHODS) * settings.cycles,
        )
    before, after = np.transpose(errors)
    return Cycled(method, before, after, n_products, *zip(*pull_bytes, strict=True))


def rmse(x: NDArray[Any], truth: NDArray[Any]) -> float:
    """Root mean square of the difference."""
    return float(np.sqrt(np.mean((x - truth) ** 2)))


def run_assimilation(
    settings: AssimilationSettings | None = None, *, out: Path | None = None, progress: Tell | None = None
) -> AssimilationReport:
    """The :class:`AssimilationReport`: both methods, cycled over the same observations, and a run without any.

    ``out`` is the folder of the picture (made if missing); None draws none. Needs scipy, and matplotlib for the
    picture; ``PullbackError`` names the extra where one is missing.
    """
    settings, tell = settings or AssimilationSettings(), progress or silent
    twin = make_twin(settings)
    runs = tuple(cycle(method, twin, settings, tell, k * settings.cycles) for k, method in enumerate(METHODS))
    x, free = twin.first, []
    for k in range(settings.cycles):
        states = forecast(x, settings)
        free.append(rmse(states, twin.truth[k]))
        x = states[-1]
    report = AssimilationReport(settings, runs, np.asarray(free))
    if out is None:
        return report
    out.mkdir(parents=True, exist_ok=True)
    draw_assimilation(report.runs, report.free_rmse, out / PICTURE)
    return evolve(report, picture=out / PICTURE)
