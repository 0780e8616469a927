"""``value`` and ``stop_gradient`` are the value of that moment: on tracers and on plain arrays, in a loop's body under
every policy, and where no gradient is computed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb

POLICIES = (pb.SaveAll(), pb.Recompute(2), pb.Binomial(1), pb.Binomial(3))
X = np.array([0.7, -1.3, 1.1, 0.4])
WRITES = {
    "one": lambda u: u.__setitem__(0, u[0] * 0.5 + 0.1),
    "slice": lambda u: u.__setitem__(slice(1, None), 0.3),
    "in place": lambda u: u.__imul__(0.9),
    "out": lambda u: np.sin(u, out=u),
    "view": lambda u: u[1:3].fill(0.2),
}
LOOKS = {"value": pb.value, "stop_gradient": pb.stop_gradient}
PLACES = {"whole": lambda u: u, "view": lambda u: u[1:], "reversed": lambda u: u[::-1]}


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(WRITES)), st.sampled_from(sorted(LOOKS)), st.sampled_from(sorted(PLACES)), st.booleans(),
    st.sampled_from(POLICIES),
)  # fmt: skip
def test_a_later_write_does_not_show(write, look, place, carried, policy):
    def body(k, u, copied=False):
        u = u if carried else u * 1.0
        seen = LOOKS[look](PLACES[place](u))
        seen = np.array(pb.value(seen)) if copied else seen
        WRITES[write](u)
        return 0.5 * np.sin(u * np.sum(seen * np.arange(1.0, len(seen) + 1)) + 0.1 * k)

    def f(x):
        return np.sum(pb.fori_loop(0, 5, body, x))

    def copying(x):
        for k in range(5):
            x = body(k, x, copied=True)
        return np.sum(x)

    out, gradient = pb.value_and_grad(f, policy=policy)(X)
    expected, reference = pb.value_and_grad(copying)(X.copy())
    assert out == expected == f(X.copy()) == copying(X.copy())
    np.testing.assert_array_equal(gradient, reference)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_value_gives_cannot_be_written(policy):
    def body(k, u):
        pb.value(u)[0] = 3.0
        return u

    with pytest.raises(ValueError, match="read-only"):
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 3, body, x)), policy=policy)(X)
