"""More programs of other people's repositories, of other kinds: robots, plasma, neurons, chemistry, options, light,
control, rivers, beams. As in ``repositories``, none of their code is here."""

from itertools import pairwise
from typing import Any

import numpy as np
from tests.external.repositories import Find, Program, Repository


def magnetic(find: Find) -> Program:
    mhd = find("constrainedtransport")

    def energy(gamma: Any) -> Any:
        n, dt = 12, 0.002
        dx = 1.0 / n
        line = np.linspace(0.5 * dx, 1 - 0.5 * dx, n)
        y, x = np.meshgrid(line, line)
        state = [np.ones((n, n)), -np.sin(2 * np.pi * y), np.sin(2 * np.pi * x), gamma * np.ones((n, n)) / 9]
        fields = mhd.getCurl(np.cos(4 * np.pi * x) / 40 + np.cos(2 * np.pi * y) / 20, dx)
        kept = mhd.getConserved(*state, *mhd.getBavg(*fields), gamma, dx**2)
        for _ in range(3):
            means = mhd.getBavg(*fields)
            known = (*mhd.getPrimitive(*kept, *means, gamma, dx**2), *means)
            slopes = [mhd.slopeLimit(q, dx, *mhd.getGradient(q, dx)) for q in known]
            faces = [mhd.extrapolateInSpaceToFace(q, *s, dx) for q, s in zip(known, slopes, strict=True)]
            along = mhd.getFlux(*(side for q in faces for side in q[:2]), gamma)
            turned = [faces[k][2:] for k in (0, 2, 1, 3, 5, 4)]
            across = mhd.getFlux(*(side for q in turned for side in q), gamma)
            pairs = zip(kept, along, [across[k] for k in (0, 2, 1, 3)], strict=False)
            kept = tuple(mhd.applyFluxes(q, f, g, dx, dt) for q, f, g in pairs)
            fields = mhd.constrainedTransport(*fields, along[4], across[4], dx, dt)
        return sum(np.sum(q**2) for q in (*kept, *fields))

    return energy


def plasma(find: Find) -> Program:
    from scipy import sparse  # noqa: PLC0415 - the program needs it

    pic = find("pic")

    def energy(bump: Any) -> Any:
        n, size = 16, 50.0
        dx, draw = size / n, np.random.default_rng(42)
        place, speed = draw.random((60, 1)) * size, draw.standard_normal((60, 1)) + 3
        speed = speed * (1 + bump * np.sin(2 * np.pi * place / size))
        ring = np.roll(np.eye(n), 1, axis=1)
        slope = sparse.csr_matrix((ring - ring.T) / (2 * dx))
        laplacian = sparse.csr_matrix((ring + ring.T - 2 * np.eye(n)) / dx**2 - np.eye(n))
        for _ in range(4):
            speed = speed + 0.1 * pic.getAcc(place, n, size, 1, slope, laplacian)
            place = np.mod(place + 0.1 * speed, size)
        return np.sum(speed**2) + np.sum(np.sin(place))

    return energy


def neuron(find: Find) -> Program:
    pyhh = find("pyhh")

    def potential(current: Any) -> Any:
        model = pyhh.HHModel()
        model.h.state = 0.6
        simulation = pyhh.Simulation(model)
        simulation.Run(np.zeros(200) + current * (np.arange(200) > 50), 0.02)
        return np.sum(simulation.Vm**2) * 1e-3 + np.sum(simulation.StateM)

    return potential


def kinematics(find: Find) -> Program:
    robot = find("modern_robotics")

    def path(angles: Any) -> Any:
        screws = np.array([[0, 0, 1, 4, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, -1, -6, 0, -0.1]]).T
        home = np.array([[-1.0, 0, 0, 0], [0, 1, 0, 6], [0, 0, -1, 2], [0, 0, 0, 1]])
        frame = robot.FKinSpace(home, screws, angles)
        way = robot.CartesianTrajectory(frame, home, 5, 4, 5) + robot.ScrewTrajectory(frame, home, 5, 4, 3)
        return sum(np.sum(np.sin(x)) for x in way) + np.sum(robot.JacobianSpace(screws, angles) ** 2)

    return path


def controlled(find: Find) -> Program:
    robot = find("modern_robotics")

    def torques(angles: Any) -> Any:
        links = np.stack([np.eye(4)] * 4) + 0.1 * np.arange(4)[:, None, None] * np.eye(4, k=3)
        inertia = np.stack([np.diag([0.1, 0.1, 0.05, 2.0, 2.0, 2.0])] * 3)
        screws = np.array([[1, 0, 1, 0, 1, 0], [0, 1, 0, -0.089, 0, 0], [0, 1, 0, -0.089, 0, 0.425]]).T
        wanted = robot.JointTrajectory(np.array([0.1, 0.2, 0.3]), np.array([0.3, 0.5, 0.9]), 0.05, 5, 5)
        down, still = np.array([0, 0, -9.8]), np.zeros((5, 3))
        known = (links, inertia, screws, wanted, still, still, down, links, inertia)
        force, seen = robot.SimulateControl(angles, np.full(3, 0.1), down, np.ones((5, 6)), *known, 2, 1, 1, 0.01, 2)
        return np.sum(seen**2) + 1e-4 * np.sum(force**2)  # it draws what it has computed

    return torques


def layers(find: Find) -> Program:
    tmm = find("tmm")

    def light(thickness: Any) -> Any:
        n, d = [1, 2.2 + 0.02j, 3.3 + 0.3j, 1], [np.inf, thickness, 300, np.inf]
        found = [tmm.coh_tmm(polarisation, n, d, 0.2, 550.0) for polarisation in "sp"]
        apart = tmm.inc_tmm("p", [*n, 1], [np.inf, thickness, 3000, 200, np.inf], list("icici"), 0.2, 550.0)
        return sum(x["R"] + x["T"] for x in found) + apart["R"] + tmm.ellips(n, d, 0.3, 500.0)["psi"]

    return light


def climate(find: Find) -> Program:
    model = find("fair.energy_balance_model")

    def warming(exchange: Any) -> Any:
        earth = model.EnergyBalanceModel([5.0, 20.0, 100.0], exchange, 1.1, gamma_autocorrelation=2.0)
        earth.emergent_parameters()
        earth.add_forcing(np.linspace(0, 4, 30), 1)
        earth.run()
        return np.sum(earth.temperature**2) + earth.ecs + earth.tcr

    return warming


def river(find: Find) -> Program:
    models = find("rrmpg.models")

    def flow(p: Any) -> Any:
        day = np.arange(40.0)
        model = models.GR4J({"x1": p[0], "x2": p[1], "x3": p[2], "x4": p[3]})
        rain = 10 * np.maximum(0, np.sin(day)) ** 2
        return np.sum(model.simulate(rain, 2 + np.cos(day / 9), s_init=0.6, r_init=0.7) ** 2)

    return flow


def reservoirs(find: Find) -> Program:
    hbv, unit = find("superflexpy.implementation.elements.hbv"), find("superflexpy.framework.unit")
    euler = find("superflexpy.implementation.numerical_approximators.implicit_euler")
    root = find("superflexpy.implementation.root_finders.pegasus")

    def flow(p: Any) -> Any:
        way = euler.ImplicitEulerPython(root_finder=root.PegasusPython())
        fast = hbv.PowerReservoir({"k": p[0], "alpha": p[1]}, {"S0": 10.0}, way, "FR")
        soil = hbv.UnsaturatedReservoir({"Smax": 50.0, "Ce": 1.0, "m": 0.01, "beta": 2.0}, {"S0": 25.0}, way, "UR")
        basin = unit.Unit([[soil], [fast]], "unit")
        basin.set_timestep(1.0)
        basin.set_input([np.abs(np.sin(np.arange(20.0))) * 8, np.full(20, 1.0)])
        return np.sum(basin.get_output()[0] ** 2)

    return flow


def evaporation(find: Find) -> Program:
    eto = find("pyeto")

    def water(t: Any) -> Any:
        lat, tilt = eto.deg2rad(50.0), eto.sol_dec(180)
        sun = eto.et_rad(lat, tilt, eto.sunset_hour_angle(lat, tilt), eto.inv_rel_dist_earth_sun(180))
        clear, damp = eto.cs_rad(100, sun), eto.avp_from_tmin(t - 8)
        light = eto.sol_rad_from_t(sun, clear, t - 8, t + 7, False)
        net = eto.net_rad(eto.net_in_sol_rad(light), eto.net_out_lw_rad(t + 265, t + 280, light, clear, damp))
        known = (eto.svp_from_t(t), damp, eto.delta_svp(t), eto.psy_const(eto.atm_pressure(100)))
        return eto.fao56_penman_monteith(net, t + 273.15, 2.0, *known) + eto.hargreaves(t - 8, t + 7, t, sun)

    return water


def options(find: Find) -> Program:
    mibian = find("mibian")

    def prices(p: Any) -> Any:
        stock = mibian.BS([p[0], 105.0, 2.0, 60.0], volatility=p[1])
        money = mibian.GK([p[0], 105.0, 1.0, 2.0, 30.0], volatility=p[1])
        return stock.callPrice + stock.putDelta + stock.vega + money.putPrice

    return prices


def characteristic(find: Find) -> Program:
    functions, u = find("CF"), np.linspace(0.1, 5, 30)
    return lambda s: np.sum(
        np.abs(functions.cf_Heston_good(u, 1.0, 0.04, 0.02, 0.05, s, 2.0, -0.5))
        + np.real(functions.cf_normal(u, 0.1, s) * functions.cf_VG(u, 0.1, s, s, 0.2))
    )


def black_scholes(find: Find) -> Program:
    prices = find("py_vollib.ref_python.black_scholes")
    greeks = find("py_vollib.ref_python.black_scholes.greeks.analytical")
    return lambda p: (
        prices.black_scholes("c", p[0], 105.0, 0.5, 0.01, p[1]) + greeks.vega("c", p[0], 105.0, 0.5, 0.01, p[1])
    )


def network(find: Find) -> Program:
    learning = "mlfromscratch.deep_learning"
    net, layer = find(f"{learning}.neural_network"), find(f"{learning}.layers")
    loss, descent = find(f"{learning}.loss_functions"), find(f"{learning}.optimizers")

    def trained(rate: Any) -> Any:
        np.random.seed(0)  # noqa: NPY002 - theirs draws so
        x, y = np.random.randn(12, 4), np.eye(3)[np.arange(12) % 3]  # noqa: NPY002
        model = net.NeuralNetwork(descent.StochasticGradientDescent(rate, 0.3), loss.SquareLoss)
        for one in (layer.Dense(6, (4,)), layer.Activation("tanh"), layer.Dense(3), layer.Activation("softmax")):
            model.add(one)
        return sum(model.train_on_batch(x, y)[0] for _ in range(4))

    return trained


def solid(find: Find) -> Program:
    assembly, solution = find("solidspy.assemutil"), find("solidspy.solutil")
    after = find("solidspy.postprocesor")

    def moved(poisson: Any) -> Any:
        place = [(0, 0), (2, 0), (2, 2), (0, 2), (1, 0), (2, 1), (1, 2), (0, 1), (1, 1)]
        nodes = np.array([[k, x, y] for k, (x, y) in enumerate(place)], float)
        held = np.zeros((9, 2), int)
        held[:2, 1], held[4] = -1, -1
        corners = [(0, 4, 8, 7), (4, 1, 5, 8), (7, 8, 6, 3), (8, 5, 2, 6)]
        elements = np.array([[k, 1, 0, *ends] for k, ends in enumerate(corners)])
        operator, boundary, n = assembly.DME(held, elements)
        stiffness, _ = assembly.assembler(elements, np.eye(1, 2) + poisson * np.eye(1, 2, 1), nodes, n, operator)
        loads = assembly.loadasem(np.array([[3, 0, 1.0], [6, 0, 2], [2, 0, 1]]), boundary, n)
        return np.sum(after.complete_disp(boundary, nodes, solution.static_sol(stiffness, loads)) ** 2)

    return moved


def beam(find: Find) -> Program:
    core, model, element = find("nusa.core"), find("nusa.model"), find("nusa.element")

    def bent(stiffness: Any) -> Any:
        nodes, whole = [core.Node((1.0 * k, 0)) for k in range(5)], model.BeamModel("beam")
        parts = [element.Beam(ends, stiffness, 1.0) for ends in pairwise(nodes)]
        for one in nodes:
            whole.add_node(one)
        for one in parts:
            whole.add_element(one)
        whole.add_force(nodes[1], (-10.0,))
        whole.add_constraint(nodes[0], ux=0, uy=0, ur=0)
        whole.add_constraint(nodes[4], ux=0, uy=0, ur=0)
        whole.solve()
        return nodes[1].uy + nodes[3].ur

    return bent


def atoms(find: Find) -> Program:
    md = find("pylj.md")

    def energy(temperature: Any) -> Any:
        np.random.seed(0)  # noqa: NPY002 - theirs draws so
        system = md.initialise(9, temperature, 15.0, "square", constants=[[1.363e-134, 9.273e-78]])
        for _ in range(5):
            system.integrate(md.velocity_verlet)
            system.md_sample()
        return 1e20 * np.sum(system.energies) + np.sum(system.temperature_sample)

    return energy


def cepstrum(find: Find) -> Program:
    speech = find("python_speech_features")
    return lambda x: np.sum(np.sin(speech.mfcc(x, samplerate=8000, nfft=256)))


def frequency(find: Find) -> Program:
    maxwell = find("ceviche")

    def field(permittivity: Any) -> Any:
        block, source = np.zeros((16, 14)), np.zeros((16, 14))
        block[6:10, 5:9], source[3, 7] = 1, 1e8
        solver = maxwell.fdfd_ez(4e14 * np.pi, 5e-8, 1 + (permittivity - 1) * block, [3, 3])
        return np.sum(np.abs(solver.solve(source)[2]) ** 2)

    return field


def time_domain(find: Find) -> Program:
    maxwell = find("ceviche")

    def field(permittivity: Any) -> Any:
        block, source, total = np.zeros((12, 12, 1)), np.zeros((12, 12, 1)), 0.0
        block[6:10, 5:9], source[4, 4, 0] = 1, 1
        solver = maxwell.fdtd(1 + (permittivity - 1) * block, dL=5e-8, npml=[3, 3, 0])
        for k in range(12):
            total = total + np.sum(solver.forward(Jz=source * np.sin(k))["Ez"] ** 2)
        return total

    return field


def vehicle(find: Find) -> Program:
    bicycle = find("kinematic_bicycle_model")

    def place(p: Any) -> Any:
        state = bicycle.State(0.0, 0.0, 0.1, p[0])
        for _ in range(10):
            state = bicycle.update(state, 0.2, p[1])
        return state.x**2 + state.y + state.yaw

    return place


def water(find: Find) -> Program:
    properties, kinetics = "chempy.properties", find("chempy.kinetics.arrhenius")
    density, salt = find(f"{properties}.water_density_tanaka_2001"), find("chempy.debye_huckel")
    charge = find(f"{properties}.water_permittivity_bradley_pitzer_1979")
    integrated, time = find("chempy.kinetics.integrated"), np.linspace(0.1, 2, 9)
    return lambda t: (
        density.water_density(t) + charge.water_permittivity(t) + salt.A(80.0, t, 1000.0)
        + kinetics.arrhenius_equation(1e10, 4e4, t) * 1e-4
        + np.sum(integrated.binary_rev(time, t / 200, 0.3, 0.1, 1.0, 0.7))
    )  # fmt: skip


def telescope(find: Find) -> Program:
    grids, shapes, modes = find("prysm.coordinates"), find("prysm.geometry"), find("prysm.polynomials")
    waves = find("prysm.propagation")

    def spot(c: Any) -> Any:
        x, y = grids.make_xy_grid(32, diameter=10.0)
        r, angle = grids.cart_to_polar(x, y)
        errors = sum(ck * modes.zernike_nm(n, m, r / 5, angle) for ck, (n, m) in zip(c, [(2, 0), (3, 1)], strict=True))
        whole = shapes.circle(5.0, r).astype(float)
        wave = waves.Wavefront.from_amp_and_phase(whole, 500 * errors, 0.6, x[0, 1] - x[0, 0])
        return np.sum(np.square(wave.focus(100.0, Q=2).intensity.data)) * 1e-6

    return spot


def abel(find: Find) -> Program:
    transforms = find("abel")
    return lambda x: (
        np.sum(transforms.hansenlaw.hansenlaw_transform(x) ** 2)
        + np.sum(transforms.dasch.three_point_transform(x, basis_dir=None) ** 2)
        + np.sum(transforms.direct.direct_transform(x, backend="Python") ** 2)
    )


def regulator(find: Find) -> Program:
    control = find("control")

    def gains(weight: Any) -> Any:
        gain, cost, _ = control.lqr(np.eye(2, k=1), np.array([[0.0], [1.0]]), np.eye(2) * weight, np.eye(1))
        return np.sum(gain) + np.sum(cost)

    return gains


def response(find: Find) -> Program:
    functions = find("pastas.rfunc")
    return lambda p: np.sum(functions.Exponential().step([p[0], p[1]], maxtmax=30) ** 2) * 1e-4


def diffraction(find: Find) -> Program:
    optics = find("diffractsim")

    def intensity(distance: Any) -> Any:
        field = optics.MonochromaticField(wavelength=6.328e-7, extent_x=0.018, extent_y=0.018, Nx=32, Ny=32)
        field.add(optics.CircularAperture(radius=2e-3))
        field.propagate(distance)
        return np.sum(field.get_intensity() ** 2)

    return intensity


def rocket(find: Find) -> Program:
    tools, matrices = find("rocketpy.tools"), find("rocketpy.mathutils.vector_matrix")

    def turned(angles: Any) -> Any:
        e = tools.euler313_to_quaternions(angles[0], angles[1], angles[2])
        w = matrices.Matrix.transformation(list(e)) @ matrices.Vector([1.0, 2.0, 3.0])
        return w[0] ** 2 + w[1] + abs(w)

    return turned


def separation(find: Find) -> Program:
    solver = find("PDE_solver")

    def energy(depth: Any) -> Any:
        np.random.seed(0)  # noqa: NPY002 - theirs draws so
        mixture = solver.CahnHilliard((12, 12), 0.1, depth, 0.1, 1.0, 1.0, 0.3)
        mixture.run_dynamics()
        return np.sum(mixture.calc_free_energy()) + np.sum(mixture.phi**2)

    return energy


def relaxation(find: Find) -> Program:
    solver = find("PDE_solver")

    def potential(factor: Any) -> Any:
        np.random.seed(0)  # noqa: NPY002 - theirs draws so
        box = solver.Poisson((6, 6, 6), 1.0, 1.0, 1e-3, 0.0, "gs", factor)
        box.create_monopole()
        for _ in range(3):
            box.gs_update_3D()
        return np.sum(box.phi**2) + np.sum(box.get_elec_field()[0] ** 2) + np.sum(box.jacobi_update(box.phi) ** 2)

    return potential


def assimilation(find: Find) -> Program:
    model, filtering = find("shallow_water"), find("EnKF")

    def analysis(height: Any) -> Any:
        np.random.seed(0)  # noqa: NPY002 - theirs draws so
        members, x = [], np.arange(16)
        for k in range(5):
            eta, u = height * (1 + 0.1 * k) * np.exp(-((x - 5.0) ** 2) / 4), np.zeros(17)
            for _ in range(4):
                eta, u, _ = model.step_forward_rk4(eta, u, np.full(16, 10.0), 16, 9.8, 10.0, 0.3)
            members.append(np.concatenate([eta, u]))
        seen, error = np.array([0.1, 0.2, 0.1]), np.eye(3) * 0.01
        return np.sum(filtering.analysis_step(np.stack(members, axis=1), seen, 3, np.eye(3, 33), error, 5) ** 2)

    return analysis


SOUND = np.sin(np.arange(3000.0) ** 1.3) * 0.5
OTHER_KINDS = (
    Repository("pmocz/constrainedtransport-python", "1737c32", "magnetised gas: energy by the adiabatic index",
               magnetic, 1.6, step=1e-3),
    Repository("pmocz/pic-python", "5a9bf93", "particles in cells: energy by a perturbation", plasma, 0.1, step=1e-3),
    Repository("swharden/pyHH", "61e4fa3", "Hodgkin and Huxley's neuron: potential by the current", neuron, 20.0, "src",
               0.1),
    Repository("NxRLab/ModernRobotics", "cbd41fd", "way of a hand, and Jacobian, by three angles", kinematics,
               np.array([0.1, 0.2, 0.3]), "packages/Python"),
    Repository("NxRLab/ModernRobotics", "cbd41fd", "a controlled arm, drawn as it runs: torques by three angles",
               controlled, np.array([0.1, 0.2, 0.3]), "packages/Python", 1e-3),
    Repository("sbyrnes321/tmm", "462b63b", "light through thin layers, by a thickness", layers, 100.0, "..", 0.1),
    Repository("OMS-NetZero/FAIR", "c361625", "warming, by three coefficients of heat exchange", climate,
               np.array([1.8, 0.6, 0.9]), "src"),
    Repository("kratzert/RRMPG", "7de78c2", "GR4J, compiled by numba: flow of a river by four parameters", river,
               np.array([300.0, 2.0, 80.0, 1.7]), step=1e-3),
    Repository("dalmo1991/superflexPy", "75d93c3", "two reservoirs, implicit Euler: flow by two parameters", reservoirs,
               np.array([0.1, 1.2]), step=1e-3),
    Repository("woodcrafty/PyETo", "79ddd88", "evaporation, by the temperature", evaporation, 20.0, step=0.1),
    Repository("yassinemaaroufi/MibianLib", "c96db9c", "options and their derivatives, by price and volatility",
               options, np.array([100.0, 25.0])),
    Repository("vollib/py_vollib", "9fbc623", "the same", black_scholes, np.array([100.0, 0.2])),
    Repository("cantaro86/Financial-Models-Numerical-Methods", "585ed19", "characteristic functions, by a volatility",
               characteristic, 0.2, "src/FMNM", 1e-3),
    Repository("eriklindernoren/ML-From-Scratch", "a2806c6", "loss of a network after four steps of training, by the "
               "learning rate", network, 0.5),
    Repository("AppliedMechanics-EAFIT/SolidsPy", "7319fba", "plane elasticity: displacements by Poisson's ratio",
               solid, 0.3),
    Repository("JorgeDeLosSantos/nusa", "4bb5763", "a beam on three supports, by its stiffness", beam, 3.0, step=0.1),
    Repository("arm61/pylj", "12ff450", "nine atoms, in structured arrays: energies by the temperature", atoms, 300.0,
               step=1.0),
    Repository("jameslyons/python_speech_features", "e280ac2", "cepstral coefficients, by a sound", cepstrum, SOUND,
               step=1e-4),
    Repository("fancompute/ceviche", "dcb8587", "Maxwell's equations, written for autograd, by a permittivity",
               frequency, 4.0),
    Repository("fancompute/ceviche", "dcb8587", "the same in time", time_domain, 4.0),
    Repository("AtsushiSakai/PyAdvancedControl", "25141e7", "a bicycle's way, by speed and steering", vehicle,
               np.array([0.3, 0.1]), "steer_vehicle_model"),
    Repository("bjodah/chempy", "4623d54", "properties of water, and kinetics, by the temperature", water, 298.15,
               step=0.1),
    Repository("brandondube/prysm", "5008f47", "image of a point, by two aberrations", telescope,
               np.array([0.1, 0.02])),
    Repository("PyAbel/PyAbel", "f4459a7", "three inverse Abel transforms, by an image", abel,
               np.sin(np.arange(165.0)).reshape(5, 33)),
    Repository("python-control/python-control", "e60e5eb", "a linear quadratic regulator, by a weight", regulator, 1.0),
    Repository("pastas/pastas", "f4ee486", "response of groundwater, by two parameters", response,
               np.array([100.0, 10.0])),
    Repository("rafael-fuente/diffractsim", "fbe7c93", "light behind an aperture, by the distance", diffraction, 0.5,
               step=1e-3),
    Repository("c-abbott/pde-solver", "596e155", "Cahn and Hilliard's equation, 100 steps, by the depth of its wells",
               separation, 0.1),
    Repository("c-abbott/pde-solver", "596e155", "Poisson's equation by over-relaxation, item by item, by its factor",
               relaxation, 1.2),
    Repository("honokam04/shallow-water-enkf", "55c4509", "ensemble Kalman filter of shallow water, by a height",
               assimilation, 0.3, "scripts/model/model"),
    Repository("RocketPy-Team/RocketPy", "d41dd11", "a rocket's attitude, by three angles", rocket,
               np.array([0.1, 0.2, 0.05]), step=1e-3),
)  # fmt: skip
