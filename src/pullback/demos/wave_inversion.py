"""The inversion of the wave demo: a few L-BFGS iterations from the initial model, misfit and model error of each.

The function that computes misfit and gradient is an argument: any policy will do, and so will a handwritten adjoint.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from pullback.demos.wave_data import WATER_SPEED, WaveSurvey
from pullback.words.optional_libraries import optional_library

MAXIMUM_SPEED = 4600.0
"""m/s, the upper bound of the inversion; the lower one is the speed in water."""
FIRST_UPDATE = 40.0
"""m/s: the root mean square change of the ground's velocity that the optimiser tries first."""


@frozen(eq=False)
class Inversion:
    """The recovered velocity in m/s and what each iteration reached; item 0 of the lists is the initial model."""

    velocity: NDArray[Any]
    misfits: tuple[float, ...]
    model_errors: tuple[float, ...]
    """Root mean square in m/s; see ``WaveSurvey.model_error``."""
    n_gradients: int


def depth_weight(survey: WaveSurvey) -> NDArray[np.float64]:
    """m/s per unit of the optimiser's variable, shape ``(nz, nx)``; 0 in the water, which stays as it is.

    It grows with depth, which makes up for the spreading of the waves on their way down and back: a diagonal
    preconditioner, without which the shallow ground takes all of the first updates. L-BFGS-B first tries a step of
    norm 1, hence the overall factor.
    """
    nz, nx = survey.true_velocity.shape
    depth = np.clip((np.arange(nz)[:, None] - survey.settings.border) / (nz - survey.settings.border), 0.05, 1.0)
    weight = np.where(survey.water, 0.0, np.broadcast_to(depth, (nz, nx)))
    scaled: NDArray[np.float64] = FIRST_UPDATE * np.sqrt(weight.size) / np.sqrt(np.mean(weight**2)) * weight
    return scaled


def invert(
    value_and_gradient: Callable[[NDArray[Any]], tuple[Any, NDArray[Any]]],
    survey: WaveSurvey,
    iterations: int = 8,
    progress: Callable[[int, float, float], None] | None = None,
) -> Inversion:
    """Misfit lowered by ``iterations`` of bounded L-BFGS through ``scipy.optimize.minimize(jac=True)``.

    ``value_and_gradient(c)`` takes a velocity in m/s, shape ``(nz, nx)`` and of the survey's dtype, and returns the
    misfit and its gradient. ``progress(iteration, misfit, model_error)`` is called for the initial model and after
    each iteration. ``PullbackError`` where scipy is missing.
    """
    optimize = optional_library("scipy.optimize", "the inversion uses scipy.optimize.minimize")
    initial, weight = survey.initial_velocity, depth_weight(survey)
    dtype, unit = initial.dtype, np.where(weight > 0.0, weight, 1.0)
    misfits: list[float] = []
    model_errors: list[float] = []

    def velocity(x: NDArray[np.float64]) -> NDArray[Any]:
        return (initial + weight * x.reshape(initial.shape)).astype(dtype)

    def note(value: float, c: NDArray[Any]) -> None:
        misfits.append(value)
        model_errors.append(survey.model_error(c))
        if progress is not None:
            progress(len(misfits) - 1, misfits[-1], model_errors[-1])

    def objective(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, gradient = value_and_gradient(velocity(x))
        if not misfits:
            note(float(value), velocity(x))
        # Relative to the initial misfit, so that the length of the first step does not depend on the data's units.
        return float(value) / misfits[0], (gradient * weight).ravel().astype(np.float64) / misfits[0]

    def after(intermediate_result: Any) -> None:  # scipy passes the value as well to a parameter of this name
        note(float(intermediate_result.fun) * misfits[0], velocity(intermediate_result.x))

    # A weight of 0 fixes a node by itself; a bound there would only make the optimiser project onto it.
    below = np.where(weight > 0.0, (WATER_SPEED - initial) / unit, -np.inf).ravel()
    above = np.where(weight > 0.0, (MAXIMUM_SPEED - initial) / unit, np.inf).ravel()
    options = {"maxiter": iterations, "maxcor": 10, "ftol": 0.0, "gtol": 0.0}
    bounds = list(zip(below, above, strict=True))
    optimum = optimize.minimize(
        objective, np.zeros(initial.size), jac=True, method="L-BFGS-B", bounds=bounds, callback=after, options=options
    )
    return Inversion(
        velocity=velocity(optimum.x),
        misfits=tuple(misfits),
        model_errors=tuple(model_errors),
        n_gradients=int(optimum.nfev),
    )
