"""Many seeds of one pull, many directions of one linear map: each has the bits that it has alone, by whatever way."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pullback as pb
from pullback.staging.generated import shelf
from pullback.staging.pulls import push_functions, repeated_pulls, repeated_pushes, reverse_functions
from pullback.testing.comparing.bits import same_bits
from pullback.transforms.derivatives import forward, pulls

X = np.array([0.3, -0.7, 1.1, 0.2])
A = np.arange(12.0).reshape(3, 4) / 7 - 0.5
T = np.linspace(-1, 1, 24).reshape(2, 3, 4)


def written(y, x):
    y[1:] *= x[:-1]
    y[[0, 2]] += x[[1, 1]]
    y[[3, 0]] = x[:2] * 2.0
    y += x
    return y


def grid(x):
    out = np.zeros_like(x, shape=(2, 4, 3))
    out[:, 1:3, 0] = x[:2]
    out[0, [0, 2], 1] = x[2:]
    out.T[2, :, 1] = x
    return out


def alias(x):
    y = np.outer(x, x).copy(order="F")
    return y.T.sum(axis=0) + y.sum(axis=(0, 1)) + y.ravel(order="F")[:4] * y.reshape(2, 8)[:, :2].reshape(4)


ONE = {
    "elementwise": lambda x: np.sin(x) * x + np.exp(-x) / (1.0 + x * x),
    "writes": lambda x: written(np.cos(x), x),
    "a grid": grid,
    "masks": lambda x: np.where(x > 0, np.sqrt(np.abs(x)), x * x) + np.clip(x, -0.5, 0.5),
    "products": lambda x: np.outer(x, x) @ x + x[::-1] * x[1] + np.dot(x, x) * A.T @ (A @ x),
    "stacks of products": lambda x: ((T * x) @ A.T @ T[0][:, :2]).sum(axis=1) + T[1, :2] @ x,
    "joins": lambda x: np.concatenate([x, np.stack([x * 2.0, X], axis=1).reshape(-1), np.roll(x * x, 1)]),
    "sums": lambda x: (np.tanh(A * x).mean(axis=0), np.sum(x), np.sum(A * x, axis=1, keepdims=True), x.max()),
    "einsum": lambda x: np.einsum("ij,j,k->ik", A, x, x) / np.linalg.norm(x),
    "scans": lambda x: np.cumsum(x * x) * np.prod(x) + np.diag(np.outer(x, x)),
    "layouts": alias,
    "a constant": lambda x: (np.ones(4), x * 0.0, 3.0, {"i": np.arange(3)}),
    "nothing": lambda x: (x[:0] * 2.0, x),
    "a power": lambda x: np.abs(x) ** 1.5 + x**2,
    "complex in between": lambda x: np.abs(np.exp(1j * x) * (x + 2j)) + np.fft.ifft(np.fft.fft(x)).real,
    "a loop": lambda x: pb.fori_loop(0, 3, lambda k, u: np.sin(u) * x, x),
}
POINTS = {"float64": X, "float32": X.astype("f"), "complex": X * (1 - 0.5j), "F": X, "with zeros": X * [1, 0, 1, 0]}


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    for module in (pulls, forward):
        monkeypatch.setattr(module, "ENOUGH", 2)
    monkeypatch.setattr(pulls, "FEW", 0)
    monkeypatch.setattr(pulls, "SOME", 0)
    monkeypatch.setattr(repeated_pulls, "TIMES", 0)
    monkeypatch.setattr(repeated_pushes, "TIMES", 0)
    shelf.forget()


def drawn(random, like):
    def one(leaf):
        leaf = np.asarray(leaf)
        if leaf.dtype.kind not in "fc":
            return None
        parts = random.normal(size=leaf.shape) + (1j * random.normal(size=leaf.shape) if leaf.dtype.kind == "c" else 0)
        return parts.astype(leaf.dtype)[()]

    return pb.map_leaves(one, like)


CASES = [
    *((name, "float64") for name in ONE),
    *((name, "float32") for name in ("elementwise", "writes", "products", "sums", "masks")),
    *((name, "complex") for name in ("elementwise", "writes", "products", "stacks of products", "joins", "einsum")),
    *((name, "with zeros") for name in ("masks", "scans", "a power", "products")),
]


@pytest.mark.parametrize(("name", "point"), CASES)
def test_each_has_the_bits_that_it_has_alone(name, point):
    f, x, random = ONE[name], POINTS[point], np.random.default_rng(0)
    y, pull = pb.vjp(f, x)
    for turn in range(2):
        x = x * (1 + turn)  # another point, of the same record
        y, pull = pb.vjp(f, x)
        _, push = pb.linearize(f, x)
        for n in (3, 3, 2):
            cts, ts = [drawn(random, y) for _ in range(n)], [(drawn(random, x),) for _ in range(n)]
            rows, columns = pull(cts), push(ts)
            with pb.using(staging="off"):
                assert same_bits(rows, [pull(ct) for ct in cts])
                assert same_bits(columns, [push(*t) for t in ts])
                assert same_bits(push(ts), columns)
            assert [x.strides for x in flat(columns)] == [x.strides for x in flat([push(*t) for t in ts])]


def flat(tree):
    leaves = []
    pb.map_leaves(lambda leaf: leaves.append(np.asarray(leaf)), tree)
    return leaves


def used(monkeypatch):
    """What the functions for many have answered."""
    seen = []
    for module, name in ((reverse_functions, "ReverseFunction"), (push_functions, "Push")):
        kind = getattr(module, name)

        def noted(self, *args, before=kind.each, name=name):
            found = before(self, *args)
            if getattr(self, "n", 1) is not None:
                seen.append((name, found is not None))
            return found

        monkeypatch.setattr(kind, "each", noted)
    return seen


def test_they_are_used_and_the_derivative_is_not_recorded_again(monkeypatch):
    def both(x):
        y, pull = pb.vjp(ONE["writes"], x)
        _, push = pb.linearize(ONE["writes"], x)
        pull([y, y, y])
        push([(X,)] * 3)
        return push

    both(X)
    both(X)
    seen, records = used(monkeypatch), []
    record = forward.LinearMap._record
    monkeypatch.setattr(forward.LinearMap, "_record", lambda self: records.append(self) or record(self))
    push = both(2 * X)
    assert seen == [("ReverseFunction", True), ("Push", True)]
    assert not records
    push(X)
    assert len(records) == 1


def test_the_map_stays_that_of_the_arguments_as_they_were():
    f, found = ONE["products"], []
    for _ in range(3):
        x = X.copy()
        _, push = pb.linearize(f, x)
        x[:] = 7.0
        found.append([*push([(X,), (2 * X,), (3 * X,)]), push(X)])
    assert same_bits(found[0], found[1])
    assert same_bits(found[0], found[2])


def test_nans_have_the_bits_that_they_have_alone(monkeypatch):
    strange = np.array([0x7FF8000000000123, 0xFFF8000000000456], np.uint64).view(float)
    first, second = np.resize(strange, 9), np.resize(strange[::-1], 9)
    x = np.linspace(1, 2, 9)
    _, pull = pb.vjp(lambda x: (x * 2.0, x * 3.0), x)
    cts = [(first, second), (second, first), (x, first)]
    pull([(x, x)] * 3)
    seen = used(monkeypatch)
    rows = pull(cts)
    assert seen.count(("ReverseFunction", False)) == 1
    with pb.using(staging="off"):
        assert same_bits(rows, [pull(ct) for ct in cts])


def test_where_the_first_sweep_leaves_a_nan_out_the_derivative_is_recorded():
    def f(x):
        return np.where(x > 0.25, np.log(x) * x, 0.0)

    for x in (np.abs(X), np.abs(X), np.array([0.0, 0.3, 0.0, 1.0]), np.abs(X)):
        with np.errstate(all="ignore"):
            _, push = pb.linearize(f, x)
            ts = [(X,), (X + 1,), (X * 2,)]
            found = push(ts)
            with pb.using(staging="off"):
                assert same_bits(found, [push(*t) for t in ts])


def test_directions_with_absent_parts_and_integers():
    def f(x, n, p):
        return {"a": np.sin(x) * n * p["w"], "b": p["w"] @ x, "n": n + 1}

    p = {"w": X[::-1].copy(), "k": 3}
    for _ in range(3):
        _, push = pb.linearize(f, X, 2, p)
        ts = [
            (X, None, None),
            (None, None, {"w": X, "k": None}),
            (X, None, {"w": 2 * X, "k": None}),
            (None, None, None),
        ]
        found = push([*ts, ts[0]])
        with pb.using(staging="off"):
            assert same_bits(found, [push(*t) for t in [*ts, ts[0]]])
        assert all(one["n"] is None for one in found)


def test_rows_and_columns_of_jacobians():
    f = ONE["writes"]
    tall = lambda x: np.concatenate([f(x), x * x[0], np.sin(x)])  # noqa: E731
    plain = {}
    with pb.using(staging="off"):
        for mode in ("reverse", "auto"):
            plain[mode] = pb.jacobian(tall, mode=mode)(X)
    for _ in range(3):
        for mode, wanted in plain.items():
            assert same_bits(pb.jacobian(tall, mode=mode)(X), wanted)
            assert same_bits(pb.jacobian(tall, mode=mode, chunk="1 KB")(X), wanted)
    assert np.allclose(plain["auto"], pb.jacobian(tall, mode="forward")(X))


def test_many_directions_in_parts(monkeypatch):
    monkeypatch.setattr(repeated_pulls, "AT_ONCE", 4)
    f, random = ONE["products"], np.random.default_rng(0)
    y, pull = pb.vjp(f, X)
    _, push = pb.linearize(f, X)
    for n in (9, 9, 8, 1, 0):
        cts, ts = [drawn(random, y) for _ in range(n)], [(drawn(random, X),) for _ in range(n)]
        rows, columns = pull(cts), push(ts)
        with pb.using(staging="off"):
            assert same_bits(rows, [pull(ct) for ct in cts])
            assert same_bits(columns, [push(*t) for t in ts])


def test_a_list_that_is_one_tangent():
    f = lambda p: p[0] * p[1]  # noqa: E731
    _, push = pb.linearize(f, [X, X + 1])
    assert same_bits(push([X, X]), X * (X + 1) + X * X)
    assert same_bits(push([([X, X],), ([X, None],)]), [push([X, X]), push([X, None])])
    with pytest.raises(pb.StructureError, match=r"takes 1 tangents, or a list of tuples with 1 each, got a list with"):
        push([X, X, X])
    _, push = pb.linearize(lambda x: x * 2.0, X)
    with pytest.raises(pb.StructureError, match=r"got 2"):
        push([(X, X)])


def test_what_is_returned_belongs_to_the_caller():
    _, push = pb.linearize(ONE["elementwise"], X)
    for _ in range(3):
        first, second = push([(X,), (X,)])
        kept = second.copy()
        first[:] = 0.0
        assert same_bits(second, kept)
        assert first.base is None


def test_derivatives_of_many_directions():
    f = ONE["elementwise"]

    def total(x):
        _, push = pb.linearize(f, x)
        return sum(np.sum(t) for t in push([(X,), (X * 2,), (np.ones(4),)]))

    wanted = pb.grad(lambda x: np.sum(pb.jvp(f, (x,), (X * 3 + np.ones(4),))[1]))(X)
    for _ in range(3):
        assert np.allclose(pb.grad(total)(X), wanted)


def test_threads_wait_for_each_other():
    f, random = ONE["products"], np.random.default_rng(0)
    ts = [[(drawn(random, X),) for _ in range(3)] for _ in range(8)]
    for _ in range(2):
        _, push = pb.linearize(f, X)
        wanted = [push(t) for t in ts]
    with ThreadPoolExecutor(4) as pool:
        assert same_bits(list(pool.map(push, ts)), wanted)


@pytest.mark.parametrize("policy", [pb.Recompute(), pb.Binomial(2)])
def test_policies_have_the_same_bits(policy):
    f, random = ONE["a loop"], np.random.default_rng(0)
    for _ in range(3):
        ts = [(drawn(random, X),) for _ in range(3)]
        wanted = pb.linearize(f, X)[1](ts)
        with pb.using(policy=policy):
            assert same_bits(pb.linearize(f, X)[1](ts), wanted)
