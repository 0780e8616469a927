"""The 2-D acoustic wave equation, its recordings and its misfit, as ordinary NumPy.

Every function here runs unchanged on plain arrays and on tracers: it uses operators, ``np.*`` functions, slices, and
writes only into arrays that it has just made. Scalars are Python numbers, so float32 stays float32.

The equation is ``u_tt + eta u_t = c**2 (u_zz + u_xx) + s``, with the damping ``eta`` zero outside an absorbing border.
Centred differences in time and the 5-point Laplacian, with ``h = eta dt / 2``, give

    u_next = u + damp (u - u_prev) + gain (c dt / dx)**2 L u + wavelet[k],
    damp = (1 - h) / (1 + h),  gain = 1 / (1 + h)

which is the usual leapfrog ``2 u - u_prev + ...`` wherever ``h = 0``. It is stable for ``c dt / dx < 1 / sqrt(2)``.
The outermost ring of nodes is never touched by the Laplacian; it lies deep inside the absorbing border.

Arrays: a wavefield has the shape of the velocity, ``(nz, nx)``, for one shot, and ``(n_shots, nz, nx)`` for several,
which then advance together. Depth ``z`` grows downwards.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from pullback.words.errors import PullbackError

Field = Any
"""A wavefield, a velocity or a loss: a plain array or a tracer over one."""

State = tuple[Field, Field, Field]
"""``(u_prev, u, loss)``: what one step takes and returns."""

Body = Callable[[int, State], State]

CFL_LIMIT = 2**-0.5
"""Largest stable ``c dt / dx`` of leapfrog with the 5-point Laplacian in two dimensions (Courant, Friedrichs, Lewy)."""


@frozen(eq=False)
class WaveProblem:
    """A discrete experiment: grid, time axis, sources, receivers, absorbing border and observed recordings.

    ``wavelet[k]`` is what step ``k`` adds to the field at each source, already scaled by ``dt**2 / dx**2``. A step
    produces the field at time ``(k + 1) dt``, and ``data[k]`` is the recording of that field. Indices serve as
    subscripts: ``u[source_index]`` and ``u[receiver_index]``.
    """

    dx: float
    """Grid spacing in m, the same in both directions."""
    dt: float
    """Time step in s."""
    n_steps: int
    field_shape: tuple[int, ...]
    """``(nz, nx)`` for one shot, ``(n_shots, nz, nx)`` for several."""
    wavelet: NDArray[Any]
    """``(n_steps,)``, in the units of the field."""
    source_index: tuple[Any, ...]
    """``(iz, ix)`` as two integers for one shot, ``(shot, iz, ix)`` as three integer arrays for several."""
    receiver_index: tuple[Any, ...]
    """``(..., rz, rx)`` with integer arrays; the same receivers for every shot, no receiver twice."""
    damp: NDArray[Any]
    """``(nz, nx)``, dimensionless, 1 outside the absorbing border."""
    gain: NDArray[Any]
    """``(nz - 2, nx - 2)``, dimensionless, 1 outside the absorbing border."""
    data: NDArray[Any]
    """``(n_steps, n_receivers)`` or ``(n_steps, n_shots, n_receivers)``."""
    scale: float
    """Factor of the misfit; ``0.5 / sum(data**2)`` makes it the relative misfit, 0.5 for no signal at all."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of every floating array of the problem, and so of the fields."""
        return self.data.dtype

    def astype(self, dtype: Any) -> "WaveProblem":
        """The same problem with every floating array cast to ``dtype`` (float32 or float64)."""
        arrays = {name: getattr(self, name).astype(dtype) for name in ("wavelet", "damp", "gain", "data")}
        return evolve(self, **arrays)


def ricker(n_steps: int, dt: float, peak_frequency: float, delay: float) -> NDArray[np.float64]:
    """Ricker wavelet of unit height at times ``k dt``, shape ``(n_steps,)``.

    ``peak_frequency`` in Hz, ``dt`` and ``delay`` in s. Source: Ricker, Geophysics 18 (1953) 10-40.
    """
    arg = (np.pi * peak_frequency * (np.arange(n_steps) * dt - delay)) ** 2
    wavelet: NDArray[np.float64] = (1.0 - 2.0 * arg) * np.exp(-arg)
    return wavelet


def absorbing_border(
    shape: tuple[int, int], cells: int, dx: float, dt: float, speed: float, reflection: float = 1e-3
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``(damp, gain)`` of a border ``cells`` wide on all four sides, shapes ``(nz, nx)`` and ``(nz - 2, nx - 2)``.

    The damping grows with the square of the depth into the border, to ``1.5 speed ln(1 / reflection) / width``, at
    which a wave of that ``speed`` (m/s) comes back with the amplitude ``reflection`` at normal incidence.
    Source: Collino and Tsogka, Geophysics 66 (2001) 294-307, section "PML parameters".
    """
    eta = np.zeros(shape)
    if cells > 0:
        eta_max = 1.5 * speed * np.log(1.0 / reflection) / (cells * dx)
        depth = [np.maximum(cells - np.minimum(np.arange(n), np.arange(n)[::-1]), 0) / cells for n in shape]
        eta = eta_max * np.maximum(depth[0][:, None], depth[1][None, :]) ** 2
    h = 0.5 * dt * eta
    return (1.0 - h) / (1.0 + h), (1.0 / (1.0 + h))[1:-1, 1:-1]


def check_stable(c: NDArray[Any], dx: float, dt: float) -> None:
    """Nothing, or ``PullbackError`` where ``max(c) dt / dx`` reaches the stability limit ``1 / sqrt(2)``."""
    courant = float(np.max(c)) * dt / dx
    if not courant < CFL_LIMIT:
        raise PullbackError(
            f"unstable time step: c dt / dx = {courant:.4g} with c = {float(np.max(c)):.5g} m/s, dt = {dt:.4g} s, dx = "
            f"{dx:.4g} m; it must be below 1/sqrt(2) = {CFL_LIMIT:.4g}. Take dt < "
            f"{CFL_LIMIT * dx / float(np.max(c)):.4g} s."
        )


def scaled_speed(c: Field, problem: WaveProblem) -> Field:
    """``gain (c dt / dx)**2`` at the inner nodes, shape ``(nz - 2, nx - 2)``: what does not change from step to
    step."""
    courant = (problem.dt / problem.dx) * c[1:-1, 1:-1]
    return problem.gain * (courant * courant)


def advance(c2: Field, u_prev: Field, u: Field, problem: WaveProblem, k: int) -> Field:
    """The wavefield after step ``k``, a new array; ``c2`` is :func:`scaled_speed`."""
    u_next = u - u_prev
    u_next *= problem.damp
    u_next += u
    inner = u[..., 1:-1, 1:-1]
    laplacian = u[..., 2:, 1:-1] + u[..., :-2, 1:-1] + u[..., 1:-1, 2:] + u[..., 1:-1, :-2] - 4.0 * inner
    u_next[..., 1:-1, 1:-1] += c2 * laplacian
    u_next[problem.source_index] += problem.wavelet[k]
    return u_next


def make_body(c: Field, problem: WaveProblem) -> Body:
    """``body(k, (u_prev, u, loss)) -> (u, u_next, loss_next)``, for a loop function or a Python loop.

    The loss grows by the squared difference between the recording of step ``k`` and ``problem.data[k]``.
    """
    c2 = scaled_speed(c, problem)

    def body(k: int, state: State) -> State:
        u_prev, u, loss = state
        u_next = advance(c2, u_prev, u, problem, k)
        residual = u_next[problem.receiver_index] - problem.data[k]
        return u, u_next, loss + np.sum(residual * residual)

    return body


def initial_state(problem: WaveProblem) -> tuple[NDArray[Any], NDArray[Any], Any]:
    """``(u_prev, u, loss)`` at rest, as plain arrays and a scalar of the problem's dtype: where a loop function
    starts."""
    at_rest = np.zeros(problem.field_shape, problem.dtype)
    return at_rest, at_rest.copy(), problem.dtype.type(0)


def misfit(c: Field, problem: WaveProblem, steps: Iterable[int] | None = None) -> Field:
    """``scale * sum((recorded - data)**2)``, a scalar, by a Python loop over ``steps``.

    ``c`` in m/s, shape ``(nz, nx)``. ``steps`` runs over ``0 .. n_steps - 1``: ``range(n)``, the default, or an
    iterable that marks step boundaries.
    """
    body = make_body(c, problem)
    u_prev, u = np.zeros_like(c, shape=problem.field_shape), np.zeros_like(c, shape=problem.field_shape)
    loss = 0.0
    for k in range(problem.n_steps) if steps is None else steps:
        u_prev, u, loss = body(k, (u_prev, u, loss))
    return problem.scale * loss


def misfit_by_loop(c: Field, problem: WaveProblem, loop: Callable[[int, int, Body, State], State]) -> Field:
    """As :func:`misfit`, by a loop function ``loop(lower, upper, body, init) -> state``."""
    _, _, loss = loop(0, problem.n_steps, make_body(c, problem), initial_state(problem))
    return problem.scale * loss


def simulate(c: Field, problem: WaveProblem) -> list[Field]:
    """The recordings, one array per step: ``n_steps`` of shape ``(n_receivers,)`` or ``(n_shots, n_receivers)``.

    ``problem.data`` is not read. A list, because stacking is the caller's choice.
    """
    c2 = scaled_speed(c, problem)
    u_prev, u = np.zeros_like(c, shape=problem.field_shape), np.zeros_like(c, shape=problem.field_shape)
    recordings = []
    for k in range(problem.n_steps):
        u_prev, u = u, advance(c2, u_prev, u, problem, k)
        recordings.append(u[problem.receiver_index])
    return recordings
