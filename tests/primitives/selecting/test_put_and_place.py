"""NumPy's functions and methods that write in place, ufunc methods and ufunc keywords: NumPy's values, right
derivatives, equal bits."""

import numpy as np
import pytest

import pullback as pb
from pullback.testing import check_grads

X = np.array([[1.3, 2.2, 3.1], [4.7, 5.9, 6.4]])
POLICIES = (pb.Recompute(), pb.Binomial(2))


def fresh(x):
    """A copy that may be written, made by the program itself."""
    y = np.empty_like(x)
    y[...] = x
    return y


def written(write):
    """The program that writes into a copy of x, and reads the copy and x."""

    def program(x):
        y = fresh(x)
        write(y, x)
        return y * x

    return program


def shape_of_a_root(x):
    y = x * 2
    v = y[0, :2]
    y.shape = (3, 2)
    v *= 3
    y[1] *= x[0, :2]
    return y * y + v[0]


def shape_of_a_view(x):
    y = fresh(x).ravel() * 2
    v = y[:4]
    w = v[1:]
    v.shape = (2, 2)
    w *= 3
    v[0] *= x[0, :2]
    y *= 2
    return y * y + v.sum() + w[0]


def shape_of_a_buffer(x):
    y = np.zeros_like(x)
    w = y[0, 1:]
    y.shape = (3, 2)
    y[0] = x[1, :2]
    w += x[0, 0]
    y.shape = (6,)
    return y * w[1]


def view_then_matmul(x):
    y = fresh(x[:, :2])
    v = y[0]
    y @= x[:, 1:]
    return v * x[0, :2]


def into_imag(x):
    z = np.zeros(x.shape, complex, like=x)
    part = z.imag
    part[...] = x
    part.put([0, 1, 0], part * 2)
    z.real = x * x
    return z.real * z.imag + part


def flat_cycled(y, x):
    y.flat[1:5] = x[0, :2]
    y.flat[[0, 5]] = x[1, 0] * 2


def multiple_outputs(x):
    fraction, whole = np.zeros_like(x), np.zeros_like(x)
    np.modf(x * 1.3, out=(fraction, whole))
    _, only = np.divmod(x, 0.7, None, np.zeros_like(x))
    return fraction * x + whole + only


def sum_to_position(x):
    total = np.zeros_like(x[0])
    np.sum(x, 0, None, total)
    x.mean(0, None, total[...])
    return total * x


def masked_log(x):
    y = np.zeros_like(x)
    np.log(x - 2.5, where=x.real > 2.5, out=y)
    return y * x


def plain_targets(x):
    larger, places = np.empty((2, 3), bool), np.empty(3, np.intp)
    np.greater(x.real, 2.5, out=larger)
    np.argmax(x.real, 0, places)
    return x * larger + places.sum()


def cube_of(x):
    cube = np.zeros((3, 3, 3), like=x)
    np.fill_diagonal(cube, x[0])
    return cube * x[1]


PROGRAMS = {
    "put": written(lambda y, x: np.put(y, [0, -1, 0], x[0] * 2)),
    "put, cycled": written(lambda y, x: np.put(y, [0, 3, 4, 1], x[0, :2])),
    "put, modes": written(
        lambda y, x: (np.put(y, [7, -8], x[0, :2], "wrap"), np.put(y, [9, -9], x[1, :2], mode="clip"))
    ),
    "put a number": written(lambda y, x: y.put([1], 3)),
    "place": written(lambda y, x: np.place(y, y.real > 2.5, x[0, :2] * 3)),
    "putmask": written(lambda y, x: np.putmask(y, y.real > 2.5, x[1, :2] ** 2)),
    "put_along_axis": written(lambda y, x: np.put_along_axis(y, np.array([[2], [0]]), x[:, :1] * 5, 1)),
    "put_along_axis, flat": written(lambda y, x: np.put_along_axis(y, np.array([-1, 2]), x[0, :2], None)),
    "fill_diagonal": written(lambda y, x: np.fill_diagonal(y, x[0, :2] ** 2)),
    "fill_diagonal, wrapped": written(lambda y, x: np.fill_diagonal(y.reshape(6, 1), x[0, 0], wrap=True)),
    "fill_diagonal of a cube": cube_of,
    "put into the imaginary part": into_imag,
    "sort": written(lambda y, x: y[:, ::-1].sort(1)),
    "partition": written(lambda y, x: y.T.partition(1, axis=0)),
    "flat": written(flat_cycled),
    "flat, all of it": written(lambda y, x: setattr(y, "flat", x[0])),
    "multiply.at": written(lambda y, x: np.multiply.at(y, (np.array([0, 0, 1]), np.array([1, 1, 2])), x[0])),
    "power.at, one value": written(lambda y, x: np.power.at(y, ([0, 0],), 2.0)),
    "sin.at": written(lambda y, x: np.sin.at(y, (0, [1, 1]))),
    "shape of a root": shape_of_a_root,
    "shape of a view": shape_of_a_view,
    "shape of a buffer": shape_of_a_buffer,
    "floor_divide in place": written(lambda y, x: y.__ifloordiv__(2.0)),
    "multiply.outer": lambda x: np.multiply.outer(x[0], np.sin(x)),
    "outer of a constant": lambda x: np.hypot.outer([1.0, 2.0], x[0]),
    "add.reduceat": lambda x: np.add.reduceat(x * x, [0, 2], axis=1) + np.add.reduceat(x * x, [1, 2], axis=1),
    "add.reduceat, overlapping": lambda x: np.add.reduceat(x * x, [1, 0, 2], axis=1),
    "multiply.reduceat": lambda x: np.multiply.reduceat(x * x, [1, 0, 2], axis=1),
    "several out=": multiple_outputs,
    "out= by position": sum_to_position,
    "where= with out=": masked_log,
    "plain out= of what has no derivative": plain_targets,
    "dtype=": lambda x: np.multiply(x, np.float32(1.5), dtype="f8") + np.add(x, 1, dtype="c16").real,
    "signature=": lambda x: np.multiply(x, 2, signature="dd->d") + np.add(x, 1, sig=(None, None, np.float64)),
    "casting=": lambda x: np.add(x, 2, dtype="f4", casting="unsafe").astype("f8") * 0 + np.add(x, x, casting="no"),
    "order=": lambda x: np.multiply(x, x, order="F"),
    "methods without derivative": lambda x: (
        np.logical_and.reduce(x > 1) * x + np.greater.outer(x[0].real, x[1].real).sum() * x
    ),
}


def test_values_are_those_of_numpy():
    for name, program in PROGRAMS.items():
        np.testing.assert_array_equal(pb.vjp(program, X)[0], program(X.copy()), err_msg=name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_of_differences(name):
    check_grads(PROGRAMS[name], (X,), order=2, modes=("rev",))


@pytest.mark.parametrize("name", PROGRAMS)
def test_policies_give_the_same_bits(name):
    def stepped(x):
        for _ in pb.steps(3):
            x = x + PROGRAMS[name](x).sum() / 1000
        return PROGRAMS[name](x).sum()

    expected = pb.grad(stepped)(X)
    for policy in POLICIES:
        assert np.array_equal(pb.grad(stepped, policy=policy)(X), expected, equal_nan=True), policy


def test_matmul_in_place_writes_through_views():
    np.testing.assert_array_equal(pb.vjp(view_then_matmul, X)[0], view_then_matmul(X.copy()))
    check_grads(view_then_matmul, (X,), order=2, modes=("rev",))


@pytest.mark.parametrize("ufunc", [np.multiply, np.divide, np.maximum, np.logaddexp])
def test_at_takes_repeated_elements_one_after_the_other(ufunc):
    places, values = np.array([2, 0, 2, 2, 1, 0]), np.array([1.1, 0.7, 1.9, 2.3, 0.4, 1.6])

    def program(x, v):
        y = fresh(x)
        ufunc.at(y, places, v)
        return y

    x = np.array([0.9, 1.2, 0.8])
    np.testing.assert_array_equal(pb.vjp(program, x, values)[0], program(x, values))
    check_grads(program, (x, values), order=2, modes=("rev",))


def test_sort_in_place_returns_none_and_never_a_copy():
    assert pb.vjp(lambda x: x * float(fresh(x).sort() is None), X)[0].sum() == X.sum()


def into_plain(f):
    return lambda x: f(np.zeros((2, 3)), x) or x.sum()


REFUSED = {
    "put": into_plain(lambda b, x: np.put(b, [0], x[0])),
    "place": into_plain(lambda b, x: np.place(b, b == 0, x)),
    "putmask": into_plain(lambda b, x: np.putmask(b, b == 0, x)),
    "put_along_axis": into_plain(lambda b, x: np.put_along_axis(b, np.array([[0], [1]]), x[:, :1], 1)),
    "copyto": into_plain(lambda b, x: np.copyto(b, x)),  # noqa: PLW0108 - as its neighbours
    "multiply.at": into_plain(lambda b, x: np.multiply.at(b, 0, x)),
    "sum": into_plain(lambda b, x: np.sum(x, 0, None, b[0])),
    "add.reduce": into_plain(lambda b, x: np.add.reduce(x, 0, out=b[0])),
    "modf": into_plain(lambda b, x: np.modf(x, out=(b, b))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_plain_target_is_refused_with_the_rewrite(name):
    with pytest.raises(pb.ConversionError, match=r"plain array of shape .*test_put_and_place\.py:\d+.*zeros_like"):
        pb.grad(REFUSED[name])(X)


WRONG = {
    "put beyond the end": (lambda y, x: np.put(y, [6], x), IndexError, "index 6 is out of bounds .* size 6"),
    "place nothing": (lambda y, x: np.place(y, y > 0, x[:0]), ValueError, "empty"),
    "a mask of another size": (
        lambda y, x: np.putmask(y, [True], x),
        ValueError,
        "a mask of 1 elements for an array of 6",
    ),
    "fill_diagonal of a vector": (lambda y, x: np.fill_diagonal(y[0], x), ValueError, "at least 2-d"),
    "fill_diagonal of a box": (lambda y, x: np.fill_diagonal(y.reshape(1, 2, 3), 1.0), ValueError, "equal length"),
    "put_along_axis of another rank": (
        lambda y, x: np.put_along_axis(y, np.array([0]), x, 1),
        ValueError,
        "same number of dimensions",
    ),
    "put complex": (lambda y, x: np.putmask(y, y > 0, x * 1j), TypeError, "same_kind"),
    "a shape of another size": (lambda y, x: setattr(y, "shape", (5,)), ValueError, "reshape"),
    "a shape that needs a copy": (
        lambda y, x: setattr(y.T, "shape", (6,)),
        AttributeError,
        r"shape \(3, 2\).*without a copy",
    ),
    "casting": (lambda y, x: np.add(x, 1, casting="no", dtype="f4"), TypeError, "casting rule 'no'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_numpy_refuses_is_refused(name):
    write, error, match = WRONG[name]
    with pytest.raises(error, match=match):
        pb.vjp(written(write), X)


def test_where_without_out_is_refused():
    with pytest.raises(pb.NotDifferentiableError, match=r"numpy\.log with where= and no out= .*np\.where"):
        pb.vjp(lambda x: np.log(x, where=x > 2), X)


def lstsq_solution(x):
    return np.linalg.lstsq(x, np.arange(2.0), rcond=None)[0]


@pytest.mark.parametrize("name", ["qr", "svd", "eigh", "lstsq"])
def test_a_write_into_one_of_several_outputs_leaves_what_its_rule_reads(name):
    def first(x):
        return lstsq_solution(x) if name == "lstsq" else getattr(np.linalg, name)(x[:, :2] + x[:, :2].T)[0]

    def program(x):
        out = first(x)
        twice = out * out
        out.fill(1.0)
        return twice

    check_grads(program, (X,), order=1, modes=("rev",))
    _, pull = pb.vjp(program, X)
    _, expected = pb.vjp(lambda x: first(x) * first(x), X)
    ct = np.ones_like(program(X))
    np.testing.assert_allclose(pull(ct)[0], expected(ct)[0])


PLACES = (np.array([0, 2, 0, 1]), np.array([True, False, True, True]))
WRITES = {
    "add.at": lambda x, k, m: np.add.at(x, k, x * x),
    "add.at of a tuple": lambda x, k, m: np.add.at(x, (k,), x * x),
    "subtract.at": lambda x, k, m: np.subtract.at(x, k, x * x),
    "multiply.at": lambda x, k, m: np.multiply.at(x, k, x * x),
    "put": lambda x, k, m: np.put(x, k, x * x),
    "put_along_axis": lambda x, k, m: np.put_along_axis(x, k, x * x, 0),
    "putmask": lambda x, k, m: np.putmask(x, m, x * x),
    "place": lambda x, k, m: np.place(x, m, x * x),
    "copyto": lambda x, k, m: np.copyto(x, x * x, where=m),
    "setitem": lambda x, k, m: x.__setitem__(k, x * x),
    "setitem by a mask": lambda x, k, m: x.__setitem__(m, (x * x)[m]),
}


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(), pb.Binomial(1)], ids=repr)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_where_a_write_went_is_remembered_though_the_index_changes(write, policy):
    def f(x, then):
        for _ in pb.steps(2):
            places, mask = (k.copy() for k in PLACES)
            write(x, places, mask)
            then(places, mask)
            x = np.sin(x)
        return np.sum(x * np.arange(4.0))

    def spoil(places, mask):
        places[...] = 3
        mask[...] = ~mask

    x = np.array([0.4, 0.8, -0.3, 0.7])
    expected = pb.grad(lambda x: f(x, lambda *_: None))(x)
    assert pb.grad(lambda x: f(x, spoil), policy=policy)(x).tobytes() == expected.tobytes()


@pytest.mark.parametrize("part", ["real", "imag"])
@pytest.mark.parametrize("value", [2.0 + 1j, np.complex128(2.0 + 1j), np.array([1j, 2.0, 3.0])])
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_of_a_complex_number_a_part_takes_the_real_part(part, value):
    def written(x, *others):
        z = x * (1 + 1j)
        setattr(z, part, value)
        return z

    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(pb.vjp(written, x)[0], written(x))
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(written(x).real + written(x).imag))(x), np.ones(3))
