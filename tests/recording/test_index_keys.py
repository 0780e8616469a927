"""A key means what it means to NumPy, at the moment of the call: of every kind of sequence, with repeats, whatever
happens to it afterwards."""

import array
from collections import deque, namedtuple
from enum import IntEnum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb

X = np.arange(1.0, 13.0).reshape(3, 4)
Pair = namedtuple("Pair", "row column")  # noqa: PYI024 - as NumPy meets them


class Three(IntEnum):
    ONE = 1
    TWO = 2


class Indexed:
    """An object that says which integer it is, and may say another one later."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Numbers:
    """A sequence that is no list."""

    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, k):
        return self.items[k]


SEQUENCES = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "array.array": lambda items: array.array("q", items),
    "memoryview": lambda items: memoryview(array.array("q", items)),
    "deque": deque,
    "range-like": Numbers,
    "strided": lambda items: np.repeat(np.array(items), 2)[::2],
    "int32": lambda items: np.array(items, "i4"),
    "big-endian": lambda items: np.array(items, ">i8"),
    "read-only": lambda items: np.broadcast_to(np.array(items), (len(items),)),
}
SCALARS = {
    "int": int,
    "np.int64": np.int64,
    "np.uint8": np.uint8,
    "0-d": np.array,
    "__index__": Indexed,
    "IntEnum": lambda k: Three(k) if k in (1, 2) else k,
}

sequence = st.builds(
    lambda kind, items: SEQUENCES[kind](items),
    st.sampled_from(list(SEQUENCES)),
    st.lists(st.integers(0, 2), min_size=1, max_size=5),
)
scalar = st.builds(lambda kind, k: SCALARS[kind](k), st.sampled_from(list(SCALARS)), st.integers(0, 2))
bound = st.one_of(st.none(), scalar)
part = st.one_of(
    scalar, st.builds(slice, bound, bound), st.just(Ellipsis), st.none(), st.booleans(), st.just(np.True_), sequence
)
keys = st.one_of(
    part, st.tuples(part), st.tuples(part, part), st.builds(Pair, part, part), st.just([True, False, True])
)


def read_by(key, x):
    return np.sum(x[key] * x[key])


def write_by(key, x):
    b = x * 1.0
    b[key] = 5.0 * x[key]
    return np.sum(b * b)


def differences(f, x):
    g = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 0.5  # both functions are quadratic, so central differences are exact
        g[place] = f(x + step) - f(x - step)
    return g


@given(keys)
@settings(deadline=None, max_examples=150)
def test_every_key_is_numpys(key):
    for f in (read_by, write_by):
        try:
            expected = f(key, X)
        except (IndexError, ValueError, TypeError):
            with pytest.raises((IndexError, ValueError, TypeError)):
                pb.grad(lambda x, f=f: f(key, x))(X)
            continue
        value, g = pb.value_and_grad(lambda x, f=f: f(key, x))(X)
        assert value == expected
        np.testing.assert_allclose(g, differences(lambda x, f=f: f(key, x), X), rtol=1e-12)
        np.testing.assert_array_equal(pb.grad(lambda x, f=f: f(key, x), policy=pb.Recompute())(X), g)


@pytest.mark.parametrize("kind", SEQUENCES)
def test_repeats_in_any_sequence_count(kind):
    key = SEQUENCES[kind]([0, 2, 2])
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x[:, key]))(X), np.tile([1.0, 0, 2, 0], (3, 1)))

    def last_wins(x):
        b = np.zeros_like(x)
        b[key,] = x * 1.0
        return np.sum(b * X)

    expected = np.zeros((3, 4))
    expected[0], expected[2] = X[0], X[2]
    np.testing.assert_array_equal(pb.grad(last_wins)(X), expected)


def test_true_is_not_one():
    """Both in one process, in either order: nothing that is remembered of a key takes one for the other."""
    for _ in range(2):
        for key in ((1, [0, 0]), (True, [0, 0]), (np.True_, [0, 0])):
            f = lambda x, key=key: np.sum(x[key] * x[key])  # noqa: E731
            np.testing.assert_allclose(pb.grad(f)(X), differences(f, X), rtol=1e-12)


CHANGING = {
    "a 0-d array": (lambda: np.array(1), lambda k: k.__setitem__((), 2)),
    "an object with __index__": (lambda: Indexed(1), lambda k: setattr(k, "value", 2)),
    "a list": (lambda: [1, 1], lambda k: k.__setitem__(0, 2)),
    "a deque": (lambda: deque([1, 1]), lambda k: k.__setitem__(0, 2)),
    "array.array": (lambda: array.array("q", [1, 1]), lambda k: k.__setitem__(0, 2)),
    "a mask": (lambda: np.array([False, True, False]), lambda k: k.__setitem__(2, True)),
}


INTEGERS = ("a 0-d array", "an object with __index__")
PLACES = [(how, where) for how in CHANGING for where in ("itself", "in a tuple")]
PLACES += [(how, "a bound of a slice") for how in INTEGERS]


@pytest.mark.parametrize(("how", "where"), PLACES)
@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute()])
def test_a_key_that_changes_later_is_what_it_was(how, where, policy):
    make, change = CHANGING[how]

    def f(x, changes):
        k = make()
        key = {"itself": k, "a bound of a slice": slice(0, k), "in a tuple": (k, slice(0, 2))}[where]
        b = x * 1.0
        b[key] = b[key] * x[key]
        total = np.sum(x[key] * x[key]) + np.sum(b)
        if changes:
            change(k)
        return total

    np.testing.assert_array_equal(pb.grad(f, policy=policy)(X, True), pb.grad(f)(X, False))
