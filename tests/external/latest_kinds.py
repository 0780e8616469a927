"""Programs of kinds that were not there before, as in ``further_kinds.py``: ice, soil, minerals, chemistry, sound,
magnetic resonance, orbits, optics."""

from typing import Any

import numpy as np
from tests.external.repositories import Find, Program, Repository

EARTH = 398600.4418
STATE = np.array([7000.0, 200.0, 100.0, 0.1, 7.4, 1.0])
"""A satellite's place and speed, in km and km/s."""


def soil(find: Find) -> Program:
    model, heads = find("pedon.soilmodel"), np.logspace(0, 3, 12)

    def water(p: Any) -> Any:
        one = model.Genuchten(k_s=10.0, theta_r=0.05, theta_s=0.4, alpha=p[0], n=p[1])
        other = model.Brooks(k_s=10.0, theta_r=0.05, theta_s=0.4, h_b=p[2], l=1.4)
        return sum(np.sum(each.theta(heads)) + np.sum(np.log(each.k(heads))) for each in (one, other))

    return water


def ice(find: Find) -> Program:
    model, x = find("SIA_2D_BuelerC"), np.linspace(-1.0, 1.0, 12)
    dome = 3600 * np.maximum(0.0, 1 - np.hypot(x[:, None], x) ** (4 / 3)) ** (3 / 7)

    def surface(height: Any) -> Any:
        S, bed = height * dome * (1 + 0.05 * np.cos(7 * x)), 100.0 * np.sin(3 * x) * np.ones((12, 12))
        for _ in range(3):
            spread, dt = model.diffusion_MUSCL_2D(S, bed, 1.5e-4, 3.0, 5e4, 5e4, 0.124)
            S = np.maximum(S + spread * dt, bed)
        return np.sum(S * np.cos(x))

    return surface


def rocks(find: Find) -> Program:
    waves, filters, angles = find("bruges.reflection"), find("bruges.filters"), np.arange(0.0, 30.0, 5.0)

    def reflected(p: Any) -> Any:
        found = [f(p[0], p[1], 2.3, 2.9, 1.4, 2.45, angles) for f in (waves.zoeppritz_rpp, waves.shuey)]
        return sum(np.sum(np.real(each)) for each in found) + np.sum(filters.ricker(0.128, 0.004, 20 * p[1])[0] ** 2)

    return reflected


def molecules(find: Find) -> Program:
    fit, rng = find("rmsd.calculate_rmsd"), np.random.default_rng(0)
    p, q = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    return lambda t: (
        fit.kabsch_rmsd(p + t * q**2, q, translate=True)
        + fit.quaternion_rmsd(p + t * q**2, q)
        + fit.kabsch_weighted_rmsd(p + t * q**2, q, np.arange(1.0, 7.0))
    )


def thin_films(find: Find) -> Program:
    optics = find("EMpy")

    def light(thickness: Any) -> Any:
        materials = (
            optics.materials.IsotropicMaterial("", n0=optics.materials.RefractiveIndex(n0_const=n)) for n in (1.0, 3.5)
        )
        air, silicon = materials
        parts = ((air, np.inf), (silicon, thickness * 1e-6), (air, 0.4e-6), (silicon, np.inf))
        layers = optics.utils.Multilayer([optics.utils.Layer(*part) for part in parts])
        found = optics.transfer_matrix.IsotropicTransferMatrix(layers, 0.1).solve(np.linspace(1.4e-6, 1.6e-6, 3))
        return np.sum(found.Rs) + np.sum(found.Tp)

    return light


def minerals(find: Find) -> Program:
    kinds = find("burnman.minerals.SLB_2011")

    def periclase(pressure: Any) -> Any:
        mineral = kinds.periclase()
        mineral.set_state(pressure * 1e9, 1500.0)
        return mineral.density * 1e-3 + mineral.K_S * 1e-11

    return periclase


def turbulence(find: Find) -> Program:
    modes, air = find("aotools.functions.zernike"), find("aotools.turbulence.slopecovariance")
    seeing, r = find("aotools.turbulence.atmos_conversions"), np.linspace(0.3, 2.0, 5)
    return lambda p: (
        np.sum(air.structure_function_vk(r, p[0], p[1]))
        + seeing.r0_to_seeing(p[0])
        + np.sum(modes.phaseFromZernikes([p[0], 0.4, p[1], 0.2], 9) ** 2)
    )


def turns(find: Find) -> Program:
    rotations, moves = find("pytransform3d.rotations"), find("pytransform3d.transformations")

    def pose(angles: Any) -> Any:
        R = rotations.matrix_from_euler(angles, 0, 1, 2, extrinsic=True)
        screw = moves.exponential_coordinates_from_transform(moves.transform_from(R, angles * 2))
        four = rotations.quaternion_from_matrix(R)
        return np.sum(R[0] * np.arange(3)) + four @ np.arange(4.0) + np.sum(screw)

    return pose


def resonance(find: Find) -> Program:
    steps, rng = find("nmrglue.process.proc_base"), np.random.default_rng(0)
    signal = rng.normal(size=(2, 16)) + 1j * rng.normal(size=(2, 16))

    def spectrum(p: Any) -> Any:
        data = steps.sp(steps.em(signal * p[1], lb=p[0]), off=0.35, end=0.98, pow=2.0)
        data = steps.zf_pad(steps.gm(data, g1=0.02, g2=p[0] * 0.1, g3=0.1), 16)
        return np.sum(np.real(steps.ps(steps.fft(data), p0=30.0 * p[1], p1=20.0)) * np.cos(np.arange(32)))

    return spectrum


def loudness(find: Find) -> Program:
    meters, t = find("pyloudnorm"), np.arange(9000) / 8000.0
    tone, rest = np.sin(2 * np.pi * 440 * t) * (1 + 0.3 * np.sin(7 * t)), 0.1 * np.cos(900 * t)
    return lambda gain: meters.Meter(8000).integrated_loudness(gain * tone + rest)


def steam(find: Find) -> Program:
    model = find("iapws.iapws97")

    def state(p: Any) -> Any:
        water, vapour = model._Region1(p[0], p[1]), model._Region2(p[0], p[1] * 0.1)
        edge = model._PSat_T(p[0]) + model._TSat_P(p[1]) * 1e-2
        return water["v"] * 1e3 + water["h"] * 1e-3 + vapour["s"] + edge

    return state


def orbit(find: Find) -> Program:
    orbits, tools = find("orbit_calculations"), find("numerical_tools")

    def place(scale: Any) -> Any:
        _, states = tools.propagate_ode(orbits.two_body_ode, scale * STATE, 3000.0, 300.0)
        return np.sum(states[-1]) * 1e-3 + np.sum(orbits.two_body_ode(0.0, scale * STATE)[3:])

    return place


def kepler(find: Find) -> Program:
    moves, elements = find("poliastro.core.propagation"), find("poliastro.core.elements")

    def found(scale: Any) -> Any:
        x = scale * STATE
        r, v = moves.markley(EARTH, x[:3], x[3:], 1200.0)
        return np.sum(r) * 1e-3 + np.sum(v) + sum(elements.rv2coe(EARTH, x[:3], x[3:])[:4]) * 1e-3

    return found


def beams(find: Find) -> Program:
    elements, places = find("calfem.core"), np.arange(1, 7) + 3 * np.arange(3)[:, None]

    def deflection(p: Any) -> Any:
        K, loads = elements.lil_matrix((12, 12)), np.zeros((12, 1))
        loads[10] = -1.0
        for k in range(3):
            beam = elements.beam2e([float(k), k + 1.0], [0.0, 0.3 * k], [p[0], 1e-2, p[1]])
            K = elements.assem(places[k], K, beam)
        a, _ = elements.spsolveq(K.tocsr(), loads, np.array([1, 2, 3]))
        plate = elements.planqe([0.0, 1.0, 1.2, 0.1], [0.0, 0.1, 0.9, 1.0], [1, 0.1], elements.hooke(1, p[0], p[1]))
        return np.sum(np.ravel(a) * np.cos(np.arange(12))) + np.sum(plate * np.arange(8)) * 1e-2

    return deflection


def truss(find: Find) -> Program:
    models, nodes = find("static_fem.models"), np.array([[15.0, 10], [15, 0], [0, 10], [0, 0]])
    bars = np.array([[2, 0], [3, 0], [0, 1], [2, 1], [3, 1], [2, 3]])

    def moved(p: Any) -> Any:
        one = models.Truss(nodes, bars, E=p[0], A=p[1])
        one.add_loads(loads=[[0, -500.0]], nodes=[0])
        one.add_constraints(dofs=[[1, 1], [1, 0]], nodes=[2, 3])
        one.initialise()
        one.solve()
        return np.sum(one.a**2)

    return moved


def regulator(find: Find) -> Program:
    control = find("main")

    def steered(p: Any) -> Any:
        matrix = control.np.matrix
        a, b = p[0] * matrix([[1, 1.0], [0, 1]]), matrix([0.0, 1]).T
        gain = control.dlqr_with_iteration(a, b, matrix([[1.0, 0.0], [0.0, 0.0]]), matrix([[1.0]]) * p[1])
        x = matrix([2.0, 1.0]).T
        for _ in range(5):
            x = a * x - b * (gain * x)
        return gain[0, 0] + gain[0, 1] + x[0, 0]

    return steered


NEAR_ONE = np.array([1.0, 1.1, 0.9, 1.0, 1.02, 0.95])
LATEST_KINDS = (
    Repository("martinvonk/pedon", "44d1d40", "soil: water and conductivity, by three parameters", soil,
               np.array([0.03, 1.6, 8.3]), "src", 1e-3),
    Repository("alexjarosch/sia-fluxlim", "0ea94a9", "a glacier that flows, with flux limiters: its surface, by its "
               "height", ice, 1.3, "sia_fluxlim", 1e-3),
    Repository("agile-geoscience/bruges", "a4f0cd3", "seismic reflection by Zoeppritz and Shuey, by two speeds", rocks,
               np.array([2.4, 1.1]), step=1e-3),
    Repository("charnley/rmsd", "ad3fe3c", "distances of molecules that are laid on one another, by a shift", molecules,
               0.3, step=1e-3),
    Repository("lbolla/EMpy", "4911fb6", "light through layers, by a thickness", thin_films, 0.23, step=1e-3),
    Repository("geodynamics/burnman", "f743a07", "a mineral in the mantle, by numba and brentq: density and bulk "
               "modulus, by the pressure", minerals, 25.0),
    Repository("AOtools/aotools", "ff84e47", "turbulence above a telescope, by its strength and scale", turbulence,
               np.array([0.2, 20.0]), step=1e-3),
    Repository("dfki-ric/pytransform3d", "b8047fe", "rotations, quaternions and screws, by three angles", turns,
               np.array([0.3, 0.4, -0.2])),
    Repository("jjhelmus/nmrglue", "fbac8a1", "a spectrum of magnetic resonance, by window and gain", resonance,
               np.array([0.03, 0.8]), step=1e-3),
    Repository("csteinmetz1/pyloudnorm", "b8d67bf", "loudness of a sound, by its gain", loudness, 0.4),
    Repository("jjgomera/iapws", "18d2c48", "water and steam, by temperature and pressure", steam,
               np.array([450.0, 3.0]), step=1e-3),
    Repository("alfonsogonzalez/AWP", "f90a593", "a satellite's way, by its start", orbit, NEAR_ONE,
               "src/python_tools", 1e-3),
    Repository("poliastro/poliastro", "21fd771", "Kepler's problem and elements of an orbit, by numba, by its start",
               kepler, NEAR_ONE, "src", 1e-3),
    Repository("jamesalexwhiteley/staticFEM", "3061333", "a truss, in numpy.matrix: displacements by stiffness and "
               "area", truss, np.array([200.0, 3.0])),
    Repository("AtsushiSakai/PyAdvancedControl", "25141e7", "a linear quadratic regulator, in numpy.matrix, by its "
               "matrices", regulator, np.array([0.9, 1.2]), "lqr_sample", 1e-3),
    # The last, since it puts a class of its own in the place of numpy.matrix.
    Repository("CALFEM/calfem-python", "3a09332", "beams and a plate, in a lil_matrix: deflections by two stiffnesses",
               beams, np.array([200.0, 0.05]), "src", 1e-3),
)  # fmt: skip
