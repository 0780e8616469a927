"""compare_adjoint: agrees with a right adjoint, names step, leaf, place and factor of a wrong one, and who is right."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as pb

C = np.linspace(0.1, 0.3, 12)
INIT = {"u": np.random.default_rng(0).random(12), "t": 0}


def heat(k, state, c):
    u = state["u"]
    v = u.copy()
    v[1:-1] += c[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
    return {"u": v, "t": state["t"] + 1}


def by_hand(k, state, ct, c):
    u, w = state["u"], ct["u"]
    inner = c[1:-1] * w[1:-1]
    g, of_c = w.copy(), np.zeros_like(c)
    g[1:-1] -= 2 * inner
    g[2:] += inner
    g[:-2] += inner
    of_c[1:-1] = w[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
    w[:] = np.nan  # old codes write to what they get
    return {"u": g, "t": None}, of_c


def compared(hand, **options):
    return pb.testing.compare_adjoint(heat, hand, INIT, 6, params=(C,), **options)


def test_a_right_adjoint_agrees():
    found = compared(by_hand)
    assert [leaf for leaf, _, _ in found.leaves] == ["state['u']", "params[0]"]
    assert all(gap < 1e-14 for _, gap, _ in found.leaves)
    assert "agrees in 6 steps" in str(found)
    assert "state['u']" in str(found)


@given(st.integers(0, 5), st.sampled_from(["u", "c"]), st.integers(0, 11), st.floats(-3, 3))
def test_the_step_the_leaf_and_the_element_are_named(wrong, leaf, element, by):
    def hand(k, state, ct, c):
        of_state, of_c = by_hand(k, state, ct, c)
        changed = of_state["u"] if leaf == "u" else of_c
        if k <= wrong:
            changed[element] += by
        return of_state, of_c

    if abs(by) < 1e-6:
        return
    with pytest.raises(pb.CheckError) as caught:
        compared(hand)
    text = str(caught.value)
    assert f"step {wrong} of 0 ... 5, {'state' if leaf == 'u' else 'params[0]'}" in text
    assert f"hand differs in 1 of 12 elements, at the {'start' if element < 6 else 'end'} of axis 0" in text or (
        2 <= element < 10 and "hand differs in 1 of 12 elements, most" in text
    )
    assert f"most at [{element}]" in text
    assert "pullback is borne out" in text
    assert (f"Steps {wrong + 1} to 5 agree" in text) == (wrong < 5)


def test_a_factor_is_told():
    def twice(k, state, ct, c):
        of_state, of_c = by_hand(k, state, ct, c)
        return of_state, 2 * of_c

    with pytest.raises(pb.CheckError, match=r"params\[0\]: .*hand is 2 x pullback in all of them"):
        compared(twice)


def test_where_a_rule_is_wrong_hand_is_borne_out():
    @pb.primitive(vjps={"x": lambda ct, x: ct * np.sin(x)})
    def wrong_sin(x):
        return np.sin(x)

    with pytest.raises(pb.CheckError, match=r"hand is borne out"):
        pb.testing.compare_adjoint(lambda k, u: wrong_sin(u), lambda k, u, ct: ct * np.cos(u), np.ones(3), 1)


def test_complex_states_and_narrow_floats():
    z = np.array([1 + 2j, 0.5 - 1j])
    pb.testing.compare_adjoint(lambda k, u: u * u, lambda k, u, ct: 2 * u * ct, z, 3)
    with pytest.raises(pb.CheckError, match="pullback is borne out"):
        pb.testing.compare_adjoint(lambda k, u: u * u, lambda k, u, ct: 2 * np.conj(u) * ct, z, 3)
    narrow = np.linspace(0.1, 0.9, 7, dtype=np.float32)
    pb.testing.compare_adjoint(lambda k, u: np.sin(u), lambda k, u, ct: np.float64(ct) * np.cos(u), narrow, 3)


def test_what_does_not_fit_is_told():
    with pytest.raises(pb.CheckError, match=r"state: hand returned 1 cotangents; return .* and one of each .*: 2"):
        compared(lambda k, state, ct, c: ct)
    with pytest.raises(pb.CheckError, match=r"state: hand returned .*; return the structure"):
        compared(lambda k, state, ct, c: (ct["u"], c))
    with pytest.raises(pb.CheckError, match=r"state\['u'\]: hand returned shape \(11,\); .* shape \(12,\)"):
        compared(lambda k, state, ct, c: ({"u": ct["u"][1:], "t": None}, c))
    with pytest.raises(pb.CheckError, match=r"params\[0\]: hand returned None; .* shape \(12,\)"):
        compared(lambda k, state, ct, c: (by_hand(k, state, ct, c)[0], None))
    with pytest.raises(ValueError, match="n >= 1 steps, got n=0"):
        pb.testing.compare_adjoint(heat, by_hand, INIT, 0)
    with pytest.raises(pb.CheckError, match="most at"):
        compared(lambda k, state, ct, c: ({"u": np.full(12, np.nan), "t": None}, by_hand(k, state, ct, c)[1]))
