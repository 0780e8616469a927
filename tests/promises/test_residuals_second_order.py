"""Primitives of a user's with residuals, in drawn steps: products with the Hessian have the same bits under every
policy, also where one runs a step that no trace inside records, and are right."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb

X = np.array([0.31, 0.83, -0.52, 0.17])
POLICIES = (pb.Binomial(1), pb.Binomial(2), pb.Recompute(), pb.Periodic(2))


@pb.primitive(residuals=("inverse",))
def ratio(a, b):
    inverse = 1.0 / b
    return a * inverse, {"inverse": inverse}


@ratio.vjp("a")
def _(ct, inverse):
    return ct * inverse


@ratio.vjp("b")
def _(ct, inverse, out):
    return -ct * inverse * out


class Factor:
    """What solves a diagonal system."""

    def __init__(self, a):
        self.root = np.sqrt(a)

    def solve(self, b):
        return b / self.root / self.root


@pb.primitive(residuals=("factor",), opaque={"factor": lambda factor: factor.root.nbytes})
def solved(a, b):
    factor = Factor(a)
    return factor.solve(b), {"factor": factor}


@solved.vjp("a", "b")
def _(ct, factor, out):
    w = factor.solve(ct)
    return -w * out, w


@pb.primitive(residuals=("size",), outputs=("unit", "log"))
def parts(x):
    size = np.sqrt(1.0 + np.sum(x * x))
    return (x / size, np.log(size)), {"size": size}


@parts.vjp("x")
def _(ct, x, size):
    unit, log = ct
    found = 0.0 * x
    if unit is not None:
        found = found + unit / size - x * (np.sum(unit * x) / size**3)
    return found if log is None else found + log * x / size**2


OPERATIONS = (
    lambda k, u: 0.9 * u + 0.1 * ratio(u, 2.0 + u[::-1] ** 2),
    lambda k, u: 0.5 * u + ratio(0.1, 1.0 + u[k % 4] ** 2),
    lambda k, u: ratio(np.sin(u), np.float64(1.5)) + 0.1,
    lambda k, u: 0.8 * u + 0.2 * solved(1.5 + u * u, np.cos(u)),
    lambda k, u: 0.7 * parts(u).unit + 0.1 * parts(u[::-1]).log,
    lambda k, u: np.sort(u) * 0.9 + 0.1 * np.cos(u),
    lambda k, u: u * np.cos(0.3 * u),
)


def marked(body, x):
    for k in pb.steps(6):
        x = body(k, x)
    return x


def checkpointed(body, x):
    for k in range(6):
        x = pb.checkpoint(body)(k, x)
    return x


FORMS = (
    lambda body, x: pb.fori_loop(0, 6, body, x),
    lambda body, x: pb.scan(lambda u, k: (body(k, u), None), x, np.arange(6))[0],
    lambda body, x: pb.while_loop(lambda s: s[0] < 6, lambda s: (s[0] + 1, body(*s)), (0, x))[1],
    lambda body, x: pb.fori_loop(0, 2, lambda j, u: pb.fori_loop(3 * j, 3 * j + 3, body, u), x),
    marked,
    checkpointed,
)


@settings(max_examples=12, derandomize=True, deadline=None)
@given(
    st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=4),
    st.sampled_from(FORMS),
    st.sampled_from(("off", "auto", "numpy")),
    st.integers(0, 2**32),
)
def test_products_with_the_hessian_have_the_same_bits(operations, form, staging, seed):
    t = np.random.default_rng(seed).normal(size=4)

    def body(k, u):
        for operation in operations:
            u = operation(k, u)
        return u

    def loss(x):
        return np.sum(form(body, x) * np.arange(1.0, 5.0))

    with pb.using(staging=staging):
        expected = pb.hvp(loss, (X,), (t,))
        slope = pb.grad(loss)
        for policy in POLICIES:
            again = pb.hvp(loss, (X,), (t,), policy=policy)
            assert again.tobytes() == expected.tobytes(), f"{policy}: {again - expected}"
        np.testing.assert_allclose(pb.grad(lambda x: slope(x) @ t)(X), expected, rtol=1e-10, atol=1e-12)
    step = 1e-6 * t
    np.testing.assert_allclose((slope(X + step) - slope(X - step)) / 2e-6, expected, rtol=1e-5, atol=1e-7)
