"""Loops with nests and without stages: the same bits, value and gradient, under every policy."""

import numpy as np
import pytest

import pullback as pb
from pullback.staging.generated import shelf

POLICIES = (pb.SaveAll(), pb.Recompute(3), pb.Binomial(2))
N = 7


@pytest.fixture(autouse=True)
def nothing_is_known():
    shelf.forget()
    yield
    shelf.forget()


def bits(tree):
    leaves = tree if isinstance(tree, tuple | list) else [tree]
    return [np.asarray(leaf).tobytes() for part in leaves for leaf in (part if isinstance(part, tuple) else [part])]


def require_same(body, *states, policies=POLICIES, captured=(), n_nests=None, fused=True):
    """Value and gradient of a loop over ``body(k, u, *captured)``, with nests, and with steps that are recorded."""

    def loss(state, *captured):
        out = pb.fori_loop(0, N, looped(captured), state)
        return sum(np.sum(np.abs(leaf) ** 2) for leaf in (out if isinstance(out, tuple) else (out,)))

    def looped(captured):
        def step(k, state):
            return body(k, state, *captured)

        looped.last = step
        return step

    for state in states:
        for policy in policies:
            gradient = pb.value_and_grad(loss, tuple(range(1 + len(captured))), policy=policy)
            with pb.using(staging="off"):
                recorded = gradient(state, *captured)
            for _ in range(2):
                with pb.using(staging="numba"):
                    assert bits(gradient(state, *captured)) == bits(recorded), policy
    told = str(pb.explain_stage(looped.last))
    assert ("def nest" in told) == fused, told
    assert "is NumPy's, since" not in told, told
    return told


def drawn(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * random.standard_normal(shape)
    return x.astype(dtype)


def heat_1d(k, u, c):
    u[1:-1] += c * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return u


def heat_2d(k, u, c):
    near = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    u[1:-1, 1:-1] += c * (near - 4.0 * u[1:-1, 1:-1])
    return u


def heat_3d(k, u, c):
    inner = u[1:-1, 1:-1, 1:-1]
    near = u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 1:-1, 2:]
    v = u.copy()
    v[1:-1, 1:-1, 1:-1] += c * (near - 3.0 * inner)
    return v


@pytest.mark.share(6, of=lambda body, shape, dtype: "")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("body", "shape"), [(heat_1d, (2000,)), (heat_2d, (41, 50)), (heat_3d, (14, 15, 16))], ids=["1d", "2d", "3d"]
)
def test_heat(body, shape, dtype):
    c = np.dtype(dtype).type(0.1)
    inner = tuple(n - 2 for n in shape)
    require_same(body, drawn(shape, dtype), captured=(drawn(inner, dtype, 1) * c if dtype == "f4" else c,))


@pytest.mark.share(2, of=lambda dtype: "")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_wave(dtype):
    def wave(k, state, c2):
        before, u = state
        after = 2.0 * u - before
        lap = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]
        after[1:-1, 1:-1] += c2 * lap
        after[3, 5] += 0.25 * (k + 1)
        return u, after

    u = drawn((45, 40), dtype)
    told = require_same(wave, (u, u * 0.5), captured=(drawn((43, 38), dtype, 2) * np.dtype(dtype).type(0.1),))
    assert told.count("edge(") > 0


@pytest.mark.share(2, of=lambda dtype: "")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_advection_in_place(dtype):
    """Both statements write what the other reads: upwind differences of an array into itself."""

    def advection(k, u, c):
        flux = c * u
        u[1:] -= flux[1:] - flux[:-1]
        u[:-1] += 0.5 * u[1:]
        u[0] = u[-1]
        return u

    require_same(advection, drawn((3000,), dtype), captured=(np.dtype(dtype).type(0.25),))


def test_an_array_is_added_to_itself_shifted():
    def shifted(k, u):
        u[1:] += u[:-1]
        u[:, 1:] -= u[:, :-1]
        u[2:, :-1] *= 0.5
        return u * 0.25

    require_same(shifted, drawn((40, 50), "f8"))


@pytest.mark.share(2, of=lambda dtype: "")
@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_sums(dtype):
    def waves(k, u):
        v = u + 1j
        v[1:-1] -= -(u[2:] + u[:-2])
        return v * 0.25

    require_same(waves, drawn((2000,), dtype))


@pytest.mark.share(2, of=lambda dtype: "")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_quotients_squares_and_negatives(dtype):
    def body(k, u, a):
        v = -(u / a) + np.square(u) * 0.01 + (a - u) ** 2 / 3.0 + 1.0 / a
        return v / (1.0 + v * v) + np.sin(u) * u

    require_same(body, drawn(1500, dtype), captured=(drawn(1500, dtype, 3) + np.dtype(dtype).type(4),))


def test_broadcast_operands():
    def body(k, u, row, column):
        v = u * row + column
        v[1:, :] += row * 0.5
        return v * column - u

    require_same(body, drawn((50, 40), "f8"), captured=(drawn(40, "f8", 1) * 0.3, drawn((50, 1), "f8", 2) * 0.3))


def test_small_arrays_stay_numpys():
    require_same(heat_2d, drawn((20, 20), "f8"), captured=(0.1,), fused=False)


@pytest.mark.share(2, of=lambda dtype: "")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values(dtype):
    """Signed zeros, NaNs of both signs, infinities and numbers below the normal ones. The loss has NumPy's bits also
    where it is NaN; of a NaN in a gradient the sign is left open."""
    u, c = drawn(2048, dtype), np.dtype(dtype).type(0.5)
    u[::7], u[3::7], u[5::49], u[6::49] = 0.0, -0.0, np.inf, -np.inf
    u[12::49], u[13::49] = np.nan, -np.nan
    u[1::50] = np.finfo(dtype).smallest_subnormal

    def body(k, u, c):
        v = u + (-u[::-1].copy())
        v[1:-1] += c * (u[2:] - u[1:-1])
        return v * u - 0.0 * c

    def loss(u, c):
        return np.sum(last(u, c))

    def last(u, c):
        return pb.fori_loop(0, N, lambda k, u: body(k, u, c), u)

    for policy in POLICIES:
        found = []
        for staging in ("off", "numba", "numba"):
            with pb.using(staging=staging):
                gradients = pb.grad(loss, (0, 1), policy=policy)(u, c)
                out, _ = pb.vjp(last, u, c, policy=policy)
                found.append(([np.where(np.isnan(g), 1.0, g) for g in gradients], out))
        assert [bits(part) for part in found[1]] == [bits(part) for part in found[0]]
        assert [bits(part) for part in found[2]] == [bits(part) for part in found[0]]
    assert any(stage.record.kernels for one in shelf._SHELVES.values() for v in one.variants for stage in v.stages)


@pytest.mark.parametrize("policy", [pb.Binomial(2), pb.Recompute()], ids=repr)
def test_marked_steps_are_executed_again_by_nests(policy):
    shelf.forget()

    def marked(u, c):
        for k in pb.steps(N):
            near = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            u[1:-1, 1:-1] += c * (near - 4.0 * u[1:-1, 1:-1]) * (1.0 + 0.1 * k)
        return np.sum(u * u)

    def loss(u, c):
        return marked(np.array(u, like=u), c)

    gradient = pb.value_and_grad(loss, (0, 1), policy=policy)
    u = drawn((60, 70), np.float64)
    with pb.using(staging="off"):
        recorded = gradient(u, 0.1)
    for _ in range(2):
        with pb.using(staging="numba"):
            assert bits(gradient(u, 0.1)) == bits(recorded)
    assert "def nest" in str(pb.explain_stage(marked))


def test_a_step_is_recorded_reversed_and_summed_by_one_function_under_a_policy():
    def body(_, u, c):
        near = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        u[1:-1, 1:-1] += c[1:-1, 1:-1] * (near - 4.0 * u[1:-1, 1:-1])
        return u

    def stages_made(policy, **errors):
        shelf.forget()
        loss = lambda u, c: np.sum(pb.fori_loop(0, 40, lambda k, u: body(k, u, c), u) ** 2)  # noqa: E731
        gradient = pb.grad(loss, (0, 1), policy=policy)
        u, c = 0.1 * drawn((70, 60), "f8"), 0.01 * drawn((70, 60), "f8", 1)
        with np.errstate(**errors):
            with pb.using(staging="off"):
                recorded = gradient(u, c)
            with pb.using(staging="numba"):
                for _ in range(2):
                    assert bits(gradient(u, c)) == bits(recorded), policy
        return [stage for known in shelf._SHELVES.values() for each in known.variants for stage in each.stages]

    for policy in (pb.Binomial(3), pb.Mixed(6), pb.Recompute(4)):
        [stage] = stages_made(policy)
        assert stage.both is not None and stage.both.kernels and stage.leaf.kernels
    stages_made(pb.Binomial(3), over="raise")
    stages_made(pb.Binomial(3), all="warn")
