"""The Lorenz-96 model and 4D-Var on it: ordinary NumPy, which knows nothing of derivatives.

E. N. Lorenz, Predictability: a problem partly solved, ECMWF Seminar on Predictability, 1996:
``dx_i/dt = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + F`` on a circle, one unit of time being five
days. The functions take arrays, or tracers over them.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

Steps = Iterable[int]
"""What marks the steps of a window: ``range(n)``, or ``pullback.steps(n)``."""


@frozen
class Lorenz96:
    """The model: number of variables, forcing, and time step in units of five days."""

    size: int = 40
    forcing: float = 8.0
    dt: float = 0.05

    def tendency(self, x: Any) -> Any:
        """dx/dt, shape ``(size,)``."""
        return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + self.forcing

    def step(self, x: Any) -> Any:
        """The state one time step later, by the classical Runge-Kutta method of fourth order."""
        k1 = self.tendency(x)
        k2 = self.tendency(x + (0.5 * self.dt) * k1)
        k3 = self.tendency(x + (0.5 * self.dt) * k2)
        k4 = self.tendency(x + self.dt * k3)
        return x + (self.dt / 6.0) * (k1 + 2.0 * (k2 + k3) + k4)

    def run(self, x: Any, steps: Steps) -> Any:
        """The state after all steps."""
        for _ in steps:
            x = self.step(x)
        return x


@frozen(eq=False)
class Window:
    """One assimilation window: background, observations, and their errors. Everything 4D-Var asks for, as functions of
    ``v``.

    The control variable ``v``, shape ``(size,)``, says the state at the beginning of the window as
    ``background + L v``; so the background term ``(x - xb)' B^-1 (x - xb) / 2`` is ``v'v / 2``, with ``B = L L'``, and
    the problem is well scaled.
    """

    model: Lorenz96
    background: NDArray[Any]
    observations: NDArray[Any]
    """Shape ``(times, observed variables)``; the first is taken ``every`` steps after the beginning."""
    observed: slice
    every: int
    observation_error: float
    """Standard deviation; errors are independent, so ``R`` is its square times the identity."""
    weights: tuple[float, ...]
    """The weights of ``L``, a symmetric circulant matrix: of the diagonal, of the neighbours, of their neighbours, and
    so on."""
    mark: Any = field(default=range, repr=False)
    """``range``, or ``pullback.steps``."""

    def spread(self, v: Any) -> Any:
        """``L v``."""
        out = self.weights[0] * v
        for k, weight in enumerate(self.weights[1:], 1):
            out = out + weight * (np.roll(v, k) + np.roll(v, -k))
        return out

    def start(self, v: Any) -> Any:
        """The state at the beginning of the window."""
        return self.background + self.spread(v)

    def observed_states(self, v: Any) -> Any:
        """The model's counterparts of the observations over their standard deviation, shape
        ``(times, observed variables)``."""
        x, seen = self.start(v), []
        for k in self.mark(len(self.observations) * self.every):
            x = self.model.step(x)
            if (k + 1) % self.every == 0:
                seen.append(x[self.observed])
        return np.stack(seen) / self.observation_error

    def departures(self, v: Any) -> Any:
        """What the model says more than was observed, over the standard deviation of the observations."""
        return self.observed_states(v) - self.observations / self.observation_error

    def cost(self, v: Any) -> Any:
        """Half the squares of the departures from background and observations, each over its error: the negative log
        of the posterior."""
        return 0.5 * np.sum(v * v) + 0.5 * np.sum(self.departures(v) ** 2)


def circulant_root(size: int, deviation: float, length: float, reach: int) -> tuple[float, ...]:
    """Weights of ``L`` with ``(L L')_ij`` near ``deviation**2 exp(-(i - j)**2 / (2 length**2))``; ``(L L')_ii`` is the
    variance exactly.

    The square root of a Gaussian convolution is a Gaussian convolution whose length is shorter by the square root of 2.
    Correlations beyond ``2 reach`` places are 0.
    """
    reach = min(reach, (size - 1) // 2)
    raw = np.exp(-((np.arange(reach + 1) / length) ** 2))
    norm = np.sqrt(raw[0] ** 2 + 2.0 * np.sum(raw[1:] ** 2))
    return tuple(float(weight) for weight in deviation * raw / norm)
