"""``like=`` gives traced buffers with NumPy's values; traced contents keep their derivative."""

import numpy as np
import pytest

import pullback as pb


# ---------------------------------------------------------------------------------------------------------------- like=
def created(function):
    """What ``function`` gives within a trace."""
    found = []
    pb.grad(lambda x: found.append(function(x)) or np.sum(x))(np.arange(1.0, 5.0))
    return found[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda **like: np.zeros((2, 3), **like),
        lambda **like: np.ones(3, np.float32, **like),
        lambda **like: np.eye(3, 2, 1, **like),
        lambda **like: np.identity(3, complex, **like),
        lambda **like: np.tri(3, 4, **like),
        lambda **like: np.arange(0.0, 2.0, 0.5, **like),
        lambda **like: np.full((2, 2), 1.5, **like),
        lambda **like: np.fromfunction(lambda i, j: i + j, (2, 3), **like),
        lambda **like: np.frombuffer(bytes(16), **like),
        lambda **like: np.fromiter([1.0, 2.0], float, **like),
        lambda **like: np.loadtxt(["1 2", "3 4"], **like),
        lambda **like: np.array([[1.0], [2.0]], np.float32, ndmin=3, order="F", **like),
        lambda **like: np.asarray([1.0, 2.0], **like),
        lambda **like: np.ascontiguousarray([1.0, 2.0], **like),
        lambda **like: np.require([[1.0, 2.0]], np.float32, ["F"], **like),
    ],
)
def test_like_gives_a_traced_buffer_with_the_values_of_numpy(function):
    plain, traced = function(), created(lambda x: function(like=x))
    assert "inactive tracer" in repr(traced)
    assert (traced.shape, traced.dtype) == (plain.shape, plain.dtype)
    out, _ = pb.vjp(lambda x: function(like=x), np.ones(2))
    np.testing.assert_array_equal(out, plain)
    assert out.flags.f_contiguous == plain.flags.f_contiguous


@pytest.mark.parametrize("function", [np.zeros, np.ones, np.identity, np.arange])
@pytest.mark.parametrize("dtype", [int, bool])
def test_like_of_integers_is_plain(function, dtype):
    made = created(lambda x: function(2, dtype=dtype, like=x))
    assert type(made) is np.ndarray
    np.testing.assert_array_equal(made, function(2, dtype=dtype))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: np.array([x, 2 * x], like=x), [3, 3]),
        (lambda x: np.array([[x[0], 1.0], [x[1], x[0]]], like=x), [2, 1]),
        (lambda x: np.asarray(x, like=x), [1, 1]),
        (lambda x: np.asanyarray([x[0], 3], np.float32, like=x), [1, 0]),
        (lambda x: np.asfortranarray([[x], [x]], like=x), [2, 2]),
        (lambda x: np.require(x, np.float32, "O", like=x), [1, 1]),
        (lambda x: np.full((3, 2), x, like=x), [3, 3]),
        (lambda x: np.full(shape=4, fill_value=x[1], dtype=np.float32, like=x), [0, 4]),
        (lambda x: np.fromfunction(lambda i: x * i, (2,), like=x), [0, 1]),
    ],
)
def test_traced_contents_keep_their_derivative_under_like(function, expected):
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(function(x)))(np.array([1.5, 2.5])), expected)


def test_a_buffer_over_the_users_array_is_copied_before_it_is_written():
    mine = np.ones(3)

    def f(x):
        buffer = np.asarray(mine, like=x)
        buffer[1] = x[0]
        return np.sum(buffer * x)

    np.testing.assert_array_equal(pb.grad(f)(np.array([2.0, 3.0, 5.0])), [1 + 3, 2, 1])
    np.testing.assert_array_equal(mine, np.ones(3))


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(2), pb.Binomial(1)])
def test_what_gives_its_own_memory_to_array_may_change_later(policy):
    class Lender:
        memory = np.ones(3)

        def __array__(self, dtype=None, copy=None):
            return self.memory  # also where a copy is asked for: NumPy leaves it to the class

    lender = Lender()
    _, pull = pb.vjp(lambda x: np.sum(np.array(lender, like=x) * x), np.arange(3.0), policy=policy)
    lender.memory[:] = 9.0
    np.testing.assert_array_equal(pull(1.0)[0], np.ones(3))
