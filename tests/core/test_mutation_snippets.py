"""Views and writes, one snippet at a time: each must give NumPy's value and the gradient of what NumPy computes."""

import copy
import math

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ConversionError, NotDifferentiableError, PullbackError, WriteError
from tests.naive import complex_step

M = np.arange(1.0, 7.0).reshape(2, 3) / 4
V = np.array([1.0, 2.0, 3.0])
L = np.linspace(0.5, 2.0, 6)
SNIPPETS: list[tuple[object, object]] = []


def snippet(x):
    """The function below is a snippet at ``x``: ``f(x, np_like)`` writes as a user does and returns an array or scalar."""

    def add(f):
        SNIPPETS.append((f, x))
        return f

    return add


@snippet(V)
def write_to_a_product(x):
    y = x * 1
    y[0] = 5
    return y**2


@snippet(V)
def write_to_the_argument(x):
    x[0] = 9
    return x**2


@snippet(V)
def fill_zeros_like_elementwise(x):
    y = np.zeros_like(x)
    y[0] = x[0]
    return x * y


@snippet(V)
def fill_zeros_like_whole(x):
    y = np.zeros_like(x)
    y[:] = x
    return x * y


@snippet(V)
def fill_empty_like(x):
    y = np.empty_like(x)
    for k in range(3):
        y[k] = x[k] * x[2 - k]
    return y


@snippet(V)
def fill_zeros_with_like(x):
    y = np.zeros((2, 3), dtype=x.dtype, like=x)
    y[0], y[1] = x, x * x
    return y


@snippet(V)
def increment_in_place(x):
    y = x * 1
    y += x
    return y**2


@snippet(V)
def increment_ones_like(x):
    y = np.ones_like(x)
    y += x
    return y**2


@snippet(V)
def write_through_a_view(x):
    y = x * 1
    v = y[:2]
    v *= 3
    return y**2


@snippet(L)
def interior_increment(u):
    v = u * 1
    v[1:-1] += u[2:] - 2 * u[1:-1] + u[:-2]
    return v**2


@snippet(L)
def a_view_set_to_zero(u):
    v = u * u
    edge = v[:2]
    edge[...] = 0
    return v * u


@snippet(L)
def view_of_a_view(u):
    v = np.sin(u)
    w = v[1:][::2]
    w *= u[:3]
    w[0] = 4
    return v * v


@snippet(M)
def transposed_write(a):
    b = a * a
    b.T[0] = a[:, 1]
    b.T[1:] *= 2
    return b * a


@snippet(L)
def reshape_is_a_view(u):
    v = u * 1
    v.reshape(2, 3)[0, 1:] = u[4:]
    return v * u


@snippet(M)
def reshape_of_a_transpose_is_a_copy(a):
    b = a * 1
    c = b.T.reshape(-1)
    c[0] = 7
    return np.sum(b * a) + np.sum(c * c)


@snippet(M)
def rows_and_columns_of_one_matrix(a):
    b = a * 1
    row, column = b[0], b[:, 1]
    row *= 2
    column += row[0]
    row[1] = column[1]
    return b**2


@snippet(V)
def fancy_increment_with_duplicates(x):
    y = x * 1
    y[[0, 0, 2]] += x[[1, 2, 0]]
    return y**2


@snippet(V)
def fancy_write_with_duplicates(x):
    y = x * 1
    y[[0, 0]] = x[1:] ** 2
    return y**2


@snippet(V)
def mask_times(x):
    y = x * x
    y[np.array([True, False, True])] *= x[1]
    return y


@snippet(V)
def mask_write(x):
    y = x * x
    y[np.array([True, False, True])] = x[:2]
    return y**2


@snippet(V)
def out_of_a_ufunc(x):
    y = np.empty_like(x)
    np.multiply(x, 2, out=y)
    return x * y


@snippet(V)
def out_of_a_ufunc_is_a_view(x):
    y = x * 1
    np.sin(x[1:], out=y[:-1])
    return y * y


@snippet(V)
def out_is_an_operand(x):
    y = x * x
    np.multiply(y, y[0], out=y)
    return y


@snippet(V)
def out_of_a_reduction(x):
    y = np.zeros((), dtype=x.dtype, like=x)
    np.sum(x * x, out=y)
    return y * x


@snippet(L)
def overlapping_copies(u):
    v = u * 1
    v[1:] = v[:-1]
    v[:-2] += v[2:]
    return v * u


@snippet(V)
def product_with_itself_in_place(x):
    y = x * 1
    y *= y
    y *= y
    return y


@snippet(M)
def rows_by_iteration(a):
    b = a * 1
    for row in b:
        row *= row[0]
    return b


@snippet(np.asfortranarray(M))
def order_f(a):
    b = a * 1
    b[1] += b[0]
    b.ravel(order="F")[0] = 3
    return b * a


@snippet(V)
def write_after_save(x):
    y = np.exp(x)
    z = y * y
    y += 1
    return z * y


@snippet(V)
def saved_output_changed(x):
    y = np.exp(x)
    y += 1
    return y


@snippet(V)
def swap_of_rows(x):
    y = x * x
    y[0], y[2] = y[2].copy(), y[0].copy()
    return y * x


@snippet(M)
def swap_of_views_is_numpys_trap(a):
    b = a * a
    b[0], b[1] = b[1], b[0]
    return b * a


@snippet(V)
def add_at_accumulates(x):
    y = np.zeros_like(x)
    np.add.at(y, [0, 0], x[:2])
    return x * y


@snippet(V)
def subtract_at(x):
    y = x * 1
    np.subtract.at(y, [1, 1, 0], x)
    return y * x


@snippet(V)
def fill_and_copyto(x):
    y = x * 1
    y.fill(3)
    np.copyto(y, x, where=np.array([True, False, True]))
    return y * x


@snippet(V)
def a_shape_assigned(x):
    y = x * 1
    y.shape = (3, 1)
    return y * x


@snippet(V)
def a_scalar_rebinds(x):
    s = x.sum()
    t = s
    s += 1
    return s * t


@snippet(np.array(2.0))
def a_0d_array_is_written(x):
    y = np.full_like(x, 1.0)
    z = y
    y[...] = x * x
    y += x
    return z * x


@snippet(V)
def an_element_is_a_copy(x):
    y = x * 1
    s = y[0]
    y[0] = 5
    return s * y


@snippet(V)
def an_element_with_ellipsis_is_a_view(x):
    y = x * 1
    s = y[0, ...]
    y[0] = x[1] * 5
    return s * y


@snippet(V)
def a_function_of_one_value_twice(x):
    def step(a, b):
        a += b
        return a * b

    y = x * 1
    return step(y, y)


@snippet(V)
def copies_are_apart(x):
    y = x * 1
    z, w = y.copy(), copy.deepcopy(y)
    y[0] = 9
    z[1] = 8
    return y * z * w


@snippet(M)
def a_write_broadcasts(a):
    b = a * 1
    b[...] = a[0] * a[1]
    b[:, 1] = a[0, 0]
    return b * a


@snippet(V)
def where_with_out(x):
    y = x * x
    np.multiply(x, 3.0, out=y, where=np.array([True, False, True]))
    return y**2


@snippet(L)
def a_recurrence_over_rows(u):
    o = np.zeros_like(u)
    o[0] = u[0]
    for k in range(1, 6):
        o[k] = o[k - 1] * u[k] + o[k - 1]
    return o


@pytest.mark.parametrize(("f", "x"), SNIPPETS, ids=lambda value: getattr(value, "__name__", ""))
def test_snippet(f, x):
    argument, plain = x.copy(order="K"), f(x.copy(order="K"))
    seen = []

    def loss(a):
        out = f(a)
        seen.append(np.array(pb.value(out)))
        return np.sum(out)

    gradient = pb.grad(loss)(argument)
    assert seen[0].tobytes() == np.asarray(plain).tobytes()
    assert argument.tobytes() == x.tobytes()
    with np.errstate(all="ignore"):
        right = complex_step(lambda z: np.sum(f(z)), x)
    np.testing.assert_allclose(gradient, right, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("f", "x"), SNIPPETS, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("policy", [pb.Recompute(), pb.Binomial(1), pb.Binomial(3)], ids=repr)
def test_snippet_under_a_policy(f, x, policy):
    for at in (x, x * 1.25):
        expected = pb.grad(lambda a: np.sum(f(a)))(at)
        assert pb.grad(lambda a: np.sum(f(a)), policy=policy)(at).tobytes() == expected.tobytes()


# The rows of the coverage table with their right answers.
RIGHT = {
    write_to_a_product: [0, 4, 6],
    write_to_the_argument: [0, 4, 6],
    fill_zeros_like_elementwise: [2, 0, 0],
    fill_zeros_like_whole: [2, 4, 6],
    increment_in_place: [8, 16, 24],
    increment_ones_like: [4, 6, 8],
    write_through_a_view: [18, 36, 6],
    out_of_a_ufunc: [4, 8, 12],
    add_at_accumulates: [4, 1, 0],
}


@pytest.mark.parametrize("f", RIGHT, ids=lambda f: f.__name__)
def test_right_answer(f):
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(f(x)))(V), RIGHT[f])


def test_a_captured_constant_changed_after_its_use():
    c = np.array([2.0, 2.0, 2.0])

    def f(x):
        y = x * c
        c[:] = 100
        return y.sum()

    np.testing.assert_array_equal(pb.grad(f)(V), [2, 2, 2])


def test_a_large_constant_changed_after_its_use():
    c = np.full(100_000, 2.0)

    def f(x):
        y = x * c
        c[7] = 100
        z = x * c
        c[:] = 0
        return y.sum() + z.sum()

    expected = np.full(100_000, 4.0)
    expected[7] = 102
    np.testing.assert_array_equal(pb.grad(f)(np.ones(100_000)), expected)


def test_an_index_array_changed_after_its_use():
    index = np.array([0, 1])

    def f(x):
        y = x[index] * 2
        z = x * 1
        z[index] = 0
        index[:] = 2
        return y.sum() + z.sum()

    np.testing.assert_array_equal(pb.grad(f)(V), [2, 2, 1])


def test_an_object_array_holds_tracers():
    def f(x):
        y = np.empty(3, dtype=object)
        for k in range(3):
            y[k] = x[k] * 1.0
        return sum(x[k] * y[k] for k in range(3))

    np.testing.assert_array_equal(pb.grad(f)(V), [2, 4, 6])


def test_plus_equals_on_a_plain_buffer():
    def f(x):
        y = np.ones(3)
        y += x
        return np.sum(y**2)

    with pytest.raises(ConversionError, match=r"numpy\.add.*plain array of shape \(3,\).*test_mutation_snippets\.py:\d+.*zeros_like"):
        pb.grad(f)(V)


def _set_element(x):
    y = np.zeros(3)
    y[0] = x[0]
    return np.sum(x * y)


def _set_slice(x):
    y = np.zeros(3)
    y[:] = x
    return np.sum(x * y)


REFUSED = {
    "element of a plain buffer": _set_element,
    "slice of a plain buffer": _set_slice,
    "float": lambda x: float(x[0]) ** 2,
    "int": lambda x: np.arange(int(x[2])).sum() * x[0],
    "complex": lambda x: complex(x[0]).real * x[0],
    "math": lambda x: math.sin(x[0]),
    "np.array": lambda x: np.sum(np.array([x[0], x[1]]) ** 2),
    "np.asarray": lambda x: np.sum(np.asarray(x)),
    "np.float64": lambda x: np.float64(x[0]) * 2,
    "tolist": lambda x: sum(x.tolist()),
    "np.full": lambda x: np.full(3, x[0]).sum(),
    "index": lambda x: V[x[0]] * x[0],
    "out= of a plain array": lambda x: np.multiply(x, 2, out=np.empty(3)).sum(),
    "np.add.at a plain array": lambda x: np.add.at(np.zeros(3), [0], x[:1]) or x.sum(),
    "fill of a plain array": lambda x: np.zeros(3).fill(x[0]) or x.sum(),
    "nd.dot": lambda x: np.ones(3).dot(x),
    "vectorize": lambda x: np.vectorize(math.sin)(x).sum(),
    "put": lambda x: np.put(np.zeros(3), [0], x[0]) or x.sum(),
    "copyto a plain array": lambda x: np.copyto(np.zeros(3), x) or x.sum(),
    "random": lambda x: np.random.default_rng(0).normal(x).sum(),
    "np.r_": lambda x: np.r_[x[0], x[1]].sum(),
    "as_strided": lambda x: np.lib.stride_tricks.as_strided(x, (2,), (8,)).sum(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_road_that_would_drop_the_derivative_raises(name):
    with pytest.raises(Exception, match=r"derivative|like=|primitive for|stack|tracer|pullback") as caught:
        pb.grad(REFUSED[name])(V)
    errors = [caught.value, caught.value.__cause__, caught.value.__context__]
    assert any(isinstance(e, PullbackError) for e in errors), f"{type(caught.value)}: {caught.value}"


@pytest.mark.parametrize("name", ["element of a plain buffer", "slice of a plain buffer", "float", "np.asarray", "out= of a plain array"])
def test_the_refusal_itself_reaches_the_user(name):
    with pytest.raises(ConversionError, match=r"(?=.*drop the derivative).*test_mutation_snippets\.py:\d+.*(zeros_like|np\.stack)"):
        pb.grad(REFUSED[name])(V)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: np.broadcast_to(x, (2, 3)).__setitem__(0, 1.0),
        lambda x: np.diagonal(x.reshape(1, 3) * x.reshape(3, 1)).__setitem__(0, 1.0),
    ],
)
def test_a_read_only_view_is_read_only(write):
    with pytest.raises((WriteError, ValueError), match=r"read-only.*copy"):
        pb.grad(lambda x: write(x * 1) or x.sum())(V)


def test_a_plain_out_target_of_a_reduction():
    with pytest.raises(ConversionError, match=r"sum would write a traced value into a plain array.*zeros_like"):
        pb.grad(lambda x: np.sum(x, out=np.zeros(())))(V)


def test_a_write_with_another_dtype():
    def f(x):
        y = x.astype(np.float32)
        y += x
        y[1] = x[0] * x[1]
        return np.sum(y * y)

    gradient = pb.grad(f)(V)
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, [2 * 2 * 2 + 2 * 2 * 2, 2 * 2, 2 * 6 * 2], rtol=1e-6)


def test_an_in_place_operation_that_numpy_refuses():
    with pytest.raises(TypeError, match=r"Cannot cast ufunc 'multiply' output.*same_kind"):
        pb.grad(lambda x: np.multiply(x, 1j, out=np.zeros_like(x)).sum())(V)
    with pytest.raises(ValueError, match="broadcast"):
        pb.grad(lambda x: operator_iadd(x[:2] * 1, x).sum())(V)


def operator_iadd(a, b):
    a += b
    return a


def test_overlapping_arguments_and_a_write():
    x = np.arange(1.0, 5.0)

    def f(a, b):
        a[1:] = b[1:] * 2
        return np.sum(a * b)

    def honest(y):
        return f(y[:3], y[1:])

    with pytest.raises(WriteError, match=r"overlap.*copy"):
        pb.grad(f, argnums=(0, 1))(x[:3], x[1:])
    right = complex_step(lambda z: honest(z * 1), x)
    np.testing.assert_allclose(pb.grad(lambda z: honest(z * 1))(x), right, rtol=1e-14)


def test_a_sort_in_place_is_numpys_or_raises():
    def f(x):
        y = x * np.array([3.0, 1.0, 2.0])
        y.sort()
        return np.sum(y * np.array([0.0, 1.0, 2.0]))

    try:
        gradient = pb.grad(f)(V)
    except PullbackError as error:
        assert "sort" in str(error)
    else:
        np.testing.assert_array_equal(gradient, [3.0, 0.0, 4.0])


def test_flat_and_put_never_pass_in_silence():
    def flat(x):
        y = x * 1
        y.flat[0] = 2
        return np.sum(y * y)

    def put(x):
        y = x * 1
        np.put(y, [0], 2)
        return np.sum(y * y)

    for f in (flat, put):
        try:
            gradient = pb.grad(f)(V)
        except (PullbackError, TypeError) as error:
            assert str(error)
        else:
            np.testing.assert_array_equal(gradient, [0, 4, 6])


def test_ufunc_at_without_a_derivative():
    with pytest.raises(NotDifferentiableError, match=r"numpy\.multiply\.at.*test_mutation_snippets\.py:\d+.*np\.add\.at"):
        pb.grad(lambda x: np.multiply.at(x, [0], 2.0) or x.sum())(V)
