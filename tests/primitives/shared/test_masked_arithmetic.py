"""What is masked has the gradient 0, whatever infinite or undefined slope lies behind the mask; nothing else
changes, and nothing warns."""

import numpy as np
import pytest

import pullback as pb
from pullback.primitives.shared import masked_arithmetic
from pullback.words.digests import same_bits

X = np.array([-1.0, 0.0, 0.5, 2.0])
OK = X > 0
ENTROPY = np.where(OK, np.log(np.where(OK, X, 1)) + 1, 0)
POLICIES = (None, pb.Recompute(), pb.Binomial(2))


def quiet():
    """The forward's own warnings are the user's."""
    return np.errstate(all="ignore")


@quiet()
def entropy(x):
    return x * np.log(x)


def assigned(x):
    y = entropy(x)
    y[x <= 0] = 0
    return y


def by_where_keyword(x):
    y = np.zeros_like(x)
    np.multiply(x, quiet()(np.log)(x), out=y, where=x > 0)
    return y


MASKED = {
    "where": lambda x: np.where(x > 0, entropy(x), 0.0),
    "select": lambda x: np.select([x > 0], [entropy(x)], 0.0),
    "a mask as key": lambda x: entropy(x)[x > 0],
    "an assignment by mask": assigned,
    "fmax": lambda x: np.fmax(entropy(x), -1.0),
    "nan_to_num": lambda x: np.nan_to_num(entropy(x)),
    "sum where": lambda x: np.sum(entropy(x), where=x > 0),
    "where= and out=": by_where_keyword,
    "nansum": lambda x: np.nansum(entropy(x)),
    "compress": lambda x: np.compress(x > 0, entropy(x)),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", MASKED)
def test_masked_elements_have_no_gradient(name, policy):
    out, pull = pb.vjp(MASKED[name], X, policy=policy)
    (gradient,) = pull(np.ones_like(out))
    np.testing.assert_allclose(gradient, ENTROPY, rtol=1e-15)


def test_the_second_derivative_too():
    @quiet()
    def gradient(x):
        return pb.grad(lambda x: np.where(x > 0, entropy(x), 0.0).sum())(x)

    np.testing.assert_allclose(pb.grad(lambda x: gradient(x).sum())(X), np.where(OK, 1 / np.where(OK, X, 1), 0))


def test_float32_stays_float32():
    gradient = pb.grad(lambda x: np.where(x > 0, entropy(x), 0.0).sum())(X.astype("f4"))
    assert gradient.dtype == np.float32
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_mask_in_a_loop_reaches_what_came_before_the_loop(policy):
    def program(x):
        return pb.fori_loop(0, 5, lambda _, u: np.where(u > 0, u * u, 0.0), entropy(x) ** 2).sum()

    gradient = pb.grad(program, policy=policy)(X)
    assert np.array_equal(gradient, pb.grad(program)(X))
    assert np.array_equal(gradient[:2], [0, 0])
    assert gradient[3]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_mask_after_a_loop_reaches_its_steps(policy):
    def program(x):
        with quiet():
            y = pb.fori_loop(0, 5, lambda _, u: 0.5 * u * np.log(u), x)
        return np.where(x > 0.9, y, 0.0).sum()

    with quiet():
        gradient = pb.grad(program, policy=policy)(np.array([0.0, 0.5, 6.0, 7.0]))
    assert np.array_equal(gradient[:2], [0, 0])


def test_a_nan_that_is_asked_for_stays():
    with quiet():
        assert np.isnan(pb.grad(lambda x: np.where(X > -2, x * np.log(x), 0.0).sum())(X)[0])


def test_without_a_mask_nothing_is_looked_at(monkeypatch):
    monkeypatch.setattr("pullback.rules.nan_masking.make_pull", None)
    assert pb.grad(lambda x: (x * x).sum())(X).shape == X.shape


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "divides",
    [
        *[(True, False), (False, True, False), (True, True), (False, False)],
        *[(None, True, None), (None, True, False, None), (True, None, False), (None, None, False)],
    ],
)
def test_a_chain_gives_the_bits_of_one_after_the_other(dtype, divides):
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 2.0, -3.0, 1e30]
    drawn = np.random.default_rng(len(divides))
    chain, into = masked_arithmetic.chained(divides)
    for values in ([1.5, -2.0, 0.0], special):
        ct, *slopes = drawn.choice(values, (1 + len(divides) - divides.count(None), 6, 40)).astype(dtype)
        wanted, left = ct, iter(slopes)
        for divided in divides:  # None is a change of sign
            prim = masked_arithmetic.masked_divide if divided else masked_arithmetic.masked_multiply
            wanted = -wanted if divided is None else prim.forward(wanted, next(left))
        kept = ct.tobytes()
        assert chain(ct, *slopes).tobytes() == wanted.tobytes()
        assert into(ct, *slopes, np.empty_like(ct)).tobytes() == wanted.tobytes()
        assert ct.tobytes() == kept


SPECIAL = [0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 5e-324, 1e308, 1e-200, 3.0]


@pytest.mark.parametrize("f", [masked_arithmetic.times, masked_arithmetic.over], ids=["times", "over"])
def test_numbers_have_the_bits_of_arrays(f):
    """Numbers go another way, which warns of nothing either."""
    with np.errstate(all="raise"):
        for a in map(np.float64, SPECIAL):
            for b in map(np.float64, SPECIAL):
                found, wanted = f(a, b), f(np.array([a]), np.array([b]))
                assert type(found) is np.float64 or np.isnan(wanted[0]) or found == 0
                assert found.tobytes() == wanted.tobytes(), (a, b)


@pytest.mark.parametrize("char", "efdgFD")
@pytest.mark.parametrize("special", [False, True])
def test_a_condition_counts_as_a_product_with_it_does(char, special):
    """With its bits and strides, whatever lies how; a NaN that it would make is none."""
    drawn = np.random.default_rng(0)
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, 3.0] if special else [0.0, -0.0, 1.5, -2.5]
    ct = drawn.choice(values, (6, 8)).astype(char)
    condition = drawn.random((6, 8)) < 0.5
    for one, other in (
        (ct, condition),
        (ct.T, condition.T),
        (ct.T, condition.reshape(8, 6)),
        (ct[::2], condition[1::2]),
    ):
        for mask in (other, other[:1], other[:, :1], other[0]):
            with quiet():
                product = one * mask
                found = masked_arithmetic.where_true(one, mask)
            wanted = np.where(np.isnan(product), np.where(mask, one, 0), product)
            assert found.dtype == wanted.dtype and np.array_equal(found, wanted, equal_nan=True)
            if not np.isnan(product).any():
                assert same_bits(found, product) and found.strides == product.strides


@pytest.mark.parametrize("divides", [True, False])
def test_what_was_sent_at_numbers(divides):
    for cotangent in map(np.float64, SPECIAL):
        for slope in map(np.float64, SPECIAL):
            sent = np.float64(2.0)
            found = masked_arithmetic._where_sent(sent, cotangent, slope, divides=divides)
            one = masked_arithmetic._where_sent(*(np.array([x]) for x in (sent, cotangent, slope)), divides=divides)
            assert np.asarray(found).tobytes() == one.tobytes(), (cotangent, slope)
