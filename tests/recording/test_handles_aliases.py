"""A value handed out is the value of that moment; arguments that share memory are not written in silence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb

X = np.array([1.0, 2.0, 3.0])
POLICIES = [pb.SaveAll(), pb.Recompute(), pb.Binomial(2)]


@pytest.mark.parametrize("policy", POLICIES)
def test_stop_gradient_keeps_what_it_saw(policy):
    def f(x):
        u = x * 2.0
        s = pb.stop_gradient(u)
        u[0] = 100.0
        return np.sum(u * s)

    value, g = pb.value_and_grad(f, policy=policy)(X)
    assert value == 100.0 * 2 + 16 + 36
    np.testing.assert_array_equal(g, [0.0, 8.0, 12.0])


WRITES = {
    "an element": lambda u: u.__setitem__(0, 100.0),
    "a slice": lambda u: u.__setitem__(slice(1, None), 7.0),
    "all": lambda u: u.fill(-1.0),
    "in place": lambda u: u.__imul__(3.0),
    "out": lambda u: np.sin(u, out=u),
    "a view of it": lambda u: u[::-1].__setitem__(0, 5.0),
    "sort": lambda u: u.sort(),
    "add.at": lambda u: np.add.at(u, [0, 0], 1.0),
}
LOOKS = {
    "value": pb.value,
    "value of a view": lambda u: pb.value(u[1:]),
    "value of a transpose": lambda u: pb.value(u.T),
    "stop_gradient": lambda u: pb.value(pb.stop_gradient(u)),
    "stop_gradient of a view": lambda u: pb.value(pb.stop_gradient(u[:2])),
}


@given(
    st.sampled_from(POLICIES),
    st.sampled_from(list(LOOKS)),
    st.lists(st.sampled_from(list(WRITES)), max_size=3),
    st.booleans(),
)
@settings(deadline=None, max_examples=80)
def test_what_was_looked_at_does_not_change(policy, look, writes, in_steps):
    kept = []

    def f(x):
        u = x * 2.0
        for _ in pb.steps(3) if in_steps else range(1):
            for name in writes:
                WRITES[name](u)
            shown = LOOKS[look](u)
            kept.append((shown, shown.copy()))
            for name in writes:
                WRITES[name](u)
            u = u * 0.5
        return np.sum(u * u)

    np.testing.assert_array_equal(pb.grad(f, policy=policy)(X), pb.grad(f)(X))
    for shown, copy in kept:
        np.testing.assert_array_equal(shown, copy)


def writes_first(a, b):
    a[0] = 10.0
    return np.sum(a * b)


def test_an_argument_given_twice_and_written_is_refused_by_both_names():
    y = X.copy()
    with pytest.raises(pb.WriteError, match=r"argument 0 and argument 1 share it"):
        pb.grad(writes_first)(y, y)
    with pytest.raises(pb.WriteError, match=r"argument 0 and b share it"):
        pb.grad(writes_first)(y, b=y[::-1])
    with pytest.raises(pb.WriteError, match=r"argument 0 and argument 1 share it"):
        pb.grad(lambda a, b: writes_first(a, b["c"][0]))(y, {"c": [y]})
    np.testing.assert_array_equal(pb.grad(writes_first)(y, y.copy()), [0.0, 2.0, 3.0])


def test_arguments_that_share_memory_and_are_only_read_are_fine():
    y = X.copy()
    np.testing.assert_array_equal(pb.grad(lambda a, b: np.sum(a * b))(y, y), y)
