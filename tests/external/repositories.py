"""Programs of other people's repositories, each with the number or the array by which it is differentiated.

None of their code is part of this repository. A program is a function of the way its modules are found, so that the
original and its copy go through the same lines.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
from attrs import field, frozen

Find = Callable[[str], Any]
"""The module of a name: the original, or its copy by ``pb.adopt``."""
Program = Callable[..., Any]


@frozen
class Repository:
    """A program of a repository: where it lies, what it computes, and the point its gradient is taken at."""

    name: str
    commit: str
    what: str
    program: Callable[[Find], Program] = field(repr=False)
    at: Any = field(repr=False)
    folder: str = "."
    """The folder that stands on the path, in the checkout."""
    step: float = 1e-2
    """The first step of the Taylor test."""


def euler(find: Find) -> Program:
    simulation = find("euler_mol")

    def density(gamma: Any) -> Any:
        params = {"rho_l": 1.0, "u_l": 0.0, "p_l": 1.0, "rho_r": 0.125, "u_r": 0.0, "p_r": 0.1, "tmax": 0.05}
        _, u = simulation.Simulation(24, params | {"gamma": gamma, "cfl": 0.8, "verbose": 0}).mol_update()
        return np.sum(np.linspace(0.0, 1.0, u.shape[0]) * u[:, 0])

    return density


def burgers(find: Find) -> Program:
    weno, grids = find("weno_burgers"), find("burgers")

    def energy(height: Any) -> Any:
        grid = grids.Grid1d(32, 4)
        run = weno.WENOSimulation(grid, C=0.5, weno_order=3)
        run.init_cond("smooth_sine")
        grid.u = grid.u + height
        run.evolve(0.1)
        return np.sum(np.cos(grid.x) * grid.u**2)

    return energy


def shallow_water(find: Find) -> Program:
    model = find("shallow_water_simple")

    def energy(bump: Any) -> Any:
        start, model.h0 = model.h0, model.depth + bump * (model.h0 - model.depth)
        try:
            for h, u, v in islice(model.iterate_shallow_water(), 12):
                last = h, u, v
        finally:
            model.h0 = start
        h, u, v = last
        return np.sum((h[1:-1, 1:-1] - model.depth) ** 2) + 10 * np.sum(u**2 + v**2)

    return energy


def kalman(find: Find) -> Program:
    filters = find("filterpy.kalman")

    def likelihood(noise: Any) -> Any:
        kf = filters.KalmanFilter(dim_x=2, dim_z=1)
        kf.F, kf.H = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
        kf.Q = np.eye(2) * noise[0]
        kf.R = np.eye(1) * noise[1]
        total = 0.0
        for k in range(20):
            kf.predict()
            kf.update(np.array([np.sin(0.3 * k)]))
            total = total + kf.log_likelihood
        return total

    return likelihood


def unscented(find: Find) -> Program:
    filters = find("filterpy.kalman")

    def likelihood(noise: Any) -> Any:
        points = filters.MerweScaledSigmaPoints(2, alpha=0.3, beta=2.0, kappa=1.0)
        kf = filters.UnscentedKalmanFilter(
            2, 1, 0.1, lambda x: x[:1], lambda x, dt: np.stack([x[0] + dt * x[1], x[1] - dt * np.sin(x[0])]), points
        )
        kf.Q = np.eye(2) * noise[0]
        kf.R = np.eye(1) * noise[1]
        kf.x = np.array([1.0, 0.0])
        total = 0.0
        for k in range(10):
            kf.predict()
            kf.update(np.array([np.cos(0.1 * k)]))
            total = total + kf.log_likelihood
        return total

    return likelihood


def dapper(name: str) -> Callable[[Find], Program]:
    def program(find: Find) -> Program:
        model = find(f"dapper.mods.{name}")

        def last(x: Any) -> Any:
            for k in range(10):
                x = model.step(x, 0.05 * k, 0.05)
            return np.sum(x**2)

        return last

    return program


def sgp4(find: Find) -> Program:
    model = find("sgp4.model")

    def place_of(eccentricity: Any) -> Any:
        satellite = model.Satrec()
        satellite.sgp4init(
            model.WGS72, "i", 25544, 25545.69, 3e-5, 0.0, 0.0, eccentricity, 4.26, 0.9013, 5.0, 0.0676, 1.7
        )
        _, r, v = satellite.sgp4_tsince(360.0)
        return r[0] + 0.5 * r[1] - r[2] + v[0]

    return place_of


def seawater(find: Find) -> Program:
    sw = find("seawater")

    def sound(t: Any) -> Any:
        s, p = np.linspace(30.0, 38.0, 12), np.linspace(0.0, 4000.0, 12)
        return np.sum(sw.svel(s, t, p)) + np.sum(sw.dens(s, t, p)) + np.sum(sw.ptmp(s, t, p)) + np.sum(sw.cp(s, t, p))

    return sound


def friction(find: Find) -> Program:
    flow = find("fluids.friction")
    return lambda re: sum(
        (
            flow.Clamond(re, 1e-4),
            flow.Colebrook(re, 1e-4),
            flow.Churchill_1977(re, 1e-4),
            flow.friction_factor(re, 1e-4, Method="Haaland"),
            flow.Serghides_1(re, 1e-4),
        ),
        0.0,
    )


def impedance(find: Find) -> Program:
    fem, mesh, wrapper = find("pyeit.eit.fem"), find("pyeit.mesh"), find("pyeit.eit.protocol")

    def voltages(perm: Any) -> Any:
        made = mesh.create(8, h0=0.3)
        forward = fem.EITForward(made, wrapper.create(8, dist_exc=1, step_meas=1, parser_meas="std"))
        x = made.elem_centers[:, 0]
        return np.sum(np.abs(forward.solve_eit(perm=1.0 + perm * np.exp(-(x**2)))))

    return voltages


def elements(find: Find) -> Program:
    fem, helpers = find("skfem"), find("skfem.helpers")

    def compliance(conductivity: Any) -> Any:
        basis = fem.Basis(fem.MeshTri().refined(2), fem.ElementTriP1())
        a = fem.BilinearForm(
            lambda u, v, w: (1 + conductivity * w.x[0]) * helpers.dot(helpers.grad(u), helpers.grad(v))
        )
        b = fem.LinearForm(lambda v, _: 1.0 * v)
        stiffness, load = fem.enforce(a.assemble(basis), b.assemble(basis), D=basis.mesh.boundary_nodes())
        return np.sum(fem.solve(stiffness, load))

    return compliance


def lens(find: Find) -> Program:
    epl, shear = find("lenstronomy.LensModel.Profiles.nie"), find("lenstronomy.LensModel.Profiles.shear")

    def image(p: Any) -> Any:
        x, y = np.meshgrid(np.linspace(-1.0, 1.1, 9), np.linspace(-1.2, 1.0, 8))
        ax, ay = epl.NIE().derivatives(x.ravel(), y.ravel(), p[0], 0.1, -0.05, p[1])
        bx, by = shear.Shear().derivatives(x.ravel(), y.ravel(), p[2], 0.02)
        return np.sum(np.exp(-((x.ravel() - ax - bx) ** 2) - (y.ravel() - ay - by - 0.1) ** 2))

    return image


def sunlight(find: Find) -> Program:
    light = find("pvlib.irradiance")

    def irradiance(tilt: Any) -> Any:
        zenith, azimuth = np.linspace(20.0, 80.0, 9), np.linspace(100.0, 240.0, 9)
        dni, ghi, dhi = np.full(9, 800.0), np.full(9, 600.0), np.full(9, 120.0)
        total = light.get_total_irradiance(tilt, 180.0, zenith, azimuth, dni, ghi, dhi, model="isotropic")
        return np.sum(total["poa_global"])

    return irradiance


def diode(find: Find) -> Program:
    system = find("pvlib.singlediode")
    return lambda light: np.sum(system.bishop88(np.linspace(0.0, 20.0, 6), light, 1e-9, 0.3, 300.0, 1.5)[2])


def differences(find: Find) -> Program:
    fd = find("findiff")

    def energy(u: Any) -> Any:
        d2 = fd.FinDiff(0, 0.1, 2, acc=4)
        d1 = fd.FinDiff(1, 0.1, 1)
        return np.sum(d2(u) ** 2) + np.sum(d1(u) * u)

    return energy


def velocities(find: Find) -> Program:
    kepler = find("radvel.kepler")

    def misfit(p: Any) -> Any:
        t = np.linspace(0.0, 30.0, 25)
        rv = kepler.rv_drive(t, [p[0], 1.0, p[1], 0.4, p[2]], use_c_kepler_solver=False)
        return np.sum((rv - 5 * np.cos(t)) ** 2)

    return misfit


def seismic(find: Find) -> Program:
    basic, signal = find("pylops.basicoperators"), find("pylops.signalprocessing")

    def energy(u: Any) -> Any:
        laplacian = basic.Laplacian((8, 9), axes=(0, 1), dtype="float64")
        filtered = signal.Convolve2D((8, 9), h=np.outer([1.0, 2.0, 1.0], [0.5, 1.0, 0.5]), offset=(1, 1))
        return np.sum((laplacian @ u.ravel()) ** 2) + np.sum((filtered @ u.ravel()) ** 3)

    return energy


def motions(find: Find) -> Program:
    ekf = find("extended_kalman_filter")

    def spread(speed: Any) -> Any:
        x, p = np.array([[0.0], [0.0], [0.1], [1.0]]), np.eye(4)
        for k in range(10):
            x, p = ekf.ekf_estimation(x, p, np.array([[0.1 * k], [0.05]]), speed * np.array([[1.0], [0.1]]))
        return np.trace(p) + np.sum(x**2)

    return spread


U = np.sin(np.arange(72.0)).reshape(8, 9)
REPOSITORIES = (
    Repository(
        "python-hydro/hydro_examples", "55b7750", "Sod's tube: density by the adiabatic index", euler, 1.4,
        "compressible/MOL/python", 1e-4,
    ),
    Repository(
        "python-hydro/hydro_examples", "55b7750", "Burgers' equation, WENO: energy by an offset", burgers, 0.1,
        "burgers", 1e-4,
    ),
    Repository(
        "dionhaefner/shallow-water", "883fad9", "energy of waves after 12 steps, by their height", shallow_water, 1.0
    ),
    Repository(
        "rlabbe/filterpy", "3b51149", "Kalman filter: likelihood of 20 observations, by both variances", kalman,
        np.array([0.1, 0.5]),
    ),
    Repository(
        "rlabbe/filterpy", "3b51149", "unscented Kalman filter of a pendulum: likelihood, by both variances",
        unscented, np.array([0.1, 0.5]),
    ),
    Repository(
        "nansencenter/DAPPER", "ae89b30", "Lorenz 96: energy after 10 steps, by the initial state",
        dapper("Lorenz96"), np.linspace(1.0, 2.0, 40), step=1e-3,
    ),
    Repository(
        "nansencenter/DAPPER", "ae89b30", "Lotka-Volterra, chaotic: the same", dapper("LotkaVolterra"),
        np.full(4, 0.3),
    ),
    Repository(
        "brandon-rhodes/python-sgp4", "20a13b4", "place of a satellite after 6 hours, by the eccentricity", sgp4, 0.05
    ),
    Repository(
        "pyoceans/python-seawater", "c297a78", "equation of state of sea water, by the temperatures", seawater,
        np.linspace(2.0, 20.0, 12),
    ),
    Repository(
        "CalebBell/fluids", "091070e", "five friction factors, by the Reynolds number", friction, 1e5
    ),
    Repository(
        "eitcom/pyEIT", "3ed2fca", "voltages of an impedance tomography, by a conductivity", impedance, 0.5
    ),
    Repository(
        "kinnala/scikit-fem", "365167e", "finite elements: compliance of a membrane, by a conductivity", elements, 0.5
    ),
    Repository(
        "lenstronomy/lenstronomy", "b280755", "image behind a lens, by three of its parameters", lens,
        np.array([1.0, 0.2, 0.05]), step=1e-3,
    ),
    Repository("pvlib/pvlib-python", "6382338", "light on a panel, by its tilt", sunlight, 30.0),
    Repository("pvlib/pvlib-python", "6382338", "power of a single-diode model, by the photocurrent", diode, 6.0),
    Repository("maroba/findiff", "6ed90aa", "energy of finite differences, by a field", differences, U),
    Repository(
        "California-Planet-Search/radvel", "23b05f1", "radial velocities of a planet, by period, eccentricity and "
        "amplitude", velocities, np.array([5.0, 0.2, 4.0]), step=1e-3,
    ),
    Repository("PyLops/pylops", "cca7184", "linear operators of seismics, by a field", seismic, U),
    Repository(
        "AtsushiSakai/PythonRobotics", "b38c510", "localisation by an extended Kalman filter, by a speed", motions, 1.0,
        "Localization/extended_kalman_filter",
    ),
)  # fmt: skip
