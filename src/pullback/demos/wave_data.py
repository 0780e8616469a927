"""The setting of the wave demo: a velocity section under real terrain, an acquisition, and noisy recordings.

The terrain is the elevation grid ``jacksboro_fault_dem.npz`` that matplotlib ships (Tennessee, 3 arc seconds). A
profile of it, at true scale, is taken as a sea floor: water above, so that the acoustic equation is the right one and
the velocity around the sources is known, and below it layers that are draped under further profiles of the same grid.

The recordings are computed on a grid ``refine`` times finer with a time step as much shorter, interpolated to the
receivers and to the sample times of the coarse problem, and noise is added: the inversion does not invert itself.
"""

from typing import Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from pullback.demos.wave_model import WaveProblem, absorbing_border, check_stable, ricker, simulate
from pullback.words.errors import PullbackError
from pullback.words.optional_libraries import optional_library

Floats = NDArray[np.float64]

WATER_SPEED = 1500.0
"""m/s."""
LAYER_SPEEDS = (2000.0, 2500.0, 3000.0, 3500.0)
"""m/s, at the top of each layer, from the sea floor downwards."""
SPEED_GRADIENT = 0.1
"""m/s per m of depth below the sea floor, within the layers."""
ANOMALY_SPEED = 600.0
"""m/s, added inside the lens."""
SOURCE_STRENGTH = 1e8
"""m**2/s**2: a point source of this strength has the density ``SOURCE_STRENGTH / dx**2`` on the grid."""
EARTH_RADIUS = 6.371e6
"""m, of the sphere of the Earth's volume."""
LATITUDE = 36.6
"""Degrees north, the middle of the elevation grid; it turns degrees of longitude into metres."""


@frozen
class WaveSettings:
    """Everything the demo's experiment is made from. Lengths in m, times in s, frequencies in Hz, speeds in m/s."""

    shape: tuple[int, int] = (90, 128)
    """``(nz, nx)``, absorbing border included."""
    width: float = 6400.0
    """The width of the section; the grid spacing is ``width / nx``, the depth ``nz`` times that."""
    n_steps: int = 400
    n_shots: int = 3
    """One shot gives two-dimensional fields, several give fields with a leading axis."""
    courant: float = 0.6
    """``c dt / dx`` at the highest speed; the stability limit is 0.707."""
    peak_frequency: float = 2.0
    border: int = 12
    """Cells of the absorbing border, on all four sides."""
    receiver_spacing: int = 2
    """Cells between receivers."""
    refine: float = 1.5
    """How much finer the grid of the recordings is."""
    noise: float = 0.05
    """Standard deviation of the noise, as a part of the recordings' root mean square."""
    smoothing: float = 600.0
    """Standard deviation of the Gaussian that makes the initial model from the true one, in m."""
    seed: int = 20
    dtype: str = "float64"


DEFAULT = WaveSettings()
FULL = WaveSettings(shape=(256, 256), n_steps=4000, n_shots=1, courant=0.25, border=24, receiver_spacing=4)


@frozen(eq=False)
class WaveSurvey:
    """A problem with the models that belong to it; velocities in m/s, shape ``(nz, nx)``."""

    settings: WaveSettings
    problem: WaveProblem
    true_velocity: NDArray[Any]
    initial_velocity: NDArray[Any]
    water: NDArray[np.bool_]
    """The points where the velocity is known and stays fixed."""
    inside: NDArray[np.bool_]
    """The points below the water and outside the absorbing border, where the model error is measured."""

    def model_error(self, velocity: NDArray[Any]) -> float:
        """Root mean square of ``velocity - true_velocity`` over ``inside``, in m/s."""
        return float(np.sqrt(np.mean((velocity - self.true_velocity)[self.inside].astype(np.float64) ** 2)))


def load_terrain() -> Floats:
    """Elevations in m, shape ``(344, 403)``, rows from north to south. ``PullbackError`` where matplotlib is
    missing."""
    cbook = optional_library("matplotlib.cbook", "the wave demo's terrain ships with matplotlib")
    with cbook.get_sample_data("jacksboro_fault_dem.npz") as archive:
        elevation: Floats = archive["elevation"].astype(np.float64)
    return elevation


def nodes(n: int, dx: float) -> Floats:
    """Positions of ``n`` nodes in m, the first at 0."""
    return np.arange(n, dtype=np.float64) * dx


def terrain_profile(terrain: Floats, row: int, x: Floats, width: float) -> Floats:
    """Heights in m at distances ``x`` (m) along a row of the terrain, about their mean over ``width``; linear in
    between.

    The profile is at true scale: a column of the grid is 3 arc seconds of longitude wide.
    """
    spacing = 3.0 / 3600.0 * np.pi / 180.0 * EARTH_RADIUS * np.cos(np.radians(LATITUDE))
    columns = np.arange(terrain.shape[1], dtype=np.float64)
    heights = np.interp(np.concatenate([x, np.linspace(0.0, width, 129)]) / spacing, columns, terrain[row])
    return np.asarray(heights[: x.size] - np.mean(heights[x.size :]), np.float64)


def velocity_section(
    terrain: Floats, z: Floats, x: Floats, depth: float, width: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """``(velocity, water)`` at depths ``z`` and distances ``x`` in m, shape ``(len(z), len(x))``; velocity in m/s.

    ``depth`` and ``width`` are the extent of the whole section; they place the layers and the lens, so that sections
    sampled on different grids show the same ground.
    """
    depths = z[:, None]
    floor = 0.24 * depth - terrain_profile(terrain, 150, x, width)
    tops = [floor]
    for number, row in enumerate((170, 200, 230), start=1):
        tops.append(
            np.maximum(
                floor + 150.0 * number, (0.24 + 0.17 * number) * depth - 0.8 * terrain_profile(terrain, row, x, width)
            )
        )
    velocity = np.full((len(z), len(x)), WATER_SPEED)
    for top, speed in zip(tops, LAYER_SPEEDS, strict=True):
        velocity = np.where(depths >= top, speed + SPEED_GRADIENT * (depths - floor), velocity)
    water = np.broadcast_to(depths < floor, velocity.shape).copy()
    lens = ((x[None, :] - 0.45 * width) / (0.14 * width)) ** 2 + ((depths - 0.56 * depth) / (0.09 * depth)) ** 2 < 1.0
    velocity[lens & ~water] += ANOMALY_SPEED
    return velocity, water


def smoothed(velocity: Floats, water: NDArray[np.bool_], cells: float) -> Floats:
    """``velocity`` smoothed by a Gaussian of ``cells`` standard deviation, without mixing water and ground.

    Water keeps its value; the ground is averaged over ground only (a normalised convolution).
    """
    ground = (~water).astype(np.float64)
    weights = _gaussian(ground, cells)
    return np.where(water, velocity, _gaussian(ground * velocity, cells) / np.maximum(weights, 1e-12))


def _gaussian(field: Floats, cells: float) -> Floats:
    reach = int(4.0 * cells) + 1
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / cells) ** 2)
    for axis in (0, 1):
        padded = np.moveaxis(field, axis, -1)
        padded = np.pad(padded, ((0, 0), (reach, reach)), mode="edge")
        rows = [np.convolve(row, kernel, mode="valid") for row in padded]
        field = np.moveaxis(np.array(rows), -1, axis)
    return field


def make_survey(settings: WaveSettings = DEFAULT) -> WaveSurvey:
    """The whole experiment: models, acquisition and noisy recordings, in ``settings.dtype``; the same for the same
    settings."""
    terrain = load_terrain()
    nz, nx = settings.shape
    dx = settings.width / nx
    z, x = nodes(nz, dx), nodes(nx, dx)
    true, water = velocity_section(terrain, z, x, nz * dx, settings.width)
    problem = _experiment(settings, float(np.max(true)), dx)
    check_stable(true, problem.dx, problem.dt)
    data = observed_data(settings, problem, terrain)
    problem = evolve(problem, data=data, scale=0.5 / float(np.sum(data**2))).astype(settings.dtype)
    inside = np.zeros(settings.shape, np.bool_)
    border = settings.border
    inside[border:-border, border:-border] = True
    return WaveSurvey(
        settings=settings,
        problem=problem,
        true_velocity=true.astype(settings.dtype),
        initial_velocity=smoothed(true, water, settings.smoothing / dx).astype(settings.dtype),
        water=water,
        inside=inside & ~water,
    )


def _experiment(settings: WaveSettings, highest_speed: float, dx: float) -> WaveProblem:
    """The coarse problem, without recordings: sources in the water, receivers in the water and down both sides."""
    nz, nx = settings.shape
    border, spacing = settings.border, settings.receiver_spacing
    dt = settings.courant * dx / highest_speed
    damp, gain = absorbing_border(settings.shape, border, dx, dt, 3000.0)
    first, last = border + 2, nx - border - 3
    across = np.arange(first, last + 1, spacing)
    down = np.arange(border + 2 + spacing, nz - border - 2, spacing)
    rz = np.concatenate([np.full(across.size, border + 1), down, down])
    rx = np.concatenate([across, np.full(down.size, first), np.full(down.size, last)])
    # Sources stand on even nodes, which are nodes of the finer grid too when refine is 1.5 or 2.
    sx = 2 * np.rint(np.linspace(first, last, settings.n_shots + 2)[1:-1] / 2).astype(np.intp)
    sz = np.full(sx.size, 2 * ((border + 2) // 2))
    single = settings.n_shots == 1
    recordings = (settings.n_steps, rz.size) if single else (settings.n_steps, settings.n_shots, rz.size)
    return WaveProblem(
        dx=dx,
        dt=dt,
        n_steps=settings.n_steps,
        field_shape=settings.shape if single else (settings.n_shots, nz, nx),
        wavelet=source_wavelet(settings, settings.n_steps, dt, dx),
        source_index=(int(sz[0]), int(sx[0])) if single else (np.arange(settings.n_shots), sz, sx),
        receiver_index=(..., rz, rx),
        damp=damp,
        gain=gain,
        data=np.zeros(recordings),
        scale=1.0,
    )


def source_wavelet(settings: WaveSettings, n_steps: int, dt: float, dx: float) -> Floats:
    """What each step adds to the field at a source: ``dt**2`` times the source density; shape ``(n_steps,)``."""
    peak = settings.peak_frequency
    return SOURCE_STRENGTH * (dt / dx) ** 2 * ricker(n_steps, dt, peak, 1.2 / peak)


def observed_data(settings: WaveSettings, problem: WaveProblem, terrain: Floats) -> Floats:
    """Recordings of the true ground from the finer grid, with noise; the shape of ``problem.data``, float64.

    Linear interpolation in space and in time; noise from ``numpy.random.default_rng(settings.seed)``.
    """
    refine = settings.refine
    fine, corners = _finer(settings, problem)
    z, x = (nodes(n, fine.dx) for n in fine.damp.shape)
    true, _ = velocity_section(terrain, z, x, settings.shape[0] * problem.dx, settings.width)
    check_stable(true, fine.dx, fine.dt)
    n_receivers = problem.data.shape[-1]
    recordings = np.stack([
        np.sum((r * corners).reshape(*r.shape[:-1], 4, n_receivers), axis=-2) for r in simulate(true, fine)
    ])
    # Sample k of a problem is the field at (k + 1) dt.
    sample = (np.arange(problem.n_steps) + 1.0) * refine - 1.0
    before = np.minimum(sample.astype(np.intp), fine.n_steps - 2)
    part = (sample - before).reshape(-1, *([1] * (recordings.ndim - 1)))
    data: Floats = (1.0 - part) * recordings[before] + part * recordings[before + 1]
    noise = np.random.default_rng(settings.seed).standard_normal(data.shape)
    return np.asarray(data + settings.noise * np.sqrt(np.mean(data**2)) * noise, np.float64)


def _finer(settings: WaveSettings, problem: WaveProblem) -> tuple[WaveProblem, Floats]:
    """The finer problem, which records the four nodes around each receiver, and their weights, shape
    ``(4 n_receivers,)``."""
    refine = settings.refine
    shape = (int(np.ceil((settings.shape[0] - 1) * refine)) + 1, int(np.ceil((settings.shape[1] - 1) * refine)) + 1)
    dx, dt, n_steps = problem.dx / refine, problem.dt / refine, int(np.ceil(problem.n_steps * refine)) + 1
    damp, gain = absorbing_border(shape, round(settings.border * refine), dx, dt, 3000.0)
    *shots, sz, sx = problem.source_index
    sources = [np.asarray(index) * refine for index in (sz, sx)]
    if any(np.any(np.abs(place - np.rint(place)) > 1e-9) for place in sources):
        raise PullbackError(
            f"with refine = {refine} the sources fall between the nodes of the finer grid; take 1.5, 2 or 3"
        )
    sz, sx = (np.rint(place).astype(np.intp) for place in sources)
    rz, rx = (np.asarray(index) * refine for index in problem.receiver_index[1:])
    iz, ix = np.minimum(rz.astype(np.intp), shape[0] - 2), np.minimum(rx.astype(np.intp), shape[1] - 2)
    pz, px = rz - iz, rx - ix
    fine = WaveProblem(
        dx=dx,
        dt=dt,
        n_steps=n_steps,
        field_shape=(*problem.field_shape[:-2], *shape),
        wavelet=source_wavelet(settings, n_steps, dt, dx),
        source_index=(*shots, sz, sx),
        receiver_index=(..., np.concatenate([iz, iz + 1, iz, iz + 1]), np.concatenate([ix, ix, ix + 1, ix + 1])),
        damp=damp,
        gain=gain,
        data=np.zeros((0,)),
        scale=1.0,
    )
    return fine, np.concatenate([(1 - pz) * (1 - px), pz * (1 - px), (1 - pz) * px, pz * px])
