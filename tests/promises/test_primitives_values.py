"""What a traced call gives is NumPy's to the bit: its type and dtype, where its elements lie in memory, whether it
can be written to."""

import operator

import numpy as np
import pytest

import pullback as pb
from pullback.testing.comparing.bits import same_bits

RNG = np.random.default_rng(4)
LINE = np.array([0.3, 0.7, 1.1], np.float32)
GRID = np.asfortranarray(RNG.uniform(0.5, 1.5, (2, 3)))
CUBE = np.asfortranarray(RNG.uniform(0.5, 1.5, (2, 3, 2)))
PAIRS = RNG.uniform(0.5, 1.5, 40) + 1j * RNG.uniform(0.5, 1.5, 40)
NOTHING = np.zeros((0, 3))
MASK = np.array([True, False, True])
NUMBERS = (
    0.7,
    0.3 + 0.4j,
    np.float64(0.7),
    np.float32(0.7),
    np.array(0.7),
    np.array(0.7, np.float32),
    np.complex64(0.7j),
)

OF_A_NUMBER = {
    "squeeze": np.squeeze,
    "transpose": np.transpose,
    "reshape": lambda x: np.reshape(x, ()),
    "real_if_close": np.real_if_close,
    "real": np.real,
    "trim_zeros": np.trim_zeros,
    "where": lambda x: np.where(True, x, LINE),
    "select": lambda x: np.select([MASK, x.real < 1], [LINE, x], True),
    "select of numbers": lambda x: np.select([True], [x], 2),
    "choose": lambda x: np.choose(1, [x, x]),
    "choose with an array": lambda x: np.choose([0, 1, 1], [x, LINE]),
    "outer": lambda x: np.multiply.outer(LINE, x),
    "product": lambda x: x * LINE,
    "maximum": lambda x: np.maximum(x, LINE),
    "power": lambda x: LINE**x,
    "power of itself": lambda x: x**x,
    "reflected": lambda x: 2 - x / 3,
}
OF_A_SCALAR = {
    "copy": lambda x: x.copy(),
    "astype": lambda x: x.astype(complex),
    "astype int": lambda x: x.real.astype(int),
    "reshape": lambda x: x.reshape(()),
    "T": lambda x: x.T,
    "np.astype": lambda x: np.astype(x, np.complex128),
}
LAID_OUT = {
    "choose": lambda a, c: np.choose((a > 1) * 1, [a, 2 * a]),
    "reduceat": lambda a, c: np.multiply.reduceat(c, [1, 0], axis=1),
    "cumulative_sum": lambda a, c: np.cumulative_sum(c, axis=1, include_initial=True),
    "interp of one knot": lambda a, c: np.interp(a, [1.0], c[0, 0, :1]),
}


def require_same(call, *xs):
    """The value of ``call`` on tracers of ``xs`` is in all that can be seen what it is without."""
    expected, seen = call(*xs), []
    pb.vjp(lambda *xs: seen.append(pb.value(call(*xs))) or 0.0, *xs)
    (found,) = seen
    assert type(found) is type(expected)
    assert same_bits(found, expected)
    if isinstance(expected, np.ndarray):
        assert found.strides == expected.strides


@pytest.mark.parametrize("number", NUMBERS, ids=lambda x: type(x).__name__ + str(np.asarray(x).dtype))
@pytest.mark.parametrize("call", OF_A_NUMBER.values(), ids=OF_A_NUMBER)
def test_a_number_given_to_a_function(call, number):
    require_same(call, number)


@pytest.mark.parametrize("call", OF_A_SCALAR.values(), ids=OF_A_SCALAR)
def test_the_methods_of_a_scalar_give_scalars(call):
    require_same(call, np.float64(0.7))
    require_same(call, np.float32(0.7))


@pytest.mark.parametrize("call", [np.squeeze, np.transpose, np.copy, np.real_if_close])
def test_an_array_made_of_a_number_can_be_written_to(call):
    def doubled(x):
        y = call(x)
        y[...] = x * 2
        return y * 3

    assert pb.value_and_grad(doubled)(0.5) == (3.0, 6.0)


def test_a_whole_quotient_of_numbers_is_a_number():
    require_same(lambda x: x // 0.25, 0.7)
    require_same(lambda x: 2 // x, 0.7)


def test_a_complex_number_stays_weak():
    single = LINE.astype(np.complex64)
    value, gradient = pb.value_and_grad(lambda z: np.sum((z * z * single).real))(0.3 + 0.4j)
    assert value.dtype == np.float32
    assert gradient == pytest.approx(2 * (0.3 + 0.4j) * float(LINE.sum()), rel=1e-6)


@pytest.mark.parametrize(
    "call", [np.maximum, np.minimum, np.fmax, np.fmin, lambda z, y: np.clip(y, z, z + 1), lambda z, y: np.clip(z, y, 2)]
)
def test_complex_numbers_are_ordered_by_numpy(call):
    above, below = 0.5 + 0.2j, 0.5 + 0.1j
    assert sum(pb.grad(lambda *xs: call(*xs).real, (0, 1))(above, below)) == 1.0
    assert sum(pb.grad(lambda *xs: call(*xs).real, (0, 1))(below, above)) == 1.0


@pytest.mark.parametrize("call", LAID_OUT.values(), ids=LAID_OUT)
def test_elements_lie_where_numpy_puts_them(call):
    require_same(call, GRID, CUBE)


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(), pb.Binomial(1)])
@pytest.mark.parametrize(
    "layout", [slice(None, None, -1), slice(None, None, 3), slice(1), ()], ids=["reversed", "gaps", "one", "all"]
)
@pytest.mark.parametrize("function", [operator.imul, operator.ipow])
@pytest.mark.parametrize("factor", [2, 1.3, 0.7 + 0.2j, None], ids=str)
def test_in_place_the_last_bits_are_those_of_numpys_loop_in_place(function, factor, layout, policy):
    seen = []

    def total(z):
        loss = 0.0
        for _ in pb.steps(2):
            view = z[layout]
            view = function(view, view if factor is None else factor)
            loss = loss + np.sum((view * view).real)
        seen.append(pb.value(z))
        return loss

    slope = pb.grad(total, policy=policy)(PAIRS.copy())
    found, *_ = seen
    z = PAIRS.copy()
    total(z)
    assert same_bits(found, z)
    assert same_bits(slope, pb.grad(total)(PAIRS.copy()))


def test_a_product_in_place_keeps_the_dtype_of_the_array_and_of_its_gradient():
    def total(x):
        x = x[::2] * 1
        x[::-1] *= np.float64(0.3)
        return np.sum(x * x)

    assert pb.grad(total)(LINE).dtype == np.float32


def test_add_at_takes_a_number_for_a_float64():
    def added(x):
        x = x.copy()
        np.add.at(x, slice(1, None), 0.9179862439359936)
        return x

    require_same(added, LINE / np.float32(3))


def test_what_is_made_of_nothing_can_be_written_to():
    def total(x):
        made = (
            np.quantile(x, 0.4, axis=-1),
            np.median(x, axis=0, keepdims=True),
            np.cov(x),
            np.take(x[:, :0], [[5]], axis=1),
        )
        assert all(np.array_equal(pb.value(a), b, equal_nan=True) for a, b in zip(made, expected, strict=True))
        made[1][...] = x.sum() + 2.0
        made[2][...] *= x.sum()
        return np.sum(made[1])

    expected = (np.zeros(0), np.full((1, 3), np.nan), np.zeros((0, 0)), np.zeros((0, 1, 1)))
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        value, gradient = pb.value_and_grad(total)(NOTHING)
    assert (value, gradient.shape) == (6.0, (0, 3))


def test_parts_of_a_buffer_can_be_written_to():
    def total(x):
        fraction, whole = np.modf(np.zeros_like(x))
        fraction[1:] = x[1:]
        whole[...] = x * x
        return np.sum(fraction + whole)

    assert pb.grad(total)(np.array([1.0, 2.0])).tolist() == [2.0, 5.0]


def test_the_real_part_of_a_real_array_is_the_array():
    def turned(x):
        same, also = x.real, np.real(x)
        x.shape = (1, 3)
        return same * also

    out, pull = pb.vjp(turned, np.array([1.0, 2.0, 3.0]))
    assert (out.shape, pull(np.ones((1, 3)))[0].tolist()) == ((1, 3), [2.0, 4.0, 6.0])


SUMS = "sum prod cumsum cumprod mean nansum nanprod nancumsum nanmean trace add.reduce multiply.accumulate".split()


@pytest.mark.parametrize("name", SUMS)
def test_sums_into_an_array_of_another_dtype_are_computed_in_it(name):
    function = np
    for part in name.split("."):
        function = getattr(function, part)
    x = np.random.default_rng(0).uniform(0.9, 1.1, size=(50, 40)).astype(np.float32)
    options = {} if name == "trace" else {"axis": 0}
    expected = np.zeros(np.shape(function(x, **options)))
    function(x, out=expected, **options)

    def f(x):
        out = np.zeros_like(x, shape=expected.shape, dtype=np.float64)
        function(x, out=out, **options)
        return out

    value, pull = pb.vjp(f, x)
    np.testing.assert_array_equal(value, expected)
    assert pull(np.ones(expected.shape)[()])[0].dtype == np.float32


@pytest.mark.parametrize("function", [np.atleast_1d, np.atleast_2d, np.atleast_3d])
def test_an_array_with_enough_axes_is_handed_on_itself(function):
    def f(x):
        y = x * 1.0
        assert function(y) is y
        function(y).shape = (-1, 1, 1)
        return y

    assert pb.vjp(f, np.ones((2, 3, 2)))[0].shape == (12, 1, 1)
    for shape in ((), (3,), (3, 2)):
        assert np.shape(pb.vjp(function, np.ones(shape))[0]) == function(np.ones(shape)).shape
