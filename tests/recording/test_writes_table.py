"""One test for each row of the table of writes and aliases that other systems get wrong: the derivative is that of
what NumPy computes. Rows that are right answers alone stand in ``test_writes_snippets``."""

import math

import numpy as np
import pytest

import pullback as pb
from pullback.words.errors import PullbackError

V = np.array([1.0, 2.0, 3.0])


def slope(f):
    """The gradient at V of the sum of ``f``; V itself stays as it is."""
    x = V.copy()
    found = pb.grad(lambda x: np.sum(f(x)))(x)
    assert x.tolist() == [1, 2, 3]
    return found.tolist()


def test_row_a_plain_buffer_filled_by_element_is_refused():
    def plain(x):
        y = np.zeros(3)
        y[0] = x[0]
        return x * y

    with pytest.raises(PullbackError, match=r"a tracer of shape \(\).* is written into a plain array.*zeros_like"):
        slope(plain)


def test_row_a_plain_buffer_filled_whole_is_refused():
    def plain(x):
        y = np.zeros(3)
        y[:] = x
        return x * y

    with pytest.raises(PullbackError, match="zeros_like"):
        slope(plain)


def test_row_an_object_array_filled_by_element():
    def f(x):
        y = np.empty(3, dtype=object)
        for k in range(3):
            y[k] = x[k] * x[k]
        return sum(y)

    assert slope(f) == [2, 4, 6]


def test_row_a_plain_array_increased_in_place_is_refused():
    def plain(x):
        y = np.ones(3)
        y += x
        return y**2

    with pytest.raises(PullbackError, match=r"would drop the derivative; make the buffer with np\..*like"):
        slope(plain)


def test_row_a_captured_constant_is_changed_after_its_use():
    def f(x):
        c = np.full(3, 2.0)
        y = x * c
        c[:] = 100
        return y

    assert slope(f) == [2, 2, 2]


def test_row_fill_sort_flat_and_shape():
    def fill(x):
        y = x * x
        y.fill(3)
        return y * x

    def sort(x):
        y = x[[1, 2, 0]]
        y.sort()
        return y * np.array([1.0, 10, 100])

    def flat(x):
        y = x * x
        y.flat[0] = 2
        return y

    def shape(x):
        y = x * x
        y.shape = (3, 1)
        return y * np.ones((1, 2))

    assert slope(fill) == [3, 3, 3]
    assert slope(sort) == [1, 10, 100]
    assert slope(flat) == [0, 4, 6]
    assert slope(shape) == [4, 8, 12]


def test_row_put_fill_diagonal_and_copyto():
    def put(x):
        y = x * x
        np.put(y, [0, 0], x[1:])
        return y

    def diagonal(x):
        y = np.ones_like(x, shape=(3, 3)) * x
        np.fill_diagonal(y, x * 10)
        return y

    def copyto(x):
        y = x * x
        np.copyto(y, x[0], where=np.array([False, True, True]))
        return y

    assert slope(put) == [0, 4, 7]
    assert slope(diagonal) == [12, 12, 12]
    assert slope(copyto) == [4, 0, 0]


def test_row_float_and_math_are_refused():
    for road in (float, math.sin, int, complex):
        with pytest.raises(PullbackError, match="would drop the derivative"):
            slope(lambda x, road=road: np.real(road(x[0])) ** 2)


def test_row_np_array_of_elements_is_refused_and_stack_is_right():
    with pytest.raises(PullbackError, match=r"np\.stack|stack"):
        slope(lambda x: np.array([x[0], x[1]]) ** 2)
    assert slope(lambda x: np.stack([x[0], x[1]]) ** 2) == [2, 4, 0]
    assert slope(lambda x: np.array([x[0], x[1]], like=x) ** 2) == [2, 4, 0]


def test_row_the_reverse_pass_twice():
    _, pull = pb.vjp(lambda x: np.exp(x) * x, V)
    first, second = pull(V)[0], pull(V)[0]
    assert first.tobytes() == second.tobytes()


def test_row_cotangent_buffers_are_not_aliased():
    seed = V.copy()
    _, pull = pb.vjp(lambda x: x, V)
    (ct,) = pull(seed)
    assert ct is not seed
    ct[:] = 0
    assert seed.tolist() == [1, 2, 3]


def test_row_a_leaked_tracer_is_refused():
    kept = []
    pb.grad(lambda x: kept.append(x) or np.sum(x))(V)
    with pytest.raises(PullbackError, match="ended"):
        kept[0] * 2


def test_row_an_exception_leaves_a_clean_state():
    for _ in range(3):
        with pytest.raises(KeyError):
            pb.grad(lambda x: {}[0])(V)
    assert slope(lambda x: x * x) == [2, 4, 6]
    assert isinstance(np.sin(V), np.ndarray)
