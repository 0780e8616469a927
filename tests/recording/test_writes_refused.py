"""What writes must not do: reach earlier reads, drop a derivative in silence, or pass where NumPy refuses."""

import math

import numpy as np
import pytest
from tests.programs.naive import complex_step

import pullback as pb
from pullback.words.errors import ConversionError, PullbackError, UnknownFunctionError, WriteError

V = np.array([1.0, 2.0, 3.0])


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

    with pytest.raises(
        ConversionError, match=r"numpy\.add.*plain array of shape \(3,\).*test_writes_refused\.py:\d+.*zeros_like"
    ):
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


@pytest.mark.parametrize(
    "name", ["element of a plain buffer", "slice of a plain buffer", "float", "np.asarray", "out= of a plain array"]
)
def test_the_refusal_itself_reaches_the_user(name):
    with pytest.raises(
        ConversionError, match=r"(?=.*drop the derivative).*test_writes_refused\.py:\d+.*(zeros_like|np\.stack)"
    ):
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


def test_a_sort_in_place_is_numpys():
    def f(x):
        y = x * np.array([3.0, 1.0, 2.0])
        y.sort()
        return np.sum(y * np.array([0.0, 1.0, 2.0]))

    if "sort" not in pb.registry.names:
        with pytest.raises(UnknownFunctionError, match=r"no primitive for numpy\.sort"):
            pb.grad(f)(V)
        return
    np.testing.assert_array_equal(pb.grad(f)(V), [3.0, 0.0, 4.0])


def test_a_write_through_flat():
    def f(x):
        y = x * 1
        y.flat[0] = 2
        return np.sum(y * y)

    np.testing.assert_array_equal(pb.grad(f)(V), [0, 4, 6])
