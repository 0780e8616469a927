"""Programs of further kinds, as in ``repositories.py``, each differentiated twice as well."""

from typing import Any

import numpy as np
from tests.external.repositories import Find, Program, Repository


def transformer(find: Find) -> Program:
    gpt, rng = find("gpt2"), np.random.default_rng(0)

    def layer(n: int, m: int) -> dict[str, Any]:
        return {"w": rng.normal(size=(n, m)) * 0.3, "b": rng.normal(size=m) * 0.1}

    norm, places, words = {"g": np.ones(8), "b": np.zeros(8)}, rng.normal(size=(6, 8)), [1, 4, 2, 9, 0, 3]
    blocks = [
        {"mlp": {"c_fc": layer(8, 32), "c_proj": layer(32, 8)}, "ln_1": norm, "ln_2": norm,
         "attn": {"c_attn": layer(8, 24), "c_proj": layer(8, 8)}}
        for _ in range(2)
    ]  # fmt: skip

    def loss(embedding: Any) -> Any:
        logits = gpt.gpt2(words, wte=embedding, wpe=places, blocks=blocks, ln_f=norm, n_head=2)
        return -np.sum(np.log(gpt.softmax(logits))[np.arange(5), words[1:]])

    return loss


def leaves(find: Find) -> Program:
    canopy = find("prosail")
    return lambda p: np.sum(
        canopy.run_prosail(
            1.5, p[0], 8.0, 0.0, p[1], 0.009, p[2], -0.35, 0.01, 30.0, 10.0, 0.0, typelidf=1, lidfb=-0.15, rsoil=1.0,
            psoil=1.0, factor="SDR",
        ) ** 2
    )  # fmt: skip


def comfort(find: Find) -> Program:
    indices, wind = find("thermofeel"), np.full(3, 2.0)
    return lambda t: (
        np.sum(indices.calculate_wbgt(t, t + 5, wind, t - 8.0))
        + np.sum(indices.calculate_heat_index_adjusted(t, t - 6.0))
        + np.sum(indices.calculate_humidex(t, t - 7))
    )


def wells(find: Find) -> Program:
    flow = find("timml")

    def heads(conductivity: Any) -> Any:
        model = flow.ModelMaq(kaq=[conductivity, 20.0], z=[20, 15, 10, 0], c=[4000.0])
        flow.Constant(model, 50, 50, 20.0)
        flow.Well(model, xw=0, yw=0, rw=0.3, Qw=100.0, layers=0)
        model.solve(silent=True)
        return np.sum(model.head(3.0, 4.0)) + np.sum(model.head(8.0, 2.0))

    return heads


def carbonate(find: Find) -> Program:
    sea = find("PyCO2SYS")

    def acidity(p: Any) -> Any:
        found = sea.sys(par1=p[0], par2=p[1], par1_type=1, par2_type=2, salinity=35, temperature=20)
        return found["pH"] * 10 + 1e-3 * found["pCO2"] + found["saturation_aragonite"]

    return acidity


def thermosphere(find: Find) -> Program:
    model, header = find("nrlmsise_00"), find("nrlmsise_00_header")

    def density(p: Any) -> Any:
        given, found, flags = header.nrlmsise_input(), header.nrlmsise_output(), header.nrlmsise_flags()
        flags.switches[1:24] = [1] * 23
        given.doy, given.sec, given.g_lat, given.g_long, given.lst = 172, 29000, 60, -70, 16
        given.year, given.f107, given.ap, given.alt, given.f107A = 0, 150, 4, p[0], p[1]
        model.gtd7(given, flags, found)
        return found.t[1] * 1e-3 + found.d[1] * 1e-8

    return density


def movement(find: Find) -> Program:
    primitives = find("pydmps.dmp_discrete")

    def way(path: Any) -> Any:
        learned = primitives.DMPs_discrete(n_dmps=1, n_bfs=5, dt=0.05)
        learned.imitate_path(y_des=path)
        return np.sum(learned.rollout()[0] ** 2)

    return way


def frame(find: Find) -> Program:
    system = find("anastruct.fem.system")

    def displacement(p: Any) -> Any:
        whole = system.SystemElements()
        whole.add_element(location=[[0, 0], [3, 4]], EA=5e4, EI=1e3 * p[0])
        whole.add_element(location=[[3, 4], [8, 4]], EA=5e4, EI=1e3 * p[1])
        whole.q_load(element_id=2, q=-10)
        whole.add_support_hinged(node_id=1)
        whole.add_support_fixed(node_id=3)
        return 100 * np.sum(whole.solve() ** 2)

    return displacement


def economy(find: Find) -> Program:
    economics = find("quantecon")

    def rule(p: Any) -> Any:
        moves = np.eye(2) * p[0] + np.eye(2, k=1) * 0.1
        problem = economics.LQ(np.eye(1), np.eye(2) * p[1], moves, np.array([[0.0], [1.0]]), beta=0.95)
        cost, policy, _ = problem.stationary_values()
        return np.sum(cost) + np.sum(policy)

    return rule


def noise(find: Find) -> Program:
    equations, times = find("sdeint"), np.linspace(0, 1, 11)

    def spread(p: Any) -> Any:
        drift, total = np.eye(2) * -p[0], 0.0
        for solve in (equations.itoSRI2, equations.stratHeun):
            way = solve(lambda x, t: drift @ x, lambda x, t: np.eye(2) * p[1] * x, np.ones(2), times,
                        generator=np.random.default_rng(0))  # fmt: skip
            total = total + np.sum(way**2)
        return total

    return spread


def geodesy(find: Find) -> Program:
    earth = find("pymap3d")

    def place(p: Any) -> Any:
        x, y, z = earth.geodetic2ecef(p[0], p[1], p[2])
        east, north, up = earth.geodetic2enu(p[0], p[1], p[2], 42.0, -82.0, 200.0)
        latitude, _, height = earth.ecef2geodetic(x, y, z + 10.0)
        azimuth, elevation, _ = earth.geodetic2aer(p[0], p[1], p[2], 42.0, -82.0, 200.0)
        return (x + y) * 1e-6 + east * 1e-4 + north * up * 1e-9 + latitude + height * 1e-3 + azimuth + elevation

    return place


def poses(find: Find) -> Program:
    space, base, weights = find("spatialmath"), find("spatialmath.base"), np.arange(16.0).reshape(4, 4)

    def turned(p: Any) -> Any:
        first, second = base.rpy2tr(p[0], p[1], p[2]), base.trexp(np.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.3]))
        both = space.SE3(first) * space.SE3(second)
        return np.sum(weights * (first**2 + both.A)) + np.sum(base.r2q(first[:3, :3])) + np.sum(base.trlog(first) ** 2)

    return turned


def images(find: Find) -> Program:
    velocimetry = find("openpiv.pyprocess")
    first = np.random.default_rng(0).uniform(0, 1, (24, 24))
    second = np.roll(first, (1, 2), (0, 1))

    def speeds(p: Any) -> Any:
        u, v, _ = velocimetry.extended_search_area_piv(
            first * p[0] + p[1] * second, second, window_size=12, overlap=6, search_area_size=12, sig2noise_method=None
        )
        return np.sum(u**2) + np.sum(v)

    return speeds

def springs(find: Find) -> Program:
    network = find("springnetwork")
    first, second = [0, 1, 3, 4, 6, 7, 0, 1, 2, 3, 4, 5], [1, 2, 4, 5, 7, 8, 3, 4, 5, 6, 7, 8]

    def energy(stiffness: Any) -> Any:
        x, y = np.meshgrid(np.linspace(1, 2, 3), np.linspace(1, 2, 3))
        place, speed = np.stack([x.ravel(), y.ravel()], axis=1), np.random.default_rng(0).normal(size=(9, 2)) * 0.01
        lengths = np.linalg.norm(place[first] - place[second], axis=1)
        for _ in range(10):
            force = network.getAcc(place, speed, first, second, lengths, stiffness, -30.0)
            speed = speed + force * 0.1
            place, speed = network.applyBoundary(place + speed * 0.1, speed, 3)
        return np.sum(place**2) + np.sum(speed**2)

    return energy


def vortices(find: Find) -> Program:
    flow = find("navier-stokes-spectral")  # a name by which nothing can be imported but by importlib

    def enstrophy(viscosity: Any) -> Any:
        line, waves = np.arange(16) / 16, np.fft.fftfreq(16, 1 / 16) * 2 * np.pi
        (x, y), (kx, ky) = np.meshgrid(line, line), np.meshgrid(waves, waves)
        squares = kx**2 + ky**2
        inverse = 1 / np.where(squares == 0, 1.0, squares)
        kept = (np.abs(kx) < 30) & (np.abs(ky) < 30)
        u, v = -np.sin(2 * np.pi * y), np.sin(4 * np.pi * x)
        for _ in range(6):
            along = [flow.apply_dealias(-(u * p + v * q), kept) for p, q in (flow.grad(w, kx, ky) for w in (u, v))]
            slope = flow.grad(flow.poisson_solve(flow.div(*along, kx, ky), inverse), kx, ky)
            u, v = (w + 1e-3 * (a - b) for w, a, b in zip((u, v), along, slope, strict=True))
            u, v = (flow.diffusion_solve(w, 1e-3, viscosity, squares) for w in (u, v))
        return np.sum(flow.curl(u, v, kx, ky) ** 2)

    return enstrophy


def rising(find: Find) -> Program:
    gas = find("finitevolume2")

    def energy(gamma: Any) -> Any:
        dx, g = 0.1, -0.1
        y, x = np.meshgrid((np.arange(10) + 0.5) * dx, (np.arange(6) + 0.5) * dx)
        heavy, up = 1.0 + (y > 0.5), 0.1 * (1 - np.cos(4 * np.pi * x)) * (1 - np.cos(4 * np.pi * y / 3))
        known = gas.addGhostCells(heavy, 0 * x, up, 2.5 + g * (y - 0.75) * heavy)
        kept = gas.getConserved(*known, gamma, dx**2)
        for _ in range(3):
            kept = gas.addSourceTerm(*kept, g, 0.005)
            known = gas.getPrimitive(*kept, gamma, dx**2)
            slopes = [gas.slopeLimit(q, dx, *gas.getGradient(q, dx)) for q in known]
            faces = [gas.extrapolateInSpaceToFace(q, *s, dx) for q, s in zip(known, slopes, strict=True)]
            along = gas.getFlux(*(side for q in faces for side in q[:2]), gamma)
            across = gas.getFlux(*(side for k in (0, 2, 1, 3) for side in faces[k][2:]), gamma)
            pairs = zip(kept, along, [across[k] for k in (0, 2, 1, 3)], strict=True)
            kept = tuple(gas.applyFluxes(q, f, h, dx, 0.01) for q, f, h in pairs)
        return sum(np.sum(q**2) for q in kept)

    return energy


def galaxies(find: Find) -> Program:
    learning = find("artificialneuralnetwork")
    x, y = np.random.default_rng(0).random((7, 5)), np.array([0.0, 1, 2, 0, 1, 2, 2]).reshape(7, 1)

    def cost(weights: Any) -> Any:
        given = (weights, 5, 4, 3, x, y, 1.0)
        return learning.cost_function(*given) + np.sum(learning.gradient(*given) ** 2)

    return cost


def memory_cells(find: Find) -> Program:
    cells, loss = find("lstm"), find("test")

    def trained(rate: Any) -> Any:
        np.random.seed(0)  # noqa: NPY002 - theirs draws so
        parameters = cells.LstmParam(6, 4)
        network, given = cells.LstmNetwork(parameters), np.random.random((4, 4))  # noqa: NPY002
        for _ in range(3):
            for x in given:
                network.x_list_add(x)
            found = network.y_list_is([-0.5, 0.2, 0.1, -0.5], loss.ToyLossLayer)
            parameters.apply_diff(lr=rate)
            network.x_list_clear()
        return found

    return trained


def dye(find: Find) -> Program:
    fluids = find("fluid")

    def swirled(speed: Any) -> Any:
        fluid, push, drops = fluids.Fluid((9, 10), "dye"), np.zeros((2, 9, 10)), np.zeros((9, 10))
        push[0, 3:6, 4:7] = drops[3:6, 4:7] = 1.0
        for _ in range(3):
            fluid.velocity += push * speed
            fluid.dye += drops
            curl = fluid.step()[1]
        return np.sum(curl**2) + np.sum(fluid.dye**2)

    return swirled


def stack(find: Find) -> Program:
    optics = find("PyTMM.transferMatrix")

    def light(thickness: Any) -> Any:
        total = 0.0
        for length, kind in ((500.0, optics.Polarization.s), (600.0, optics.Polarization.p)):
            layers = optics.TransferMatrix.layer(1.46, thickness, length, 0.2, kind)
            layers.appendRight(optics.TransferMatrix.boundingLayer(1, 2.1 + 0.1j, 0.2, kind))
            total = total + sum(np.abs(part) ** 2 for part in optics.solvePropagation(layers))
        return total

    return light


def spins(find: Find) -> Program:
    package = "tenpy_toycodes"
    states, models, steps = find(f"{package}.a_mps"), find(f"{package}.b_model"), find(f"{package}.c_tebd")

    def energy(field: Any) -> Any:
        model, state = models.TFIModel(5, 1.0, field), states.init_FM_MPS(5, 2)
        steps.run_TEBD(state, steps.calc_U_bonds(model.H_bonds, 0.05), N_steps=3, chi_max=8, eps=1e-12)
        return np.sum(state.bond_expectation_value(model.H_bonds)) + np.sum(state.entanglement_entropy())

    return energy


def clouds(find: Find) -> Program:
    transfer, phases = find("PythonicDISORT"), np.array([0.7, 0.6])[:, None] ** np.arange(9)

    def fluxes(p: Any) -> Any:
        albedo = np.stack([p[1], p[1] * 0.9])
        _, up, down, mean = transfer.pydisort(
            np.array([0.4, 1.0]) * p[0], albedo, 8, phases, 0.6, np.pi, 0.9 * np.pi, only_flux=True
        )[:4]
        return up(0.2) + 0.3 * down(0.5)[0] + down(0.5)[1] + np.sum(mean(0.3) ** 2)

    return fluxes


def arm(find: Find) -> Program:
    robots, models = find("pybotics.robot"), find("pybotics.predefined_models")

    def reach(angles: Any) -> Any:
        robot = robots.Robot.from_parameters(models.ur10())
        torques = robot.compute_joint_torques([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], angles)
        return 1e-6 * (np.sum(robot.fk(angles)[:3, 3] ** 2) + np.sum(robot.jacobian_world(angles) ** 2)) + np.sum(
            torques
        ) * 1e-3

    return reach


def smiles(find: Find) -> Program:
    options, strikes = find("pyfeng"), np.arange(80, 121, 10.0)

    def prices(volatility: Any) -> Any:
        black = options.Bsm(volatility, intr=0.05, divr=0.1)
        smile = options.SabrHagan2002(volatility, vov=0.5, rho=-0.25, beta=0.5)
        return sum(np.sum(f(strikes, 100, 1.2)) for f in (black.price, black.delta, smile.price))

    return prices


def tensors(find: Find) -> Program:
    tensorly, fitting = find("tensorly"), find("tensorly.decomposition")

    def misfit(x: Any) -> Any:
        whole = tensorly.tensor(np.reshape(x, (3, 4, 2)))
        parts = fitting.parafac(whole, 2, n_iter_max=4, init="svd", tol=0)
        core, _ = fitting.tucker(whole, [2, 2, 2], n_iter_max=3)
        return np.sum((tensorly.cp_to_tensor(parts) - whole) ** 2) + 0.1 * np.sum(core**2)

    return misfit


def contracted(find: Find) -> Program:
    einsum = find("opt_einsum")
    return lambda x: (
        einsum.contract("ij,jk,kl->", x, x.T, x)
        + np.sum(einsum.contract_expression("ab,bc->ac", (3, 4), (4, 3))(x, x.T))
    )


def sound(find: Find) -> Program:
    filters = find("resampy")  # by numba.guvectorize
    return lambda x: (
        np.sum(filters.resample(x, 8, 5) ** 2) + np.sum(filters.resample(x, 8, 5, filter="kaiser_fast") ** 3)
    )


def asymptotes(find: Find) -> Program:
    optimiser = find("mmapy")

    def step(p: Any) -> Any:
        one, two, x = np.ones((3, 1)), np.ones((2, 1)), np.stack([p, p * 0.75, p * 0.5]).reshape(3, 1)
        away = [x.T - np.array([[5, 2, 1]]), x.T - np.array([[3, 4, 3]])]
        bounds, slopes = np.stack([np.sum(a**2) - 9 for a in away]).reshape(2, 1), np.concatenate(away) * 2
        found = optimiser.mmasub(
            2, 3, 1, x, 0 * one, 5 * one, x, x, np.sum(x**2), 2 * x, bounds, slopes, 0 * one, 5 * one, 1, 0 * two,
            1000 * two, two, 1.0,
        )  # fmt: skip
        return np.sum(found[0] ** 2) + np.sum(found[3])

    return step


def spectra(find: Find) -> Program:
    astronomy, waves = find("PyAstronomy.pyasl"), np.linspace(5000, 5100, 50)

    def lines(p: Any) -> Any:
        light = 1 - 0.5 * np.exp(-((waves - 5050 - p[0]) ** 2) / 10)
        turned = np.sum(astronomy.rotBroad(waves, light, 0.6, p[2])) + astronomy.MarkleyKESolver().getE(p[1], 0.3)
        return turned + np.sum(astronomy.unred(waves, light, ebv=p[1] * 0.1))

    return lines


def shocks(find: Find) -> Program:
    solver = find("riemann")
    states = [(np.array([1.0, 0.1 * k, 1.0]), np.array([0.125, 0.0, 0.1 + 0.3 * k])) for k in range(4)]
    return lambda gamma: sum(np.sum(solver.riemann(*state, gamma) * np.arange(1, 4)) for state in states)


def power_flow(find: Find) -> Program:
    package = "pypower"
    kinds, admittance, newton = (find(f"{package}.{name}") for name in ("bustypes", "makeYbus", "newtonpf"))
    case, inside, powers = (find(f"{package}.{name}") for name in ("case9", "ext2int", "makeSbus"))
    options = find(f"{package}.ppoption").ppoption(VERBOSE=0)

    def voltages(load: Any) -> Any:
        grid = inside.ext2int(case.case9())
        buses, made = grid["bus"], grid["gen"]
        buses = np.concatenate((buses[:, :2], buses[:, 2:3] * load, buses[:, 3:]), axis=1)
        start = buses[:, 7] * np.exp(1j * np.pi / 180 * buses[:, 8])
        found = newton.newtonpf(
            admittance.makeYbus(100.0, buses, grid["branch"])[0], powers.makeSbus(100.0, buses, made), start,
            *kinds.bustypes(buses, made), options,
        )[0]  # fmt: skip
        return np.sum(np.abs(found) ** 2) + np.sum(np.angle(found))

    return voltages


def rough(find: Find) -> Program:
    models, tools = find("rbergomi"), find("utils")

    def price(p: Any) -> Any:
        np.random.seed(0)  # noqa: NPY002 - theirs draws so
        model = models.rBergomi(n=20, N=10, T=1.0, a=-0.43)
        noise, other = model.dW1(), model.dW2()
        paths = model.S(model.V(model.Y(noise), xi=p[1], eta=p[2]), model.dB(noise, other, rho=p[0]))
        call = np.mean(np.maximum(paths[:, -1] - 1.0, 0))
        return call + tools.bsinv(call, 1.0, 1.0, 1.0)

    return price


def excitable(find: Find) -> Program:
    models, parameters = (find(f"neurolib.models.fhn.{name}") for name in ("timeIntegration", "loadDefaultParams"))

    def activity(stimulus: Any) -> Any:
        start = np.array([[0.05]])
        given = {"duration": 2.0, "x_ext": stimulus, "sigma_ou": 0.0, "xs_init": start, "ys_init": start}
        _, x, y, *_ = models.timeIntegration(parameters.loadDefaultParams(seed=1) | given)
        return np.sum(x**2) + np.sum(y)

    return activity


def molecule(find: Find) -> Program:
    vibrations, moves = find("pmutt.statmech.vib"), find("pmutt.statmech.trans")

    def entropy(t: Any) -> Any:
        vibrating = vibrations.HarmonicVib(vib_wavenumbers=[3734.0, 1650.0, 3700.0])
        moving = moves.FreeTrans(n_degrees=3, molecular_weight=18.0)
        return vibrating.get_SoR(T=t) + vibrating.get_CvoR(T=t) + moving.get_SoR(T=t, P=1.0)

    return entropy


def functional(find: Find) -> Program:
    first, second = find("eminus.xc.lda_c_pw"), find("eminus.xc.lda_c_vwn")
    return lambda n: sum(np.sum(f(n)[0] * n + f(n)[1][0]) for f in (first.lda_c_pw, second.lda_c_vwn))


def space_frame(find: Find) -> Program:
    frames = find("Pynite")

    def moved(p: Any) -> Any:
        frame = frames.FEModel3D()
        for name, place in {"A": (0, 0, 0), "B": (168, 0, 0), "C": (168, 100, 20)}.items():
            frame.add_node(name, *place)
        frame.add_material("steel", p[0] * 1e4, 11200.0, 0.3, 2.8e-4)
        frame.add_section("bar", 20, 100 * p[1], 150, 250)
        frame.add_member("AB", "A", "B", "steel", "bar")
        frame.add_member("BC", "B", "C", "steel", "bar")
        frame.def_support("A", *[True] * 6)
        frame.def_support("C", *[True] * 3, *[False] * 3)
        frame.add_member_dist_load("AB", "Fy", -0.2, -0.1)
        frame.analyze_linear()
        return next(iter(frame.nodes["B"].DY.values())) + next(iter(frame.nodes["B"].RZ.values()))

    return moved


FURTHER_KINDS = (
    Repository("jaymody/picoGPT", "817292b", "a transformer: loss of six words, by their embedding", transformer,
               np.random.default_rng(1).normal(size=(11, 8)) * 0.4),
    Repository("jgomezdans/prosail", "35a4793", "radiative transfer in leaves and a canopy: light, by chlorophyll, "
               "water and leaf area", leaves, np.array([40.0, 0.0176, 3.0]), step=1e-3),
    Repository("ecmwf/thermofeel", "ba72863", "three indices of heat, by the temperatures", comfort,
               np.array([303.0, 305.0, 308.0])),
    Repository("mbakker7/timml", "1aaaa96", "analytic elements, by numba: heads of groundwater around a well, by a "
               "conductivity", wells, 10.0, step=0.1),
    Repository("mvdh7/PyCO2SYS", "1dec7f6", "carbonate of sea water, written for autograd: acidity by alkalinity and "
               "carbon", carbonate, np.array([2300.0, 2050.0]), step=1e-5),
    Repository("DeepHorizons/Python-NRLMSISE-00", "d5b719d", "the thermosphere, by height and solar flux", thermosphere,
               np.array([400.0, 150.0]), step=1e-3),
    Repository("studywolf/pydmps", "cdc1ef1", "movement primitives: the way that is learned from a path", movement,
               np.sin(np.linspace(0, 2, 20))[None], step=1e-3),
    Repository("ritchie46/anaStruct", "be480dc", "a plane frame, with memoised functions: displacements by two "
               "stiffnesses", frame, np.array([8.0, 4.0])),
    Repository("QuantEcon/QuantEcon.py", "13b436b", "a linear quadratic economy: cost and policy, by two numbers",
               economy, np.array([0.9, 1.0]), step=1e-3),
    Repository("mattja/sdeint", "8c11013", "two stochastic differential equations, by drift and noise", noise,
               np.array([1.0, 0.3]), step=1e-3),
    Repository("geospace-code/pymap3d", "033895e", "coordinates on the Earth, by a place", geodesy,
               np.array([42.1, -81.9, 300.0]), "src"),
    Repository("petercorke/spatialmath-python", "3e675b7", "poses, quaternions and their logarithms, by three angles",
               poses, np.array([0.1, 0.2, 0.3]), step=1e-3),
    Repository("OpenPIV/openpiv-python", "38ebc6b", "particle image velocimetry, by the light of two images", images,
               np.array([1.0, 0.1]), step=1e-3),
    Repository("pmocz/springnetwork-python", "81f774c", "a network of springs in a box, by their stiffness", springs,
               40.0, step=1e-3),
    Repository("pmocz/navier-stokes-spectral-python", "1c7a1ab", "vortices by a spectral method, by the viscosity",
               vortices, 0.1),
    Repository("pmocz/finitevolume2-python", "c1021db", "a heavy gas on a light one: energy by the adiabatic index",
               rising, 1.4, step=1e-3),
    Repository("pmocz/artificialneuralnetwork-python", "b9eb016", "a network and its own gradient, by the weights",
               galaxies, np.random.default_rng(1).random(39) * 0.4 - 0.2),
    Repository("nicodjimenez/lstm", "a2f2e99", "loss of memory cells after three steps of training, by the rate",
               memory_cells, 0.1),
    Repository("GregTJ/stable-fluids", "69ebdd3", "dye in a fluid, by the speed that stirs it", dye, 0.7, step=1e-3),
    Repository("kitchenknif/PyTMM", "23ed6f4", "light through layers, by a thickness", stack, 100.0, step=0.1),
    Repository("tenpy/tenpy_toycodes", "56b98a0", "matrix product states: energy and entropy of spins, by a field",
               spins, 1.3, step=1e-3),
    Repository("LDEO-CREW/Pythonic-DISORT", "04f1e56", "radiative transfer by discrete ordinates: fluxes by depth and "
               "albedo", clouds, np.array([1.0, 0.9]), "src", 1e-3),
    Repository("engnadeau/pybotics", "ab8e188", "an arm's place, Jacobian and torques, by six angles", arm,
               np.linspace(0.1, 0.6, 6), step=1e-3),
    Repository("PyFE/PyFENG", "da42751", "options of Black and Scholes and of SABR, by a volatility", smiles, 0.3,
               step=1e-3),
    Repository("tensorly/tensorly", "acc439e", "two decompositions of a tensor, by it", tensors,
               np.random.default_rng(0).random(24), step=1e-3),
    Repository("dgasmith/opt_einsum", "2ebc7b8", "contractions, by a matrix", contracted,
               np.random.default_rng(0).random((3, 4)), step=1e-3),
    Repository("bmcfee/resampy", "67263d6", "a sound at another rate, by numba, by it", sound, np.sin(np.arange(60.0))),
    Repository("arjendeetman/GCMMA-MMA-Python", "7ad4f08", "a step of the method of moving asymptotes, by its start",
               asymptotes, 4.0, "src", 1e-3),
    Repository("sczesla/PyAstronomy", "ed5065f", "lines of a turning star, by three numbers", spectra,
               np.array([1.0, 0.7, 20.0]), step=1e-3),
    Repository("python-hydro/how_to_write_a_hydro_code", "337a066", "a Riemann solver: fluxes by the adiabatic index",
               shocks, 1.4, step=1e-3),
    Repository("rwl/PYPOWER", "9c719bb", "a power flow by Newton's method: voltages by the load", power_flow, 1.1),
    Repository("ryanmccrickerd/rough_bergomi", "6a04ca5", "rough volatility: price and implied volatility, by three "
               "parameters", rough, np.array([-0.9, 0.055, 1.9]), "rbergomi", 1e-3),
    Repository("neurolib-dev/neurolib", "9b6b2b8", "an excitable neuron, by numba, by its stimulus", excitable, 0.7),
    Repository("VlachosGroup/pMuTT", "d0dc573", "statistical mechanics of a molecule, by the temperature", molecule,
               300.0, step=0.1),
    Repository("wangenau/eminus", "a23bf3f", "two density functionals, by the density", functional,
               np.linspace(0.2, 1, 5), step=1e-3),
    Repository("JWock82/Pynite", "6500e19", "a frame in space, by its stiffness", space_frame, np.array([2.9, 1.5]),
               step=1e-3),
)  # fmt: skip
