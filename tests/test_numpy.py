"""pullback.numpy: what NumPy gives on the values, bit for bit, with a derivative; NumPy's own object where it needs
no help."""

import collections
import itertools
import subprocess
import sys

import numpy as np
import pytest

import pullback as pb
from pullback import numpy as pnp
from pullback.primitives.shaping.nested_lists import holds_tracer
from pullback.testing import check_grads

X = np.array([0.3, 0.7, 1.1])
M = np.arange(6.0).reshape(2, 3) + X

CASES = {
    "array of scalars": (lambda xp, x: xp.array([x[0], x[1]]), X),
    "array of scalars and numbers": (lambda xp, x: xp.array([x[0], 1, 2.0, np.float32(3)]), X),
    "array of lists": (lambda xp, x: xp.array([[x[0], 2], (x[1], x[2]), [3, 4]]), X),
    "array at two depths": (lambda xp, x: xp.array([x, [x[0], 2.0, 3.0], X * 2]), X),
    "array three deep": (lambda xp, x: xp.array([[x, x], [[1.0, 2.0, x[0]], x**2]]), X),
    "array of rows of a list": (lambda xp, x: xp.array([[1.0, 2.0, 3.0], x, list(x)]), X),
    "array of arrays": (lambda xp, x: xp.array([x, x]), M),
    "array of an array": (lambda xp, x: xp.array(x), M),
    "array of a transpose": (lambda xp, x: xp.array(x.T), M),
    "array of a scalar": (lambda xp, x: xp.array(x[0]), X),
    "array of a deque": (lambda xp, x: xp.array(collections.deque([x[0], 1.0])), X),
    "array ndmin": (lambda xp, x: xp.array(x, ndmin=3), X),
    "array ndmin without copy": (lambda xp, x: xp.array(x, ndmin=2, copy=None) * 1, X),
    "array order": (lambda xp, x: xp.array(x, order="F"), M),
    "array of lists order": (lambda xp, x: xp.array([x, x], order="F"), M),
    "array float32": (lambda xp, x: xp.array([x[0], 1.0], dtype=np.float32), X.astype(np.float32)),
    "array complex": (lambda xp, x: xp.array([x[0], 1j]), X),
    "array promotes": (lambda xp, x: xp.array([x[0], np.longdouble(1)]), X),
    "array of float32 and a number": (lambda xp, x: xp.array([x[0], 1.0]), X.astype(np.float32)),
    "array of empties": (lambda xp, x: xp.array([x[:0], []]), X),
    "asarray": (lambda xp, x: xp.asarray([x, x]), X),
    "asarray dtype": (lambda xp, x: xp.asarray(x, dtype=complex), X),
    "asanyarray": (lambda xp, x: xp.asanyarray([x[0]]), X),
    "ascontiguousarray": (lambda xp, x: xp.ascontiguousarray(x.T), M),
    "ascontiguousarray of a scalar": (lambda xp, x: xp.ascontiguousarray(x[0]), X),
    "asfortranarray": (lambda xp, x: xp.asfortranarray(x), M),
    "asarray_chkfinite": (lambda xp, x: xp.asarray_chkfinite([x, x]), X),
    "require": (lambda xp, x: xp.require(x, requirements=["F"]), M),
    "full": (lambda xp, x: xp.full((2, 3), x[1]), X),
    "full of an array": (lambda xp, x: xp.full((2, 3), x), X),
    "full of a list": (lambda xp, x: xp.full((4, 2), [x[0], 1.0]), X),
    "full complex order": (lambda xp, x: xp.full((2, 3), x, complex, "F"), X),
    "full int shape": (lambda xp, x: xp.full(3, x[0]), X),
    "full_like": (lambda xp, x: xp.full_like(np.ones((2, 3)), x), X),
    "full_like of a list": (lambda xp, x: xp.full_like(np.ones(2), [x[0], 2.0]), X),
    "full_like shape and dtype": (lambda xp, x: xp.full_like(np.ones(2, int), x, dtype=float, shape=(2, 3)), X),
    "arange start": (lambda xp, x: xp.arange(x[0], 4.0), X),
    "arange start and step": (lambda xp, x: xp.arange(x[0], 9.3, x[1]), X),
    "arange step": (lambda xp, x: xp.arange(1, 9, step=x[1]), X),
    "arange float32": (lambda xp, x: xp.arange(x[0], 4.0, dtype=np.float32), X.astype(np.float32)),
    "fromiter": (lambda xp, x: xp.fromiter((a * a for a in x), float), X),
    "fromiter count": (lambda xp, x: xp.fromiter((a * a for a in x), float, 2), X),
    "r_": (lambda xp, x: xp.r_[x, 1, x[0], 2:5], X),
    "r_ of lists": (lambda xp, x: xp.r_[[x[0], 2.0], X, [3]], X),
    "r_ along": (lambda xp, x: xp.r_["-1", x, x * 2], M),
    "r_ stacked": (lambda xp, x: xp.r_["0,2", x, 2 * x, [1, 2, x[0]]], X),
    "r_ as columns": (lambda xp, x: xp.r_["1,2,0", x, x**2], X),
    "r_ step": (lambda xp, x: xp.r_[x[0] : 3 : x[1], x], X),
    "r_ float32 and a number": (lambda xp, x: xp.r_[x, 1.5], X.astype(np.float32)),
    "r_ counts": (lambda xp, x: xp.r_[x[0] : x[2] : 5j, 0:1:3j, x], X),
    "r_ of matrices": (lambda xp, x: xp.r_["0,3,1", x, [[1, 2, 3], [4, 5, 6]]], M),
    "r_ between": (lambda xp, x: xp.r_["1,3,-2", x, [1, 2, 3], x * x], X),
    "c_ with a directive": (lambda xp, x: xp.c_["0", x, [1.0]], X),
    "c_": (lambda xp, x: xp.c_[x, x**2, [1, 2, 3]], X),
    "c_ of a matrix and a line": (lambda xp, x: xp.c_[x.T, [1, 2, 3]], M),
    "vectorize": (lambda xp, x: xp.vectorize(lambda a, b: a * b if a > 0.5 else b + a)(x, 2.0), X),
    "vectorize broadcasts": (lambda xp, x: xp.vectorize(lambda a, b: a * b)(x, x[:, None]), X),
    "vectorize two results": (lambda xp, x: xp.vectorize(lambda a: (a**2, np.sin(a)))(x)[1], X),
    "vectorize excluded": (lambda xp, x: xp.vectorize(lambda a, p: a * p[0], excluded=["p"])(x, p=[2.0, 3.0]), X),
    "vectorize otypes": (lambda xp, x: xp.vectorize(lambda a: 0 if a < 0.5 else a, otypes=[float])(x), X),
    "vectorize signature": (lambda xp, x: xp.vectorize(lambda a, b: np.sum(a * b), signature="(n),(n)->()")(x, X), M),
    "vectorize signature of two": (lambda xp,
        x: xp.vectorize(lambda a: (a * a[0], a[:1]), signature="(n)->(n),(m)")(x)[0], M),
    "vectorize closure": (lambda xp, x: xp.vectorize(lambda k: x[k] * 2)(np.arange(3)), X),
    "float64": (lambda xp, x: xp.float64(x[0]) * xp.float64(x), X),
    "float32": (lambda xp, x: xp.float32(x), X.astype(np.float32)),
    "complex128": (lambda xp, x: xp.complex128(x), X),
    "concatenate": (lambda xp, x: xp.concatenate(([x[0], 2.0], x, [1.0])), X),
    "stack": (lambda xp, x: xp.stack([[x[0], 2.0], [1.0, 2.0]], axis=1), X),
    "vstack": (lambda xp, x: xp.vstack(([x[0], 2.0], [1.0, 2.0])), X),
    "hstack": (lambda xp, x: xp.hstack(([x[0], 2.0], x)), X),
    "dstack": (lambda xp, x: xp.dstack(([x[0], 2.0], [1.0, 2.0])), X),
    "column_stack": (lambda xp, x: xp.column_stack(([x[0], 2.0], [1.0, 2.0])), X),
    "append": (lambda xp, x: xp.append(x, [1.0, x[0]]), X),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_value_is_numpys_bit_for_bit(name):
    function, at = CASES[name]
    expected = function(np, at)
    seen = []

    def traced(x):
        out = function(pnp, x)
        assert isinstance(out, pb.Tracer)
        seen.append(np.array(pb.value(out), copy=None))
        return np.sum(np.real(out))

    pb.grad(traced)(at)
    given = seen[0]
    assert (given.shape, given.dtype) == (np.shape(expected), expected.dtype)
    np.testing.assert_array_equal(given, expected)
    untraced = function(pnp, at)
    assert type(untraced) is type(expected)
    np.testing.assert_array_equal(untraced, expected)
    if given.size > 1:
        assert given.flags.c_contiguous == expected.flags.c_contiguous


CONTENTS = {
    "an array": lambda x: x,
    "a matrix": lambda x: np.stack([x, x]).T,
    "a scalar": lambda x: x[0],
    "scalars": lambda x: [x[0], 2.0, x[1]],
    "arrays": lambda x: [x, x * 2],
    "nested scalars": lambda x: [[x[0]], (1.0,)],
    "a scalar of no axes": lambda x: [np.sum(x)],
    "no elements": lambda x: [x[:0], []],
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("ndmin", range(4))
def test_array_has_numpys_shape_and_order_by_every_option(name, ndmin):
    made = CONTENTS[name]
    for order, dtype in itertools.product("KACF", (None, np.float32, complex)):
        options = {"ndmin": ndmin, "order": order, "dtype": dtype}
        expected = np.array(made(X), **options)
        # The call is linear: the gradient of the sum, times X, is what X alone gives.
        alone = np.sum(expected) - np.sum(np.array(made(0 * X), **options))
        for call in (
            lambda x, options=options: pnp.array(made(x), **options),
            lambda x, options=options: np.array(made(x), **options, like=x),
        ):
            out, pull = pb.vjp(call, X)
            np.testing.assert_array_equal(out, expected, strict=True)
            (gradient,) = pull(np.ones_like(out))
            np.testing.assert_allclose(gradient @ X, np.real(alone), rtol=1e-5)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "name", [n for n, (_, at) in CASES.items() if at.dtype == np.float64 and n != "array promotes"]
)
def test_a_derivative_is_that_of_differences(name):
    function, at = CASES[name]
    check_grads(lambda x: function(pnp, x) * np.cos(np.sum(x)), (at,))


@pytest.mark.parametrize("name", ["array at two depths", "r_ stacked", "vectorize", "full", "arange start and step"])
def test_every_policy_gives_the_same_bits(name):
    function, at = CASES[name]

    def program(x):
        for _ in pb.steps(4):
            x = x * np.sin(np.sum(function(pnp, x)))
        return np.sum(x)

    np.testing.assert_array_equal(pb.grad(program, policy=pb.Binomial(2))(at), pb.grad(program)(at))


def test_everything_else_is_numpys_own():
    assert pnp.sin is np.sin
    assert pnp.linalg is np.linalg
    assert pnp.ndarray is np.ndarray
    assert set(dir(np)) <= set(dir(pnp))
    assert set(pnp.__all__) <= set(dir(np))
    for name in pnp.__all__:
        getattr(pnp, name)
    with pytest.raises(AttributeError, match="module 'numpy' has no attribute 'sine'"):
        _ = pnp.sine


def test_it_is_not_imported_with_pullback():
    code = "import sys, pullback; print('pullback.numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_mixed_result_has_no_more_records_than_needed():
    graph = pb.record(lambda x: np.sum(pnp.array([[x[0], x[1]], [x[1], x[2]]])), X)
    names = [node.name for node in graph.nodes]
    assert sum("stack" in name for name in names) == 1


def test_asarray_is_the_same_tracer_and_array_is_a_copy():
    def f(x):
        assert pnp.asarray(x) is x
        assert pnp.array(x, copy=None) is x
        y = pnp.array(x)
        y[0] = 5.0
        return np.sum(x * y)

    np.testing.assert_array_equal(pb.grad(f)(X), [5.0, 2 * X[1], 2 * X[2]])


def test_nested_gradients():
    inner = lambda x: pb.grad(lambda y: np.sum(pnp.array([y, x * y]) ** 2))(x)  # noqa: E731
    np.testing.assert_allclose(pb.grad(inner)(0.7), 2 + 6 * 0.7**2)
    assert pb.grad(lambda x: pnp.array(x) ** 2)(3.0) == 6.0


def test_integer_results_are_plain():
    def f(x):
        for plain in (
            pnp.array([x[0], 1], dtype=int),
            pnp.full(3, x[0], dtype=int),
            pnp.fromiter(x, int),
            pnp.array(x, dtype=bool),
        ):
            assert type(plain) is np.ndarray
        assert type(pnp.arange(x[0], 4, dtype=int)) is np.ndarray
        assert type(pnp.arange(x[2])) is np.ndarray  # the stop decides the length only
        return np.sum(x)

    np.testing.assert_array_equal(pb.grad(f)(X), np.ones(3))


def ring(x):
    """A list that holds itself."""
    parts = [x]
    parts.append(parts)
    return parts


REFUSED = {
    "objects": (lambda x: pnp.array([x[0], None]), pb.ConversionError, "tracers into an array of dtype object"),
    "objects asked for": (lambda x: pnp.array([x[0]], dtype=object), pb.ConversionError, "of dtype object"),
    "strings": (lambda x: pnp.array([x[0], "a"]), pb.ConversionError, "into an array of dtype <U"),
    "a dict": (lambda x: pnp.array({"a": x}), pb.ConversionError, "into an array of dtype object"),
    "a ragged list": (lambda x: pnp.array([x, [1.0]]), ValueError, "inhomogeneous shape"),
    "no copy possible": (lambda x: pnp.array([x], copy=False), ValueError, "copy"),
    "not finite": (lambda x: pnp.asarray_chkfinite([x[0], np.inf]), ValueError, "must not contain infs or NaNs"),
    "a ring": (lambda x: pnp.array(ring(x[0])), (ValueError, TypeError, RecursionError), "."),
    "too few": (lambda x: pnp.fromiter(x, float, 5), ValueError, "iterator too short"),
    "a matrix": (lambda x: pnp.r_["r", x], pb.NotDifferentiableError, "numpy.r_ with the directive 'r' makes a matrix"),
    "fill_diagonal": (lambda x: pnp.fill_diagonal(np.eye(3), x), pb.ConversionError, r"\(3, 3\) .*np.where\(np.eye"),
    "put": (lambda x: pnp.put(np.ones(3), [0], x[0]), pb.ConversionError, "write a traced value into a plain"),
    "put in a list": (lambda x: pnp.put(np.ones(3), [0], [x[0]]), pb.ConversionError, "numpy.put would write"),
    "place": (lambda x: pnp.place(np.ones(3), X > 0, x), pb.ConversionError,
        r"numpy.place would write .*np.where\(mask"),
    "putmask": (lambda x: pnp.putmask(np.ones(3), X > 0, values=x), pb.ConversionError, "numpy.putmask would write"),
    "put_along_axis": (lambda x: pnp.put_along_axis(np.ones(3), np.array([0]), x[:1], 0), pb.ConversionError,
        "would write"),
    "copyto": (lambda x: pnp.copyto(np.ones(3), x), pb.ConversionError,
        r"numpy.copyto would write .*np.full_like\(x, a"),
    "full_like of integers": (lambda x: pnp.full_like(np.ones(3, int), x), pb.ConversionError, "pass dtype=float"),
    "vectorize to integers": (
        pnp.vectorize(lambda a: 0 if a < 0.5 else a), pb.ConversionError,
        r"makes all results int64, .*otypes=\[float\]",
    ),
    "vectorize counts arguments": (
        lambda x: pnp.vectorize(lambda a: a, signature="(n)->(n)")(x, x), TypeError, ("wrong number of positional "
                                                                                     "arguments"),
    ),
    "frompyfunc": (lambda x: pnp.frompyfunc(x.__getitem__, 1, 1)(np.arange(3)), pb.ConversionError,
        "use pullback.numpy.vectorize"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused(name):
    function, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        pb.grad(lambda x: np.sum(function(x)))(X)


def test_writing_functions_are_numpys_where_they_can_be():
    a = np.zeros((3, 3))
    pnp.fill_diagonal(a, X)
    np.testing.assert_array_equal(a, np.diag(X))
    b = np.zeros(3)
    pnp.copyto(b, X)
    np.testing.assert_array_equal(b, X)

    def f(x):
        y = np.zeros_like(x)
        pnp.copyto(y, [x[0], x[1], 2.0])
        return np.sum(y * x)

    np.testing.assert_allclose(pb.grad(f)(X), [2 * X[0], 2 * X[1], 2.0])


def test_an_array_of_objects_becomes_an_array_of_numbers():
    def f(x):
        parts = np.empty(2, dtype=object)
        parts[0], parts[1] = x[0], x[1] * x[2]
        assert holds_tracer(parts)
        return np.sum(pnp.array(parts) * np.array([1.0, 2.0]))

    np.testing.assert_allclose(pb.grad(f)(X), [1.0, 2 * X[2], 2 * X[1]])


def test_scalar_types_are_still_types():
    assert np.zeros(2, dtype=pnp.float32).dtype == np.float32
    assert np.dtype(float) == pnp.float64
    assert pnp.float64 == np.float64
    assert hash(pnp.double) == hash(np.float64)
    assert isinstance(np.float64(1), pnp.float64)
    assert issubclass(np.float64, pnp.float64)
    assert np.issubdtype(np.float32, pnp.float32)
    assert np.finfo(pnp.float32).eps == np.finfo(np.float32).eps
    assert type(pnp.float32(1.5)) is np.float32
    assert pnp.float64.fromhex("0x1p-1") == 0.5
    assert pnp.int64 is np.int64


def test_isscalar_asks_the_value():
    seen = []
    pb.grad(lambda x: seen.append(pnp.isscalar(x)) or x)(2.0)
    pb.grad(lambda x: seen.append(pnp.isscalar(x)) or np.sum(x))(X)
    assert seen == [True, False]
    assert pnp.isscalar(3)


def test_vectorize_without_elements_or_tracers_is_numpys():
    square = pnp.vectorize(lambda a: a * a)
    assert isinstance(square, np.vectorize)
    np.testing.assert_array_equal(square([1, 2]), [1, 4])
    with pytest.raises(ValueError, match="cannot call `vectorize` on size 0 inputs"):
        square(np.zeros(0))
    assert pnp.frompyfunc(lambda a: a + 1, 1, 1)(np.arange(2)).tolist() == [1, 2]
