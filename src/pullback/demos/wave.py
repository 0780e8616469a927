"""The wave demo: the gradient of a full-waveform-inversion misfit under several memory policies, and the inversion it
serves.

The model and its misfit are ordinary NumPy (:mod:`pullback.demos.wave_model`); only the loop function comes from
pullback.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, frozen

from pullback.demos.pictures import draw_models, draw_trade_off
from pullback.demos.wave_data import DEFAULT, WaveSettings, WaveSurvey, make_survey
from pullback.demos.wave_inversion import Inversion, invert
from pullback.demos.wave_model import WaveProblem, misfit_by_loop
from pullback.instruments.profiling.profile_measurements import has_memory_profiler
from pullback.instruments.profiling.profile_runs import DEFAULT_POLICIES, profile
from pullback.instruments.profiling.profile_table import Profile
from pullback.instruments.watching.parts import Tell, silent
from pullback.loops.functions.loop_functions import fori_loop
from pullback.policies.base import MemoryPolicy
from pullback.policies.binomial import Binomial
from pullback.transforms.derivatives.reverse import value_and_grad

TRADE_OFF, MODELS = "wave-trade-off.png", "wave-models.png"
INVERSION_POLICY = Binomial(30)


@frozen(eq=False)
class WaveMisfit:
    """The misfit as a function of the velocity in m/s, shape ``(nz, nx)``. It can be pickled, and takes complex
    velocities too."""

    problem: WaveProblem

    @property
    def __name__(self) -> str:
        """What tables call it."""
        problem = self.problem
        shots = problem.field_shape[0] if len(problem.field_shape) == 3 else 1
        nz, nx = problem.damp.shape
        return (
            f"wave misfit, {nz} x {nx} nodes, {problem.n_steps} steps, {shots} shot{'s' if shots > 1 else ''}, "
            f"{problem.dtype}"
        )

    def __call__(self, c: Any) -> Any:
        """The misfit, a scalar."""
        # A complex velocity (the complex step of the dot-product test) needs complex fields to be written into.
        problem = self.problem.astype(c.dtype) if c.dtype.kind == "c" else self.problem
        return misfit_by_loop(c, problem, fori_loop)


@frozen(eq=False)
class WaveReport:
    """What the demo found; prints as the table and the inversion's figures."""

    survey: WaveSurvey
    profile: Profile
    inversion: Inversion
    policy: MemoryPolicy
    """The policy under which the inversion ran."""
    pictures: tuple[Path, ...]

    def inversion_lines(self) -> list[str]:
        """Misfit and model error before and after."""
        misfits, errors = self.inversion.misfits, self.inversion.model_errors
        left, gone = misfits[-1] / misfits[0], errors[-1] / errors[0]
        return [
            (
                f"inversion: {len(misfits) - 1} L-BFGS iterations, "
                f"{self.inversion.n_gradients} gradients under {self.policy!r}"
            ),
            (
                f"  misfit       {misfits[0]:.4g} -> {misfits[-1]:.4g} of the recordings' energy  ({left:.1%} of the "
                "initial)"
            ),
            (
                f"  model error  {errors[0]:.1f} -> {errors[-1]:.1f} m/s, root mean square below the sea floor  "
                f"({gone:.1%} of the initial)"
            ),
        ]

    def __str__(self) -> str:
        pictures = [f"picture: {path}" for path in self.pictures]
        return "\n".join([str(self.profile), "", *self.inversion_lines(), *pictures])


def run_wave(
    settings: WaveSettings = DEFAULT,
    *,
    policies: Sequence[MemoryPolicy] = DEFAULT_POLICIES,
    inversion_policy: MemoryPolicy = INVERSION_POLICY,
    iterations: int = 8,
    repeat: int = 2,
    rss: bool | None = None,
    out: Path | None = None,
    progress: Tell | None = None,
) -> WaveReport:
    """The :class:`WaveReport`: the survey is made, the gradient profiled under each policy, the velocity recovered, two
    pictures drawn.

    ``rss`` None measures the peak RSS where memory-profiler is there. ``out`` is the folder of the pictures (made if
    missing); None draws none. Needs matplotlib (the terrain, the pictures) and scipy; ``PullbackError`` names the extra
    where one is missing.
    """
    tell = progress or silent
    tell("survey: recordings on the finer grid", 0, 1)
    survey = make_survey(settings)
    misfit = WaveMisfit(survey.problem)
    measured = profile(
        misfit,
        survey.initial_velocity,
        policies=policies,
        repeat=repeat,
        taylor=True,
        dot_product=True,
        rss=has_memory_profiler() if rss is None else rss,
        progress=progress,
    )
    tell("inversion: initial model", 0, iterations + 1)

    def after(iteration: int, value: float, error: float) -> None:
        tell(f"inversion: misfit {value:.4g}, model error {error:.0f} m/s", iteration + 1, iterations + 1)

    inversion = invert(value_and_grad(misfit, policy=inversion_policy), survey, iterations, after)
    report = WaveReport(survey, measured, inversion, inversion_policy, ())
    return report if out is None else evolve(report, pictures=draw(report, out))


def draw(report: WaveReport, out: Path) -> tuple[Path, ...]:
    """The trade-off and the models, as PNG files in the folder ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    trade_off, models = out / TRADE_OFF, out / MODELS
    draw_trade_off(report.profile, trade_off)
    draw_models(report.survey, report.inversion, models)
    return trade_off, models


def sized(
    settings: WaveSettings, *, grid: tuple[int, int] | None = None, n_steps: int | None = None, dtype: str | None = None
) -> WaveSettings:
    """The settings with another grid ``(nz, nx)``, number of steps or dtype; None keeps what is there."""
    changed: dict[str, Any] = {}
    if grid is not None:
        changed |= {"shape": grid, "border": max(2, min(settings.border, min(grid) // 6))}
    if n_steps is not None:
        changed["n_steps"] = n_steps
    if dtype is not None:
        changed["dtype"] = np.dtype(dtype).name
    return evolve(settings, **changed)
