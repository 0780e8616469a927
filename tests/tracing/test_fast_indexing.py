"""Reads and writes that take the fast way, against the general one: a policy that may drop values records by that."""

import numpy as np
import pytest

import pullback as pb

X = np.linspace(0.3, 1.4, 12).reshape(3, 4)


def same_bits_both_ways(program):
    fast, general = pb.grad(program)(X), pb.grad(program, policy=pb.Recompute())(X)
    assert fast.tobytes() == general.tobytes()
    return fast


def both_ways(program):
    pb.testing.check_grads(program, (X,), order=1)
    return same_bits_both_ways(program)


def add_at(target, amount, *, away=False):
    """One line of the program, at which regions of all kinds are written."""
    if away:
        target -= amount
    else:
        target += amount


@pytest.mark.parametrize("n_times", [1, 3])
def test_what_one_line_writes_is_told_apart(n_times):
    def program(x):
        w = np.sin(x)
        for _ in range(n_times):
            add_at(w[1:], x[0])
            add_at(w[1:], 2.0 * x[0])
            add_at(w[:2], x[1])
            add_at(w.T, x.T * w[0, 0])
            add_at(w.T[1:3], 0.5 * x[0, :3])
            add_at(w[1:][:, 2], x[2, 1])
            add_at(w, x)
            add_at(w[1:], x[0], away=True)
        return np.sum(w * w)

    both_ways(program)


AMOUNTS = {
    "an element": lambda x: x[1, 2],
    "a number": lambda x: 0.5,
    "a scalar of NumPy": lambda x: np.float64(0.5),
    "a scalar of float32": lambda x: np.float32(0.5),
    "a flag": lambda x: True,
    "integers": lambda x: np.arange(4),
    "a row": lambda x: x[0],
    "a column": lambda x: x[:2, :1],
    "float32": lambda x: x[0].astype(np.float32),
    "a plain row": lambda x: np.arange(4.0),
    "its own part": lambda x: None,
}


@pytest.mark.parametrize("of", AMOUNTS)
@pytest.mark.parametrize("key", [slice(1, 3), 1, (slice(1, 3), slice(None)), Ellipsis])
def test_amounts_of_all_kinds(of, key):
    if of == "a column" and key == 1:
        key = slice(0, 2)
    if of == "a column" and key is Ellipsis:
        key = slice(1, None)

    def program(x):
        w = np.cos(x)
        for sign in (1, -1, 1):
            amount = w[0] if of == "its own part" else AMOUNTS[of](x)
            if sign > 0:
                w[key] += amount
            else:
                w[key] -= amount
        w[key] = w[key] * x[0, 0]
        return np.sum(w * w)

    if of == "float32":  # differences of which are those of its rounding
        same_bits_both_ways(program)
    else:
        both_ways(program)


@pytest.mark.parametrize(("amount", "error"), [(np.ones(3), ValueError), (np.ones(4) * 1j, TypeError)])
def test_what_numpy_refuses_leaves_nothing_behind(amount, error):
    def program(x):
        w = np.sin(x)
        kept = w * w
        with pytest.raises(error):
            w[1:] += amount
        if error is ValueError:
            with pytest.raises(error):
                w[1:] = amount
        w[1:] += x[0]
        return np.sum(w * kept)

    def without(x):
        w = np.sin(x)
        kept = w * w
        w[1:] += x[0]
        return np.sum(w * kept)

    assert same_bits_both_ways(program).tobytes() == both_ways(without).tobytes()


def test_keys_that_are_equal_and_mean_something_else():
    def program(x):
        w = np.sin(x)
        for key in (1, True, 1, np.int64(1), True):
            w[key] += x[0]
        return np.sum(w * w)

    both_ways(program)


KEYS = [
    slice(1, 3), slice(1, 3), slice(1, 3), slice(True, 3), slice(np.int64(1), 3), slice(np.array(1), 3), slice(0, 2), 1,
    (slice(1, 3), slice(0, 2)), (slice(1, 3), slice(0, 2)), (slice(1, 3), np.array([0, 1])), (slice(1, 3), [0, 1]),
    np.array([1, 2]), np.array([1, 2], np.int8), np.array([False, True, True]), [1, 2], (slice(1, 3), 1),
    (slice(1, 3), True), (slice(1, 3),), Ellipsis, None, (), slice(2, 2), np.array(1), np.array([], int),
]  # fmt: skip


@pytest.mark.parametrize("start", range(len(KEYS)))
def test_keys_of_all_kinds_at_one_place(start):
    """The key that is known of the place is the one before it, which has come twice."""

    def program(x):
        w, total = np.sin(x), 0.0
        for key in (KEYS[start - 1], KEYS[start - 1], KEYS[start], KEYS[start], KEYS[start - 1], *KEYS):
            part = w[key]
            total = total + np.sum(part * part)
            w[key] += 0.25
        return total + np.sum(w * x)

    both_ways(program)


@pytest.mark.parametrize("key", [slice(1.0, 3), slice("a", 3), slice(np.ones(2), 3), (slice(1, 3), 1.0)])
def test_a_key_that_numpy_refuses_is_refused_where_another_is_known(key):
    def program(x):
        for k in (slice(1, 3), slice(1, 3), slice(1, 3), key):
            part = x[k]
        return np.sum(part)

    with pytest.raises((TypeError, IndexError)):
        pb.grad(program)(X)


def test_what_is_written_through_a_known_view_after_its_array_has_changed():
    def program(x):
        w, v = np.sin(x), np.cos(x)
        for k in range(4):
            target = w if k % 2 else v
            part = target[1:]
            target *= 1.5
            part += x[:2]
            kept = w * w
            part -= 0.5 * x[1:]
            w = w + kept[0]
        return np.sum(w * v)

    both_ways(program)


def test_a_view_that_is_written_twice_is_read_as_it_is():
    def program(x):
        w = np.sin(x)
        part, other = w[1:], w[:, 1]
        part += x[:2]
        other *= 2.0
        part += x[0, 0]
        part -= part[:1] * x[0, 1]
        return np.sum(w * w) + np.sum(part * other[1:, None])

    both_ways(program)


def test_a_buffer_becomes_a_tracer_by_what_is_added():
    def program(x):
        w = np.zeros_like(x)
        w[0] += 1.0
        w[1:] += x[:2]
        w += x
        return np.sum(w * w)

    both_ways(program)
