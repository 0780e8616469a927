"""Rules computed where a saved value dies: the same bits as in new arrays, and never in what somebody still has."""

import numpy as np
import pytest
from tests.rules.new_arrays import LAYOUTS, TABLE, N, drawn, same, wholly

import pullback as pb

RNG = np.random.default_rng(1)
POLICIES = (None, pb.Recompute(2), pb.Binomial(2), pb.Keep(), pb.Budget("8 MB"))


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("prim", TABLE, ids=lambda prim: prim.name)
def test_the_table_has_the_same_bits(monkeypatch, prim, dtype, special):
    for layout in LAYOUTS:
        operands = [drawn(dtype, layout, special=special) for _ in prim.operands]
        factor = drawn(dtype, "vector", special=special).reshape(operands[0].shape)

        def run(operands=operands, factor=factor):
            f = lambda *xs: np.sum(prim(*(x * x for x in xs)) * factor)  # noqa: E731
            with np.errstate(all="ignore"):
                return pb.grad(f, tuple(range(len(operands))))(*operands)

        same(*wholly(monkeypatch, run))


WRITTEN = {
    "tanh": np.tanh,
    "sine": np.sin,
    "cosine": np.cos,
    "tangent": np.tan,
    "square": np.square,
}


def place(array):
    return np.asarray(array).__array_interface__["data"][0]


@pytest.mark.parametrize("name", WRITTEN)
def test_the_array_of_a_saved_value_is_written(monkeypatch, name):
    def run():
        saved, sent = set(), []
        spy = pb.primitive(
            lambda x: x + 0.0, name="spy", operands=("x",), vjps={"x": lambda ct: (sent.append(place(ct)), ct)[1]}
        )

        def f(x):
            u = spy(x * 2.0)
            y = WRITTEN[name](u)
            saved.update((place(pb.value(u)), place(pb.value(y))))
            return np.sum(y * 3.0)

        pb.grad(f)(np.ones(N))
        return sent[0] in saved

    assert wholly(monkeypatch, run) == (True, False)


def test_where_a_later_rule_reads_a_value_it_stays(monkeypatch):
    """Of a rule that is a chain, and another one of the same record that reads what the first could have written."""
    both = pb.Primitive(
        name="both", forward=lambda x, y: np.sin(x) * y, operands=("x", "y"), elementwise=True, trusted=True,
        guarded=False,
    )  # fmt: skip
    both.vjp("x", fn=lambda ct, y: ct * (y + y))
    both.vjp("y", fn=lambda ct, y: ct * np.cos(y))
    x, y = RNG.uniform(0.2, 0.9, N), RNG.uniform(0.2, 0.9, N)
    run = lambda: pb.grad(lambda x, y: np.sum(both(x * 2.0, y * 3.0) * 1.5), (0, 1))(x, y)  # noqa: E731
    found, expected = wholly(monkeypatch, run)
    same(found, expected)
    np.testing.assert_array_equal(found[0], 2.0 * (1.5 * (6.0 * y)))


HELD = []


def held_by_a_list(x):
    HELD.append(np.tanh(x * 2.0))
    return HELD[-1] * 1.5


def held_as_a_value(x):
    y = np.tanh(x * 2.0)
    HELD.append(pb.value(y))
    return y * 1.5


def held_as_part(x):
    y = np.sin(x * 2.0)
    HELD.append(pb.value(y)[3:7])
    return np.square(y) * y


def held_by_a_handle_of_a_part(x):
    y = np.sin(x * 2.0)
    HELD.append(y[5:])
    return np.square(y) * y


def held_by_an_argument(x):
    return np.square(x) * np.tanh(x)


def held_by_a_constant(x, factor=RNG.uniform(0.2, 0.9, N)):  # noqa: B008 - it is to be the same one
    HELD.append(factor)
    return np.tanh(x * factor) * factor


def held_by_another_record(x):
    y = np.tanh(x * 2.0)
    return np.sin(y) * y + np.square(y)


def held_by_a_view(x):
    y = np.tanh((x * 2.0).reshape(-1, 1))
    return np.square(y.T[0]) * np.sin(y[:, 0])


def held_by_nobody(x):
    return np.tanh(np.sin(x * 2.0) * (x * 3.0))


HOLDERS = (
    held_by_a_list, held_as_a_value, held_as_part, held_by_a_handle_of_a_part, held_by_an_argument, held_by_a_constant,
    held_by_another_record, held_by_a_view, held_by_nobody,
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")  # the constant is larger than the snapshots
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("f", HOLDERS, ids=lambda f: f.__name__)
def test_what_somebody_has_is_never_written(monkeypatch, f, policy):
    x = RNG.uniform(0.2, 0.9, N)
    before = x.tobytes()

    def values():
        return [getattr(held, "_value", held).tobytes() for held in HELD]

    at_end = []

    def program(x):
        out = f(x)
        at_end[:] = values()
        return np.sum(out * np.cos(out))

    def run():
        HELD.clear()
        found = pb.grad(program, policy=policy)(x)
        assert values() == at_end
        assert x.tobytes() == before
        return (found,)

    found, expected = wholly(monkeypatch, run)
    same(found, expected)
    same(found, (pb.grad(program)(x),))


@pytest.mark.parametrize("f", HOLDERS, ids=lambda f: f.__name__)
def test_a_pull_that_stays_reads_what_it_has_read(f):
    x, seed = RNG.uniform(0.2, 0.9, N), RNG.uniform(0.2, 0.9, N)
    _, pull = pb.vjp(f, x)
    first, several, again = pull(seed), pull([seed, 2.0 * seed]), pull(seed)
    same(first, again)
    same(first, several[0])


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_several_rows_read_the_same_values(policy):
    """The last of several sweeps alone may write."""
    x = RNG.uniform(0.2, 0.9, N)
    f = lambda x: np.stack([np.sum(np.tanh(held_by_nobody(x))), np.sum(np.square(np.sin(x)))])  # noqa: E731
    rows = pb.jacobian(f, mode="reverse", policy=policy)(x)
    for k in range(2):
        same((rows[k],), (pb.grad(lambda x, k=k: f(x)[k])(x),))


def test_a_cotangent_of_ones_is_the_factor_and_is_not_written():
    x = RNG.uniform(0.2, 0.9, N)
    a = RNG.uniform(0.2, 0.9, N)
    kept = []

    def f(x):
        y = x * 2.0
        kept.append(y)
        return np.sum(y * a) + np.sum(np.exp(y)) + np.sum(y * np.sin(y))

    before = a.tobytes()
    g = pb.grad(f)(x)
    np.testing.assert_array_equal(kept[0]._value, x * 2.0)
    assert a.tobytes() == before
    y = x * 2.0
    np.testing.assert_allclose(g, 2 * (a + np.exp(y) + np.sin(y) + y * np.cos(y)), rtol=1e-14)
    assert not np.shares_memory(pb.grad(lambda x: np.sum(x * a))(x), a)
