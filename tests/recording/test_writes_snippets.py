"""Views and writes, one snippet at a time: each must give NumPy's value and the gradient of what NumPy computes."""

import copy

import numpy as np
import pytest
from tests.programs.naive import complex_step

import pullback as pb

M = np.arange(1.0, 7.0).reshape(2, 3) / 4
V = np.array([1.0, 2.0, 3.0])
L = np.linspace(0.5, 2.0, 6)
SNIPPETS: list[tuple[object, object]] = []


def snippet(x):
    """The function below is a snippet at ``x``: ``f(x, np_like)`` writes as a user does and returns an array or
    scalar."""

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
        row *= row[0]  # noqa: PLW2901 - the row is a view, which is what is tested
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
    z, w = y.copy(), copy.copy(y)
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


@snippet(M)
def ravel_of_a_strided_line_is_a_copy(a):
    b = a * 1
    line = b[..., 0]
    r, v = line.ravel(), line.reshape(-1)
    b[...] = a * 5
    return np.sum(r * r) + np.sum(v * r)


@snippet(V)
def an_increment_of_the_argument_comes_first(x):
    np.add.at(x, -1, 10.0)
    np.copyto(x, x)
    x *= x
    return x * 0.5


@snippet(V)
def a_fancy_read_of_a_buffer_is_a_copy(x):
    b = np.ones_like(x)
    c = b[[0, 1]]
    c *= 5
    b[np.array([0, 1])] *= 2.0
    return np.sum(b * x) + np.sum(c * x[:2])


@snippet(V[:1])
def a_value_with_an_axis_too_many(x):
    y = x + x
    y[..., -1] = x
    z = np.zeros_like(x, shape=(2, 3))
    z[1] = (x * x).reshape(1, 1, 1)
    return np.sum(y * y) + np.sum(z * z)


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
