"""What NumPy and Python do without asking a tracer: each raises and names what to write instead. No derivative is
lost in silence."""

# ruff: noqa: PLW0108 - the call must stand in this file, where its expression is read

import array
import math
import re
import statistics
import warnings

import numpy as np
import pytest
from numpy.polynomial import Polynomial

import pullback as pb
from pullback.words.errors import ConversionError

V = np.array([1.0, 2.0, 3.0])
TRACERS = {
    "weak scalar": (lambda x: x, 0.5),
    "scalar": (lambda x: x[0] * 1.0, V),
    "element": (lambda x: x[0], V),
    "0-d": (lambda x: x * 1.0, np.array(0.5)),
    "1-d": (lambda x: x * 1.0, V),
    "view": (lambda x: (x * 1.0)[:2], V),
    "2-d": (lambda x: x.reshape(1, 3) * 1.0, V),
    "complex": (lambda x: x * 1j, V),
    "inactive": (np.zeros_like, V),
}
every_tracer = pytest.mark.parametrize("kind", TRACERS)


def refused(use, kind):
    """The text of the error that ``use`` of a tracer raises, its notes too."""
    make, x = TRACERS[kind]
    done = []

    def f(x):
        done.append(use(make(x)))
        return np.sum(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)  # of np.matrix
        try:
            pb.grad(f)(x)
        except (TypeError, ValueError) as error:
            return "\n".join([str(error), *getattr(error, "__notes__", ())])
    pytest.fail(f"no error: {type(done[0]).__name__} {getattr(done[0], 'dtype', '')}", pytrace=False)


PNP = r"pnp\.{} \(from pullback import numpy as pnp\)"
VALUE = r"int\(pullback\.value\(x\)\)"
NEW = r"np\.zeros_like\(x\) \(or np\.zeros\(shape, like=x\)\)"

CONVERSIONS = {
    "np.array of a list": (
        lambda t: np.array([t, t]),
        r"np\.stack\(\[\.\.\.\]\), np\.array\(\.\.\., like=x\), or " + PNP.format("array"),
    ),
    "np.array": (lambda t: np.array(t), PNP.format("array")),
    "np.array of objects": (lambda t: np.array([t, t], dtype=object), PNP.format("array")),
    "np.array of text": (lambda t: np.array([t], dtype=str), PNP.format("array")),
    "np.array of integers": (lambda t: np.array([t], dtype=int), PNP.format("array")),
    "np.asarray": (lambda t: np.asarray(t), r"x itself, np\.stack\(\[\.\.\.\]\), or " + PNP.format("asarray")),
    "np.asanyarray": (lambda t: np.asanyarray([t, t]), PNP.format("asanyarray")),
    "np.ascontiguousarray": (lambda t: np.ascontiguousarray(t), PNP.format("ascontiguousarray")),
    "np.asfortranarray": (lambda t: np.asfortranarray(t), PNP.format("asfortranarray")),
    "np.asarray_chkfinite": (lambda t: np.asarray_chkfinite(t), PNP.format("asarray_chkfinite")),
    "np.r_": (lambda t: np.r_[t, t], PNP.format("r_")),
    "np.c_": (lambda t: np.c_[t, t], PNP.format("c_")),
    "np.full": (lambda t: np.full(3, t), r"np\.full_like\(a, x\), np\.full\(n, x, like=x\), or " + PNP.format("full")),
    "np.arange": (lambda t: np.arange(t), PNP.format("arange")),
    "np.mgrid": (lambda t: np.mgrid[0:t], r"np\.linspace\(start, stop, n\)"),
    "np.fromiter": (lambda t: np.fromiter([t, t], float), PNP.format("fromiter")),
    "np.float64": (lambda t: np.float64(t), PNP.format("float64")),
    "np.float32": (lambda t: np.float32(t), PNP.format("float32")),
    "np.complex128": (lambda t: np.complex128(t), PNP.format("complex128")),
    "np.int64": (lambda t: np.int64(t), VALUE),
    "np.matrix": (lambda t: np.matrix(t), r"np\.atleast_2d\(x\), and @"),
    "np.ma.array": (lambda t: np.ma.array(t), r"np\.where\(mask, other, x\)"),
    "np.ma.masked_where": (lambda t: np.ma.masked_where(True, t), r"np\.where\(mask, other, x\)"),
    "np.broadcast": (lambda t: np.broadcast(t, t), r"np\.broadcast_arrays\(x, y\)"),
    "np.nditer": (lambda t: list(np.nditer(t)), r"x\.flat"),
    "as_strided": (lambda t: np.lib.stride_tricks.as_strided(t, (2,), (8,)), r"sliding_window_view"),
    "np.vectorize": (
        lambda t: np.vectorize(math.sin)(t),
        r"NumPy functions on the whole array, or " + PNP.format("vectorize"),
    ),
    "Polynomial": (lambda t: Polynomial([t, t]), r"np\.polyval\(coefficients, x\)"),
    "Polynomial of one": (lambda t: Polynomial(t), r"np\.polyval\(coefficients, x\)"),
    "np.poly1d": (lambda t: np.poly1d([t, t]), r"np\.polyval\(coefficients, x\)"),
    # A road that must raise.
    "np.random.normal": (lambda t: np.random.normal(t), r"loc \+ scale \* rng\.normal\(size=shape\)"),  # noqa: NPY002
    "rng.normal": (lambda t: np.random.default_rng(0).normal(t), r"loc \+ scale \* rng\.normal\(size=shape\)"),
    "nd.dot": (lambda t: np.ones(3).dot(t), r"np\.dot\(a, x\) or a @ x"),
    "nd[t]": (lambda t: V[t], VALUE),
    "nd.take": (lambda t: V.take(t), VALUE),
    "nd.searchsorted": (lambda t: V.searchsorted(t), r"pass pullback\.value\(x\)"),
    "nd.put": (lambda t: np.zeros(3).put([0], t), NEW),
    "a list as operand": (lambda t: V * [t, t, t], r"np\.stack"),
    "np.sum of a list": (lambda t: np.sum([t, t]), r"np\.stack"),
    "float": (lambda t: float(t), r"x\[i\] is a traced scalar"),
    "complex": (lambda t: complex(t), r"keep it an array"),
    "int": (lambda t: int(t), VALUE),
    "range": (lambda t: range(t), VALUE),
    "list[t]": (lambda t: [1, 2, 3][t], VALUE),
    "math.sin": (lambda t: math.sin(t), r"np\.sin\(x\)"),
    "math.fsum": (lambda t: math.fsum([t, t]), r"np\.sum\(np\.stack"),
    "math.pow": (lambda t: math.pow(t, 2), r"x\*\*y"),
    "math.floor": (lambda t: math.floor(t), VALUE),
    "tolist": (lambda t: t.tolist(), r"keep it an array"),
    "array.array": (lambda t: array.array("d", [t]), r"np\.stack"),
    "np.fill_diagonal": (lambda t: np.fill_diagonal(np.zeros((3, 3)), t), NEW),
    "np.copyto": (lambda t: np.copyto(np.zeros((3, 3)), t), r"np\.zeros_like\(x\)"),
    "np.put": (lambda t: np.put(np.zeros(3), [0], t), NEW),
    "np.place": (lambda t: np.place(np.zeros(3), [True, False, False], t), NEW),
    "np.putmask": (lambda t: np.putmask(np.zeros(3), [True, False, False], t), NEW),
    "np.put_along_axis": (lambda t: np.put_along_axis(np.zeros((1, 3)), np.array([[0]]), t, 0), NEW),
    "np.add.at": (lambda t: np.add.at(np.zeros(3), [0], t), NEW),
    "np.full_like of a plain array": (lambda t: np.full_like(np.zeros((1, 3)), t), r"np\.zeros_like\(x\)"),
    "out=": (lambda t: np.multiply(t, 2, out=np.zeros((3, 3))), NEW),
    "statistics.mean": (lambda t: statistics.mean([t, t]), r"np\.stack"),
    "memoryview": (lambda t: memoryview(t), r"pullback\.value\(x\)"),
}
SCALARS_ONLY = {"nd.reshape": (lambda t: V.reshape(t), VALUE), "nd.reshape of two": (lambda t: V.reshape(1, t), VALUE)}


@every_tracer
@pytest.mark.parametrize("name", CONVERSIONS)
def test_the_error_names_the_rewrite(name, kind):
    use, said = CONVERSIONS[name]
    text = refused(use, kind)
    assert re.search(said, text), text
    assert "test_firewall.py:" in text
    assert "PB201" in text


@pytest.mark.parametrize("kind", ["weak scalar", "scalar", "0-d"])
@pytest.mark.parametrize("name", SCALARS_ONLY)
def test_the_error_names_the_rewrite_of_a_shape(name, kind):
    use, said = SCALARS_ONLY[name]
    assert re.search(said, refused(use, kind))


# --------------------------------------------------------------------------------------------------- plain destinations


def _element(a, t):
    a[0] = t


def _all(a, t):
    a[:] = t


def _ellipsis(a, t):
    a[...] = t


def _fancy(a, t):
    a[[0, 1]] = t


def _mask(a, t):
    a[np.array([True, False, True])] = t


def _list(a, t):
    a[:2] = [t, t]


def _fill(a, t):
    a.fill(t)


def _flat(a, t):
    a.flat[0] = t


def _flat_all(a, t):
    a.flat = t


def _increment(a, t):
    a += t


WRITES = (_element, _all, _ellipsis, _fancy, _mask, _list, _fill, _flat, _flat_all, _increment)
DTYPES = (np.float64, np.float32, np.float16, np.longdouble, np.int64, np.uint8, np.complex128, "U8")


@every_tracer
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__[1:])
def test_a_write_to_a_plain_array(write, dtype, kind):
    text = refused(lambda t: write(np.zeros(3, dtype), t), kind)
    assert re.search(rf"{NEW}|np\.full_like", text), text
    assert "test_firewall.py:" in text
    assert "PB201" in text


@every_tracer
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.complex128], ids=str)
def test_a_write_to_a_plain_array_without_axes(dtype, kind):
    def write(t):
        a = np.zeros((), dtype)
        a[()] = t

    assert re.search(NEW, refused(write, kind))


def objects(x):
    a = np.empty(3, dtype=object)
    for k in range(3):
        a[k] = x[k] * 2.0
    return a


USES_OF_OBJECTS = {
    "x * a": lambda x: np.sum(x * objects(x)),
    "a * x": lambda x: np.sum(objects(x) * x),
    "constant * a": lambda x: np.sum(np.ones_like(x) * objects(x)),
    "np.where": lambda x: np.sum(np.where(x > 1, objects(x), x)),
    "np.dot": lambda x: np.dot(x, objects(x)),
    "np.concatenate": lambda x: np.sum(np.concatenate([x, objects(x)])),
    "np.stack": lambda x: np.sum(np.stack([x, objects(x)])),
    "plain objects": lambda x: np.sum(x * np.array([1, 2.0, 3], dtype=object)),
    "astype": lambda x: np.sum(x.astype(object)),
    "dtype=": lambda x: np.sum(np.add(x, 1.0, dtype=object)),
}


@pytest.mark.parametrize("name", USES_OF_OBJECTS)
def test_an_array_of_objects_is_no_operand(name):
    with pytest.raises(
        ConversionError, match=r"objects.* would drop the derivative.*(np\.stack|floating dtype).*PB201"
    ):
        pb.grad(USES_OF_OBJECTS[name])(V)


def test_arithmetic_of_objects_alone_is_that_of_the_tracers_in_it():
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(objects(x) * 3))(V), [6.0, 6.0, 6.0])
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(np.stack(objects(x)) ** 2))(V), 8.0 * V)


def test_an_array_of_objects_written_to_a_traced_buffer():
    def f(x):
        buffer = np.zeros_like(x)
        buffer[:] = objects(x)
        return np.sum(buffer)

    with pytest.raises(ConversionError, match=r"np\.zeros_like|np\.stack"):
        pb.grad(f)(V)


def test_truth_has_no_derivative():
    def f(x):
        mask = np.zeros(3, dtype=bool)
        mask[0] = x[0] > 0
        mask[1] = x[1]
        return np.sum(np.where(mask, x, 0.0))

    np.testing.assert_array_equal(pb.grad(f)(V), [1.0, 1.0, 0.0])


def test_text_of_a_tracer_is_made_on_request():
    texts = []
    pb.grad(lambda x: texts.extend([str(x[0]), f"{x[0]:.2f}", repr(x)]) or np.sum(x))(V)
    assert texts == ["<tracer of float64[]>", "1.00", "<tracer of float64[3]>"]


# --------------------------------------------------------------------------------------------------------- the sentence


def test_the_expression_decides_and_not_the_line():
    def f(x):
        return float(np.sum(np.sin(x))) + math.cos(x[0]) * 0.0

    with pytest.raises(
        ConversionError,
        match=r"float\(\) of a tracer of shape \(\) .*x itself|float\(\) of a tracer of shape \(\).*keep it an array",
    ):
        pb.grad(f)(V)


def test_an_expression_over_several_lines():
    def f(x):
        return np.sum(
            np.full(
                3,
                x[0],
            )
        )

    with pytest.raises(ConversionError, match=r"np\.full_like"):
        pb.grad(f)(V)


def test_without_the_source_the_road_decides():
    module = {"np": np, "math": math}
    text = "def f(x): return math.sin(x[0])\ndef g(x): return np.sum(np.array([x[0]]))\ndef h(x): return [1, 2][x[0]]"
    exec(text, module)  # noqa: S102
    for name, said in (
        ("f", r"np\.sin\(x\) serves for math\.sin\(x\)"),
        ("g", r"join traced values with np\.stack\(\[\.\.\.\]\) first"),
        ("h", VALUE),
    ):
        with pytest.raises(ConversionError, match=said):
            pb.grad(module[name])(V)


def test_a_users_own_error_gets_no_advice():
    def f(x):
        message = "my own"
        raise ValueError(message)

    with pytest.raises(ValueError, match=r"^my own$") as caught:
        pb.grad(f)(V)
    assert not getattr(caught.value, "__notes__", ())


def test_the_rewrites_run():
    from pullback import numpy as pnp  # noqa: PLC0415 - as the messages write it

    def f(x):
        buffer = np.zeros(3, like=x)
        buffer[0] = x[0]
        parts = [
            np.stack([x[0], x[1]]),
            pnp.array([x[0], x[1]]),
            pnp.r_[x[0], x[1:]],
            np.full_like(x, x[0]),
            pnp.full(2, x[1]),
            buffer,
        ]
        return sum(np.sum(part * part) for part in parts) + V[int(pb.value(x)[0])] * x[0] + np.dot(V, x)

    gradient = pb.grad(f)(V)
    assert gradient.shape == (3,)
    np.testing.assert_allclose(
        gradient, [2.0 * (1 + 1 + 1 + 3 + 1) + 2.0 + 1.0, 4.0 * (1 + 1 + 1 + 2) + 2.0, 6.0 + 3.0]
    )
