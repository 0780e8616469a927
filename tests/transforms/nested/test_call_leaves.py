"""What enters a call of a derivative, and when a later call is of the same form."""

import numpy as np

import pullback as pb
from pullback.transforms.nested.call_leaves import ACTIVE, FIXED, STILL, filled, fits, kinds_of_call, leaves_of

X, W = np.array([0.3, -0.7]), np.float64(0.8)


def made_anew(*others):
    n, function = 2, np.sin
    return lambda x: function(x, *others) * n


def test_leaves_are_arguments_and_parts_of_cells():
    f = made_anew(W, 3)
    leaves, parts = leaves_of(f, (X,))
    assert leaves == [X, np.sin, 2, W, 3]
    assert parts == (0, -1, -1, 2)


def test_a_function_is_filled_with_other_leaves():
    f = made_anew(W)
    leaves, parts = leaves_of(f, (X,))
    again, args = filled(f, 1, parts, [X * 2, np.cos, 3, W])
    assert again.__code__ is f.__code__
    assert [cell.cell_contents for cell in again.__closure__] == [np.cos, 3, (W,)]
    assert args[0].tolist() == (X * 2).tolist()
    assert leaves[1] is np.sin


def test_many_leaves_are_left_alone():
    assert leaves_of(made_anew(*range(100)), (X,)) is None


def test_an_empty_cell_is_left_alone():
    def outer():
        f = lambda x: x * later  # noqa: E731 - before there is a value
        found = leaves_of(f, (X,))
        later = 1.0
        return found, later

    assert outer()[0] is None


def kinds(*leaves, n_args=1, around=None):
    return kinds_of_call(list(leaves), n_args, around)


def test_kinds_of_plain_leaves():
    assert [kind.what for kind in kinds(X, W, 2, "a", None, np.sin)] == [STILL, STILL, FIXED, FIXED, FIXED, FIXED]
    assert kinds(2.0) is None  # a number of Python's as argument stays weak
    assert kinds(X, [1.0]) is None
    assert kinds(np.zeros(1000)) is None
    assert kinds(X, np.array([1, 2])) is None


def test_what_fits():
    known = kinds(X, W, 2, 1.5)
    assert fits(known, [X * 3, W * 2, 2, 1.5], None)
    assert not fits(known, [X * 3, W * 2, 3, 1.5], None)
    assert not fits(known, [X * 3, W * 2, 2, -1.5], None)
    assert not fits(known, [X * 3, W * 2, 2.0, 1.5], None)
    assert not fits(known, [X[::-1], W, 2, 1.5], None)
    assert not fits(known, [np.zeros(3), W, 2, 1.5], None)
    assert not fits(known, [X.astype(np.float32), W, 2, 1.5], None)
    assert not fits(known, [X, 0.8, 2, 1.5], None)
    assert not fits(known, [X, W, 2], None)
    assert not fits(kinds(X, 0.0), [X, -0.0], None)


def test_active_leaves():
    seen = []

    def f(x, w):
        tape = x._tape
        known = kinds(x, w, W, n_args=2, around=tape)
        seen.append([kind.what for kind in known])
        assert fits(known, [x * 2.0, w * w, W], tape)
        assert not fits(known, [x, X, W], tape)
        assert not fits(known, [X, w, W], tape)
        assert not fits(known, [x, w, w], tape)
        assert not fits(known, [x, w, W], None)
        assert kinds(w, w, around=tape) is None  # one value in two places
        assert kinds(x, around=None) is None
        assert kinds(np.zeros_like(x), around=tape) is None  # a value of the trace that depends on nothing
        return np.sum(x) * w

    pb.grad(f, argnums=(0, 1))(X, W)
    pb.jvp(f, (X, W), (X, W))
    assert seen == [[ACTIVE, ACTIVE, STILL]] * 2


def test_tangents_are_compared_as_well():
    def f(x):
        tape, other = x._tape, np.stack([x, x])
        known = kinds(other, around=tape)
        assert fits(known, [other * 2.0], tape)
        other._id.value = np.asfortranarray(np.ones((2, 2)))
        assert not fits(known, [other], tape)
        return np.sum(x)

    pb.jvp(f, (X,), (X,))
