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
)  # fmt: skip
