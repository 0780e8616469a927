"""NumPy's iterators hand adopted code traced elements, in the order NumPy has for the values."""

import numpy as np
import pytest

import pullback as pb
from pullback.adopting.kinds.iterators import broadcast, nditer

X = np.arange(1.0, 7.0).reshape(2, 3)
LAYOUTS = {
    "C": lambda x: x,
    "F": lambda x: x.copy(order="F"),
    "back": lambda x: x[::-1, ::-1],
    "half back": lambda x: x.T[:, ::-1],
    "slice": lambda x: x[:, ::2],
}


def weighted(items):
    return sum((k + 1.0) * item * item for k, item in enumerate(items))


@pytest.mark.parametrize("order", ["K", "C", "F"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_come_in_the_order_of_numpy(layout, order):
    def f(x):
        return weighted(v[()] for v in nditer(LAYOUTS[layout](x), order=order))

    plain = weighted(float(v) for v in np.nditer(LAYOUTS[layout](X), order=order))
    value, gradient = pb.value_and_grad(f)(X)
    assert value == plain
    assert pb.testing.taylor_test(f, X).rate > 1.95
    assert (pb.grad(f, policy=pb.Recompute())(X) == gradient).all()


def test_several_operands_are_broadcast_and_runs_are_arrays():
    def f(x):
        pairs = sum(v * w for v, w in nditer([x, np.arange(3.0)]))
        runs = sum(np.sum(v**2) for v in nditer(x, flags=["external_loop"], order="F"))
        it = nditer(x, flags=["multi_index"])
        while not it.finished:
            pairs = pairs + (1.0 + it.multi_index[0]) * it[0] * it.value
            it.iternext()
        return pairs + runs

    np.testing.assert_array_equal(pb.grad(f)(X), np.arange(3.0) + 2 * X + [[2.0], [4.0]] * X)


def test_elements_are_written_and_operands_made():
    def f(x):
        y = x * 1.0
        with nditer(y, op_flags=["readwrite"]) as it:
            for v in it:
                v[...] = v * v
        made = nditer([y, x[0], None])
        for v, w, out in made:
            out[...] = v * w
        return np.sum(made.operands[2])

    assert pb.value_and_grad(f)(X)[0] == np.sum(X**2 * X[0])
    assert pb.testing.taylor_test(f, X).rate > 1.95


def test_what_would_convert_or_write_runs_is_refused():
    with pytest.raises(pb.ConversionError, match=r"convert traced elements to float32.*x\.astype"):
        pb.grad(lambda x: sum(nditer(x, op_dtypes=[np.float32], casting="same_kind", flags=["buffered"])))(X)
    with pytest.raises(pb.ConversionError, match=r"'external_loop' would write.*leave the flag out"):
        pb.grad(lambda x: sum(nditer(x, ["external_loop"], ["readwrite"])))(X)
    with pytest.raises(pb.ConversionError, match=r"elements lie at one place.*x\.copy\(\)"):
        pb.grad(lambda x: sum(nditer(np.broadcast_to(x, (2, 2, 3)))))(X)


def test_a_broadcast_has_its_shape_and_traced_elements():
    def f(x):
        both = broadcast(x, np.arange(6.0).reshape(2, 1, 3))
        assert (both.shape, both.nd, both.size) == ((2, 2, 3), 3, 12)
        return sum(v * w for v, w in both) + np.sum(both.iters[0])

    expected = [float(v * w) for v, w in np.broadcast(X, np.arange(6.0).reshape(2, 1, 3))]
    assert pb.value_and_grad(f)(X)[0] == sum(expected) + 2 * X.sum()
    np.testing.assert_array_equal(pb.grad(f)(X), np.tile([3.0, 5.0, 7.0], (2, 1)) + 2)
    assert type(broadcast(X, X)) is np.broadcast
    assert type(nditer(X)) is np.nditer


@pytest.mark.parametrize("use", [lambda it: it.copy(), lambda it: it.itviews, lambda it: setattr(it, "iterindex", 2)])
def test_what_would_tell_of_the_places_alone_is_no_attribute(use):
    with pytest.raises(AttributeError):
        pb.grad(lambda x: use(nditer(x)))(X)


def test_a_list_of_arrays_of_one_shape_is_several_operands(tmp_path):
    path = tmp_path / "listed.py"
    path.write_text(
        "import numpy as np\n"
        "def f(x):\n"
        "    y = np.zeros(x.shape)\n"
        "    with np.nditer([x, y], op_flags=[['readonly'], ['readwrite']]) as both:\n"
        "        for v, w in both:\n"
        "            w[...] = v * v\n"
        "    return sum(v * w for v, w in np.nditer([x, y]))\n"
    )
    np.testing.assert_allclose(pb.grad(pb.adopt(path).f)(X), 3 * X**2)
