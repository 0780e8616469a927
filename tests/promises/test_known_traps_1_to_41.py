"""One test for each trap that other systems fall into, by its number, part 1: shapes, dtypes, kinks, reductions,
indexing (1 to 41).

The rows of linear algebra and Fourier transforms are in ``test_known_traps_linalg.py``, the others from 42 on in
``test_known_traps_42_to_68.py``.
"""

import numpy as np
import pytest

import pullback as pb
from pullback.testing import check_grads
from pullback.words.errors import UnknownFunctionError

X = np.array([0.3, -0.7, 1.1])
INF, NAN = np.inf, np.nan


def slope(f, *xs):
    """The gradient of the sum of ``f``: an array, or a tuple of them where there are several arguments."""
    xs = tuple(np.asarray(x, float) if not hasattr(x, "dtype") else x for x in xs)
    found = pb.grad(lambda *a: np.sum(f(*a)), tuple(range(len(xs))))(*xs)
    return found[0] if len(xs) == 1 else found


def same(found, right, rtol=1e-14):
    np.testing.assert_allclose(found, right, rtol=rtol, atol=0)
    assert np.shape(found) == np.shape(right)


def test_row_1_a_cotangent_has_the_shape_of_its_argument():
    for shapes in [((3, 1), (4,)), ((), (4,)), ((1,), (3,))]:
        x, y = (np.full(shape, 2.0) for shape in shapes)
        gx, gy = slope(np.multiply, x, y)
        size = np.broadcast(x, y).size
        same(gx, np.full(x.shape, 2.0 * size / x.size))
        same(gy, np.full(y.shape, 2.0 * size / y.size))
    same(slope(lambda x: np.where(np.array([True, True, False]), x, 0.0), np.ones(1)), [2.0])


def test_row_2_python_floats_and_scalars_mirror_the_argument():
    assert type(pb.grad(lambda x: x * x)(2.0)) in {float, np.float64}
    assert type(pb.grad(lambda x: x * x)(np.float32(2))) is np.float32
    assert np.shape(pb.grad(lambda x: x * x)(np.array(2.0))) == ()
    assert pb.grad(lambda x: x[0] * x[0])(np.full(1, 2, np.float32)).dtype == np.float32
    assert pb.vjp(lambda x: np.float32(2) * x, 1.0)[0].dtype == np.float32  # a Python float is weak, traced or not


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_row_3_a_gradient_has_the_dtype_of_its_argument(dtype):
    x = X.astype(dtype)
    for f in (
        lambda x: x * np.ones(3),
        np.mean,
        lambda x: np.concatenate((x, np.ones(2))),
        lambda x: np.mean(x, dtype=np.float64),
    ):
        assert slope(f, x).dtype == dtype
    out, pull = pb.vjp(np.sin, x)
    assert pull(np.ones(3, out.dtype))[0].dtype == dtype


def test_row_4_whole_numbers_and_booleans_are_refused_by_name():
    for x in (np.arange(3), 2, np.array([True, False])):
        with pytest.raises(TypeError, match=r"argument 0.*(int64|bool|int)"):
            pb.grad(lambda x: np.sum(x * 1.5))(x)
    gradient = pb.grad(lambda x: np.sum(x * 1.5), allow_int=True)(np.arange(3))
    assert gradient is None or not np.any(gradient)


def test_row_5_other_leaves_of_a_structure_pass_through():
    tree = {"a": X, "n": 3, "none": None, "text": "no", "empty": (), "flag": True}
    gradient = pb.grad(lambda t: np.sum(t["a"]) * t["n"])(tree)
    same(gradient["a"], np.full(3, 3.0))
    assert {k: v for k, v in gradient.items() if k != "a"} == {
        "n": None,
        "none": None,
        "text": None,
        "empty": (),
        "flag": None,
    }


def test_row_6_the_complex_convention():
    assert pb.grad(lambda z: np.abs(z) ** 2)(1 + 2j) == pytest.approx(2 - 4j)  # df/dx - i df/dy
    assert np.conj(pb.grad(lambda z: np.abs(z) ** 2)(1 + 2j)) == pytest.approx(2 + 4j)  # torch's


def test_row_7_a_real_argument_has_a_real_gradient():
    for f in (
        lambda x: np.real(np.exp(1j * x)),
        lambda x: np.abs(x * (1 + 2j)) ** 2,
        lambda x: np.real((x + 1j * X) ** 2),
        lambda x: np.real(x.astype(complex) ** 2),
    ):
        gradient = slope(f, X)
        assert gradient.dtype == np.float64
        step = 1e-6
        same(gradient, (f(X + step) - f(X - step)) / (2 * step), rtol=1e-8)


def test_row_8_parts_of_complex_numbers():
    z = np.array([0j, 3 - 4j])
    same(slope(np.abs, z), [0, 0.6 + 0.8j])
    same(slope(np.angle, z), [0, np.conj(1j * (3 - 4j)) / 25])
    same(slope(np.imag, z), [-1j, -1j])
    same(pb.vjp(np.conj, z)[1](np.array([1 + 2j, 3j]))[0], [1 - 2j, -3j])


def test_row_9_layouts_give_the_same_numbers():
    dense = np.linspace(0.1, 1.2, 12).reshape(3, 4)
    right, ct = slope(lambda x: np.cumsum(np.sin(x), 0), dense), np.linspace(-1, 1, 12).reshape(3, 4)
    for x in (
        np.asfortranarray(dense),
        dense[::-1].copy()[::-1],
        np.repeat(dense, 2, 1)[:, ::2],
        np.broadcast_to(dense, (3, 4)),
    ):
        same(slope(lambda x: np.cumsum(np.sin(x), 0), x), right)
        for seed in (np.asfortranarray(ct), np.repeat(ct, 2, 0)[::2]):
            same(pb.vjp(np.sin, x)[1](seed)[0], ct * np.cos(dense))
    frozen = np.broadcast_to(1.0, (3, 4))
    same(pb.vjp(np.sin, dense)[1](frozen)[0], np.cos(dense))
    same(slope(np.sin, np.broadcast_to(0.5, (3, 4))), np.full((3, 4), np.cos(0.5)))


def test_row_10_empty_arrays():
    nothing = np.zeros(0)
    for f in (np.sum, np.prod, np.cumsum, lambda x: np.concatenate((x, x)), np.diff):
        assert slope(f, nothing).shape == (0,)
    with pytest.warns(RuntimeWarning, match="empty slice|invalid value"):
        assert slope(np.mean, nothing).shape == (0,)
    with pytest.raises(ValueError, match="zero-size array"):
        slope(np.max, nothing)
    assert pb.vjp(lambda x: np.diff(x, 5), X)[1](nothing)[0].tolist() == [0, 0, 0]


def test_row_11_infinite_slopes_at_0():
    with np.errstate(all="ignore"):
        for f, right in [(np.sqrt, INF), (lambda x: x**0.5, INF), (np.log, INF), (np.reciprocal, -INF)]:
            assert slope(f, 0.0) == right


def test_row_13_the_power_0():
    for f in (lambda x: x**0, lambda x: x**0.0, lambda x: np.power(x, 0.0)):
        assert slope(f, 0.0) == 0


def test_row_14_x_to_the_x_at_0():
    base, exponent = slope(np.power, 0.0, 0.0)
    assert (base, exponent) == (0, 0)
    assert slope(lambda x: x**x, 0.0) == 0


def test_row_15_the_exponent_of_0_and_of_a_negative_base():
    assert slope(lambda y: np.power(0.0, y), 0.0) == 0
    assert slope(lambda y: np.power(0.0, y), 2.0) == 0
    assert np.isnan(slope(lambda y: np.power(-2.0, y), 2.0))  # no function of a real exponent


def test_row_16_mixed_exponents_at_0():
    with np.errstate(all="ignore"):
        same(slope(lambda x: np.power(x, np.array([0.0, 2.0, -1.0])), np.zeros(3)), [0, 0, -INF])
        same(slope(lambda x: np.power(x, np.array([0, 2, 3])), np.zeros(3)), [0, 0, 0])


def test_row_17_absolute_values_and_signs_at_0():
    for f in (np.abs, np.fabs, np.sign, abs):
        same(slope(f, np.array([0.0, -0.0])), [0, 0])


@pytest.mark.parametrize("f", [np.maximum, np.minimum, np.fmax, np.fmin])
def test_row_18_ties_of_two(f):
    gx, gy = slope(f, np.ones(2), np.ones(2))
    same(gx, [0.5, 0.5])
    same(gy, [0.5, 0.5])
    same(slope(lambda x: f(x, x), X), np.ones(3))


def test_row_19_ties_of_many_and_initial():
    ties = np.array([[1.0, 3.0, 3.0], [3.0, 2.0, 2.0]])
    same(slope(np.max, ties), (ties == 3) / 3)
    same(slope(lambda x: np.max(x, axis=1, keepdims=True), ties), [[0, 0.5, 0.5], [1, 0, 0]])
    same(slope(lambda x: np.min(x, axis=(0, 1)), -ties), (ties == 3) / 3)
    same(slope(lambda x: np.max(x, initial=9.0), ties), np.zeros((2, 3)))
    same(slope(lambda x: np.ptp(x, axis=1), ties), [[-1, 0.5, 0.5], [1, -0.5, -0.5]])


def test_row_20_nan_gets_the_cotangent_of_a_maximum_and_none_of_fmax():
    x = np.array([1.0, NAN, 2.0])
    for f in (np.max, np.min):
        same(slope(f, x), [0, 1, 0])
    gx, gy = slope(np.maximum, np.array([NAN, 1.0]), np.array([0.0, NAN]))
    same((gx, gy), ([1, 0], [0, 1]))
    gx, gy = slope(np.fmax, np.array([NAN, 1.0]), np.array([0.0, NAN]))
    same((gx, gy), ([0, 1], [1, 0]))


def test_row_21_clip_at_its_bounds_without_one_and_by_them():
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
    same(slope(lambda x: np.clip(x, 0.0, 1.0), x), [0, 1, 1, 1, 0])  # documented: 1 in the closed interval
    same(slope(lambda x: np.clip(x, None, 1.0), x), [1, 1, 1, 1, 0])
    _, low, high = slope(np.clip, x, 0.0, 1.0)
    same((low, high), (1.0, 1.0))
    _, low, high = slope(np.clip, x, 3.0, 1.0)  # NumPy gives the upper bound
    same((low, high), (0.0, 5.0))


def test_row_22_what_is_masked_sends_no_nan():
    x = np.array([0.0, -1.0, 4.0])
    with np.errstate(all="ignore"):
        same(slope(lambda x: np.where(x > 0, np.log(x), 0.0), x), [0, 0, 0.25])
        same(slope(lambda x: np.where(x > 0, np.sqrt(x), 0.0), x), [0, 0, 0.25])
        same(slope(lambda x: np.select([x > 0], [1 / x], 0.0), x), [0, 0, -1 / 16])


def test_row_23_sort_of_ties_axes_and_nan():
    ct = np.arange(1.0, 5.0)
    same(pb.vjp(np.sort, np.array([2.0, 1.0, 2.0, 1.0]))[1](ct)[0], [3, 1, 4, 2])
    same(pb.vjp(np.sort, np.array([NAN, 1.0, 0.5, NAN]))[1](ct)[0], [3, 2, 1, 4])
    table, weights = np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    same(pb.vjp(lambda x: np.sort(x, axis=0), table)[1](weights)[0], [[3, 2], [1, 4]])
    same(pb.vjp(lambda x: np.sort(x, axis=None), table)[1](ct)[0], [[3, 2], [1, 4]])
    parted = np.partition(table.ravel(), 1)
    same(pb.vjp(lambda x: np.partition(x, 1), table.ravel())[1](parted)[0], table.ravel())
    assert isinstance(pb.vjp(np.argsort, X)[0], np.ndarray)


def test_row_24_medians_and_quantiles():
    x = np.array([4.0, 1.0, 3.0, 2.0])
    same(slope(np.median, x), [0, 0, 0.5, 0.5])
    for method, right in [
        ("linear", [0, 0, 0.5, 0.5]),
        ("lower", [0, 0, 0, 1]),
        ("higher", [0, 0, 1, 0]),
        ("midpoint", [0, 0, 0.5, 0.5]),
    ]:
        same(slope(lambda x, m=method: np.quantile(x, 0.5, method=m), x), right)
    assert slope(lambda q: np.quantile(x, q), 0.4) == pytest.approx(3.0)  # a gap of 1, three gaps from 0 to 1
    weighted = slope(lambda x: np.quantile(x, 0.5, weights=np.array([1.0, 1, 1, 5]), method="inverted_cdf"), x)
    same(weighted, [0, 0, 0, 1])


def test_row_28_products_with_zeros():
    same(slope(np.prod, [2.0, 0.0, 3.0]), [0, 6, 0])
    same(slope(np.prod, [2.0, 0.0, 0.0]), [0, 0, 0])
    box = np.array([[[2.0, 0.0], [3.0, 1.0]], [[5.0, 1.0], [1.0, 1.0]]])
    same(slope(lambda x: np.prod(x, axis=(0, 2)), box), [[[0, 10], [1, 3]], [[0, 0], [3, 3]]])
    same(slope(np.cumprod, [2.0, 0.0, 3.0, 4.0]), [1, 32, 0, 0])


def test_row_29_cumulative_sums():
    table = np.arange(6.0).reshape(2, 3)
    same(slope(np.cumsum, table), [[6, 5, 4], [3, 2, 1]])
    same(slope(lambda x: np.cumsum(x, -1), table), [[3, 2, 1], [3, 2, 1]])
    same(slope(lambda x: np.cumsum(x, 0), table), [[2, 2, 2], [1, 1, 1]])


def test_row_30_spread_of_equal_numbers_and_of_one():
    same(slope(np.std, np.full(3, 0.75)), [0, 0, 0])
    same(slope(np.std, np.ones(1)), [0])
    with pytest.warns(RuntimeWarning, match="Degrees of freedom|divide|invalid"):
        assert np.isnan(slope(lambda x: np.var(x, ddof=3), X)).all()


@pytest.mark.parametrize("f", [np.var, np.std])
def test_row_31_options_of_var_and_std(f):
    box = np.random.default_rng(0).normal(size=(2, 3, 4))
    for call in (
        lambda x: f(x, axis=(0, 2), ddof=1, keepdims=True),
        lambda x: f(x, axis=1, where=np.array([[True], [False], [True]])),
        lambda x: f(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)),
        lambda x: f(x + 1j * x[::-1] ** 2, axis=1),
    ):
        check_grads(call, (box,), order=2)
    same(slope(lambda x: np.var(x, ddof=1), X), (X - X.mean()))  # 2 (x - mean) / (n - 1)


def test_row_32_masked_elements_get_0():
    mask = np.array([True, False, True])
    same(slope(lambda x: np.sum(x, where=mask), X), [1, 0, 1])
    same(slope(lambda x: np.mean(x, where=mask), X), [0.5, 0, 0.5])
    same(slope(lambda x: np.max(x, where=mask, initial=0.0), X), [0, 0, 1])
    same(slope(lambda x: np.sum(x, where=mask, initial=5.0, keepdims=True, dtype=np.float32), X), [1, 0, 1])


def test_row_34_negative_axes():
    box, ct = np.zeros((2, 3, 4)), np.arange(24.0)
    for f in (
        lambda x: np.transpose(x, (-1, 0, 1)),
        lambda x: np.moveaxis(x, -1, 0),
        lambda x: np.rollaxis(x, -1),
        lambda x: np.roll(x, 2, axis=-1),
        lambda x: np.expand_dims(x, -2),
        lambda x: np.squeeze(x[:, :, None], axis=-2),
    ):
        places = f(np.arange(24).reshape(2, 3, 4))
        seed = ct.reshape(places.shape)
        right = np.zeros(24)
        right[places.ravel()] = seed.ravel()
        same(pb.vjp(f, box)[1](seed)[0], right.reshape(2, 3, 4))
    same(slope(lambda x: np.repeat(x, [1, 0, 2, 1], axis=-1), box), np.broadcast_to([1.0, 0, 2, 1], (2, 3, 4)))


def test_row_35_diagonals_of_oblong_matrices():
    wide = np.arange(12.0).reshape(3, 4)
    same(slope(lambda x: np.diag(x, 1), wide), np.eye(3, 4, 1))
    same(slope(lambda x: np.diag(x, -2), wide), np.eye(3, 4, -2))
    box = np.zeros((2, 3, 4))
    right = np.zeros((2, 3, 4))
    right[0, :, 1] = right[1, :, 2] = 1
    same(slope(lambda x: np.trace(x, offset=1, axis1=0, axis2=2), box), right)

    def written(x):
        y = x * 1
        y[np.arange(3), np.arange(3)] = 0.0
        return np.diagonal(y, 0) + np.diagonal(x, 0)

    same(slope(written, wide), np.eye(3, 4))


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_row_36_orders_of_what_is_not_contiguous(order):
    x = np.asfortranarray(np.arange(24.0).reshape(4, 6))[::-1, ::2]
    calls = [lambda x: np.ravel(x, order)] + ([] if order == "K" else [lambda x: np.reshape(x, (2, 6), order)])
    for f in calls:
        flat = f(x)
        same(pb.vjp(f, x)[1](flat)[0], x)


def test_row_37_indices_of_every_kind():
    same(slope(lambda x: x[[0, 0, 1]], X), [2, 1, 0])
    box = np.arange(24.0).reshape(2, 3, 4)
    keys = [
        *(([0, 1], slice(None), [1, 1]), (slice(None), [2, 0, 2]), box > 7, (0, ..., None), (..., -1), np.array(1)),
        *(np.ix_([0, 0], [1, 2], [3]), (np.array([True, False]), slice(1), [1, 2]), [1, 0, 1]),
    ]
    for key in keys:
        right = np.zeros((2, 3, 4))
        np.add.at(right, key, 1.0)
        same(slope(lambda x, key=key: x[key], box), right)

    def last_write_wins(x):
        y = x * 1
        y[[0, 0]] = x[1:]
        return y * np.array([1.0, 10, 100])

    same(slope(last_write_wins, X), [0, 10, 101])


def test_row_38_add_at_accumulates_and_fancy_increments_do_not():
    def at(x):
        y = np.zeros_like(x)
        np.add.at(y, [0, 0], x[:2])
        return y

    def fancy(x):
        y = np.zeros_like(x)
        y[[0, 0]] += x[:2]
        return y

    same(slope(at, X), [1, 1, 0])
    same(slope(fancy, X), [0, 1, 0])


MODES = [
    *("edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "mean", "median", "minimum"),
    *({"mode": "constant", "constant_values": 7.0}, {"mode": "reflect", "reflect_type": "odd"}),
]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("width", [0, (1, 2), 5])
def test_row_39_every_pad(mode, width):
    options = mode if isinstance(mode, dict) else {"mode": mode}
    check_grads(lambda x: np.pad(x, width, **options), (X,), order=2)
    assert np.array_equal(pb.vjp(lambda x: np.pad(x, width, **options), X)[0], np.pad(X, width, **options))


def test_row_39_an_empty_pad_owes_nothing():
    same(pb.vjp(lambda x: np.pad(x, 2, mode="empty")[2:-2], X)[1](X)[0], X)


def test_row_40_copies_are_summed():
    row = np.arange(3.0).reshape(1, 3)
    same(slope(lambda x: np.tile(x, 2), row), np.full((1, 3), 2.0))
    same(slope(lambda x: np.tile(x, (2, 1, 2)), row), np.full((1, 3), 4.0))
    same(slope(lambda x: np.repeat(x, [0, 2, 1]), X), [0, 2, 1])
    same(slope(lambda x: np.resize(x, (2, 4)), X), [3, 3, 2])
    same(
        slope(lambda x: np.concatenate([k * part for k, part in enumerate(np.array_split(x, [1, 1, 5]))]), X), [0, 2, 2]
    )
    same(slope(lambda x: np.block([[x[None], 2 * x[None]], [np.ones((1, 4)), 3 * x[None, :2]]]), X), [6, 6, 3])


def test_row_41_interpolation():
    knots, values = np.array([0.0, 1.0, 3.0]), np.array([1.0, 3.0, 2.0])
    points = np.array([-1.0, 0.5, 1.0, 2.0, 4.0])
    gx, gp, gf = slope(np.interp, points, knots, values)
    same(gx, [0, 2, -0.5, -0.5, 0])  # at a knot the slope to its right
    same(gf, [1.5, 2.0, 1.5])
    assert gp.shape == (3,)
    check_grads(lambda p: np.interp(points[[1, 3]], p, values), (knots,), order=2)
    same(slope(lambda x: np.interp(x, knots, values, period=4.0), np.array([4.5, -1.5])), [2, -0.5])


def test_what_cannot_be_differentiated_is_refused_and_not_zero():
    with pytest.raises(UnknownFunctionError, match="bitwise_count"):
        pb.grad(lambda x: np.sum(np.bitwise_count(x)))(X)
