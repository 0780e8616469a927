"""``grad`` of a staged function itself, which needs no trace around: value, gradient and errors are those of the
function."""

import numpy as np
import pytest

import pullback as pb
from pullback.testing.comparing.bits import same_bits

X, Y = np.array([0.3, -0.7, 1.1, 0.2]), np.array([1.3, 0.7, -0.1, 0.9])


pytestmark = pytest.mark.usefixtures("nothing_is_known")


def require_same(f, *calls, **options):
    """Value and gradient of ``f`` are the same staged and as it is, and so are the types of its errors."""
    staged = pb.staged(f)
    for args in calls * 3:
        found = []
        for one in (f, staged):
            copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
            try:
                found.append((pb.grad(one, **options)(*copies), pb.value_and_grad(one, **options)(*copies)))
            except Exception as error:  # noqa: BLE001 - the same kind has to come
                found.append((type(error), str(error).partition(" (at")[0]))
        assert same_bits(found[1], found[0]) if not isinstance(found[0][0], type) else found[1] == found[0]
    return staged


def test_values_and_gradients():
    f = require_same(lambda x: np.sum(np.sin(x) * x), (X,), (Y,), (X.astype(np.float32),), (X.reshape(2, 2),))
    assert len(pb.explain_stage(f).stages) == 3
    require_same(lambda x: x * x + 2.0 * x, (3.0,), (np.float64(2.0),), (np.float32(2.0),), (-1.0,))


def test_several_arguments():
    def f(x, y, n, c):
        return np.sum(np.sin(x) * y * c) * n + np.sum(x)

    calls = (X, Y, 2, X * 3), (Y, X, 3, Y), (X, 2.0, 1.5, X)
    require_same(f, *calls)
    require_same(f, *calls, argnums=(0, 1))
    require_same(f, *calls, argnums=(1, 0))
    require_same(f, *calls, argnums=2)
    require_same(f, *calls, argnums=-1)
    require_same(f, *calls, argnames=("y", "c"))


def test_an_argument_that_is_not_used():
    require_same(lambda x, y: np.sum(x * x), (X, Y), (X, 2.0), argnums=(0, 1))
    require_same(lambda x: 2.0, (X,))


def test_outputs_of_other_kinds():
    require_same(lambda x: x * 2.0, (X,))
    require_same(lambda x: (np.sum(x), x), (X,))
    require_same(lambda x: None, (X,))
    require_same(lambda x: np.sum(x).astype(np.float32), (X,))
    require_same(lambda x: np.sum(x, keepdims=True)[0], (X,))
    require_same(lambda x: np.sum(x * x), (X.astype(np.float32),))
    require_same(lambda x: np.sum(np.real(x * x)), (X + 1j * Y,))
    require_same(lambda x: x, (2.0,), (X,))


def test_other_operations_in_a_later_call():
    def f(x, k):
        y = np.sin(x) * x if k % 2 else np.cos(x)
        if k == 4:
            y[0] = 2.0
        if k == 5:
            x[1] = y[0]
        if k == 6:
            y = pb.fori_loop(0, 3, lambda _, u: u * x, y)
        if k >= 7:
            y = pb.checkpoint(lambda u: np.sin(u) * u, None if k == 7 else pb.Binomial(2))(y) * x
        return np.sum(y * x)

    require_same(f, *((X, k) for k in range(9)), (X, 0), (Y, 1), (Y, 6), (Y, 7), (X, 8))


def test_masks():
    require_same(
        lambda x: np.sum(np.where(x > 0, np.sqrt(np.abs(x)) * x, 0.0)), (X,), (np.array([0.0, 1.0, -2.0, 3.0]),)
    )


def test_errors_of_the_function():
    def f(x, k):
        y = np.sin(x)
        if k:
            raise KeyError("no")
        return np.sum(y) + np.ones(3) @ y[:3]

    require_same(f, (X, 0), (X, 0), (X, 1), (X, 0), (X[:2], 0))


def test_an_argument_that_is_changed_meanwhile():
    held = X.copy()
    changes = [0.0]

    @pb.staged
    def f(x):
        y = np.sin(x) * x
        held[0] += changes[0]
        return np.sum(y * x)

    for _ in range(3):
        pb.grad(f)(held)
    changes[0] = 1.0
    with pytest.raises(pb.ConstantChangedError):
        pb.grad(f)(held)


def test_a_policy_and_other_options_take_the_ordinary_way():
    def f(x):
        return np.sum(np.sin(x) * x)

    require_same(f, (X,), (Y,), policy=pb.Recompute(2))
    require_same(f, (X,), (Y,), conj=True)
    require_same(lambda x: (np.sum(x * x), x), (X,), has_aux=True)
    require_same(lambda x: np.sum(x * x), (X + 1j * Y,), holomorphic=True)
    require_same(f, (np.arange(4),), (3,), allow_int=True)
    require_same(f, ([1.0, 2.0],), ({"x": 1.0},))


def test_the_gradient_is_the_callers():
    f = pb.staged(lambda x: np.sum(x * Y) + np.sum(x))
    found = [pb.grad(f)(X * k) for k in range(6)]
    for g in found[:-1]:
        g[:] = 7.0
    assert same_bits(found[-1], Y + 1.0)
    assert same_bits(pb.grad(f)(X), Y + 1.0)


@pytest.mark.parametrize("change", ["M[0, 0] = s", "M[1] = s * s", "M.T[2] = s"])
def test_views_are_derived_again_where_they_are_used(change):
    """What is not followed, here marked steps, leaves a stale view as it is: the order of records tells the bits."""
    text = f"""
def f(x):
    v, M, s = np.sin(x[5:10]), x[15:40].reshape(5, 5) * 0.5 + 0.2, x[0]
    u = M[:, 3]
    u += 0.1
    for _ in pb.steps(2):
        M = M.T
        s = s + u @ M @ v
        {change}
    return s + np.sum(M)
"""
    names = {"np": np, "pb": pb}
    exec(text, names)  # noqa: S102 - written above
    x = np.random.default_rng(379).standard_normal(40) * 0.6
    with pb.using(staging="off"):
        wanted = pb.grad(names["f"])(x)
    staged = pb.grad(pb.staged(names["f"]))
    assert all(staged(x).tobytes() == wanted.tobytes() for _ in range(3))


def test_a_view_that_is_returned_is_derived_again_where_it_is_used():
    def written(M, s):
        u = M[:, 3]
        M[0] *= s
        return u, M

    def loss(f, x):
        M, s, u = x[:25].reshape(5, 5) * 0.5 + 0.2, x[25], 0.0
        for _ in range(3):
            u, M = f(M, s)
            M = np.sin(M @ M.T) + M * u
        return np.sum(u * np.cos(x[20:25])) + np.sum(M**2)

    x = np.random.default_rng(1).standard_normal(26) * 0.6
    wanted = pb.value_and_grad(lambda x: loss(written, x))(x)
    staged = pb.staged(written)
    for _ in range(4):
        value, gradient = pb.value_and_grad(lambda x: loss(staged, x))(x)
        assert value == wanted[0]
        assert same_bits(gradient, wanted[1])


def test_a_known_function_may_come_to_marked_steps():
    def by(marked):
        def f(x):
            for _ in pb.steps(2) if marked[0] else range(2):
                x = x * x + 0.5
            return np.sum(x)

        return f

    marked, x = [False], np.linspace(0.1, 0.9, 5)
    f = pb.grad(pb.staged(by(marked)))
    found = [f(x) for _ in range(4)]
    marked[0] = True
    found += [f(x) for _ in range(4)]
    with pb.using(staging="off"):
        wanted = pb.grad(by([False]))(x)
    assert all(g.tobytes() == wanted.tobytes() for g in found)
